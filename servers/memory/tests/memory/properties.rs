//! Properties of entities, and the ids that entities keep.

use serde_json::{Value, json};
use tidegate_server::ServerDoor;

use crate::rig::{Folder, ann, ask, refused};

async fn set(memory: &ServerDoor, properties: Value) -> Value {
    ask(memory, "set_properties", json!({"entityName": "Ann", "properties": properties})).await
}

async fn id_of(memory: &ServerDoor, name: &str) -> String {
    let found = ask(memory, "lookup_entity", json!({"entity_id": name})).await;
    found["entity"]["id"].as_str().unwrap_or_else(|| panic!("no id: {found}")).to_owned()
}

/// The properties that Ann has now.
async fn now(memory: &ServerDoor) -> Value {
    let opened = ask(memory, "open_nodes", json!({"names": ["Ann"]})).await;
    opened["entities"][0].get("properties").cloned().unwrap_or_else(|| json!({}))
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_are_set_removed_and_looked_back_at() {
    let folder = Folder::new();
    let memory = folder.server();
    let mut made = ann();
    made["properties"] = json!({"email": "ann@example.com", "born": 1990, "tall": true, "none": null});
    let created = ask(&memory, "create_entities", json!({"entities": [made]})).await;
    let first = json!({"email": "ann@example.com", "born": 1990, "tall": true});
    assert_eq!(created["entities"][0]["properties"], first);
    assert_eq!(now(&memory).await, first);
    let done = set(&memory, json!({"email": "a@b.c", "born": null, "tall": true, "height": 1.75})).await;
    let second = json!({"email": "a@b.c", "tall": true, "height": 1.75});
    assert_eq!(
        (&done["properties"], &done["set"], &done["removed"], &done["id"]),
        (&second, &json!(2), &json!(1), &json!(id_of(&memory, "Ann").await))
    );
    for tool in ["read_graph", "get_decayed_graph"] {
        assert_eq!(ask(&memory, tool, json!({})).await["entities"][0]["properties"], second, "{tool}");
        assert_eq!(
            ask(&memory, tool, json!({"limit": 5})).await["entities"][0]["properties"],
            second,
            "{tool}"
        );
    }

    let told = ask(&memory, "get_entity_history", json!({"entityName": "Ann"})).await;
    let versions = told["history"].as_array().unwrap();
    assert_eq!(versions.iter().map(|one| &one["properties"]).collect::<Vec<_>>(), [&first, &second]);
    let (then, later) = (&versions[0]["validFrom"], versions[1]["validFrom"].as_i64().unwrap());
    let wanted = if *then == json!(later) { &second } else { &first };
    for part in [json!({"timestamp": then}), json!({"timestamp": then, "limit": 3})] {
        let graph = ask(&memory, "get_graph_at_time", part).await;
        assert_eq!(graph["graph"]["entities"][0]["properties"], *wanted);
    }
    let changes = ask(&memory, "list_changes", json!({"entityName": "Ann"})).await;
    let last = &changes["changes"][0];
    assert_eq!((&last["what"], &last["about"]), (&json!("set_properties"), &json!(["Ann"])));
    assert_eq!((&last["added"]["properties"], &last["removed"]["properties"]), (&json!(2), &json!(2)));

    // Undone, and undone again.
    ask(&memory, "undo", json!({})).await;
    assert_eq!(now(&memory).await, first);
    let undoing = ask(&memory, "list_changes", json!({"limit": 1})).await["changes"][0]["id"].clone();
    ask(&memory, "undo", json!({"change": undoing})).await;
    assert_eq!(now(&memory).await, second);
    // A version brings its properties back, and deleting takes them away.
    ask(&memory, "restore_entity", json!({"name": "Ann", "version": 1})).await;
    assert_eq!(now(&memory).await, first);
    ask(&memory, "delete_entities", json!({"entityNames": ["Ann"]})).await;
    assert_eq!(folder.number("SELECT count(*) FROM properties WHERE gone IS NULL"), 0);
    ask(&memory, "undo", json!({})).await;
    assert_eq!(now(&memory).await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn undo_says_which_change_is_in_the_way() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    set(&memory, json!({"a": 1})).await;
    set(&memory, json!({"a": 2})).await;
    let changes = ask(&memory, "list_changes", json!({})).await;
    let id = |at: usize| changes["changes"][at]["id"].as_i64().unwrap();
    for (undone, by, what) in [(id(1), id(0), "a"), (id(2), id(0), "a")] {
        let why = refused(&memory, "undo", json!({"change": undone})).await;
        let wanted = format!(
            "Change {undone} cannot be undone: change {by} (set_properties) also changed {what:?}; undo change {by} first"
        );
        assert_eq!(why, wanted);
    }
    assert_eq!(now(&memory).await, json!({"a": 2}));
}

#[tokio::test(flavor = "multi_thread")]
async fn differences_name_properties() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    set(&memory, json!({"a": 1, "b": "x"})).await;
    let before = ask(&memory, "get_entity_history", json!({"entityName": "Ann"})).await;
    let before = before["history"][1]["validFrom"].as_i64().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(5));
    set(&memory, json!({"a": 2, "b": null, "c": true})).await;
    let told = ask(&memory, "diff_graph", json!({"from": before})).await;
    assert_eq!(
        told["changed"]["entities"][0]["changedProperties"],
        json!([{"key": "a", "before": 1, "after": 2}, {"key": "b", "before": "x"}, {"key": "c", "after": true}]),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_are_bounded_and_plain() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let many = |from: usize, to: usize| -> Value {
        Value::Object((from..to).map(|n| (format!("k{n}"), json!(n))).collect())
    };
    set(&memory, many(0, 64)).await;
    for (properties, why) in [
        (many(0, 65), "properties: must have at most 64 properties, and has 65"),
        (json!({"more": 1}), "properties: \"Ann\" can have at most 64 properties, not 65"),
        (json!({"": 1}), "properties: the key \"\" must have 1 to 200 characters on one line"),
        (json!({"a\nb": 1}), "properties: the key \"a\\nb\" must"),
        (json!({"list": [1]}), "properties.list: must be a string, a number, true, false or null"),
        (json!({"object": {}}), "properties.object: must be a string"),
        (json!({"nul": "a\u{0}"}), "properties.nul: must not contain the character U+0000"),
        (
            json!({"long": "x".repeat(5_001)}),
            "properties.long: must have at most 5000 characters, and has 5001",
        ),
    ] {
        let arguments = json!({"entityName": "Ann", "properties": properties});
        let said = refused(&memory, "set_properties", arguments).await;
        assert!(said.starts_with(why), "{said}");
    }
    // One for another is no more than before.
    set(&memory, json!({"k0": null, "more": 1})).await;
    let long = json!({"name": "Bob", "entityType": "t", "properties": {"x".repeat(201): 1}});
    let said = refused(&memory, "create_entities", json!({"entities": [long]})).await;
    assert!(said.starts_with("entities[0].properties: the key"), "{said}");
    let said = refused(&memory, "set_properties", json!({"entityName": "Nobody", "properties": {}})).await;
    assert_eq!(said, "Entity with name Nobody not found");
    let stale = json!({"entityName": "Ann", "properties": {"more": 2}, "expectedVersion": 1});
    let said = refused(&memory, "set_properties", stale).await;
    assert_eq!(said, "expectedVersion: \"Ann\" is at version 3, not 1; read it again");
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_are_found_merged_exported_and_imported() {
    let folder = Folder::new();
    let memory = folder.server();
    let bob = json!({"name": "Bob", "entityType": "person", "properties": {"email": "bob@example.com", "team": "tide"}});
    ask(&memory, "create_entities", json!({"entities": [ann(), bob]})).await;
    set(&memory, json!({"email": "ann@example.com"})).await;
    for query in ["ann@example", "email", "ANN@example.com"] {
        let found = ask(&memory, "search_nodes", json!({"query": query})).await;
        assert_eq!(found["entities"][0]["name"], "Ann", "{query}: {found}");
        assert_eq!(found["ids"]["Ann"], json!(id_of(&memory, "Ann").await));
    }
    let found = ask(&memory, "semantic_search", json!({"query": "tide team"})).await;
    assert_eq!(found["results"][0]["entity"]["name"], "Bob", "{found}");
    assert_eq!(found["results"][0]["id"], json!(id_of(&memory, "Bob").await));

    let plain = ask(&memory, "export_graph", json!({})).await;
    assert_eq!(plain["properties"], 3);
    let lines: Vec<Value> =
        plain["jsonl"].as_str().unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["properties"], json!({"email": "ann@example.com"}));
    let second = Folder::new();
    let other = second.server();
    let known = json!({"name": "Ann", "entityType": "person", "properties": {"email": "kept", "x": 1}});
    ask(&other, "create_entities", json!({"entities": [known]})).await;
    let imported = ask(&other, "import_graph", json!({"jsonl": plain["jsonl"]})).await;
    assert_eq!((&imported["entities"], &imported["properties"]), (&json!(1), &json!(2)), "{imported}");
    assert_eq!(now(&other).await, json!({"email": "kept", "x": 1}), "what is there is not overwritten");
    let wrong = r#"{"type":"entity","name":"Cy","entityType":"t","properties":{"a":[],"b":2}}"#;
    let told = ask(&other, "import_graph", json!({"jsonl": wrong})).await;
    assert_eq!(
        told["problems"][0]["problem"],
        "properties.a: must be a string, a number, true, false or null"
    );
    let opened = ask(&other, "open_nodes", json!({"names": ["Cy"]})).await;
    assert_eq!(opened["entities"][0]["properties"], json!({"b": 2}));

    let merged = ask(&memory, "merge_entities", json!({"from": "Bob", "into": "Ann"})).await;
    assert_eq!(merged["movedProperties"], 1);
    assert_eq!(now(&memory).await, json!({"email": "ann@example.com", "team": "tide"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_stays_whatever_becomes_of_the_name() {
    let folder = Folder::new();
    let memory = folder.server();
    let bob = json!({"name": "Bob", "entityType": "person", "observations": []});
    ask(&memory, "create_entities", json!({"entities": [ann(), bob]})).await;
    let (ann_id, bob_id) = (id_of(&memory, "Ann").await, id_of(&memory, "Bob").await);
    assert_ne!(ann_id, bob_id);
    ask(&memory, "update_entity", json!({"name": "Ann", "newName": "Anna", "entityType": "friend"})).await;
    assert_eq!(id_of(&memory, "Anna").await, ann_id);
    let found = ask(&memory, "lookup_entity", json!({"entity_id": ann_id})).await;
    assert_eq!((&found["entity"]["name"], &found["lookup_mode"]), (&json!("Anna"), &json!("exact")));
    ask(&memory, "undo", json!({})).await;
    assert_eq!(id_of(&memory, "Ann").await, ann_id);
    // Deleted, it is found under no id, and comes back with its own.
    ask(&memory, "delete_entities", json!({"entityNames": ["Ann"]})).await;
    let gone = ask(&memory, "lookup_entity", json!({"entity_id": ann_id})).await;
    assert_eq!(gone["found"], false);
    ask(&memory, "undo", json!({})).await;
    assert_eq!(id_of(&memory, "Ann").await, ann_id);
    let history = ask(&memory, "get_entity_history", json!({"entityName": "Ann"})).await;
    assert!(
        history["history"].as_array().unwrap().iter().all(|version| version["id"] == *ann_id),
        "{history}"
    );
    for (tool, arguments, place) in [
        ("list_entities", json!({"prefix": "Ann"}), "/entities/0/id"),
        ("traverse_graph", json!({"from": "Ann"}), "/entities/0/id"),
        ("open_nodes", json!({"names": ["Ann"]}), "/ids/Ann"),
        ("set_properties", json!({"entityName": "Ann", "properties": {}}), "/id"),
        ("update_entity", json!({"name": "Ann", "entityType": "person"}), "/entity/id"),
    ] {
        let told = ask(&memory, tool, arguments).await;
        assert_eq!(told.pointer(place), Some(&json!(ann_id)), "{tool}: {told}");
    }
    // What server-memory has is as it is there.
    let graph = ask(&memory, "read_graph", json!({})).await;
    assert_eq!(graph["entities"][0], ann());

    let exported = ask(&memory, "export_graph", json!({"history": true})).await;
    let second = Folder::new();
    let other = second.server();
    let third = json!({"entities": [{"name": "x", "entityType": "t"}], "tenant_id": "another"});
    ask(&other, "create_entities", third).await;
    ask(&other, "import_graph", json!({"jsonl": exported["jsonl"]})).await;
    assert_eq!((id_of(&other, "Ann").await, id_of(&other, "Bob").await), (ann_id.clone(), bob_id));
    // A file of the first format has no ids: the entities get new ones.
    let jsonl = exported["jsonl"].as_str().unwrap();
    let older: Vec<String> = jsonl
        .lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let members = line.as_object_mut().unwrap();
            members.remove("uid");
            if members.contains_key("version") && members["type"] == "memory" {
                members.insert("version".to_owned(), json!(1));
            }
            line.to_string()
        })
        .collect();
    let third = Folder::new();
    let other = third.server();
    ask(&other, "import_graph", json!({"jsonl": older.join("\n")})).await;
    assert_ne!(id_of(&other, "Ann").await, ann_id);
    assert_eq!(ask(&other, "read_graph", json!({})).await, ask(&memory, "read_graph", json!({})).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_brings_a_bounded_number_of_properties() {
    let folder = Folder::new();
    let memory = folder.server();
    let entity = |at: usize, count: usize| {
        let properties: serde_json::Map<_, _> =
            (0..count).map(|key| (format!("k{key}"), json!(at))).collect();
        json!({"name": format!("e{at}"), "entityType": "t", "observations": [], "properties": properties})
    };
    // 156 entities with 64 each are 9,984.
    let mut entities: Vec<Value> = (0..156).map(|at| entity(at, 64)).collect();
    let lines = |entities: &[Value]| {
        let line = |entity: &Value| {
            let mut line = entity.clone();
            line["type"] = "entity".into();
            line.to_string()
        };
        entities.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    entities.push(entity(156, 17));
    let said = refused(&memory, "create_entities", json!({"entities": entities})).await;
    assert_eq!(said, "entities: must have at most 10000 properties in all, and has 10001: use several calls");
    let said = refused(&memory, "import_graph", json!({"jsonl": lines(&entities)})).await;
    assert_eq!(
        said,
        "jsonl: must have at most 10000 properties in one call, and has 10001; import it in parts, or use `tidegate \
         memory import FILE`"
    );
    let many: Vec<Value> = (0..10_001).map(|at| entity(at, 0)).collect();
    let said = refused(&memory, "import_graph", json!({"jsonl": lines(&many)})).await;
    assert!(
        said.starts_with("jsonl: must have at most 10000 entities in one call, and has 10001;"),
        "{said}"
    );

    // As many as may be can be taken back, and that again.
    entities.pop();
    let made = ask(&memory, "import_graph", json!({"jsonl": lines(&entities)})).await;
    assert_eq!((&made["entities"], &made["properties"]), (&json!(156), &json!(9_984)));
    let undone = ask(&memory, "undo", json!({})).await;
    assert_eq!(undone["removed"]["properties"], 9_984);
    let changes = ask(&memory, "list_changes", json!({"limit": 1})).await;
    let redone = ask(&memory, "undo", json!({"change": changes["changes"][0]["id"]})).await;
    assert_eq!(
        (&redone["restored"]["entities"], &redone["restored"]["properties"]),
        (&json!(156), &json!(9_984))
    );
    assert_eq!(
        ask(&memory, "open_nodes", json!({"names": ["e7"]})).await["entities"][0]["properties"],
        entities[7]["properties"]
    );

    // What is exported can be imported, part by part.
    ask(&memory, "create_entities", json!({"entities": [entity(156, 64)]})).await;
    let first = ask(&memory, "export_graph", json!({})).await;
    assert_eq!((&first["entities"], &first["properties"]), (&json!(156), &json!(9_984)));
    let second = ask(&memory, "export_graph", json!({"cursor": first["nextCursor"]})).await;
    assert_eq!((&second["entities"], &second["nextCursor"]), (&json!(1), &Value::Null));
    let (folder, all) = (Folder::new(), [first, second]);
    let copy = folder.server();
    for part in all {
        ask(&copy, "import_graph", json!({"jsonl": part["jsonl"]})).await;
    }
    assert_eq!(ask(&copy, "export_graph", json!({})).await["entities"], 156);
}
