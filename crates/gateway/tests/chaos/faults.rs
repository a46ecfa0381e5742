//! How long servers took to come back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_gateway::Gateway;

use super::upstream::Upstream;

/// The longest time between a server being well again and the gateway knowing it, of those that were last in trouble.
pub(crate) async fn slowest_return(upstreams: &[Arc<Upstream>], gateway: &Gateway) -> Duration {
    let status = gateway.status();
    let since = |upstream: &Arc<Upstream>| *upstream.healthy_since.lock().unwrap();
    let times = upstreams.iter().zip(&status).filter_map(|(upstream, known)| {
        let healthy: Instant = since(upstream)?;
        // One that never seemed down was never away.
        known.since.checked_duration_since(healthy)
    });
    times.max().unwrap_or_default()
}
