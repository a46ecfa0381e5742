//! What is hidden cannot be told from what is not there. There are two gateways with the same policy: the servers of one have
//! things that some callers do not see, those of the other have only what these callers see. Whatever such a caller asks for,
//! both answer the same, word for word.

use serde_json::{Value, json};
use tidegate_config::ToolMode;
use tidegate_protocol::Symbol;
use tidegate_service::{OWN_RESOURCES, Reply, UNLISTED};

use super::{World, caller_of, role, roles, text};
use crate::rig::Caller;

/// What nobody but an admin sees.
const HIDDEN: [&str; 12] = [
    "reef_wipe",
    "reef_longer",
    "reef_buried",
    "reef_plot",
    "reef://secret",
    "reef://diaries",
    "vault_write",
    "vault_wipe",
    "vault_longer",
    "vault_plot",
    "vault://secret",
    "vault://diaries",
];

/// Every way to ask for things by name, and for what may name them.
fn questions() -> Vec<(&'static str, Value)> {
    let mut all = Vec::new();
    for tool in ["reef_wipe", "reef_longer", "reef_buried", "vault_wipe", "reef_wip", "wipe"] {
        let call = json!({"name": tool, "arguments": {"where": "sandbox"}});
        all.push(("tools/call", call.clone()));
        all.push(("tools/call_batch", json!({"calls": [call, {"name": "reef_read"}]})));
        all.push(("tools/call", json!({"name": "call_tool", "arguments": call})));
        all.push(("tools/list", json!({"_meta": {UNLISTED: tool}})));
        all.push(("tools/call", json!({"name": "search_tools", "arguments": {"query": tool}})));
    }
    for server in ["", "reef", "vault", "none"] {
        let arguments = json!({"query": "", "server": server});
        all.push(("tools/call", json!({"name": "search_tools", "arguments": arguments})));
    }
    for prompt in ["reef_plot", "vault_plot", "reef_plo"] {
        all.push(("prompts/get", json!({"name": prompt, "arguments": {"where": "sandbox"}})));
        let reference = json!({"type": "ref/prompt", "name": prompt});
        all.push((
            "completion/complete",
            json!({"ref": reference, "argument": {"name": "where", "value": ""}}),
        ));
    }
    for uri in
        ["reef://secret", "reef://diaries/1", "vault://secret", "REEF://secret", "reef://notes/../secret"]
    {
        all.push(("resources/read", json!({"uri": uri})));
        for method in ["vendor/echo", "vendor/other", "skills/get", "resources/directory/read"] {
            all.push((method, json!({"uri": uri})));
        }
        all.push(("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [uri]}})));
    }
    for uri in ["reef://diaries/{id}", "vault://diaries/{id}"] {
        let reference = json!({"type": "ref/resource", "uri": uri});
        all.push(("completion/complete", json!({"ref": reference, "argument": {"name": "id", "value": ""}})));
    }
    for method in [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "skills/list",
        "server/discover",
    ] {
        all.push((method, json!({})));
    }
    all.push(("resources/list", json!({"_meta": {OWN_RESOURCES: false}})));
    all.push(("vendor/other", json!({})));
    all.push(("vendor/other", json!({"_meta": {"dev.tidegate/server": "vault"}})));
    for method in ["tasks/get", "tasks/cancel"] {
        all.push((method, json!({"taskId": "made up"})));
    }
    all
}

/// The whole answer, without what is different each time.
async fn said(caller: &Caller, world: &World, method: &str, params: &Value) -> String {
    let reply = caller.ask(&world.gateway, method, params.clone()).await;
    if let Reply::Subscription(open) = reply {
        open.events.close();
        return open.acknowledged.as_str().to_owned();
    }
    let mut text = text(caller, &reply);
    // Each gateway has an id, each cursor is sealed in its own way, and each failure has its time and its correlation id.
    for (start, end) in [
        (r#""dev.tidegate/gateways":{"ids":["#, ']'),
        (r#""nextCursor":""#, '"'),
        (r#""timestamp":""#, '"'),
        (r#""correlationId":""#, '"'),
    ] {
        if let Some((before, rest)) = text.split_once(start) {
            text = format!("{before}{start}{}", rest.split_once(end).unwrap().1);
        }
    }
    text
}

#[tokio::test]
async fn what_is_hidden_and_what_is_not_there() {
    for mode in [ToolMode::All, ToolMode::Search] {
        let edit = |settings: &mut tidegate_config::Settings| settings.tools.mode = mode;
        let rich = World::with(roles(), edit).await;
        let poor = World::that_has(|name| !HIDDEN.contains(&name), roles(), edit).await;
        for who in ["dev", "guest", "nobody"] {
            for is_modern in [true, false] {
                let caller = caller_of(who, is_modern);
                for (method, params) in questions() {
                    let [hidden, absent] = [
                        said(&caller, &rich, method, &params).await,
                        said(&caller, &poor, method, &params).await,
                    ];
                    assert_eq!(hidden, absent, "{who}, {mode:?}: {method} {params}");
                }
            }
        }
        rich.gateway.close().await;
        poor.gateway.close().await;
    }
}

#[tokio::test]
async fn a_task_of_a_tool_that_is_hidden_by_now_is_as_unknown_as_any() {
    let world = World::start(roles()).await;
    let dev = role("dev");
    let Reply::Task(task) = dev.ask(&world.gateway, "tools/call", json!({"name": "reef_long"})).await else {
        panic!("no task")
    };
    let id = task.to::<Value>().unwrap()["taskId"].as_str().unwrap().to_owned();
    world.reload(super::without_devs()).await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let mut answers = Vec::new();
        for id in [id.as_str(), "made up"] {
            let error = dev.fails(&world.gateway, method, json!({"taskId": id, "inputResponses": {}})).await;
            answers.push(error.to_json(dev.0.revision).as_str().replace(id, "ID"));
        }
        assert_eq!(answers[0], answers[1], "{method}");
    }
    world.gateway.close().await;
}

#[tokio::test]
async fn what_is_seen_and_refused_is_said_to_be() {
    let world = World::start(roles()).await;
    for is_modern in [true, false] {
        let dev = caller_of("dev", is_modern);
        let call = json!({"name": "reef_write", "arguments": {"where": "prod"}});
        let batch = json!({"calls": [call]});
        let direct = dev.get(&world.gateway, "tools/call", call).await;
        let in_batch =
            dev.get(&world.gateway, "tools/call_batch", batch).await["results"][0]["result"].clone();
        for result in [direct, in_batch] {
            assert_eq!(result["isError"], true, "{result}");
            assert_eq!(result["_meta"]["dev.tidegate/error"]["symbol"], "FORBIDDEN", "{result}");
            let said = result.to_string();
            assert!(
                said.contains("reef_write") && !said.contains("sandbox"),
                "the rule stays a secret: {said}"
            );
        }
        let params = json!({"name": "reef_ask", "arguments": {"where": "prod"}});
        let error = dev.fails(&world.gateway, "prompts/get", params).await;
        assert_eq!(error.symbol(), Symbol::Forbidden);
        let written: Value = error.to_json(dev.0.revision).to().unwrap();
        assert_eq!((&written["code"], &written["data"]["symbol"]), (&json!(-32603), &json!("FORBIDDEN")));
        assert!(!written.to_string().contains("sandbox"), "{written}");
    }
    world.gateway.close().await;
}
