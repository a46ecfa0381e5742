//! Requests to servers on loopback, under names that a resolver of the test's own knows.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper_util::client::proxy::matcher::Matcher;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::{Follow, Lookup, Zone};

/// A server that answers with whatever it is told to, and what it was asked.
struct Site {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl Site {
    /// An answer that does not end with its length leaves the connection open.
    async fn new(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (asked, connections) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<AtomicUsize>::default());
        let (seen, count, answer) = (asked.clone(), connections.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (seen, answer) = (seen.clone(), answer.clone());
                tokio::spawn(async move {
                    let (mut request, mut byte) = (String::new(), [0]);
                    while stream.read(&mut byte).await.is_ok_and(|n| n == 1) {
                        request.push(char::from(byte[0]));
                        if request.ends_with("\r\n\r\n") {
                            let request = std::mem::take(&mut request).to_ascii_lowercase();
                            let answer = answer(&request);
                            lock(&seen).push(request);
                            if stream.write_all(answer.as_bytes()).await.is_err() || answer.contains("close")
                            {
                                return;
                            }
                        }
                    }
                });
            }
        });
        Site { port, asked, connections }
    }

    fn at(&self, host: &str, path: &str) -> Url {
        Url::parse(&format!("http://{host}:{}{path}", self.port)).unwrap()
    }

    fn asked(&self) -> Vec<String> {
        lock(&self.asked).clone()
    }
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn redirect(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
}

/// Names that stand for these addresses, one after the other; the last one stays.
fn names(known: &'static [(&'static str, &'static [&'static str])]) -> Lookup {
    let count = AtomicUsize::new(0);
    Arc::new(move |name| {
        let at = count.fetch_add(1, Ordering::SeqCst);
        let found = known.iter().find(|(own, _)| *own == name).map(|(_, all)| all[at.min(all.len() - 1)]);
        let found: Vec<IpAddr> = found.into_iter().map(|ip| ip.parse().unwrap()).collect();
        Box::pin(std::future::ready(Ok(found)))
    })
}

fn direct(guard: Guard) -> Web {
    Web::new(Settings { guard, proxies: Proxies::none(), ..Settings::default() })
}

#[tokio::test]
async fn bodies_come_whole_or_piece_by_piece_and_bounded() {
    let site = Site::new(|request| match request.split(' ').nth(1) {
        Some("/stream") => "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n".to_owned(),
        Some("/cut") => "HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\nhello".to_owned(),
        Some("/endless") => format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{}", "x".repeat(99)),
        _ => ok("hello"),
    })
    .await;
    let web = direct(Guard::anywhere());
    let get = |path: &str| Request::get(site.at("127.0.0.1", path));
    let answer = web.send(get("/")).await.unwrap();
    assert_eq!((answer.length(), answer.whole(5).await.unwrap().as_ref()), (Some(5), &b"hello"[..]));
    for (path, most) in [("/", 4), ("/endless", 98)] {
        let answer = web.send(get(path)).await.unwrap();
        assert_eq!(answer.whole(most).await, Err(Error::TooLarge(most)));
    }
    assert_eq!(web.send(get("/endless")).await.unwrap().beginning(10).await.len(), 10);
    assert!(matches!(web.send(get("/cut")).await.unwrap().whole(9).await, Err(Error::Broken(_))));
    // A piece is there before the end is, and no end is waited for without end.
    let mut answer = web.send(get("/stream").silence(Duration::from_millis(500))).await.unwrap();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "hello");
    assert_eq!(answer.chunk().await, Err(Error::Timeout));
    let answer = web.send(get("/stream").within(Duration::from_secs(2))).await.unwrap();
    assert_eq!(answer.whole(99).await, Err(Error::Timeout));
}

#[tokio::test]
async fn what_never_answers_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = |port: u16| Url::parse(&format!("http://127.0.0.1:{port}/")).unwrap();
    let port = silent.local_addr().unwrap().port();
    let web = direct(Guard::anywhere());
    let error = web.send(Request::get(url(port)).within(Duration::from_millis(50))).await.unwrap_err();
    assert!(error == Error::Timeout && error.is_timeout() && !error.is_connect());
    // The same while connecting: nobody says what the name stands for.
    let guard = Guard::anywhere().with_lookup(Arc::new(|_| Box::pin(std::future::pending())));
    let connect = Duration::from_millis(50);
    let settings = Settings { guard, connect, proxies: Proxies::none(), ..Settings::default() };
    let nowhere = Request::get(Url::parse("http://a.test/").unwrap());
    let error = Web::new(settings).send(nowhere).await.unwrap_err();
    assert!(matches!(error, Error::ConnectTimeout(_)) && error.is_timeout() && error.is_connect());
    drop(silent);
    let error = web.send(Request::get(url(port))).await.unwrap_err();
    assert!(matches!(&error, Error::Connect(why) if why.contains("refused")), "{error:?}");
}

