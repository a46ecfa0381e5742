//! The graph through its tools, as a client calls them.

use serde_json::json;
use tidegate_memory::Store;
use tidegate_protocol::Method;

use crate::rig::{Folder, ann, ask, call_as, on_postgres, refused, request};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_is_known_and_survives_a_restart() {
    let folder = Folder::new();
    let memory = folder.server();
    let made = ask(
        &memory,
        "create_entities",
        json!({"entities": [ann(), {"name": "Acme", "entityType": "company", "observations": []}]}),
    )
    .await;
    assert_eq!(made["entities"][0], ann());
    assert_eq!(made["created"], 2);
    let again = ask(
        &memory,
        "create_entities",
        json!({"entities": [{"name": "Ann", "entityType": "x", "observations": ["y"]}]}),
    )
    .await;
    assert_eq!(again["entities"], json!([]), "what is known is left as it is");
    let relation = json!({"from": "Ann", "to": "Acme", "relationType": "works_at"});
    ask(&memory, "create_relations", json!({"relations": [relation, relation]})).await;
    let added = ask(
        &memory,
        "add_observations",
        json!({"observations": [{"entityName": "Ann", "contents": ["likes tea", "plays chess"]}]}),
    )
    .await;
    assert_eq!(added["results"], json!([{"entityName": "Ann", "addedObservations": ["plays chess"]}]));
    let flat =
        ask(&memory, "add_observations", json!({"entityName": "Acme", "contents": ["makes anvils"]})).await;
    assert_eq!(flat["results"][0]["addedObservations"], json!(["makes anvils"]));
    drop(memory);

    let memory = folder.server();
    let graph = ask(&memory, "read_graph", json!({})).await;
    assert_eq!(
        graph,
        json!({
            "entities": [
                {"name": "Ann", "entityType": "person", "observations": ["likes tea", "lives in Kiel", "plays chess"]},
                {"name": "Acme", "entityType": "company", "observations": ["makes anvils"]},
            ],
            "relations": [relation],
        })
    );
    for (query, names) in [
        ("KIEL", vec!["Ann"]),
        ("a", vec!["Ann", "Acme"]),
        ("anvil", vec!["Acme"]),
        ("%", vec![]),
        ("chess tea", vec!["Ann"]),
        ("tea \" OR *", vec!["Ann"]),
        ("tea's", vec!["Ann"]),
    ] {
        let found = ask(&memory, "search_nodes", json!({"query": query})).await;
        let found: Vec<_> =
            found["entities"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
        assert_eq!(found, names, "{query}");
    }
    let opened = ask(&memory, "open_nodes", json!({"names": ["Acme", "Nobody"]})).await;
    assert_eq!((opened["entities"].as_array().unwrap().len(), &opened["relations"]), (1, &json!([relation])));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_is_gone_and_can_be_looked_up() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let relation = json!({"from": "Ann", "to": "Ann", "relationType": "knows", "strength": 0.5});
    ask(&memory, "create_relations", json!({"relations": [relation]})).await;
    let then = tidegate_service::epoch_ms();
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    ask(&memory, "delete_observations", json!({"deletions": [{"entityName": "Ann", "observations": ["likes tea", "never said"]}, {"entityName": "Nobody", "observations": ["x"]}]})).await;
    ask(
        &memory,
        "update_relation",
        json!({"from": "Ann", "to": "Ann", "relationType": "knows", "strength": 0.9}),
    )
    .await;
    let gone = ask(&memory, "delete_entities", json!({"entityNames": ["Ann", "Nobody"]})).await;
    assert_eq!(
        gone,
        json!({"success": true, "message": "Entities deleted successfully", "deleted": 1, "entityNames": ["Ann"]})
    );
    assert_eq!(ask(&memory, "read_graph", json!({})).await, json!({"entities": [], "relations": []}));

    let history = ask(&memory, "get_entity_history", json!({"entityName": "Ann"})).await;
    let versions: Vec<_> =
        history["history"].as_array().unwrap().iter().map(|v| v["observations"].clone()).collect();
    assert_eq!(versions, [json!(["likes tea", "lives in Kiel"]), json!(["lives in Kiel"])]);
    assert_eq!(history["history"][0]["changedBy"], "tester");
    assert!(history["history"][1]["validTo"].is_i64(), "it was deleted");
    let history =
        ask(&memory, "get_relation_history", json!({"from": "Ann", "to": "Ann", "relationType": "knows"}))
            .await;
    let strengths: Vec<_> =
        history["history"].as_array().unwrap().iter().map(|v| v["strength"].as_f64().unwrap()).collect();
    assert_eq!(strengths, [0.5, 0.9]);
    let graph = ask(&memory, "get_graph_at_time", json!({"timestamp": then})).await;
    assert_eq!(graph["graph"], json!({"entities": [ann()], "relations": [relation]}));
    let before = ask(&memory, "get_graph_at_time", json!({"timestamp": 1})).await;
    assert_eq!(before["graph"]["entities"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_server_memory_come_in_and_go_out() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let file = concat!(
        r#"{"type":"entity","name":"Ann","entityType":"x","observations":["likes tea","plays chess"]}"#,
        "\n",
        r#"{"type":"entity","name":"Acme","entityType":"company","observations":[]}"#,
        "\n",
        r#"{"type":"relation","from":"Ann","to":"Acme","relationType":"works_at"}"#,
    );
    for new in [1, 0] {
        let counts = ask(&memory, "import_graph", json!({"jsonl": file})).await;
        let wanted = json!({"entities": new, "observations": new, "relations": new, "skipped": 0});
        assert_eq!(counts, wanted, "twice is as good as once");
    }
    let out = ask(&memory, "export_graph", json!({})).await;
    let other = Folder::new();
    let copy = other.server();
    ask(&copy, "import_graph", json!({"jsonl": out["jsonl"]})).await;
    assert_eq!(ask(&copy, "read_graph", json!({})).await, ask(&memory, "read_graph", json!({})).await);
    let why = refused(&memory, "import_graph", json!({"strict": true, "jsonl": "{\"type\":\"entity\",\"name\":\"New\",\"entityType\":\"t\",\"observations\":[]}\nx"})).await;
    assert!(why.contains("line 2"), "{why}");
    let found = ask(&memory, "open_nodes", json!({"names": ["New"]})).await;
    assert_eq!(found["entities"], json!([]), "all of it or nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn confidence_fades_as_asked() {
    let folder = Folder::new();
    let memory = folder.server();
    let relation = json!({"from": "a", "to": "b", "relationType": "r", "confidence": 0.8});
    ask(&memory, "create_relations", json!({"relations": [relation]})).await;
    let day = 86_400_000;
    let now = tidegate_service::epoch_ms() as i64;
    for (arguments, left) in [
        (json!({}), 0.8),
        (json!({"reference_time": now + 30 * day}), 0.4),
        (json!({"reference_time": now + 30 * day, "decay_factor": 2}), 0.2),
        (json!({"reference_time": now + 10 * day, "half_life_days": 10}), 0.4),
        (json!({"reference_time": now + 10_000 * day, "min_confidence": 0.3}), 0.3),
    ] {
        let graph = ask(&memory, "get_decayed_graph", arguments.clone()).await;
        let found = graph["relations"][0]["confidence"].as_f64().unwrap();
        assert!((found - left).abs() < 0.001, "{arguments}: {found}");
    }
    let why = refused(&memory, "get_decayed_graph", json!({"decay_factor": 0})).await;
    assert!(why.contains("decay_factor"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_have_nothing_of_each_other() {
    let folder = Folder::new();
    let memory = folder.server();
    call_as(&memory, Some("one"), "create_entities", json!({"entities": [ann()]})).await;
    for tenant in [
        Some("two"),
        None,
        Some("ONE"),
        Some("~one"),
        Some("default"),
        Some("~default"),
        Some("one' OR 1=1 --"),
    ] {
        let result = call_as(&memory, tenant, "search_nodes", json!({"query": "a"})).await;
        assert_eq!(result["structuredContent"]["entities"], json!([]), "{tenant:?}");
        let result = call_as(&memory, tenant, "get_entity_history", json!({"entityName": "Ann"})).await;
        assert_eq!(result["isError"], json!(true), "{tenant:?}");
    }
    let result = call_as(&memory, Some("one"), "read_graph", json!({})).await;
    assert_eq!(result["structuredContent"]["entities"], json!([ann()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_with_the_field_and_changes_nothing() {
    let folder = Folder::new();
    let memory = folder.server();
    let long = "x".repeat(5_001);
    for (tool, arguments, field) in [
        (
            "create_entities",
            json!({"entities": [ann(), {"name": " ", "entityType": "t", "observations": []}]}),
            "entities[1].name",
        ),
        (
            "create_entities",
            json!({"entities": [{"name": "x".repeat(201), "entityType": "t", "observations": []}]}),
            "at most 200",
        ),
        (
            "create_entities",
            json!({"entities": [{"name": "B", "entityType": "t", "observations": [long]}]}),
            "entities[0].observations[0]",
        ),
        (
            "add_observations",
            json!({"observations": [{"entityName": "Nobody", "contents": ["x"]}]}),
            "Entity with name Nobody not found",
        ),
        ("add_observations", json!({"contents": ["x"]}), "entityName"),
        (
            "create_relations",
            json!({"relations": [{"from": "a", "to": "b", "relationType": "r", "strength": 1.5}]}),
            "strength",
        ),
        ("update_relation", json!({"from": "a", "to": "b", "relationType": "r"}), "Relation a r b not found"),
        ("get_relations", json!({"entityName": "Nobody"}), "Nobody"),
        ("get_entity_history", json!({"entityName": "Nobody"}), "Nobody"),
    ] {
        let why = refused(&memory, tool, arguments).await;
        assert!(why.contains(field), "{tool}: {why}");
    }
    assert_eq!(ask(&memory, "read_graph", json!({})).await, json!({"entities": [], "relations": []}));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    if on_postgres() {
        return;
    }
    let folder = Folder::new();
    let below = folder.path().join("below");
    let memory = tidegate_memory::server(Store::open(below.join("memory.db")).unwrap());
    ask(&memory, "read_graph", json!({})).await;
    for (path, mode) in [(below.clone(), 0o700), (below.join("memory.db"), 0o600)] {
        let found = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{}", path.display());
    }
}

#[test]
fn a_file_that_is_no_memory_is_refused_with_a_sentence() {
    let folder = Folder::new();
    std::fs::write(
        folder.path().join("memory.db"),
        "not a database, but long enough to look like one".repeat(40),
    )
    .unwrap();
    let fault = Store::open(folder.path().join("memory.db")).err().unwrap();
    assert!(fault.message.contains("It is not a Tidegate memory"), "{fault}");
    let damaged = [&b"SQLite format 3\0"[..], &[0xff; 4_096]].concat();
    std::fs::write(folder.path().join("memory.db"), damaged).unwrap();
    let fault = Store::open(folder.path().join("memory.db")).err().unwrap();
    assert!(fault.message.contains("corrupt"), "{fault}");
    let fault = Store::open("/proc/nowhere/memory.db").err().unwrap();
    assert!(fault.message.contains("/proc/nowhere/memory.db cannot be created"), "{fault}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_and_two_processes_on_one_file() {
    let folder = Folder::new();
    let (one, two) = (folder.server(), folder.server());
    ask(
        &one,
        "create_entities",
        json!({"entities": [{"name": "log", "entityType": "t", "observations": []}]}),
    )
    .await;
    let mut calls = Vec::new();
    for n in 0..100 {
        let memory = if n % 2 == 0 { one.clone() } else { two.clone() };
        calls.push(tokio::spawn(async move {
            ask(&memory, "add_observations", json!({"entityName": "log", "contents": [format!("entry {n}")]}))
                .await
        }));
    }
    for call in calls {
        assert_eq!(call.await.unwrap()["results"][0]["addedObservations"].as_array().unwrap().len(), 1);
    }
    let graph = ask(&two, "open_nodes", json!({"names": ["log"]})).await;
    assert_eq!(graph["entities"][0]["observations"].as_array().unwrap().len(), 100);
    let history = ask(&one, "get_entity_history", json!({"entityName": "log"})).await;
    assert_eq!(history["totalVersions"], 101);
    // Whoever wrote it, what came later held later.
    let moments: Vec<i64> = history["history"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|version| [&version["validFrom"], &version["validTo"]])
        .filter_map(serde_json::Value::as_i64)
        .collect();
    assert!(moments.is_sorted(), "{moments:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_stays_within_its_bounds_piece_by_piece() {
    let folder = Folder::new();
    let memory = folder.server();
    let relation = json!({"from": "a", "to": "b", "relationType": "r"});
    ask(&memory, "create_relations", json!({"relations": [relation]})).await;
    let with = |n: usize| json!({"from": "a", "to": "b", "relationType": "r", "metadata": {format!("k{n}"): "x".repeat(10_000)}});
    ask(&memory, "update_relation", with(1)).await;
    let said = refused(&memory, "update_relation", with(2)).await;
    assert!(said.contains("metadata") && said.contains("16384"), "{said}");
    ask(&memory, "update_relation", with(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_takes_a_name_has_a_history_in_order() {
    let folder = Folder::new();
    let memory = folder.server();
    for name in ["D", "H"] {
        let entities = json!([{"name": name, "entityType": "t", "observations": [format!("of {name}")]}]);
        ask(&memory, "create_entities", json!({"entities": entities})).await;
    }
    ask(&memory, "delete_entities", json!({"entityNames": ["H"]})).await;
    ask(&memory, "update_entity", json!({"name": "D", "newName": "H"})).await;
    let told = ask(&memory, "get_entity_history", json!({"entityName": "H"})).await;
    let versions = told["history"].as_array().unwrap();
    let names: Vec<_> = versions.iter().map(|version| version["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["D", "H", "H"]);
    let known = |n: usize| versions[n]["observations"][0].as_str().unwrap();
    assert_eq!([known(0), known(1), known(2)], ["of D", "of H", "of D"]);
    assert_eq!(versions[0]["validTo"], versions[2]["validFrom"]);
    assert!(versions[2]["validTo"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_database_keeps_is_refused_and_not_found() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    for (tool, arguments, field) in [
        ("add_observations", json!({"entityName": "Ann", "contents": ["a\0b"]}), "contents[0]"),
        (
            "create_entities",
            json!({"entities": [{"name": "Bob", "entityType": "t", "observations": ["\0"]}]}),
            "entities[0].observations[0]",
        ),
        ("delete_entities", json!({"entityNames": ["a\0b"]}), "text"),
    ] {
        let why = refused(&memory, tool, arguments).await;
        assert!(why.contains(&format!("{field}: must not contain the character U+0000")), "{why}");
    }
    // In metadata it is written as JSON writes it, and stays.
    let relation = json!({"from": "Ann", "to": "Ann", "relationType": "is", "metadata": {"a\0": "\0"}});
    ask(&memory, "create_relations", json!({"relations": [relation]})).await;
    let graph = ask(&memory, "read_graph", json!({})).await;
    assert_eq!(graph["entities"], json!([ann()]));
    assert_eq!(graph["relations"][0]["metadata"], json!({"a\0": "\0"}));
    for (tool, arguments) in [
        ("open_nodes", json!({"names": ["Ann\0"]})),
        ("search_nodes", json!({"query": "tea\0"})),
        ("search_nodes", json!({"query": "\0"})),
    ] {
        let found = ask(&memory, tool, arguments.clone()).await;
        let names = found["entities"].as_array().unwrap();
        // What stands between words is no part of them.
        assert_eq!(names.len(), usize::from(arguments["query"] == "tea\0"), "{tool} {arguments}: {found}");
    }
    let why = refused(&memory, "get_entity_history", json!({"entityName": "Ann\0"})).await;
    assert!(why.contains("not found"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_begin_as_they_are_typed() {
    let folder = Folder::new();
    let memory = folder.server();
    let named = |name: &str| json!({"name": name, "entityType": "t", "observations": []});
    ask(
        &memory,
        "create_entities",
        json!({"entities": [named("Äpfel_1"), named("ÄPFEL 2"), named("äpfel")]}),
    )
    .await;
    // Letters without marks may be capitals or not, those with them are what they are.
    for (prefix, total) in [("Ä", 2), ("äp", 1), ("Äpf", 2), ("Äpfel_", 1), ("ÄPFEL 2", 1), ("p", 0)] {
        let listed = ask(&memory, "list_entities", json!({"prefix": prefix})).await;
        assert_eq!(listed["total"], total, "{prefix}");
        let typed = json!({
            "ref": {"type": "ref/resource", "uri": "memory://entities/{name}{?tenant_id}"},
            "argument": {"name": "name", "value": prefix},
        });
        let completed = request(&memory, None, Method::Complete, typed).await.unwrap();
        assert_eq!(
            completed["completion"]["values"].as_array().unwrap().len(),
            total,
            "{prefix}: {completed}"
        );
    }
}
