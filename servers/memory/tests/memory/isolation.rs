//! Authenticated callers: what is one tenant's is nobody else's, whatever is called and however it is named.
//!
//! Ann and Bob are of the tenant reef, Cid is of tide. What each of them keeps holds words that nobody else ever says, so
//! that any answer, error or notification with such a word shows where it came from. Names and numbers can be guessed, and
//! are. Tools, resources and prompts are those that are listed: one that is new is tried, too.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use tidegate_memory::{Embedder, Listed, MemoryServerSettings, server_with};
use tidegate_protocol::{Error, Json, Limits, Method, Params, Profile, Symbol};
use tidegate_server::{Cx, Principal, Server, ServerDoor, Tool};
use tidegate_service::{Call, Claims, Context, Door, Notice, Outbox, Reply};

use crate::meaning::{WORDS, model};
use crate::provider::{Answer, Fake, claude, memory};
use crate::rig::{Folder, request_by};
use crate::tenants::FOREIGN;

const ISSUER: &str = "https://id.example.com";

fn person(subject: &str, tenant: &str) -> Principal {
    Principal::subject(subject).issued_by(ISSUER).in_tenant(tenant)
}

fn authenticated(options: &mut MemoryServerSettings) {
    options.is_authenticated = true;
    options.listed = Listed::All;
}

/// The memory, with models that answer anything with the same, and vectors.
async fn reef(folder: &Folder) -> (ServerDoor, Fake) {
    let answer = json!({"answer": "It is so.", "reasoning": "-", "confidence": 1, "tags": []});
    let fake = Fake::new([claude::answers(answer)]).await;
    let embedder = Embedder::folder(model(folder, "tiny", &WORDS)).unwrap();
    let memory = memory(folder, fake.claude(), |options| {
        authenticated(options);
        options.embeddings = Some(embedder);
    });
    (memory, fake)
}

/// What comes back, whatever it is, as text.
async fn told(memory: &ServerDoor, who: &Principal, method: Method, params: Value) -> String {
    match request_by(memory, who, method, params).await {
        Ok(result) => result.to_string(),
        Err(error) => written(&error),
    }
}

fn written(error: &Error) -> String {
    format!("{} {:?}", error.message(), error.data())
}

async fn call(memory: &ServerDoor, who: &Principal, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    let result = request_by(memory, who, Method::ToolsCall, params).await.unwrap();
    assert_ne!(result["isError"], true, "{tool}: {result}");
    result["structuredContent"].clone()
}

async fn listed(memory: &ServerDoor, who: &Principal, method: Method, member: &str) -> Vec<Value> {
    let (mut all, mut params) = (Vec::new(), json!({}));
    loop {
        let page = request_by(memory, who, method.clone(), params).await.unwrap();
        all.extend(page[member].as_array().unwrap().clone());
        let Some(next) = page["nextCursor"].as_str() else { return all };
        params = json!({"cursor": next});
    }
}

/// Keeps something of every kind under names that anybody can guess, with `secret` in all of it and `private` in what is
/// one user's own.
async fn fill(memory: &ServerDoor, who: &Principal, secret: &str, private: &str) {
    let entity = |name: &str| json!({"name": name, "entityType": "plan", "observations": [format!("tea {secret}"), format!("old {secret}")]});
    call(memory, who, "create_entities", json!({"entities": [entity("Shared"), entity("Plan")]})).await;
    let relation =
        json!({"from": "Shared", "to": "Plan", "relationType": "needs", "metadata": {"why": secret}});
    call(memory, who, "create_relations", json!({"relations": [relation]})).await;
    let gone = json!({"deletions": [{"entityName": "Plan", "observations": [format!("old {secret}")]}]});
    call(memory, who, "delete_observations", gone).await;
    let document = json!({
        "text": format!("# Tea\n\nAbout tea and {secret}."), "title": "Tea", "tags": [secret], "metadata": {"by": secret},
    });
    call(memory, who, "ingest_document", document).await;
    let agent = json!({
        "agent_name": "helper", "description": format!("Help with tea and {secret}."), "tools": ["search_nodes"],
        "output_schema": {"type": "object", "properties": {"answer": {"type": "string"}}},
    });
    call(memory, who, "create_agent", agent).await;
    let question =
        json!({"agent_uri": "test-agent", "prompt": format!("tea {private}"), "session_id": "session"});
    call(memory, who, "ask_agent", question).await;
}

