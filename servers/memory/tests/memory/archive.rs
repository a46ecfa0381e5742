//! Everything with its history, out of one memory and into another.

use serde_json::{Value, json};
use tidegate_server::ServerDoor;

use crate::rig::{Folder, ann, ask, call_as, refused};

fn agent(prompt: &str) -> Value {
    json!({
        "agent_name": "Pilot", "description": prompt, "tags": ["sea"], "tools": ["search_nodes"],
        "output_schema": {"type": "object", "properties": {"answer": {"type": "string"}}},
    })
}

/// Makes a history of everything, with deletions and with undoings that are undone.
pub(crate) async fn much(memory: &ServerDoor) {
    let last = async || ask(memory, "list_changes", json!({"limit": 1})).await["changes"][0]["id"].clone();
    let entity = |name: &str| json!({"name": name, "entityType": "t", "observations": ["old", "kept"]});
    ask(
        memory,
        "create_entities",
        json!({"entities": [ann(), entity("Bob"), entity("Zoë"), entity("brief")]}),
    )
    .await;
    let relation = |strength: f64| json!({"from": "Ann", "to": "Bob", "relationType": "knows", "strength": strength, "confidence": 0.8, "metadata": {"a": [1, "ü"]}});
    ask(
        memory,
        "create_relations",
        json!({"relations": [relation(0.1), {"from": "Bob", "to": "brief", "relationType": "r"}]}),
    )
    .await;
    ask(memory, "update_relation", relation(0.7)).await;
    ask(memory, "add_observations", json!({"entityName": "Ann", "contents": ["line\nbreak \"quoted\" 🦀"]}))
        .await;
    ask(memory, "update_entity", json!({"name": "Bob", "newName": "Robert", "entityType": "person"})).await;
    let properties = |properties: Value| json!({"entityName": "Ann", "properties": properties});
    ask(memory, "set_properties", properties(json!({"email": "ann@example.com", "born": 1990, "odd": 0.5})))
        .await;
    ask(memory, "set_properties", properties(json!({"email": "a@b.c", "born": null, "is \"tall\"": true})))
        .await;
    ask(memory, "set_properties", properties(json!({"odd": "even"}))).await;
    ask(memory, "undo", json!({})).await;
    ask(memory, "delete_entities", json!({"entityNames": ["brief", "Zoë"]})).await;
    ask(memory, "undo", json!({})).await;
    let undoing = last().await;
    ask(memory, "undo", json!({"change": undoing})).await;
    let section = |name: &str| format!("# {name}\n\n{}\n\n", format!("All about {name}. ").repeat(60));
    let first: String = ["one", "two", "three"].map(section).concat();
    let gone = ask(memory, "ingest_document", json!({"text": "a text that goes", "title": "Gone"})).await;
    ask(memory, "delete_document", json!({"id": gone["document"]["id"]})).await;
    let made =
        ask(memory, "ingest_document", json!({"text": first, "tags": ["n"], "metadata": {"x": 1.5}})).await;
    let id = made["document"]["id"].clone();
    let second: String = ["zero", "one", "three"].map(section).concat();
    ask(memory, "update_document", json!({"id": id, "text": second, "title": "Digits"})).await;
    ask(memory, "update_document", json!({"id": id, "text": "nothing left"})).await;
    ask(memory, "undo", json!({})).await;
    ask(memory, "create_agent", agent("Find the way.")).await;
    ask(memory, "update_agent", json!({"agent_name": "pilot", "description": "Know the stars."})).await;
    ask(memory, "delete_agent", json!({"agent_name": "pilot"})).await;
    ask(memory, "undo", json!({})).await;
    ask(memory, "delete_entities", json!({"entityNames": ["Robert"]})).await;
}