#[tokio::test]
async fn the_guard_is_asked_at_each_hop_and_names_are_looked_up_once() {
    let site = Site::new(|request| match request.split(' ').nth(1).unwrap_or_default() {
        "/page" => ok("page"),
        path => redirect(path.strip_prefix("/to?").unwrap_or_default()),
    })
    .await;
    let allowed = |ip: IpAddr| ip.to_string() == "127.0.0.1" || Zone::of(ip) == Zone::Public;
    let guard = |names| Guard::new(allowed).with_lookup(names);
    static NAMES: &[(&str, &[&str])] = &[("a.test", &["127.0.0.1"]), ("inner.test", &["127.0.0.2"])];
    let web = direct(guard(names(NAMES)));
    let get = |path: &str| Request::get(site.at("a.test", path)).follow(Follow::Anywhere, 3);
    let answer = web.send(get("/to?/page")).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.url().path()), (200, "/page"));
    for to in ["inner.test", "127.0.0.2", "169.254.169.254", "[::ffff:127.0.0.3]"] {
        let error = web.send(get(&format!("/to?{}", site.at(to, "/page")))).await.unwrap_err();
        assert!(matches!(error, Error::Forbidden { .. }), "{to}: {error}");
    }
    assert_eq!(
        web.send(Request::get(site.at("b.test", "/"))).await.unwrap_err(),
        Error::NoHost("b.test".into())
    );
    // A name that means something else the second time is not asked a second time.
    static REBOUND: &[(&str, &[&str])] = &[("a.test", &["127.0.0.1", "127.0.0.2"])];
    let settings =
        Settings { guard: guard(names(REBOUND)), proxies: Proxies::none(), idle: 0, ..Settings::default() };
    let web = Web::new(settings);
    assert_eq!(web.send(get("/page")).await.unwrap().status(), 200);
    assert!(matches!(web.send(get("/page")).await, Err(Error::Forbidden { zone: Zone::Loopback, .. })));
    assert!(site.asked().iter().all(|request| !request.contains("host: inner.test")));
}

#[tokio::test]
async fn redirects_leave_credentials_behind() {
    static NAMES: &[(&str, &[&str])] = &[("a.test", &["127.0.0.1"]), ("b.test", &["127.0.0.1"])];
    let site = Site::new(|request| match request.split(' ').nth(1).unwrap_or_default() {
        "/page" => ok("page"),
        path => redirect(path.strip_prefix("/to?").unwrap_or_default()),
    })
    .await;
    let web = direct(Guard::anywhere().with_lookup(names(NAMES)));
    let mut key = HeaderValue::from_static("secret");
    key.set_sensitive(true);
    for (to, kept) in [("a.test", true), ("b.test", false)] {
        let request = Request::get(site.at("a.test", &format!("/to?{}", site.at(to, "/page"))))
            .header(header::AUTHORIZATION, HeaderValue::from_static("Bearer secret"))
            .header(header::HeaderName::from_static("x-api-key"), key.clone())
            .follow(Follow::NoDowngrade, 1);
        assert_eq!(web.send(request).await.unwrap().status(), 200);
        let last = site.asked().pop().unwrap();
        assert_eq!(last.contains("authorization: bearer secret"), kept, "{last}");
        assert_eq!(last.contains("x-api-key: secret"), kept, "{last}");
    }
    // Without leave to follow, and after too many, the redirect is the answer.
    let to = site.at("a.test", "/to?/to?/page");
    assert_eq!(web.send(Request::get(to.clone())).await.unwrap().status(), 302);
    assert_eq!(web.send(Request::get(to).follow(Follow::Anywhere, 1)).await.unwrap().status(), 302);
}

