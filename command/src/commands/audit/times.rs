//! Times on the command line: a moment, a day, or how long ago.

use std::time::{SystemTime, UNIX_EPOCH};

use tidegate_builtin::Time;
use tidegate_service::{epoch_ms, rfc3339_ms};

/// A time as records have it.
pub(super) fn moment(text: &str) -> Result<String, String> {
    let text = text.trim();
    if let Some(ms) = of_date(text) {
        return Ok(rfc3339_ms(ms));
    }
    let ago = Time(text.to_owned()).duration().map_err(|_| {
        "must be a time in UTC such as 2026-07-01T12:00:00Z, a day such as 2026-07-01, or how long ago, such as 1h".to_owned()
    })?;
    let ago = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX);
    Ok(rfc3339_ms(epoch_ms().saturating_sub(ago)))
}

fn of_date(text: &str) -> Option<u64> {
    let ms = |time: SystemTime| {
        time.duration_since(UNIX_EPOCH).ok().and_then(|time| u64::try_from(time.as_millis()).ok())
    };
    let whole = humantime::parse_rfc3339_weak(text).ok();
    let time = whole.or_else(|| humantime::parse_rfc3339(&format!("{text}T00:00:00Z")).ok())?;
    ms(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_time() {
        for (text, expected) in [
            ("2026-07-28T12:00:00Z", "2026-07-28T12:00:00.000Z"),
            ("2026-07-28T12:00:00.5Z", "2026-07-28T12:00:00.500Z"),
            ("2026-07-28 12:00:00", "2026-07-28T12:00:00.000Z"),
            ("2026-07-28", "2026-07-28T00:00:00.000Z"),
        ] {
            assert_eq!(moment(text).as_deref(), Ok(expected));
        }
        assert!(moment("1h").unwrap() < rfc3339_ms(epoch_ms()));
        for bad in ["", "yesterday", "2026-13-01", "-1h"] {
            assert!(moment(bad).is_err(), "{bad}");
        }
    }
}
