//! Finding by meaning, with a model in a folder and with a service.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_memory::{Embedder, Endpoint, MemoryServerSettings, server_with};
use tidegate_server::ServerDoor;

use crate::loopback::serve;
use crate::rig::{Folder, ask, call_as, refused};

/// Words and what they mean: drinks, vehicles, people, and which of them is the odd one.
pub(crate) const WORDS: [(&str, [f32; 4]); 8] = [
    ("[UNK]", [9.0, 9.0, 9.0, 9.0]),
    ("tea", [1.0, 0.0, 0.0, 0.1]),
    ("coffee", [1.0, 0.0, 0.0, -0.1]),
    ("truck", [0.0, 1.0, 0.0, 0.1]),
    ("car", [0.0, 1.0, 0.0, -0.1]),
    ("ann", [0.0, 0.0, 0.2, 0.0]),
    ("bob", [0.0, 0.0, 0.2, 0.0]),
    ("person", [0.0, 0.0, 0.2, 0.0]),
];

/// A model2vec model of these words, in a folder.
pub(crate) fn model(folder: &Folder, name: &str, words: &[(&str, [f32; 4])]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::create_dir_all(&path).unwrap();
    let vocabulary: serde_json::Map<String, Value> =
        words.iter().enumerate().map(|(id, (word, _))| ((*word).to_owned(), json!(id))).collect();
    let tokenizer = json!({
        "normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": vocabulary},
    });
    let data: Vec<u8> =
        words.iter().flat_map(|(_, row)| row).flat_map(|number| number.to_le_bytes()).collect();
    let header =
        json!({"embeddings": {"dtype": "F32", "shape": [words.len(), 4], "data_offsets": [0, data.len()]}});
    let header = header.to_string();
    let mut table = (header.len() as u64).to_le_bytes().to_vec();
    table.extend(header.as_bytes());
    table.extend(data);
    std::fs::write(path.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    std::fs::write(path.join("config.json"), "{\"normalize\": true}").unwrap();
    std::fs::write(path.join("model.safetensors"), table).unwrap();
    path
}

fn server(folder: &Folder, embedder: Embedder) -> ServerDoor {
    let mut options = MemoryServerSettings::default();
    options.embeddings = Some(embedder);
    server_with(folder.store(), options)
}

fn local(folder: &Folder) -> ServerDoor {
    server(folder, Embedder::folder(model(folder, "tiny", &WORDS)).unwrap())
}

pub(crate) fn people() -> Value {
    json!({"entities": [
        {"name": "Ann", "entityType": "person", "observations": ["likes tea"]},
        {"name": "Bob", "entityType": "person", "observations": ["has a truck"]},
    ]})
}

