//! Agents: making, finding, changing and deleting them.

use serde_json::{Value, json};
use tidegate_protocol::{Method, Symbol};
use tidegate_server::ServerDoor;

use crate::rig::{Folder, ask, call_as, refused, request};
use crate::tenants::FOREIGN;

fn greeter() -> Value {
    json!({
        "agent_name": "greeter", "description": "Greet whoever writes to you.",
        "output_schema": {"type": "object", "properties": {"greeting": {"type": "string"}}, "required": ["greeting"]},
        "tools": ["search_nodes", {"mcp_server": "web", "tool_name": "get", "usage": "to look"}],
    })
}

async fn read(server: &ServerDoor, tenant: Option<&str>, uri: &str) -> Result<Value, Symbol> {
    let read = request(server, tenant, Method::ResourcesRead, json!({"uri": uri})).await;
    let read = read.map_err(|error| error.symbol())?;
    assert_eq!(read["contents"][0]["mimeType"], "application/json");
    Ok(serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap())
}

async fn sentence(server: &ServerDoor, tenant: Option<&str>, tool: &str, arguments: Value) -> String {
    let result = call_as(server, tenant, tool, arguments).await;
    assert_eq!(result["isError"], true, "{tool}: {result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_lives_from_version_to_version() {
    let folder = Folder::new();
    let memory = folder.server();
    let made = ask(&memory, "create_agent", greeter()).await;
    assert_eq!(made["status"], "success");
    assert_eq!(made["agent_uri"], "agentlet://user/default/greeter");
    assert_eq!(made["message"], "Agent created successfully");
    assert!(
        refused(&memory, "create_agent", greeter()).await.contains("an agent \"greeter\" already exists")
    );
    let listed = ask(&memory, "list_agents", json!({})).await;
    assert_eq!(listed["count"], 7);
    assert_eq!(listed["agents"][0]["name"], "greeter");
    let document = read(&memory, None, "agentlet://user/default/greeter").await.unwrap();
    assert_eq!(document["description"], "Greet whoever writes to you.");
    assert_eq!(document["json_schema_extra"]["tools"][1]["tool_name"], "get");
    assert_eq!(document["properties"]["greeting"]["type"], "string");
    let updated = ask(
        &memory,
        "update_agent",
        json!({"agent_name": "Greeter", "description": "Be brief.", "tools": []}),
    )
    .await;
    assert_eq!(updated["version"], "1.0.1");
    let found = ask(&memory, "get_agent", json!({"agent_uri": "greeter"})).await;
    assert_eq!(found["agentlet"]["description"], "Be brief.");
    assert_eq!(found["agentlet"]["json_schema_extra"]["tools"], json!([]));
    assert_eq!(found["history"].as_array().unwrap().len(), 2);
    assert_eq!(found["history"][0]["agentlet"]["description"], "Greet whoever writes to you.");
    assert_eq!(found["history"][0]["valid_to"], found["history"][1]["valid_from"]);
    assert_eq!(found["history"][1]["changed_by"], "tester");
    ask(&memory, "delete_agent", json!({"agent_uri": "agentlet://user/default/greeter"})).await;
    assert!(
        refused(&memory, "get_agent", json!({"agent_uri": "greeter"})).await.contains("there is no agent")
    );
    assert_eq!(read(&memory, None, "agentlet://greeter").await, Err(Symbol::ResourceNotFound));
    // The name is free again, and what was is still known.
    ask(&memory, "create_agent", greeter()).await;
    let found = ask(&memory, "get_agent", json!({"agent_uri": "greeter"})).await;
    assert_eq!(found["history"].as_array().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_outlive_the_process_that_made_them() {
    let folder = Folder::new();
    ask(&folder.server(), "create_agent", greeter()).await;
    let again = folder.server();
    assert_eq!(ask(&again, "list_agents", json!({})).await["count"], 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_listed_and_completed() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_agent", greeter()).await;
    let system = read(&memory, None, "system-agents://list").await.unwrap();
    let names: Vec<_> =
        system.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["researcher", "librarian", "edge-builder", "moment-generator", "mcp-agent", "test-agent"]
    );
    for item in system.as_array().unwrap() {
        for member in ["fully_qualified_name", "uri", "description", "version"] {
            assert!(item[member].is_string(), "{member} of {item}");
        }
    }
    let own = read(&memory, None, "my-agents://list").await.unwrap();
    assert_eq!(own[0]["uri"], "agentlet://user/default/greeter");
    assert_eq!(own.as_array().unwrap().len(), 1);
    let researcher = read(&memory, None, "agentlet://system/researcher").await.unwrap();
    assert_eq!(researcher["fully_qualified_name"], "tidegate.agents.Researcher");
    let typed = |value: &str| json!({"ref": {"type": "ref/resource", "uri": "agentlet://{+uri}"}, "argument": {"name": "uri", "value": value}});
    let completed = request(&memory, None, Method::Complete, typed("us")).await.unwrap();
    assert_eq!(completed["completion"]["values"], json!(["user/default/greeter"]));
    let completed = request(&memory, None, Method::Complete, typed("system/l")).await.unwrap();
    assert_eq!(completed["completion"]["values"], json!(["system/librarian"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_have_their_own() {
    let folder = Folder::new();
    let memory = folder.server();
    let mut mine = greeter();
    mine["tenant_id"] = "acme".into();
    mine["user_id"] = "ann".into();
    let made = call_as(&memory, Some("acme"), "create_agent", mine.clone()).await;
    assert_eq!(made["structuredContent"]["agent_uri"], "agentlet://user/ann/greeter");
    for uri in ["greeter", "user/ann/greeter", "user/acme/greeter", "agentlet://user/ann/greeter"] {
        let found = call_as(&memory, Some("acme"), "get_agent", json!({"agent_uri": uri})).await;
        assert_eq!(found["structuredContent"]["agent_uri"], "agentlet://user/ann/greeter", "{uri}");
    }
    const DENIED: &str = "Access denied: can only access your own tenant's agents";
    for uri in ["user/acme/greeter", "agentlet://user/acme/greeter", "user/ann/greeter", "user/nobody/x"] {
        for tool in ["get_agent", "delete_agent", "update_agent"] {
            assert_eq!(
                sentence(&memory, Some("other"), tool, json!({"agent_uri": uri})).await,
                DENIED,
                "{uri}"
            );
        }
        let asked = json!({"agent_uri": uri, "prompt": "hello"});
        assert_eq!(sentence(&memory, Some("other"), "ask_agent", asked).await, DENIED);
        let uri = if uri.contains("://") { uri.to_owned() } else { format!("agentlet://{uri}") };
        assert_eq!(read(&memory, Some("other"), &uri).await, Err(Symbol::ResourceNotFound));
    }
    assert!(
        sentence(&memory, Some("other"), "get_agent", json!({"agent_uri": "greeter"}))
            .await
            .contains("no agent")
    );
    let tenant = json!({"tenant_id": mine["tenant_id"]});
    for (tool, arguments) in [("create_agent", &mine), ("list_agents", &tenant), ("list_sessions", &tenant)] {
        let said = sentence(&memory, Some("other"), tool, arguments.clone()).await;
        assert_eq!(said, FOREIGN);
    }
    let theirs = call_as(&memory, Some("other"), "list_agents", json!({"tenant_id": "other"})).await;
    assert_eq!(theirs["structuredContent"]["count"], 6);
    // Who is known cannot be somebody else.
    let forged = json!({"user_id": "bob"});
    assert_eq!(
        sentence(&memory, Some("~ann"), "list_agents", forged).await,
        "user_id: must be your own. Leave it out: it follows from who you are"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_agent_is_refused_with_the_reason() {
    let folder = Folder::new();
    let memory = folder.server();
    let with = |member: &str, value: Value| {
        let mut agent = greeter();
        agent[member] = value;
        agent
    };
    let mut without = greeter();
    without.as_object_mut().unwrap().remove("description");
    for (arguments, begins) in [
        (with("agent_name", "a b".into()), "agent_name: must consist of"),
        (with("agent_name", "x".repeat(65).into()), "agent_name: must have at most 64"),
        (with("description", " ".into()), "description: must not be empty"),
        (with("description", "x".repeat(20_001).into()), "description: must have at most"),
        (with("output_schema", json!({"type": "array"})), "output_schema.type: must be \"object\""),
        (
            with("output_schema", json!({"properties": {"a": {"type": "strin"}}})),
            "output_schema.properties.a.type: cannot be used as a JSON Schema",
        ),
        (
            with("output_schema", json!({"required": "a"})),
            "output_schema.required: cannot be used as a JSON Schema",
        ),
        (
            with("output_schema", json!([])),
            "Invalid arguments for create_agent: output_schema: [] is not of type",
        ),
        (with("tools", json!([{"tool": 1}])), "tools[0]: must be the name of a tool"),
        (with("tools", json!([""])), "tools[0]: must be the name"),
        (with("tools", json!(["search_nodes", "no_such"])), "tools[1]: there is no tool \"no_such\""),
        (
            with("tools", json!([{"mcp_server": "percolate", "tool_name": "no_such"}])),
            "tools[0]: there is no tool \"no_such\"",
        ),
        (
            with("output_schema", json!({"properties": {"a": {}}, "required": ["b"]})),
            "output_schema.required[0]: names \"b\"",
        ),
        (
            with(
                "output_schema",
                json!({"properties": {"a": {}}, "x-percolate": {"embedding_fields": ["b"]}}),
            ),
            "json_schema_extra.embedding_fields[0]: names \"b\"",
        ),
        (json!({"agentlet": {"short_name": "a b", "description": "x"}}), "agentlet.short_name: must consist"),
        (json!({"agentlet": "{nothing"}), "agentlet: must be a JSON object, but its text is not valid JSON"),
        (with("model", "a\nb".into()), "model: must have at most"),
        (with("user_id", "a/b".into()), "user_id: must consist of"),
        (without, "description: is required"),
    ] {
        let said = refused(&memory, "create_agent", arguments.clone()).await;
        assert!(said.starts_with(begins), "{arguments}: {said}");
    }
    for (uri, holds) in [
        ("reseacher", "Similar agents: researcher"),
        ("system/liberian", "Similar agents: librarian"),
        ("http://x/y", "must start with agentlet://"),
        ("a/b/c/d", "is not the URI of an agent"),
        ("", "is empty"),
    ] {
        let said = refused(&memory, "ask_agent", json!({"agent_uri": uri, "prompt": "hello"})).await;
        assert!(said.starts_with("agent_uri: ") && said.contains(holds), "{uri}: {said}");
    }
    let said = refused(&memory, "delete_agent", json!({"agent_uri": "researcher"})).await;
    assert!(said.contains("comes with the server"), "{said}");
    assert_eq!(ask(&memory, "list_agents", json!({})).await["count"], 6, "nothing was kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_come_in_three_forms() {
    let folder = Folder::new();
    let memory = folder.server();
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    for (name, agentlet) in [
        (
            "first",
            json!({"title": "First", "description": "x", "json_schema_extra": {"tools": ["search_nodes"]}, "properties": schema["properties"]}),
        ),
        (
            "second",
            json!({"title": "S", "description": "x", "x-percolate": {"short_name": "second", "tools": ["search_nodes"]}}),
        ),
        (
            "third-one",
            json!({"name": "Third One", "instructions": "x", "result_schema": schema, "mcp_tools": ["search_nodes"]}),
        ),
    ] {
        let made = ask(&memory, "create_agent", json!({"agentlet": agentlet})).await;
        assert_eq!(made["agent_uri"], format!("agentlet://user/default/{name}"));
        let found = ask(&memory, "get_agent", json!({"agent_uri": name})).await;
        assert_eq!(found["agentlet"]["description"], "x");
        assert_eq!(
            found["agentlet"]["json_schema_extra"]["tools"],
            json!([{"tool_name": "search_nodes"}]),
            "{name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_hear_of_changes() {
    use tidegate_protocol::{Json, Limits, Params};
    use tidegate_service::{Call, Context, Door, Notice, Reply};
    let folder = Folder::new();
    let memory = folder.server();
    let wanted = ["my-agents://list", "agentlet://user/default/greeter"];
    let params = Json::from(json!({"notifications": {"resourceSubscriptions": wanted}}));
    let params = Params::parse(&params, &Limits::default()).unwrap();
    let call = Call::new(Method::from_name("subscriptions/listen"), params, Context::local());
    let Reply::Subscription(subscription) = memory.answer(call).await.unwrap() else {
        panic!("no subscription")
    };
    ask(&memory, "create_agent", greeter()).await;
    let mut told = Vec::new();
    while let Some(notice) = subscription.events.try_next() {
        if let Notice::ResourceUpdated(uri) = notice {
            told.push(format!("{uri:?}"));
        }
    }
    assert_eq!(told.len(), 2, "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_found_by_every_name_that_they_have() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_agent", greeter()).await;
    for (uri, name) in [
        ("percolate-test-agent", "system/test-agent"),
        ("percolate-researcher", "system/researcher"),
        ("system/percolate-test-agent", "system/test-agent"),
        ("agentlet://percolate-researcher", "system/researcher"),
        ("tidegate.agents.TestAgent", "system/test-agent"),
        ("agentlet://tidegate.agents.McpAgent", "system/mcp-agent"),
        ("moment-generator", "system/moment-generator"),
        ("user.agents.greeter", "user/default/greeter"),
        ("system/researcher", "system/researcher"),
    ] {
        let found = ask(&memory, "get_agent", json!({"agent_uri": uri})).await;
        assert_eq!(found["agent_uri"], format!("agentlet://{name}"), "{uri}");
        let at = if uri.contains("://") { uri.to_owned() } else { format!("agentlet://{uri}") };
        let document = read(&memory, None, &at).await.unwrap();
        assert_eq!(document["short_name"], name.rsplit('/').next().unwrap(), "{uri}");
    }
    for item in read(&memory, None, "system-agents://list").await.unwrap().as_array().unwrap() {
        let found = ask(&memory, "get_agent", json!({"agent_uri": item["fully_qualified_name"]})).await;
        assert_eq!(found["agent_uri"], item["uri"]);
    }
    let said = refused(&memory, "get_agent", json!({"agent_uri": "tidegate.agents.Nobody"})).await;
    assert!(said.contains("there is no agent"), "{said}");
    // An agent of one's own comes before one of the server that has the same name.
    let mut own = greeter();
    own["agent_name"] = "percolate-researcher".into();
    ask(&memory, "create_agent", own).await;
    for (uri, found) in
        [("percolate-researcher", "user/default/"), ("system/percolate-researcher", "system/")]
    {
        let agent = ask(&memory, "get_agent", json!({"agent_uri": uri})).await;
        assert!(agent["agent_uri"].as_str().unwrap().contains(found), "{uri}: {agent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn people_of_one_tenant_have_their_own_agents() {
    let folder = Folder::new();
    let memory = folder.server();
    let make = |user: &str| {
        let mut agent = greeter();
        agent["user_id"] = user.into();
        agent["description"] = format!("Greet {user}.").into();
        agent
    };
    for user in ["alice", "bob"] {
        let made = ask(&memory, "create_agent", make(user)).await;
        assert_eq!(made["agent_uri"], format!("agentlet://user/{user}/greeter"));
        let again = refused(&memory, "create_agent", make(user)).await;
        assert!(again.contains("already"), "{again}");
        let found = ask(&memory, "get_agent", json!({"agent_uri": "greeter", "user_id": user})).await;
        assert_eq!(found["agentlet"]["description"], format!("Greet {user}."));
        assert_eq!(found["history"].as_array().unwrap().len(), 1);
    }
    let said = refused(&memory, "get_agent", json!({"agent_uri": "greeter"})).await;
    assert!(said.contains("user/alice/greeter") && said.contains("user/bob/greeter"), "{said}");
    for (tool, more) in [("delete_agent", None), ("update_agent", Some("description"))] {
        let mut theirs = json!({"user_id": "bob", "agent_uri": "user/alice/greeter"});
        if let Some(more) = more {
            theirs[more] = "x".into();
        }
        let said = refused(&memory, tool, theirs).await;
        assert!(said.starts_with("agent_uri: ") && said.contains("is not yours"), "{said}");
    }
    ask(&memory, "update_agent", json!({"user_id": "bob", "agent_uri": "greeter", "description": "y"})).await;
    let alices = ask(&memory, "get_agent", json!({"agent_uri": "user/alice/greeter"})).await;
    assert_eq!(alices["agentlet"]["description"], "Greet alice.");
    ask(&memory, "delete_agent", json!({"user_id": "bob", "agent_uri": "user/bob/greeter"})).await;
    for user in [json!("bob"), json!("carol"), Value::Null] {
        let gone = json!({"user_id": user, "agent_uri": "user/bob/greeter"});
        let said = refused(&memory, "delete_agent", gone).await;
        assert!(said.contains("there is no agent"), "{user}: {said}");
    }
    let said = refused(&memory, "delete_agent", json!({"user_id": "bob", "agent_uri": "greeter"})).await;
    assert!(said.contains("is not yours"), "{said}");
    // Without a name nobody is mistaken for somebody else.
    ask(&memory, "delete_agent", json!({"agent_uri": "user/alice/greeter"})).await;
    let history = ask(&memory, "get_agent_history", json!({"agent_uri": "user/bob/greeter"})).await;
    assert_eq!(history["totalVersions"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_nothing_is_no_version() {
    let folder = Folder::new();
    let memory = folder.server();
    ask(&memory, "create_agent", greeter()).await;
    for arguments in [
        json!({"agent_uri": "greeter"}),
        json!({"agent_uri": "greeter", "description": greeter()["description"], "version": "1.0.0"}),
    ] {
        let same = ask(&memory, "update_agent", arguments).await;
        assert_eq!(same["version"], "1.0.0");
        assert!(same["message"].as_str().unwrap().starts_with("Nothing changed"), "{same}");
    }
    let found = ask(&memory, "get_agent", json!({"agent_uri": "greeter"})).await;
    assert_eq!(found["history"].as_array().unwrap().len(), 1);
    for (version, said) in [("0.9.0", "version: must not be lower"), ("x", "version: must be like 1.0.0")] {
        let back = json!({"agent_uri": "greeter", "description": "x", "version": version});
        let refused = refused(&memory, "update_agent", back).await;
        assert!(refused.starts_with(said), "{refused}");
    }
    let said = refused(&memory, "update_agent", json!({"agent_uri": "greeter", "tools": ["no_such"]})).await;
    assert!(said.starts_with("tools[0]: there is no tool"), "{said}");
    let next = json!({"agent_uri": "greeter", "version": "2.0.0"});
    assert_eq!(ask(&memory, "update_agent", next).await["version"], "2.0.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_used_of_an_agent_is_given_back() {
    let folder = Folder::new();
    let memory = folder.server();
    let percolate = json!({
        "title": "Keeper", "description": "Keep.", "properties": {"a": {"type": "string"}}, "required": ["a"],
        "x-percolate": {
            "name": "percolate.agents.Keeper", "short_name": "keeper", "embedding_fields": ["description", "a"],
            "indexed_columns": ["a"], "key_field": "a", "default_embedding_provider": "local",
        },
    });
    // As its text, which some assistants write.
    ask(&memory, "create_agent", json!({"agentlet": percolate.to_string()})).await;
    let found = ask(&memory, "get_agent", json!({"agent_uri": "keeper"})).await;
    let extra = &found["agentlet"]["json_schema_extra"];
    for name in ["name", "embedding_fields", "indexed_columns", "key_field", "default_embedding_provider"] {
        assert_eq!(extra[name], percolate["x-percolate"][name], "{name}");
    }
    let told = json!({
        "name": "Told One", "description": "What it is for.", "instructions": "Do it.", "target": "pydantic_ai",
        "result_schema": {"type": "object", "properties": {"a": {"type": "string"}}},
    });
    ask(&memory, "create_agent", json!({"agentlet": told})).await;
    ask(&memory, "update_agent", json!({"agent_uri": "told-one", "tags": ["x"]})).await;
    let found = ask(&memory, "get_agent", json!({"agent_uri": "told-one"})).await;
    assert_eq!(found["agentlet"]["description"], "Do it.");
    let extra = &found["agentlet"]["json_schema_extra"];
    assert_eq!(
        (&extra["description"], &extra["name"], &extra["target"]),
        (&json!("What it is for."), &json!("Told One"), &json!("pydantic_ai"))
    );
}
