//! Skills at endpoints: they are resources, and a skill with a file that is not there is not there.

use serde_json::{Value, json};
use tidegate_config::Patterns;
use tidegate_protocol::Symbol;
use tidegate_service::Reply;

use super::library::{Library, SKILLS};
use crate::rig::{endpoint, modern, settings, started};

#[tokio::test]
async fn an_endpoint_has_the_skills_that_it_selects() {
    let (alpha, beta) = (Library::new(&["refunds", "pdf"]), Library::new(&["notes"]));
    let mut settings = settings([alpha.here("alpha"), beta.here("beta")]);
    let patterns = |texts: &[&str]| Some(Patterns::new(texts.iter().copied()).unwrap());
    let mut of_beta = endpoint("beta");
    of_beta.servers = patterns(&["beta"]);
    let mut refunds = endpoint("refunds");
    // Of the other skill, not every file.
    refunds.resources = patterns(&["skill://alpha/refunds/*", "skill://alpha/pdf/SKILL.md"]);
    let mut none = endpoint("none");
    none.resources = patterns(&[]);
    settings.endpoints = vec![of_beta, refunds, none];
    let gateway = started(settings).await;
    for (at, expected) in [
        ("beta", &["skill://beta/notes/SKILL.md"][..]),
        ("refunds", &["skill://alpha/refunds/SKILL.md"]),
        ("none", &[]),
    ] {
        let caller = modern().at(at);
        let listed = caller.get(&gateway, "skills/list", json!({})).await;
        let uris: Vec<&str> =
            listed["skills"].as_array().unwrap().iter().map(|s| s["uri"].as_str().unwrap()).collect();
        assert_eq!(uris, expected, "{at}");
        for path in ["alpha/refunds", "alpha/pdf", "beta/notes"] {
            let uri = format!("skill://{path}/SKILL.md");
            let is_there = expected.contains(&&*uri);
            let got = caller.ask(&gateway, "skills/get", json!({"uri": uri})).await;
            assert_eq!(matches!(got, Reply::Complete(_)), is_there, "{at}: {uri}: {got:?}");
            let template = json!({"uri": format!("skill://{path}/templates/a.md")});
            let read = caller.ask(&gateway, "resources/read", template).await;
            assert_eq!(matches!(read, Reply::Complete(_)), is_there, "{at}: {uri}: {read:?}");
        }
    }
    let elsewhere = modern().at("beta").fails(&gateway, "skills/list", named("alpha")).await;
    assert!(elsewhere.message().contains("no server is named"), "{elsewhere}");
    let nowhere = modern().at("nowhere");
    assert_eq!(nowhere.fails(&gateway, "skills/list", json!({})).await.symbol(), Symbol::MethodNotFound);
    let declared = nowhere.get(&gateway, "server/discover", json!({})).await;
    assert_eq!(declared["capabilities"]["extensions"][SKILLS], Value::Null);
    gateway.close().await;
}

fn named(server: &str) -> Value {
    json!({"_meta": {"dev.tidegate/server": server}})
}
