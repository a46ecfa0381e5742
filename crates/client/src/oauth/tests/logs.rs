//! What gets into the log: nothing secret, not even from the libraries that we use.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::world::World;

/// Writes down all that anybody logs, at any level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Line(&mut self.0.lock().unwrap()));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Line(&mut self.0.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Line(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!("{field}={value:?}\n"));
    }
}

#[tokio::test]
async fn nothing_secret_is_logged() {
    let log = Log::default();
    // The test has one thread, so that this holds for all tasks.
    let _guard = tracing::subscriber::set_default(log.clone());
    let world = World::new().await;
    let oauth = world.builder().build().unwrap();
    world.call(&oauth).await.unwrap();
    world.revoke();
    world.call(&oauth).await.unwrap();
    world.revoke();
    world.revoke_refresh();
    world.call(&oauth).await.unwrap();
    tracing::info!("the end");
    let text = log.0.lock().unwrap().clone();
    assert!(text.contains("the end"));
    for secret in ["secret-", "code-"] {
        let line = text.lines().find(|line| line.contains(secret));
        assert_eq!(line, None);
    }
}
