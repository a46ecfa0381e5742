//! One list of what all servers have: who is left out, who sees it, how long it is good, and what is declared at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tidegate_edge::Eras;
use tidegate_gateway::{Gateway, Health, Offer, OfferKind, ViewKey, Visibility};
use tidegate_protocol::{Json, Symbol};
use tidegate_server::{Cx, Resource, ResourceTemplate, Server, Vars};
use tidegate_service::{Call, Context, Notice, Reply};

use super::library::{Library, SKILLS};
use crate::rig::*;

#[tokio::test]
async fn a_server_that_cannot_list_its_skills_is_not_asked_by_every_caller() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let broken = scripted("broken", move |call: &Call| match call.method.as_str() {
        "server/discover" => {
            Some(discovery(json!({"capabilities": {"resources": {}, "extensions": {SKILLS: {}}}})))
        }
        "skills/list" => {
            counted.fetch_add(1, Ordering::Relaxed);
            Some("{}".into())
        }
        _ => None,
    });
    let gateway = gateway([Library::new(&["refunds"]).here("here"), broken]).await;
    for _ in 0..3 {
        let list = modern().get(&gateway, "skills/list", json!({})).await;
        assert_eq!(list["skills"][0]["uri"], "skill://here/refunds/SKILL.md");
        modern().fails(&gateway, "skills/get", json!({"uri": "https://nobody/SKILL.md"})).await;
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    gateway.close().await;
}

