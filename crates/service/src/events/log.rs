//! [`LogRecorder`]: the first recorder, which writes log lines.

use std::sync::OnceLock;

use tracing::{Level, enabled};

use super::access_line::AccessLine;
use super::{CallEnded, Event, Kind, Operated, Recorder, ServerStateChanged};
use crate::current::Current;
use crate::layers::BreakerState;

/// Lines about how servers are doing.
pub(super) const LIFECYCLE: &str = "tidegate::lifecycle";
/// Lines that say that a connection was opened.
const CONNECTED: &str = "tidegate::connected";
/// What was done so far.
const STATISTICS: &str = "tidegate::statistics";
/// One line for each call.
const ACCESS: &str = "tidegate::access";

/// Who writes these lines instead.
static ACCESS_LOG: OnceLock<Box<dyn AccessLog>> = OnceLock::new();

/// Writes the lines about calls. There is one for each call, and a line that goes through `tracing` costs several times as much as one that
/// is written at once.
pub trait AccessLog: Send + Sync {
    /// Whether it writes them at the moment. If not, they go through `tracing`, for a filter that looks at spans.
    fn is_on(&self) -> bool {
        true
    }

    /// Writes the line about a call that has ended. It must not wait.
    fn write(&self, call: &CallEnded<'_>);
}

/// Has somebody else than `tracing` write the lines about calls: whoever writes the other lines, too. The level of `tidegate::access` decides
/// as before whether there are any. Later calls do nothing.
pub fn write_access_log_with(log: impl AccessLog + 'static) {
    let _ = ACCESS_LOG.set(Box::new(log));
}

/// Whether it depends on the span around a call if there is a line about it, which is not known before.
fn depends_on_spans() -> bool {
    ACCESS_LOG.get().is_some_and(|log| !log.is_on())
}

/// From how many answered calls on a low success rate is worth a warning.
const ENOUGH: u64 = 20;

/// Writes what happens to the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogRecorder;

impl Recorder for LogRecorder {
    fn wants(&self, kind: Kind) -> bool {
        match kind {
            // There is one for each call, and preparing it costs something.
            Kind::CallEnded => enabled!(target: ACCESS, Level::INFO) || depends_on_spans(),
            // The line about the call says enough.
            Kind::ServerCallEnded | Kind::SpanEnded | Kind::CallWaited | Kind::OfferHidden => false,
            _ => true,
        }
    }

