//! The names that Percolate has for what is measured, for whoever has dashboards with them: `telemetry.names = "percolate"`.
//!
//! They stand in for others: how long tools take (in milliseconds), which share of their calls fails, and which share of look-ups finds
//! something in a cache. What Percolate has no name for keeps its own.

use crate::names::{self, Instrument};
use crate::reading::{Reading, Sample, Value};

impl Reading {
    /// The same, with Percolate's names where there are any.
    pub fn in_names_of_percolate(self) -> Reading {
        let mut renamed = Reading::default();
        let mut failures: Vec<(String, [u64; 2])> = Vec::new();
        let mut look_ups: Vec<(String, [u64; 2])> = Vec::new();
        for (instrument, sample) in self.samples {
            let is_tool = label(&sample, names::METHOD) == "tools/call";
            match sample.value {
                Value::Histogram { counts, sum } if instrument == names::OPERATION && is_tool => {
                    let [tool, server, outcome] =
                        [names::TOOL, names::SERVER, names::OUTCOME].map(|name| label(&sample, name));
                    let of = [
                        (names::TOOL_OF_PERCOLATE, tool),
                        (names::SERVER, server),
                        (names::OUTCOME, outcome),
                    ];
                    let value = Value::Histogram { counts, sum: sum * 1000.0 };
                    renamed.add(names::TOOL_DURATION_MS, &of, value);
                    let all: u64 = counts.iter().sum();
                    match outcome {
                        // Nobody knows how they would have ended.
                        "cancelled" => {}
                        "error" | "tool_error" => add(&mut failures, tool, [all, all]),
                        _ => add(&mut failures, tool, [0, all]),
                    }
                }
                Value::Whole(count) if instrument == names::CACHE_HITS => {
                    add(&mut look_ups, label(&sample, names::CACHE), [count, count])
                }
                Value::Whole(count) if instrument == names::CACHE_MISSES => {
                    add(&mut look_ups, label(&sample, names::CACHE), [0, count])
                }
                _ => renamed.samples.push((instrument, sample)),
            }
        }
        renamed.add_rates(names::TOOL_ERROR_RATE, names::TOOL_OF_PERCOLATE, &failures);
        renamed.add_rates(names::CACHE_HIT_RATE, names::CACHE, &look_ups);
        renamed
    }

    /// Which share of all is some; nothing where there is nothing.
    fn add_rates(
        &mut self,
        instrument: &'static Instrument,
        name: &'static str,
        rates: &[(String, [u64; 2])],
    ) {
        for (label, [some, all]) in rates.iter().filter(|(_, [_, all])| *all > 0) {
            self.add(instrument, &[(name, label)], Value::Number(*some as f64 / *all as f64));
        }
    }
}

fn label<'a>(sample: &'a Sample, wanted: &str) -> &'a str {
    sample.labels.iter().find(|(name, _)| *name == wanted).map_or("", |(_, value)| value)
}

fn add(rates: &mut Vec<(String, [u64; 2])>, of: &str, [some, all]: [u64; 2]) {
    match rates.iter_mut().find(|(known, _)| known == of) {
        Some((_, sums)) => *sums = [sums[0] + some, sums[1] + all],
        None => rates.push((of.to_owned(), [some, all])),
    }
}

#[cfg(test)]
mod tests {
    use crate::histogram::BOUNDS;
    use crate::text::Exposition;

    use super::*;

    #[test]
    fn three_names_stand_in_for_others() {
        let mut reading = Reading::default();
        let mut call = |method: &str, tool: &str, outcome: &str, count: u64| {
            let mut counts = [0; BOUNDS.len() + 1];
            counts[1] = count;
            let labels = [
                (names::METHOD, method),
                (names::TOOL, tool),
                (names::SERVER, "demo"),
                (names::OUTCOME, outcome),
            ];
            reading.add(names::OPERATION, &labels, Value::Histogram { counts, sum: 0.015 * count as f64 });
        };
        call("tools/call", "demo_add", "ok", 6);
        call("tools/call", "demo_add", "error", 1);
        call("tools/call", "demo_add", "tool_error", 1);
        call("tools/call", "demo_add", "cancelled", 5);
        call("tools/call", "demo_echo", "cancelled", 1);
        call("tools/list", "", "ok", 2);
        for (cache, hits, misses) in [("tool_lists", 9, 1), ("documents", 0, 0)] {
            reading.add(names::CACHE_HITS, &[(names::CACHE, cache)], Value::Whole(hits));
            reading.add(names::CACHE_MISSES, &[(names::CACHE, cache)], Value::Whole(misses));
        }
        let text = reading.in_names_of_percolate().text(Exposition::Prometheus);
        let has =
            |line: &str| assert!(text.lines().any(|other| other == line), "{line} is missing in\n{text}");
        has(
            r#"mcp_tool_duration_ms_bucket{mcp_tool_name="demo_add",tidegate_server="demo",tidegate_outcome="ok",le="10.0"} 0"#,
        );
        has(
            r#"mcp_tool_duration_ms_bucket{mcp_tool_name="demo_add",tidegate_server="demo",tidegate_outcome="ok",le="20.0"} 6"#,
        );
        has(
            r#"mcp_tool_duration_ms_sum{mcp_tool_name="demo_add",tidegate_server="demo",tidegate_outcome="ok"} 90.0"#,
        );
        has(r#"mcp_tool_error_rate{mcp_tool_name="demo_add"} 0.25"#);
        has(r#"mcp_resource_cache_hit_rate{tidegate_cache="tool_lists"} 0.9"#);
        has(
            r#"mcp_server_operation_duration_seconds_count{mcp_method_name="tools/list",tidegate_server="demo",tidegate_outcome="ok"} 2"#,
        );
        for gone in [
            "gen_ai_tool_name",
            "tidegate_cache_hits",
            "tidegate_cache_misses",
            "error_rate{mcp_tool_name=\"demo_echo",
            "documents",
        ] {
            assert!(!text.contains(gone), "{gone} is in\n{text}");
        }
    }
}
