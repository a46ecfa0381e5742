//! Documents as clients see them: kept, found, changed, watched.

use serde_json::{Value, json};
use tidegate_protocol::{Json, Limits, Method, Params, Symbol};
use tidegate_service::{Call, Context, Door, Notice, Reply};

use crate::knowledge::sources;
use crate::rig::{Folder, ann, ask, refused, request};

const TIDES: &str =
    "# Tides\n\nThe moon pulls the sea.\n\n## Spring tides\n\nSun and moon stand in one line.\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_kept_found_and_shown() {
    let folder = Folder::new();
    let memory = folder.server();
    let kept = ask(
        &memory,
        "ingest_document",
        json!({"text": TIDES, "tags": ["sea"], "metadata": {"year": 1898}, "tenant_id": "default"}),
    )
    .await;
    assert_eq!((&kept["status"], &kept["outcome"]), (&json!("success"), &json!("created")));
    let document = &kept["document"];
    let uri = document["uri"].as_str().unwrap();
    assert_eq!(uri, format!("memory://documents/{}", document["id"].as_str().unwrap()));
    for (member, value) in [
        ("title", json!("Tides")),
        ("knowledgeBase", json!("documents")),
        ("source", json!("text")),
        ("mimeType", json!("text/markdown")),
        ("bytes", json!(TIDES.len())),
        ("chunks", json!(1)),
        ("tags", json!(["sea"])),
        ("metadata", json!({"year": 1898})),
        ("version", json!(1)),
    ] {
        assert_eq!(document[member], value, "{member}");
    }
    let again = ask(&memory, "ingest_document", json!({"text": TIDES})).await;
    assert_eq!((&again["outcome"], &again["document"]), (&json!("unchanged"), document), "tags stay, too");

    ask(
        &memory,
        "create_entities",
        json!({"entities": [ann(), {"name": "Moon", "entityType": "body", "observations": ["pulls"]}]}),
    )
    .await;
    let found = ask(&memory, "search_knowledge_base", json!({"query": "moon pulls"})).await;
    assert_eq!(
        (&found["status"], &found["search"], &found["count"]),
        (&json!("success"), &json!("lexical"), &json!(2))
    );
    let mut all = sources(&found);
    all.sort_unstable();
    assert_eq!(all, [uri, "memory://entities/Moon"]);
    let piece = found["results"].as_array().unwrap().iter().find(|one| one["source"] == uri).unwrap();
    assert!(piece["content"].as_str().unwrap().contains("The moon pulls the sea"));
    assert!(piece["score"].as_f64().unwrap() > 0.0);
    assert_eq!(piece["metadata"]["heading"], "Tides");
    assert_eq!((&piece["metadata"]["chunk"], &piece["metadata"]["lines"]), (&json!(1), &json!([1, 7])));
    for (arguments, wanted) in [
        (json!({"query": "moon pulls", "knowledge_base": "documents"}), vec![uri]),
        (json!({"query": "moon pulls", "knowledge_base": "codebase"}), vec![]),
        (json!({"query": "moon pulls", "schema": "resources"}), vec![uri]),
        (json!({"query": "moon pulls", "schema": "entities", "limit": 1}), vec!["memory://entities/Moon"]),
        (json!({"query": "moon tea", "schema": "person"}), vec!["memory://entities/Ann"]),
    ] {
        let found = ask(&memory, "search_knowledge_base", arguments.clone()).await;
        assert_eq!(sources(&found), wanted, "{arguments}");
    }

    let part = ask(&memory, "get_document", json!({"uri": uri, "offset": 2, "limit": 5})).await;
    assert_eq!(
        (&part["text"], &part["offset"], &part["nextOffset"]),
        (&json!("Tides"), &json!(2), &json!(7))
    );
    let whole = ask(&memory, "get_document", json!({"id": document["id"]})).await;
    assert_eq!((&whole["text"], whole.get("nextOffset")), (&json!(TIDES), None));
    let read = request(&memory, None, Method::ResourcesRead, json!({"uri": uri})).await.unwrap();
    assert_eq!(read["contents"][0], json!({"uri": uri, "mimeType": "text/markdown", "text": TIDES}));
    for bad in ["memory://documents/doc-999", "memory://documents/x", "memory://documents/doc-1%20or%201"] {
        let error = request(&memory, None, Method::ResourcesRead, json!({"uri": bad})).await.unwrap_err();
        assert_eq!(error.symbol(), Symbol::ResourceNotFound, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_stay_and_what_did_not_change_is_not_written_again() {
    let folder = Folder::new();
    let memory = folder.server();
    let section = |name: &str| format!("# {name}\n\n{}\n\n", format!("All about {name}. ").repeat(60));
    let before: String = ["one", "two", "three"].map(section).concat();
    let after: String = ["zero", "one", "three"].map(section).concat();
    let made = ask(&memory, "ingest_document", json!({"text": before, "title": "Numbers"})).await;
    let id = made["document"]["id"].clone();
    let changed =
        ask(&memory, "update_document", json!({"id": id, "text": after, "metadata": {"a": 1}})).await;
    assert_eq!((&changed["outcome"], &changed["document"]["version"]), (&json!("updated"), &json!(2)));
    let retitled =
        ask(&memory, "update_document", json!({"id": id, "title": "Digits", "metadata": {"b": 2}})).await;
    assert_eq!(retitled["document"]["metadata"], json!({"a": 1, "b": 2}));
    let same = ask(&memory, "update_document", json!({"id": id, "title": "Digits"})).await;
    assert_eq!((&same["outcome"], &same["document"]["version"]), (&json!("unchanged"), &json!(3)));
    for (query, count) in [("\"all about two\" two", 0), ("digits zero", 1), ("numbers", 0)] {
        let words = query.rsplit(' ').next().unwrap();
        let found = ask(&memory, "search_knowledge_base", json!({"query": words})).await;
        assert_eq!(found["count"].as_u64().unwrap().min(1), count, "{words}: {found}");
    }
    let old = ask(&memory, "get_document", json!({"id": id, "version": 1, "limit": 100000})).await;
    assert_eq!((&old["text"], &old["title"]), (&json!(before), &json!("Numbers")));
    let now = ask(&memory, "get_document", json!({"id": id, "limit": 100000})).await;
    assert_eq!((&now["text"], &now["createdAt"]), (&json!(after), &old["createdAt"]));
    let texts = folder.number("SELECT count(*) FROM document_texts");
    let chunks = old["chunks"].as_i64().unwrap();
    assert!(texts > chunks && texts < 2 * chunks, "{texts} texts for {chunks} chunks and as many again");

    let indexed = "SELECT count(*) FROM words_1";
    assert_eq!(folder.number(indexed), now["chunks"], "pieces that are gone are not searched");
    let gone = ask(&memory, "delete_document", json!({"id": id})).await;
    assert_eq!(gone["success"], json!(true));
    assert_eq!(folder.number(indexed), 0);
    assert_eq!(ask(&memory, "list_documents", json!({})).await, json!({"documents": [], "count": 0}));
    assert_eq!(ask(&memory, "search_knowledge_base", json!({"query": "zero"})).await["count"], 0);
    let why = refused(&memory, "get_document", json!({"id": id})).await;
    assert!(why.contains("was deleted") && why.contains("\"version\": 3"), "{why}");
    let last = ask(&memory, "get_document", json!({"id": id, "version": 3, "limit": 100000})).await;
    assert_eq!(last["text"], json!(after));
    for (tool, arguments) in
        [("delete_document", json!({"id": id})), ("update_document", json!({"id": id, "title": "x"}))]
    {
        let why = refused(&memory, tool, arguments).await;
        assert!(why.contains("There is no document"), "{tool}: {why}");
    }
    // What comes again is found again.
    let back = ask(&memory, "ingest_document", json!({"text": after, "title": "Digits"})).await;
    assert_eq!((&back["outcome"], back["document"]["id"] == id), (&json!("created"), false));
    assert!(
        ask(&memory, "search_knowledge_base", json!({"query": "zero"})).await["count"].as_i64() > Some(0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_listed_page_by_page() {
    let folder = Folder::new();
    let memory = folder.server();
    for n in 0..5 {
        let base = if n % 2 == 0 { "codebase" } else { "general" };
        let document = json!({"text": format!("fn number_{n}() {{}}"), "title": format!("{n}.rs"), "knowledge_base": base});
        ask(&memory, "ingest_document", document).await;
    }
    let titles = |list: &Value| -> Vec<String> {
        list["documents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["title"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = ask(&memory, "list_documents", json!({"limit": 2})).await;
    assert_eq!(titles(&first), ["4.rs", "3.rs"]);
    let second = ask(&memory, "list_documents", json!({"limit": 2, "cursor": first["nextCursor"]})).await;
    assert_eq!(titles(&second), ["2.rs", "1.rs"]);
    let third = ask(&memory, "list_documents", json!({"limit": 2, "cursor": second["nextCursor"]})).await;
    assert_eq!((titles(&third), third.get("nextCursor")), (vec!["0.rs".to_owned()], None));
    let code = ask(&memory, "list_documents", json!({"knowledge_base": "codebase", "limit": 3})).await;
    assert_eq!((titles(&code).len(), code.get("nextCursor")), (3, None));
    let found = ask(
        &memory,
        "search_knowledge_base",
        json!({"query": "fn", "knowledge_base": "codebase", "limit": 20}),
    )
    .await;
    assert_eq!(found["count"], 3);
    for (arguments, why) in [
        (json!({"limit": 0}), "limit"),
        (json!({"limit": 101}), "limit"),
        (json!({"cursor": "1 OR 1=1"}), "cursor: must be the nextCursor"),
        (json!({"knowledge_base": "secret"}), "knowledge_base"),
    ] {
        let said = refused(&memory, "list_documents", arguments).await;
        assert!(said.contains(why), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_put_documents_into_the_conversation() {
    let folder = Folder::new();
    let memory = folder.server();
    let tides = ask(&memory, "ingest_document", json!({"text": TIDES})).await;
    let id = tides["document"]["id"].as_str().unwrap();
    let long = format!("{} the end", "many words ".repeat(5_000));
    ask(&memory, "ingest_document", json!({"text": long, "title": "Long, long"})).await;
    for (name, arguments, there, absent) in [
        (
            "analyze-document",
            json!({"document": id}),
            vec!["The moon pulls", "search_knowledge_base"],
            vec!["goes on"],
        ),
        (
            "analyze-document",
            json!({"document": "Tides", "focus": "the sun"}),
            vec!["the sun", "Sun and moon"],
            vec![],
        ),
        (
            "analyze-document",
            json!({"document": "Long, long"}),
            vec!["get_document", "\"offset\": 40000"],
            vec!["the end"],
        ),
        (
            "create-summary",
            json!({"documents": format!("[\"Long, long\", \"{id}\"]"), "length": "one line"}),
            vec!["one line", "many words", "The moon pulls", "together"],
            vec!["the end"],
        ),
        (
            "extract-entities",
            json!({"document": id, "entityTypes": "person, place"}),
            vec!["create_entities", "person, place", "The moon pulls"],
            vec![],
        ),
    ] {
        let prompt = json!({"name": name, "arguments": arguments});
        let got = request(&memory, None, Method::PromptsGet, prompt).await.unwrap();
        let text = got["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(text.len() < 50_000);
        for wanted in there {
            assert!(text.contains(wanted), "{name}: {wanted} is not in {text}");
        }
        for unwanted in absent {
            assert!(!text.contains(unwanted), "{name}: {unwanted} is in it");
        }
    }
    for (name, arguments, why) in [
        ("analyze-document", json!({"document": "nothing"}), "there is no document \"nothing\""),
        ("create-summary", json!({"documents": " "}), "documents"),
        ("create-summary", json!({"documents": vec!["a"; 21].join(",")}), "at most 20"),
        ("extract-entities", json!({"document": " "}), "document: must not be empty"),
    ] {
        let prompt = json!({"name": name, "arguments": arguments});
        let error = request(&memory, None, Method::PromptsGet, prompt).await.unwrap_err();
        assert!(error.message().contains(why), "{name}: {}", error.message());
    }
    for (reference, argument, typed, offered) in [
        (json!({"type": "ref/prompt", "name": "analyze-document"}), "document", "ti", json!(["Tides"])),
        (json!({"type": "ref/prompt", "name": "create-summary"}), "documents", id, json!([id])),
        (
            json!({"type": "ref/resource", "uri": "memory://documents/{id}{?tenant_id}"}),
            "id",
            "tid",
            json!([id]),
        ),
        (json!({"type": "ref/resource", "uri": "memory://documents/{id}{?tenant_id}"}), "id", "%", json!([])),
    ] {
        let typed = json!({"ref": reference, "argument": {"name": argument, "value": typed}});
        let completed = request(&memory, None, Method::Complete, typed).await.unwrap();
        assert_eq!(completed["completion"]["values"], offered);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_watches_a_document_hears_of_changes() {
    let folder = Folder::new();
    let memory = folder.server();
    let kept = ask(&memory, "ingest_document", json!({"text": TIDES})).await;
    let (id, uri) = (&kept["document"]["id"], kept["document"]["uri"].as_str().unwrap());
    let params = Json::from(json!({"notifications": {"resourceSubscriptions": [uri]}}));
    let params = Params::parse(&params, &Limits::default()).unwrap();
    let call = Call::new(Method::Listen, params, Context::local());
    let Reply::Subscription(watched) = memory.answer(call).await.unwrap() else { panic!("no subscription") };
    for (tool, arguments, told) in [
        ("ingest_document", json!({"text": "another"}), false),
        ("ingest_document", json!({"text": TIDES}), false),
        ("update_document", json!({"id": id, "title": "Ebb"}), true),
        ("update_document", json!({"id": id, "title": "Ebb"}), false),
        ("delete_document", json!({"id": id}), true),
    ] {
        ask(&memory, tool, arguments.clone()).await;
        let heard: Vec<_> = std::iter::from_fn(|| watched.events.try_next()).collect();
        let wanted: Vec<_> =
            told.then(|| Notice::ResourceUpdated(uri.to_owned().into())).into_iter().collect();
        assert_eq!(heard, wanted, "{tool} {arguments}");
    }
}
