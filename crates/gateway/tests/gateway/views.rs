//! What callers see who do not see everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tidegate_config::ToolMode;
use tidegate_gateway::{Gateway, Offer, OfferKind, ViewKey, Visibility};
use tidegate_protocol::Symbol;
use tidegate_server::{Cx, Prompt, PromptArgs, Resource, Server};
use tidegate_service::{Context, Reply};

use crate::rig::{Caller, PATIENCE, local, modern, person, says, settings};

/// Guests see what does not begin with `secret`; everybody else sees everything. Counts the questions.
struct Guests(Arc<AtomicUsize>);

impl Visibility for Guests {
    fn view(&self, context: &Context) -> Option<ViewKey> {
        let is_guest =
            context.principal.subject.as_deref().is_some_and(|subject| subject.starts_with("guest"));
        is_guest.then(|| ViewKey { endpoint: None, rules: [1].into() })
    }

    fn shows(&self, view: &ViewKey, offer: &Offer<'_>) -> bool {
        assert_eq!(view.rules[..], [1]);
        self.0.fetch_add(1, Ordering::Relaxed);
        let name = offer.name.trim_start_matches("s_");
        let is_method = offer.kind == OfferKind::Method && offer.server == "s";
        !name.starts_with("secret") && !is_method
    }
}

async fn restricted(mode: ToolMode) -> (Gateway, Arc<AtomicUsize>) {
    let greet = |name: &str| Prompt::new(name).handler(|_: PromptArgs, _: Cx| async { Ok("Hello") });
    let server = Server::new("s", "1")
        .tool(says("open_door", "hello"))
        .tool(says("secret_door", "never"))
        .prompt(greet("open_word"))
        .prompt(greet("secret_word"))
        .resource(Resource::text("memo://open", "open", "text"))
        .resource(Resource::text("secret://closed", "closed", "text"));
    let (asked, mut settings) = (Arc::new(AtomicUsize::new(0)), settings([local("s", server)]));
    settings.tools.mode = mode;
    // A page for each entry, so that there are cursors.
    settings.tools.page_bytes = 1;
    let gateway = Gateway::builder().settings(settings).visibility(Guests(asked.clone())).start().unwrap();
    gateway.settled(PATIENCE).await;
    (gateway, asked)
}

/// All names of a list, page by page, and who may keep it.
async fn listed(
    caller: &Caller,
    gateway: &Gateway,
    method: &str,
    member: &str,
    key: &str,
) -> (Vec<String>, String) {
    let (mut names, mut params) = (Vec::new(), json!({}));
    loop {
        let page = caller.get(gateway, method, params).await;
        names.extend(
            page[member].as_array().unwrap().iter().map(|entry| entry[key].as_str().unwrap().to_owned()),
        );
        match page["nextCursor"].as_str() {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return (names, page["cacheScope"].as_str().unwrap_or_default().to_owned()),
        }
    }
}

#[tokio::test]
async fn what_is_hidden_is_listed_nowhere_and_unknown() {
    let (gateway, asked) = restricted(ToolMode::All).await;
    let (ann, guest) = (person("ann"), person("guest"));
    for (method, member, key, open, secret) in [
        ("tools/list", "tools", "name", "s_open_door", "s_secret_door"),
        ("prompts/list", "prompts", "name", "s_open_word", "s_secret_word"),
        ("resources/list", "resources", "uri", "memo://open", "secret://closed"),
    ] {
        let (names, _) = listed(&ann, &gateway, method, member, key).await;
        assert_eq!(names, [open, secret]);
        let (names, scope) = listed(&guest, &gateway, method, member, key).await;
        assert_eq!((names, &*scope), (vec![open.to_owned()], "private"), "{method}");
    }
    let before = asked.load(Ordering::Relaxed);
    listed(&person("guest 2"), &gateway, "tools/list", "tools", "name").await;
    assert_eq!(asked.load(Ordering::Relaxed), before, "a view is made once for everybody who has it");
    assert_eq!(guest.call(&gateway, "s_open_door").await, ("hello".to_owned(), false));
    for (method, params, symbol) in [
        ("tools/call", json!({"name": "s_secret_door"}), Symbol::ToolNotFound),
        ("prompts/get", json!({"name": "s_secret_word"}), Symbol::PromptNotFound),
        ("resources/read", json!({"uri": "secret://closed"}), Symbol::ResourceNotFound),
        ("vendor/method", json!({}), Symbol::MethodNotFound),
    ] {
        let error = guest.fails(&gateway, method, params).await;
        assert_eq!(error.symbol(), symbol, "{method}: {error}");
        let told = error.to_json(guest.0.revision).as_str().to_owned();
        let own_words =
            told.replace("s_secret_door", "").replace("s_secret_word", "").replace("secret://closed", "");
        assert!(!own_words.contains("secret_"), "{told}");
    }
    let near = guest.fails(&gateway, "tools/call", json!({"name": "s_secret_dor"})).await;
    assert!(
        !near.to_json(guest.0.revision).as_str().contains("s_secret_door"),
        "names nearby are those it sees"
    );
    let batch = json!({"calls": [{"name": "s_secret_door"}, {"name": "s_open_door"}]});
    let results = guest.get(&gateway, "tools/call_batch", batch).await["results"].clone();
    assert!(results[0]["error"]["message"].as_str().unwrap().contains("Unknown tool"), "{results}");
    assert_eq!(results[1]["result"]["content"][0]["text"], "hello");
    gateway.close().await;
}

#[tokio::test]
async fn a_cursor_is_good_for_the_view_it_was_made_for() {
    let (gateway, _) = restricted(ToolMode::All).await;
    let ann = person("ann");
    let first = ann.get(&gateway, "tools/list", json!({})).await;
    let cursor = first["nextCursor"].as_str().unwrap();
    let refused = person("guest").fails(&gateway, "tools/list", json!({"cursor": cursor})).await;
    assert_eq!(refused.symbol(), Symbol::InvalidCursor);
    gateway.close().await;
}

#[tokio::test]
async fn searching_finds_what_is_seen() {
    let (gateway, _) = restricted(ToolMode::Search).await;
    let search = async |caller: &Caller, arguments: Value| {
        let params = json!({"name": "search_tools", "arguments": arguments});
        match caller.ask(&gateway, "tools/call", params).await {
            Reply::Complete(result) => result.as_str().to_owned(),
            other => panic!("{other:?}"),
        }
    };
    for arguments in [json!({"query": "door"}), json!({"query": "", "server": "s"})] {
        assert!(search(&modern(), arguments.clone()).await.contains("s_secret_door"));
        let found = search(&person("guest"), arguments).await;
        assert!(found.contains("s_open_door") && !found.contains("secret"), "{found}");
    }
    assert!(search(&modern(), json!({})).await.contains("2 tools"));
    assert!(search(&person("guest"), json!({})).await.contains("1 tool "));
    let params = json!({"name": "call_tool", "arguments": {"name": "s_secret_door", "arguments": {}}});
    let Reply::Error(error) = person("guest").ask(&gateway, "tools/call", params).await else {
        panic!("it was called")
    };
    assert_eq!(error.symbol(), Symbol::ToolNotFound);
    gateway.close().await;
}
