//! A [`Reading`] as text: Prometheus' own form, and OpenMetrics.

use std::fmt::Write;

use crate::names::Kind;
use crate::reading::{Reading, Sample, Value};

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposition {
    /// Prometheus' text, version 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Exposition {
    /// What whoever sent this `Accept` header gets: OpenMetrics if they name it.
    pub fn accepted(accept: &str) -> Exposition {
        let is_named = accept.split(',').any(|one| one.trim().starts_with("application/openmetrics-text"));
        if is_named { Exposition::OpenMetrics } else { Exposition::Prometheus }
    }

    /// Its media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Exposition::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Exposition::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Reading {
    /// As text.
    pub fn text(&self, form: Exposition) -> String {
        let mut out = String::with_capacity(16 << 10);
        for (instrument, samples) in self.series() {
            let mut name = instrument.prometheus();
            // Prometheus names the series, OpenMetrics what they are of.
            if instrument.kind == Kind::Counter && form == Exposition::Prometheus {
                name.push_str("_total");
            }
            let kind = match instrument.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            // Writing to a string does not fail.
            let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", instrument.help);
            if instrument.kind == Kind::Counter && form == Exposition::OpenMetrics {
                name.push_str("_total");
            }
            let bounds = instrument.bounds();
            samples.into_iter().for_each(|sample| write_sample(&mut out, &name, sample, &bounds));
        }
        if form == Exposition::OpenMetrics {
            out.push_str("# EOF\n");
        }
        out
    }
}

fn write_sample(out: &mut String, name: &str, sample: &Sample, bounds: &[f64]) {
    let labels = &sample.labels;
    // Writing to a string does not fail.
    let _ = match sample.value {
        Value::Whole(value) => line(out, name, "", labels, None).and_then(|()| writeln!(out, "{value}")),
        Value::Number(value) => line(out, name, "", labels, None).and_then(|()| writeln!(out, "{value:?}")),
        Value::Histogram { counts, sum } => {
            let mut all = 0;
            for (at, count) in counts.into_iter().enumerate() {
                all += count;
                let bound = bounds.get(at).map_or("+Inf".to_owned(), |bound| format!("{bound:?}"));
                let _ = line(out, name, "_bucket", labels, Some(&bound));
                let _ = writeln!(out, "{all}");
            }
            let _ = line(out, name, "_sum", labels, None);
            let _ = writeln!(out, "{sum:?}");
            line(out, name, "_count", labels, None).and_then(|()| writeln!(out, "{all}"))
        }
    };
}

/// Writes a line up to its value.
fn line(
    out: &mut String,
    name: &str,
    suffix: &str,
    labels: &[(&'static str, String)],
    bound: Option<&str>,
) -> std::fmt::Result {
    write!(out, "{name}{suffix}")?;
    let bound = bound.map(|bound| ("le", bound));
    let all = labels.iter().map(|(name, value)| (*name, value.as_str())).chain(bound);
    let mut before = '{';
    for (label, value) in all {
        out.push(before);
        before = ',';
        out.extend(label.chars().map(|c| if c == '.' { '_' } else { c }));
        out.push_str("=\"");
        for c in value.chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                // What a terminal obeys is no part of a name.
                c if c.is_control() => out.push('\u{fffd}'),
                c => out.push(c),
            }
        }
        out.push('"');
    }
    if before == ',' {
        out.push('}');
    }
    out.push(' ');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::BOUNDS;
    use crate::names;

    fn reading() -> Reading {
        let mut reading = Reading::default();
        let mut counts = [0; BOUNDS.len() + 1];
        (counts[0], counts[14]) = (3, 1);
        let labels = [(names::METHOD, "tools/call"), (names::TOOL, "a\"b\\c\nd\u{1b}"), (names::SERVER, "")];
        reading.add(names::OPERATION, &labels, Value::Histogram { counts, sum: 400.5 });
        reading.add(names::ERRORS, &[(names::ERROR, "TIMEOUT")], Value::Whole(2));
        reading.whole(names::SESSIONS, 7);
        reading
    }

    #[test]
    fn both_forms() {
        insta::assert_snapshot!("prometheus", reading().text(Exposition::Prometheus));
        insta::assert_snapshot!("openmetrics", reading().text(Exposition::OpenMetrics));
    }

    #[test]
    fn which_form_is_wanted() {
        for (accept, form) in [
            ("", Exposition::Prometheus),
            ("*/*", Exposition::Prometheus),
            ("text/plain;version=0.0.4;q=0.5", Exposition::Prometheus),
            ("application/openmetrics-text;version=1.0.0,text/plain;q=0.5", Exposition::OpenMetrics),
            ("text/plain, application/openmetrics-text; version=1.0.0", Exposition::OpenMetrics),
        ] {
            assert_eq!(Exposition::accepted(accept), form, "{accept}");
        }
    }
}
