//! What the record of a call says about the decision, whatever the caller was told.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tidegate_config::ToolMode;
use tidegate_protocol::{Json, Limits, Method, Params};
use tidegate_server::{Cx, Server, Tool};
use tidegate_service::events::{self, Event, Kind, Recorder};
use tidegate_service::{Call, Principal};

use super::{World, policy, role, roles, rule};
use crate::rig::{Caller, door, says, settings, started};

/// What was recorded of the calls of one person. Other tests of this process have records, too.
pub(super) struct Records {
    recorder: Arc<dyn Recorder>,
    notes: Arc<Notes>,
}

struct Notes {
    whose: Principal,
    decisions: Mutex<Vec<String>>,
}

impl Recorder for Notes {
    fn wants(&self, kind: Kind) -> bool {
        kind == Kind::CallEnded
    }

    fn record(&self, event: &Event<'_>) {
        let Event::CallEnded(call) = event else { return };
        if *call.principal != self.whose {
            return;
        }
        let said = match call.decision() {
            Some(decision) => format!("{} by {} at {:?}", decision.as_str(), decision.rule, decision.line),
            None => "undecided".to_owned(),
        };
        self.decisions.lock().unwrap().push(format!("{} {said}", call.method.as_str()));
    }
}

impl Records {
    /// Records of a caller with a role and a name that no other test has.
    pub(super) fn of(name: &str, of_role: &str) -> (Records, Caller) {
        let mut caller = role(of_role);
        caller.0.principal = Principal::subject(name);
        let (whose, decisions) = (caller.0.principal.clone(), Mutex::default());
        let notes = Arc::new(Notes { whose, decisions });
        let recorder: Arc<dyn Recorder> = notes.clone();
        events::add(recorder.clone());
        (Records { recorder, notes }, caller)
    }

    /// What was recorded since the last time.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.decisions.lock().unwrap())
    }

    /// The same, of calls about which something was decided.
    pub(super) fn decisions(&self) -> Vec<String> {
        self.take().into_iter().filter(|record| !record.ends_with("undecided")).collect()
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        events::remove(&self.recorder);
    }
}

const ADMIN: &str = "allowed by admin at Some(10)";
const DEV: &str = "allowed by dev at Some(20)";
const SANDBOX: &str = "allowed by dev in the sandbox at Some(30)";
const REFUSED: &str = "refused by default at Some(5)";

#[tokio::test]
async fn every_call_has_the_decision_about_it() {
    let world = World::start(roles()).await;
    let (of_admin, admin) = Records::of("recorded admin", "admin");
    let (of_dev, dev) = Records::of("recorded dev", "dev");
    let (of_nobody, nobody) = Records::of("recorded nobody", "nobody");
    let prompt = |name: &str| json!({"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": "where", "value": ""}});
    let template = |uri: &str| json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "id", "value": ""}});
    for (method, params, decision) in [
        ("tools/call", json!({"name": "reef_read"}), DEV),
        ("tools/call", json!({"name": "reef_write", "arguments": {"where": "sandbox"}}), SANDBOX),
        ("tools/call", json!({"name": "reef_write", "arguments": {"where": "prod"}}), REFUSED),
        ("tools/call", json!({"name": "reef_wipe"}), REFUSED),
        ("tools/call", json!({"name": "reef_hidden"}), DEV),
        ("tools/call", json!({"name": "reef_buried"}), REFUSED),
        ("tools/call", json!({"name": "reef_long"}), DEV),
        ("prompts/get", json!({"name": "reef_review"}), DEV),
        ("prompts/get", json!({"name": "reef_ask", "arguments": {"where": "sandbox"}}), SANDBOX),
        ("prompts/get", json!({"name": "reef_ask", "arguments": {"where": "prod"}}), REFUSED),
        ("prompts/get", json!({"name": "reef_plot"}), REFUSED),
        ("resources/read", json!({"uri": "reef://open"}), DEV),
        ("resources/read", json!({"uri": "reef://notes/1"}), DEV),
        ("resources/read", json!({"uri": "reef://secret"}), REFUSED),
        ("resources/read", json!({"uri": "reef://notes/%2e%2e/secret"}), REFUSED),
        ("completion/complete", prompt("reef_review"), DEV),
        ("completion/complete", prompt("reef_plot"), REFUSED),
        ("completion/complete", template("reef://notes/{id}"), DEV),
        ("completion/complete", template("reef://diaries/{id}"), REFUSED),
        ("vendor/echo", json!({"uri": "reef://open"}), DEV),
        ("vendor/echo", json!({"uri": "reef://secret"}), REFUSED),
        ("vendor/other", json!({"uri": "reef://open"}), REFUSED),
    ] {
        for (records, caller, decision) in [
            (&of_dev, &dev, decision),
            (&of_admin, &admin, ADMIN),
            (&of_nobody, &nobody, "refused by no claims at None"),
        ] {
            records.take();
            caller.ask(&world.gateway, method, params.clone()).await;
            assert_eq!(records.take(), [format!("{method} {decision}")], "{method} {params}");
        }
    }
    world.gateway.close().await;
}

