//! What there is as resources: listed in pages, read under the addresses that are listed, offered as completions.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_protocol::{Method, Symbol};
use tidegate_server::ServerDoor;

use crate::rig::{Folder, ann, ask, call_as, request};

/// What is listed for everybody.
const FIXED: [&str; 10] = [
    "system-agents://list",
    "my-agents://list",
    "agentlet://system/researcher",
    "agentlet://system/librarian",
    "agentlet://system/edge-builder",
    "agentlet://system/moment-generator",
    "agentlet://system/mcp-agent",
    "agentlet://system/test-agent",
    "memory://knowledge-graph",
    "memory://timeline",
];

async fn page(memory: &ServerDoor, tenant: Option<&str>, params: Value) -> Value {
    request(memory, tenant, Method::ResourcesList, params).await.unwrap()
}

fn entries(page: &Value) -> Vec<Value> {
    page["resources"].as_array().unwrap().clone()
}

/// The whole list, and how many entries each page has.
async fn whole(memory: &ServerDoor, tenant: Option<&str>) -> (Vec<Value>, Vec<usize>) {
    let (mut all, mut sizes, mut params) = (Vec::new(), Vec::new(), json!({}));
    loop {
        let page = page(memory, tenant, params).await;
        sizes.push(entries(&page).len());
        all.extend(entries(&page));
        match page.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return (all, sizes),
        }
        assert!(sizes.len() < 100, "without end");
    }
}

fn uris(entries: &[Value]) -> Vec<&str> {
    entries.iter().map(|entry| entry["uri"].as_str().unwrap()).collect()
}

async fn read(
    memory: &ServerDoor,
    tenant: Option<&str>,
    uri: &str,
) -> Result<Value, tidegate_protocol::Error> {
    let read = request(memory, tenant, Method::ResourcesRead, json!({"uri": uri})).await?;
    Ok(read["contents"][0].clone())
}

