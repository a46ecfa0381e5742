//! The wall clock in the two forms that messages need.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
pub fn epoch_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

/// A time as ISO 8601 in UTC, `2026-07-28T12:00:00.000Z`.
pub fn rfc3339_ms(epoch_ms: u64) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(epoch_ms)).to_string()
}
