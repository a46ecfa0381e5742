//! Who watches something hears of every change of it, whichever tool or process made it, and of nobody else's.

use std::time::Duration;

use futures_util::FutureExt;
use serde_json::{Value, json};
use tidegate_memory::server;
use tidegate_protocol::{Json, Limits, Method, Params, Revision};
use tidegate_server::{Principal, ServerDoor};
use tidegate_service::{Call, Context, Door, Notice, Outbox, Reply};

use crate::rig::{Folder, ann, ask, call_as, open};

const LIST: &str = "the list";

async fn watch(server: &ServerDoor, tenant: Option<&str>, wanted: Value) -> Outbox {
    let params = Json::from(json!({"notifications": wanted}));
    let mut context = Context::local();
    context.principal = Principal { tenant: tenant.map(Into::into), ..Principal::subject("watcher") };
    if tenant.is_none() {
        context.principal = Principal::default();
    }
    let call = Call::new(Method::Listen, Params::parse(&params, &Limits::default()).unwrap(), context);
    match server.answer(call).await.unwrap() {
        Reply::Subscription(subscription) => subscription.events,
        other => panic!("{other:?}"),
    }
}

fn named(notice: Notice) -> String {
    match notice {
        Notice::ResourceUpdated(uri) => uri.to_string(),
        Notice::ResourcesChanged => LIST.to_owned(),
        other => panic!("{other:?}"),
    }
}

/// What is waiting, without waiting for more.
fn heard(events: &Outbox) -> Vec<String> {
    std::iter::from_fn(|| events.try_next()).map(named).collect()
}

fn everything(uris: &[&str]) -> Value {
    json!({"resourcesListChanged": true, "resourceSubscriptions": uris})
}

