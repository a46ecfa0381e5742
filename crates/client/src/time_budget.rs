//! [`TimeBudget`]: how long a call may take.

use std::time::{Duration, Instant};

use tidegate_protocol::{Error, Method, Symbol};
use tidegate_service::{Call, CallerId};

use crate::settings::ClientSettings;
use crate::ticket::{Event, Ticket};

/// How long a call may take: so long, longer while progress comes if that was asked for, and never longer than that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeBudget {
    /// When it ends without any sign of life.
    until: Instant,
    /// How long one stretch is.
    stretch: Duration,
    /// Whether progress starts a new stretch.
    extend: bool,
    /// When it ends in any case.
    at_most: Instant,
    begun: Instant,
    /// Which setting says how long one stretch is, and which one when it ends in any case.
    setting_names: [Option<&'static str>; 2],
}

impl TimeBudget {
    pub(crate) fn new(now: Instant, stretch: Duration, extend: bool, at_most: Option<Instant>) -> TimeBudget {
        let far = now + Duration::from_secs(365 * 24 * 3600);
        let at_most = at_most.unwrap_or(far);
        // The shorter of both is also what the error says.
        let stretch = stretch.min(at_most.saturating_duration_since(now));
        TimeBudget { until: now + stretch, stretch, extend, at_most, begun: now, setting_names: [None; 2] }
    }

    /// What the settings grant this call. `own` is the client itself among the callers.
    pub(crate) fn of(settings: &ClientSettings, own: CallerId, call: &Call) -> TimeBudget {
        let now = Instant::now();
        let special = match call.method {
            Method::ToolsCall if !settings.tool_timeouts.is_empty() => {
                call.params.str("name").and_then(|name| settings.tool_timeouts.get(&*name).copied())
            }
            _ => None,
        };
        let mut setting_names = [Some(if special.is_some() { TOOL } else { "timeout" }), Some("max_timeout")];
        let mut stretch = special.unwrap_or(settings.timeout);
        let mut at_most = now + settings.max_timeout;
        if let Some(deadline) = call.context.deadline {
            // The client's own user knows how long to wait; anybody else is heard as far as the settings go.
            if call.context.caller == Some(own) {
                stretch = deadline.saturating_duration_since(now);
                at_most = deadline;
                setting_names = [None; 2];
            }
            if deadline < at_most {
                (at_most, setting_names[1]) = (deadline, None);
            }
        }
        if stretch > at_most.saturating_duration_since(now) {
            setting_names[0] = setting_names[1];
        }
        TimeBudget {
            setting_names,
            ..TimeBudget::new(now, stretch, settings.extend_on_progress, Some(at_most))
        }
    }

    /// The same budget, which this setting grants.
    pub(crate) fn granted_by(self, setting: &'static str) -> TimeBudget {
        TimeBudget { setting_names: [Some(setting); 2], ..self }
    }

    /// When it ends in any case.
    pub(crate) fn at_most(&self) -> Instant {
        self.at_most
    }

    /// The same budget, beginning now.
    pub(crate) fn restarted(&self, now: Instant) -> TimeBudget {
        TimeBudget { until: now.checked_add(self.stretch).unwrap_or(self.at_most).min(self.at_most), ..*self }
    }

    /// When the call ends if nothing else happens.
    pub(crate) fn ends(&self, alive: Option<Instant>) -> Instant {
        match alive {
            Some(alive) if self.extend => {
                let later = alive.checked_add(self.stretch).unwrap_or(self.at_most);
                self.until.max(later).min(self.at_most)
            }
            _ => self.until,
        }
    }

    /// Waits for the next event of a request, within the budget.
    pub(crate) async fn next(&self, ticket: &Ticket) -> Result<Event, Error> {
        self.within(ticket, ticket.next()).await
    }

    /// Waits for something that a request leads to, within the budget.
    pub(crate) async fn within<T>(&self, ticket: &Ticket, work: impl Future<Output = T>) -> Result<T, Error> {
        let mut work = std::pin::pin!(work);
        let mut end = self.ends(ticket.alive());
        loop {
            match tokio::time::timeout_at(end.into(), work.as_mut()).await {
                Ok(done) => return Ok(done),
                Err(_) => {
                    let later = self.ends(ticket.alive());
                    if later <= end {
                        return Err(self.over());
                    }
                    end = later;
                }
            }
        }
    }

    /// The error of a call whose time is over.
    pub(crate) fn over(&self) -> Error {
        let at_last = Instant::now() >= self.at_most;
        let time = if at_last { self.at_most.saturating_duration_since(self.begun) } else { self.stretch };
        let time = match time.as_secs_f32() {
            secs if secs >= 0.1 => format!("{secs:.1} s"),
            secs => format!("{:.0} ms", secs * 1000.0),
        };
        let what = format!("The server did not answer within {time}, and the call was cancelled");
        let error = Error::new(Symbol::Timeout, what);
        match self.setting_names[usize::from(at_last)] {
            Some(setting) => error.limited_by(setting),
            None => error,
        }
    }
}

/// The setting of a single tool.
const TOOL: &str = "tools.timeout";

/// The error of a call (of a tool), with the setting to change if one has brought it about and it is known where that is
/// written.
pub(crate) fn with_setting(error: Error, settings: &ClientSettings, tool: Option<&str>) -> Error {
    let (Some(limit), Some(place)) = (error.limit(), &settings.written_at) else { return error };
    let setting = match tool {
        Some(tool) if limit == TOOL => format!("{place}.tools.{tool}.timeout"),
        _ => format!("{place}.{limit}"),
    };
    let what = format!("{}. To give it more time, raise {setting} in the configuration", error.message());
    error.with_message(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_extends_when_asked_and_never_beyond_the_end() {
        let now = Instant::now();
        let s = Duration::from_secs;
        let fixed = TimeBudget::new(now, s(10), false, None);
        assert_eq!(fixed.ends(Some(now + s(9))), now + s(10));
        let extended = TimeBudget::new(now, s(10), true, Some(now + s(15)));
        assert_eq!(extended.ends(None), now + s(10));
        assert_eq!(extended.ends(Some(now + s(3))), now + s(13));
        assert_eq!(extended.ends(Some(now + s(9))), now + s(15));
        let short = TimeBudget::new(now, s(10), true, Some(now + s(2)));
        assert_eq!(short.ends(None), now + s(2));
        assert!(short.over().message().contains("within 2.0 s"), "{}", short.over());
        assert!(TimeBudget::new(now, Duration::MAX, false, None).ends(None) > now);
    }
}
