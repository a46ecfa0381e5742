//! [`Time`]: a length of time in a configuration.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A length of time as it is written, such as `"30s"`. What it means is found out by
/// [`Reading::time`](crate::Reading::time).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Time(pub String);

/// Nobody waits longer, and clocks that are asked to add far more than this give up.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

impl Time {
    /// What it means. The error is a sentence.
    pub fn duration(&self) -> Result<Duration, String> {
        match humantime::parse_duration(self.0.trim()) {
            Ok(time) if time > LONGEST => Err("must not be longer than a year".to_owned()),
            Ok(time) => Ok(time),
            Err(_) => Err("must be a time with a unit, such as \"500ms\", \"30s\" or \"5m\"".to_owned()),
        }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Time;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time with a unit in quotes, such as \"500ms\", \"30s\" or \"5m\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
                Ok(Time(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let time = |text: &str| Time(text.to_owned()).duration();
        assert_eq!(time("1m 30s"), Ok(Duration::from_secs(90)));
        for text in ["", "30", "soon", "-5s", "5 parsecs", "2y", "99999999999999y"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