#[tokio::test]
async fn connections_are_kept_or_not() {
    let site = Site::new(|_| ok("x")).await;
    for idle in [8, 0] {
        let before = site.connections.load(Ordering::SeqCst);
        let web = Web::new(Settings { idle, proxies: Proxies::none(), ..Settings::default() });
        for _ in 0..10 {
            let answer = web.send(Request::get(site.at("127.0.0.1", "/"))).await.unwrap();
            assert_eq!(answer.whole(9).await.unwrap(), "x");
            // A connection goes back when its task has seen the end of the answer.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let opened = site.connections.load(Ordering::SeqCst) - before;
        assert_eq!(opened == 10, idle == 0, "{opened}");
    }
}

#[tokio::test]
async fn proxies_forward_plain_requests_and_tunnel_others() {
    let proxy = Site::new(|request| match request.starts_with("connect ") {
        true => "HTTP/1.1 403 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
        false => ok("from the proxy"),
    })
    .await;
    let matcher = Matcher::builder().all(format!("http://u:p@127.0.0.1:{}", proxy.port)).build();
    let web = Web::new(Settings { proxies: matcher.into(), guard: Guard::public(), ..Settings::default() });
    let answer = web.send(Request::get(Url::parse("http://a.test/x?y=1").unwrap())).await.unwrap();
    assert_eq!(answer.whole(99).await.unwrap(), "from the proxy");
    let asked = proxy.asked().pop().unwrap();
    assert!(asked.starts_with("get http://a.test/x?y=1 http/1.1\r\n"), "{asked}");
    assert!(
        asked.contains("host: a.test\r\n") && asked.contains("proxy-authorization: basic dtpw"),
        "{asked}"
    );
    let error = web.send(Request::get(Url::parse("https://a.test/x").unwrap())).await.unwrap_err();
    assert!(matches!(error, Error::Connect(_)), "{error:?}");
    let asked = proxy.asked().pop().unwrap();
    assert!(
        asked.starts_with("connect a.test:443 ") && asked.contains("proxy-authorization: basic"),
        "{asked}"
    );
    // An address is checked even if it is the proxy that goes there.
    let error = web.send(Request::get(Url::parse("http://10.0.0.1/").unwrap())).await.unwrap_err();
    assert!(matches!(error, Error::Forbidden { zone: Zone::Private, .. }), "{error:?}");
    // This machine is not behind it.
    let error = web.send(Request::get(proxy.at("localhost", "/"))).await.unwrap_err();
    assert!(matches!(error, Error::Forbidden { .. }), "{error:?}");
}

#[tokio::test]
async fn documents_are_kept_as_long_as_the_server_says() {
    let site = Site::new(|request| match request.contains("if-none-match: \"1\"") {
        true => "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned(),
        false if request.starts_with("get /moved") => redirect("/fresh?again"),
        false if request.starts_with("get /fresh") => {
            "HTTP/1.1 200 OK\r\ncache-control: max-age=60\r\ncontent-length: 1\r\n\r\nx".to_owned()
        }
        false => "HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-length: 1\r\n\r\nx".to_owned(),
    })
    .await;
    let web = direct(Guard::anywhere());
    for (path, requests) in [("/fresh", 1), ("/tagged", 3), ("/moved", 6)] {
        let before = site.asked().len();
        for _ in 0..3 {
            let request = Request::get(site.at("127.0.0.1", path)).follow(Follow::Anywhere, 1);
            let document = web.document(request, 9).await.unwrap();
            assert_eq!((document.status.as_u16(), document.body.as_ref()), (200, &b"x"[..]));
        }
        assert_eq!(site.asked().len() - before, requests, "{path}");
    }
    let own = Request::get(site.at("127.0.0.1", "/fresh"))
        .header(header::AUTHORIZATION, HeaderValue::from_static("Bearer t"));
    let before = site.asked().len();
    web.document(own, 9).await.unwrap();
    assert_eq!(site.asked().len() - before, 1, "what somebody may see is not kept for all");
}

#[tokio::test]
async fn so_many_requests_per_host() {
    let site = Site::new(|_| ok("x")).await;
    let rate = Some(Rate { burst: 2, per_second: 0.001 });
    let web = Web::new(Settings { rate, proxies: Proxies::none(), ..Settings::default() });
    let get = || web.send(Request::get(site.at("127.0.0.1", "/")));
    for _ in 0..2 {
        assert_eq!(get().await.unwrap().status(), 200);
    }
    assert_eq!(get().await.unwrap_err(), Error::Busy("127.0.0.1".to_owned()));
    assert_eq!(web.send(Request::get(site.at("localhost", "/"))).await.unwrap().status(), 200);
}
