//! Arguments as callers write them: other spellings, whole numbers with a point, and what is said of wrong ones.

use serde_json::json;

use crate::rig::{Folder, ann, ask, refused};

#[tokio::test(flavor = "multi_thread")]
async fn names_are_understood_in_either_spelling() {
    let folder = Folder::new();
    let memory = folder.server();
    let bob = json!({"name": "Bob", "entity_type": "person", "observations": []});
    ask(&memory, "create_entities", json!({"entities": [ann(), bob]})).await;
    let knows = json!({"from": "Ann", "to": "Bob", "relation_type": "knows"});
    ask(&memory, "create_relations", json!({"relations": [knows.clone()]})).await;
    let added = json!({"observations": [{"entity_name": "Ann", "contents": ["sings"]}]});
    assert_eq!(ask(&memory, "add_observations", added).await["added"], 1);
    ask(&memory, "add_observations", json!({"entity_name": "Ann", "contents": ["dances"]})).await;
    let history = ask(&memory, "get_entity_history", json!({"entity_name": "Ann"})).await;
    assert_eq!(history["history"].as_array().unwrap().len(), 3, "{history}");
    let relations = ask(&memory, "get_relations", json!({"entity_name": "Ann"})).await;
    assert_eq!(relations["relations"].as_array().unwrap().len(), 1);
    assert_eq!(ask(&memory, "get_relation", knows).await["relation"]["to"], "Bob");
    let gone = json!({"deletions": [{"entity_name": "Ann", "observations": ["sings"]}]});
    assert_eq!(ask(&memory, "delete_observations", gone).await["deleted"], 1);
    ask(&memory, "get_decayed_graph", json!({"minConfidence": 0.5, "half_life_days": 5})).await;
    ask(&memory, "delete_entities", json!({"entity_names": ["Ann"]})).await;
    // What clients of other memories send with anything is passed over.
    for others in [
        json!({"random_string": "x", "tenant_id": ""}),
        json!({"user_id": "ann", "tenantId": "default", "randomString": 5}),
    ] {
        let left = ask(&memory, "read_graph", others).await;
        assert_eq!(left["entities"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_nobody_knows_are_refused_with_the_nearest() {
    let folder = Folder::new();
    let memory = folder.server();
    for (tool, arguments, said) in [
        (
            "create_entities",
            json!({"entitites": []}),
            r#"unknown argument "entitites"; did you mean "entities"?"#,
        ),
        (
            "search_nodes",
            json!({"query": "a", "querry": "b"}),
            r#"unknown argument "querry"; did you mean "query"?"#,
        ),
        (
            "get_entity_history",
            json!({"name": "Ann"}),
            r#"unknown argument "name"; did you mean "entityName"?"#,
        ),
        (
            "read_graph",
            json!({"zebra": 1}),
            r#"unknown argument "zebra"; the arguments are "cursor", "limit", "tenant_id""#,
        ),
        ("undo", json!({"chnage": 1}), r#"unknown argument "chnage"; did you mean "change"?"#),
        ("ask_agent", json!({"agent": "a", "agent_uri": "a", "prompt": "b"}), r#"did you mean "agent_uri"?"#),
        ("list_documents", json!({"limits": 1}), r#"did you mean "limit"?"#),
    ] {
        let told = refused(&memory, tool, arguments).await;
        assert!(told.starts_with(&format!("Invalid arguments for {tool}: ")), "{told}");
        assert!(told.contains(said), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_numbers_may_have_a_point() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let later = ask(&memory, "get_graph_at_time", json!({"timestamp": 32503680000000.0})).await;
    assert_eq!(later["graph"]["entities"].as_array().unwrap().len(), 1);
    for number in [json!(1e300), json!(2f64.powi(70))] {
        assert_eq!(
            refused(&memory, "get_graph_at_time", json!({"timestamp": number})).await,
            "Invalid arguments for get_graph_at_time: timestamp: must be a whole number from -9223372036854775808 to \
             9223372036854775807"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_shapes_the_one_that_was_meant_is_spoken_of() {
    let folder = Folder::new();
    let memory = folder.server();
    let relation = json!({"from": "Ann", "to": "Bob", "relationType": "knows", "confidence": 2});
    let told = refused(&memory, "update_relation", json!({"relation": relation})).await;
    assert!(told.contains("relation.confidence: 2 is greater than the maximum of 1"), "{told}");
    let told = refused(&memory, "get_relations", json!({"entityName": "Ann", "direction": "sideways"})).await;
    assert!(told.contains("direction: \"sideways\" is not one of ") && told.contains("\"both\""), "{told}");
    let told = refused(&memory, "traverse_graph", json!({"from": 5})).await;
    assert!(told.contains("from: 5 is not of type \"string\" or \"array\""), "{told}");
    let told = refused(
        &memory,
        "import_graph",
        json!({"jsonl": "{\"type\":\"entity\",\"name\":5}", "strict": true}),
    )
    .await;
    assert!(told.contains("line 1") && told.contains("name: must be a string"), "{told}");
}