    fn record(&self, event: &Event<'_>) {
        match event {
            Event::CallEnded(call) => match ACCESS_LOG.get().filter(|log| log.is_on()) {
                // Somebody else may want to know of calls.
                Some(_) if !self.wants(Kind::CallEnded) => {}
                Some(log) => log.write(call),
                None => access(call),
            },
            Event::CallFailed(it) => {
                let server = server();
                tracing::warn!(server, symbol = it.symbol.as_str(), "a call failed: {}", it.detail)
            }
            Event::CallTimedOut(it) => {
                tracing::warn!(server = server(), error = %it.error, "the deadline passed")
            }
            Event::CallRetried(it) => tracing::info!(
                server = server(),
                method = %it.method,
                attempt = it.attempt,
                delay_ms = it.delay.as_millis() as u64,
                reason = it.reason,
                "the call failed and is made again"
            ),
            Event::ResultTooLarge(it) => {
                tracing::warn!(size = it.size, limit = it.limit, "the result is too large")
            }
            Event::HandlerPanicked(it) => tracing::error!(panic = it.message, "a handler panicked"),
            Event::ToolFailed(it) => tracing::warn!(tool = it.tool, error = it.error, "a tool failed"),
            Event::HandlerFailed(it) => tracing::warn!(error = it.error, "a handler failed"),
            Event::RequestFailed(it) => tracing::info!(
                correlationId = it.correlation.as_str(),
                method = %it.method,
                symbol = it.error.symbol().as_str(),
                "a request failed after its calls had ended: {}",
                it.error.detail()
            ),
            Event::CallAbandoned(it) => {
                tracing::info!(method = %it.method, "stopped a call whose questions were not answered")
            }
            Event::SessionExpired(it) => {
                tracing::info!(server = it.server, "the session has expired; opening another")
            }
            Event::SessionEnded(it) => {
                tracing::debug!(
                    server = it.server,
                    seconds = it.duration.as_secs_f64(),
                    "a legacy session is over"
                )
            }
            Event::EraChanged(it) => tracing::info!(
                server = it.server,
                error = %it.error,
                "the server seems to have changed its protocol era; detecting it again"
            ),
            Event::CircuitChanged(it) => {
                let (breaker, from, to) = (it.breaker, it.from, it.to);
                match to {
                    BreakerState::Open => {
                        tracing::warn!(server = breaker, %from, %to, "{breaker} {}: circuit open", it.why)
                    }
                    _ => {
                        tracing::info!(server = breaker, %from, %to, "the circuit breaker changed its state")
                    }
                }
            }
            Event::Operated(it) => {
                let subject = it.principal.subject.as_deref();
                let Operated { operation, path, way, detail, .. } = *it;
                tracing::info!(operation, path, way, subject, detail, "Changed through the admin API");
            }
            Event::PolicyChanged(it) => {
                let what = match (it.mode, it.rules) {
                    ("none", _) => "no policy: everybody who may call may do everything".to_owned(),
                    (mode, rules) => format!("policy: {rules} rules, {} otherwise, mode {mode}", it.default),
                };
                match it.is_opened {
                    true => tracing::warn!(target: LIFECYCLE, digest = it.digest, "{what}, unlike before"),
                    false => tracing::info!(target: LIFECYCLE, digest = it.digest, "{what}"),
                }
            }
            Event::ServerCallEnded(_)
            | Event::SpanEnded(_)
            | Event::CallWaited(_)
            | Event::OfferHidden(_) => {}
            Event::AlertChanged(it) => match it.is_raised {
                true => tracing::warn!(target: LIFECYCLE, alert = it.alert, "alert: {}", it.message),
                false => tracing::info!(target: LIFECYCLE, alert = it.alert, "over: {}", it.message),
            },
            Event::HostRefused(it) if it.is_one_of_many => {}
            Event::HostRefused(it) => tracing::warn!(
                address = it.address.map(tracing::field::display),
                untold = Some(it.untold).filter(|untold| *untold > 0),
                "a request was refused: {}",
                it.why
            ),
            Event::LoginRefused(it) if it.is_one_of_many => {}
            Event::LoginRefused(it) => tracing::warn!(
                reason = it.reason,
                endpoint = it.endpoint,
                address = it.address.map(tracing::field::display),
                "a login was refused{}{}",
                if it.detail.is_some() { ": " } else { "" },
                it.detail.unwrap_or_default()
            ),
            Event::LoginsRefused(it) => tracing::warn!(
                count = it.count,
                addresses = Some(it.addresses).filter(|all| !all.is_empty()),
                "{} more logins were refused: {}",
                it.count,
                it.reasons
            ),
            Event::ServerConnected(it) => tracing::info!(
                target: CONNECTED,
                server = it.server,
                version = %it.revision,
                "Connected to {} v{}", it.name, it.version
            ),
            Event::ServerStateChanged(it) => state(it),
            Event::ServerLeft(it) => {
                tracing::info!(target: LIFECYCLE, server = it.server, "{}", it.message);
            }
            Event::ServersReady(it) => {
                let (servers, ready, disabled, tools) = (it.servers, it.ready, it.disabled, it.tools);
                tracing::info!(target: LIFECYCLE, servers, ready, disabled, tools, "{}", it.message);
            }
            Event::StatisticsDue(it) => {
                let (what, stats) = (if it.is_final { "Final statistics" } else { "Statistics" }, it.stats);
                let (calls, failed, rate) = (stats.request_count, stats.error_count, stats.success_rate());
                let answered = stats.success_count + stats.error_count;
                let words = match calls {
                    0 => String::new(),
                    _ if answered < calls => {
                        let open = calls - answered;
                        format!(", {failed} failed, {open} cancelled, {rate:.2} % of the others successful")
                    }
                    _ => format!(", {failed} failed, {rate:.2} % successful"),
                };
                tracing::info!(target: STATISTICS, statistics = %it.report, "{what}: {calls} calls{words}");
                // A few calls say nothing.
                if it.warn && answered >= ENOUGH {
                    tracing::warn!(success_rate = format_args!("{rate:.2}%"), "the success rate is low");
                }
            }
        }
    }
}

fn state(it: &ServerStateChanged<'_>) {
    let (server, state, what) = (it.server, it.state, it.message);
    let revision = it.revision.map(|revision| revision.as_str());
    match (it.is_down, it.was_down) {
        (true, true) => tracing::debug!(target: LIFECYCLE, server, state, "still {what}"),
        (true, false) => tracing::warn!(target: LIFECYCLE, server, state, "{what}"),
        _ => tracing::info!(target: LIFECYCLE, server, state, tools = it.tools, revision, "{what}"),
    }
}

/// One line for each call, with what is needed to find it again.
/// The server that the current call was sent to.
fn server() -> Option<String> {
    Current::look(|call| call.server().map(str::to_owned)).flatten()
}

fn access(call: &CallEnded<'_>) {
    let line = AccessLine::of(call);
    // The correlation id, the method and the tool are those of the current call, and added to each of its lines.
    tracing::info!(
        target: ACCESS,
        server = line.server,
        outcome = line.outcome,
        error = line.error.as_deref(),
        refused_by = line.refused_by.as_deref(),
        would_be_refused_by = line.would_be_refused_by.as_deref(),
        limit = line.limit.as_ref().map(|limit| limit.as_str()),
        duration_ms = line.duration_us as f64 / 1e3,
        endpoint = line.endpoint,
        tenant = line.tenant,
        issuer = line.issuer,
        subject = line.subject,
        client = line.client.as_deref(),
        trace_id = line.trace_id.as_deref(),
        "{}",
        line.message
    );
}
