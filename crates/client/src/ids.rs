//! Request ids.

use std::sync::atomic::{AtomicI64, Ordering};

use tidegate_protocol::{Id, Json};

/// How requests are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdStrategy {
    /// Random UUIDs (version 4), which nobody else on the same connection will use.
    #[default]
    UuidV4,
    /// 1, 2, 3: shorter, and enough where one client has a connection to itself.
    Counter,
}

/// Hands out request ids.
#[derive(Debug)]
pub(crate) struct Ids {
    strategy: IdStrategy,
    next: AtomicI64,
}

impl Ids {
    pub(crate) fn new(strategy: IdStrategy) -> Ids {
        Ids { strategy, next: AtomicI64::new(1) }
    }

    /// An id that was not handed out before.
    pub(crate) fn next(&self) -> Id {
        match self.strategy {
            IdStrategy::Counter => Id::from(self.next.fetch_add(1, Ordering::Relaxed)),
            IdStrategy::UuidV4 => {
                // Unique is enough: the server that gets an id is the only one who could answer under it.
                let text = quoted_uuid(fastrand::u128(..));
                let text = std::str::from_utf8(&text).unwrap_or("0");
                Id::from_json(Json::trusted(text)).unwrap_or_else(|| Id::from(0))
            }
        }
    }
}

/// Each byte as two digits.
const HEX: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut all = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        all[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    all
};

/// RFC 9562 section 5.4: random but for the version and the variant. As JSON, in quotes.
fn quoted_uuid(random: u128) -> [u8; 38] {
    let bits = (random & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let mut out = *b"\"........-....-....-....-............\"";
    let mut at = 1;
    for (i, byte) in bits.to_be_bytes().into_iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            at += 1;
        }
        out[at..at + 2].copy_from_slice(&HEX[usize::from(byte)]);
        at += 2;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_of_version_4() {
        assert_eq!(&quoted_uuid(u128::MAX), b"\"ffffffff-ffff-4fff-bfff-ffffffffffff\"");
        assert_eq!(&quoted_uuid(0), b"\"00000000-0000-4000-8000-000000000000\"");
        let ids = Ids::new(IdStrategy::UuidV4);
        assert_ne!(ids.next(), ids.next());
        assert_eq!(ids.next().as_json().len(), 38);
    }

    #[test]
    fn counters_count() {
        let ids = Ids::new(IdStrategy::Counter);
        assert_eq!([ids.next(), ids.next()], [Id::from(1), Id::from(2)]);
    }
}
