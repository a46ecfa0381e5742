//! [`Alerts`]: what somebody should look at, found out from what is measured. A state machine: it is told what was seen, and says what has
//! changed.

use std::time::Duration;

/// What somebody should look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Alert {
    /// Too many calls fail, through no fault of their callers.
    SuccessRate,
    /// The circuit breaker of a server is open.
    Circuit,
    /// Calls take much longer than a while ago.
    Latency,
    /// There is little room left where the gateway writes.
    Disk,
    /// The gateway holds nearly as much as it may.
    Buffer,
}

impl Alert {
    /// All of them.
    pub const ALL: [Alert; 5] =
        [Alert::SuccessRate, Alert::Circuit, Alert::Latency, Alert::Disk, Alert::Buffer];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Alert::SuccessRate => "success_rate",
            Alert::Circuit => "circuit",
            Alert::Latency => "latency",
            Alert::Disk => "disk",
            Alert::Buffer => "buffer",
        }
    }
}

/// What was seen.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// How many of the recent calls went well, and how many badly.
    pub calls: (u64, u64),
    /// How long calls take now and how long they took before, where there were enough of both.
    pub latency: Option<(Duration, Duration)>,
    /// The servers whose circuit breakers are open.
    pub open_circuits: Vec<String>,
    /// Where there is least room: the place, how many bytes are free there, and how many there are.
    pub disk: Option<(String, u64, u64)>,
    /// How many bytes the gateway holds, and how many it may.
    pub buffered: (u64, u64),
}

/// An alert has begun, or is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertChange {
    /// Which one.
    pub alert: Alert,
    /// Whether it has begun.
    pub is_raised: bool,
    /// What it is about, as a sentence.
    pub message: String,
}

/// When somebody should look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AlertThresholds {
    /// Below which share of good calls, in per cent.
    pub success_rate: f64,
    /// From how many calls on their success says something.
    pub min_calls: u64,
    /// For how long calls are remembered.
    pub window: Duration,
    /// How many times as long as before calls take.
    pub slower: f64,
    /// Quicker calls are quick, whatever they were before.
    pub quick: Duration,
    /// Which part of the disk is left, in per cent, and
    pub disk_percent: f64,
    /// how many bytes: less than both.
    pub disk_free: u64,
    /// Above which share of the buffer, in per cent.
    pub buffer_percent: f64,
}

impl Default for AlertThresholds {
    fn default() -> AlertThresholds {
        AlertThresholds {
            success_rate: 95.0,
            min_calls: 20,
            window: Duration::from_secs(300),
            slower: 3.0,
            quick: Duration::from_millis(100),
            disk_percent: 5.0,
            disk_free: 100 << 20,
            buffer_percent: 80.0,
        }
    }
}

/// What somebody should look at.
#[derive(Debug, Default)]
pub struct Alerts {
    /// What they are about, by alert.
    raised: [Option<String>; Alert::ALL.len()],
    thresholds: AlertThresholds,
}

impl Alerts {
    /// Nothing is known yet.
    pub fn new(thresholds: AlertThresholds) -> Alerts {
        Alerts { raised: Default::default(), thresholds }
    }

    /// What is so at the moment.
    pub fn raised(&self) -> impl Iterator<Item = (Alert, &str)> {
        Alert::ALL.into_iter().zip(&self.raised).filter_map(|(alert, what)| Some((alert, what.as_deref()?)))
    }

    /// Looks at what was seen, and says what has changed.
    pub fn look(&mut self, seen: &Seen) -> Vec<AlertChange> {
        let mut changes = Vec::new();
        for (alert, raised) in Alert::ALL.into_iter().zip(&mut self.raised) {
            let found = find(alert, seen, &self.thresholds, raised.is_some());
            match (raised.is_some(), found) {
                (false, Some(message)) => {
                    *raised = Some(message.clone());
                    changes.push(AlertChange { alert, is_raised: true, message });
                }
                (true, Some(message)) => *raised = Some(message),
                (true, None) => {
                    let message = raised.take().unwrap_or_default();
                    changes.push(AlertChange { alert, is_raised: false, message });
                }
                (false, None) => {}
            }
        }
        changes
    }
}

