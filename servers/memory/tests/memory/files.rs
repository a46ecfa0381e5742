//! Files of a memory: in parts through the tools, and whole from and to the store itself.

use std::io::{BufReader, Cursor, Write};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tidegate_memory::tenant_key;
use tidegate_server::ServerDoor;

use crate::archive;
use crate::rig::{Folder, ann, ask, call_as, refused};

/// A file in memory.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn reader(text: impl Into<Vec<u8>>) -> BufReader<Cursor<Vec<u8>>> {
    BufReader::new(Cursor::new(text.into()))
}

/// All lines of a memory, which may be more than read_graph can tell.
async fn lines(folder: &Folder) -> Vec<String> {
    let file = Written::default();
    folder.store().of(&tenant_key(None)).export(file.clone(), false).await.unwrap();
    file.text().lines().map(str::to_owned).collect()
}

/// Everything that export_graph tells, part by part.
async fn parts(memory: &ServerDoor, between: impl AsyncFn(usize)) -> Vec<Value> {
    let (mut parts, mut arguments) = (Vec::new(), json!({}));
    loop {
        let part = ask(memory, "export_graph", arguments).await;
        let size = part["jsonl"].as_str().unwrap().len();
        assert!(size < 5 * 1024 * 1024, "a part has {size} bytes");
        arguments = json!({"cursor": part["nextCursor"]});
        let is_last = part["nextCursor"].is_null();
        parts.push(part);
        if is_last {
            return parts;
        }
        between(parts.len()).await;
    }
}