/// All that can be asked, without the numbers of changes, which are each memory's own.
pub(crate) async fn answers(memory: &ServerDoor) -> Vec<Value> {
    let mut all = vec![ask(memory, "read_graph", json!({})).await];
    let told = ask(memory, "list_changes", json!({"limit": 200})).await;
    let mut changes = told["changes"].as_array().unwrap().clone();
    changes.retain(|change| change["what"] != "import_graph");
    let ids: Vec<Value> = changes.iter().map(|change| change["id"].clone()).collect();
    for change in &mut changes {
        for member in ["id", "undoes", "undoneBy"] {
            change[member] = json!(ids.iter().position(|id| *id == change[member]));
        }
        all.push(ask(memory, "get_graph_at_time", json!({"timestamp": change["at"]})).await);
    }
    all.push(changes.into());
    for name in ["Ann", "Bob", "Robert", "Zoë", "brief"] {
        all.push(ask(memory, "get_entity_history", json!({"entityName": name})).await);
    }
    for (from, to, relation_type) in
        [("Ann", "Bob", "knows"), ("Ann", "Robert", "knows"), ("Bob", "brief", "r")]
    {
        let relation = json!({"from": from, "to": to, "relationType": relation_type});
        all.push(ask(memory, "get_relation_history", relation).await);
    }
    all.push(ask(memory, "get_decayed_graph", json!({"reference_time": 2_000_000_000_000_i64})).await);
    let documents = ask(memory, "list_documents", json!({})).await;
    let key: i64 = documents["documents"][0]["id"].as_str().unwrap()[4..].parse().unwrap();
    all.push(documents);
    for id in [key, key - 1] {
        let history = ask(memory, "get_document_history", json!({"id": format!("doc-{id}")})).await;
        for version in history["history"].as_array().unwrap() {
            let wanted = json!({"id": format!("doc-{id}"), "version": version["version"], "limit": 100_000});
            all.push(ask(memory, "get_document", wanted).await);
        }
        all.push(history);
    }
    all.push(ask(memory, "get_agent_history", json!({"agent_name": "pilot"})).await);
    all.push(ask(memory, "list_agents", json!({"query": "stars"})).await);
    all.push(ask(memory, "list_entities", json!({})).await);
    for query in ["tea kiel", "a@b.c", "zero", "two", "crab quoted", "goes", "nothing left"] {
        all.push(ask(memory, "search_nodes", json!({"query": query})).await);
        let mut found = ask(memory, "search_knowledge_base", json!({"query": query})).await;
        for hit in found["results"].as_array_mut().unwrap() {
            // Of equal hits any may be first, and which page a piece is on is each memory's own.
            hit.as_object_mut().unwrap().remove("score");
        }
        found["results"].as_array_mut().unwrap().sort_by_key(Value::to_string);
        all.push(found);
    }
    all
}

pub(crate) async fn exported(memory: &ServerDoor) -> String {
    let told = ask(memory, "export_graph", json!({"history": true})).await;
    told["jsonl"].as_str().unwrap().to_owned()
}

/// Both give the same answers.
pub(crate) async fn assert_same(one: &ServerDoor, other: &ServerDoor) {
    let (one, other) = (answers(one).await, answers(other).await);
    assert_eq!(one.len(), other.len());
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one, other);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_moves_with_its_history() {
    let (old, new) = (Folder::new(), Folder::new());
    let (from, to) = (old.server(), new.server());
    much(&from).await;
    let told = ask(&from, "export_graph", json!({"history": true})).await;
    let counts = json!([told["entities"], told["relations"], told["documents"], told["agents"]]);
    assert_eq!(counts, json!([1, 0, 1, 1]), "what is known now");
    let jsonl = told["jsonl"].as_str().unwrap();
    // Somebody else is there already, so that no number stays the same.
    call_as(
        &to,
        Some("other"),
        "create_entities",
        json!({"entities": [ann(), {"name": "x", "entityType": "t"}]}),
    )
    .await;
    call_as(&to, Some("other"), "ingest_document", json!({"text": "other text"})).await;
    let brought = ask(&to, "import_graph", json!({"jsonl": format!("\u{feff}{jsonl}\n")})).await;
    for member in ["entities", "relations", "documents", "agents", "changes"] {
        assert_eq!(brought[member], told[member], "{member}");
    }
    assert_same(&from, &to).await;
    let changes = ask(&to, "list_changes", json!({"limit": 1})).await;
    assert_eq!(changes["changes"][0]["what"], "import_graph", "the last of all");

    // What was exported can be exported again.
    let third = Folder::new();
    let again = third.server();
    ask(&again, "import_graph", json!({"jsonl": exported(&to).await})).await;
    assert_same(&from, &again).await;

    // And everything goes on from there.
    for _ in 0..14 {
        for memory in [&from, &to] {
            ask(memory, "undo", json!({})).await;
        }
        let (one, other) = (answers_now(&from).await, answers_now(&to).await);
        assert_eq!(one, other);
    }
    let mut ids = Vec::new();
    for n in 0..40 {
        let made = ask(&to, "ingest_document", json!({"text": format!("number {n}")})).await;
        assert_eq!(made["outcome"], "created");
        ids.push(made["document"]["id"].as_str().unwrap().to_owned());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 40, "no document gets the number of another");
    let theirs = call_as(&to, Some("other"), "read_graph", json!({})).await;
    assert_eq!(theirs["structuredContent"]["entities"].as_array().unwrap().len(), 2);
}

