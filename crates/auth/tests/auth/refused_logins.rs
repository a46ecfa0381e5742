//! What is told of refused logins, to the operator alone.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use tidegate_auth::keys::{KeyFile, NewKey};
use tidegate_service::epoch_ms;
use tidegate_service::events::{self, Event, Kind, Recorder};

use crate::common::Gateway;

/// Reasons and details of what was refused to one address: other tests have refusals of their own.
struct Notes {
    of: IpAddr,
    told: Mutex<Vec<(String, Option<String>)>>,
}

impl Recorder for Notes {
    fn wants(&self, kind: Kind) -> bool {
        kind == Kind::LoginRefused
    }

    fn record(&self, event: &Event<'_>) {
        if let Event::LoginRefused(it) = event
            && it.address == Some(self.of)
        {
            self.told.lock().unwrap().push((it.reason.to_owned(), it.detail.map(str::to_owned)));
        }
    }
}

#[tokio::test]
async fn the_log_says_who_it_was_and_from_where_and_the_caller_hears_nothing_of_it() {
    let of = IpAddr::from([192, 0, 2, 77]);
    let notes = Arc::new(Notes { of, told: Mutex::default() });
    let recorder: Arc<dyn Recorder> = notes.clone();
    events::add(recorder.clone());
    let named = |name: &str| NewKey { name: name.into(), ..NewKey::default() };
    let new = [
        named("good"),
        named("gone"),
        NewKey { endpoints: Some(vec!["research".into()]), ..named("elsewhere") },
        NewKey { scopes: Some(vec!["mcp".into()]), ..named("little") },
    ];
    let mut keys = Vec::new();
    // All of them are there from the start: waiting for one to be known would be many refusals.
    let gateway = Gateway::start(|auth| {
        auth.scopes.required = vec!["mcp".into(), "more".into()];
        let written = KeyFile::change(auth.keys.as_ref().unwrap(), |file| {
            for one in new {
                keys.push(file.add(one, epoch_ms())?.reveal().to_owned());
            }
            file.revoke("gone", epoch_ms()).map(drop)
        });
        written.unwrap();
    })
    .await;
    let [good, gone, elsewhere, little]: [String; 4] = keys.try_into().unwrap();

    // Only the first request of a connection says where it comes from, also when that was refused by the guard.
    let connection = &mut gateway.connect();
    let first = gateway.tool("who").bearer(&good).from(of).header("host", "evil.example.com");
    assert_eq!(first.send_over(connection).await.status, 403);
    assert_eq!(gateway.tool("who").bearer(&good).send_over(connection).await.status, 200);
    let evil = "eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2V2aWwuZXhhbXBsZS5jb20ifQ.";
    for (credential, status, secret) in [
        (gone.as_str(), 401, "gone"),
        (elsewhere.as_str(), 401, "elsewhere"),
        (little.as_str(), 403, "little"),
        (evil, 401, "evil"),
        ("tidegate_nonsense", 401, "nonsense"),
    ] {
        let answer = gateway.tool("who").bearer(credential).send_over(connection).await;
        let told = format!("{:?} ", answer.headers);
        assert_eq!(answer.status, status, "{secret}");
        let told = told + &answer.text().await;
        assert!(!told.contains(secret), "{told}");
    }
    events::remove(&recorder);

    let told = notes.told.lock().unwrap();
    let id = |key: &str| key[9..17].to_owned();
    let expected = [
        ("key_revoked", Some(format!("the API key \"gone\" ({})", id(&gone)))),
        (
            "wrong_endpoint",
            Some(format!("the API key \"elsewhere\" ({}), which is for \"research\"", id(&elsewhere))),
        ),
        ("insufficient_scope", Some("subject \"little\" of \"tidegate:keys\" lacks \"more\"".to_owned())),
        ("wrong_issuer", Some("issuer \"https://evil.example.com\"".to_owned())),
        ("malformed", None),
    ];
    assert_eq!(*told, expected.map(|(reason, detail)| (reason.to_owned(), detail)));
}
