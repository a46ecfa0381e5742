//! What an endpoint selects is there, and nothing else is: in no list, and unknown when it is named.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_config::Patterns;
use tidegate_gateway::{Gateway, Offer, OfferKind, Settings, ViewKey, Visibility};
use tidegate_protocol::Symbol;
use tidegate_server::{CacheHint, Cx, Prompt, PromptArgs, Resource, ResourceTemplate, Scope, Server, Vars};
use tidegate_service::{Context, Reply};

use super::patterns;
use crate::rig::{Caller, endpoint, local, modern, person, says, settings, started};

/// A server with two of everything.
fn two_of_each(name: &'static str) -> Server {
    let prompt = |prompt: &str| Prompt::new(prompt).handler(|_: PromptArgs, _: Cx| async { Ok("Hello") });
    let template = |what: &str| {
        ResourceTemplate::new(format!("{name}-{what}://{{id}}"), what).reader(
            |vars: Vars, _: Cx| async move { Ok(format!("note {}", vars.get("id").unwrap_or_default())) },
        )
    };
    let memo = |at: &str| Resource::text(format!("{name}://{at}"), at, at);
    Server::new(name, "1")
        .cache(CacheHint { ttl: Duration::from_secs(60), scope: Scope::Public })
        .instructions(format!("How to use {name}"))
        .tool(says("read", "read"))
        .tool(says("write", "written"))
        .prompt(prompt("short"))
        .prompt(prompt("long"))
        .resource(memo("one"))
        .resource(memo("two"))
        .resource_template(template("notes"))
        .resource_template(template("drafts"))
}

/// A gateway over two such servers, with endpoints that have one server, none of it, and some of each.
fn world() -> Settings {
    let mut settings = settings([local("reef", two_of_each("reef")), local("vault", two_of_each("vault"))]);
    let mut reef = endpoint("reef");
    reef.servers = patterns(["reef"]);
    let mut empty = endpoint("empty");
    (empty.tools, empty.prompts, empty.resources) = (patterns([]), patterns([]), patterns([]));
    let mut some = endpoint("some");
    some.servers = patterns(["re*"]);
    some.tools = patterns(["*_read"]);
    some.prompts = patterns(["reef_short", "vault_*"]);
    let notes = Patterns::exact("reef-notes://{id}");
    some.resources = patterns(["reef://one", notes.as_str()]);
    settings.endpoints = vec![reef, empty, some];
    settings
}

/// Everything that a caller sees listed.
async fn all_lists(caller: &Caller, gateway: &Gateway) -> Vec<String> {
    let mut all = Vec::new();
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        all.extend(caller.list(gateway, method).await);
    }
    all
}

const OF_REEF: [&str; 8] = [
    "reef_read",
    "reef_write",
    "reef_short",
    "reef_long",
    "reef://one",
    "reef://two",
    "reef-notes://{id}",
    "reef-drafts://{id}",
];

#[tokio::test]
async fn lists_have_what_is_selected() {
    let gateway = started(world()).await;
    assert_eq!(all_lists(&modern(), &gateway).await.len(), 16, "the default endpoint has everything");
    for (at, expected) in [
        ("reef", &OF_REEF[..]),
        ("some", &["reef_read", "reef_short", "reef://one", "reef-notes://{id}"]),
        ("empty", &[]),
        ("nobody-configured-this", &[]),
        ("", &[]),
    ] {
        assert_eq!(all_lists(&modern().at(at), &gateway).await, expected, "{at:?}");
    }
    gateway.close().await;
}

/// A request, and what it is refused with where its object is not there.
fn requests(server: &str) -> Vec<(&'static str, Value, Symbol)> {
    let completing = |reference: Value| json!({"ref": reference, "argument": {"name": "id", "value": ""}});
    vec![
        ("tools/call", json!({"name": format!("{server}_write")}), Symbol::ToolNotFound),
        ("prompts/get", json!({"name": format!("{server}_long")}), Symbol::PromptNotFound),
        ("resources/read", json!({"uri": format!("{server}://two")}), Symbol::ResourceNotFound),
        ("resources/read", json!({"uri": format!("{server}-drafts://7")}), Symbol::ResourceNotFound),
        (
            "completion/complete",
            completing(json!({"type": "ref/prompt", "name": format!("{server}_long")})),
            Symbol::PromptNotFound,
        ),
        (
            "completion/complete",
            completing(json!({"type": "ref/resource", "uri": format!("{server}-drafts://{{id}}")})),
            Symbol::ResourceNotFound,
        ),
    ]
}

