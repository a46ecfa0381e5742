//! Clients of each era on the wire, with whom the edge does what their revision has other methods for.

use serde_json::{Value, json};
use tidegate_config::Settings;
use tidegate_policy::PolicySpec;

use super::{World, policy, rule};
use crate::callers::{REVISIONS, Wire};

/// Nobody is authenticated, and everybody may do the same.
fn open_to_all() -> PolicySpec {
    policy([rule("all", 1, &[]).allow(&["reef_read", "prompt:reef_review", "resource:reef://open"])])
}

fn without_auth(settings: &mut Settings) {
    settings.auth = None;
}

#[tokio::test]
async fn what_is_hidden_and_what_is_not_there() {
    let hidden = ["reef_wipe", "reef_plot", "reef://secret", "reef://diaries", "vault_wipe"];
    let rich = World::with(open_to_all(), without_auth).await;
    let poor = World::that_has(|name| !hidden.contains(&name), open_to_all(), without_auth).await;
    for revision in REVISIONS {
        let mut answers: Vec<Vec<Value>> = Vec::new();
        for world in [&rich, &poor] {
            let mut wire = Wire::open(&world.gateway, "Ann", revision).await;
            let mut said = Vec::new();
            for (method, params) in [
                ("tools/list", json!({})),
                ("prompts/list", json!({})),
                ("resources/list", json!({})),
                ("tools/call", json!({"name": "reef_wipe", "arguments": {}})),
                ("prompts/get", json!({"name": "reef_plot"})),
                ("resources/read", json!({"uri": "reef://secret"})),
                ("resources/subscribe", json!({"uri": "reef://secret"})),
                ("resources/unsubscribe", json!({"uri": "reef://secret"})),
                ("resources/read", json!({"uri": "reef://diaries/1"})),
                ("vendor/echo", json!({"uri": "reef://secret"})),
            ] {
                let mut answer = wire.request(method, params).await;
                // Each failure has an id of its own, and each cursor is sealed in its own way.
                for (at, member) in [("/error/data", "correlationId"), ("/result", "nextCursor")] {
                    if let Some(object) = answer.pointer_mut(at).and_then(Value::as_object_mut) {
                        object.remove(member);
                    }
                }
                said.push(answer);
            }
            answers.push(said);
        }
        for (hidden, absent) in answers[0].iter().zip(&answers[1]) {
            assert_eq!(hidden, absent, "{revision}");
        }
        assert!(answers[0][0].to_string().contains("reef_read"), "{:?}", answers[0][0]);
    }
    rich.gateway.close().await;
    poor.gateway.close().await;
}

#[tokio::test]
async fn a_legacy_client_is_told_of_a_list_that_a_policy_changes() {
    let world = World::with(open_to_all(), without_auth).await;
    let mut wire = Wire::open(&world.gateway, "Ann", "2025-11-25").await;
    wire.request("ping", json!({})).await;
    world.reload(policy([rule("all", 1, &[]).allow(&["reef_read", "reef_write"])])).await;
    let told = crate::rig::in_time("what is told", async {
        loop {
            let answer = wire.request("ping", json!({})).await;
            assert!(answer["result"].is_object(), "{answer}");
            if let Some(note) =
                wire.notes.iter().find(|note| note["method"] == "notifications/tools/list_changed")
            {
                return note.clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    world.gateway.close().await;
}
