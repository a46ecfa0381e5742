//! [`Queues`]: how many calls run and wait, for whoever runs the gateway.

use std::fmt::Write;

use serde_json::{Value, json};
use tidegate_gateway::{Gateway, QueueStatus};
use tidegate_service::fair_queue::Depth;

/// How many queues are shown.
const MOST_SHOWN: usize = 5;

/// How many calls run and wait.
#[derive(Debug, Default)]
pub(super) struct Queues {
    running: usize,
    waiting: usize,
    /// Where calls are at a limit, the busiest first. They name tenants and users.
    busiest: Vec<QueueStatus>,
}

impl Queues {
    /// Of a gateway, now.
    pub(super) fn of(gateway: &Gateway) -> Queues {
        Queues::new(gateway.depth(), gateway.queues())
    }

    fn new(all: Depth, mut busiest: Vec<QueueStatus>) -> Queues {
        // Whoever waits at a limit, and a call waits at one only, has a place in the gateway.
        let at_limits: usize = busiest.iter().map(|queue| queue.waiting).sum();
        busiest.truncate(MOST_SHOWN);
        Queues { running: all.running.saturating_sub(at_limits), waiting: all.waiting + at_limits, busiest }
    }

    /// For the log; `None` if there is nothing to tell.
    pub(super) fn report(&self) -> Option<Value> {
        let Queues { running, waiting, busiest } = self;
        if *running == 0 && *waiting == 0 {
            return None;
        }
        let queue = |queue: &QueueStatus| {
            json!({
                "scope": queue.scope.as_str(), "key": queue.key, "running": queue.running, "waiting": queue.waiting,
                "max_running": queue.max_running, "max_waiting": queue.max_waiting,
            })
        };
        let busiest: Vec<_> = busiest.iter().map(queue).collect();
        Some(json!({"running": running, "waiting": waiting, "busiest": busiest}))
    }

    /// For a page: a sentence, and the queues in which calls wait. `escape` makes text of others part of one.
    pub(super) fn html(&self, escape: impl Fn(&str) -> String) -> String {
        let Queues { running, waiting, busiest } = self;
        let calls = if *running == 1 { "call" } else { "calls" };
        // Writing to a string does not fail.
        let mut html = format!("<p>{running} {calls} running, {waiting} waiting</p>\n");
        let mut rows = busiest.iter().filter(|queue| queue.waiting > 0).peekable();
        if rows.peek().is_none() {
            return html;
        }
        html += "<table>\n<thead><tr><th>Limit</th><th>Running</th><th>Waiting</th></tr></thead>\n<tbody>\n";
        for queue in rows {
            let (scope, key) = (queue.scope.as_str(), escape(&queue.key));
            let QueueStatus { running, max_running, waiting, max_waiting, .. } = queue;
            let _ = writeln!(
                html,
                "<tr><td>{scope} {key}</td><td>{running} of {max_running}</td><td>{waiting} of {max_waiting}</td></tr>"
            );
        }
        html + "</tbody>\n</table>\n"
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tidegate_gateway::LimitScope;

    use super::*;

    /// Three calls run and six wait: five of them at two limits.
    pub(in super::super) fn busy() -> Queues {
        let all =
            Depth { running: 8, waiting: 1, waiting_by_priority: [0, 1, 0], max_running: 8, max_waiting: 8 };
        let queue = |scope, key: &str, running, waiting| QueueStatus {
            scope,
            key: key.to_owned(),
            running,
            waiting,
            waiting_by_priority: [0, waiting, 0],
            max_running: running,
            max_waiting: 100,
        };
        let limits = vec![
            queue(LimitScope::Tenant, "<reef>", 2, 4),
            queue(LimitScope::Tool, "github_search", 1, 1),
            queue(LimitScope::User, "ann", 1, 0),
        ];
        Queues::new(all, limits)
    }

    #[test]
    fn what_runs_and_what_waits() {
        let report = busy().report().unwrap();
        assert_eq!((&report["running"], &report["waiting"]), (&json!(3), &json!(6)), "{report}");
        assert_eq!(
            report["busiest"][0],
            json!({"scope": "tenant", "key": "<reef>", "running": 2, "waiting": 4, "max_running": 2, "max_waiting": 100})
        );
        assert_eq!(report["busiest"].as_array().unwrap().len(), 3);
        assert_eq!(Queues::default().report(), None);
    }

    #[test]
    fn on_a_page() {
        let html = busy().html(|text| text.replace('<', "&lt;"));
        for part in [
            "<p>3 calls running, 6 waiting</p>",
            "<td>tenant &lt;reef></td><td>2 of 2</td><td>4 of 100</td>",
            "<td>tool github_search</td><td>1 of 1</td><td>1 of 100</td>",
        ] {
            assert!(html.contains(part), "{part} is missing in {html}");
        }
        assert!(!html.contains("ann"), "nobody waits there: {html}");
        assert_eq!(Queues::default().html(str::to_owned), "<p>0 calls running, 0 waiting</p>\n");
    }
}