#[tokio::test]
async fn what_is_not_selected_is_unknown() {
    let gateway = started(world()).await;
    for (at, server) in [
        ("reef", "vault"),
        ("some", "reef"),
        ("some", "vault"),
        ("empty", "reef"),
        ("nobody-configured-this", "reef"),
        ("", "reef"),
    ] {
        for (method, params, symbol) in requests(server) {
            let error = modern().at(at).fails(&gateway, method, params.clone()).await;
            assert_eq!(error.symbol(), symbol, "{at}: {method} {params}: {error}");
        }
    }
    for (caller, server) in [(modern(), "vault"), (modern().at("reef"), "reef")] {
        for (method, params, _) in requests(server) {
            match caller.ask(&gateway, method, params).await {
                Reply::Complete(_) => {}
                // The server itself, which completes nothing, says so.
                Reply::Error(error) if method == "completion/complete" => {
                    assert_eq!(error.symbol(), Symbol::MethodNotFound);
                }
                other => panic!("{method}: {other:?}"),
            }
        }
    }
    gateway.close().await;
}

#[tokio::test]
async fn what_is_selected_can_be_used() {
    let gateway = started(world()).await;
    let some = modern().at("some");
    assert_eq!(some.call(&gateway, "reef_read").await, ("read".to_owned(), false));
    some.get(&gateway, "prompts/get", json!({"name": "reef_short"})).await;
    for uri in ["reef://one", "reef-notes://7"] {
        some.get(&gateway, "resources/read", json!({"uri": uri})).await;
        let wanted = json!({"notifications": {"resourceSubscriptions": [uri, "reef://two", "vault://one"]}});
        let Reply::Subscription(open) = some.ask(&gateway, "subscriptions/listen", wanted).await else {
            panic!()
        };
        let acknowledged: Value = open.acknowledged.to().unwrap();
        assert_eq!(acknowledged["resourceSubscriptions"], json!([uri]));
        open.events.close();
    }
    let batch = json!({"calls": [{"name": "reef_write"}, {"name": "vault_read"}, {"name": "reef_read"}]});
    let results = some.get(&gateway, "tools/call_batch", batch).await["results"].clone();
    for at in [0, 1] {
        assert!(results[at]["error"]["message"].as_str().unwrap().contains("Unknown tool"), "{results}");
    }
    assert_eq!(results[2]["result"]["content"][0]["text"], "read");
    gateway.close().await;
}

