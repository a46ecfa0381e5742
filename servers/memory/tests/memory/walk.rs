//! Going through the graph: walks, paths, lists and parts.

use serde_json::{Value, json};
use tidegate_server::ServerDoor;

use crate::rig::{Folder, ask, call_as, refused};

/// A chain a → b → c → d with a way back, a side arm of another type, and an end that is no entity.
async fn chain() -> (Folder, ServerDoor) {
    let folder = Folder::new();
    let memory = folder.server();
    let entity = |name: &str, kind: &str| json!({"name": name, "entityType": kind, "observations": [format!("is {name}")]});
    let entities: Vec<_> = ["a", "b", "c", "d"].map(|name| entity(name, "stop")).to_vec();
    ask(&memory, "create_entities", json!({"entities": entities})).await;
    ask(&memory, "create_entities", json!({"entities": [entity("side", "siding"), entity("alone", "stop")]}))
        .await;
    let relation = |from: &str, to: &str, kind: &str| json!({"from": from, "to": to, "relationType": kind});
    let relations = json!([
        relation("a", "b", "next"),
        relation("b", "c", "next"),
        relation("c", "d", "next"),
        relation("d", "a", "next"),
        relation("b", "b", "knows"),
        relation("b", "side", "branches"),
        relation("b", "nobody", "next"),
    ]);
    ask(&memory, "create_relations", json!({"relations": relations})).await;
    (folder, memory)
}

