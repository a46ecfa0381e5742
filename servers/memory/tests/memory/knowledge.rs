//! Searching the knowledge base and looking up entities.

use serde_json::{Value, json};
use tidegate_protocol::Method;

use crate::rig::{Folder, ann, ask, call_as, refused, request};
use crate::tenants::FOREIGN;

/// Where the results of a search come from.
pub(crate) fn sources(found: &Value) -> Vec<&str> {
    found["results"].as_array().unwrap().iter().map(|one| one["source"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_have_documents_of_their_own() {
    let folder = Folder::new();
    let memory = folder.server();
    let mut ids = Vec::new();
    for tenant in [None, Some("a"), Some("b"), Some("~a")] {
        let text = format!("harbour secret of {tenant:?}");
        let made = call_as(&memory, tenant, "ingest_document", json!({"text": text})).await;
        ids.push((tenant, made["structuredContent"]["document"]["id"].as_str().unwrap().to_owned()));
    }
    for (tenant, own) in &ids {
        let found = call_as(
            &memory,
            *tenant,
            "search_knowledge_base",
            json!({"query": "harbour secret", "limit": 20}),
        )
        .await;
        let found = &found["structuredContent"];
        assert_eq!(sources(found), [format!("memory://documents/{own}")], "{tenant:?}");
        let list = call_as(&memory, *tenant, "list_documents", json!({})).await;
        assert_eq!(list["structuredContent"]["count"], 1);
        for (_, other) in ids.iter().filter(|(_, other)| other != own) {
            for (tool, arguments) in [
                ("get_document", json!({"id": other})),
                ("get_document", json!({"id": other, "version": 1})),
                ("update_document", json!({"id": other, "text": "mine"})),
                ("delete_document", json!({"id": other})),
            ] {
                let result = call_as(&memory, *tenant, tool, arguments).await;
                assert_eq!(result["isError"], json!(true), "{tenant:?} {tool}: {result}");
            }
            let uri = json!({"uri": format!("memory://documents/{other}")});
            assert!(request(&memory, *tenant, Method::ResourcesRead, uri).await.is_err());
            let prompt = json!({"name": "analyze-document", "arguments": {"document": other}});
            assert!(request(&memory, *tenant, Method::PromptsGet, prompt).await.is_err());
        }
        let typed = json!({"ref": {"type": "ref/resource", "uri": "memory://documents/{id}{?tenant_id}"}, "argument": {"name": "id", "value": ""}});
        let offered = request(&memory, *tenant, Method::Complete, typed).await.unwrap();
        assert_eq!(offered["completion"]["values"], json!([own]));
    }
    for (tenant, given, fine) in [
        (None, "default", true),
        (None, "a", true),
        (Some("a"), "a", true),
        (Some("a"), "b", false),
        (Some("a"), "default", false),
        (Some("a"), "tenant:a", false),
        (Some("~a"), "a", true),
        (Some("~a"), "b", false),
        (Some("~a"), "default", true),
    ] {
        for (tool, arguments) in [
            ("search_knowledge_base", json!({"query": "x", "tenant_id": given})),
            ("lookup_entity", json!({"entity_type": "t", "query": "x", "tenant_id": given})),
            ("ingest_document", json!({"text": "x", "tenant_id": given})),
        ] {
            let result = call_as(&memory, tenant, tool, arguments).await;
            assert_eq!(
                !result["isError"].as_bool().unwrap_or_default(),
                fine,
                "{tenant:?} {given}: {result}"
            );
            let said = result["content"][0]["text"].as_str().unwrap();
            assert!(fine || said == FOREIGN, "{said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn syntax_of_databases_in_questions_is_text() {
    let folder = Folder::new();
    let memory = folder.server();
    let odd = "The \"AND\" gate NEAR(the pool); DROP TABLE documents; -- it's 100% title:moon*";
    ask(&memory, "ingest_document", json!({"text": odd, "title": "a'; DROP TABLE chunks; --"})).await;
    // Words that are too long for an index.
    let (long, longer) = ("x".repeat(2_000), "가".repeat(1_900));
    for query in [
        &*long,
        &*longer,
        "\"",
        "'",
        "*",
        "a*",
        "(",
        ")",
        "NEAR(",
        "AND",
        "OR NOT",
        "title:moon",
        "moon^2",
        "-pool",
        "pool AND",
        "{a b}: x",
        "'; DROP TABLE documents; --",
        "\u{0}",
        "%",
        "_",
        "🦀",
        "\\",
        "x\" OR \"1\"=\"1",
        "gate\" *",
    ] {
        let found = ask(&memory, "search_knowledge_base", json!({"query": query})).await;
        assert!(found["count"].as_u64().unwrap() <= 1, "{query}");
        ask(&memory, "lookup_entity", json!({"entity_type": query, "query": query})).await;
        ask(&memory, "lookup_entity", json!({"entity_id": query})).await;
    }
    let found = ask(&memory, "search_knowledge_base", json!({"query": "DROP TABLE documents"})).await;
    assert_eq!(found["count"], 1);
    let named = json!({"name": "analyze-document", "arguments": {"document": "a'; DROP TABLE chunks; --"}});
    request(&memory, None, Method::PromptsGet, named).await.unwrap();
    for (arguments, why) in [
        (json!({"query": " "}), "query: must not be empty"),
        (json!({"query": "x".repeat(2_001)}), "query: must have at most 2000"),
        (json!({"query": "x", "limit": 21}), "limit"),
        (json!({"query": "x", "limit": 0}), "limit"),
    ] {
        let said = refused(&memory, "search_knowledge_base", arguments).await;
        assert!(said.contains(why), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn entities_are_looked_up_by_name_and_by_words() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(
        &memory,
        "create_entities",
        json!({"entities": [
            ann(),
            {"name": "Acme", "entityType": "company", "observations": ["sells tea and anvils"]},
            {"name": "std:vec", "entityType": "module", "observations": []},
        ]}),
    )
    .await;
    ask(
        &memory,
        "create_relations",
        json!({"relations": [
            {"from": "Ann", "to": "Acme", "relationType": "works_at"},
            {"from": "Acme", "to": "Kiel", "relationType": "based_in"},
            {"from": "Kiel", "to": "Ann", "relationType": "misses"},
        ]}),
    )
    .await;
    ask(&memory, "set_properties", json!({"entityName": "Ann", "properties": {"born": 1990}})).await;
    let listed = ask(&memory, "list_entities", json!({})).await;
    let id = |name: &str| -> Value {
        listed["entities"].as_array().unwrap().iter().find(|entity| entity["name"] == name).unwrap()["id"]
            .clone()
    };
    let ann = json!({"id": id("Ann"), "type": "person", "name": "Ann", "properties": {"born": 1990},
        "observations": ["likes tea", "lives in Kiel"]});
    for (arguments, mode, name) in [
        (json!({"entity_id": "Ann"}), "exact", "Ann"),
        (json!({"entity_id": "person:Ann"}), "exact", "Ann"),
        (json!({"entity_id": id("Ann")}), "exact", "Ann"),
        (json!({"entity_type": "module", "entity_id": id("std:vec")}), "exact", "std:vec"),
        (json!({"query": "1990"}), "search", "Ann"),
        (json!({"entity_id": "std:vec"}), "exact", "std:vec"),
        (json!({"entity_id": "module:std:vec"}), "exact", "std:vec"),
        (json!({"entity_type": "person", "query": "Ann"}), "exact", "Ann"),
        (json!({"entity_type": "Person", "query": "tea"}), "search", "Ann"),
        (json!({"entity_type": "company", "query": "tea"}), "search", "Acme"),
        (json!({"query": "anvils"}), "search", "Acme"),
    ] {
        let found = ask(&memory, "lookup_entity", arguments.clone()).await;
        assert_eq!(
            (&found["found"], &found["lookup_mode"]),
            (&json!(true), &json!(mode)),
            "{arguments}: {found}"
        );
        assert_eq!((&found["entity"]["name"], &found["related"]), (&json!(name), &json!([])), "{arguments}");
        if name == "Ann" {
            assert_eq!(found["entity"], ann);
        }
    }
    for (arguments, count) in [
        (json!({"entity_id": "Ann", "include_relationships": true}), 2),
        (json!({"entity_type": "person", "query": "Ann", "include_related": true, "depth": 3}), 3),
    ] {
        let found = ask(&memory, "lookup_entity", arguments).await;
        let related = found["related"].as_array().unwrap();
        assert_eq!(related.len(), count, "{found}");
        assert_eq!(
            related[0],
            json!({"id": id("Acme"), "name": "Acme", "type": "company", "from": "Ann",
            "to": "Acme", "relationType": "works_at", "depth": 1})
        );
        assert_eq!((&related[1]["name"], &related[1]["type"]), (&json!("Kiel"), &json!(null)));
    }
    let none = ask(&memory, "lookup_entity", json!({"entity_id": "person:Kiel"})).await;
    assert_eq!(
        (&none["status"], &none["found"], &none["entity"]),
        (&json!("not_found"), &json!(false), &json!(null))
    );
    assert_eq!(none["message"], "Entity \"person:Kiel\" not found; the closest are person:Ann");
    let none = ask(&memory, "lookup_entity", json!({"entity_type": "person", "query": "zebra"})).await;
    assert_eq!(none["message"], "Entity \"zebra\" of type \"person\" not found; the closest are person:Ann");
    for (arguments, why) in [
        (json!({}), "pass either"),
        (json!({"query": "a", "entity_id": "b"}), "pass either"),
        (json!({"query": ""}), "query: must not be empty"),
        (json!({"entity_id": "Ann", "depth": 4}), "depth"),
    ] {
        let said = refused(&memory, "lookup_entity", arguments).await;
        assert!(said.contains(why), "{said}");
    }
}
