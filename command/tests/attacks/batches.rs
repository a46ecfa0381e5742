//! One small body that asks for gigabytes of answers.

use serde_json::json;

use crate::rig::Gateway;

/// What the process may have at most, in MiB.
const ROOM: u64 = 200;

#[test]
fn a_batch_of_sixty_thousand() {
    let mut gateway = Gateway::memory();
    let bomb = format!("[{}]", vec![r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#; 60_000].join(","));
    let session = gateway.initialize("2025-03-26");
    for headers in [&[][..], &[("Mcp-Session-Id", &*session)][..]] {
        let refused = gateway.post(headers, bomb.as_bytes());
        assert_eq!(refused.status, 400, "{}", refused.head);
        assert!(refused.body.contains("a batch may have at most 100 messages"), "{}", refused.body);
        gateway.answers_others();
    }
    assert!(gateway.peak() < ROOM, "{} MiB", gateway.peak());
    gateway.ends_cleanly();
}

#[test]
fn batches_of_a_hundred_at_once() {
    let mut gateway = Gateway::memory();
    let entry = |id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
    let batch = (0..100).map(entry).collect::<serde_json::Value>().to_string();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..3 {
                    let answer = gateway.post(&[], batch.as_bytes());
                    let answers = answer.json();
                    assert_eq!(answers.as_array().map(Vec::len), Some(100), "each is answered");
                }
            });
        }
        for _ in 0..5 {
            gateway.answers_others();
        }
    });
    assert!(gateway.peak() < 2 * ROOM, "{} MiB", gateway.peak());
    gateway.ends_cleanly();
}