/// What is known now.
async fn answers_now(memory: &ServerDoor) -> Value {
    let mut graph = ask(memory, "read_graph", json!({})).await;
    for list in ["entities", "relations"] {
        graph[list].as_array_mut().unwrap().sort_by_key(Value::to_string);
    }
    let mut documents = ask(memory, "list_documents", json!({})).await;
    for document in documents["documents"].as_array_mut().unwrap() {
        document.as_object_mut().unwrap().remove("updatedAt");
    }
    json!([graph, documents, ask(memory, "list_agents", json!({})).await])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_brought_is_refused_with_the_reason() {
    let (old, new) = (Folder::new(), Folder::new());
    let (from, to) = (old.server(), new.server());
    much(&from).await;
    let jsonl = exported(&from).await;
    let lines: Vec<&str> = jsonl.lines().collect();
    let with = |has: &str, old: &str, new: &str| -> String {
        let at = lines.iter().position(|line| line.contains(has)).unwrap();
        assert!(lines[at].contains(old), "{old} in {}", lines[at]);
        let changed = lines[at].replace(old, new);
        let mut lines = lines.clone();
        lines[at] = &changed;
        lines.join("\n")
    };
    let number = |has: &str, member: &str| -> String {
        let line: Value =
            serde_json::from_str(lines.iter().find(|line| line.contains(has)).unwrap()).unwrap();
        format!("\"{member}\":{}", line[member])
    };
    let entity = "\"type\":\"entityVersion\"";
    let piece = "\"type\":\"documentPiece\"";
    for (file, why) in [
        (lines[..lines.len() - 1].join("\n"), "the file is incomplete"),
        ([&lines[..5], &lines[6..]].concat().join("\n"), "some are missing"),
        (with("\"memory\"", "\"version\":2", "\"version\":3"), "this version of Tidegate reads 1 to 2"),
        (with("\"memory\"", "tidegate-memory", "other"), "the format must be"),
        (with(entity, "\"name\":\"Ann\"", "\"name\":\"\""), "name: must not be empty"),
        (with(entity, &number(entity, "made"), "\"made\":999999"), "made: no earlier line has the id 999999"),
        (with(entity, "\"name\":\"Ann\"", "\"nome\":\"Ann\""), "missing field `name`"),
        (with("\"content\":\"likes tea\"", "\"since\":", "\"since\":-"), "since: must be between"),
        (with("\"content\":\"likes tea\"", "likes tea", ""), "content: must not be empty"),
        (
            with("\"name\":\"born\"", "\"value\":1990", "\"value\":[]"),
            "value.born: must be a string, a number",
        ),
        (with("\"name\":\"born\"", "\"value\":1990", "\"value\":null"), "value: must not be null"),
        (with("\"type\":\"relationVersion\"", "\"strength\":0.1", "\"strength\":7"), "strength"),
        (with(piece, "\"lead\":0", "\"lead\":1"), "length: is not what the text has"),
        (
            with("\"type\":\"documentVersion\"", &number("documentVersion", "key"), "\"key\":0"),
            "key: must not be 0",
        ),
        (
            with(
                "\"type\":\"documentVersion\"",
                &number("documentVersion", "characters"),
                "\"characters\":3",
            ),
            "and says 3",
        ),
        (
            with("\"type\":\"documentVersion\"", "\"title\":\"Gone\"", "\"title\":\"a\\nb\""),
            "title: must not have",
        ),
        (
            with("\"type\":\"agentVersion\"", "\"short_name\":\"Pilot\"", "\"short_name\":\"a b\""),
            "agentlet.short_name",
        ),
        (with("\"type\":\"end\"", "\"type\":\"end\"", "\"type\":\"ende\""), "unknown variant"),
        (format!("{}\n{jsonl}", lines[0]), "must be on the first line only"),
    ] {
        let said = refused(&to, "import_graph", json!({"jsonl": file})).await;
        assert!(said.contains(why), "{why}: {said}");
        assert!(said.starts_with("jsonl"), "{said}");
    }
    // Nothing of all that was kept.
    ask(&to, "import_graph", json!({"jsonl": jsonl})).await;
    assert_same(&from, &to).await;
    let said = refused(&to, "import_graph", json!({"jsonl": jsonl})).await;
    assert!(said.contains("a memory that was never used"), "{said}");
    let third = Folder::new();
    let other = third.server();
    ask(&other, "create_agent", agent("Find the way.")).await;
    ask(&other, "undo", json!({})).await;
    let said = refused(&other, "import_graph", json!({"jsonl": jsonl})).await;
    assert!(said.contains("a memory that was never used"), "{said}");
    let plain = ask(&from, "export_graph", json!({})).await;
    ask(&other, "import_graph", json!({"jsonl": plain["jsonl"]})).await;
    assert_eq!(ask(&other, "read_graph", json!({})).await["entities"].as_array().unwrap().len(), 1);
}