const GRAPH: &str = "memory://knowledge-graph";
const TIME: &str = "memory://timeline";
const AGENTS: &str = "my-agents://list";
const ANN: &str = "memory://entities/Ann";
const BOB: &str = "memory://entities/Bob";
const CAT: &str = "memory://entities/Cat%20%231";
const GREETER: &str = "agentlet://user/default/greeter";

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_that_changes_something_is_heard_of() {
    let folder = Folder::new();
    let memory = folder.server();
    let kept = ask(&memory, "ingest_document", json!({"text": "first", "title": "Text"})).await;
    let (id, document) = (&kept["document"]["id"], kept["document"]["uri"].as_str().unwrap());
    let events =
        watch(&memory, None, everything(&[GRAPH, TIME, AGENTS, ANN, BOB, CAT, GREETER, document])).await;
    let relation = json!({"from": "Ann", "to": "Cat #1", "relationType": "feeds"});
    let of = |name: &str| json!({"name": name, "entityType": "t", "observations": ["x"]});
    let agent =
        json!({"agent_name": "greeter", "description": "Greets.", "output_schema": {"type": "object"}});
    let jsonl = json!({"type": "entity", "name": "Bob", "entityType": "t", "observations": ["imported"]});
    for (tool, arguments, told) in [
        (
            "create_entities",
            json!({"entities": [ann(), of("Cat #1"), of("Dog")]}),
            vec![GRAPH, TIME, ANN, CAT, LIST],
        ),
        ("create_entities", json!({"entities": [ann()]}), vec![TIME]),
        ("add_observations", json!({"entityName": "Ann", "contents": ["sings"]}), vec![GRAPH, TIME, ANN]),
        ("add_observations", json!({"entityName": "Dog", "contents": ["barks"]}), vec![GRAPH, TIME]),
        ("create_relations", json!({"relations": [relation]}), vec![GRAPH, TIME, ANN, CAT]),
        (
            "update_relation",
            json!({"relation": {"from": "Ann", "to": "Cat #1", "relationType": "feeds", "strength": 0.5}}),
            vec![GRAPH, TIME, ANN, CAT],
        ),
        // Its relation is one of Ann, too.
        ("delete_entities", json!({"entityNames": ["Cat #1"]}), vec![GRAPH, TIME, ANN, CAT, LIST]),
        ("undo", json!({}), vec![GRAPH, TIME, ANN, CAT, LIST]),
        ("delete_relations", json!({"relations": [relation]}), vec![GRAPH, TIME, ANN, CAT]),
        (
            "delete_observations",
            json!({"deletions": [{"entityName": "Ann", "observations": ["sings"]}]}),
            vec![GRAPH, TIME, ANN],
        ),
        ("update_entity", json!({"name": "Dog", "newName": "Bob"}), vec![GRAPH, TIME, BOB, LIST]),
        ("merge_entities", json!({"from": "Bob", "into": "Ann"}), vec![GRAPH, TIME, ANN, BOB, LIST]),
        ("restore_entity", json!({"name": "Ann", "version": 1}), vec![GRAPH, TIME, ANN]),
        ("import_graph", json!({"jsonl": jsonl.to_string()}), vec![GRAPH, TIME, BOB, LIST]),
        ("create_agent", agent, vec![TIME, AGENTS, GREETER, LIST]),
        (
            "update_agent",
            json!({"agent_name": "greeter", "description": "Waves."}),
            vec![TIME, AGENTS, GREETER, LIST],
        ),
        ("delete_agent", json!({"agent_name": "greeter"}), vec![TIME, AGENTS, GREETER, LIST]),
        ("ingest_document", json!({"text": "another"}), vec![TIME, LIST]),
        ("ingest_document", json!({"text": "another"}), vec![TIME]),
        ("update_document", json!({"id": id, "text": "second"}), vec![TIME, document, LIST]),
        ("delete_document", json!({"id": id}), vec![TIME, document, LIST]),
        ("read_graph", json!({}), vec![]),
    ] {
        ask(&memory, tool, arguments.clone()).await;
        assert_eq!(heard(&events), told, "{tool} {arguments}");
    }
    call_as(&memory, None, "add_observations", json!({"entityName": "Nobody", "contents": ["x"]})).await;
    assert_eq!(heard(&events), [""; 0], "what failed changed nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_one_piece_of_news() {
    let folder = Folder::new();
    let memory = folder.server();
    let uris: Vec<_> = (0..10).map(|n| format!("memory://entities/thing%20{n}")).collect();
    let events = watch(&memory, None, everything(&uris.iter().map(String::as_str).collect::<Vec<_>>())).await;
    let thing = |n: usize| json!({"name": format!("thing {n}"), "entityType": "t", "observations": ["x"]});
    ask(&memory, "create_entities", json!({"entities": (0..3_000).map(thing).collect::<Vec<_>>()})).await;
    let mut told = heard(&events);
    assert_eq!(told.pop().as_deref(), Some(LIST));
    assert_eq!(told, uris);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_told_as_it_was_subscribed_to() {
    let folder = Folder::new();
    let memory = folder.server();
    let spelled = ["memory://entities/Zo%C3%AB", "memory://entities/Zo%c3%ab", "memory://entities/Zoë"];
    let events = watch(&memory, None, json!({"resourceSubscriptions": spelled})).await;
    ask(&memory, "create_entities", json!({"entities": [{"name": "Zoë", "entityType": "t"}]})).await;
    assert_eq!(heard(&events), spelled);
    let agent =
        json!({"agent_name": "Greeter", "description": "Greets.", "output_schema": {"type": "object"}});
    let plain = watch(&memory, None, json!({"resourceSubscriptions": ["agentlet://greeter"]})).await;
    ask(&memory, "create_agent", agent).await;
    assert_eq!(heard(&plain), ["agentlet://greeter"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_hears_of_what_others_have() {
    let folder = Folder::new();
    let memory = folder.server();
    let uris = everything(&[GRAPH, TIME, AGENTS, ANN, "agentlet://greeter", "memory://documents/doc-1"]);
    let theirs = watch(&memory, Some("acme"), uris.clone()).await;
    let (other, nobody) =
        (watch(&memory, Some("other"), uris.clone()).await, watch(&memory, None, uris).await);
    let agent =
        json!({"agent_name": "greeter", "description": "Greets.", "output_schema": {"type": "object"}});
    for (tool, arguments) in [
        ("create_entities", json!({"entities": [ann()]})),
        ("create_agent", agent),
        ("ingest_document", json!({"text": "a text"})),
        ("undo", json!({"change": 1})),
    ] {
        let result = call_as(&memory, Some("acme"), tool, arguments).await;
        assert!(!result["isError"].as_bool().unwrap_or_default(), "{tool}: {result}");
        assert!(heard(&theirs).contains(&LIST.to_owned()), "{tool}");
        assert_eq!((heard(&other), heard(&nobody)), (vec![], vec![]), "{tool}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_process_changes_is_heard_of_once() {
    let folder = Folder::new();
    let (memory, other) = (folder.server(), server(open(&folder.place())));
    let events = watch(&memory, None, everything(&[ANN, BOB])).await;
    let next = async || {
        let told = tokio::time::timeout(Duration::from_secs(30), events.next()).await;
        named(told.expect("it is told").unwrap())
    };
    ask(&other, "create_entities", json!({"entities": [ann()]})).await;
    // Whoever watches has called before, or will.
    ask(&memory, "read_graph", json!({})).await;
    assert_eq!((next().await, next().await), (ANN.to_owned(), LIST.to_owned()));
    let bob = json!({"name": "Bob", "entityType": "t"});
    ask(&memory, "create_entities", json!({"entities": [bob]})).await;
    assert_eq!(heard(&events), [BOB, LIST], "its own at once");
    ask(&other, "add_observations", json!({"entityName": "Ann", "contents": ["x"]})).await;
    assert_eq!(next().await, ANN, "and not its own again");
    call_as(&other, Some("acme"), "create_entities", json!({"entities": [ann()]})).await;
    ask(&other, "add_observations", json!({"entityName": "Bob", "contents": ["x"]})).await;
    assert_eq!(next().await, BOB, "nor what others have");
    assert_eq!(heard(&events), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_stops_waiting_for_a_change_does_not_hide_it_from_others() {
    let folder = Folder::new();
    let memory = folder.server();
    // The tenant is known, so that the change is on its way at once.
    ask(&memory, "create_entities", json!({"entities": [{"name": "Bob", "entityType": "t"}]})).await;
    let events = watch(&memory, None, everything(&[ANN])).await;
    let params = json!({"name": "create_entities", "arguments": {"entities": [ann()]}});
    let params = Params::parse(&Json::from(params), &Limits::default()).unwrap();
    let call = Call::new(Method::ToolsCall, params, Context::local());
    let mut calling = Box::pin(memory.answer(call));
    // Polled once: the change waits to be written, and nobody waits for the answer any more.
    assert!((&mut calling).now_or_never().is_none());
    drop(calling);
    let told = tokio::time::timeout(Duration::from_secs(30), events.next()).await;
    assert_eq!(named(told.expect("it is told").unwrap()), ANN);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_both_eras_are_told() {
    let folder = Folder::new();
    let memory = folder.server();
    for revision in [Revision::LATEST_MODERN, Revision::LATEST_LEGACY] {
        let params = Json::from(json!({"notifications": everything(&[ANN])}));
        let mut context = Context::local();
        context.revision = revision;
        let call = Call::new(Method::Listen, Params::parse(&params, &Limits::default()).unwrap(), context);
        let Reply::Subscription(subscription) = memory.answer(call).await.unwrap() else { panic!("refused") };
        call_as(&memory, None, "create_entities", json!({"entities": [ann()]})).await;
        assert_eq!(heard(&subscription.events), [ANN, LIST]);
        call_as(&memory, None, "delete_entities", json!({"entityNames": ["Ann"]})).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_named_is_watched_by_its_uris() {
    let folder = Folder::new();
    let memory = folder.server();
    let (graph, agents) = (format!("{GRAPH}?tenant_id=acme"), "my-agents://list?user_id=ann&tenant_id=acme");
    let greeter = "agentlet://user/ann/greeter";
    let named = watch(&memory, None, everything(&[&graph, agents, greeter, GRAPH])).await;
    let theirs = watch(&memory, Some("acme"), everything(&[GRAPH, &graph, AGENTS])).await;
    let others = watch(&memory, Some("other"), everything(&[GRAPH, &graph, agents, greeter])).await;
    ask(&memory, "create_entities", json!({"entities": [ann()], "tenant_id": "acme"})).await;
    assert_eq!(heard(&named), [&*graph]);
    assert_eq!(heard(&theirs), [GRAPH, &graph, LIST]);
    let agent = json!({
        "agent_name": "greeter", "description": "Greet.", "output_schema": {"type": "object"}, "user_id": "ann",
        "tenant_id": "acme",
    });
    ask(&memory, "create_agent", agent).await;
    assert_eq!(heard(&named), [agents, greeter]);
    assert_eq!(heard(&theirs), [AGENTS, LIST]);
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    assert_eq!(heard(&named), [GRAPH, LIST]);
    assert!(heard(&theirs).is_empty() && heard(&others).is_empty());
}