/// What a text is tried with: names and numbers that can be guessed, and what is often asked for.
const GUESSES: [&str; 17] = [
    "Shared",
    "Plan",
    "tea",
    "",
    "plan",
    "needs",
    "doc-1",
    "doc-2",
    "Tea",
    "session",
    "helper",
    "user/ann/helper",
    "agentlet://user/cid/helper",
    "memory://documents/doc-1",
    "1",
    "2000-01-01T00:00:00Z",
    "reef",
];

/// Values that fit a schema, at least some of them.
fn values(schema: &Value) -> Vec<Value> {
    if let Some(all) = schema["enum"].as_array() {
        return all.clone();
    }
    if let Some(one) = schema.get("const") {
        return vec![one.clone()];
    }
    for any in ["anyOf", "oneOf"] {
        if let Some(all) = schema[any].as_array() {
            return all.iter().flat_map(values).collect();
        }
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    let of = |kind: &Value| match kind.as_str() {
        Some("string") => GUESSES.iter().map(|guess| json!(guess)).collect(),
        Some("integer" | "number") => [1, 2, 3, 5, 8].map(Value::from).to_vec(),
        Some("boolean") => vec![json!(true)],
        Some("array") => values(&schema["items"]).into_iter().map(|one| json!([one])).collect(),
        Some("object") => vec![object(schema, 0)],
        _ => Vec::new(),
    };
    kinds.iter().flat_map(of).collect()
}

/// An object with what it must have, its texts beginning with one of the guesses.
fn object(schema: &Value, at: usize) -> Value {
    let mut members = Map::new();
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let values = values(&schema["properties"][name]);
        if let Some(value) = values.get(at % values.len().max(1)) {
            members.insert(name.to_owned(), value.clone());
        }
    }
    Value::Object(members)
}

/// Arguments for a tool: what it must have, with each of the guesses, and each of the others beside that.
fn arguments(schema: &Value) -> Vec<Value> {
    let mut all: Vec<Value> = (0..GUESSES.len()).map(|at| object(schema, at)).collect();
    let required =
        |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    for (name, of) in schema["properties"].as_object().into_iter().flatten() {
        for (at, value) in values(of).into_iter().enumerate() {
            let mut one = object(schema, if required(name) { 0 } else { at });
            one[name] = value;
            all.push(one);
        }
    }
    let mut seen = BTreeSet::new();
    all.retain(|one| seen.insert(one.to_string()));
    all
}

