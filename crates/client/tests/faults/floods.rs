//! Servers that send too much.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tidegate_protocol::{Level, Symbol};

use crate::rig::*;

#[test]
fn a_call_is_answered_in_spite_of_a_flood() {
    every(ALL, async |rig| {
        let logged = Arc::new(AtomicUsize::new(0));
        let counter = logged.clone();
        let builder = rig.builder(|_| {}).on_log(Level::Debug, move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        let client =
            rig.keep(bounded(Duration::from_secs(20), builder.connect()).await.expect("a connection"));
        let progress = Arc::new(AtomicUsize::new(0));
        let counter = progress.clone();
        let deadline = Duration::from_secs(60);
        let flood =
            client.call("flood", json!({"count": 100_000})).timeout(deadline).on_progress(move |_| {
                counter.fetch_add(1, Ordering::Relaxed);
            });
        assert_eq!(bounded(deadline, flood).await.expect("the answer").text(), "good");
        assert!(logged.load(Ordering::Relaxed) > 0 && progress.load(Ordering::Relaxed) > 0);
        works(&client).await;
        assert_eq!(rig.count("call flood"), 1);
    });
}

#[test]
fn a_flood_without_end_does_not_keep_a_call_beyond_its_deadline() {
    every(ALL, async |rig| {
        let client = rig.client().await;
        // Slower than the server, so that there is always more.
        let slow = |_| std::thread::sleep(Duration::from_micros(500));
        let call = client.call("flood_forever", json!({})).timeout(SHORT).on_progress(slow);
        let error = bounded(SHORT, call).await.expect_err("an error");
        assert_eq!(error.symbol, Symbol::Timeout, "{error}");
        if rig.kind.http {
            works(&client).await;
        }
    });
}

#[test]
fn a_list_that_does_not_end_is_given_up() {
    for (start, sentence) in [("same_page", "without end"), ("endless_pages", "more than 1000 pages")] {
        every_started(ALL, start, async |rig| {
            let client = rig.client().await;
            let tools = bounded(Duration::from_secs(75), client.tools()).await;
            let error = tools.expect_err("an error");
            assert!(error.message.contains(sentence), "{error}");
            assert!(rig.count("method tools/list") <= 1000);
        });
    }
}
