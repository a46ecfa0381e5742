//! [`EndedSessions`]: which sessions have ended, until their ids would have expired.

use std::collections::{BTreeMap, HashSet};

use super::SessionKey;

/// Most sessions that are remembered one by one.
pub(super) const MAX_ENDED: usize = 128 * 1024;

/// The line of an hour all of whose sessions are taken to have ended.
pub(super) const ALL: &str = "all";

/// Sessions that have ended, by the hour in which their ids expire.
///
/// When there are too many, the earliest hours are closed: whatever expires in a closed hour is taken to have ended. So one
/// that has ended never comes back, and what is lost is that others which are as old outlive a restart.
#[derive(Default)]
pub(super) struct EndedSessions {
    hours: BTreeMap<u64, Hour>,
    len: usize,
}

#[derive(Default)]
struct Hour {
    is_closed: bool,
    digests: HashSet<[u8; 16]>,
}

impl EndedSessions {
    pub(super) fn contains(&self, key: &SessionKey) -> bool {
        self.hours.get(&key.hour()).is_some_and(|hour| hour.is_closed || hour.digests.contains(&key.digest))
    }

    /// Whether that was news.
    pub(super) fn insert(&mut self, key: &SessionKey) -> bool {
        self.insert_digest(key.hour(), key.digest)
    }

    fn insert_digest(&mut self, hour: u64, digest: [u8; 16]) -> bool {
        let hour = self.hours.entry(hour).or_default();
        let is_new = !hour.is_closed && hour.digests.insert(digest);
        self.len += usize::from(is_new);
        is_new
    }

    /// Takes in the lines of a file. One that was not written to its end is passed over.
    pub(super) fn read(&mut self, hour: u64, text: &str) {
        for line in text.lines() {
            if line == ALL {
                self.close(hour);
            } else if line.len() == 32
                && let Ok(digest) = u128::from_str_radix(line, 16)
            {
                self.insert_digest(hour, digest.to_be_bytes());
            }
        }
    }

    pub(super) fn close(&mut self, hour: u64) {
        let hour = self.hours.entry(hour).or_default();
        hour.is_closed = true;
        self.len -= hour.digests.len();
        hour.digests = HashSet::new();
    }

    /// Closes the earliest hours if there is too much to remember, and says which.
    pub(super) fn make_room(&mut self) -> Vec<u64> {
        let mut closed = Vec::new();
        while self.len > MAX_ENDED {
            let Some(hour) = self.hours.iter().find(|(_, hour)| !hour.is_closed).map(|(hour, _)| *hour)
            else {
                break;
            };
            self.close(hour);
            closed.push(hour);
        }
        closed
    }

    /// Forgets those whose ids have expired before this hour.
    pub(super) fn forget_before(&mut self, hour: u64) {
        let rest = self.hours.split_off(&hour);
        self.len -= self.hours.values().map(|hour| hour.digests.len()).sum::<usize>();
        self.hours = rest;
    }
}

/// The line of a session.
pub(super) fn line(key: &SessionKey) -> String {
    format!("{:032x}", u128::from_be_bytes(key.digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: usize, hour: u64) -> SessionKey {
        SessionKey::new(&n.to_string(), hour * 3_600_000)
    }

    #[test]
    fn lines_come_back_and_torn_ones_are_passed_over() {
        let (one, two) = (key(1, 7), key(2, 7));
        let mut ended = EndedSessions::default();
        ended.read(7, &format!("\n{}\n{}\nnonsense\n{}", line(&one), &line(&two)[..20], "é".repeat(16)));
        assert!(ended.contains(&one) && !ended.contains(&two) && !ended.contains(&key(1, 8)));
        assert!(!ended.insert(&one) && ended.insert(&two));
        ended.forget_before(8);
        assert!(!ended.contains(&one) && ended.len == 0);
    }

    #[test]
    fn what_cannot_be_remembered_one_by_one_has_ended_hour_by_hour() {
        let mut ended = EndedSessions::default();
        for n in 0..MAX_ENDED {
            ended.insert(&key(n, (n % 4) as u64));
            assert!(ended.make_room().is_empty());
        }
        assert!(!ended.contains(&key(usize::MAX, 0)));
        ended.insert(&key(usize::MAX, 9));
        assert_eq!(ended.make_room(), [0]);
        assert_eq!(ended.len, MAX_ENDED * 3 / 4 + 1);
        for n in 0..MAX_ENDED {
            assert!(ended.contains(&key(n, (n % 4) as u64)), "none comes back");
        }
        assert!(ended.contains(&key(usize::MAX, 0)) && !ended.contains(&key(usize::MAX, 1)));
        assert!(!ended.insert(&key(1, 0)), "there is nothing to write");
        let mut again = EndedSessions::default();
        again.read(0, ALL);
        assert!(again.contains(&key(1, 0)) && again.len == 0);
    }
}