#[tokio::test]
async fn a_server_that_is_gone_or_broken_takes_nothing_away() {
    let (here, gone) = (Library::new(&["refunds"]), Library::new(&["notes"]));
    let (there, stop) = gone.there("gone", Eras::Both).await;
    let broken = |name: &str, reply: fn() -> Option<String>| {
        scripted(name, move |call: &Call| match call.method.as_str() {
            "server/discover" => {
                Some(discovery(json!({"capabilities": {"resources": {}, "extensions": {SKILLS: {}}}})))
            }
            "skills/list" => reply(),
            _ => None,
        })
    };
    let odd = broken("odd", || {
        Some(
            r#"{"skills":[{"frontmatter":{}},7,{"uri":"skill://x/SKILL.md","resources":"dynamic","n":1.0}]}"#
                .into(),
        )
    });
    let endless = broken("endless", || Some(r#"{"skills":[],"nextCursor":"again"}"#.into()));
    let servers = [
        here.here("here"),
        there,
        odd,
        endless,
        broken("no", || None),
        broken("wrong", || Some("{}".into())),
    ];
    let gateway = gateway(servers).await;
    let expected = ["skill://here/refunds/SKILL.md", "skill://gone/notes/SKILL.md", "skill://odd/x/SKILL.md"];
    let uris = |list: &Value| -> Vec<String> {
        let all = list["skills"].as_array().unwrap().iter();
        all.map(|skill| skill["uri"].as_str().unwrap().to_owned()).collect()
    };
    let list = modern().get(&gateway, "skills/list", json!({})).await;
    assert_eq!(uris(&list), expected);
    assert_eq!(list["skills"][2], json!({"uri": expected[2], "resources": "dynamic", "n": 1.0}));
    drop(stop);
    until("it is down", async || {
        modern().ask(&gateway, "resources/read", json!({"uri": "skill://gone/notes/SKILL.md"})).await;
        matches!(health(&gateway, "gone"), Health::Down { .. })
    })
    .await;
    for caller in [modern(), legacy()] {
        assert_eq!(uris(&caller.get(&gateway, "skills/list", json!({})).await), expected);
        let error = caller.fails(&gateway, "skills/get", json!({"uri": expected[1]})).await;
        assert_eq!(error.symbol(), Symbol::Unavailable, "{error}");
        caller.get(&gateway, "skills/get", json!({"uri": expected[0]})).await;
    }
    gateway.close().await;
}

#[tokio::test]
async fn what_cannot_be_routed_is_not_declared() {
    let vendor = || Server::new("v", "1").extension("com.example/e", json!({"v": 2}));
    let extensions = async |gateway: &Gateway| {
        let found = modern().get(gateway, "server/discover", json!({})).await;
        found["capabilities"]["extensions"].clone()
    };
    let one = gateway([local("v", vendor())]).await;
    assert_eq!(extensions(&one).await["com.example/e"], json!({"v": 2}), "the only server gets every call");
    one.close().await;
    let mut library = Library::new(&["refunds"]);
    library.directories = false;
    let plain = gateway([local("v", vendor()), local("w", Server::new("w", "1"))]).await;
    assert_eq!(extensions(&plain).await.get("com.example/e"), None);
    for method in ["skills/list", "skills/get", "resources/directory/read"] {
        let error = modern().fails(&plain, method, json!({"uri": "skill://v/x/SKILL.md"})).await;
        assert_eq!(error.symbol(), Symbol::MethodNotFound, "nobody has skills: {error}");
    }
    plain.close().await;
    let gateway = gateway([local("v", vendor()), library.here("s")]).await;
    assert_eq!(extensions(&gateway).await[SKILLS], json!({}));
    let error =
        modern().fails(&gateway, "resources/directory/read", json!({"uri": "skill://s/refunds"})).await;
    assert_eq!(error.symbol(), Symbol::MethodNotFound, "nobody reads directories: {error}");
    let error = modern().fails(&gateway, "skills/get", json!({"uri": "skill://v/refunds/SKILL.md"})).await;
    assert_eq!(error.symbol(), Symbol::InvalidParams, "it does not declare skills: {error}");
    gateway.close().await;
}

#[tokio::test]
async fn the_only_server_answers_as_it_is() {
    let library = Library::new(&["refunds"]);
    let gateway = gateway([library.here("s")]).await;
    let list = modern().get(&gateway, "skills/list", json!({})).await;
    assert_eq!(list["skills"], json!([library.entry("refunds")]));
    modern().get(&gateway, "skills/get", json!({"uri": "skill://refunds/SKILL.md"})).await;
    modern().get(&gateway, "resources/directory/read", json!({"uri": "skill://refunds"})).await;
    gateway.close().await;
}

/// Skills need not have addresses of their own kind.
#[tokio::test]
async fn skills_under_other_schemes() {
    let mut libraries = [Library::new(&["o/refunds", "o/one"]), Library::new(&["o/refunds", "o/two"])];
    libraries.iter_mut().for_each(|library| library.scheme = "github://");
    // Nothing but the list of skills says that they are there.
    let unlisted = |library: &Library| {
        let library = library.clone();
        tower::service_fn(move |call: Call| {
            let reply = match (call.method.as_str(), library.answer(&call)) {
                ("resources/list", _) => Reply::Complete(Json::trusted(r#"{"resources":[]}"#)),
                (_, Ok(result)) => Reply::Complete(Json::from(result)),
                (_, Err(error)) => Reply::Error(error),
            };
            std::future::ready(Ok::<_, std::convert::Infallible>(reply))
        })
    };
    let gateway = gateway([door("a", unlisted(&libraries[0])), door("b", unlisted(&libraries[1]))]).await;
    for (uri, text) in [
        ("a+github://o/refunds/SKILL.md", "refunds"),
        ("b+github://o/refunds/SKILL.md", "refunds"),
        ("github://o/one/SKILL.md", "one"),
        ("github://o/two/SKILL.md", "two"),
    ] {
        let got = modern().get(&gateway, "skills/get", json!({"uri": uri})).await;
        assert_eq!((&got["skill"]["uri"], &got["skill"]["resources"][0]["uri"]), (&json!(uri), &json!(uri)));
        let read = modern().get(&gateway, "resources/read", json!({"uri": uri})).await;
        assert!(read["contents"][0]["text"].as_str().unwrap().contains(&format!("name: {text}")));
    }
    modern().fails(&gateway, "skills/get", json!({"uri": "github://o/refunds/SKILL.md"})).await;
    gateway.close().await;
}

/// Guests see neither the server `closed` nor anything secret.
struct Guests;

impl Visibility for Guests {
    fn view(&self, context: &Context) -> Option<ViewKey> {
        (context.principal.subject.as_deref() == Some("guest")).then(ViewKey::default)
    }

    fn shows(&self, _: &ViewKey, offer: &Offer<'_>) -> bool {
        let is_closed = offer.kind == OfferKind::Method && offer.server == "closed";
        !offer.name.contains("secret") && !is_closed
    }
}

#[tokio::test]
async fn what_is_hidden_is_no_skill() {
    let mut open = Library::new(&["secret-plan", "refunds", "partly"]);
    open.files.insert("partly/secret.md".to_owned(), "hidden".to_owned());
    let closed = Library::new(&["notes"]);
    for servers in [vec![open.here("open"), closed.here("closed")], vec![open.here("open")]] {
        let several = servers.len() > 1;
        let label = if several { "open/" } else { "" };
        let gateway = Gateway::builder().settings(settings(servers)).visibility(Guests).start().unwrap();
        gateway.settled(PATIENCE).await;
        let (guest, ann) = (person("guest"), person("ann"));
        let all = ann.get(&gateway, "skills/list", json!({})).await;
        assert!(all["skills"].as_array().unwrap().len() >= 2);
        let list = guest.get(&gateway, "skills/list", json!({})).await;
        let uris: Vec<_> =
            list["skills"].as_array().unwrap().iter().map(|skill| skill["uri"].as_str().unwrap()).collect();
        assert_eq!(uris, [format!("skill://{label}refunds/SKILL.md")]);
        assert_eq!(list["cacheScope"], "private");
        for hidden in [format!("{label}secret-plan"), format!("{label}partly"), "closed/notes".to_owned()] {
            let uri = format!("skill://{hidden}/SKILL.md");
            let error = guest.fails(&gateway, "skills/get", json!({"uri": uri})).await;
            assert_eq!(error.symbol(), Symbol::InvalidParams, "{uri}: {error}");
        }
        let seen = guest
            .get(&gateway, "resources/directory/read", json!({"uri": format!("skill://{label}partly")}))
            .await;
        assert!(!seen.to_string().contains("secret"), "{seen}");
        gateway.close().await;
    }
}

#[tokio::test]
async fn lists_are_kept_as_long_as_they_are_good_and_told_apart_by_server() {
    let (a, b) = (Library::new(&["x", "y", "z"]), Library::new(&["x"]));
    let gateway = gateway([a.here("a"), b.here("b")]).await;
    let listed =
        |library: &Library| library.asked().iter().filter(|asked| asked.starts_with("skills/list")).count();
    assert_eq!((listed(&a), listed(&b)), (0, 0), "nobody has asked yet");
    let first = modern().get(&gateway, "skills/list", json!({})).await;
    assert_eq!((listed(&a), listed(&b)), (2, 1), "page by page");
    assert_eq!(first["cacheScope"], "public");
    assert!((1..=60_000).contains(&first["ttlMs"].as_u64().unwrap()), "{}", first["ttlMs"]);
    assert_eq!(modern().get(&gateway, "skills/list", json!({})).await["skills"], first["skills"]);
    assert_eq!((listed(&a), listed(&b)), (0, 0));
    let meta = |server: &str| json!({"_meta": {"dev.tidegate/server": server}});
    let one = modern().get(&gateway, "skills/list", meta("b")).await;
    assert_eq!(one["skills"].as_array().unwrap().len(), 1);
    assert_eq!(one["skills"][0]["uri"], "skill://b/x/SKILL.md");
    assert_eq!(modern().fails(&gateway, "skills/list", meta("c")).await.symbol(), Symbol::InvalidParams);
    let mut other = meta("b");
    other["uri"] = "skill://a/x/SKILL.md".into();
    assert_eq!(modern().fails(&gateway, "skills/get", other).await.symbol(), Symbol::InvalidParams);
    // Each says in its instructions what its own addresses are here.
    let said = modern().get(&gateway, "server/discover", json!({})).await;
    let said = said["instructions"].as_str().unwrap();
    assert!(
        said.contains("`skill://` is `skill://a/` here.")
            && said.contains("`skill://` is `skill://b/` here."),
        "{said}"
    );
    gateway.close().await;
}

#[tokio::test]
async fn templates_and_changes_have_the_address_that_is_offered() {
    let server = |text: &'static str| {
        Server::new("s", "1")
            .resource(Resource::text("skill://memo/SKILL.md", "memo", text))
            .resource_template(ResourceTemplate::new("skill://{name}/SKILL.md", "any").reader(
                move |vars: Vars, _: Cx| async move { Ok(format!("{text} {}", vars.get("name").unwrap())) },
            ))
    };
    let (a, b) = (server("a").dynamic().build(), server("b").dynamic().build());
    let gateway = gateway([door("a", a.clone()), door("b", b.clone())]).await;
    for caller in [modern(), legacy()] {
        let listed = caller.list(&gateway, "resources/templates/list").await;
        assert_eq!(listed, ["skill://a/{name}/SKILL.md", "skill://b/{name}/SKILL.md"]);
        let read = caller.get(&gateway, "resources/read", json!({"uri": "skill://b/x/SKILL.md"})).await;
        assert_eq!(
            (&read["contents"][0]["text"], &read["contents"][0]["uri"]),
            (&json!("b x"), &json!("skill://b/x/SKILL.md"))
        );
    }
    let wanted = json!({"notifications": {"resourceSubscriptions": ["skill://b/memo/SKILL.md", "skill://memo/SKILL.md"]}});
    let Reply::Subscription(open) = modern().ask(&gateway, "subscriptions/listen", wanted).await else {
        panic!()
    };
    assert!(!open.acknowledged.as_str().contains("\"skill://memo"), "{}", open.acknowledged);
    a.handle().resource_updated("skill://memo/SKILL.md");
    b.handle().resource_updated("skill://memo/SKILL.md");
    assert_eq!(
        in_time("news", open.events.next()).await,
        Some(Notice::ResourceUpdated("skill://b/memo/SKILL.md".into()))
    );
    gateway.close().await;
}