/// Three entities, of which the first is known for more than fits into an answer, and some relations.
async fn much(memory: &ServerDoor) {
    let names = ["Big", "Ann", "Bob"];
    let entities: Vec<Value> = names.iter().map(|name| json!({"name": name, "entityType": "t"})).collect();
    ask(memory, "create_entities", json!({"entities": entities})).await;
    for round in 0..2 {
        // Quotes take more room in an answer than they have bytes.
        let contents: Vec<String> =
            (0..300).map(|at| format!("{round} {at} {}", "\"".repeat(4_900))).collect();
        ask(memory, "add_observations", json!({"entityName": "Big", "contents": contents})).await;
    }
    let relation = |to: usize| json!({"from": "Big", "to": names[to % 3], "relationType": format!("r{to}")});
    let relations: Vec<Value> = (0..30).map(relation).collect();
    ask(memory, "create_relations", json!({"relations": relations})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_memory_goes_out_in_parts() {
    let (folder, other) = (Folder::new(), Folder::new());
    let (memory, copy) = (folder.server(), other.server());
    much(&memory).await;
    let added = async |part: usize| {
        let late = json!({"entities": [{"name": format!("late{part}"), "entityType": "t"}]});
        ask(&memory, "create_entities", late).await;
    };
    let parts = parts(&memory, added).await;
    assert!(parts.len() > 2, "{} parts", parts.len());
    let sum = |member: &str| parts.iter().map(|part| part[member].as_u64().unwrap()).sum::<u64>();
    assert!(sum("entities") > 3, "what came in between is told, too");
    assert_eq!(sum("relations"), 30);
    for part in &parts {
        let brought = ask(&copy, "import_graph", json!({"jsonl": part["jsonl"]})).await;
        assert_eq!(brought["skipped"], 0);
    }
    assert!(lines(&other).await == lines(&folder).await, "the same lines");

    // Whoever sees the text only is told that there is more.
    let first = call_as(&memory, None, "export_graph", json!({})).await;
    let cursor = parts[0]["nextCursor"].as_str().unwrap();
    assert!(first["content"][1]["text"].as_str().unwrap().contains(cursor), "{}", first["content"][1]);
    for cursor in ["bad", "e", "1", ""] {
        let said = refused(&memory, "export_graph", json!({"cursor": cursor})).await;
        assert!(said.starts_with("cursor: "), "{said}");
    }
    let said = refused(&memory, "export_graph", json!({"history": true})).await;
    assert!(said.contains("tidegate memory export --history"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_itself_has_no_limits_of_an_answer() {
    let (folder, other) = (Folder::new(), Folder::new());
    much(&folder.server()).await;
    for history in [false, true] {
        let file = Written::default();
        let told = folder.store().of(&tenant_key(None)).export(file.clone(), history).await.unwrap();
        assert_eq!((told.entities, told.relations), (3, 30));
        let text = file.text();
        assert!(text.len() > 5 * 1024 * 1024, "{} bytes", text.len());
        let to = match history {
            // A history is brought where there is none.
            true => tenant_key(Some("another")),
            false => tenant_key(None),
        };
        let brought = other.store().of(&to).import(reader(text)).await.unwrap();
        assert_eq!((brought.counts.entities, brought.counts.observations), (3, 600));
        assert_eq!((brought.history, brought.skipped), (history, 0));
    }
    assert!(lines(&other).await == lines(&folder).await, "the same lines");
    let another = other.store().of(&tenant_key(Some("another")));
    let told = another.export(Written::default(), false).await.unwrap();
    assert_eq!((told.entities, told.observations, told.relations), (3, 600, 30));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_goes_through_a_file() {
    let (old, new) = (Folder::new(), Folder::new());
    let (from, to) = (old.server(), new.server());
    archive::much(&from).await;
    let file = Written::default();
    old.store().of(&tenant_key(None)).export(file.clone(), true).await.unwrap();
    let text = file.text();
    let half = &text[..text.rfind("{\"type\":\"end\"").unwrap()];
    let memory = new.store().of(&tenant_key(None));
    let why = memory.import(reader(half)).await.unwrap_err();
    assert!(why.message.contains("the file is incomplete"), "{why}");
    let why = memory.import(reader(format!("{text}{{\"type\":\"end\",\"lines\":1}}"))).await.unwrap_err();
    assert!(why.message.contains("comes after the last line"), "{why}");
    let graph = ask(&to, "read_graph", json!({})).await;
    assert_eq!(graph, json!({"entities": [], "relations": []}), "all of it or nothing");
    memory.import(reader(format!("\u{feff}\n{text}"))).await.unwrap();
    archive::assert_same(&from, &to).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_kept_is_left_out_and_told() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let entity = |name: &str, kind: &str, observations: Value| {
        json!({"type": "entity", "name": name, "entityType": kind, "observations": observations}).to_string()
    };
    let lines = [
        entity("Ann", "person", json!(["plays chess", "", "x".repeat(5001), "has\0nul"])),
        entity(&"n".repeat(201), "t", json!([])),
        entity("a\tb", "t", json!([])),
        entity("Typeless", "", json!(["is kept"])),
        "{nonsense".to_owned(),
        json!({"type": "relation", "from": "Ann", "to": "Typeless", "relationType": "knows"}).to_string(),
    ];
    let file = lines.join("\n");
    let said = refused(&memory, "import_graph", json!({"jsonl": file, "strict": true})).await;
    assert!(said.starts_with("jsonl, line 1: observations[1]: must not be empty"), "{said}");
    let told = ask(&memory, "import_graph", json!({"jsonl": file})).await;
    let counts = json!([told["entities"], told["observations"], told["relations"], told["skipped"]]);
    assert_eq!(counts, json!([1, 2, 1, 7]));
    let problems = told["problems"].as_array().unwrap();
    let numbers: Vec<u64> = problems.iter().map(|one| one["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 1, 1, 2, 3, 4, 5]);
    assert_eq!(problems[6]["problem"], "is not valid JSON");
    let found = ask(&memory, "open_nodes", json!({"names": ["Ann", "Typeless"]})).await;
    assert_eq!(found["entities"][0]["observations"], json!(["likes tea", "lives in Kiel", "plays chess"]));
    assert_eq!(found["entities"][1]["entityType"], "unknown");
    // The same from a file, where a line may not even be text.
    let file = [file.as_bytes(), b"\n\xff\xfe\n"].concat();
    let told = folder.store().of(&tenant_key(Some("another"))).import(reader(file)).await.unwrap();
    assert_eq!((told.counts.entities, told.skipped), (2, 8));
    assert_eq!(told.problems[7].problem, "is not valid UTF-8");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_memory_is_an_empty_file() {
    let folder = Folder::new();
    let memory = folder.server();
    let told = call_as(&memory, None, "export_graph", json!({})).await;
    assert_eq!(told["content"], json!([{"type": "text", "text": ""}]));
    assert_eq!(ask(&memory, "import_graph", json!({"jsonl": ""})).await["entities"], 0);
    let file = Written::default();
    folder.store().of(&tenant_key(None)).export(file.clone(), false).await.unwrap();
    assert_eq!(file.text(), "");
}