/// Waits until every page of the tenant has its vector.
pub(crate) async fn settled(memory: &ServerDoor, tenant: Option<&str>) {
    for _ in 0..1000 {
        let seen = call_as(memory, tenant, "diagnose_vector_search", json!({})).await;
        if seen["structuredContent"]["pending"] == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("there are still pages without vectors");
}

/// Who is found by meaning alone.
pub(crate) async fn meant(memory: &ServerDoor, tenant: Option<&str>, query: &str) -> Vec<String> {
    let arguments = json!({"query": query, "hybridSearch": false, "minSimilarity": 0.5});
    let found = call_as(memory, tenant, "semantic_search", arguments).await["structuredContent"].clone();
    assert_eq!(found["searchType"], "semantic", "{found}");
    let names = found["results"].as_array().unwrap().iter();
    names.map(|result| result["entity"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_means_the_same_is_found() {
    let folder = Folder::new();
    let memory = local(&folder);
    ask(&memory, "create_entities", people()).await;
    settled(&memory, None).await;
    let found = ask(&memory, "semantic_search", json!({"query": "coffee"})).await;
    assert_eq!((found["count"].as_u64(), &found["searchType"]), (Some(1), &json!("hybrid")), "{found}");
    let result = &found["results"][0];
    assert_eq!(
        result["entity"],
        json!({"name": "Ann", "entityType": "person", "observations": ["likes tea"]})
    );
    assert_eq!(result["snippet"], "likes tea");
    // ann + person + tea is (1, 0, 0.4, 0.1), coffee is (1, 0, 0, -0.1).
    let cosine = 0.99 / (1.17_f64.sqrt() * 1.01_f64.sqrt());
    assert!((result["similarity"].as_f64().unwrap() - cosine).abs() < 0.01, "{result}");
    assert_eq!(meant(&memory, None, "a car").await, ["Bob"]);
    assert_eq!(meant(&memory, None, "zebra").await, [""; 0], "a word without meaning is near to nothing");
    for (query, names) in [("coffee", &["Ann"][..]), ("a car", &["Bob"]), ("zebra", &[]), ("tea", &["Ann"])] {
        let found = ask(&memory, "search_nodes", json!({"query": query})).await;
        let entities = found["entities"].as_array().unwrap();
        let found_names: Vec<_> = entities.iter().map(|entity| entity["name"].as_str().unwrap()).collect();
        assert_eq!(found_names, names, "{query}");
        let by_meaning = found["note"].as_str().is_some_and(|note| note.contains("meaning"));
        assert_eq!(by_meaning, query == "coffee" || query == "a car", "{found}");
    }
    let words = ask(&memory, "semantic_search", json!({"query": "likes"})).await;
    assert_eq!(words["results"][0]["entity"]["name"], "Ann", "words count as well: {words}");
    for (types, count) in [(json!(["person"]), 1), (json!(["place"]), 0), (json!([]), 1)] {
        let found = ask(&memory, "semantic_search", json!({"query": "coffee", "entity_types": types})).await;
        assert_eq!(found["count"], count, "{types}");
    }
    let near = ask(&memory, "semantic_search", json!({"query": "coffee", "min_similarity": 0.95})).await;
    assert_eq!(near["count"], 0);
    let embedding = ask(&memory, "get_entity_embedding", json!({"entityName": "Ann"})).await;
    assert_eq!(embedding["entityName"], "Ann");
    assert!(embedding["model"].as_str().unwrap().starts_with("tiny#"));
    let numbers: Vec<f64> =
        embedding["embedding"].as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect();
    assert!(
        (numbers.iter().map(|n| n * n).sum::<f64>() - 1.0).abs() < 1e-5 && numbers.len() == 4,
        "{numbers:?}"
    );
    for (tool, arguments, named) in [
        ("semantic_search", json!({"query": " "}), "query"),
        ("semantic_search", json!({"query": "x", "limit": 0}), "limit"),
        ("semantic_search", json!({"query": "x", "minSimilarity": 2}), "min_similarity"),
        ("semantic_search", json!({"query": "x", "semanticWeight": -1}), "semantic_weight"),
        ("get_entity_embedding", json!({"entity_name": "Nobody"}), "Nobody"),
        ("get_entity_embedding", json!({}), "entity_name"),
    ] {
        let said = refused(&memory, tool, arguments.clone()).await;
        assert!(said.contains(named), "{tool} {arguments}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_words_do_and_it_says_so() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", people()).await;
    let found = ask(&memory, "semantic_search", json!({"query": "who likes tea"})).await;
    assert_eq!(found["searchType"], "lexical");
    assert!(found["note"].as_str().unwrap().contains("no embedding model"), "{found}");
    assert_eq!(found["results"][0]["entity"]["name"], "Ann");
    assert_eq!(found["results"][0]["similarity"], 0.6667, "two of three words are there");
    let near =
        ask(&memory, "semantic_search", json!({"query": "who likes tea", "min_similarity": 0.9})).await;
    assert_eq!(near["count"], 0);
    let said = refused(&memory, "get_entity_embedding", json!({"entity_name": "Ann"})).await;
    assert!(said.contains("No embedding model") && said.contains("[memory.embeddings]"), "{said}");
    assert_eq!(ask(&memory, "debug_embedding_config", json!({})).await["configured"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_followed_by_other_processes_too() {
    let folder = Folder::new();
    let (memory, other) = (local(&folder), local(&folder));
    ask(&memory, "create_entities", people()).await;
    settled(&memory, None).await;
    assert_eq!(meant(&memory, None, "coffee").await, ["Ann"]);
    assert_eq!(meant(&other, None, "coffee").await, ["Ann"]);
    ask(&memory, "add_observations", json!({"entityName": "Bob", "contents": ["tea tea tea tea tea"]})).await;
    settled(&memory, None).await;
    assert_eq!(meant(&memory, None, "coffee").await, ["Bob", "Ann"]);
    assert_eq!(meant(&other, None, "coffee").await, ["Bob", "Ann"]);
    ask(
        &memory,
        "delete_observations",
        json!({"deletions": [{"entityName": "Bob", "observations": ["tea tea tea tea tea"]}]}),
    )
    .await;
    ask(&memory, "delete_entities", json!({"entityNames": ["Ann"]})).await;
    settled(&memory, None).await;
    for memory in [&memory, &other] {
        assert_eq!(meant(memory, None, "coffee").await, [""; 0]);
        assert_eq!(meant(memory, None, "car").await, ["Bob"]);
    }
    ask(&memory, "create_entities", people()).await;
    settled(&memory, None).await;
    assert_eq!(meant(&other, None, "coffee").await, ["Ann"], "what comes back is found again");
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_are_apart() {
    let folder = Folder::new();
    let memory = local(&folder);
    call_as(&memory, Some("a"), "create_entities", people()).await;
    let other =
        json!({"entities": [{"name": "Ann", "entityType": "person", "observations": ["truck truck"]}]});
    call_as(&memory, Some("b"), "create_entities", other).await;
    settled(&memory, Some("a")).await;
    settled(&memory, Some("b")).await;
    assert_eq!(meant(&memory, Some("a"), "coffee").await, ["Ann"]);
    assert_eq!(meant(&memory, Some("b"), "coffee").await, [""; 0]);
    assert_eq!(meant(&memory, Some("b"), "car").await, ["Ann"]);
    assert_eq!(meant(&memory, None, "car").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_makes_all_vectors_anew() {
    let folder = Folder::new();
    let memory = local(&folder);
    let many = (0..600).map(|n| json!({"name": format!("n{n}"), "entityType": "t", "observations": ["tea"]}));
    ask(&memory, "create_entities", json!({"entities": many.collect::<Vec<_>>()})).await;
    ask(&memory, "create_entities", people()).await;
    settled(&memory, None).await;
    let old = ask(&memory, "get_entity_embedding", json!({"entity_name": "Ann"})).await;
    drop(memory);
    // The same words mean something else.
    let mut words = WORDS;
    words[1].1 = [0.0, 1.0, 0.0, 0.0];
    let memory = server(&folder, Embedder::folder(model(&folder, "other", &words)).unwrap());
    settled(&memory, None).await;
    let new = ask(&memory, "get_entity_embedding", json!({"entity_name": "Ann"})).await;
    assert!(old["model"] != new["model"] && old["embedding"] != new["embedding"], "{old} {new}");
    let near =
        ask(&memory, "semantic_search", json!({"query": "car", "hybrid_search": false, "limit": 100})).await;
    assert_eq!(near["count"], 100);
    assert_eq!(meant(&memory, None, "coffee").await, [""; 0]);
}

/// A service that knows the words above. What it was asked is counted.
async fn service(broken: Arc<AtomicUsize>, dimensions: Arc<AtomicUsize>) -> String {
    let (base, _) = serve(move |_, (_, body)| {
        let body: Value = serde_json::from_str(body).unwrap();
        if broken.load(Ordering::SeqCst) > 0 {
            return (403, String::new(), br#"{"error":{"message":"out of order"}}"#.to_vec());
        }
        let vector = |text: &Value| {
            let text = text.as_str().unwrap().to_lowercase();
            let mut sum = [0.0; 4];
            for (_, row) in WORDS.iter().filter(|(word, _)| text.contains(word)) {
                sum.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
            }
            let mut sum = sum.to_vec();
            sum.resize(dimensions.load(Ordering::SeqCst), 0.0);
            sum
        };
        // One text is not to its taste.
        if body["input"].as_array().unwrap().iter().any(|text| text.as_str().unwrap().contains("poison")) {
            let said = json!({"error": {"message": format!("refused: {}", body["input"])}});
            return (400, String::new(), said.to_string().into_bytes());
        }
        let data: Vec<Value> =
            body["input"].as_array().unwrap().iter().map(|text| json!({"embedding": vector(text)})).collect();
        (200, String::new(), json!({"data": data}).to_string().into_bytes())
    })
    .await;
    base
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_is_refused_is_nobody_elses_trouble() {
    let folder = Folder::new();
    let (broken, dimensions) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(4)));
    let base = service(broken.clone(), dimensions).await;
    let memory = server(&folder, Embedder::endpoint(Endpoint::new(&base, "wire")).unwrap());
    let asked = async |tenant, query: &str| {
        call_as(&memory, Some(tenant), "semantic_search", json!({"query": query})).await.to_string()
    };
    assert!(asked("reef", "poison coralword").await.contains("refused"), "who asks is told");
    let told = [
        asked("tide", "tea").await,
        call_as(&memory, Some("tide"), "diagnose_vector_search", json!({})).await.to_string(),
    ];
    assert!(
        told[0].contains("\"searchType\":\"semantic\"") || told[0].contains("\"searchType\":\"hybrid\""),
        "{}",
        told[0]
    );
    broken.store(1, Ordering::SeqCst);
    assert!(asked("reef", "coralword").await.contains("out of order"));
    let paused = asked("tide", "coffee").await;
    assert!(paused.contains("failed a moment ago"), "{paused}");
    for told in told.iter().chain([&paused]) {
        assert!(!told.contains("coralword") && !told.contains("out of order"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_fails_does_not_stop_anybody() {
    let folder = Folder::new();
    let (broken, dimensions) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(4)));
    let base = service(broken.clone(), dimensions.clone()).await;
    let embedder = || Embedder::endpoint(Endpoint::new(&base, "wire")).unwrap();
    let memory = server(&folder, embedder());
    let bad = json!({"entities": [{"name": "Eve", "entityType": "person", "observations": ["poison"]}]});
    ask(&memory, "create_entities", bad).await;
    ask(&memory, "create_entities", people()).await;
    for _ in 0..1000 {
        if meant(&memory, None, "coffee").await == ["Ann"] && meant(&memory, None, "car").await == ["Bob"] {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        meant(&memory, None, "car").await,
        ["Bob"],
        "one text that is refused does not keep back the others"
    );

    broken.store(1, Ordering::SeqCst);
    let found = ask(&memory, "semantic_search", json!({"query": "tea"})).await;
    assert_eq!(found["searchType"], "lexical");
    assert!(found["note"].as_str().unwrap().contains("out of order"), "{found}");
    assert_eq!(found["results"][0]["entity"]["name"], "Ann");
    assert!(ask(&memory, "diagnose_vector_search", json!({})).await["failure"].is_string());
    drop(memory);

    // The same name, but other vectors.
    broken.store(0, Ordering::SeqCst);
    dimensions.store(6, Ordering::SeqCst);
    let memory = server(&folder, embedder());
    ask(&memory, "delete_entities", json!({"entityNames": ["Eve"]})).await;
    let mut found = Vec::new();
    for _ in 0..1000 {
        found = meant(&memory, None, "coffee").await;
        if found == ["Ann"] {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(found, ["Ann"]);
    let embedding = ask(&memory, "get_entity_embedding", json!({"entity_name": "Ann"})).await;
    assert_eq!(embedding["embedding"].as_array().unwrap().len(), 6);
}

#[test]
fn a_folder_that_is_no_model_is_named() {
    let folder = Folder::new();
    let said = Embedder::folder(folder.path().join("nothing")).err().unwrap().message;
    assert!(said.contains("config.json") && said.contains("model2vec"), "{said}");
    let path = model(&folder, "short", &WORDS);
    let table = std::fs::read(path.join("model.safetensors")).unwrap();
    std::fs::write(path.join("model.safetensors"), &table[..table.len() - 4]).unwrap();
    let said = Embedder::folder(&path).err().unwrap().message;
    assert!(said.contains("model.safetensors") && said.contains("not all there"), "{said}");
}
