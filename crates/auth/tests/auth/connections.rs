//! Several requests over one connection: what is known of the one before opens nothing for the next.

use std::sync::atomic::Ordering;

use serde_json::json;
use tidegate_auth::keys::NewKey;
use tidegate_service::epoch_ms;

use crate::common::{Ask, Connection, Gateway, in_time, resources};

fn named(name: &str) -> NewKey {
    NewKey { name: name.into(), ..NewKey::default() }
}

/// The subject that a request is let in as, or the status that it is refused with.
async fn seen(ask: Ask, connection: &mut Connection) -> String {
    let answer = ask.send_over(connection).await;
    match answer.status {
        200 => answer.who().await[1].as_str().unwrap().to_owned(),
        status => status.to_string(),
    }
}

#[tokio::test]
async fn each_request_is_as_good_as_its_own_credential() {
    let gateway = Gateway::start(|_| {}).await;
    let research = NewKey { endpoints: Some(vec!["research".into()]), ..named("cid") };
    let cid = gateway.change(|file| file.add(research, epoch_ms())).reveal().to_owned();
    // When these are known, so is that.
    let (ann, bob) = (gateway.key(named("ann")).await, gateway.key(named("bob")).await);
    let who = || gateway.tool("who");
    let there = || gateway.call("/research/mcp", "tools/call", json!({"name": "who", "arguments": {}}));
    let mut other_end = ann.clone();
    other_end.replace_range(ann.len() - 1.., if ann.ends_with('x') { "y" } else { "x" });
    let connection = &mut gateway.connect();
    for _ in 0..3 {
        // Each of these comes right after one that was let in.
        for (ask, expected) in [
            (who().bearer(&ann), "ann"),
            (who().bearer(&ann), "ann"),
            (who().bearer(&bob), "bob"),
            (who().bearer(&ann), "ann"),
            (who(), "401"),
            (who().bearer(&ann), "ann"),
            (who().bearer(&other_end), "401"),
            (who().bearer(&ann), "ann"),
            (who().bearer(&ann[..ann.len() - 1]), "401"),
            (who().bearer(&ann), "ann"),
            (who().bearer(&ann).bearer(&ann), "400"),
            (who().bearer(&ann), "ann"),
            (who().bearer(&ann).header("x-more", "1").header("x-more", "2"), "ann"),
            (there().bearer(&cid), "cid"),
            (there().bearer(&cid), "cid"),
            (who().bearer(&cid), "401"),
            (there().bearer(&cid), "cid"),
            (gateway.ask("POST", "/mcp?access_token=x").bearer(&ann), "400"),
        ] {
            assert_eq!(seen(ask, connection).await, expected);
        }
    }
}

#[tokio::test]
async fn what_has_ended_is_not_let_in_as_before() {
    let gateway = Gateway::start(|_| {}).await;
    let (ann, bob) = (gateway.key(named("ann")).await, gateway.key(named("bob")).await);
    let (anns, bobs) = (&mut gateway.connect(), &mut gateway.connect());
    for _ in 0..2 {
        assert_eq!(seen(gateway.tool("who").bearer(&ann), anns).await, "ann");
        assert_eq!(seen(gateway.tool("who").bearer(&bob), bobs).await, "bob");
    }
    gateway.change(|file| file.revoke("ann", epoch_ms()));
    gateway.until(&ann, |status| status == 401).await;
    assert_eq!(seen(gateway.tool("who").bearer(&ann), anns).await, "401");
    assert_eq!(seen(gateway.tool("who").bearer(&bob), bobs).await, "bob");
    // Base scopes that a key lacks, from one request to the next.
    let mut auth = tidegate_config::AuthSettings { keys: Some(gateway.keys()), ..Default::default() };
    let scoped = NewKey { scopes: Some(vec!["other".into()]), ..named("dan") };
    let dan = gateway.key(scoped).await;
    let dans = &mut gateway.connect();
    for _ in 0..2 {
        assert_eq!(seen(gateway.tool("who").bearer(&dan), dans).await, "dan");
    }
    auth.scopes.required = vec!["mcp".into()];
    gateway.authenticator.reload(&auth, resources()).unwrap();
    assert_eq!(seen(gateway.tool("who").bearer(&dan), dans).await, "403");
}

#[tokio::test]
async fn nobody_inside_sees_the_credential() {
    let gateway = Gateway::start(|_| {}).await;
    let ann = gateway.key(named("ann")).await;
    let connection = &mut gateway.connect();
    for _ in 0..3 {
        let answer = gateway.get("/.tidegate-test").bearer(&ann).send_over(connection).await;
        assert_eq!(answer.status, 404);
        assert!(!format!("{connection:?}").contains(&ann[20..]));
    }
}

#[tokio::test]
async fn a_running_call_hears_of_the_end_also_as_one_of_several() {
    let gateway = Gateway::start(|_| {}).await;
    let ann = gateway.key(named("ann")).await;
    let mut connection = gateway.connect();
    for _ in 0..2 {
        assert_eq!(seen(gateway.tool("who").bearer(&ann), &mut connection).await, "ann");
    }
    let wait = gateway.tool("wait").bearer(&ann);
    let running = tokio::spawn(async move { seen(wait, &mut connection).await });
    let is_running = async {
        while gateway.waiting.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    in_time("call", is_running).await;
    gateway.change(|file| file.revoke("ann", epoch_ms()));
    assert_eq!(in_time("end of the call", running).await.unwrap(), "401");
}
