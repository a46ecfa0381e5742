//! [`Budget`]: how many bytes of other people's messages the process holds, all together.
//!
//! Every buffer has a bound of its own; what thousands of them hold at once only a sum can bound. It counts what is large:
//! bodies and messages above [`FREE`], answers that nobody has read yet or that are kept for somebody to come back for, and
//! lists of servers. What is counted is given back when the last part of it is dropped. One authenticated principal may hold a
//! [`Share`] of it.

mod share;

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Symbol};

pub use self::share::Share;
use self::share::Shares;
use crate::principal::Principal;

/// Messages up to this size are not counted: there can be no more of them than there are connections and calls.
pub const FREE: usize = 16 * 1024;
/// What all lists of one server may take together.
pub const MAX_LISTS: usize = 32 * 1024 * 1024;
/// The share, in eighths, that new work may use. The rest is for the answers to what is under way.
const FOR_NEW_WORK: usize = 6;
/// What a caller who is refused is told to wait.
pub const RETRY_AFTER_SECONDS: u32 = 2;
/// The default, unless half of what the machine gives the process is less.
const DEFAULT: usize = 1024 * 1024 * 1024;

/// A number of bytes, shared by everything that holds messages.
pub struct Budget {
    limit: AtomicUsize,
    used: AtomicUsize,
    /// What can be taken back.
    spare: Mutex<Vec<Weak<dyn Spare>>>,
    /// What each principal holds.
    shares: Shares,
}

/// Something that holds bytes which it can do without.
pub trait Spare: Send + Sync {
    /// Lets go of them.
    fn let_go(&self);

    /// Lets go of those that it holds for one principal, if it knows for whom it does.
    fn let_go_of(&self, _: &Principal) {}
}

/// What bytes are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A request that could come again later.
    NewWork,
    /// Something that work under way waits for.
    Answer,
}

impl Purpose {
    /// The part of a limit that is there for it.
    fn part_of(self, limit: usize) -> usize {
        match self {
            Purpose::NewWork => limit / 8 * FOR_NEW_WORK,
            Purpose::Answer => limit,
        }
    }
}

impl Budget {
    /// A budget of so many bytes.
    pub fn new(limit: usize) -> Budget {
        Budget { limit: limit.into(), used: 0.into(), spare: Mutex::default(), shares: Shares::new() }
    }

    /// The budget of this process: the smaller of 1 GiB and half of what its control group may have.
    pub fn of_process() -> &'static Budget {
        static PROCESS: OnceLock<Budget> = OnceLock::new();
        PROCESS.get_or_init(|| Budget::new(default_limit()))
    }

    /// How many bytes there are.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes how many there are.
    pub fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// How many are in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes from `holder` what it can do without when bytes run short, for as long as it lives.
    pub fn add_spare(&self, holder: &Arc<impl Spare + 'static>) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.retain(|holder| holder.strong_count() > 0);
        let holder: Arc<dyn Spare> = holder.clone();
        spare.push(Arc::downgrade(&holder));
    }

    /// Whether new work can begin: nothing is set aside for it.
    pub fn admit(&self) -> Result<(), Error> {
        if self.fits(0, Purpose::NewWork) || self.make_room(0, Purpose::NewWork) {
            return Ok(());
        }
        Err(full())
    }

    /// Sets bytes aside until the hold is dropped. What is kept goes first.
    pub fn hold(&'static self, bytes: usize, purpose: Purpose) -> Result<Hold, Error> {
        let mut hold = self.hold_anyway(0);
        hold.grow_to(bytes, purpose)?;
        Ok(hold)
    }

    /// Counts bytes that are there whatever is said.
    pub fn hold_anyway(&'static self, bytes: usize) -> Hold {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        Hold { budget: self, bytes, share: Share::default() }
    }

    /// Counts a whole message for as long as any part of it is held. Small ones pass as they are.
    pub fn charge(&'static self, message: Bytes, purpose: Purpose) -> Result<Bytes, Error> {
        if message.len() <= FREE {
            return Ok(message);
        }
        let hold = self.hold(message.len(), purpose)?;
        Ok(hold.keep(message))
    }

    /// The same for a message that is there whatever is said.
    pub fn charge_anyway(&'static self, message: Bytes) -> Bytes {
        if message.len() <= FREE { message } else { self.hold_anyway(message.len()).keep(message) }
    }

    #[cold]
    fn make_room(&self, more: usize, purpose: Purpose) -> bool {
        for holder in self.spare().iter().filter_map(Weak::upgrade) {
            holder.let_go();
            if self.fits(more, purpose) {
                return true;
            }
        }
        false
    }

    fn spare(&self) -> Vec<Weak<dyn Spare>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fits(&self, more: usize, purpose: Purpose) -> bool {
        let limit = purpose.part_of(self.limit.load(Ordering::Relaxed));
        self.used.load(Ordering::Relaxed).saturating_add(more) <= limit
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Budget({} of {})", self.used(), self.limit())
    }
}

