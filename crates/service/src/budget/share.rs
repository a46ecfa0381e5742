//! [`Share`]: what one authenticated principal may hold of a budget, so that nobody has all of it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use tidegate_protocol::Error;

use super::{Budget, FREE, Purpose, Spare, refusal};
use crate::principal::Principal;
use crate::time::epoch_ms;

/// How large every share is while there are none.
const UNLIMITED: usize = usize::MAX;
/// How many principals are looked through before those that hold nothing are forgotten.
const FEW: usize = 64;
/// What is kept for a principal is looked for no more often than this: whoever is refused over and over must not keep others busy.
const BETWEEN_LOOKS_MS: u64 = 100;

/// What is counted for one principal: a cheap handle, of nobody in particular by default.
#[derive(Clone, Default)]
pub struct Share(Option<Arc<Holder>>);

struct Holder {
    budget: &'static Budget,
    principal: Principal,
    used: AtomicUsize,
    /// Whether new work of this principal is refused, as far as `Shares::crowded` knows.
    is_crowded: AtomicBool,
    /// When what is kept was last looked for, in milliseconds since 1970.
    looked_ms: AtomicU64,
}

/// All shares of a budget.
pub(super) struct Shares {
    limit: AtomicUsize,
    /// How many principals cannot begin anything. While there are none, nobody has to be looked up.
    crowded: AtomicUsize,
    holders: Mutex<Holders>,
}

#[derive(Default)]
struct Holders {
    by_principal: HashMap<Principal, Weak<Holder>>,
    /// How many there may be before those that are gone are forgotten.
    most: usize,
}

impl Shares {
    pub(super) fn new() -> Shares {
        Shares { limit: UNLIMITED.into(), crowded: 0.into(), holders: Mutex::default() }
    }

    fn limit(&self, purpose: Purpose) -> usize {
        purpose.part_of(self.limit.load(Ordering::Relaxed))
    }

    fn find(&self, principal: &Principal) -> Option<Arc<Holder>> {
        let holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        holders.by_principal.get(principal)?.upgrade()
    }
}

impl Budget {
    /// How much of it one authenticated principal may hold; `None` is as much as there is, which is the default.
    pub fn set_share(&self, bytes: impl Into<Option<usize>>) {
        self.shares.limit.store(bytes.into().unwrap_or(UNLIMITED), Ordering::Relaxed);
    }

    /// The same, if there are shares.
    pub fn share(&self) -> Option<usize> {
        Some(self.shares.limit.load(Ordering::Relaxed)).filter(|limit| *limit != UNLIMITED)
    }

    /// The share of a principal. Nobody who was not authenticated has one.
    pub fn share_of(&'static self, principal: &Principal) -> Share {
        if principal.subject.is_none() || self.share().is_none() {
            return Share::default();
        }
        let mut holders = self.shares.holders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(holder) = holders.by_principal.get(principal).and_then(Weak::upgrade) {
            return Share(Some(holder));
        }
        if holders.by_principal.len() >= holders.most {
            holders.by_principal.retain(|_, holder| holder.strong_count() > 0);
            holders.most = FEW.max(2 * holders.by_principal.len());
        }
        let holder = Arc::new(Holder {
            budget: self,
            principal: principal.clone(),
            used: 0.into(),
            is_crowded: AtomicBool::new(false),
            looked_ms: AtomicU64::new(0),
        });
        holders.by_principal.insert(principal.clone(), Arc::downgrade(&holder));
        Share(Some(holder))
    }

    /// Whether new work of a principal can begin: nothing is set aside for it.
    pub fn admit_for(&self, principal: &Principal) -> Result<(), Error> {
        self.admit()?;
        if self.shares.crowded.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        match self.shares.find(principal) {
            Some(holder) => Share(Some(holder)).make_fit(0, Purpose::NewWork),
            None => Ok(()),
        }
    }
}

impl Share {
    /// How many bytes are counted.
    pub fn used(&self) -> usize {
        self.0.as_ref().map_or(0, |holder| holder.used.load(Ordering::Relaxed))
    }

    /// Counts a message that the budget has counted already, for as long as any part of it is held. Small ones pass as they are.
    pub fn keep(&self, message: Bytes) -> Bytes {
        if self.0.is_none() || message.len() <= FREE {
            return message;
        }
        self.add(message.len());
        Bytes::from_owner(Kept { message, share: self.clone() })
    }

    /// Refuses what is more than the share. What is kept for the same principal goes first.
    pub(super) fn make_fit(&self, more: usize, purpose: Purpose) -> Result<(), Error> {
        let Some(holder) = &self.0 else { return Ok(()) };
        if holder.fits(more, purpose) {
            return Ok(());
        }
        let now = epoch_ms();
        let is_due = now.abs_diff(holder.looked_ms.load(Ordering::Relaxed)) >= BETWEEN_LOOKS_MS;
        let spare = if is_due { holder.budget.spare() } else { Vec::new() };
        if is_due {
            holder.looked_ms.store(now, Ordering::Relaxed);
        }
        let makes_room = |spare: Arc<dyn Spare>| {
            spare.let_go_of(&holder.principal);
            holder.fits(more, purpose)
        };
        if spare.iter().filter_map(Weak::upgrade).any(makes_room) {
            return Ok(());
        }
        Err(refusal(
            "You hold as much as one caller may at the moment. Read the answers that wait for you, or try again in a few seconds",
        ))
    }

    pub(super) fn add(&self, bytes: usize) {
        if let Some(holder) = &self.0 {
            holder.used.fetch_add(bytes, Ordering::SeqCst);
            holder.mark();
        }
    }

