//! Credentials and what happens when they are refused.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::http::{HeaderMap, Method};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::server::{answer, json};
use super::*;

/// Has a new token after each challenge.
#[derive(Default)]
struct Tokens {
    number: AtomicUsize,
    challenges: Mutex<Vec<Challenge>>,
    gives_up: bool,
}

impl Authorizer for Tokens {
    fn authorization(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, Error>> {
        let value = match self.number.load(Ordering::Relaxed) {
            0 => None,
            n => Some(HeaderValue::from_str(&format!("Bearer {n}")).unwrap()),
        };
        async { Ok(value) }.boxed()
    }

    fn challenged(&self, challenge: Challenge) -> BoxFuture<'_, Result<(), Error>> {
        self.challenges.lock().unwrap().push(challenge);
        self.number.fetch_add(1, Ordering::Relaxed);
        async {
            match self.gives_up {
                true => Err(Error::new(Symbol::Unauthorized, "the user said no")),
                false => Ok(()),
            }
        }
        .boxed()
    }
}

fn with(server: &Server, tokens: &Arc<Tokens>) -> HttpClient {
    let mut remote = remote(&server.url("/mcp"));
    remote.headers.insert("Authorization".to_owned(), "Basic configured".to_owned());
    HttpClient::new(&remote, Some(tokens.clone()), &HttpSettings::default()).unwrap()
}

fn sent(server: &Server) -> Vec<String> {
    server.seen().iter().map(|one| one.all("authorization").join("+")).collect()
}

#[tokio::test]
async fn challenges_are_answered() {
    let server = Server::start(|number, _| match number {
        0 => answer("401 Unauthorized", "www-authenticate: Bearer realm=\"x\"\r\n", "who are you?"),
        1 => answer("403 Forbidden", "www-authenticate: Bearer error=\"insufficient_scope\"\r\n", ""),
        _ => json("{}"),
    })
    .await;
    let tokens = Arc::new(Tokens::default());
    let client = with(&server, &tokens);
    for _ in 0..2 {
        assert_eq!(outcome(&post(&client).await), "200 {}");
    }
    assert_eq!(sent(&server), ["Basic configured", "Bearer 1", "Bearer 2", "Bearer 2"]);
    assert!(server.seen().iter().all(|one| one.connection == 1 && one.body.contains("ping")));
    let challenges = tokens.challenges.lock().unwrap();
    let short: Vec<_> = challenges
        .iter()
        .map(|c| {
            format!(
                "{} {} {:?}",
                c.status,
                c.www_authenticate.join("+"),
                c.refused.as_ref().unwrap().to_str()
            )
        })
        .collect();
    assert_eq!(
        short,
        [
            "401 Bearer realm=\"x\" Ok(\"Basic configured\")",
            "403 Bearer error=\"insufficient_scope\" Ok(\"Bearer 1\")"
        ]
    );
}

#[tokio::test]
async fn endless_challenges_end() {
    let server = Server::start(|_, _| answer("401 Unauthorized", "www-authenticate: Bearer\r\n", "")).await;
    let tokens = Arc::new(Tokens::default());
    let answered = post(&with(&server, &tokens)).await.unwrap();
    assert_eq!((answered.status.as_u16(), answered.www_authenticate), (401, vec!["Bearer".to_owned()]));
    assert_eq!(sent(&server), ["Basic configured", "Bearer 1", "Bearer 2", "Bearer 3"]);
}

