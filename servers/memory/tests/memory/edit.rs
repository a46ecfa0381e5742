//! Entities that get another name, become one with another, or what they were.

use serde_json::json;

use crate::rig::{Folder, ann, ask, call_as, refused};

#[tokio::test(flavor = "multi_thread")]
async fn a_new_name_keeps_relations_and_history() {
    let folder = Folder::new();
    let memory = folder.server();
    let bob = json!({"name": "Bob", "entityType": "person", "observations": []});
    ask(&memory, "create_entities", json!({"entities": [ann(), bob]})).await;
    let relation =
        |from: &str, to: &str| json!({"from": from, "to": to, "relationType": "knows", "confidence": 0.8});
    let relations = [relation("Ann", "Bob"), relation("Bob", "Ann"), relation("Ann", "Ann")];
    ask(&memory, "create_relations", json!({"relations": relations})).await;
    let told =
        ask(&memory, "update_entity", json!({"name": "Ann", "newName": "Anna", "expectedVersion": 1})).await;
    assert_eq!((&told["entity"]["name"], &told["entity"]["version"]), (&json!("Anna"), &json!(2)));
    let graph = ask(&memory, "read_graph", json!({})).await;
    assert_eq!(graph["entities"][0]["name"], "Anna", "it keeps its place");
    let relations = json!([relation("Anna", "Bob"), relation("Bob", "Anna"), relation("Anna", "Anna")]);
    assert_eq!(graph["relations"], relations);
    for query in ["Anna tea", "Kiel tea"] {
        let found = ask(&memory, "search_nodes", json!({"query": query})).await;
        assert_eq!(found["count"], 1, "{query}");
    }
    for name in ["Anna", "Ann"] {
        let history = ask(&memory, "get_entity_history", json!({"entityName": name})).await;
        let names: Vec<_> =
            history["history"].as_array().unwrap().iter().map(|v| v["name"].clone()).collect();
        assert_eq!(names, ["Ann", "Anna"], "by either name");
    }
    // Somebody else may have the name then, with a history of their own.
    let other = json!({"name": "Ann", "entityType": "boat", "observations": []});
    ask(&memory, "create_entities", json!({"entities": [other]})).await;
    let history = ask(&memory, "get_entity_history", json!({"entityName": "Ann"})).await;
    assert_eq!(
        (&history["totalVersions"], &history["history"][0]["entityType"]),
        (&json!(1), &json!("boat"))
    );
    let history = ask(&memory, "get_entity_history", json!({"entityName": "Anna"})).await;
    assert_eq!(history["totalVersions"], 2);

    let told = ask(&memory, "update_entity", json!({"name": "Anna", "entityType": "friend"})).await;
    assert_eq!((&told["entity"]["entityType"], &told["entity"]["version"]), (&json!("friend"), &json!(3)));
    let same = ask(&memory, "update_entity", json!({"name": "Anna", "entityType": "friend"})).await;
    assert_eq!(same, told, "nothing to do");
    for (arguments, why) in [
        (json!({"name": "Anna", "newName": "Bob"}), "an entity \"Bob\" already exists"),
        (json!({"name": "Anna", "entityType": "x", "expectedVersion": 2}), "is at version 3, not 2"),
        (json!({"name": "Nobody", "newName": "x"}), "Entity with name Nobody not found"),
        (json!({"name": "Anna", "newName": " "}), "newName: must not be empty"),
        (json!({"name": "Anna"}), "newName"),
    ] {
        let said = refused(&memory, "update_entity", arguments).await;
        assert!(said.contains(why), "{said}");
    }
    let fault = call_as(&memory, None, "update_entity", json!({"name": "Anna", "newName": "Bob"})).await;
    assert!(fault.to_string().contains("CONFLICT"), "{fault}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_name_states_nothing_about_confidence() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let relation = json!({"from": "Ann", "to": "b", "relationType": "r", "confidence": 0.8});
    ask(&memory, "create_relations", json!({"relations": [relation]})).await;
    let said = tidegate_service::epoch_ms() as i64;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    ask(&memory, "update_entity", json!({"name": "Ann", "newName": "Anna"})).await;
    ask(&memory, "delete_entities", json!({"entityNames": ["Anna"]})).await;
    ask(&memory, "undo", json!({})).await;
    // A half-life of a few milliseconds: what was stated just now would be sure still.
    let half = 20.0 / 86_400_000.0;
    let asked = json!({"referenceTime": said + 40, "halfLifeDays": half, "minConfidence": 0});
    let graph = ask(&memory, "get_decayed_graph", asked.clone()).await;
    assert_eq!(graph["relations"][0]["from"], "Anna");
    assert!(graph["relations"][0]["confidence"].as_f64().unwrap() < 0.3, "{graph}");
    ask(&memory, "update_relation", json!({"from": "Anna", "to": "b", "relationType": "r"})).await;
    let graph = ask(&memory, "get_decayed_graph", asked).await;
    assert_eq!(graph["relations"][0]["confidence"], 0.8, "said again");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_become_one() {
    let folder = Folder::new();
    let memory = folder.server();
    let entity = |name: &str, facts: &[&str]| json!({"name": name, "entityType": "t", "observations": facts});
    let entities =
        [entity("A. Smith", &["tall", "kind"]), entity("Ann", &["kind", "old"]), entity("Bob", &[])];
    ask(&memory, "create_entities", json!({"entities": entities})).await;
    let relation = |from: &str, to: &str| json!({"from": from, "to": to, "relationType": "knows"});
    let relations = [
        relation("A. Smith", "Bob"),
        relation("Ann", "Bob"),
        relation("A. Smith", "Ann"),
        relation("Bob", "A. Smith"),
    ];
    ask(&memory, "create_relations", json!({"relations": relations})).await;
    let told = ask(&memory, "merge_entities", json!({"from": "A. Smith", "into": "Ann"})).await;
    assert_eq!(
        (&told["movedObservations"], &told["movedRelations"], &told["droppedRelations"]),
        (&json!(1), &json!(1), &json!(2))
    );
    assert_eq!((&told["entity"]["observations"], &told["entity"]["version"]), (&json!(3), &json!(2)));
    let graph = ask(&memory, "read_graph", json!({})).await;
    assert_eq!(graph["entities"], json!([entity("Ann", &["kind", "old", "tall"]), entity("Bob", &[])]));
    assert_eq!(graph["relations"], json!([relation("Ann", "Bob"), relation("Bob", "Ann")]));
    let found = ask(&memory, "search_nodes", json!({"query": "tall old"})).await;
    assert_eq!(found["count"], 1);
    let history = ask(&memory, "get_entity_history", json!({"entityName": "A. Smith"})).await;
    assert!(history["history"][0]["validTo"].is_i64(), "{history}");
    for (arguments, why) in [
        (json!({"from": "Ann", "into": "Ann"}), "into"),
        (json!({"from": "A. Smith", "into": "Ann"}), "A. Smith"),
        (json!({"from": "Ann", "into": "Nobody"}), "Nobody"),
        (json!({"from": "Bob", "into": "Ann", "expectedVersion": 1}), "expectedVersion"),
    ] {
        let said = refused(&memory, "merge_entities", arguments).await;
        assert!(said.contains(why), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_version_comes_back() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let then = tidegate_service::epoch_ms() as i64;
    tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    ask(&memory, "add_observations", json!({"entityName": "Ann", "contents": ["plays chess"]})).await;
    ask(
        &memory,
        "delete_observations",
        json!({"deletions": [{"entityName": "Ann", "observations": ["likes tea"]}]}),
    )
    .await;
    ask(&memory, "update_entity", json!({"name": "Ann", "entityType": "robot"})).await;
    let told = ask(&memory, "restore_entity", json!({"name": "Ann", "version": 2})).await;
    assert_eq!((&told["restoredVersion"], &told["entity"]["version"]), (&json!(2), &json!(5)));
    let opened = ask(&memory, "open_nodes", json!({"names": ["Ann"]})).await;
    assert_eq!(opened["entities"][0]["entityType"], "person");
    assert_eq!(opened["entities"][0]["observations"], json!(["lives in Kiel", "plays chess", "likes tea"]));
    ask(&memory, "delete_entities", json!({"entityNames": ["Ann"]})).await;
    ask(&memory, "restore_entity", json!({"name": "Ann", "at": then})).await;
    let opened = ask(&memory, "open_nodes", json!({"names": ["Ann"]})).await;
    assert_eq!(opened["entities"], json!([ann()]));
    let found = ask(&memory, "search_nodes", json!({"query": "kiel tea"})).await;
    assert_eq!(found["count"], 1, "found by its words again");
    for (arguments, why) in [
        (json!({"name": "Ann", "version": 99}), "has versions 1 to 6, not 99"),
        (json!({"name": "Ann", "at": 1}), "\"Ann\" did not exist at 1"),
        (json!({"name": "Ann", "version": 0}), "version"),
        (json!({"name": "Ann"}), "either"),
        (json!({"name": "Nobody", "version": 1}), "Nobody"),
    ] {
        let said = refused(&memory, "restore_entity", arguments).await;
        assert!(said.contains(why), "{said}");
    }
    ask(&memory, "update_entity", json!({"name": "Ann", "newName": "Anna"})).await;
    let said = refused(&memory, "restore_entity", json!({"name": "Ann", "version": 1})).await;
    assert!(said.contains("was renamed to \"Anna\""), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_of_a_relation_comes_along() {
    let folder = Folder::new();
    let memory = folder.server();
    let relation = json!({"from": "Old", "to": "Z", "relationType": "r", "confidence": 0.5});
    let entities = json!([{"name": "Old", "entityType": "t", "observations": []}]);
    ask(&memory, "create_entities", json!({"entities": entities})).await;
    ask(&memory, "create_relations", json!({"relations": [relation]})).await;
    ask(&memory, "update_entity", json!({"name": "Old", "newName": "New"})).await;
    // Somebody else takes the name, and has a relation of their own.
    ask(&memory, "create_entities", json!({"entities": entities})).await;
    ask(&memory, "create_relations", json!({"relations": [relation]})).await;
    let history = async |from: &str| {
        let of = json!({"from": from, "to": "Z", "relationType": "r"});
        let told = ask(&memory, "get_relation_history", of).await;
        let versions = told["history"].as_array().unwrap().iter();
        versions.map(|version| version["from"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(history("New").await, ["Old", "New"]);
    assert_eq!(history("Old").await, ["Old", "Old"], "what the name was said of, whoever bore it");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_observation_is_reworded_in_one_change() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let reword =
        |old: &str, new: &str| json!({"entityName": "Ann", "observation": old, "newObservation": new});
    let told = ask(&memory, "update_observation", reword("likes tea", "likes coffee")).await;
    assert_eq!((&told["entity"]["observations"], &told["entity"]["version"]), (&json!(2), &json!(2)));
    let now = async || ask(&memory, "read_graph", json!({})).await["entities"][0]["observations"].clone();
    assert_eq!(now().await, json!(["lives in Kiel", "likes coffee"]));
    let said = refused(&memory, "update_observation", reword("likes tea", "x")).await;
    assert_eq!(said, "observation: \"Ann\" has no observation \"likes tea\" (any more)");
    let said = refused(&memory, "update_observation", reword("likes coffee", "")).await;
    assert_eq!(said, "newObservation: must not be empty");
    // What is known already is not known twice.
    ask(&memory, "update_observation", reword("likes coffee", "lives in Kiel")).await;
    assert_eq!(now().await, json!(["lives in Kiel"]));
    ask(&memory, "undo", json!({})).await;
    ask(&memory, "undo", json!({})).await;
    assert_eq!(now().await, json!(["lives in Kiel", "likes tea"]));
}