fn reached(walked: &Value) -> Vec<(String, u64)> {
    let entities = walked["entities"].as_array().unwrap();
    entities.iter().map(|e| (e["name"].as_str().unwrap().to_owned(), e["depth"].as_u64().unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_goes_as_far_as_asked_and_ends_in_circles() {
    let (_folder, memory) = chain().await;
    for (arguments, names) in [
        (json!({"from": "a", "depth": 1, "direction": "out"}), vec![("a", 0), ("b", 1)]),
        (json!({"from": "a", "depth": 1, "direction": "in"}), vec![("a", 0), ("d", 1)]),
        (json!({"from": "a", "depth": 1}), vec![("a", 0), ("b", 1), ("d", 1)]),
        (
            json!({"from": "a", "depth": 10, "direction": "out"}),
            vec![("a", 0), ("b", 1), ("c", 2), ("side", 2), ("d", 3)],
        ),
        (
            json!({"from": "a", "direction": "out", "relationTypes": ["next"]}),
            vec![("a", 0), ("b", 1), ("c", 2), ("d", 3)],
        ),
        (json!({"from": "side", "entityTypes": ["siding"]}), vec![("side", 0)]),
        (
            json!({"from": ["c", "side", "c"], "depth": 1, "direction": "out"}),
            vec![("c", 0), ("side", 0), ("d", 1)],
        ),
        (json!({"from": "alone"}), vec![("alone", 0)]),
    ] {
        let walked = ask(&memory, "traverse_graph", arguments.clone()).await;
        let names: Vec<_> = names.into_iter().map(|(name, depth)| (name.to_owned(), depth)).collect();
        assert_eq!(reached(&walked), names, "{arguments}");
        assert_eq!(walked["truncated"], false, "{arguments}");
    }
    let walked = ask(&memory, "traverse_graph", json!({"from": "a", "depth": 10, "direction": "out"})).await;
    assert_eq!(walked["relations"].as_array().unwrap().len(), 6, "the one to nobody leads nowhere");
    assert_eq!(walked["entities"][0]["observations"], json!(["is a"]));
    let some = ask(&memory, "traverse_graph", json!({"from": "a", "depth": 3, "limit": 2})).await;
    assert_eq!((reached(&some).len(), &some["truncated"]), (2, &json!(true)));
    assert_eq!(some["relations"].as_array().unwrap().len(), 2, "only between those that are told: {some}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shortest_path_is_found_in_either_direction() {
    let (_folder, memory) = chain().await;
    for (arguments, path) in [
        (json!({"from": "a", "to": "c", "direction": "out"}), Some(vec!["a", "b", "c"])),
        (json!({"from": "a", "to": "d"}), Some(vec!["a", "d"])),
        (json!({"from": "a", "to": "d", "direction": "out"}), Some(vec!["a", "b", "c", "d"])),
        (json!({"from": "a", "to": "d", "direction": "out", "maxDepth": 2}), None),
        (json!({"from": "side", "to": "d", "direction": "in"}), Some(vec!["side", "b", "a", "d"])),
        (json!({"from": "side", "to": "d", "relationTypes": ["next"]}), None),
        (json!({"from": "b", "to": "b"}), Some(vec!["b"])),
        (json!({"from": "a", "to": "alone", "maxDepth": 10}), None),
    ] {
        let found = ask(&memory, "find_path", arguments.clone()).await;
        assert_eq!(found["found"], path.is_some(), "{arguments}");
        let path = path.unwrap_or_default();
        assert_eq!(found["path"], json!(path), "{arguments}");
        assert_eq!(found["relations"].as_array().unwrap().len(), path.len().saturating_sub(1), "{arguments}");
    }
    let found = ask(&memory, "find_path", json!({"from": "side", "to": "d", "direction": "in"})).await;
    assert_eq!(found["relations"][0], json!({"from": "b", "to": "side", "relationType": "branches"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_is_not_looked_at_without_end() {
    let folder = Folder::new();
    let memory = folder.server();
    let line = |n| format!(r#"{{"type":"relation","from":"hub","to":"n{n}","relationType":"r"}}"#);
    let lines: Vec<_> = (0..20_500).map(line).collect();
    for part in lines.chunks(10_000) {
        ask(&memory, "import_graph", json!({"jsonl": part.join("\n")})).await;
    }
    let ends = ["hub", "n1", "far"].map(|name| json!({"name": name, "entityType": "t", "observations": []}));
    ask(&memory, "create_entities", json!({"entities": ends})).await;
    let walked = ask(&memory, "traverse_graph", json!({"from": "hub"})).await;
    assert_eq!(walked["truncated"], true);
    let found = ask(&memory, "find_path", json!({"from": "n1", "to": "hub"})).await;
    assert_eq!(found["length"], 1);
    let found = ask(&memory, "find_path", json!({"from": "hub", "to": "far"})).await;
    assert_eq!((&found["found"], &found["truncated"]), (&json!(false), &json!(false)), "nothing leads there");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_come_in_parts() {
    let (_folder, memory) = chain().await;
    ask(&memory, "add_observations", json!({"entityName": "b", "contents": ["was seen", "was heard"]})).await;
    let mut names = Vec::new();
    let mut cursor = None;
    loop {
        let mut arguments = json!({"limit": 4});
        if let Some(cursor) = &cursor {
            arguments["cursor"] = json!(cursor);
        }
        let part = ask(&memory, "list_entities", arguments).await;
        assert_eq!(part["total"], 6);
        names.extend(part["entities"].as_array().unwrap().clone());
        cursor = part["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    let only: Vec<_> = names.iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(only, ["a", "alone", "b", "c", "d", "side"]);
    assert_eq!((&names[2]["observations"], &names[2]["version"]), (&json!(3), &json!(2)));
    assert!(names[2]["updatedAt"].as_i64().unwrap() >= names[0]["updatedAt"].as_i64().unwrap());
    for (arguments, total) in [
        (json!({"entityType": "stop"}), 5),
        (json!({"entityType": "siding"}), 1),
        (json!({"prefix": "A"}), 2),
        (json!({"prefix": "a", "entityType": "siding"}), 0),
        (json!({"prefix": "%"}), 0),
        (json!({"prefix": "a\0"}), 0),
        (json!({"entityType": "\0"}), 0),
    ] {
        assert_eq!(ask(&memory, "list_entities", arguments.clone()).await["total"], total, "{arguments}");
    }
    let types = ask(&memory, "list_entity_types", json!({})).await;
    let wanted = json!([{"entityType": "stop", "count": 5}, {"entityType": "siding", "count": 1}]);
    assert_eq!(types["types"], wanted);
    let theirs = call_as(&memory, Some("other"), "list_entities", json!({})).await;
    assert_eq!(theirs["structuredContent"], json!({"entities": [], "total": 0}));
    let theirs = call_as(&memory, Some("other"), "traverse_graph", json!({"from": "a"})).await;
    assert_eq!(theirs["isError"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_graph_comes_in_parts_and_each_thing_once() {
    let (_folder, memory) = chain().await;
    let whole = ask(&memory, "read_graph", json!({})).await;
    assert_eq!(whole.get("nextCursor"), None);
    for limit in [1, 2, 3, 6, 7, 12, 13, 14] {
        let (mut entities, mut relations, mut cursor, mut parts) = (Vec::new(), Vec::new(), Value::Null, 0);
        loop {
            let mut arguments = json!({"limit": limit});
            if cursor.is_string() {
                arguments["cursor"] = cursor;
            }
            let part = ask(&memory, "read_graph", arguments).await;
            let (more, others) =
                (part["entities"].as_array().unwrap(), part["relations"].as_array().unwrap());
            assert!(more.len() + others.len() <= limit && parts < 14, "{part}");
            entities.extend(more.clone());
            relations.extend(others.clone());
            parts += 1;
            cursor = part["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(json!({"entities": entities, "relations": relations}), whole, "{limit}");
    }
    let now = tidegate_service::epoch_ms();
    tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    ask(&memory, "delete_entities", json!({"entityNames": ["a"]})).await;
    for (arguments, entities, relations, more) in [
        (json!({"timestamp": now, "limit": 9}), 6, 3, true),
        (json!({"timestamp": now, "limit": 9, "cursor": "e6"}), 0, 7, false),
        (json!({"timestamp": 1, "limit": 9}), 0, 0, false),
    ] {
        let then = ask(&memory, "get_graph_at_time", arguments.clone()).await["graph"].clone();
        let counts = ["entities", "relations"].map(|member| then[member].as_array().unwrap().len());
        assert_eq!((counts, then["nextCursor"].is_string()), ([entities, relations], more), "{arguments}");
    }
    let later = json!({"reference_time": now + 30 * 86_400_000, "limit": 6});
    let faded = ask(&memory, "get_decayed_graph", later).await;
    let left = faded["relations"][0]["confidence"].as_f64().unwrap();
    assert!((left - 0.5).abs() < 0.001, "{faded}");
    let some = ask(&memory, "get_relations", json!({"entityName": "b", "limit": 3})).await;
    assert_eq!((some["relations"].as_array().unwrap().len(), &some["truncated"]), (3, &json!(true)));
    let all = ask(&memory, "get_relations", json!({"entityName": "b"})).await;
    assert_eq!((all["relations"].as_array().unwrap().len(), &all["truncated"]), (4, &json!(false)));
    let out = ask(&memory, "get_relations", json!({"entityName": "b", "relationType": "branches"})).await;
    assert_eq!(out["relations"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_walked_is_refused_with_the_field() {
    let (_folder, memory) = chain().await;
    for (tool, arguments, field) in [
        ("traverse_graph", json!({"from": "Nobody"}), "Entity with name Nobody not found"),
        ("traverse_graph", json!({"from": []}), "from"),
        ("traverse_graph", json!({"from": "a", "depth": 11}), "depth: must be between 1 and 10, not 11"),
        ("traverse_graph", json!({"from": "a", "limit": 501}), "limit"),
        ("traverse_graph", json!({"from": "a", "direction": "up"}), "direction"),
        ("traverse_graph", json!({"from": vec!["a"; 101]}), "from: must have at most 100"),
        ("find_path", json!({"from": "a", "to": "Nobody"}), "Nobody"),
        ("find_path", json!({"from": "a", "to": "b", "maxDepth": -1}), "maxDepth"),
        ("list_entities", json!({"limit": 0}), "limit"),
        ("read_graph", json!({"limit": 1001}), "limit"),
        ("read_graph", json!({"cursor": "x"}), "cursor"),
    ] {
        let why = refused(&memory, tool, arguments).await;
        assert!(why.contains(field), "{tool}: {why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_goes_over_entities_only() {
    let folder = Folder::new();
    let memory = folder.server();
    let entities: Vec<Value> = ["a", "b"].map(|name| json!({"name": name, "entityType": "t"})).to_vec();
    ask(&memory, "create_entities", json!({"entities": entities})).await;
    let relations = [("a", "nobody"), ("nobody", "b")]
        .map(|(from, to)| json!({"from": from, "to": to, "relationType": "r"}));
    ask(&memory, "create_relations", json!({"relations": relations})).await;
    let found = ask(&memory, "find_path", json!({"from": "a", "to": "b"})).await;
    assert_eq!(found["found"], false, "{found}");
    ask(&memory, "create_entities", json!({"entities": [{"name": "nobody", "entityType": "t"}]})).await;
    let found = ask(&memory, "find_path", json!({"from": "a", "to": "b"})).await;
    assert_eq!(found["path"], json!(["a", "nobody", "b"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_is_none_is_refused() {
    let folder = Folder::new();
    let memory = folder.server();
    for cursor in ["bad", "", "zzz"] {
        let said = refused(&memory, "list_entities", json!({"cursor": cursor})).await;
        assert_eq!(said, "cursor: is not a cursor that this tool returned");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_of_a_relation_is_told_in_parts() {
    let folder = Folder::new();
    let memory = folder.server();
    let relation = |strength: f64| json!({"from": "a", "to": "b", "relationType": "r", "strength": strength});
    ask(&memory, "create_relations", json!({"relations": [relation(0.0)]})).await;
    for version in 1..6 {
        ask(&memory, "update_relation", relation(f64::from(version) / 10.0)).await;
    }
    let part = async |more: Value| {
        let mut arguments = json!({"from": "a", "to": "b", "relationType": "r", "limit": 2});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let told = ask(&memory, "get_relation_history", arguments).await;
        assert_eq!(told["totalVersions"], 6);
        let versions = told["history"].as_array().unwrap().iter();
        versions.map(|version| version["version"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(part(json!({})).await, [5, 6]);
    assert_eq!(part(json!({"beforeVersion": 5})).await, [3, 4]);
    assert_eq!(part(json!({"before_version": 2})).await, [1]);
    assert_eq!(part(json!({"beforeVersion": 99})).await, [5, 6]);
    let arguments = json!({"from": "a", "to": "b", "relationType": "r", "beforeVersion": 0});
    let said = refused(&memory, "get_relation_history", arguments).await;
    assert!(said.starts_with("beforeVersion: "), "{said}");
}