/// Bytes that are set aside, given back when this is dropped.
#[derive(Debug)]
pub struct Hold {
    budget: &'static Budget,
    bytes: usize,
    /// Whose they are.
    share: Share,
}

impl Hold {
    /// The same, counted for a principal too.
    #[must_use]
    pub fn counted_for(mut self, share: Share) -> Hold {
        share.add(self.bytes);
        self.share.subtract(self.bytes);
        self.share = share;
        self
    }

    /// Sets more aside, if there is that much.
    pub fn grow_to(&mut self, bytes: usize, purpose: Purpose) -> Result<(), Error> {
        let more = bytes.saturating_sub(self.bytes);
        if more > 0 {
            // Two that ask at the same moment may both get the last of it, which is no harm.
            self.share.make_fit(more, purpose)?;
            if !self.budget.fits(more, purpose) && !self.budget.make_room(more, purpose) {
                return Err(full());
            }
            self.set(bytes);
        }
        Ok(())
    }

    /// Counts so many bytes from now on, whatever there is.
    pub fn set(&mut self, bytes: usize) {
        let used = &self.budget.used;
        match bytes.checked_sub(self.bytes) {
            Some(more) => {
                used.fetch_add(more, Ordering::Relaxed);
                self.share.add(more);
            }
            None => {
                used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
                self.share.subtract(self.bytes - bytes);
            }
        }
        self.bytes = bytes;
    }

    /// The message, which is counted for as long as any part of it is held.
    pub fn keep(self, message: Bytes) -> Bytes {
        Bytes::from_owner(Counted { message, _hold: self })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.share.subtract(self.bytes);
    }
}

struct Counted {
    message: Bytes,
    _hold: Hold,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

fn full() -> Error {
    refusal("The server holds as much as it may at the moment. Try again in a few seconds")
}

fn refusal(what: &'static str) -> Error {
    let mut data = ObjectWriter::new();
    data.value("retryAfterMs", &(RETRY_AFTER_SECONDS * 1000));
    Error::new(Symbol::Overloaded, what).with_data(data.finish())
}

fn default_limit() -> usize {
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let allowed =
        files.iter().find_map(|file| std::fs::read_to_string(file).ok()?.trim().parse::<usize>().ok());
    allowed.map_or(DEFAULT, |allowed| DEFAULT.min(allowed / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaked(limit: usize) -> &'static Budget {
        Box::leak(Box::new(Budget::new(limit)))
    }

    #[test]
    fn bytes_are_counted_while_any_part_is_held() {
        let budget = leaked(1_000_000);
        let message = budget.charge(Bytes::from(vec![0; 100_000]), Purpose::NewWork).unwrap();
        let part = message.slice(10..20);
        assert_eq!(budget.used(), 100_000);
        drop(message);
        assert_eq!(budget.used(), 100_000);
        drop(part);
        assert_eq!(budget.used(), 0);
        let small = budget.charge(Bytes::from(vec![0; FREE]), Purpose::NewWork).unwrap();
        assert_eq!((budget.used(), small.len()), (0, FREE));
    }

    #[test]
    fn new_work_leaves_room_for_answers() {
        let budget = leaked(800_000);
        let held = budget.hold(600_000, Purpose::NewWork).unwrap();
        assert!(budget.hold(1, Purpose::NewWork).is_err());
        budget.admit().unwrap();
        let answer = budget.hold(200_000, Purpose::Answer).unwrap();
        assert!(budget.hold(1, Purpose::Answer).is_err());
        assert_eq!(budget.admit().unwrap_err().symbol(), Symbol::Overloaded);
        drop((held, answer));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_is_kept_goes_first() {
        struct Shelf(Mutex<Option<Hold>>);
        impl Spare for Shelf {
            fn let_go(&self) {
                self.0.lock().unwrap().take();
            }
        }
        let budget = leaked(800_000);
        let shelf = Arc::new(Shelf(Mutex::new(Some(budget.hold_anyway(500_000)))));
        budget.add_spare(&shelf);
        let held = budget.hold(500_000, Purpose::NewWork).unwrap();
        assert!(shelf.0.lock().unwrap().is_none());
        assert_eq!(budget.used(), 500_000);
        drop(shelf);
        assert!(budget.hold(500_000, Purpose::Answer).is_err());
        drop(held);
    }

    #[test]
    fn holds_grow_and_shrink() {
        let budget = leaked(100);
        let mut hold = budget.hold(10, Purpose::Answer).unwrap();
        hold.grow_to(90, Purpose::Answer).unwrap();
        assert!(hold.grow_to(101, Purpose::Answer).is_err());
        assert_eq!(budget.used(), 90);
        hold.set(5);
        assert_eq!(budget.used(), 5);
        drop(hold);
        assert_eq!(budget.used(), 0);
    }
}
