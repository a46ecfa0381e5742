//! Finding entities, in small memories and in large ones.

use serde_json::{Value, json};
use tidegate_memory::search_benchmark::{SearchBenchmark, SearchMode};
use tidegate_memory::{Store, server};
use tidegate_server::ServerDoor;

use crate::rig::{Folder, ask, call_as};

/// A server and, beside it, the memory of whoever does not say who they are.
fn both(folder: &Folder) -> (ServerDoor, SearchBenchmark) {
    let store = Store::open(folder.path().join("memory.db")).unwrap();
    (server(store.clone()), SearchBenchmark::new(store, "default", None))
}

fn entity(name: &str, observations: &[&str]) -> Value {
    json!({"name": name, "entityType": "thing", "observations": observations})
}

async fn by_words(memory: &SearchBenchmark, text: &str) -> Vec<String> {
    memory.find(SearchMode::Words, text, 10).await.unwrap()
}

async fn nearly(memory: &SearchBenchmark, text: &str) -> Vec<String> {
    memory.find(SearchMode::Fuzzy, text, 10).await.unwrap()
}

async fn nodes(server: &ServerDoor, query: &str) -> Vec<String> {
    let found = ask(server, "search_nodes", json!({"query": query})).await;
    let entities = found["entities"].as_array().unwrap().iter();
    entities.map(|entity| entity["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn names_come_first_then_what_begins_so_then_the_best_words() {
    let folder = Folder::new();
    let (server, memory) = both(&folder);
    let entities = json!({"entities": [
        entity("Elephants", &["postgres", "postgres again, and postgres"]),
        entity("Postgres tuning", &["shared buffers"]),
        entity("Café", &["a place to sit, with many words that nobody looks for here"]),
        entity("PostgreS", &["a database"]),
        entity("Note", &["postgres is mentioned once, beside much else that this note is about"]),
    ]});
    ask(&server, "create_entities", entities).await;
    assert_eq!(by_words(&memory, "postgres").await, ["PostgreS", "Postgres tuning", "Elephants", "Note"]);
    assert_eq!(by_words(&memory, "  POSTGRES!").await[0], "PostgreS");
    assert_eq!(by_words(&memory, "postg").await, ["PostgreS", "Postgres tuning"], "names that begin so");
    assert_eq!(by_words(&memory, "cafe").await, ["Café"], "accents do not matter");
    assert_eq!(by_words(&memory, "database nowhere").await, ["PostgreS"], "what has not all words, too");
    assert_eq!(by_words(&memory, "mentioned buffers").await.len(), 2);
    for nothing in ["", "nowhere", "\"", "' OR 1=1 --", "NEAR(", "title:", "-", "\u{e000}0", "* *"] {
        assert_eq!(by_words(&memory, nothing).await, [""; 0], "{nothing}");
    }
    for text in ["NOT postgres", "postgres AND", "postgres*", "\"postgres", "{title}: postgres"] {
        assert_eq!(by_words(&memory, text).await.len(), 4, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn misspelt_words_find_what_was_meant() {
    let folder = Folder::new();
    let (server, memory) = both(&folder);
    let entities = json!({"entities": [
        entity("Database", &["we use postgres with replication"]),
        entity("Maria Gonzalez", &["runs the tests"]),
        entity("Other", &["has nothing to do with it"]),
    ]});
    ask(&server, "create_entities", entities).await;
    for (text, name) in [
        ("postgers", "Database"),
        ("posgres", "Database"),
        ("replicaton postgress", "Database"),
        ("maria gonzales", "Maria Gonzalez"),
        ("tsets", "Maria Gonzalez"),
        ("noting", "Other"),
    ] {
        assert_eq!(nearly(&memory, text).await.first().map(String::as_str), Some(name), "{text}");
    }
    for text in ["postgres", "zebra", "xyz", "", "\" OR", "12345"] {
        assert_eq!(nearly(&memory, text).await, [""; 0], "{text}: there is nothing to correct");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_gone_is_not_found() {
    let folder = Folder::new();
    let (server, memory) = both(&folder);
    ask(
        &server,
        "create_entities",
        json!({"entities": [entity("One", &["apple", "pear"]), entity("Two", &[])]}),
    )
    .await;
    assert_eq!(by_words(&memory, "two").await, ["Two"], "by its name alone");
    ask(&server, "add_observations", json!({"entityName": "Two", "contents": ["apple"]})).await;
    assert_eq!(by_words(&memory, "apple").await.len(), 2);
    ask(
        &server,
        "delete_observations",
        json!({"deletions": [{"entityName": "One", "observations": ["apple"]}]}),
    )
    .await;
    assert_eq!(by_words(&memory, "apple").await, ["Two"]);
    assert_eq!(by_words(&memory, "pear").await, ["One"]);
    ask(&server, "delete_entities", json!({"entityNames": ["One"]})).await;
    assert_eq!(by_words(&memory, "pear").await, [""; 0]);
    assert_eq!(by_words(&memory, "one").await, [""; 0]);
    // What is refused leaves no trace.
    call_as(
        &server,
        None,
        "add_observations",
        json!({"observations": [
            {"entityName": "Two", "contents": ["plum"]}, {"entityName": "Nobody", "contents": ["x"]},
        ]}),
    )
    .await;
    assert_eq!(by_words(&memory, "plum").await, [""; 0]);
    ask(&server, "create_entities", json!({"entities": [entity("One", &["plum"])]})).await;
    assert_eq!(by_words(&memory, "plum").await, ["One"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entity_of_many_pages_is_found_by_each() {
    let folder = Folder::new();
    let (server, memory) = both(&folder);
    let contents: Vec<String> = (0..100).map(|n| format!("entry number{n}")).collect();
    ask(&server, "create_entities", json!({"entities": [entity("log", &[])]})).await;
    for part in contents.chunks(7) {
        ask(&server, "add_observations", json!({"entityName": "log", "contents": part})).await;
    }
    for n in [0, 31, 32, 63, 64, 99] {
        assert_eq!(by_words(&memory, &format!("number{n}")).await, ["log"], "{n}");
    }
    let apart = ask(&server, "search_nodes", json!({"query": "number0 number99"})).await;
    assert_eq!((&apart["count"], apart["note"].is_string()), (&json!(1), true), "not on one page");
    assert_eq!(nodes(&server, "number98 number99").await, ["log"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_do_not_find_each_others_words() {
    let folder = Folder::new();
    let store = Store::open(folder.path().join("memory.db")).unwrap();
    let server = server(store.clone());
    let one = json!({"entities": [entity("Secret", &["the treasure is buried"])]});
    call_as(&server, Some("one"), "create_entities", one).await;
    for (tenant, found) in [("tenant:one", 1), ("tenant:two", 0), ("default", 0)] {
        let memory = SearchBenchmark::new(store.clone(), tenant, None);
        assert_eq!(by_words(&memory, "secret treasure").await.len(), found, "{tenant}");
        assert_eq!(nearly(&memory, "treasrue").await.len(), found, "{tenant}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_memory_is_searched_by_its_index() {
    let folder = Folder::new();
    let (server, memory) = both(&folder);
    for part in 0..12 {
        let entities: Vec<Value> = (0..100)
            .map(|n| {
                let number = part * 100 + n;
                let seen: Vec<String> = (0..17).map(|k| format!("common note {number} {k}")).collect();
                json!({"name": format!("thing {number}"), "entityType": "sort", "observations": seen})
            })
            .collect();
        ask(&server, "create_entities", json!({"entities": entities})).await;
    }
    ask(
        &server,
        "add_observations",
        json!({"entityName": "thing 77", "contents": ["a needle", "uncommonly rare"]}),
    )
    .await;
    assert_eq!(nodes(&server, "needle").await, ["thing 77"]);
    assert_eq!(nodes(&server, "NEEDLE common note").await, ["thing 77"]);
    assert_eq!(
        nodes(&server, "eedle ncommonl").await,
        ["thing 77"],
        "a part of a word is found by what is near in a large memory"
    );
    assert_eq!(nodes(&server, "zzneed").await, [""; 0]);
    assert_eq!(nodes(&server, "thing 77").await[0], "thing 77");
    // Every word is on more pages than are looked at.
    let newest = nodes(&server, "common note sort").await;
    assert_eq!(newest.len(), 20);
    assert!(newest.iter().all(|name| name.starts_with("thing ")), "{newest:?}");
    assert_eq!(by_words(&memory, "common note").await.len(), 10);
    assert_eq!(by_words(&memory, "common needle").await[0], "thing 77");
    assert_eq!(nearly(&memory, "neadle").await, ["thing 77"]);
}
