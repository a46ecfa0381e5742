//! Tenants that are named by an argument, where nobody is known.

use serde_json::{Value, json};
use tidegate_memory::{Listed, MemoryServerSettings, server_with};
use tidegate_protocol::{Error, Method, Symbol};
use tidegate_server::ServerDoor;

use crate::rig::{Folder, ann, ask, call_as, refused, request};

/// What everybody is told who names a tenant that is not theirs.
pub(crate) const FOREIGN: &str =
    "tenant_id: Tenant not found. Leave it out: whose memory is used follows from who you are";

/// Reads a resource. `more` is put among the parameters.
async fn read(memory: &ServerDoor, tenant: Option<&str>, uri: &str, more: Value) -> Result<Value, Error> {
    let mut params = json!({"uri": uri});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let read = request(memory, tenant, Method::ResourcesRead, params).await?;
    assert_eq!(read["contents"][0]["uri"], uri);
    assert_eq!(read["contents"][0]["mimeType"], "application/json");
    Ok(serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap())
}

fn agent(tenant: &str, user: &str, name: &str) -> Value {
    json!({
        "tenant_id": tenant, "user_id": user, "agent_name": name, "description": format!("Help {user} of {tenant}."),
        "output_schema": {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
        "tools": ["search_nodes"],
    })
}

async fn names(memory: &tidegate_server::ServerDoor, tenant: Option<&str>, given: Value) -> Vec<String> {
    let result = call_as(memory, tenant, "read_graph", json!({"tenant_id": given})).await;
    assert_ne!(result["isError"], true, "{result}");
    let entities = result["structuredContent"]["entities"].as_array().unwrap().clone();
    entities.iter().map(|entity| entity["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_named_has_a_memory_of_its_own() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()], "tenant_id": "my-tenant"})).await;
    assert_eq!(names(&memory, None, json!("my-tenant")).await, ["Ann"]);
    for usual in [Value::Null, json!(""), json!("default"), json!("other")] {
        assert!(names(&memory, None, usual.clone()).await.is_empty(), "{usual}");
    }
    // It is the same as that of somebody who is known to be of that tenant.
    assert_eq!(names(&memory, Some("my-tenant"), Value::Null).await, ["Ann"]);
    assert_eq!(names(&memory, Some("my-tenant"), json!("my-tenant")).await, ["Ann"]);
    let denied = call_as(&memory, Some("other"), "read_graph", json!({"tenant_id": "my-tenant"})).await;
    assert_eq!(denied["isError"], true);
    let said = denied["content"][0]["text"].as_str().unwrap();
    assert_eq!(said, FOREIGN);
    let said = refused(&memory, "read_graph", json!({"tenant_id": 5})).await;
    assert_eq!(said, "Invalid arguments for read_graph: tenant_id: 5 is not of type \"string\"");
    // Resources are those of the usual tenant.
    let graph = json!({"uri": "memory://knowledge-graph"});
    let graph = request(&memory, None, Method::ResourcesRead, graph).await.unwrap();
    assert!(!graph["contents"][0]["text"].as_str().unwrap().contains("Ann"), "{graph}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_percolate_are_understood() {
    let folder = Folder::new();
    let memory = folder.server();
    let agent = json!({
        "tenant_id": "my-tenant", "user_id": "user-123", "agent_name": "my-custom-agent", "description": "Help.",
        "output_schema": {"type": "object", "properties": {"answer": {"type": "string"}}},
    });
    let made = ask(&memory, "create_agent", agent).await;
    assert_eq!(made["agent_uri"], "agentlet://user/user-123/my-custom-agent");
    for uri in ["my-custom-agent", "user/user-123/my-custom-agent", "user/my-tenant/my-custom-agent"] {
        let found = ask(&memory, "get_agent", json!({"agent_uri": uri, "tenant_id": "my-tenant"})).await;
        assert_eq!(found["agent_uri"], made["agent_uri"], "{uri}");
    }
    let said = refused(&memory, "get_agent", json!({"agent_uri": "user/user-123/my-custom-agent"})).await;
    assert!(said.starts_with("agent_uri: Agent not found"), "{said}");
    let document =
        json!({"text": "Express Shipping is quick.", "title": "Shipping", "tenant_id": "my-tenant"});
    ask(&memory, "ingest_document", document).await;
    let search = json!({"query": "shipping", "tenant_id": "my-tenant", "limit": 5});
    assert_eq!(ask(&memory, "search_knowledge_base", search).await["count"], 1);
    let other = json!({"query": "shipping", "tenant_id": "test-tenant"});
    assert_eq!(ask(&memory, "search_knowledge_base", other).await["count"], 0);
    let service = json!({"name": "Express Shipping", "entityType": "service", "observations": ["next-day"]});
    ask(&memory, "create_entities", json!({"entities": [service], "tenant_id": "my-tenant"})).await;
    let lookup = json!({"entity_type": "service", "query": "Express Shipping", "tenant_id": "my-tenant"});
    assert_eq!(ask(&memory, "lookup_entity", lookup).await["entity"]["name"], "Express Shipping");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_lists_the_tenant_unless_it_is_known_who_calls() {
    for is_authenticated in [false, true] {
        let folder = Folder::new();
        let mut options = MemoryServerSettings::default();
        assert!(!options.is_authenticated, "as long as nobody has to say who they are");
        options.listed = Listed::All;
        options.is_authenticated = is_authenticated;
        let memory = server_with(folder.store(), options);
        let listed = request(&memory, None, Method::ToolsList, json!({})).await.unwrap();
        for tool in listed["tools"].as_array().unwrap() {
            let schema = &tool["inputSchema"];
            let tenant = &schema["properties"]["tenant_id"];
            assert_eq!(tenant["type"] == "string", !is_authenticated, "{tool}");
            assert_eq!(schema["additionalProperties"], json!(false), "{tool}");
        }
        if is_authenticated {
            continue;
        }
        // It is taken, and is not a way to the memory of somebody else.
        ask(&memory, "create_entities", json!({"entities": [ann()], "tenant_id": "acme"})).await;
        assert_eq!(names(&memory, None, json!("acme")).await, ["Ann"]);
        let denied = call_as(&memory, Some("other"), "read_graph", json!({"tenant_id": "acme"})).await;
        assert_eq!(denied["content"][0]["text"], FOREIGN);
        assert_eq!(denied["_meta"]["dev.tidegate/error"]["symbol"], "TENANT_NOT_FOUND");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_follow_the_tenant_that_is_named() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()], "tenant_id": "acme"})).await;
    let kept =
        ask(&memory, "ingest_document", json!({"text": "secret", "title": "T", "tenant_id": "acme"})).await;
    let document = kept["document"]["uri"].as_str().unwrap();
    for (uri, more) in [
        ("memory://knowledge-graph?tenant_id=acme", json!({})),
        ("memory://knowledge-graph", json!({"_meta": {"tenant_id": "acme"}})),
        ("memory://knowledge-graph", json!({"_meta": {"dev.tidegate/tenant": "acme"}})),
        ("memory://knowledge-graph?tenant_id=acme", json!({"_meta": {"tenant_id": "acme"}})),
        ("memory://entities/Ann?tenant_id=acme", json!({})),
        ("memory://entities/Ann", json!({"_meta": {"tenant_id": "acme"}})),
    ] {
        let graph = read(&memory, None, uri, more.clone()).await.unwrap();
        assert_eq!(graph["entities"][0]["name"], "Ann", "{uri} {more}");
        // Somebody else does not get there by naming it.
        let denied = read(&memory, Some("other"), uri, more.clone()).await.unwrap_err();
        assert_eq!(denied.symbol(), Symbol::TenantNotFound, "{uri}");
        assert_eq!(denied.message(), FOREIGN, "{uri}");
        // And its own users may say it.
        read(&memory, Some("acme"), uri, more).await.unwrap();
    }
    let text =
        request(&memory, None, Method::ResourcesRead, json!({"uri": format!("{document}?tenant_id=acme")}));
    assert_eq!(text.await.unwrap()["contents"][0]["text"], "secret");
    let graph = read(&memory, None, "memory://knowledge-graph", json!({})).await.unwrap();
    assert_eq!(graph["entities"], json!([]));
    for (uri, more) in [
        ("memory://knowledge-graph?tenant_id=acme", json!({"_meta": {"tenant_id": "other"}})),
        ("memory://knowledge-graph", json!({"_meta": {"tenant_id": 5}})),
        ("memory://knowledge-graph?tenant_id=%20", json!({})),
    ] {
        let error = read(&memory, None, uri, more).await.unwrap_err();
        assert_eq!(error.symbol(), Symbol::Validation, "{}", error.message());
        assert!(error.message().starts_with("tenant_id: "), "{}", error.message());
    }
    // What is listed can be read as it is listed.
    let listed = json!({"_meta": {"tenant_id": "acme"}});
    let listed = request(&memory, None, Method::ResourcesList, listed).await.unwrap();
    let uris: Vec<_> =
        listed["resources"].as_array().unwrap().iter().map(|one| one["uri"].as_str().unwrap()).collect();
    let uri = "memory://entities/Ann?tenant_id=acme";
    assert!(uris.contains(&uri) && uris.contains(&&*format!("{document}?tenant_id=acme")), "{uris:?}");
    read(&memory, None, uri, json!({})).await.unwrap();
    // Names are completed from the tenant that is filled in already.
    let typed = |context: Value| {
        json!({
            "ref": {"type": "ref/resource", "uri": "memory://entities/{name}{?tenant_id}"},
            "argument": {"name": "name", "value": "A"}, "context": {"arguments": context},
        })
    };
    for (context, names) in [(json!({"tenant_id": "acme"}), json!(["Ann"])), (json!({}), json!([]))] {
        let completed = request(&memory, None, Method::Complete, typed(context)).await.unwrap();
        assert_eq!(completed["completion"]["values"], names);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_was_made_can_be_read() {
    let folder = Folder::new();
    let memory = folder.server();
    let made = ask(&memory, "create_agent", agent("tenant-123", "user-123", "my-custom-agent")).await;
    let uri = made["agent_uri"].as_str().unwrap();
    assert_eq!(uri, "agentlet://user/user-123/my-custom-agent");
    let qualified = format!("{uri}?tenant_id=tenant-123");
    for uri in [uri, &qualified] {
        let document = read(&memory, None, uri, json!({})).await.unwrap();
        assert_eq!(document["description"], "Help user-123 of tenant-123.", "{uri}");
        // Whoever is authenticated reads their own tenant's, ever.
        let denied = read(&memory, Some("other"), uri, json!({})).await.unwrap_err();
        assert!(
            matches!(denied.symbol(), Symbol::ResourceNotFound | Symbol::TenantNotFound),
            "{}",
            denied.message()
        );
    }
    read(&memory, Some("tenant-123"), uri, json!({})).await.unwrap();
    // Who names the default tenant means that one, and no other.
    for (uri, more) in [
        (format!("{uri}?tenant_id=default"), json!({})),
        (uri.to_owned(), json!({"_meta": {"tenant_id": "default"}})),
    ] {
        let error = read(&memory, None, &uri, more).await.unwrap_err();
        assert!(error.message().contains("Agent not found"), "{uri}: {}", error.message());
    }
    // Tools take the tenant from the URI, too.
    let found = ask(&memory, "get_agent", json!({"agent_uri": qualified})).await;
    assert_eq!(found["agentlet"]["short_name"], "my-custom-agent");
    let two = json!({"agent_uri": qualified, "tenant_id": "other"});
    assert!(refused(&memory, "get_agent", two).await.starts_with("tenant_id: the call names two tenants"));
    // Once another tenant has the same, the tenant has to be said: in the URI that is given back, for one.
    let made = ask(&memory, "create_agent", agent("other", "user-123", "my-custom-agent")).await;
    let theirs = made["agent_uri"].as_str().unwrap();
    assert_eq!(theirs, "agentlet://user/user-123/my-custom-agent?tenant_id=other");
    for (uri, tenant) in [(theirs, "other"), (&*qualified, "tenant-123")] {
        let document = read(&memory, None, uri, json!({})).await.unwrap();
        assert_eq!(document["description"], format!("Help user-123 of {tenant}."));
    }
    let error = read(&memory, None, uri, json!({})).await.unwrap_err();
    assert!(
        error.message().contains("several tenants have this agent: add ?tenant_id="),
        "{}",
        error.message()
    );
    // The default tenant comes first.
    let made = ask(&memory, "create_agent", agent("default", "user-123", "my-custom-agent")).await;
    assert_eq!(made["agent_uri"], uri);
    let document = read(&memory, None, uri, json!({})).await.unwrap();
    assert_eq!(document["description"], "Help user-123 of default.");
    // The memory of a person who is authenticated is nobody else's.
    let mut own = agent("default", "ann", "diary");
    own.as_object_mut().unwrap().remove("tenant_id");
    let made = call_as(&memory, Some("~ann"), "create_agent", own).await;
    let uri = made["structuredContent"]["agent_uri"].as_str().unwrap();
    let error = read(&memory, None, uri, json!({})).await.unwrap_err();
    assert_eq!(error.symbol(), Symbol::ResourceNotFound, "{}", error.message());
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_agents_have_their_schemas_and_only_ones_own() {
    let folder = Folder::new();
    let memory = folder.server();
    for (tenant, user, name) in [
        ("acme", "ann", "first"),
        ("acme", "ann", "second"),
        ("acme", "bob", "third"),
        ("default", "ann", "fourth"),
    ] {
        ask(&memory, "create_agent", agent(tenant, user, name)).await;
    }
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    for (uri, more, expected) in [
        ("my-agents://list?tenant_id=acme&user_id=ann", json!({}), vec!["first", "second"]),
        ("my-agents://list?user_id=bob&tenant_id=acme", json!({}), vec!["third"]),
        ("my-agents://list", json!({"_meta": {"tenant_id": "acme", "user_id": "bob"}}), vec!["third"]),
        ("my-agents://list?user_id=ann", json!({}), vec!["fourth"]),
        ("my-agents://list?tenant_id=acme&user_id=ann&after=first", json!({}), vec!["second"]),
        ("my-agents://list", json!({}), vec![]),
        ("my-agents://list?tenant_id=nobody", json!({}), vec![]),
    ] {
        let list = read(&memory, None, uri, more).await.unwrap();
        assert_eq!(names(&list), expected, "{uri}");
        for one in list.as_array().unwrap() {
            read(&memory, None, one["uri"].as_str().unwrap(), json!({})).await.unwrap();
        }
    }
    let list = read(&memory, None, "my-agents://list?tenant_id=acme&user_id=bob", json!({})).await.unwrap();
    assert_eq!(
        list,
        json!([{
            "uri": "agentlet://user/bob/third?tenant_id=acme",
            "name": "third",
            "short_name": "third",
            "title": "third",
            "fully_qualified_name": "user.agents.third",
            "system": false,
            "version": "1.0.0",
            "description": "Help bob of acme.",
            "type": "object",
            "properties": {"answer": {"type": "string"}},
            "required": ["answer"],
            "json_schema_extra": {"tools": [{"tool_name": "search_nodes"}], "resources": []},
        }])
    );
    let system = read(&memory, None, "system-agents://list", json!({})).await.unwrap();
    assert_eq!(system.as_array().unwrap().len(), 6);
    for one in system.as_array().unwrap() {
        for member in ["fully_qualified_name", "description", "version", "uri"] {
            assert!(one[member].is_string(), "{member} of {one}");
        }
        assert!(one["properties"].is_object() && one["required"].is_array(), "{one}");
        assert!(one["json_schema_extra"]["tools"].is_array(), "{one}");
    }
    let forged = read(&memory, Some("~ann"), "my-agents://list?user_id=bob", json!({})).await.unwrap_err();
    assert!(forged.message().contains("user_id: must be your own"), "{}", forged.message());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_of_agents_goes_on_elsewhere() {
    let folder = Folder::new();
    let memory = folder.server();
    let mut made = Vec::new();
    for n in 0..30 {
        let mut agent = agent("acme", "ann", &format!("agent-{n:02}"));
        agent["output_schema"]["properties"]["answer"]["description"] = "x".repeat(60_000).into();
        ask(&memory, "create_agent", agent).await;
        made.push(format!("agent-{n:02}"));
    }
    let (mut uri, mut found, mut pages) =
        ("my-agents://list?tenant_id=acme&user_id=ann".to_owned(), Vec::new(), 0);
    loop {
        let page = request(&memory, None, Method::ResourcesRead, json!({"uri": uri})).await.unwrap();
        let text = page["contents"][0]["text"].as_str().unwrap();
        assert!(text.len() <= 1024 * 1024 + 1024, "{}", text.len());
        let list: Vec<Value> = serde_json::from_str(text).unwrap();
        found.extend(list.iter().map(|one| one["name"].as_str().unwrap().to_owned()));
        pages += 1;
        match page["contents"][0]["_meta"]["dev.tidegate/next"].as_str() {
            Some(next) => uri = next.to_owned(),
            None => break,
        }
    }
    assert_eq!((found, pages), (made, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_said_by_its_symbol() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_entities", json!({"entities": [ann()], "tenant_id": "acme"})).await;
    for (tool, arguments, symbol, field) in [
        ("ask_agent", json!({"agent_uri": "nobody", "prompt": "?"}), "AGENT_NOT_FOUND", "agent_uri"),
        (
            "ask_agent",
            json!({"agent_uri": "user/bob/x", "prompt": "?", "tenant_id": "acme"}),
            "AGENT_NOT_FOUND",
            "agent_uri",
        ),
        ("get_agent", json!({"agent_uri": "nobody", "tenant_id": "acme"}), "AGENT_NOT_FOUND", "agent_uri"),
        ("delete_agent", json!({"agent_uri": "nobody"}), "AGENT_NOT_FOUND", "agent_uri"),
        ("get_agent_history", json!({"agent_uri": "nobody"}), "AGENT_NOT_FOUND", "agent_uri"),
        (
            "ask_agent",
            json!({"agent_uri": "nobody", "prompt": "?", "tenant_id": "acm"}),
            "TENANT_NOT_FOUND",
            "tenant_id",
        ),
        (
            "ask_agent",
            json!({"agent_uri": "user/bob/x", "prompt": "?", "tenant_id": "acm"}),
            "TENANT_NOT_FOUND",
            "tenant_id",
        ),
        ("get_agent", json!({"agent_uri": "nobody", "tenant_id": "acm"}), "TENANT_NOT_FOUND", "tenant_id"),
        (
            "get_agent_history",
            json!({"agent_uri": "nobody", "tenant_id": "acm"}),
            "TENANT_NOT_FOUND",
            "tenant_id",
        ),
        (
            "lookup_entity",
            json!({"entity_type": "person", "query": "Ann", "tenant_id": "acm"}),
            "TENANT_NOT_FOUND",
            "tenant_id",
        ),
        ("get_document", json!({"id": "doc-1", "tenant_id": "acm"}), "TENANT_NOT_FOUND", "tenant_id"),
        ("get_session", json!({"session_id": "s", "tenant_id": "acm"}), "TENANT_NOT_FOUND", "tenant_id"),
        (
            "ask_agent",
            json!({"agent_uri": "nobody", "prompt": "?", "tenant_id": "a\nb"}),
            "VALIDATION_ERROR",
            "tenant_id",
        ),
    ] {
        let result = call_as(&memory, None, tool, arguments.clone()).await;
        let error = &result["_meta"]["dev.tidegate/error"];
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        assert_eq!(error["symbol"], symbol, "{tool} {arguments}: {error}");
        assert_eq!(error["data"]["field"], field, "{tool} {arguments}: {error}");
        assert!(error["data"]["reason"].is_string(), "{error}");
    }
    for uri in ["agentlet://user/bob/x", "memory://entities/Ann", "memory://documents/doc-1"] {
        let error = read(&memory, None, &format!("{uri}?tenant_id=acm"), json!({})).await.unwrap_err();
        assert_eq!(error.symbol(), Symbol::TenantNotFound, "{uri}: {}", error.message());
    }
    // Looking makes nobody a tenant; lists and searches of nobody are empty.
    for (tool, arguments) in [
        ("read_graph", json!({"tenant_id": "acm"})),
        ("search_nodes", json!({"query": "Ann", "tenant_id": "acm"})),
        ("search_knowledge_base", json!({"query": "Ann", "tenant_id": "acm"})),
        ("list_agents", json!({"tenant_id": "acm"})),
        ("get_agent", json!({"agent_uri": "researcher", "tenant_id": "acm"})),
    ] {
        ask(&memory, tool, arguments).await;
    }
    let graph = read(&memory, None, "memory://knowledge-graph?tenant_id=acm", json!({})).await.unwrap();
    assert_eq!(graph["entities"], json!([]));
    assert_eq!(folder.number("SELECT COUNT(*) FROM tenants"), 1);
}
