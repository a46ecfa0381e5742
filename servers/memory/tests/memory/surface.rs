//! Resources, prompts and completions.

use serde_json::{Value, json};
use tidegate_protocol::{Method, Symbol};

use crate::rig::{Folder, ann, ask, request};

#[tokio::test(flavor = "multi_thread")]
async fn resources_show_the_graph_and_each_entity() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(
        &memory,
        "create_entities",
        json!({"entities": [ann(), {"name": "a b/ü", "entityType": "t", "observations": ["odd"]}]}),
    )
    .await;
    let read =
        async |tenant, uri: &str| request(&memory, tenant, Method::ResourcesRead, json!({"uri": uri})).await;
    let graph = read(None, "memory://knowledge-graph").await.unwrap();
    assert_eq!(graph["contents"][0]["mimeType"], "application/json");
    let graph: Value = serde_json::from_str(graph["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(graph["entities"][0], ann());
    let odd = read(None, "memory://entities/a%20b%2F%C3%BC").await.unwrap();
    assert!(odd["contents"][0]["text"].as_str().unwrap().contains("odd"));
    for (tenant, uri) in [(None, "memory://entities/Nobody"), (Some("other"), "memory://entities/Ann")] {
        assert_eq!(read(tenant, uri).await.unwrap_err().symbol(), Symbol::ResourceNotFound, "{uri}");
    }
    let typed = json!({"ref": {"type": "ref/resource", "uri": "memory://entities/{name}{?tenant_id}"}, "argument": {"name": "name", "value": "an"}});
    let completed = request(&memory, None, Method::Complete, typed).await.unwrap();
    assert_eq!(completed["completion"]["values"], json!(["Ann"]));
    let pattern = json!({"ref": {"type": "ref/resource", "uri": "memory://entities/{name}{?tenant_id}"}, "argument": {"name": "name", "value": "%"}});
    let completed = request(&memory, None, Method::Complete, pattern).await.unwrap();
    assert_eq!(completed["completion"]["values"], json!([]), "a pattern stands for itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_bring_what_is_known() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann(), {"name": "Use tea", "entityType": "decision", "observations": ["agreed in May"]}]})).await;
    ask(
        &memory,
        "create_relations",
        json!({"relations": [{"from": "Use tea", "to": "Ann", "relationType": "relates_to"}]}),
    )
    .await;
    ask(
        &memory,
        "delete_observations",
        json!({"deletions": [{"entityName": "Ann", "observations": ["lives in Kiel"]}]}),
    )
    .await;
    for (name, arguments, there, absent) in [
        (
            "get-context",
            json!({"query": "tea"}),
            vec!["Ann (person)", "Use tea (decision)", "Use tea relates_to Ann"],
            vec!["Kiel"],
        ),
        (
            "get-context",
            json!({"query": "tea", "entityTypes": "person", "includeHistory": "true"}),
            vec!["Ann (person)", "Kiel"],
            vec!["agreed"],
        ),
        ("get-context", json!({"query": "zebra"}), vec!["knows nothing about \"zebra\""], vec![]),
        ("review-context", json!({"entityName": "Ann"}), vec!["likes tea", "agreed in May"], vec!["Kiel"]),
        (
            "review-context",
            json!({"entityName": "Ann", "includeDecisions": "false", "includeRelated": "false"}),
            vec!["likes tea"],
            vec!["agreed", "relates_to"],
        ),
        (
            "init-project",
            json!({"projectName": "Dam", "description": "a wall", "goals": "dry feet, fish"}),
            vec!["\"Dam\"", "- dry feet\n- fish"],
            vec![],
        ),
        (
            "remember-work",
            json!({"workType": "task", "name": "Dig", "description": "dug", "dependsOn": "[\"Spade\"]", "partOfFeature": "Dam"}),
            vec!["\"Dig\" depends_on \"Spade\"", "\"Dig\" part_of \"Dam\""],
            vec!["decision"],
        ),
    ] {
        let got = request(&memory, None, Method::PromptsGet, json!({"name": name, "arguments": arguments}))
            .await
            .unwrap();
        let text = got["messages"][0]["content"]["text"].as_str().unwrap();
        for wanted in there {
            assert!(text.contains(wanted), "{name}: {wanted} is not in {text}");
        }
        for unwanted in absent {
            assert!(!text.contains(unwanted), "{name}: {unwanted} is in {text}");
        }
    }
    for (name, arguments, field) in [
        ("remember-work", json!({"workType": "nap", "name": "x", "description": "y"}), "workType"),
        ("review-context", json!({"entityName": "Nobody"}), "Nobody"),
        ("get-context", json!({"query": " "}), "query"),
        ("get-context", json!({"query": "a", "includeHistory": "maybe"}), "includeHistory"),
    ] {
        let error = request(&memory, None, Method::PromptsGet, json!({"name": name, "arguments": arguments}))
            .await
            .unwrap_err();
        assert!(error.message().contains(field), "{name}: {}", error.message());
    }
    let typed = json!({"ref": {"type": "ref/prompt", "name": "get-context"}, "argument": {"name": "entityTypes", "value": "dec"}});
    let completed = request(&memory, None, Method::Complete, typed).await.unwrap();
    assert_eq!(completed["completion"]["values"], json!(["decision"]));
}
