//! Times as records have them. Most records share their second with the one before, whose text is kept.

use tidegate_service::rfc3339_ms;

/// Writes times as RFC 3339 in UTC, with milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    second: u64,
    /// `2026-07-28T12:00:00.`, once there was a time.
    text: Vec<u8>,
}

impl Clock {
    pub(crate) fn write(&mut self, out: &mut Vec<u8>, ms: u64) {
        let second = ms / 1000;
        if second != self.second || self.text.is_empty() {
            let whole = rfc3339_ms(ms);
            self.text = whole.as_bytes()[..whole.len().saturating_sub("000Z".len())].to_vec();
            self.second = second;
        }
        let ms = ms % 1000;
        out.extend_from_slice(&self.text);
        let digits = [b'0' + (ms / 100) as u8, b'0' + (ms / 10 % 10) as u8, b'0' + (ms % 10) as u8, b'Z'];
        out.extend_from_slice(&digits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_log() {
        let mut clock = Clock::default();
        for ms in [0, 7, 999, 1000, 1_785_240_000_123, 1_785_240_000_124, 1_785_240_001_000, 5] {
            let mut out = Vec::new();
            clock.write(&mut out, ms);
            assert_eq!(String::from_utf8(out).unwrap(), rfc3339_ms(ms));
        }
    }
}
