//! Arguments and results in the shapes that clients of other memories know, and who hears of changes.

use serde_json::{Value, json};
use tidegate_protocol::{Json, Limits, Method, Params};
use tidegate_server::{Principal, ServerDoor};
use tidegate_service::{Call, Context, Door, Notice, Outbox, Reply};

use crate::rig::{Folder, ann, ask, call_as, refused};

#[tokio::test(flavor = "multi_thread")]
async fn results_have_the_members_of_both() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let added =
        ask(&memory, "add_observations", json!({"entityName": "Ann", "contents": ["a", "likes tea"]})).await;
    assert_eq!(
        added,
        json!({
            "results": [{"entityName": "Ann", "addedObservations": ["a"]}],
            "added": 1, "entityName": "Ann", "totalObservations": 3,
        })
    );
    let opened = ask(&memory, "open_nodes", json!({"names": ["Ann", "Nobody", "Ann"]})).await;
    assert_eq!((&opened["found"], &opened["notFound"]), (&json!(1), &json!(["Nobody"])));
    assert_eq!(ask(&memory, "search_nodes", json!({"query": "tea"})).await["count"], 1);
    let gone = ask(
        &memory,
        "delete_observations",
        json!({"deletions": [{"entityName": "Ann", "observations": ["a", "b"]}, {"entityName": "Nobody", "observations": ["c"]}]}),
    )
    .await;
    assert_eq!(
        (&gone["deleted"], &gone["entities"]),
        (&json!(1), &json!([{"entityName": "Ann", "deletedCount": 1}]))
    );
    let relation = json!({"from": "Ann", "to": "Bob", "relationType": "knows"});
    let none = ask(&memory, "get_relation", relation.clone()).await;
    assert_eq!(none, json!({"relation": null}));
    ask(&memory, "create_relations", json!({"relations": [relation]})).await;
    for shape in [
        json!({"relation": {"from": "Ann", "to": "Bob", "relationType": "knows", "strength": 0.5}}),
        json!({"from": "Ann", "to": "Bob", "relationType": "knows", "strength": 0.5}),
    ] {
        assert_eq!(ask(&memory, "update_relation", shape).await["strength"], 0.5);
    }
    let empty = ask(&memory, "create_entities", json!({"entities": []})).await;
    assert_eq!(empty["created"], 0, "nothing to make is no failure");
    let without = crate::rig::request(&memory, None, Method::ToolsCall, json!({"name": "read_graph"})).await;
    assert_eq!(without.unwrap()["structuredContent"]["entities"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_histories_are_told_in_parts() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(
        &memory,
        "create_entities",
        json!({"entities": [{"name": "log", "entityType": "t", "observations": []}]}),
    )
    .await;
    for n in 0..9 {
        ask(&memory, "add_observations", json!({"entityName": "log", "contents": [format!("{n}")]})).await;
        ask(
            &memory,
            "create_relations",
            json!({"relations": [{"from": "log", "to": "x", "relationType": "r"}]}),
        )
        .await;
        ask(
            &memory,
            "update_relation",
            json!({"from": "log", "to": "x", "relationType": "r", "strength": 0.1}),
        )
        .await;
    }
    let last = ask(&memory, "get_entity_history", json!({"entityName": "log", "limit": 3})).await;
    let versions = |told: &Value| -> Vec<i64> {
        told["history"].as_array().unwrap().iter().map(|v| v["version"].as_i64().unwrap()).collect()
    };
    assert_eq!(
        (versions(&last), &last["totalVersions"], &last["truncated"]),
        (vec![8, 9, 10], &json!(10), &json!(true))
    );
    let earlier =
        ask(&memory, "get_entity_history", json!({"entityName": "log", "limit": 3, "beforeVersion": 8}))
            .await;
    assert_eq!(versions(&earlier), [5, 6, 7]);
    assert_eq!(earlier["history"][2]["validTo"], last["history"][0]["validFrom"]);
    assert_eq!(earlier["history"][2]["observations"].as_array().unwrap().len(), 6);
    let all = ask(&memory, "get_entity_history", json!({"entityName": "log"})).await;
    assert_eq!((versions(&all).len(), &all["truncated"]), (10, &json!(false)));
    let relation = json!({"from": "log", "to": "x", "relationType": "r", "limit": 2});
    let last = ask(&memory, "get_relation_history", relation).await;
    assert_eq!((versions(&last), &last["totalVersions"]), (vec![9, 10], &json!(10)));
    let why = refused(&memory, "get_entity_history", json!({"entityName": "log", "beforeVersion": -1})).await;
    assert!(why.contains("beforeVersion"), "{why}");
    let big = json!({"from": "a", "to": "b", "relationType": "r", "metadata": {"x": "y".repeat(20_000)}});
    let why = refused(&memory, "create_relations", json!({"relations": [big]})).await;
    assert!(why.contains("relations[0].metadata"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_none_are_refused() {
    let folder = Folder::new();
    let memory = folder.server();
    for (arguments, why) in [
        (json!({}), "pass either"),
        (json!({"jsonl": "", "devflow": ""}), "pass either"),
        (json!({"devflow": "%%%"}), "devflow: is not valid base64"),
        (json!({"devflow": "bm9uc2Vuc2U="}), "devflow: is not a SQLite database"),
    ] {
        let said = refused(&memory, "import_graph", arguments).await;
        assert!(said.contains(why), "{said}");
    }
}

async fn watch(server: &ServerDoor, principal: Principal, uris: &[&str]) -> Outbox {
    let params = Json::from(json!({"notifications": {"resourceSubscriptions": uris}}));
    let mut context = Context::local();
    context.principal = principal;
    let call = Call::new(Method::Listen, Params::parse(&params, &Limits::default()).unwrap(), context);
    match server.answer(call).await.unwrap() {
        Reply::Subscription(subscription) => subscription.events,
        other => panic!("{other:?}"),
    }
}

/// What is waiting, without waiting for more.
fn heard(events: &Outbox) -> Vec<String> {
    std::iter::from_fn(|| events.try_next())
        .map(|notice| match notice {
            Notice::ResourceUpdated(uri) => uri.to_string(),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_those_who_share_a_memory_hear_of_its_changes() {
    let folder = Folder::new();
    let memory = folder.server();
    let of = |subject: Option<&str>, tenant: Option<&str>| Principal {
        subject: subject.map(Into::into),
        tenant: tenant.map(Into::into),
        issuer: None,
    };
    let uris = ["memory://knowledge-graph", "memory://entities/Ann"];
    let colleague = watch(&memory, of(Some("bob"), Some("acme")), &uris).await;
    let stranger = watch(&memory, of(Some("bob"), Some("other")), &uris).await;
    let namesake = watch(&memory, of(Some("acme"), None), &uris).await;
    let nobody = watch(&memory, of(None, None), &uris).await;
    call_as(&memory, Some("acme"), "create_entities", json!({"entities": [ann()]})).await;
    assert_eq!(heard(&colleague), uris);
    call_as(&memory, Some("acme"), "update_entity", json!({"name": "Ann", "newName": "Anna"})).await;
    assert_eq!(heard(&colleague), uris);
    call_as(&memory, Some("acme"), "undo", json!({})).await;
    assert_eq!(heard(&colleague), uris, "both names were meant");
    call_as(&memory, Some("~acme"), "create_entities", json!({"entities": [ann()]})).await;
    assert_eq!(heard(&namesake), uris);
    for (who, events) in [("stranger", &stranger), ("nobody", &nobody), ("colleague", &colleague)] {
        assert_eq!(heard(events), [""; 0], "{who}");
    }
}
