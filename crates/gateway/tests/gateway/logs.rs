//! What a legacy server logs outside of any call, through the gateway.

use serde_json::{Value, json};
use tidegate_client::{EraChoice, Streams, Target};
use tidegate_config::{ServerSettings, Source};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::broadcast;

use crate::callers::Wire;
use crate::rig::*;

/// A server that says what the test wants it to say, and knows no tools.
pub(crate) fn speaker(say: broadcast::Sender<Value>) -> ServerSettings {
    let streams = Streams::new(move || {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let mut words = say.subscribe();
        tokio::spawn(async move {
            let (input, mut output) = tokio::io::split(theirs);
            let mut lines = BufReader::new(input).lines();
            loop {
                let message = tokio::select! {
                    line = lines.next_line() => {
                        let Ok(Some(line)) = line else { return };
                        let request: Value = serde_json::from_str(&line).unwrap();
                        if request["id"].is_null() {
                            continue;
                        }
                        let result = match request["method"].as_str() {
                            Some("initialize") => json!({"protocolVersion": "2025-11-25",
                                "capabilities": {"tools": {}, "logging": {}},
                                "serverInfo": {"name": "speaker", "version": "1"}}),
                            Some("tools/list") => json!({"tools": []}),
                            _ => json!({}),
                        };
                        json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
                    }
                    Ok(word) = words.recv() => word,
                };
                output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
            }
        });
        Ok(tokio::io::split(ours))
    });
    let mut settings = ServerSettings::new("speaker", Source::Target(Target::Streams(streams)));
    settings.options.era = EraChoice::Legacy;
    settings.seal()
}

#[tokio::test]
async fn a_legacy_client_hears_it_on_its_own_stream_and_at_its_level() {
    let say = broadcast::Sender::new(16);
    let gateway = gateway([speaker(say.clone())]).await;
    let mut ann = Wire::open(&gateway, "Ann", "2025-11-25").await;
    let mut bob = Wire::open(&gateway, "Bob", "2025-06-18").await;
    let mut eve = Wire::open(&gateway, "Eve", "2026-07-28").await;
    assert_eq!(bob.request("logging/setLevel", json!({"level": "error"})).await["result"], json!({}));
    // Both have their streams by now.
    for wire in [&mut ann, &mut bob, &mut eve] {
        assert!(wire.request("tools/list", json!({})).await["result"]["tools"].is_array());
    }
    for (level, data) in [("debug", "quiet"), ("info", "heard"), ("error", "loud")] {
        let params = json!({"level": level, "data": data});
        say.send(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params})).unwrap();
    }
    for data in ["heard", "loud"] {
        assert_eq!(ann.told_of("notifications/message").await["params"]["data"], data);
    }
    assert_eq!(bob.told_of("notifications/message").await["params"]["data"], "loud");
    assert!(eve.request("tools/list", json!({})).await["result"]["tools"].is_array());
    assert!(eve.notes.is_empty(), "a modern client hears of its own calls alone: {:?}", eve.notes);
    gateway.close().await;
}
