//! Changes: which there were, taking them back, and what is different between two moments.

use serde_json::{Value, json};
use tidegate_server::ServerDoor;

use crate::rig::{Folder, ann, ask, call_as, refused};

/// The graph without an order.
async fn known(memory: &ServerDoor) -> Value {
    let mut graph = ask(memory, "read_graph", json!({})).await;
    for entity in graph["entities"].as_array_mut().unwrap() {
        sorted(&mut entity["observations"]);
    }
    sorted(&mut graph["entities"]);
    sorted(&mut graph["relations"]);
    graph
}

fn sorted(list: &mut Value) {
    list.as_array_mut().unwrap().sort_by_key(Value::to_string);
}

/// A change of a handful of names, so that they meet.
fn some_change(random: &mut fastrand::Rng) -> (&'static str, Value) {
    const NAMES: [&str; 5] = ["Ann", "Bob", "Acme", "Zoë", "a b"];
    const FACTS: [&str; 4] = ["likes tea", "lives in Kiel", "plays chess", "is tall"];
    let name = |random: &mut fastrand::Rng| NAMES[random.usize(..NAMES.len())];
    let fact = |random: &mut fastrand::Rng| FACTS[random.usize(..FACTS.len())];
    let relation = |random: &mut fastrand::Rng| {
        let kind = ["knows", "works_at"][random.usize(..2)];
        json!({"from": name(random), "to": name(random), "relationType": kind})
    };
    match random.usize(..14) {
        0..3 => {
            let entity = json!({"name": name(random), "entityType": "t", "observations": [fact(random), fact(random)],
                "properties": {"age": random.u8(..3)}});
            ("create_entities", json!({"entities": [entity]}))
        }
        3 | 4 => ("create_relations", json!({"relations": [relation(random), relation(random)]})),
        5 => ("add_observations", json!({"entityName": name(random), "contents": [fact(random)]})),
        6 => ("delete_entities", json!({"entityNames": [name(random)]})),
        7 => (
            "delete_observations",
            json!({"deletions": [{"entityName": name(random), "observations": [fact(random)]}]}),
        ),
        8 => ("delete_relations", json!({"relations": [relation(random)]})),
        9 => {
            let mut relation = relation(random);
            relation["strength"] = json!(random.f64());
            ("update_relation", relation)
        }
        10 => (
            "update_entity",
            json!({"name": name(random), "newName": name(random), "entityType": fact(random)}),
        ),
        11 | 12 => {
            let value = [json!(1), json!("two"), json!(true), Value::Null][random.usize(..4)].clone();
            let key = ["age", "size"][random.usize(..2)];
            ("set_properties", json!({"entityName": name(random), "properties": {key: value}}))
        }
        _ => ("merge_entities", json!({"from": name(random), "into": name(random)})),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_can_be_undone_one_after_the_other() {
    for seed in 0..3 {
        let folder = Folder::new();
        let memory = folder.server();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut before = vec![known(&memory).await];
        for _ in 0..60 {
            let (tool, arguments) = some_change(&mut random);
            call_as(&memory, None, tool, arguments).await;
            let now = known(&memory).await;
            if before.last() != Some(&now) {
                before.push(now);
            }
        }
        assert!(before.len() > 20, "much has happened");
        let last = before.pop().unwrap();
        let mut undone = 0;
        for wanted in before.iter().rev() {
            let told = ask(&memory, "undo", json!({})).await;
            assert_eq!(&known(&memory).await, wanted, "seed {seed}, after {undone}: {told}");
            undone += 1;
            // Once in a while both ways.
            if random.usize(..4) == 0 {
                let id = told["undone"]["id"].clone();
                let changes = ask(&memory, "list_changes", json!({"limit": 1})).await;
                assert_eq!(changes["changes"][0]["undoes"], id);
                let there = ask(&memory, "undo", json!({"change": changes["changes"][0]["id"]})).await;
                assert_eq!(there["undone"]["what"], "undo");
                ask(&memory, "undo", json!({})).await;
                assert_eq!(&known(&memory).await, wanted, "seed {seed}: to and fro");
            }
        }
        let why = refused(&memory, "undo", json!({})).await;
        assert!(why.contains("nothing to undo"), "{why}");
        // And what undid them, the other way round.
        let mut all = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let mut arguments = json!({"limit": 50});
            if cursor.is_string() {
                arguments["cursor"] = cursor;
            }
            let part = ask(&memory, "list_changes", arguments).await;
            all.extend(part["changes"].as_array().unwrap().clone());
            cursor = part["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        let made = all.iter().filter(|change| change["undoes"].is_null());
        let mut by: Vec<i64> = made.filter_map(|change| change["undoneBy"].as_i64()).collect();
        by.sort_unstable();
        assert_eq!(by.len(), undone);
        for id in by.into_iter().rev() {
            ask(&memory, "undo", json!({"change": id})).await;
        }
        assert_eq!(known(&memory).await, last, "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_back_is_found_and_its_history_goes_on() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let relation = json!({"from": "Ann", "to": "Ann", "relationType": "knows", "confidence": 0.8});
    ask(&memory, "create_relations", json!({"relations": [relation]})).await;
    let gone = ask(&memory, "delete_entities", json!({"entityNames": ["Ann"]})).await;
    assert_eq!(gone["entityNames"], json!(["Ann"]));
    let undone = ask(&memory, "undo", json!({})).await;
    assert_eq!(undone["undone"]["what"], "delete_entities");
    assert_eq!(undone["restored"], json!({"entities": 1, "observations": 2, "relations": 1}));
    assert_eq!(undone["removed"], json!({"entities": 0, "observations": 0, "relations": 0}));
    let found = ask(&memory, "search_nodes", json!({"query": "kiel tea"})).await;
    assert_eq!(found["entities"], json!([ann()]), "by words in another order, so by the index");
    assert_eq!(found["relations"], json!([relation]));
    let history = ask(&memory, "get_entity_history", json!({"entityName": "Ann"})).await;
    assert_eq!(history["totalVersions"], 2);
    assert!(history["history"][0]["validTo"].is_i64() && history["history"][1]["validTo"].is_null());
    let history =
        ask(&memory, "get_relation_history", json!({"from": "Ann", "to": "Ann", "relationType": "knows"}))
            .await;
    assert_eq!(history["totalVersions"], 2);

    let changes = ask(&memory, "list_changes", json!({"entityName": "Ann"})).await;
    let changes = changes["changes"].as_array().unwrap();
    let what: Vec<_> = changes.iter().map(|change| change["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["undo", "delete_entities", "create_relations", "create_entities"]);
    assert_eq!(changes[1]["undoneBy"], changes[0]["id"]);
    assert_eq!(changes[1]["removed"], json!({"entities": 1, "observations": 2, "relations": 1}));
    assert_eq!(changes[3]["who"], "tester");
    for change in changes {
        assert_eq!(change["about"], json!(["Ann"]), "{change}");
    }
    let theirs = call_as(&memory, Some("other"), "undo", json!({"change": changes[3]["id"]})).await;
    assert_eq!(theirs["isError"], true, "the changes of others are not there");
    assert_eq!(ask(&memory, "open_nodes", json!({"names": ["Ann"]})).await["found"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_later_changes_touched_is_not_undone() {
    let folder = Folder::new();
    let memory = folder.server();
    let last = async || ask(&memory, "list_changes", json!({"limit": 1})).await["changes"][0]["id"].clone();
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let made = last().await;
    ask(&memory, "add_observations", json!({"entityName": "Ann", "contents": ["plays chess"]})).await;
    let learned = last().await;
    let why = refused(&memory, "undo", json!({"change": made})).await;
    assert!(
        why.contains(&format!("change {learned} (add_observations) also changed \"plays chess\"")),
        "{why}"
    );
    ask(
        &memory,
        "delete_observations",
        json!({"deletions": [{"entityName": "Ann", "observations": ["plays chess"]}]}),
    )
    .await;
    let forgot = last().await;
    let why = refused(&memory, "undo", json!({"change": learned})).await;
    assert!(why.contains(&format!("change {forgot} (delete_observations)")), "{why}");
    ask(&memory, "add_observations", json!({"entityName": "Ann", "contents": ["plays chess"]})).await;
    let why = refused(&memory, "undo", json!({"change": forgot})).await;
    assert!(why.contains("plays chess"), "it is known again: {why}");
    ask(
        &memory,
        "create_entities",
        json!({"entities": [{"name": "Bob", "entityType": "t", "observations": []}]}),
    )
    .await;
    let bob = last().await;
    ask(
        &memory,
        "create_relations",
        json!({"relations": [{"from": "Ann", "to": "Bob", "relationType": "knows"}]}),
    )
    .await;
    let why = refused(&memory, "undo", json!({"change": bob})).await;
    assert!(why.contains("create_relations"), "{why}");
    ask(
        &memory,
        "delete_relations",
        json!({"relations": [{"from": "Ann", "to": "Bob", "relationType": "knows"}]}),
    )
    .await;
    let parted = last().await;
    ask(&memory, "delete_entities", json!({"entityNames": ["Bob"]})).await;
    let why = refused(&memory, "undo", json!({"change": parted})).await;
    assert!(why.contains("delete_entities"), "{why}");
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let nothing = last().await;
    let why = refused(&memory, "undo", json!({"change": nothing})).await;
    assert!(why.contains("it changed nothing"), "{why}");
    let undone = ask(&memory, "undo", json!({})).await["undone"].clone();
    assert_eq!(undone["what"], "delete_entities", "the last one that changed the graph");
    let why = refused(&memory, "undo", json!({"change": undone["id"]})).await;
    assert!(why.contains("already undid it"), "{why}");
    assert!(refused(&memory, "undo", json!({"change": 999_999})).await.contains("Change 999999 not found"));
    assert!(refused(&memory, "list_changes", json!({"cursor": "x"})).await.contains("cursor"));
    assert!(refused(&memory, "list_changes", json!({"entityName": "Nobody"})).await.contains("Nobody"));
}

#[tokio::test(flavor = "multi_thread")]
async fn moments_are_compared() {
    let folder = Folder::new();
    let memory = folder.server();
    let pause = || tokio::time::sleep(std::time::Duration::from_millis(3));
    let entity = |name: &str| json!({"name": name, "entityType": "t", "observations": ["old"]});
    ask(&memory, "create_entities", json!({"entities": [entity("stays"), entity("goes"), entity("was")]}))
        .await;
    let relation =
        |strength: f64| json!({"from": "stays", "to": "was", "relationType": "r", "strength": strength});
    ask(&memory, "create_relations", json!({"relations": [relation(0.1)]})).await;
    pause().await;
    let then = tidegate_service::epoch_ms() as i64;
    pause().await;
    ask(&memory, "create_entities", json!({"entities": [entity("new"), entity("brief")]})).await;
    ask(&memory, "delete_entities", json!({"entityNames": ["goes", "brief"]})).await;
    ask(&memory, "add_observations", json!({"entityName": "stays", "contents": ["more"]})).await;
    ask(
        &memory,
        "delete_observations",
        json!({"deletions": [{"entityName": "stays", "observations": ["old"]}]}),
    )
    .await;
    ask(&memory, "update_relation", relation(0.9)).await;
    pause().await;
    let now = tidegate_service::epoch_ms() as i64;
    pause().await;
    ask(&memory, "update_entity", json!({"name": "was", "newName": "is", "entityType": "u"})).await;

    let found = ask(&memory, "diff_graph", json!({"from": then, "to": now})).await;
    assert_eq!(found["added"], json!({"entities": [entity("new")], "relations": []}));
    assert_eq!(found["removed"], json!({"entities": [entity("goes")], "relations": []}));
    let stays = json!({"name": "stays", "entityType": "t", "addedObservations": ["more"], "removedObservations": ["old"]});
    assert_eq!(found["changed"]["entities"], json!([stays]));
    assert_eq!(found["changed"]["relations"], json!([{"before": relation(0.1), "after": relation(0.9)}]));
    assert_eq!(found["truncated"], false);
    let found = ask(&memory, "diff_graph", json!({"from": now})).await;
    let renamed = &found["changed"]["entities"][0];
    assert_eq!((&renamed["previousName"], &renamed["previousType"]), (&json!("was"), &json!("t")));
    assert_eq!(found["added"]["relations"][0]["to"], "is");
    assert_eq!(found["removed"]["relations"][0]["to"], "was");
    let found = ask(&memory, "diff_graph", json!({"from": 0, "limit": 1})).await;
    assert_eq!(found["truncated"], true);
    assert_eq!(found["added"]["entities"].as_array().unwrap().len(), 1);
    let found = ask(&memory, "diff_graph", json!({"from": now, "to": now})).await;
    assert_eq!(found["changed"], json!({"entities": [], "relations": []}));
    assert!(refused(&memory, "diff_graph", json!({"from": 2, "to": 1})).await.contains("from"));
}