#[tokio::test]
async fn calls_in_a_batch_have_records_of_their_own() {
    let world = World::start(roles()).await;
    let (records, dev) = Records::of("dev with a batch", "dev");
    let sandbox = json!({"where": "sandbox"});
    let calls = json!({"calls": [{"name": "reef_read"}, {"name": "reef_wipe"}, {"name": "reef_write"},
        {"name": "reef_write", "arguments": sandbox}]});
    dev.get(&world.gateway, "tools/call_batch", calls).await;
    let mut recorded = records.take();
    recorded.sort();
    let mut expected = [DEV, REFUSED, REFUSED, SANDBOX].map(|said| format!("tools/call {said}")).to_vec();
    expected.push("tools/call_batch undecided".to_owned());
    expected.sort();
    assert_eq!(recorded, expected);
    world.gateway.close().await;
}

#[tokio::test]
async fn a_call_through_call_tool_has_a_record_too() {
    let world = World::with(roles(), |settings| settings.tools.mode = ToolMode::Search).await;
    let (records, dev) = Records::of("dev who searches", "dev");
    for (tool, place, decision) in [
        ("reef_read", "", DEV),
        ("reef_write", "sandbox", SANDBOX),
        ("reef_write", "prod", REFUSED),
        // Nothing is called here, so the decision is that of the outer call.
        ("reef_wipe", "", REFUSED),
    ] {
        records.take();
        let inner = json!({"name": tool, "arguments": {"where": place}});
        dev.ask(&world.gateway, "tools/call", json!({"name": "call_tool", "arguments": inner})).await;
        assert_eq!(records.decisions(), [format!("tools/call {decision}")], "{tool} {place}");
    }
    world.gateway.close().await;
}

#[tokio::test]
async fn a_task_is_asked_for_with_the_permission_for_its_tool() {
    let world = World::start(roles()).await;
    let (records, dev) = Records::of("dev with a task", "dev");
    let reply = dev.ask(&world.gateway, "tools/call", json!({"name": "reef_long"})).await;
    let tidegate_service::Reply::Task(task) = reply else { panic!("no task") };
    let id = json!({"taskId": task.to::<serde_json::Value>().unwrap()["taskId"]});
    records.take();
    dev.get(&world.gateway, "tasks/get", id.clone()).await;
    assert_eq!(records.take(), [format!("tasks/get {DEV}")]);
    world.reload(super::without_devs()).await;
    dev.fails(&world.gateway, "tasks/get", id).await;
    assert_eq!(records.take(), [format!("tasks/get {REFUSED}")]);
    world.gateway.close().await;
}

/// A server whose tool asks whether its caller may use another of its own.
fn agent(gateway: &Arc<std::sync::OnceLock<tidegate_gateway::Gateway>>) -> Server {
    let gateway = gateway.clone();
    let ask = Tool::new("ask").handler(move |_: (), cx: Cx| {
        let gateway = gateway.get().cloned().unwrap();
        async move {
            let params = Params::parse(&Json::from(json!({"name": "wipe"})), &Limits::default()).unwrap();
            let call = Call::new(Method::ToolsCall, params, cx.on_behalf());
            gateway.allows("agent", &call).is_ok().to_string()
        }
    });
    Server::new("agent", "1").tool(ask).tool(says("wipe", "wiped"))
}

#[tokio::test]
async fn what_an_agent_may_not_do_was_not_refused_to_its_caller() {
    let there = Arc::new(std::sync::OnceLock::new());
    let mut settings = settings([door("agent", agent(&there).build().bare())]);
    let rules = policy([rule("asking", 3, &[]).allow(&["agent_ask"])]);
    settings.policy = Some(Arc::new(super::compiled(&rules)));
    let gateway = started(settings).await;
    assert!(there.set(gateway.clone()).is_ok());
    let (records, dev) = Records::of("dev with an agent", "dev");
    assert_eq!(dev.call(&gateway, "agent_ask").await, ("false".to_owned(), false));
    assert_eq!(records.take(), ["tools/call allowed by asking at Some(3)"]);
    gateway.close().await;
}

#[tokio::test]
async fn a_listed_tool_that_is_hidden_is_not_looked_for_elsewhere() {
    let reef = Server::new("reef", "1").tool(says("wipe", "wiped the reef"));
    // It has one of the same name, which nobody lists.
    let vault =
        Server::new("vault", "1").tool(says("wipe", "wiped the vault").unlisted()).tool(says("read", "read"));
    let servers = [("reef", reef), ("vault", vault)].map(|(name, server)| {
        let mut server = door(name, server.build().bare());
        server.prefix.clear();
        server.seal()
    });
    let mut settings = settings(servers);
    settings.auth = Some(Default::default());
    let mut no_wiping = rule("no wiping of the reef", 2, &[]).deny(&["wipe"]);
    no_wiping.0.servers = Some(vec!["reef".to_owned()]);
    let rules = policy([no_wiping, rule("rest", 3, &[]).allow(&["*"])]);
    settings.policy = Some(Arc::new(super::compiled(&rules)));
    let gateway = started(settings).await;
    let (records, dev) = Records::of("dev who wipes", "dev");
    let error = dev.fails(&gateway, "tools/call", json!({"name": "wipe"})).await;
    assert_eq!(error.symbol().as_str(), "TOOL_NOT_FOUND", "{error}");
    assert_eq!(records.take(), ["tools/call refused by no wiping of the reef at Some(2)"]);
    assert_eq!(dev.call(&gateway, "read").await, ("read".to_owned(), false));
    gateway.close().await;
}
