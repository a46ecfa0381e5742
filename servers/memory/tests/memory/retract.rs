//! Taking back what happened to documents and agents.

use serde_json::{Value, json};
use tidegate_protocol::{Json, Limits, Method, Params};
use tidegate_server::ServerDoor;
use tidegate_service::{Call, Context, Door, Notice, Reply};

use crate::knowledge::sources;
use crate::rig::{Folder, ann, ask, call_as, on_postgres, refused};

const WORDS: [&str; 6] = ["harbour", "lighthouse", "herring", "anchor", "compass", "gull"];

fn agent(name: &str, prompt: &str) -> Value {
    json!({
        "agent_name": name, "description": prompt, "tags": ["sea"],
        "output_schema": {"type": "object", "properties": {"answer": {"type": "string"}}},
    })
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap()
}

/// Everything that there is of documents and agents, and what is found of it. Versions go on, whatever is undone.
async fn known(memory: &ServerDoor) -> Value {
    let listed = ask(memory, "list_documents", json!({"limit": 100})).await;
    let mut documents = Vec::new();
    for document in listed["documents"].as_array().unwrap() {
        let mut whole = ask(memory, "get_document", json!({"id": document["id"], "limit": 100_000})).await;
        for changing in ["version", "updatedAt"] {
            whole.as_object_mut().unwrap().remove(changing);
        }
        documents.push(whole);
    }
    let listed = ask(memory, "list_agents", json!({})).await;
    let mut agents = Vec::new();
    for one in listed["agents"].as_array().unwrap() {
        agents.push(ask(memory, "get_agent", json!({"agent_uri": one["uri"]})).await["agentlet"].clone());
    }
    let mut found = Vec::new();
    for word in WORDS {
        let hits = ask(memory, "search_knowledge_base", json!({"query": word, "limit": 20})).await;
        let mut hits: Vec<String> = sources(&hits).into_iter().map(str::to_owned).collect();
        let named = ask(memory, "list_agents", json!({"query": word})).await;
        hits.extend(named["agents"].as_array().unwrap().iter().map(|one| text(one, "uri").to_owned()));
        hits.sort();
        found.push(hits);
    }
    json!({"documents": documents, "agents": agents, "found": found})
}