/// Everything that somebody can ask, with what came back, by what was asked.
async fn everything(memory: &ServerDoor, who: &Principal, uris: &[String]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut note = |what: String, came: String| all.push((what, came));
    // What deletes comes last, so that there is something to see before.
    let mut tools = listed(memory, who, Method::ToolsList, "tools").await;
    tools.sort_by_key(|tool| tool["annotations"]["readOnlyHint"] != true);
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        for arguments in arguments(&tool["inputSchema"]) {
            let params = json!({"name": name, "arguments": arguments});
            note(format!("{name} {arguments}"), told(memory, who, Method::ToolsCall, params).await);
        }
    }
    let resources = listed(memory, who, Method::ResourcesList, "resources").await;
    note("resources/list".into(), json!(resources).to_string());
    let own = resources.iter().filter_map(|one| one["uri"].as_str());
    for uri in own.chain(uris.iter().map(String::as_str)) {
        note(format!("read {uri}"), told(memory, who, Method::ResourcesRead, json!({"uri": uri})).await);
    }
    for template in listed(memory, who, Method::ResourcesTemplatesList, "resourceTemplates").await {
        let at = template["uriTemplate"].as_str().unwrap();
        let of = json!({"type": "ref/resource", "uri": at});
        for variable in at.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
            let variable = variable.trim_start_matches(['+', '?', '#', '/']);
            for guess in GUESSES {
                let typed = json!({"ref": of, "argument": {"name": variable, "value": guess}});
                note(format!("complete {at} {guess}"), told(memory, who, Method::Complete, typed).await);
                let uri =
                    at.replace(&format!("{{{variable}}}"), guess).replace(&format!("{{+{variable}}}"), guess);
                note(
                    format!("read {uri}"),
                    told(memory, who, Method::ResourcesRead, json!({"uri": uri})).await,
                );
            }
        }
    }
    for prompt in listed(memory, who, Method::PromptsList, "prompts").await {
        let name = prompt["name"].as_str().unwrap();
        let known: Vec<&str> = prompt["arguments"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| one["name"].as_str())
            .collect();
        for guess in GUESSES {
            for all in [true, false] {
                let given: Map<String, Value> = prompt["arguments"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(|one| all || one["required"] == true)
                    .map(|one| (one["name"].as_str().unwrap().to_owned(), json!(guess)))
                    .collect();
                let params = json!({"name": name, "arguments": given});
                note(format!("prompt {name} {guess}"), told(memory, who, Method::PromptsGet, params).await);
            }
            for argument in &known {
                let of = json!({"type": "ref/prompt", "name": name});
                let typed = json!({"ref": of, "argument": {"name": argument, "value": guess}});
                note(
                    format!("complete {name} {argument} {guess}"),
                    told(memory, who, Method::Complete, typed).await,
                );
            }
        }
    }
    all
}

fn absent(all: &[(String, String)], words: &[&str]) {
    for (asked, came) in all {
        for word in words {
            assert!(!came.contains(word), "{asked} shows {word}: {came}");
        }
    }
}

/// What was asked when the word came back.
fn shown<'a>(all: &'a [(String, String)], word: &str) -> BTreeSet<&'a str> {
    let asked = all.iter().filter(|(_, came)| came.contains(word)).map(|(asked, _)| asked.as_str());
    asked.map(|asked| asked.split(' ').next().unwrap()).collect()
}