#[tokio::test]
async fn servers_that_are_not_selected_are_not_named() {
    let mut settings = world();
    // One that has not said anything yet, and will not.
    let silent = tower::service_fn(|_: tidegate_service::Call| {
        std::future::pending::<Result<Reply, std::convert::Infallible>>()
    });
    settings.servers.push(crate::rig::door("vault-silent", silent));
    let mut writes = endpoint("writes");
    writes.tools = patterns(["reef_write"]);
    (writes.prompts, writes.resources) = (patterns([]), patterns([]));
    settings.endpoints.push(writes);
    let gateway = Gateway::start(settings).unwrap();
    crate::rig::until("the others have said what they have", async || {
        modern().list(&gateway, "tools/list").await.len() == 4
    })
    .await;
    let silent = "vault-silent\\\" is still starting";
    let told = |error: tidegate_protocol::Error| error.to_json(modern().0.revision).as_str().to_owned();
    let unknown = json!({"name": "wrote"});
    let everybody = told(modern().fails(&gateway, "tools/call", unknown.clone()).await);
    assert!(everybody.contains(silent), "{everybody}");
    for at in ["reef", "some", "writes", "empty", "nobody-configured-this"] {
        let caller = modern().at(at);
        let discovered = caller.get(&gateway, "server/discover", json!({})).await.to_string();
        let mut all = vec![discovered];
        for (method, params) in [
            ("tools/call", unknown.clone()),
            ("prompts/get", json!({"name": "reef_lang"})),
            ("resources/read", json!({"uri": "memo://none"})),
            ("vendor/method", json!({})),
            ("vendor/method", json!({"_meta": {"dev.tidegate/server": "vault"}})),
            ("tools/list", json!({"cursor": "x"})),
        ] {
            let told = told(caller.fails(&gateway, method, params).await);
            all.push(told.replace("no server is named \\\"vault\\\"", ""));
        }
        for said in all {
            assert!(!said.contains("vault"), "{at}: {said}");
        }
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_server_that_is_not_there_cannot_be_told_from_one_that_nobody_has() {
    let gateway = started(world()).await;
    for at in ["reef", "some"] {
        let ask = async |server: &str| {
            let params = json!({"_meta": {"dev.tidegate/server": server}});
            let error = modern().at(at).fails(&gateway, "vendor/method", params).await;
            error.message().replace(server, "…")
        };
        assert_eq!(ask("vault").await, ask("nonesuch").await, "{at}");
    }
    gateway.close().await;
}

#[tokio::test]
async fn discovery_says_what_the_endpoint_has() {
    let mut settings = world();
    settings.endpoints[2].instructions = Some("Read only.".to_owned());
    let gateway = started(settings).await;
    let discover = async |caller: Caller| caller.get(&gateway, "server/discover", json!({})).await;
    let all = discover(modern()).await;
    assert!(all["instructions"].as_str().unwrap().contains("How to use vault"), "{all}");
    let reef = discover(modern().at("reef")).await;
    assert_eq!(
        reef["instructions"],
        "Its tools and prompts have `reef_` before their names here.\n\nHow to use reef"
    );
    assert_eq!(reef["_meta"]["dev.tidegate/servers"]["reef"]["tools"], 2);
    let some = discover(modern().at("some")).await;
    assert_eq!(some["instructions"], "Read only.");
    assert_eq!(some["_meta"]["dev.tidegate/servers"]["reef"]["tools"], 1, "those that are there");
    let nothing = discover(modern().at("nobody-configured-this")).await;
    assert_eq!(
        (&nothing["instructions"], &nothing["_meta"]["dev.tidegate/servers"]),
        (&Value::Null, &json!({}))
    );
    gateway.close().await;
}

#[tokio::test]
async fn old_clients_find_the_tools_of_the_endpoint_in_the_capabilities() {
    let mut settings = world();
    settings.tools.in_capabilities = true;
    let gateway = started(settings).await;
    let mut legacy = crate::rig::legacy();
    let declared = async |caller: &Caller| {
        let tools = caller.get(&gateway, "server/discover", json!({})).await["capabilities"]["tools"].clone();
        tools.as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(declared(&legacy).await.len(), 5);
    for (at, expected) in
        [("some", vec!["listChanged", "reef_read"]), ("nobody-configured-this", vec!["listChanged"])]
    {
        legacy = legacy.at(at);
        assert_eq!(declared(&legacy).await, expected);
    }
    gateway.close().await;
}

#[tokio::test]
async fn what_may_be_cached_and_for_whom() {
    let scopes = async |gateway: &Gateway, caller: Caller| {
        let mut scopes = Vec::new();
        for (method, params) in [
            ("tools/list", json!({})),
            ("prompts/list", json!({})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("resources/read", json!({"uri": "reef://one"})),
        ] {
            scopes.push(caller.get(gateway, method, params).await["cacheScope"].as_str().unwrap().to_owned());
        }
        scopes
    };
    let gateway = started(world()).await;
    let everything = scopes(&gateway, modern()).await;
    assert!(everything.iter().all(|scope| scope == "public"), "{everything:?}");
    for at in ["reef", "some"] {
        assert_eq!(scopes(&gateway, modern().at(at)).await, everything, "the same for everybody at {at}");
    }
    gateway.close().await;
    let mut settings = world();
    settings.auth = Some(tidegate_config::AuthSettings::default());
    let gateway = started(settings).await;
    for caller in [modern(), modern().at("reef"), modern().at("some")] {
        let scopes = scopes(&gateway, caller).await;
        assert!(scopes.iter().all(|scope| scope == "private"), "{scopes:?}");
    }
    gateway.close().await;
}

/// Guests do not read.
struct Guests;

impl Visibility for Guests {
    fn view(&self, context: &Context) -> Option<ViewKey> {
        let is_guest = context.principal.subject.as_deref() == Some("guest");
        is_guest.then(ViewKey::default)
    }

    fn shows(&self, _: &ViewKey, offer: &Offer<'_>) -> bool {
        offer.kind != OfferKind::Tool || !offer.name.ends_with("_read")
    }
}

#[tokio::test]
async fn what_an_application_hides_is_hidden_at_every_endpoint() {
    let gateway = Gateway::builder().settings(world()).visibility(Guests).start().unwrap();
    gateway.settled(crate::rig::PATIENCE).await;
    let (ann, guest) = (person("ann"), person("guest"));
    assert_eq!(guest.list(&gateway, "tools/list").await, ["reef_write", "vault_write"]);
    assert_eq!(guest.at("reef").list(&gateway, "tools/list").await, ["reef_write"]);
    assert_eq!(guest.at("some").list(&gateway, "tools/list").await, [""; 0]);
    assert_eq!(ann.at("some").list(&gateway, "tools/list").await, ["reef_read"]);
    let theirs = guest.at("reef").get(&gateway, "tools/list", json!({})).await;
    assert_eq!(theirs["cacheScope"], "private", "it depends on who asks");
    for tool in ["reef_read", "vault_write"] {
        let error = guest.at("reef").fails(&gateway, "tools/call", json!({"name": tool})).await;
        assert_eq!(error.symbol(), Symbol::ToolNotFound, "{tool}");
    }
    assert_eq!(guest.at("reef").call(&gateway, "reef_write").await.0, "written");
    gateway.close().await;
}
