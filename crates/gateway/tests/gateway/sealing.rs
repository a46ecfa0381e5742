//! What clients were given outlives the process, and is taken by every process that has the same keys.

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_gateway::{Gateway, ServerSettings, Settings};
use tidegate_protocol::seal::Key;
use tidegate_protocol::{ClientCapabilities, Symbol};
use tidegate_server::{Cx, Elicit, PageRequest, Resource, ResourcePage, Server, Tool, ToolError};
use tidegate_service::Reply;

use crate::rig::{Caller, Served, keys, local, person, says, settings, started};

/// A gateway whose lists have one tool on each page.
fn paged(tools: &[&str]) -> Settings {
    let server = tools.iter().fold(Server::new("s", "1.0"), |server, name| server.tool(says(name, "")));
    let mut settings = settings([local("s", server)]);
    settings.tools.page_bytes = 1;
    settings
}

fn kept(dir: &TempDir, tools: &[&str]) -> Settings {
    Settings { state_dir: Some(dir.path().to_owned()), ..paged(tools) }
}

fn keyed(secrets: &[&str]) -> Settings {
    Settings { sealing_keys: secrets.iter().map(|key| Key::derive(key)).collect(), ..paged(&["a", "b", "c"]) }
}

async fn page(caller: &Caller, gateway: &Gateway, cursor: &Value) -> Result<Value, Symbol> {
    let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
    match caller.ask(gateway, "tools/list", params).await {
        Reply::Complete(page) => Ok(page.to().unwrap()),
        Reply::Error(error) => Err(error.symbol()),
        other => panic!("{other:?}"),
    }
}

/// The cursor of the first page.
async fn cursor(caller: &Caller, gateway: &Gateway) -> Value {
    let first = page(caller, gateway, &Value::Null).await.unwrap();
    assert_eq!(keys(&first), ["s_a"]);
    first["nextCursor"].clone()
}

/// Whether a list goes on as it should after its first page.
async fn goes_on(caller: &Caller, gateway: &Gateway, mut cursor: Value) -> Result<(), Symbol> {
    let mut rest = Vec::new();
    while !cursor.is_null() {
        let page = page(caller, gateway, &cursor).await?;
        rest.extend(keys(&page));
        cursor = page["nextCursor"].clone();
    }
    assert_eq!(rest, ["s_b", "s_c"]);
    Ok(())
}

#[tokio::test]
async fn a_cursor_outlives_the_process_if_the_list_does() {
    let dir = tempfile::tempdir().unwrap();
    let tools = ["a", "b", "c"];
    let (ann, bob) = (person("ann"), person("bob"));
    let first = started(kept(&dir, &tools)).await;
    let before = cursor(&ann, &first).await;
    first.close().await;
    drop(first);

    // As soon as it is there: it knows to wait for its servers.
    let again = Gateway::start(kept(&dir, &tools)).unwrap();
    assert_eq!(goes_on(&ann, &again, before.clone()).await, Ok(()));
    assert_eq!(page(&bob, &again, &before).await, Err(Symbol::InvalidCursor), "it is still ann's");
    // Another process beside it: each takes what the other has given.
    let beside = started(kept(&dir, &tools)).await;
    assert_eq!(goes_on(&ann, &beside, cursor(&ann, &again).await).await, Ok(()));
    assert_eq!(goes_on(&ann, &again, cursor(&ann, &beside).await).await, Ok(()));
    again.close().await;
    beside.close().await;

    for other in [&["a", "b", "d"][..], &["a", "b"], &["a", "c", "b"], &["a"]] {
        let changed = started(kept(&dir, other)).await;
        let said = page(&ann, &changed, &before).await;
        assert_eq!(said, Err(Symbol::InvalidCursor), "{other:?} is another list");
        changed.close().await;
    }
}

/// A server in this process that has three resources, one on each page.
fn notes(name: &'static str) -> ServerSettings {
    let source = move |request: PageRequest, _| {
        let at: usize = request.after.as_deref().map_or(0, |after| after.parse().unwrap());
        let page = ResourcePage::new([Resource::new(format!("{name}://{at}"), at.to_string())]);
        std::future::ready(Ok(if at < 2 { page.next((at + 1).to_string()) } else { page }))
    };
    local(name, Server::new(name, "1.0").page_size(1).resource_source(source))
}

#[tokio::test]
async fn servers_of_the_process_follow_when_keys_are_replaced() {
    let with = |secrets: &[&str]| {
        let sealing_keys = secrets.iter().map(|key| Key::derive(key)).collect();
        Settings { sealing_keys, ..settings([notes("a")]) }
    };
    let ann = person("ann");
    let running = started(with(&["old"])).await;
    running.reload(with(&["new", "old"])).await.unwrap();
    let cursor = ann.get(&running, "resources/list", json!({})).await["nextCursor"].clone();
    let later = started(with(&["new"])).await;
    let page = ann.get(&later, "resources/list", json!({"cursor": cursor})).await;
    assert_eq!(keys(&page), ["a://1"], "nothing of the old key is in it");
    running.close().await;
    later.close().await;
}

