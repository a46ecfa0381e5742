//! What is found, in which order, and what is said about it: the same on every store.

use serde_json::{Value, json};
use tidegate_server::ServerDoor;

use crate::rig::{Folder, ann, ask, call_as, refused};

async fn know(memory: &ServerDoor, entities: &[(&str, &[&str])]) {
    let entity =
        |(name, said): &(&str, &[&str])| json!({"name": name, "entityType": "thing", "observations": said});
    let entities: Vec<Value> = entities.iter().map(entity).collect();
    ask(memory, "create_entities", json!({"entities": entities})).await;
}

fn names(list: &Value, name: impl Fn(&Value) -> &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|one| name(one).as_str().unwrap().to_owned()).collect()
}

/// What `semantic_search` finds.
async fn found(memory: &ServerDoor, query: &str) -> Vec<String> {
    let found = ask(memory, "semantic_search", json!({"query": query})).await;
    names(&found["results"], |result| &result["entity"]["name"])
}

/// What `search_knowledge_base` finds.
async fn based(memory: &ServerDoor, query: &str) -> Vec<String> {
    let found = ask(memory, "search_knowledge_base", json!({"query": query})).await;
    let scores: Vec<f64> =
        found["results"].as_array().unwrap().iter().map(|result| result["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{query}: {scores:?}");
    names(&found["results"], |result| &result["metadata"]["title"])
}

/// What `search_nodes` finds.
async fn nodes(memory: &ServerDoor, query: &str) -> Vec<String> {
    let found = ask(memory, "search_nodes", json!({"query": query})).await;
    assert_eq!((found.get("results"), found["count"].as_u64()), (None, count(&found["entities"])));
    names(&found["entities"], |entity| &entity["name"])
}

fn count(list: &Value) -> Option<u64> {
    list.as_array().map(|list| list.len() as u64)
}

#[tokio::test(flavor = "multi_thread")]
async fn whose_name_it_is_comes_first_then_whose_name_begins_so() {
    let folder = Folder::new();
    let memory = folder.server();
    know(
        &memory,
        &[
            ("C++", &["a language, and C is another"]),
            ("F#", &[]),
            ("Caf\u{e9}", &["one"]),
            ("Note", &["C++ C++ C++, C# and café café café; kubernetes kubernetes"]),
            ("C", &["C C C"]),
            ("C#", &[]),
            ("F", &["F F F"]),
            ("Cafe\u{301}", &["café café"]),
            ("C++ primer", &["a book"]),
            ("c++", &[]),
            ("Kubernetes", &["runs things"]),
            ("->", &["an arrow"]),
        ],
    )
    .await;
    for (query, first) in [
        ("C++", &["C++", "c++", "C++ primer"][..]),
        ("  c++ ", &["c++", "C++", "C++ primer"]),
        ("C#", &["C#"]),
        ("c", &["C"]),
        ("F#", &["F#", "F"]),
        ("caf\u{e9}", &["Caf\u{e9}", "Cafe\u{301}", "Note"]),
        ("Cafe\u{301}", &["Cafe\u{301}", "Caf\u{e9}", "Note"]),
        ("CAFÉ", &["Caf\u{e9}", "Cafe\u{301}", "Note"]),
        ("kuber", &["Kubernetes"]),
        ("kubernetes", &["Kubernetes", "Note"]),
        ("->", &["->"]),
    ] {
        for found in [found(&memory, query).await, based(&memory, query).await] {
            assert!(
                found.starts_with(&first.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()),
                "{query}: {found:?}"
            );
        }
    }
    ask(&memory, "ingest_document", json!({"text": "How cranes are run.", "title": "R&D: cranes"})).await;
    ask(&memory, "ingest_document", json!({"text": "R D cranes cranes R D cranes", "title": "Other"})).await;
    assert_eq!(based(&memory, "r&d: CRANES").await[0], "R&D: cranes");
    assert_eq!(based(&memory, "R&D").await[0], "R&D: cranes");
    // The order of server-memory is that in which things became known.
    assert_eq!(nodes(&memory, "c++").await[..4], ["C++", "Note", "C++ primer", "c++"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entity_of_many_pages_takes_one_place() {
    let folder = Folder::new();
    let memory = folder.server();
    let long: Vec<String> = (0..120).map(|n| format!("log entry {n}: {}", "ran well ".repeat(60))).collect();
    let log = json!({"name": "log", "entityType": "thing", "observations": long});
    ask(&memory, "create_entities", json!({"entities": [log]})).await;
    know(&memory, &[("logbook", &["of paper"]), ("Ben", &["keeps a log"])]).await;
    assert_eq!(based(&memory, "log").await, ["log", "logbook", "Ben"]);
    assert_eq!(found(&memory, "Log").await, ["log", "logbook", "Ben"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_literally_is_found_by_what_is_near() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    know(&memory, &[("Kubernetes", &["runs the cluster"]), ("Node.js", &["a runtime"])]).await;
    for (query, name) in [
        ("kubernets", "Kubernetes"),
        ("green tea", "Ann"),
        ("What tea does Ann like?", "Ann"),
        ("nodejs", "Node.js"),
        ("tea's", "Ann"),
    ] {
        let found = ask(&memory, "search_nodes", json!({"query": query})).await;
        assert_eq!(nodes(&memory, query).await, [name], "{query}");
        assert!(found["note"].as_str().unwrap().contains("No entity contains all of these words"), "{found}");
        assert_eq!(count(&found["relations"]), Some(0));
    }
    for query in ["tea", "KIEL", "Ann tea", "uber"] {
        let found = ask(&memory, "search_nodes", json!({"query": query})).await;
        assert_eq!((&found["count"], &found["note"]), (&json!(1), &Value::Null), "{query}");
    }
    for query in ["zebra", "xylophone", "12345", "%", "首都", "😀", "qqqqq wwwww", "   ?"] {
        let found = ask(&memory, "search_nodes", json!({"query": query})).await;
        assert_eq!((&found["count"], &found["note"]), (&json!(0), &Value::Null), "{query}: {found}");
    }
    // The text is what server-memory would write.
    let told = call_as(&memory, None, "search_nodes", json!({"query": "kubernets"})).await;
    let text: Value = serde_json::from_str(told["content"][0]["text"].as_str().unwrap()).unwrap();
    let structured = &told["structuredContent"];
    assert_eq!(text, json!({"entities": structured["entities"], "relations": structured["relations"]}));
    // Not more than can be read.
    let many: Vec<Value> = (0..60)
        .map(|n| json!({"name": format!("crane {n}"), "entityType": "machine", "observations": ["lifts containers"]}))
        .collect();
    ask(&memory, "create_entities", json!({"entities": many})).await;
    assert_eq!(nodes(&memory, "contaniers").await.len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn similarity_without_a_model_says_how_much_of_the_words_is_there() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    know(&memory, &[("Kubernetes", &["runs the cluster"])]).await;
    for (query, name, similarity) in [
        ("tea", "Ann", 1.0),
        ("green tea", "Ann", 0.5),
        ("kuber", "Kubernetes", 0.75),
        ("kubernets", "Kubernetes", 0.9),
        ("kubernets clutser", "Kubernetes", 0.8786),
    ] {
        let found = ask(&memory, "semantic_search", json!({"query": query})).await;
        let first = &found["results"][0];
        assert_eq!(
            (&first["entity"]["name"], &first["similarity"]),
            (&json!(name), &json!(similarity)),
            "{query}"
        );
        for (least, count) in [(similarity - 0.01, 1), (similarity + 0.01, 0)] {
            let least = json!({"query": query, "min_similarity": f64::min(least, 1.0)});
            let found = ask(&memory, "semantic_search", least).await;
            let count = if similarity == 1.0 { 1 } else { count };
            assert_eq!(found["count"], count, "{query}: {found}");
        }
    }
    // What is said to be so if nothing is given is so.
    let given = ask(&memory, "semantic_search", json!({"query": "green tea", "min_similarity": 0})).await;
    assert_eq!(ask(&memory, "semantic_search", json!({"query": "green tea"})).await, given);
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_without_spaces_and_pictures_are_found() {
    let folder = Folder::new();
    let memory = folder.server();
    know(
        &memory,
        &[
            ("東京", &["日本の首都です", "コーヒーが好き"]),
            ("서울", &["한국의 수도입니다"]),
            ("กรุงเทพ", &["เมืองหลวงของประเทศไทย"]),
            ("😀 smile", &["means 👍🏽 and ❤️"]),
            ("Rust", &["入門書がある"]),
        ],
    )
    .await;
    for (query, name) in [
        ("首都", "東京"),
        ("日本", "東京"),
        ("首", "東京"),
        ("東", "東京"),
        ("東京", "東京"),
        ("コーヒー", "東京"),
        ("수도", "서울"),
        ("한국", "서울"),
        ("ประเทศไทย", "กรุงเทพ"),
        ("😀", "😀 smile"),
        ("👍", "😀 smile"),
        ("❤", "😀 smile"),
        ("rust入門", "Rust"),
    ] {
        assert_eq!(found(&memory, query).await, [name], "{query}");
        assert_eq!(based(&memory, query).await, [name], "{query}");
    }
    for query in ["京都", "😢", "本日"] {
        assert_eq!(found(&memory, query).await, [""; 0], "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn snippets_show_what_was_found() {
    let folder = Folder::new();
    let memory = folder.server();
    let long = format!("{}the needle is here {}", "hay and straw ".repeat(150), "hay and straw ".repeat(50));
    know(&memory, &[("Barn", &["old", &long, "red"])]).await;
    for query in ["needle", "neadle"] {
        let found = ask(&memory, "semantic_search", json!({"query": query})).await;
        let snippet = found["results"][0]["snippet"].as_str().unwrap();
        assert!(snippet.contains("the needle is here") && snippet.starts_with('…'), "{query}: {snippet}");
        assert!(snippet.chars().count() < 510);
        let found = ask(&memory, "search_knowledge_base", json!({"query": query})).await;
        assert!(found["results"][0]["content"].as_str().unwrap().contains("the needle is here"), "{found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whether_there_is_more_is_said_truly() {
    let folder = Folder::new();
    let memory = folder.server();
    let some: Vec<Value> = (0..7)
        .map(|n| json!({"name": format!("n{n}"), "entityType": "t", "observations": ["crane"]}))
        .collect();
    ask(&memory, "create_entities", json!({"entities": some})).await;
    for (limit, count, more) in [(5, 5, true), (7, 7, false), (20, 7, false)] {
        let found = ask(&memory, "search_knowledge_base", json!({"query": "crane", "limit": limit})).await;
        assert_eq!((&found["count"], &found["hasMore"]), (&json!(count), &json!(more)), "{limit}");
        assert_eq!(found["total"], Value::Null, "nobody has counted all");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_say_what_is_structured() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let relations: Vec<Value> =
        ["tea", "Kiel"].iter().map(|to| json!({"from": "Ann", "to": to, "relationType": "likes"})).collect();
    ask(&memory, "create_relations", json!({"relations": relations})).await;
    for (tool, arguments, expected) in [
        ("get_relation", relations[0].clone(), json!({"relation": relations[0]})),
        (
            "get_relation",
            json!({"from": "Ann", "to": "Ann", "relationType": "is"}),
            json!({"relation": null}),
        ),
        ("get_relations", json!({"entityName": "Ann"}), json!({"relations": relations, "truncated": false})),
        (
            "get_relations",
            json!({"entityName": "Ann", "limit": 1}),
            json!({"relations": [relations[1]], "truncated": true}),
        ),
    ] {
        let told = call_as(&memory, None, tool, arguments).await;
        let text: Value = serde_json::from_str(told["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!((&text, &told["structuredContent"]), (&expected, &expected), "{tool}");
    }
    let told = call_as(&memory, None, "open_nodes", json!({"names": ["Ann", "Nobody"]})).await;
    let structured = &told["structuredContent"];
    assert_eq!((structured.get("nodes"), &structured["found"]), (None, &json!(1)));
    assert_eq!(structured["notFound"], json!(["Nobody"]));
    let text: Value = serde_json::from_str(told["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, json!({"entities": [ann()], "relations": relations}));
}

#[tokio::test(flavor = "multi_thread")]
async fn spaces_around_a_query_do_not_matter() {
    let folder = Folder::new();
    let memory = folder.server();
    know(&memory, &[("Ann", &["one"]), (" Ben", &["two"]), (" Ann", &["three"])]).await;
    let said = refused(&memory, "semantic_search", json!({"query": "   "})).await;
    assert!(said.contains("query: must not be blank"), "{said}");
    assert_eq!(found(&memory, "  Ben\n").await, [" Ben"]);
    for (given, name) in [
        ("Ann", "Ann"),
        ("  Ann ", "Ann"),
        (" Ann", " Ann"),
        (" Ben", " Ben"),
        ("thing:Ann", "Ann"),
        ("thing: Ann", " Ann"),
        (" thing:  Ann", "Ann"),
        ("thing: Ben", " Ben"),
    ] {
        for field in ["query", "entity_id"] {
            let found = ask(&memory, "lookup_entity", json!({field: given})).await;
            assert_eq!(
                (&found["entity"]["name"], &found["lookup_mode"]),
                (&json!(name), &json!("exact")),
                "{given:?}"
            );
        }
    }
    let found = ask(&memory, "lookup_entity", json!({"query": " Ben  "})).await;
    assert_eq!(found["entity"]["name"], " Ben", "by its words");
}