/// A change of a handful of documents and agents, so that they meet.
fn some_change(random: &mut fastrand::Rng, known: &Value) -> (&'static str, Value) {
    const NAMES: [&str; 3] = ["pilot", "keeper", "cook"];
    let word = |random: &mut fastrand::Rng| WORDS[random.usize(..WORDS.len())];
    let name = |random: &mut fastrand::Rng| NAMES[random.usize(..NAMES.len())];
    let long = |random: &mut fastrand::Rng| -> String {
        let section =
            |word: &str| format!("# On the {word}\n\n{}\n\n", format!("A {word} again. ").repeat(50));
        (0..random.usize(1..4)).map(|_| section(WORDS[random.usize(..WORDS.len())])).collect()
    };
    let documents = known["documents"].as_array().unwrap();
    let kind = random.usize(..10);
    match (kind, documents.is_empty()) {
        (0..2, _) | (2..6, true) => {
            ("ingest_document", json!({"text": long(random), "title": format!("The {}", word(random))}))
        }
        (2..6, false) => {
            let id = &documents[random.usize(..documents.len())]["id"];
            match kind {
                2 => ("update_document", json!({"id": id, "text": long(random)})),
                3 => ("update_document", json!({"id": id, "title": format!("Of the {}", word(random))})),
                4 => ("update_document", json!({"id": id, "tags": [word(random)]})),
                _ => ("delete_document", json!({"id": id})),
            }
        }
        (6, _) => ("create_agent", agent(name(random), &format!("You know the {}.", word(random)))),
        (7 | 8, _) => (
            "update_agent",
            json!({"agent_name": name(random), "description": format!("Tell of the {}.", word(random))}),
        ),
        _ => ("delete_agent", json!({"agent_name": name(random)})),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_documents_and_agents_can_be_undone() {
    for seed in 0..2 {
        let folder = Folder::new();
        let memory = folder.server();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut before = vec![known(&memory).await];
        for _ in 0..30 {
            let (tool, arguments) = some_change(&mut random, before.last().unwrap());
            call_as(&memory, None, tool, arguments).await;
            let now = known(&memory).await;
            if before.last() != Some(&now) {
                before.push(now);
            }
        }
        assert!(before.len() > 12, "much has happened");
        let last = before.pop().unwrap();
        let mut by = Vec::new();
        for wanted in before.iter().rev() {
            let told = ask(&memory, "undo", json!({})).await;
            assert_eq!(&known(&memory).await, wanted, "seed {seed}: {told}");
            let changes = ask(&memory, "list_changes", json!({"limit": 1})).await;
            by.push(changes["changes"][0]["id"].clone());
        }
        let why = refused(&memory, "undo", json!({})).await;
        assert!(why.contains("nothing to undo"), "{why}");
        assert_eq!(folder.number("SELECT count(*) FROM words_1"), 0, "nothing is left in the index");
        assert_eq!(folder.number("SELECT count(*) FROM page_states WHERE said = 1"), 0);
        // And what undid them, the other way round.
        for id in by.into_iter().rev() {
            ask(&memory, "undo", json!({"change": id})).await;
        }
        assert_eq!(known(&memory).await, last, "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_comes_back_with_its_versions() {
    let folder = Folder::new();
    let memory = folder.server();
    let made = ask(&memory, "ingest_document", json!({"text": "the old harbour", "title": "Old"})).await;
    let id = made["document"]["id"].clone();
    ask(&memory, "update_document", json!({"id": id, "text": "the new lighthouse", "title": "New"})).await;
    ask(&memory, "delete_document", json!({"id": id})).await;
    let undone = ask(&memory, "undo", json!({})).await;
    assert_eq!(undone["undone"]["what"], "delete_document");
    assert_eq!(undone["restored"], json!({"entities": 0, "observations": 0, "relations": 0, "documents": 1}));
    assert_eq!(undone["removed"], json!({"entities": 0, "observations": 0, "relations": 0}));
    let now = ask(&memory, "get_document", json!({"id": id})).await;
    assert_eq!((&now["text"], &now["version"]), (&json!("the new lighthouse"), &json!(3)));
    assert_eq!(ask(&memory, "search_knowledge_base", json!({"query": "lighthouse"})).await["count"], 1);
    assert_eq!(folder.number("SELECT count(*) FROM page_states WHERE said = 1"), 1, "it waits for a vector");
    let undone = ask(&memory, "undo", json!({})).await;
    assert_eq!(undone["undone"]["what"], "update_document");
    let now = ask(&memory, "get_document", json!({"id": id})).await;
    assert_eq!((&now["text"], &now["title"]), (&json!("the old harbour"), &json!("Old")));
    assert_eq!(ask(&memory, "search_knowledge_base", json!({"query": "lighthouse"})).await["count"], 0);

    let history = ask(&memory, "get_document_history", json!({"id": id})).await;
    let titles: Vec<_> =
        history["history"].as_array().unwrap().iter().map(|version| text(version, "title")).collect();
    assert_eq!(titles, ["Old", "New", "New", "Old"]);
    assert_eq!((&history["totalVersions"], &history["truncated"]), (&json!(4), &json!(false)));
    assert_eq!(history["history"][0]["validTo"], history["history"][1]["validFrom"]);
    assert!(history["history"][3].get("validTo").is_none());
    assert_eq!(history["history"][0]["changedBy"], "tester");
    let part = ask(&memory, "get_document_history", json!({"id": id, "limit": 1, "before_version": 3})).await;
    assert_eq!((&part["history"][0]["version"], &part["truncated"]), (&json!(2), &json!(true)));
    let why = refused(&memory, "get_document_history", json!({"id": "doc-99"})).await;
    assert!(why.contains("There is no document"), "{why}");

    let changes = ask(&memory, "list_changes", json!({})).await;
    let told: Vec<_> = changes["changes"].as_array().unwrap().iter().rev().collect();
    for (change, what, about, counts) in [
        (told[0], "ingest_document", json!(["Old"]), (json!(1), Value::Null)),
        (told[1], "update_document", json!(["New", "Old"]), (json!(1), json!(1))),
        (told[2], "delete_document", json!(["New"]), (Value::Null, json!(1))),
        (told[3], "undo", json!(["New"]), (json!(1), Value::Null)),
    ] {
        assert_eq!((&change["what"], &change["about"]), (&json!(what), &about));
        assert_eq!((&change["added"]["documents"], &change["removed"]["documents"]), (&counts.0, &counts.1));
    }
    assert_eq!(told[2]["undoneBy"], told[3]["id"]);
    let theirs = call_as(&memory, Some("other"), "undo", json!({"change": told[1]["id"]})).await;
    assert_eq!(theirs["isError"], true, "the changes of others are not there");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_changed_afterwards_is_not_undone() {
    let folder = Folder::new();
    let mut options = tidegate_memory::MemoryServerSettings::default();
    options.folders = vec![folder.path().to_owned()];
    let memory = tidegate_memory::server_with(folder.store(), options);
    let last = async || ask(&memory, "list_changes", json!({"limit": 1})).await["changes"][0]["id"].clone();
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "the harbour").unwrap();
    let made = ask(&memory, "ingest_document", json!({"file_path": file})).await;
    let (id, ingested) = (made["document"]["id"].clone(), last().await);
    ask(&memory, "update_document", json!({"id": id, "tags": ["sea"]})).await;
    let updated = last().await;
    let why = refused(&memory, "undo", json!({"change": ingested})).await;
    assert!(
        why.contains(&format!(
            "change {updated} (update_document) also changed \"notes.txt\"; undo change {updated} first"
        )),
        "{why}"
    );
    ask(&memory, "delete_document", json!({"id": id})).await;
    let deleted = last().await;
    let why = refused(&memory, "undo", json!({"change": updated})).await;
    assert!(why.contains(&format!("change {deleted} (delete_document)")), "{why}");
    ask(&memory, "ingest_document", json!({"file_path": file})).await;
    let again = last().await;
    let why = refused(&memory, "undo", json!({"change": deleted})).await;
    assert!(
        why.contains(&format!("change {again} (ingest_document)")),
        "the file is a document again: {why}"
    );
    ask(&memory, "undo", json!({"change": again})).await;
    ask(&memory, "undo", json!({"change": deleted})).await;
    assert_eq!(ask(&memory, "get_document", json!({"id": id})).await["tags"], json!(["sea"]));

    ask(&memory, "create_agent", agent("pilot", "Find the way.")).await;
    let created = last().await;
    ask(&memory, "delete_agent", json!({"agent_name": "pilot"})).await;
    let deleted = last().await;
    let why = refused(&memory, "undo", json!({"change": created})).await;
    assert!(why.contains(&format!("change {deleted} (delete_agent) also changed \"pilot\"")), "{why}");
    ask(&memory, "create_agent", agent("Pilot", "Another one.")).await;
    let another = last().await;
    let why = refused(&memory, "undo", json!({"change": deleted})).await;
    assert!(why.contains(&format!("change {another} (create_agent)")), "{why}");
    ask(&memory, "undo", json!({})).await;
    ask(&memory, "undo", json!({})).await;
    let back = ask(&memory, "get_agent", json!({"agent_uri": "pilot"})).await;
    assert_eq!(back["agentlet"]["description"], "Find the way.");
    let history = ask(&memory, "get_agent_history", json!({"agent_name": "pilot"})).await;
    assert_eq!((&history["totalVersions"], &history["truncated"]), (&json!(3), &json!(false)));
    ask(&memory, "undo", json!({"change": created})).await;
    let history = ask(&memory, "get_agent_history", json!({"agent_name": "pilot"})).await;
    assert_eq!(history["totalVersions"], 3, "also of one that is gone");
    assert!(history["history"][2]["valid_to"].is_i64());
    for (agent, why) in [("researcher", "comes with the server"), ("nobody", "never was an agent")] {
        let said = refused(&memory, "get_agent_history", json!({"agent_uri": agent})).await;
        assert!(said.contains(why), "{said}");
    }
    let theirs = json!({"agent_uri": "user/ann/pilot"});
    let theirs = call_as(&memory, Some("other"), "get_agent_history", theirs).await;
    assert!(text(&theirs["content"][0], "text").contains("Access denied"));
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_found_by_what_they_are_told() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_agent", agent("pilot", "Brings ships into the harbour.")).await;
    ask(&memory, "create_agent", agent("harbour", "Counts boats.")).await;
    // An entity with the number that an agent has, too.
    ask(&memory, "create_entities", json!({"entities": [ann(), {"name": "harbour", "entityType": "t"}]}))
        .await;
    let named = async |query: &str| -> Vec<String> {
        let found = ask(&memory, "list_agents", json!({"query": query})).await;
        found["agents"].as_array().unwrap().iter().map(|one| text(one, "name").to_owned()).collect()
    };
    assert_eq!(named("harbour").await, ["harbour", "pilot"], "a name counts more");
    assert_eq!(named("ships").await, ["pilot"]);
    assert_eq!(named("SEA").await.len(), 2, "by their tags");
    assert_eq!(named("research").await, ["researcher"], "those of the server, too");
    assert_eq!(named("zebra").await, [""; 0]);
    assert!(!named("tea").await.contains(&"pilot".to_owned()), "what entities say is not of agents");
    let theirs = call_as(&memory, Some("other"), "list_agents", json!({"query": "ships"})).await;
    assert_eq!(theirs["structuredContent"]["count"], 0);
    ask(
        &memory,
        "update_agent",
        json!({"agent_name": "pilot", "description": "Knows the stars.", "tags": ["night"]}),
    )
    .await;
    assert_eq!((named("ships").await.len(), named("night").await), (0, vec!["pilot".to_owned()]));
    let kept = ask(&memory, "get_agent", json!({"agent_uri": "pilot"})).await;
    assert_eq!(kept["agentlet"]["json_schema_extra"]["tags"], json!(["night"]));
    ask(&memory, "delete_agent", json!({"agent_name": "pilot"})).await;
    assert_eq!(named("stars").await, [""; 0]);
    ask(&memory, "undo", json!({})).await;
    assert_eq!(named("stars").await, ["pilot"]);
    for (arguments, why) in [
        (json!({"query": " "}), "query: must not be empty"),
        (json!({"query": "x".repeat(2_000)}), "query: must have at most"),
    ] {
        let said = refused(&memory, "list_agents", arguments).await;
        assert!(said.contains(why), "{said}");
    }
    for tags in [json!(["a\nb"]), json!([""]), json!(vec!["x"; 51])] {
        let mut wrong = agent("wrong", "x");
        wrong["tags"] = tags;
        let said = refused(&memory, "create_agent", wrong).await;
        assert!(said.starts_with("tags"), "{said}");
    }
    // What the graph, documents and entities find has no agents in it.
    let found = ask(&memory, "search_knowledge_base", json!({"query": "stars"})).await;
    assert_eq!(found["count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_older_files_are_found() {
    if on_postgres() {
        return;
    }
    let folder = Folder::new();
    ask(&folder.server(), "create_agent", agent("pilot", "Brings ships into the harbour.")).await;
    let file = rusqlite::Connection::open(folder.place()).unwrap();
    // As it was before agents and documents could be undone.
    file.execute_batch(
        "DELETE FROM words_1; DELETE FROM page_words; DELETE FROM page_totals; DELETE FROM pages;
         DROP INDEX documents_made; DROP INDEX documents_gone; ALTER TABLE documents DROP COLUMN root;
         DROP INDEX agents_made; DROP INDEX agents_gone; DROP INDEX agents_keyed; DROP INDEX agents_anywhere;
         DROP TABLE properties; DROP INDEX entities_uid; ALTER TABLE entities DROP COLUMN uid;
         DROP INDEX entities_listed; DROP INDEX entities_begin; DROP INDEX documents_begin;
         ALTER TABLE agents DROP COLUMN root; ALTER TABLE messages DROP COLUMN run; DROP INDEX agents_live;
         CREATE UNIQUE INDEX agents_live ON agents (tenant, name) WHERE gone IS NULL; PRAGMA user_version = 6;",
    )
    .unwrap();
    drop(file);
    drop(folder.server());
    let found = ask(&folder.server(), "list_agents", json!({"query": "ships"})).await;
    assert_eq!(found["agents"][0]["name"], "pilot");
    ask(&folder.server(), "undo", json!({})).await;
    assert_eq!(ask(&folder.server(), "list_agents", json!({})).await["count"], 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_watches_hears_of_what_is_undone() {
    let folder = Folder::new();
    let memory = folder.server();
    let made = ask(&memory, "ingest_document", json!({"text": "the harbour"})).await;
    ask(&memory, "create_agent", agent("pilot", "Find the way.")).await;
    let (uri, pilot) = (text(&made["document"], "uri"), "agentlet://user/default/pilot");
    let wanted = ["memory://knowledge-graph", "my-agents://list", uri, pilot];
    let params = Json::from(json!({"notifications": {"resourceSubscriptions": wanted}}));
    let params = Params::parse(&params, &Limits::default()).unwrap();
    let call = Call::new(Method::Listen, params, Context::local());
    let Reply::Subscription(watched) = memory.answer(call).await.unwrap() else { panic!("no subscription") };
    for expected in [vec!["my-agents://list", pilot], vec![uri]] {
        ask(&memory, "undo", json!({})).await;
        let heard: Vec<_> = std::iter::from_fn(|| watched.events.try_next()).collect();
        let expected: Vec<_> =
            expected.into_iter().map(|uri| Notice::ResourceUpdated(uri.to_owned().into())).collect();
        assert_eq!(heard, expected);
    }
}
