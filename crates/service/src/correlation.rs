//! The correlation id that every log line of a call carries.

use std::fmt;

use crate::time::epoch_ms;
use crate::trace::TraceContext;

/// `<epoch-ms>-<9 base36 characters>`, or the trace id of the caller's trace context.
///
/// Held inline: making one costs no allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CorrelationId {
    bytes: [u8; 32],
    len: u8,
}

impl CorrelationId {
    /// A new id.
    pub fn new() -> CorrelationId {
        const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
        let mut bytes = [0u8; 32];
        let mut ms = epoch_ms();
        let mut digits = [0u8; 20];
        let mut n = 0;
        loop {
            digits[n] = b'0' + (ms % 10) as u8;
            ms /= 10;
            n += 1;
            if ms == 0 {
                break;
            }
        }
        for (to, from) in bytes.iter_mut().zip(digits[..n].iter().rev()) {
            *to = *from;
        }
        bytes[n] = b'-';
        let mut random = fastrand::u64(..);
        for slot in &mut bytes[n + 1..n + 10] {
            *slot = DIGITS[(random % 36) as usize];
            random /= 36;
        }
        CorrelationId { bytes, len: (n + 10) as u8 }
    }

    /// The trace id of a W3C `traceparent`, if that is what `text` is.
    pub fn from_traceparent(text: &str) -> Option<CorrelationId> {
        TraceContext::parse(text).map(CorrelationId::from)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl From<TraceContext> for CorrelationId {
    fn from(context: TraceContext) -> CorrelationId {
        let text = context.traceparent();
        let mut bytes = [0; 32];
        bytes.copy_from_slice(&text.as_str().as_bytes()[3..35]);
        CorrelationId { bytes, len: 32 }
    }
}

impl Default for CorrelationId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form() {
        let id = CorrelationId::new();
        let (ms, random) = id.as_str().split_once('-').unwrap();
        assert_eq!((ms.len(), random.len()), (13, 9));
        assert!(random.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase()));
        assert_ne!(id, CorrelationId::new());
    }

    #[test]
    fn trace_context_wins() {
        let trace = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
        assert_eq!(
            CorrelationId::from_traceparent(trace).unwrap().as_str(),
            "0af7651916cd43dd8448eb211c80319c"
        );
        for bad in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c",
            "é0-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        ] {
            assert!(CorrelationId::from_traceparent(bad).is_none(), "{bad}");
        }
    }
}