/// What an alert is about, if it is so. One that is raised already ends a little later than it begins, so that it does not come and go.
fn find(alert: Alert, seen: &Seen, when: &AlertThresholds, is_raised: bool) -> Option<String> {
    let bound = |begins: f64, ends: f64| if is_raised { ends } else { begins };
    match alert {
        Alert::SuccessRate => {
            let (well, badly) = seen.calls;
            let rate = well as f64 * 100.0 / (well + badly).max(1) as f64;
            let wanted = when.success_rate;
            let is_low = well + badly >= when.min_calls.max(1)
                && rate < bound(wanted, wanted + 0.4 * (100.0 - wanted));
            is_low.then(|| {
                format!("{rate:.1} % of {} calls of the last {} succeeded", well + badly, period(when.window))
            })
        }
        Alert::Circuit => {
            let servers = &seen.open_circuits;
            let are =
                if servers.len() == 1 { "circuit breaker is open" } else { "circuit breakers are open" };
            (!servers.is_empty()).then(|| format!("{} {are}: {}", servers.len(), servers.join(", ")))
        }
        Alert::Latency => {
            let (now, before) = seen.latency?;
            let factor = now.as_secs_f64() / before.as_secs_f64().max(1e-6);
            let is_slow = now > when.quick && factor > bound(when.slower, 1.0 + (when.slower - 1.0) / 2.0);
            let ms = |time: Duration| time.as_millis();
            is_slow.then(|| {
                format!(
                    "calls take {} ms on average, {factor:.1} times as long as before ({} ms)",
                    ms(now),
                    ms(before)
                )
            })
        }
        Alert::Disk => {
            let (place, free, all) = seen.disk.as_ref()?;
            let times = if is_raised { 2 } else { 1 };
            let share = *all as f64 * when.disk_percent / 100.0;
            let is_low =
                *free < when.disk_free.saturating_mul(times) && (*free as f64) < share * times as f64;
            is_low.then(|| format!("{} MiB are left at {place}", free >> 20))
        }
        Alert::Buffer => {
            let (held, most) = seen.buffered;
            let share = held as f64 * 100.0 / most.max(1) as f64;
            let is_full = share > bound(when.buffer_percent, when.buffer_percent * 7.0 / 8.0);
            is_full.then(|| format!("{share:.0} % of max_buffered are in use"))
        }
    }
}