/// Everything that a tenant has, to be compared.
async fn kept(memory: &ServerDoor, who: &Principal) -> Vec<Value> {
    vec![
        call(memory, who, "export_graph", json!({"history": true})).await,
        call(memory, who, "list_sessions", json!({})).await,
        call(memory, who, "list_changes", json!({"limit": 100})).await,
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_one_tenant_is_seen_by_another() {
    let folder = Folder::new();
    let (memory, fake) = reef(&folder).await;
    let (ann, bob, cid) = (person("ann", "reef"), person("bob", "reef"), person("cid", "tide"));
    fill(&memory, &ann, "coralword", "annword").await;
    fill(&memory, &cid, "tideword", "cidword").await;
    let uris = async |who: &Principal| -> Vec<String> {
        let all = listed(&memory, who, Method::ResourcesList, "resources").await;
        all.iter().map(|one| one["uri"].as_str().unwrap().to_owned()).collect()
    };
    let (of_reef, of_tide) = (uris(&ann).await, uris(&cid).await);
    let before = kept(&memory, &ann).await;
    let asked = fake.came().len();

    let tide = everything(&memory, &cid, &of_reef).await;
    absent(&tide, &["coralword", "annword"]);
    for asked in fake.came().iter().skip(asked) {
        assert!(!asked.body.to_string().contains("coralword"), "models of tide are not told of reef");
    }
    // It is not that there was nothing to see.
    let seen = shown(&tide, "tideword");
    for what in [
        "read_graph",
        "search_nodes",
        "search_knowledge_base",
        "get_entity_history",
        "export_graph",
        "get_agent",
        "read",
        "prompt",
    ] {
        assert!(seen.contains(what), "{what} shows nothing: {seen:?}");
    }
    assert!(shown(&tide, "cidword").contains("get_session"));
    assert_eq!(kept(&memory, &ann).await, before, "what tide did left reef as it was");

    // Whoever is of the same tenant sees what is the tenant's, and not what is somebody's own.
    let other = everything(&memory, &bob, &of_tide).await;
    absent(&other, &["tideword", "cidword", "annword"]);
    assert!(shown(&other, "coralword").contains("read_graph"));
}

async fn watch(memory: &ServerDoor, who: &Principal, uris: &[&str]) -> (Value, Outbox) {
    let wanted = json!({"notifications": {"resourcesListChanged": true, "resourceSubscriptions": uris}});
    let mut context = Context::local();
    context.principal = who.clone();
    let call =
        Call::new(Method::Listen, Params::parse(&Json::from(wanted), &Limits::default()).unwrap(), context);
    match memory.answer(call).await.unwrap() {
        Reply::Subscription(subscription) => (
            subscription.acknowledged.to::<Value>().unwrap()["resourceSubscriptions"].clone(),
            subscription.events,
        ),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_hears_of_another_tenant() {
    let folder = Folder::new();
    let (memory, _fake) = reef(&folder).await;
    let (ann, cid) = (person("ann", "reef"), person("cid", "tide"));
    let own =
        ["memory://knowledge-graph", "memory://timeline", "memory://entities/Shared", "my-agents://list"];
    let foreign = ["memory://knowledge-graph?tenant_id=reef", "agentlet://user/ann/helper?tenant_id=reef"];
    let guessed = ["agentlet://user/ann/helper", "memory://documents/doc-1"];
    let wanted: Vec<&str> = own.iter().chain(&foreign).chain(&guessed).copied().collect();
    let (confirmed, events) = watch(&memory, &cid, &wanted).await;
    let taken: Vec<&str> = own.iter().chain(&guessed).copied().collect();
    assert_eq!(confirmed, json!(taken), "what names another tenant is not watched, and the rest is");
    let (_, local) = watch(&memory, &Principal::default(), &wanted).await;
    let (confirmed, of_reef) = watch(&memory, &ann, &foreign).await;
    assert_eq!(confirmed, json!(foreign), "one's own tenant may be named");
    fill(&memory, &ann, "coralword", "annword").await;
    assert_eq!(events.try_next(), None::<Notice>, "tide hears nothing of reef");
    assert_eq!(local.try_next(), None::<Notice>, "nor does the user of this machine");
    assert!(of_reef.try_next().is_some());
    fill(&memory, &cid, "tideword", "cidword").await;
    assert!(events.try_next().is_some());
}

/// Values that are not the tenant reef, whether there is such a tenant or not.
fn others() -> Vec<Value> {
    let mut all: Vec<Value> = [
        "tide",
        "nobody",
        "default",
        "Reef",
        "REEF",
        "reef ",
        " reef",
        "reef\u{200b}",
        "rееf",
        "ｒｅｅｆ",
        "reef\n",
        "reef\0",
        "\u{1b}[31m",
        "tenant:reef",
        "../reef",
        "reef%00",
        "reef/../tide",
        " ",
        "ann",
        "' OR 1=1 --",
    ]
    .map(Value::from)
    .to_vec();
    all.extend([json!("x".repeat(5_000)), json!(5), json!(true), json!(["reef"]), json!({"name": "reef"})]);
    all
}

fn is_foreign(result: &Result<Value, Error>, what: &str) {
    match result {
        Ok(result) => {
            let error = &result["_meta"]["dev.tidegate/error"];
            assert_eq!(result["isError"], true, "{what}: {result}");
            assert_eq!(result["content"][0]["text"], FOREIGN, "{what}");
            assert_eq!(error["symbol"], "TENANT_NOT_FOUND", "{what}: {error}");
        }
        Err(error) => {
            assert_eq!((error.symbol(), error.message()), (Symbol::TenantNotFound, FOREIGN), "{what}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_other_tenant_is_refused_in_the_same_words_everywhere() {
    let folder = Folder::new();
    let (memory, _fake) = reef(&folder).await;
    let (ann, cid) = (person("ann", "reef"), person("cid", "tide"));
    fill(&memory, &ann, "coralword", "annword").await;
    fill(&memory, &cid, "tideword", "cidword").await;
    let with = |mut params: Value, name: &str, value: &Value| {
        params[name] = value.clone();
        params
    };
    let tools = listed(&memory, &ann, Method::ToolsList, "tools").await;
    for (at, other) in others().into_iter().enumerate() {
        // Every tool with some of them, and one tool with each, in every spelling.
        for tool in tools.iter().filter(|tool| at < 2 || tool["name"] == "read_graph") {
            let arguments = object(&tool["inputSchema"], 0);
            for name in ["tenant_id", "tenantId", "TENANT-ID"] {
                let params =
                    json!({"name": tool["name"], "arguments": with(arguments.clone(), name, &other)});
                let came = request_by(&memory, &ann, Method::ToolsCall, params).await;
                is_foreign(&came, &format!("{} {name} {other}", tool["name"]));
            }
        }
        for name in ["tenant_id", "tenantId", "dev.tidegate/tenant"] {
            let meta = json!({name: other});
            let prompt = json!({"name": "get-context", "arguments": {"query": "tea"}, "_meta": meta});
            let typed = json!({
                "ref": {"type": "ref/prompt", "name": "get-context"}, "argument": {"name": "entityTypes", "value": ""},
                "_meta": meta,
            });
            for (method, params) in [
                (Method::ToolsCall, json!({"name": "read_graph", "_meta": meta})),
                (Method::ResourcesRead, json!({"uri": "memory://knowledge-graph", "_meta": meta})),
                (Method::ResourcesList, json!({"_meta": meta})),
                (Method::PromptsGet, prompt),
                (Method::Complete, typed),
                (Method::Listen, json!({"notifications": {}, "_meta": meta})),
                // Nor by saying that an agent asks.
                (
                    Method::ToolsCall,
                    json!({"name": "read_graph", "_meta": with(meta.clone(), "dev.tidegate/agent-depth", &json!(1))}),
                ),
            ] {
                let came = request_by(&memory, &ann, method.clone(), params).await;
                is_foreign(&came, &format!("{method:?} {meta}"));
            }
        }
        let Some(other) = other.as_str() else { continue };
        let query: String = other.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for uri in [
            "memory://knowledge-graph",
            "memory://entities/Shared",
            "memory://documents/doc-1",
            "my-agents://list",
            "agentlet://user/ann/helper",
        ] {
            for uri in [format!("{uri}?tenant_id={query}"), format!("{uri}?tenant_id=reef&tenantId={query}")]
            {
                let came = request_by(&memory, &ann, Method::ResourcesRead, json!({"uri": uri})).await;
                is_foreign(&came, &uri);
                // What is longer is no address of anything.
                for argument in
                    ["agent_uri", "agentUri", "agent_name"].into_iter().filter(|_| uri.len() < 4_096)
                {
                    let params = json!({"name": "get_agent", "arguments": {argument: uri}});
                    is_foreign(&request_by(&memory, &ann, Method::ToolsCall, params).await, &uri);
                }
            }
        }
        let given = json!({"name": "get-context", "arguments": {"query": "tea", "tenant_id": other}});
        is_foreign(&request_by(&memory, &ann, Method::PromptsGet, given).await, "a prompt's argument");
        let typed = json!({
            "ref": {"type": "ref/resource", "uri": "memory://entities/{name}"},
            "argument": {"name": "name", "value": ""}, "context": {"arguments": {"tenant_id": other}},
        });
        is_foreign(&request_by(&memory, &ann, Method::Complete, typed).await, "what is filled in already");
    }
    // The user of this machine has the default tenant and no other.
    let local = Principal::default();
    let named = json!({"name": "read_graph", "arguments": {"tenant_id": "reef"}});
    is_foreign(&request_by(&memory, &local, Method::ToolsCall, named).await, "the local user");
    let agent = json!({"uri": "agentlet://user/ann/helper"});
    assert!(
        request_by(&memory, &local, Method::ResourcesRead, agent).await.is_err(),
        "nor one that is not named"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_repeats_their_own_tenant_is_understood() {
    let folder = Folder::new();
    let (memory, _fake) = reef(&folder).await;
    let ann = person("ann", "reef");
    fill(&memory, &ann, "coralword", "annword").await;
    for tool in listed(&memory, &ann, Method::ToolsList, "tools").await {
        for name in ["tenant_id", "tenantId", "user_id", "userId"] {
            let mut arguments = object(&tool["inputSchema"], 0);
            arguments[name] = if name.starts_with("tenant") { "reef" } else { "ann" }.into();
            let params = json!({"name": tool["name"], "arguments": arguments});
            let came = told(&memory, &ann, Method::ToolsCall, params).await;
            assert!(
                !came.contains("Invalid arguments") && !came.contains(FOREIGN),
                "{}: {came}",
                tool["name"]
            );
        }
        let forged = json!({"name": tool["name"], "arguments": {"user_id": "bob"}});
        let came = told(&memory, &ann, Method::ToolsCall, forged).await;
        assert!(came.contains("user_id: must be your own"), "{}: {came}", tool["name"]);
    }
    fill(&memory, &person("cat", "reef"), "coralword", "catword").await;
    for uri in [
        "memory://knowledge-graph?tenant_id=reef",
        "memory://entities/Shared?tenant_id=reef",
        "my-agents://list?tenant_id=reef&user_id=cat",
        "my-agents://list?after=a",
    ] {
        let came = told(&memory, &person("cat", "reef"), Method::ResourcesRead, json!({"uri": uri})).await;
        assert!(came.contains("coralword"), "{uri}: {came}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_listed_says_nothing_of_tenants() {
    let folder = Folder::new();
    let (memory, _fake) = reef(&folder).await;
    let ann = person("ann", "reef");
    for (method, member) in [
        (Method::ToolsList, "tools"),
        (Method::PromptsList, "prompts"),
        (Method::ResourcesList, "resources"),
        (Method::ResourcesTemplatesList, "resourceTemplates"),
    ] {
        let all = listed(&memory, &ann, method, member).await;
        assert!(!all.is_empty(), "{member}");
        for one in all {
            let text = one.to_string().to_lowercase();
            for word in ["tenant", "user_id", "userid"] {
                assert!(!text.contains(word), "{word} in {one}");
            }
        }
    }
    let open = server_with(folder.store(), MemoryServerSettings::default());
    let templates =
        listed(&open, &Principal::default(), Method::ResourcesTemplatesList, "resourceTemplates").await;
    assert!(
        templates.iter().any(|one| one["uriTemplate"] == "memory://entities/{name}{?tenant_id}"),
        "{templates:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn percolates_clients_find_their_number() {
    let folder = Folder::new();
    let mut options = MemoryServerSettings::default();
    authenticated(&mut options);
    options.errors = Profile::Percolate;
    let memory = server_with(folder.store(), options);
    let params = json!({"uri": "memory://knowledge-graph?tenant_id=tide"});
    let error = request_by(&memory, &person("ann", "reef"), Method::ResourcesRead, params).await.unwrap_err();
    assert_eq!((error.original_code(), error.message()), (Some(-32000), FOREIGN));
    let params = json!({"name": "read_graph", "arguments": {"tenant_id": "tide"}});
    let result = request_by(&memory, &person("ann", "reef"), Method::ToolsCall, params).await.unwrap();
    assert_eq!(result["_meta"]["dev.tidegate/error"]["code"], -32000, "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_of_one_name_from_two_issuers_are_two_people() {
    let folder = Folder::new();
    let (memory, _fake) = reef(&folder).await;
    let ann = person("ann", "reef");
    let namesake = Principal::subject("ann").issued_by("https://other.example.com").in_tenant("reef");
    let key = Principal::subject("ann").issued_by("tidegate:keys").in_tenant("reef");
    let odd = |subject: &str| person(subject, "reef");
    let all = [ann.clone(), namesake.clone(), key.clone(), odd("ann b"), odd("ann-b"), odd("ann|b")];
    for (at, who) in all.iter().enumerate() {
        fill(&memory, who, &format!("secret{at}"), &format!("private{at}")).await;
    }
    let mut owners = BTreeSet::new();
    for (at, who) in all.iter().enumerate() {
        let (agents, sessions) = ("my-agents://list", call(&memory, who, "list_sessions", json!({})).await);
        assert_eq!(sessions["count"], 1, "{sessions}");
        let session = call(&memory, who, "get_session", json!({"session_id": "session"})).await.to_string();
        assert!(session.contains(&format!("private{at}")), "{session}");
        assert_eq!(session.matches("private").count(), 1, "{session}");
        let own = told(&memory, who, Method::ResourcesRead, json!({"uri": agents})).await;
        assert!(own.contains(&format!("secret{at}")) && own.matches("secret").count() == 1, "{own}");
        for name in ["helper", "user/ann/helper"].iter().take(if at < 3 { 2 } else { 1 }) {
            let found = call(&memory, who, "get_agent", json!({"agent_uri": name})).await;
            assert!(found.to_string().contains(&format!("secret{at}")), "{name}: {found}");
            owners.insert(found["agent_uri"].as_str().unwrap().to_owned());
            let history =
                call(&memory, who, "get_agent_history", json!({"agent_uri": name})).await.to_string();
            assert!(history.contains(&format!("secret{at}")), "{name}: {history}");
        }
    }
    assert_eq!(owners.len(), all.len(), "{owners:?}");
    assert!(
        owners.contains("agentlet://user/ann/helper"),
        "a key has the name that the operator gave it: {owners:?}"
    );
    // Others of the tenant may ask somebody's agent, and not change it.
    for uri in &owners {
        let found = call(&memory, &person("bob", "reef"), "get_agent", json!({"agent_uri": uri})).await;
        assert_eq!(found["agent_uri"], **uri);
        let params = json!({"name": "delete_agent", "arguments": {"agent_uri": uri}});
        assert!(
            told(&memory, &person("bob", "reef"), Method::ToolsCall, params).await.contains("is not yours")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_stays_in_the_tenant_of_who_asks_it() {
    let folder = Folder::new();
    let ends = || claude::answers(json!({"answer": "done", "reasoning": "-", "confidence": 1, "tags": []}));
    let asks = json!({"agent_uri": "spy", "prompt": "go on", "tenant_id": "reef", "user_id": "ann"});
    let script: Vec<Answer> = vec![
        ends(),
        ends(),
        claude::calls("search_nodes", json!({"query": "tea", "tenant_id": "reef"})),
        claude::calls("read_resource", json!({"uri": "memory://knowledge-graph?tenant_id=reef"})),
        claude::calls("get_session", json!({"session_id": "session", "user_id": "ann"})),
        claude::calls("ask_agent", asks),
        claude::calls("read_resource", json!({"uri": "memory://entities/Shared?tenant_id=reef"})),
        ends(),
    ];
    let fake = Fake::new(script).await;
    let memory = memory(&folder, fake.claude(), authenticated);
    let (ann, cid) = (person("ann", "reef"), person("cid", "tide"));
    fill(&memory, &ann, "coralword", "annword").await;
    fill(&memory, &cid, "tideword", "cidword").await;
    let spy = json!({"agentlet": {
        "short_name": "spy", "description": "Spy.", "version": "1.0.0", "type": "object",
        "properties": {"answer": {"type": "string"}},
        "json_schema_extra": {
            "tools": [{"tool_name": "search_nodes"}, {"tool_name": "get_session"}, {"tool_name": "ask_agent"}],
            "resources": [
                {"uri": "memory://knowledge-graph?tenant_id=reef"}, {"uri": "memory://entities/Shared?tenant_id=reef"},
            ],
        },
    }});
    call(&memory, &cid, "create_agent", spy).await;
    let before = fake.came().len();
    call(&memory, &cid, "ask_agent", json!({"agent_uri": "spy", "prompt": "Look around."})).await;
    let bodies: Vec<String> = fake.came()[before..].iter().map(|came| came.body.to_string()).collect();
    assert!(bodies.len() >= 6, "{bodies:?}");
    for body in &bodies {
        assert!(!body.contains("coralword") && !body.contains("annword"), "{body}");
    }
    let all = bodies.concat();
    assert!(all.contains("tideword") && all.contains(FOREIGN), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_has_the_scopes_and_the_endpoint_of_who_asks_it() {
    let seen: Arc<Mutex<Vec<Context>>> = Arc::default();
    let noted = seen.clone();
    let tool = Tool::new("web_get").description("Gets.").handler(move |(): (), cx: Cx| {
        noted.lock().unwrap().push(cx.on_behalf());
        async { Ok::<_, tidegate_server::ToolError>("got") }
    });
    let fake = Fake::new([claude::calls("web_get", json!({})), claude::answers(json!({"a": "b"}))]).await;
    let folder = Folder::new();
    let memory = memory(&folder, fake.claude(), |options| {
        authenticated(options);
        options.tools = Some(Server::new("gateway", "1").tool(tool).build().boxed());
    });
    let ann = person("ann", "reef");
    let agent = json!({
        "agent_name": "surfer", "description": "Surf.", "output_schema": {"type": "object"}, "tools": ["web_get"],
    });
    call(&memory, &ann, "create_agent", agent).await;
    let claims = Claims { scopes: Some(vec!["mcp".into()]), ..Claims::default() };
    let mut context = Context::local();
    (context.principal, context.endpoint) = (ann.clone(), Some("research".into()));
    context.claims = Some(Arc::new(claims));
    let params = json!({"name": "ask_agent", "arguments": {"agent_uri": "surfer", "prompt": "Go."}});
    let params = Params::parse(&Json::from(params), &Limits::default()).unwrap();
    let reply = memory.answer(Call::new(Method::ToolsCall, params, context)).await.unwrap();
    assert!(matches!(reply, Reply::Complete(_)), "{reply:?}");
    let seen = seen.lock().unwrap();
    let [called] = seen.as_slice() else { panic!("called {} times", seen.len()) };
    assert_eq!(called.principal, ann);
    assert_eq!(called.endpoint.as_deref(), Some("research"));
    assert_eq!(called.claims.as_ref().unwrap().scopes, Some(vec!["mcp".into()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_at_the_machine_of_the_server() {
    let folder = Folder::new();
    let (memory, _fake) = reef(&folder).await;
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "coralword").unwrap();
    let mut said = BTreeSet::new();
    for arguments in [
        json!({"file_path": file}),
        json!({"path": file}),
        json!({"file_path": "/etc/passwd"}),
        json!({"file_path": "/nowhere"}),
        json!({"url": format!("file://{}", file.display())}),
        json!({"url": "http://127.0.0.1:9/"}),
        json!({"url": "http://169.254.169.254/latest/meta-data/"}),
    ] {
        let params = json!({"name": "ingest_document", "arguments": arguments});
        let result = request_by(&memory, &person("ann", "reef"), Method::ToolsCall, params).await.unwrap();
        assert_eq!(result["isError"], true, "{arguments}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(!text.contains("coralword"), "{text}");
        if arguments.get("url").is_none() {
            said.insert(text.split_once(": ").unwrap().1.to_owned());
        }
    }
    assert_eq!(said.len(), 1, "the same whether there is such a file or not: {said:?}");
}