/// Makes entities, as many at a time as there may be.
async fn things(memory: &ServerDoor, count: usize) {
    let thing = |n: usize| json!({"name": format!("thing {n}"), "entityType": "thing", "observations": []});
    let all: Vec<_> = (0..count).map(thing).collect();
    for some in all.chunks(5_000) {
        ask(memory, "create_entities", json!({"entities": some})).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_listed_with_what_is_known_of_it() {
    let folder = Folder::new();
    let memory = folder.server();
    assert_eq!(uris(&whole(&memory, None).await.0), FIXED);
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let kept = ask(&memory, "ingest_document", json!({"text": "# Tides\n\nThey come and gö."})).await;
    let agent = json!({"agent_name": "Greeter", "description": "Greets people.",
        "output_schema": {"type": "object", "properties": {"text": {"type": "string"}}}});
    ask(&memory, "create_agent", agent).await;
    let (all, sizes) = whole(&memory, None).await;
    assert_eq!(sizes, [FIXED.len() + 3]);
    let own = &all[FIXED.len()..];
    let (id, uri) = (kept["document"]["id"].as_str().unwrap(), kept["document"]["uri"].as_str().unwrap());
    assert_eq!(uris(own), [uri, "agentlet://user/default/Greeter", "memory://entities/Ann"]);
    let expected = [
        json!({"name": id, "title": "Tides", "mimeType": "text/markdown", "size": 27,
            "description": "A document in the knowledge base documents"}),
        json!({"name": "Greeter", "title": "Greeter", "mimeType": "application/json",
            "description": "Greets people."}),
        json!({"name": "Ann", "title": "Ann", "mimeType": "application/json",
            "description": "What is known about Ann, of type person"}),
    ];
    for (entry, expected) in own.iter().zip(&expected) {
        for (member, value) in expected.as_object().unwrap() {
            assert_eq!(&entry[member], value, "{entry}");
        }
        let modified = entry["annotations"]["lastModified"].as_str().unwrap();
        assert!(modified.starts_with("20") && modified.ends_with('Z'), "{modified}");
    }
    for entry in &all {
        let contents = read(&memory, None, entry["uri"].as_str().unwrap()).await.unwrap();
        assert_eq!(contents["mimeType"], entry["mimeType"], "{entry}");
        if let Some(size) = entry["size"].as_u64() {
            assert_eq!(contents["text"].as_str().unwrap().len() as u64, size, "{entry}");
        }
    }
    assert_eq!(uris(&whole(&memory, Some("other")).await.0), FIXED, "nobody else's");
    ask(&memory, "delete_entities", json!({"entityNames": ["Ann"]})).await;
    ask(&memory, "delete_document", json!({"id": id})).await;
    ask(&memory, "delete_agent", json!({"agent_name": "greeter"})).await;
    assert_eq!(uris(&whole(&memory, None).await.0), FIXED);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_learned_last_counts() {
    let folder = Folder::new();
    let memory = folder.server();
    let modified = async || {
        let (all, _) = whole(&memory, None).await;
        all[FIXED.len()]["annotations"]["lastModified"].as_str().unwrap().to_owned()
    };
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    let mut last = modified().await;
    for n in 0..3 {
        tokio::time::sleep(Duration::from_millis(3)).await;
        let contents: Vec<_> = (0..40).map(|m| format!("{n} {m}")).collect();
        ask(&memory, "add_observations", json!({"entityName": "Ann", "contents": contents})).await;
        let now = modified().await;
        assert!(now > last, "{now} {last}");
        last = now;
    }
    tokio::time::sleep(Duration::from_millis(3)).await;
    ask(&memory, "update_entity", json!({"name": "Ann", "newName": "Anna"})).await;
    assert!(modified().await > last);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_comes_in_pages_that_stay_where_they_are() {
    let folder = Folder::new();
    let memory = folder.server();
    things(&memory, 2_500).await;
    let (all, sizes) = whole(&memory, None).await;
    assert_eq!(sizes, [1_000, 1_000, 510]);
    assert_eq!(all[FIXED.len()]["name"], "thing 2499", "the newest first");
    let names: BTreeSet<_> = uris(&all).into_iter().collect();
    assert_eq!(names.len(), 2_510, "each once");

    let first = page(&memory, None, json!({})).await;
    // The page ends with thing 1508. What comes, goes and changes in between neither hides nor repeats anything.
    let gone: Vec<_> = (1_400..1_520).map(|n| format!("thing {n}")).collect();
    ask(&memory, "delete_entities", json!({"entityNames": gone})).await;
    ask(&memory, "create_entities", json!({"entities": [ann()]})).await;
    ask(&memory, "update_entity", json!({"name": "thing 1399", "newName": "another"})).await;
    ask(&memory, "update_entity", json!({"name": "thing 2499", "newName": "the first"})).await;
    let second = page(&memory, None, json!({"cursor": first["nextCursor"]})).await;
    let names: Vec<_> =
        entries(&second).iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!((names.len(), &*names[0], &*names[1]), (1_000, "another", "thing 1398"));
    assert_eq!(names[999], "thing 400");

    for (tenant, cursor) in [
        (None, json!("1508")),
        (None, json!("")),
        (None, json!(7)),
        (Some("other"), first["nextCursor"].clone()),
        (Some("~ann"), first["nextCursor"].clone()),
    ] {
        let params = json!({"cursor": cursor});
        let error = request(&memory, tenant, Method::ResourcesList, params).await.unwrap_err();
        assert_eq!(error.symbol(), Symbol::InvalidCursor, "{cursor}");
        assert!(
            error.message().contains("the cursor does not belong to this list; start again without a cursor")
        );
    }
}

/// Names that mean something in an address, or nothing anywhere.
const ODD: [&str; 14] = [
    "a b",
    "a/b",
    "a//b/../c",
    "100%",
    "%41",
    "%",
    "what? & why#not",
    "日本 🦀",
    "Zoë",
    "..",
    "{name}",
    "a+b=c;d,e",
    "\"<>\\^`|",
    "http://x.example/?q=1#f",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_name_is_read_under_the_address_that_is_listed() {
    let folder = Folder::new();
    let memory = folder.server();
    let entity =
        |name: &&str| json!({"name": name, "entityType": "odd", "observations": [format!("is {name}")]});
    ask(&memory, "create_entities", json!({"entities": ODD.iter().map(entity).collect::<Vec<_>>()})).await;
    let (all, _) = whole(&memory, None).await;
    let listed = &all[FIXED.len()..];
    assert_eq!(listed.len(), ODD.len());
    for entry in listed {
        let (name, uri) = (entry["name"].as_str().unwrap(), entry["uri"].as_str().unwrap());
        assert!(ODD.contains(&name));
        assert!(uri.bytes().all(|b| b.is_ascii_graphic() && !b"\"<>\\^`{|}?#".contains(&b)), "{uri}");
        for spelled in [uri.to_owned(), uri.replace("%C3%AB", "%c3%ab").replace("%2F", "%2f")] {
            let contents = read(&memory, None, &spelled).await.unwrap();
            let graph: Value = serde_json::from_str(contents["text"].as_str().unwrap()).unwrap();
            assert_eq!(graph["entities"][0]["name"], name);
            assert_eq!(graph["entities"].as_array().unwrap().len(), 1);
        }
    }
    // By hand, nearly right.
    for (uri, name) in [
        ("memory://entities/Zoë", "Zoë"),
        ("memory://entities/a b", "a b"),
        ("memory://entities/100%", "100%"),
    ] {
        let contents = read(&memory, None, uri).await.unwrap();
        assert!(contents["text"].as_str().unwrap().contains(&format!("is {name}")), "{uri}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_with_nothing_behind_it_says_what_is_wrong() {
    let folder = Folder::new();
    let memory = folder.server();
    for (uri, why) in [
        ("memory://entities/Nobody", "There is no entity \"Nobody\" in the memory"),
        ("memory://entities/50%25", "There is no entity \"50%\" in the memory"),
        ("memory://entities/50%", "\"%\" in it is no escaped byte: a percent sign is written %25"),
        ("memory://entities/%zz", "\"%zz\" in it is no escaped byte"),
        ("memory://entities/%FF", "no text in UTF-8"),
        ("memory://entities/a/b", "has / ? # as %2F %3F %23"),
        ("memory://entities/a?b", "has / ? # as %2F %3F %23"),
        ("memory://entities/", "incomplete"),
        ("memory://documents/doc-99", "There is no document at memory://documents/doc-99"),
        ("memory://documents/ninety", "must be an id such as \"doc-1\""),
        ("memory://nothing", "Resource not found: memory://nothing"),
        ("knowledge-graph", "does not begin with a scheme"),
        ("agentlet://nobody", "there is no agent \"nobody\""),
        ("agentlet://user/someone/else/there", "is not the URI of an agent"),
        ("agentlet://", "agentlet://"),
    ] {
        let error = read(&memory, None, uri).await.unwrap_err();
        assert_eq!(error.symbol(), Symbol::ResourceNotFound, "{uri}: {}", error.message());
        assert!(error.message().contains(why), "{uri}: {}", error.message());
    }
}

async fn completed(memory: &ServerDoor, reference: &Value, argument: &str, value: &str) -> Vec<String> {
    let typed = json!({"ref": reference, "argument": {"name": argument, "value": value}});
    let completed = request(memory, None, Method::Complete, typed).await.unwrap();
    serde_json::from_value(completed["completion"]["values"].clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_types_are_completed() {
    let folder = Folder::new();
    let memory = folder.server();
    let entity = |(name, kind): &(&str, &str)| json!({"name": name, "entityType": kind, "observations": []});
    let known = [
        ("Ann", "person"),
        ("anchor", "Part"),
        ("ANVIL", "part"),
        ("Bob", "person"),
        ("Ämil", "person"),
        ("a%b", "odd"),
    ];
    ask(&memory, "create_entities", json!({"entities": known.iter().map(entity).collect::<Vec<_>>()})).await;
    call_as(
        &memory,
        Some("other"),
        "create_entities",
        json!({"entities": [{"name": "Anonymous", "entityType": "pet"}]}),
    )
    .await;
    let template = json!({"type": "ref/resource", "uri": "memory://entities/{name}{?tenant_id}"});
    let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
    for (reference, argument, typed, offered) in [
        (&template, "name", "an", vec!["anchor", "Ann", "ANVIL"]),
        (&template, "name", "AN", vec!["anchor", "Ann", "ANVIL"]),
        (&template, "name", "Ä", vec!["Ämil"]),
        (&template, "name", "a%", vec!["a%b"]),
        (&template, "name", "%", vec![]),
        (&template, "name", "", vec!["a%b", "anchor", "Ann", "ANVIL", "Bob", "Ämil"]),
        (&prompt("review-context"), "entityName", "b", vec!["Bob"]),
        (&prompt("remember-work"), "implementsTask", "bo", vec!["Bob"]),
        (&prompt("remember-work"), "dependsOn", "Ann, bo", vec!["Ann, Bob"]),
        (&prompt("get-context"), "entityTypes", "p", vec!["Part", "part", "person"]),
        (&prompt("get-context"), "entityTypes", "person,o", vec!["person,odd"]),
        (&prompt("extract-entities"), "entityTypes", "pe", vec!["person"]),
    ] {
        assert_eq!(completed(&memory, reference, argument, typed).await, offered, "{argument} {typed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_completed_by_number_and_title() {
    let folder = Folder::new();
    let memory = folder.server();
    for n in 0..12 {
        ask(&memory, "ingest_document", json!({"text": format!("text {n}"), "title": format!("Title {n}")}))
            .await;
    }
    let template = json!({"type": "ref/resource", "uri": "memory://documents/{id}{?tenant_id}"});
    let summary = json!({"type": "ref/prompt", "name": "create-summary"});
    let (all, _) = whole(&memory, None).await;
    let ids: Vec<_> = all[FIXED.len()..].iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 12);
    assert_eq!(completed(&memory, &template, "id", "").await, ids, "the newest first");
    // Ids are numbers of rows, of which each version takes one.
    let ends = |id: &&&str| id.starts_with("doc-1");
    let mut wanted: Vec<_> = ids.iter().filter(ends).copied().collect();
    wanted.sort_by_key(|id| (id.len(), *id));
    assert_eq!(completed(&memory, &template, "id", "doc-1").await, wanted);
    assert_eq!(completed(&memory, &template, "id", "title 11").await, [ids[0]]);
    assert_eq!(completed(&memory, &template, "id", "doc-0").await, [""; 0]);
    assert_eq!(completed(&memory, &template, "id", "doc-99999999999999999999").await, [""; 0]);
    let offered = completed(&memory, &summary, "documents", "Title 3, title 10").await;
    assert_eq!(offered, ["Title 3, Title 10"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_anybody_have_an_address_that_can_be_read() {
    let folder = Folder::new();
    let memory = folder.server();
    let agent =
        json!({"agent_name": "greeter", "description": "Greets.", "output_schema": {"type": "object"}});
    for owner in ["~jürgen@example.org", "~auth0|12"] {
        let made = call_as(&memory, Some(owner), "create_agent", agent.clone()).await;
        let uri =
            made["structuredContent"]["agent_uri"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
        assert!(uri.is_ascii() && !uri.contains('|'), "{uri}");
        let (all, _) = whole(&memory, Some(owner)).await;
        assert_eq!(uris(&all[FIXED.len()..]), [&uri]);
        assert!(
            read(&memory, Some(owner), &uri).await.unwrap()["text"].as_str().unwrap().contains("Greets.")
        );
        let asked = call_as(&memory, Some(owner), "get_agent", json!({"agent_uri": uri})).await;
        assert_eq!(asked["structuredContent"]["agent_uri"], uri);
        assert_eq!(read(&memory, None, &uri).await.unwrap_err().symbol(), Symbol::ResourceNotFound);
    }
}
