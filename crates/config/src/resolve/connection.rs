//! How a server is spoken to.

use std::time::Duration;

use tidegate_client::{ClientSettings, EraChoice, Instances};
use tidegate_service::layers::{BreakerMode, BreakerSettings, RetryPolicy};

use super::Resolver;
use crate::settings::IDLE;
use crate::written::{self, Breaker, Era, Retry, Server, Switch, Time};

/// The word that stands for no limit where a time is expected.
const NEVER: &str = "never";

impl Resolver<'_> {
    /// Changes the usual options to what the server says.
    pub(super) fn connection(&mut self, name: &str, server: &Server, options: &mut ClientSettings) {
        let at = |field: &'static str| ["servers", name, field];
        if let Some(era) = server.era {
            options.era = match era {
                Era::Auto => EraChoice::Auto,
                Era::Legacy => EraChoice::Legacy,
                Era::Modern => EraChoice::Modern,
            };
        }
        for (field, written, meant) in [
            ("timeout", &server.timeout, &mut options.timeout),
            ("start_timeout", &server.start_timeout, &mut options.init_timeout),
            ("connect_timeout", &server.connect_timeout, &mut options.connect_timeout),
            ("session_idle", &server.session_idle, &mut options.sessions.idle),
            ("park_time", &server.park_time, &mut options.park.time),
        ] {
            *meant = self.some_time(&at(field), written.as_ref(), *meant);
        }
        // A server that is known to start quickly is not asked for its era for longer than that.
        options.probe_timeout = options.probe_timeout.min(options.init_timeout);
        options.max_timeout = match &server.max_timeout {
            None => options.max_timeout.max(options.timeout),
            written => self.some_time(&at("max_timeout"), written.as_ref(), options.max_timeout),
        };
        if options.max_timeout < options.timeout && !self.absent.covers(&at("timeout")) {
            self.wrong(&at("max_timeout"), "must not be shorter than timeout");
        }
        if let Some(instances) = server.instances {
            options.sessions.instances = match instances {
                written::Instances::PerUser => Instances::PerUser,
                written::Instances::PerClient => Instances::PerClient,
                written::Instances::One => Instances::One,
            };
        }
        if let Some(capabilities) = &server.capabilities {
            let declared = capabilities.iter().flat_map(|capability| capability.means());
            options.sessions.capabilities = declared.copied().collect();
        }
        if let Some(idle) = &server.idle {
            // Whoever says when a process is stopped does not want it kept for anybody.
            options.sessions.while_connected = idle.0.trim() == NEVER;
            if server.session_idle.is_none() && idle.0.trim() != NEVER {
                options.sessions.idle = self.some_time(&at("idle"), Some(idle), options.sessions.idle);
            }
        }
        for (field, written, meant) in [
            ("max_sessions", server.max_sessions, &mut options.sessions.max),
            ("max_in_flight", server.max_in_flight, &mut options.max_in_flight),
        ] {
            match written {
                Some(0) => self.wrong(&at(field), "must be 1 or more"),
                Some(number) => *meant = number,
                None => {}
            }
        }
        options.limits.max_bytes =
            self.size(&at("max_message"), server.max_message.as_ref(), options.limits.max_bytes);
        options.extend_on_progress = server.extend_on_progress.unwrap_or(options.extend_on_progress);
        options.trust_annotations = server.trust_annotations.unwrap_or(options.trust_annotations);
        match &server.breaker {
            None => {}
            Some(Switch::Off) => options.breaker = None,
            Some(Switch::On) => options.breaker = Some(BreakerSettings::default()),
            Some(Switch::Set(breaker)) => options.breaker = Some(self.breaker(name, breaker)),
        }
        match &server.retry {
            None => {}
            Some(Switch::Off) => options.retry = RetryPolicy::never(),
            Some(Switch::On) => options.retry = RetryPolicy::default(),
            Some(Switch::Set(retry)) => options.retry = self.retry(name, retry),
        }
    }

    /// After which time without calls a process is stopped.
    pub(super) fn idle(&mut self, name: &str, idle: Option<&Time>) -> Option<Duration> {
        match idle {
            Some(time) if time.0.trim() == NEVER => None,
            other => Some(self.some_time(&["servers", name, "idle"], other, IDLE)),
        }
    }

    fn breaker(&mut self, name: &str, breaker: &Breaker) -> BreakerSettings {
        let at = |field: &'static str| ["servers", name, "breaker", field];
        let usual = BreakerSettings::default();
        let by_rate = breaker.window.is_some() || breaker.percent.is_some();
        if breaker.failures.is_some() && by_rate {
            self.wrong(
                &at("failures"),
                "counts consecutive failures, so it cannot be combined with window and percent",
            );
        }
        if breaker.percent.is_some_and(|percent| percent == 0 || percent > 100) {
            self.wrong(&at("percent"), "must be from 1 to 100");
        }
        for (field, number) in [
            ("failures", breaker.failures),
            ("window", breaker.window),
            ("trials", breaker.trials),
            ("successes", breaker.successes),
        ] {
            if number == Some(0) {
                self.wrong(&at(field), "must be 1 or more");
            }
        }
        BreakerSettings {
            mode: match (by_rate, breaker.failures) {
                (true, _) => BreakerMode::Rate {
                    window: breaker.window.unwrap_or(10),
                    percent: breaker.percent.unwrap_or(50),
                },
                (false, Some(failures)) => BreakerMode::Consecutive(failures),
                (false, None) => usual.mode,
            },
            open_for: self.some_time(&at("open_for"), breaker.open_for.as_ref(), usual.open_for),
            half_open_max: breaker.trials.unwrap_or(usual.half_open_max),
            success_threshold: breaker.successes.unwrap_or(usual.success_threshold),
        }
    }

    fn retry(&mut self, name: &str, retry: &Retry) -> RetryPolicy {
        let at = |field: &'static str| ["servers", name, "retry", field];
        let usual = RetryPolicy::default();
        if retry.multiplier.is_some_and(|multiplier| !(1.0..=1000.0).contains(&multiplier)) {
            self.wrong(&at("multiplier"), "must be 1 or more");
        }
        if retry.jitter.is_some_and(|jitter| !(0.0..=1.0).contains(&jitter)) {
            self.wrong(&at("jitter"), "must be from 0 to 1");
        }
        RetryPolicy {
            max_retries: retry.attempts.unwrap_or(usual.max_retries),
            base: self.time(&at("base"), retry.base.as_ref(), usual.base),
            multiplier: retry.multiplier.unwrap_or(usual.multiplier),
            max: self.time(&at("max"), retry.max.as_ref(), usual.max),
            jitter: retry.jitter.unwrap_or(usual.jitter),
            overall: match &retry.overall {
                None => usual.overall,
                Some(time) if time.0.trim() == NEVER => None,
                Some(_) => Some(self.some_time(&at("overall"), retry.overall.as_ref(), Duration::MAX)),
            },
            wait_for_circuit: usual.wait_for_circuit,
        }
    }

    /// A time that is longer than nothing.
    pub(super) fn some_time(
        &mut self,
        at: crate::source_map::Path<'_>,
        time: Option<&Time>,
        usual: Duration,
    ) -> Duration {
        let meant = self.time(at, time, usual);
        if meant.is_zero() {
            self.wrong(at, "must be longer than 0");
            return usual;
        }
        meant
    }
}