    pub(super) fn subtract(&self, bytes: usize) {
        if let Some(holder) = &self.0 {
            holder.used.fetch_sub(bytes, Ordering::SeqCst);
            holder.mark();
        }
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Share({})", self.used())
    }
}

impl Holder {
    fn fits(&self, more: usize, purpose: Purpose) -> bool {
        self.used.load(Ordering::Relaxed).saturating_add(more) <= self.budget.shares.limit(purpose)
    }

    /// Notes whether new work is refused. Whoever changes the number later notes it later, so the last note is right.
    fn mark(&self) {
        let crowded = &self.budget.shares.crowded;
        loop {
            let is = self.used.load(Ordering::SeqCst) > self.budget.shares.limit(Purpose::NewWork);
            match (self.is_crowded.swap(is, Ordering::SeqCst), is) {
                (false, true) => _ = crowded.fetch_add(1, Ordering::Relaxed),
                (true, false) => _ = crowded.fetch_sub(1, Ordering::Relaxed),
                _ => {}
            }
            if is == (self.used.load(Ordering::SeqCst) > self.budget.shares.limit(Purpose::NewWork)) {
                break;
            }
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        if *self.is_crowded.get_mut() {
            self.budget.shares.crowded.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

struct Kept {
    message: Bytes,
    share: Share,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.share.subtract(self.message.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_protocol::Symbol;

    fn budget(limit: usize, share: usize) -> &'static Budget {
        let budget: &'static Budget = Box::leak(Box::new(Budget::new(limit)));
        budget.set_share(share);
        budget
    }

    fn ann() -> Principal {
        Principal::subject("ann")
    }

    fn hold(
        budget: &'static Budget,
        principal: &Principal,
        bytes: usize,
        purpose: Purpose,
    ) -> Result<super::super::Hold, Error> {
        let mut hold = budget.hold_anyway(0).counted_for(budget.share_of(principal));
        hold.grow_to(bytes, purpose)?;
        Ok(hold)
    }

    #[test]
    fn one_principal_cannot_hold_everything() {
        let budget = budget(1_000_000, 80_000);
        let held = hold(budget, &ann(), 60_000, Purpose::NewWork).unwrap();
        let refused = hold(budget, &ann(), 1, Purpose::NewWork).unwrap_err();
        assert_eq!(refused.symbol(), Symbol::Overloaded);
        assert!(refused.message().starts_with("You hold"), "{}", refused.message());
        let answer = hold(budget, &ann(), 20_000, Purpose::Answer).unwrap();
        assert!(hold(budget, &ann(), 1, Purpose::Answer).is_err());
        for other in [Principal::subject("bob"), ann().in_tenant("reef"), Principal::default()] {
            budget.admit_for(&other).unwrap();
            assert!(hold(budget, &other, 60_000, Purpose::NewWork).is_ok());
        }
        assert!(budget.admit_for(&ann()).is_err());
        drop(answer);
        budget.admit_for(&ann()).unwrap();
        assert_eq!((budget.used(), budget.share_of(&ann()).used()), (60_000, 60_000));
        drop(held);
        assert_eq!((budget.used(), budget.share_of(&ann()).used()), (0, 0));
        assert_eq!(budget.shares.crowded.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_is_there_anyway_keeps_new_work_away() {
        let budget = budget(1_000_000, 80_000);
        let share = budget.share_of(&ann());
        let small = share.keep(Bytes::from(vec![0; FREE]));
        let answer = share.keep(Bytes::from(vec![0; 200_000]));
        let part = answer.slice(..1);
        drop(answer);
        assert_eq!((budget.used(), share.used()), (0, 200_000));
        assert!(budget.admit_for(&ann()).is_err());
        drop((part, small));
        budget.admit_for(&ann()).unwrap();
        assert_eq!(share.used(), 0);
    }

    #[test]
    fn what_is_kept_for_the_same_principal_goes_first() {
        struct Shelf(Mutex<Vec<(Principal, super::super::Hold)>>);
        impl Spare for Shelf {
            fn let_go(&self) {}

            fn let_go_of(&self, principal: &Principal) {
                self.0.lock().unwrap().retain(|(owner, _)| owner != principal);
            }
        }
        let budget = budget(1_000_000, 80_000);
        let bob = Principal::subject("bob");
        let kept = [ann(), bob.clone()]
            .map(|owner| (owner.clone(), hold(budget, &owner, 60_000, Purpose::NewWork).unwrap()));
        let shelf = Arc::new(Shelf(Mutex::new(kept.into())));
        budget.add_spare(&shelf);
        let held = hold(budget, &ann(), 50_000, Purpose::NewWork).unwrap();
        assert_eq!(shelf.0.lock().unwrap().len(), 1);
        assert_eq!((budget.share_of(&ann()).used(), budget.share_of(&bob).used()), (50_000, 60_000));
        drop(held);
    }

    #[test]
    fn without_shares_nothing_is_counted() {
        let budget = budget(1_000_000, 10);
        budget.set_share(None);
        let held = hold(budget, &ann(), 100_000, Purpose::NewWork).unwrap();
        assert_eq!((budget.share(), budget.used(), budget.share_of(&ann()).used()), (None, 100_000, 0));
        drop(held);
    }

    #[test]
    fn who_holds_nothing_is_forgotten() {
        let budget = budget(1_000_000, 80_000);
        let held = hold(budget, &ann(), 100, Purpose::NewWork).unwrap();
        for n in 0..10_000 {
            budget.share_of(&Principal::subject(n.to_string()));
        }
        let holders = budget.shares.holders.lock().unwrap();
        assert!(holders.by_principal.len() <= FEW, "{}", holders.by_principal.len());
        assert!(holders.by_principal.contains_key(&ann()));
        drop(held);
    }
}