/// A length of time in words.
fn period(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds > 60 && seconds % 60 == 0 => format!("{} minutes", seconds / 60),
        _ => format!("{} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(alerts: &mut Alerts, seen: &Seen) -> Vec<(Alert, bool)> {
        alerts.look(seen).into_iter().map(|change| (change.alert, change.is_raised)).collect()
    }

    #[test]
    fn each_begins_once_and_ends_once() {
        let ms = Duration::from_millis;
        let fine = || Seen { calls: (100, 0), buffered: (0, 100), ..Seen::default() };
        let disk = |free: u64| Some(("/var".to_owned(), free << 20, 10_000 << 20));
        for (alert, bad, between, good) in [
            (
                Alert::SuccessRate,
                Seen { calls: (94, 6), ..fine() },
                Seen { calls: (96, 4), ..fine() },
                Seen { calls: (97, 3), ..fine() },
            ),
            (
                Alert::Circuit,
                Seen { open_circuits: vec!["a".to_owned()], ..fine() },
                Seen { open_circuits: vec!["b".to_owned()], ..fine() },
                fine(),
            ),
            (
                Alert::Latency,
                Seen { latency: Some((ms(310), ms(100))), ..fine() },
                Seen { latency: Some((ms(210), ms(100))), ..fine() },
                Seen { latency: Some((ms(190), ms(100))), ..fine() },
            ),
            (
                Alert::Disk,
                Seen { disk: disk(99), ..fine() },
                Seen { disk: disk(150), ..fine() },
                Seen { disk: disk(200), ..fine() },
            ),
            (
                Alert::Buffer,
                Seen { buffered: (81, 100), ..fine() },
                Seen { buffered: (75, 100), ..fine() },
                Seen { buffered: (70, 100), ..fine() },
            ),
        ] {
            let mut alerts = Alerts::default();
            for (seen, expected) in [
                (&fine(), vec![]),
                (&between, if alert == Alert::Circuit { vec![(alert, true)] } else { vec![] }),
                (&fine(), if alert == Alert::Circuit { vec![(alert, false)] } else { vec![] }),
                (&bad, vec![(alert, true)]),
                (&bad, vec![]),
                (&between, vec![]),
            ] {
                assert_eq!(changes(&mut alerts, seen), expected, "{alert:?} {seen:?}");
            }
            assert_eq!(alerts.raised().map(|(alert, _)| alert).collect::<Vec<_>>(), [alert]);
            assert_eq!(changes(&mut alerts, &good), [(alert, false)]);
            assert_eq!(alerts.raised().count(), 0);
        }
    }

    #[test]
    fn thresholds_are_those_of_the_configuration() {
        let strict = AlertThresholds {
            success_rate: 100.0,
            min_calls: 1,
            window: Duration::from_secs(10),
            slower: 1.5,
            quick: Duration::ZERO,
            disk_percent: 100.0,
            disk_free: u64::MAX,
            buffer_percent: 0.0,
        };
        let ms = Duration::from_millis;
        let seen = Seen {
            calls: (999, 1),
            latency: Some((ms(16), ms(10))),
            disk: Some(("/var".to_owned(), 99, 100)),
            buffered: (1, 100),
            ..Seen::default()
        };
        let (mut strict, mut usual) = (Alerts::new(strict), Alerts::default());
        use Alert::{Buffer, Disk, Latency, SuccessRate};
        let raised = [(SuccessRate, true), (Latency, true), (Disk, true), (Buffer, true)];
        assert_eq!((changes(&mut strict, &seen), changes(&mut usual, &seen)), (raised.to_vec(), vec![]));
        let said: Vec<&str> = strict.raised().map(|(_, said)| said).collect();
        assert_eq!(said[0], "99.9 % of 1000 calls of the last 10 s succeeded");
        // Without any calls there is nothing to say about them.
        assert!(changes(&mut strict, &Seen::default()).contains(&(SuccessRate, false)));
    }

    /// What is seen may jump with the clock: times that nobody can have taken, and none at all.
    #[test]
    fn a_clock_that_jumps() {
        let mut alerts = Alerts::default();
        let jumped = |now, before| Seen { latency: Some((now, before)), ..Seen::default() };
        let (day, none) = (Duration::from_secs(86_400), Duration::ZERO);
        assert_eq!(changes(&mut alerts, &jumped(day, none)), [(Alert::Latency, true)]);
        assert_eq!(changes(&mut alerts, &jumped(Duration::MAX, Duration::MAX)), [(Alert::Latency, false)]);
        assert_eq!(changes(&mut alerts, &jumped(none, day)), []);
        assert_eq!(changes(&mut alerts, &jumped(none, none)), []);
    }

    #[test]
    fn a_few_calls_and_quick_ones_say_nothing() {
        let mut alerts = Alerts::default();
        let few = Seen { calls: (0, 19), ..Seen::default() };
        let quick =
            Seen { latency: Some((Duration::from_millis(90), Duration::from_millis(1))), ..Seen::default() };
        assert_eq!((changes(&mut alerts, &few), changes(&mut alerts, &quick)), (vec![], vec![]));
    }
}