#[tokio::test]
async fn refusals_that_nobody_can_answer_go_back() {
    let server = Server::start(|_, _| answer("401 Unauthorized", "www-authenticate: Bearer\r\n", "")).await;
    assert_eq!(outcome(&post(&client(&server)).await), "401 empty");
    assert_eq!(server.seen().len(), 1);

    let tokens = Arc::new(Tokens { gives_up: true, ..Tokens::default() });
    let refused = post(&with(&server, &tokens)).await.err().unwrap();
    assert_eq!((refused.symbol(), refused.is_unexecuted()), (Symbol::Unauthorized, true));

    let server = Server::start(|_, _| answer("403 Forbidden", "", "")).await;
    assert_eq!(outcome(&post(&with(&server, &Arc::default())).await), "403 empty");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn credentials_stay_with_the_origin() {
    let other = Server::start(|_, _| json("{}")).await;
    let location = other.url("/mcp");
    let server =
        Server::start(move |_, _| answer("307 Temporary Redirect", &format!("location: {location}\r\n"), ""))
            .await;
    let tokens = Arc::new(Tokens { number: AtomicUsize::new(1), ..Tokens::default() });
    assert_eq!(outcome(&post(&with(&server, &tokens)).await), "307 empty");
    assert_eq!((sent(&server).len(), other.seen().len()), (1, 0));
}

/// Has credentials that are bound to a key. Each proof is another one, and repeats the nonce of the last answer.
#[derive(Default)]
struct Bound {
    proofs: AtomicUsize,
    nonce: Mutex<String>,
}

impl Authorizer for Bound {
    fn authorization(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, Error>> {
        async { Ok(Some(HeaderValue::from_static("DPoP token"))) }.boxed()
    }

    fn challenged(&self, _: Challenge) -> BoxFuture<'_, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }

    fn proof(&self, method: &Method, url: &Url, authorization: &HeaderValue) -> Option<HeaderValue> {
        let (number, nonce) = (self.proofs.fetch_add(1, Ordering::Relaxed), self.nonce.lock().unwrap());
        let what = format!("{number} {method} {} {} {nonce}", url.path(), authorization.to_str().unwrap());
        Some(HeaderValue::from_str(what.trim()).unwrap())
    }

    fn answered(&self, _: &HeaderValue, _: StatusCode, headers: &HeaderMap) {
        if let Some(nonce) = headers.get("dpop-nonce") {
            *self.nonce.lock().unwrap() = nonce.to_str().unwrap().to_owned();
        }
    }
}

#[tokio::test]
async fn each_request_has_its_own_proof() {
    let server = Server::start(|number, _| match number {
        0 => answer(
            "401 Unauthorized",
            "www-authenticate: DPoP error=\"use_dpop_nonce\"\r\ndpop-nonce: n1\r\n",
            "",
        ),
        _ => json("{}"),
    })
    .await;
    let bound: Arc<Bound> = Arc::default();
    let client =
        HttpClient::new(&remote(&server.url("/mcp?q")), Some(bound), &HttpSettings::default()).unwrap();
    for _ in 0..2 {
        assert_eq!(outcome(&post(&client).await), "200 {}");
    }
    let proofs: Vec<_> = server.seen().iter().map(|one| one.all("dpop").join("+")).collect();
    assert_eq!(proofs, ["0 POST /mcp DPoP token", "1 POST /mcp DPoP token n1", "2 POST /mcp DPoP token n1"]);
}

/// Each caller has a token of its own.
struct Own(Option<String>);

impl Authorizer for Own {
    fn of_caller(&self, caller: &Principal) -> Option<Arc<dyn Authorizer>> {
        let subject = caller.subject.as_ref()?;
        Some(Arc::new(Own(Some(format!("Bearer of {subject}")))))
    }

    fn authorization(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, Error>> {
        let value = self.0.as_ref().map(|text| HeaderValue::from_str(text).unwrap());
        async { Ok(value) }.boxed()
    }

    fn challenged(&self, _: Challenge) -> BoxFuture<'_, Result<(), Error>> {
        async { Err(Error::internal()) }.boxed()
    }
}

#[tokio::test]
async fn credentials_are_asked_for_with_the_caller_at_hand() {
    let server = Server::start(|_, _| json("{}")).await;
    let client =
        HttpClient::new(&remote(&server.url("/mcp")), Some(Arc::new(Own(None))), &HttpSettings::default())
            .unwrap();
    for caller in [Principal::subject("ann"), Principal::default(), Principal::subject("bob")] {
        client.for_caller(&caller).post(Bytes::from_static(b"{}"), Headers::new()).await.unwrap();
    }
    assert_eq!(sent(&server), ["Bearer of ann", "", "Bearer of bob"]);
}