#[tokio::test]
async fn servers_of_the_process_seal_with_the_same_keys() {
    let dir = tempfile::tempdir().unwrap();
    // Made anew each time, with a random key of its own.
    let start =
        || started(Settings { state_dir: Some(dir.path().to_owned()), ..settings([notes("a"), notes("b")]) });
    let ann = person("ann");
    let (mut cursor, mut read) = (Value::Null, Vec::new());
    for _ in 0..6 {
        let gateway = start().await;
        let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
        let page = ann.get(&gateway, "resources/list", params).await;
        read.extend(keys(&page));
        cursor = page["nextCursor"].clone();
        gateway.close().await;
    }
    assert_eq!(read, ["a://0", "a://1", "a://2", "b://0", "b://1", "b://2"]);
    assert!(cursor.is_null());
}

/// A server with a tool that asks.
fn asking(name: &str) -> Server {
    Server::new(name, "1.0").tool(Tool::new("ask").handler(|_: (), cx: Cx| async move {
        let schema = json!({"type": "object", "properties": {"who": {"type": "string"}}});
        cx.elicit(Elicit::form_schema("Who?", schema).key("who")).await.accepted()?;
        Ok::<_, ToolError>("thanks")
    }))
}

/// Answers the question in a reply: the call as it is made again.
fn answered(tool: &str, reply: Reply) -> Value {
    let Reply::InputRequired(input) = reply else { panic!("{tool} asks: {reply:?}") };
    let answer = json!({"action": "accept", "content": {"who": "ann"}});
    let answers: serde_json::Map<_, _> =
        input.questions.iter().map(|question| (question.key.to_string(), answer.clone())).collect();
    json!({"name": tool, "inputResponses": answers, "requestState": input.state.as_deref()})
}

#[tokio::test]
async fn a_question_can_be_answered_after_a_restart_if_nothing_but_the_answer_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(asking("r"), tidegate_edge::Eras::Legacy).await;
    let start = || {
        let servers = [local("a", asking("a")), local("b", asking("b")), served.named("r")];
        started(Settings { state_dir: Some(dir.path().to_owned()), ..settings(servers) })
    };
    let mut ann = person("ann");
    ann.0.capabilities = ClientCapabilities::from_json(json!({"elicitation": {"form": {}}}).into());
    let first = start().await;
    let call = async |tool: &str| answered(tool, ann.ask(&first, "tools/call", json!({"name": tool})).await);
    let (here, there) = (call("a_ask").await, call("r_ask").await);
    first.close().await;
    drop(first);

    let again = start().await;
    let said = async |params: &Value| match ann.ask(&again, "tools/call", params.clone()).await {
        Reply::Complete(result) => result.as_str().to_owned(),
        Reply::Error(error) => error.to_string(),
        other => panic!("{other:?}"),
    };
    // All that the framework needs is in the state.
    let text = said(&here).await;
    assert!(text.contains("thanks"), "{text}");
    let mut of_another = here.clone();
    of_another["name"] = "b_ask".into();
    let text = said(&of_another).await;
    assert!(text.contains("requestState is not valid for this request"), "{text}");
    // A session with a legacy server ends with the process, and that is what is said.
    let text = said(&there).await;
    assert!(text.contains("the call that requestState names is over"), "{text}");
    again.close().await;
}

#[tokio::test]
async fn keys_rotate_and_without_the_key_nothing_opens() {
    let ann = person("ann");
    let (old, both, new) = (keyed(&["old"]), keyed(&["new", "old"]), keyed(&["new"]));
    let [old, both, new] = [started(old).await, started(both).await, started(new).await];
    let of_old = cursor(&ann, &old).await;
    assert_eq!(goes_on(&ann, &both, of_old.clone()).await, Ok(()));
    assert_eq!(goes_on(&ann, &new, cursor(&ann, &both).await).await, Ok(()));
    assert_eq!(page(&ann, &new, &of_old).await, Err(Symbol::InvalidCursor));
    // The keys of a running gateway are replaced in the same way.
    new.reload(keyed(&["new", "old"])).await.unwrap();
    assert_eq!(goes_on(&ann, &new, of_old.clone()).await, Ok(()));
    // Without any, each has its own.
    let [one, other] = [started(paged(&["a", "b", "c"])).await, started(paged(&["a", "b", "c"])).await];
    let own = cursor(&ann, &one).await;
    assert_eq!(page(&ann, &other, &own).await, Err(Symbol::InvalidCursor));
    one.reload(paged(&["a", "b", "c"])).await.unwrap();
    assert_eq!(goes_on(&ann, &one, own).await, Ok(()), "and keeps it");
    for gateway in [old, both, new, one, other] {
        gateway.close().await;
    }
}

#[tokio::test]
async fn a_key_file_that_cannot_be_used_is_an_error_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("sealing.key"), "hush\n").unwrap();
    let error = Gateway::start(kept(&dir, &["a"])).map(|_| ()).unwrap_err().to_string();
    assert!(
        error.contains("sealing.key cannot be used") && error.contains("64 hexadecimal digits"),
        "{error}"
    );
    assert!(!error.contains("hush"), "{error}");
}
