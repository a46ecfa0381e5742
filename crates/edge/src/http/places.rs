//! [`Places`]: how many legacy sessions a site may have, all its endpoints together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tidegate_protocol::{Error, Symbol};
use tidegate_service::Principal;

use super::sessions::Sessions;

/// The part of all places that one authenticated principal may have, and how many it may have in any case.
const SHARE: usize = 4;
const LEAST: usize = 64;

/// Places for sessions, whichever endpoint and transport they are of. One principal cannot take all of them.
pub(super) struct Places {
    max: usize,
    max_each: usize,
    taken: Mutex<Taken>,
    /// Who can give places back that nobody uses.
    holders: Mutex<Vec<Weak<Sessions>>>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    /// Those of authenticated principals.
    by_principal: HashMap<Principal, usize>,
}

/// A place, given back when this is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    /// Whose it is, if somebody was authenticated.
    principal: Option<Principal>,
}

impl Places {
    pub(super) fn new(max: usize) -> Arc<Places> {
        let (taken, holders) = (Mutex::default(), Mutex::default());
        Arc::new(Places { max, max_each: (max / SHARE).max(LEAST), taken, holders })
    }

    /// Asks these sessions to end the ones that nobody uses when there is no room, for as long as they live.
    pub(super) fn add_holder(&self, sessions: &Arc<Sessions>) {
        let mut holders = locked(&self.holders);
        holders.retain(|holder| holder.strong_count() > 0);
        holders.push(Arc::downgrade(sessions));
    }

    /// A place for a session of `principal`. Nothing that this locks may be held.
    pub(super) fn take(self: &Arc<Self>, principal: &Principal) -> Result<Place, Error> {
        if locked(&self.taken).all >= self.max {
            let holders = locked(&self.holders).clone();
            holders.iter().filter_map(Weak::upgrade).for_each(|sessions| sessions.sweep());
        }
        let principal = principal.subject.is_some().then(|| principal.clone());
        let mut taken = locked(&self.taken);
        if taken.all >= self.max {
            let what = format!("Too many sessions: the limit of {} is reached. Try again later", self.max);
            return Err(Error::new(Symbol::Unavailable, what));
        }
        if let Some(principal) = &principal {
            let own = taken.by_principal.entry(principal.clone()).or_default();
            if *own >= self.max_each {
                let what = format!(
                    "Too many sessions: you have {own} open, which is the limit for one user. End those that you do not need \
                     with DELETE, or try again later"
                );
                return Err(Error::new(Symbol::Unavailable, what));
            }
            *own += 1;
        }
        taken.all += 1;
        Ok(Place { places: self.clone(), principal })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = locked(&self.places.taken);
        taken.all -= 1;
        if let Some(principal) = &self.principal
            && let Some(own) = taken.by_principal.get_mut(principal)
        {
            *own -= 1;
            if *own == 0 {
                taken.by_principal.remove(principal);
            }
        }
    }
}

/// A poisoned lock is as good as any: nothing here is left half done.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_all_of_them() {
        let places = Places::new(400);
        let (ann, bob) = (Principal::subject("ann"), Principal::subject("bob"));
        let of_ann: Vec<_> = (0..100).map(|_| places.take(&ann).unwrap()).collect();
        let refused = places.take(&ann).err().unwrap();
        assert_eq!(refused.symbol(), Symbol::Unavailable);
        assert!(refused.message().contains("you have 100 open"), "{}", refused.message());
        let of_bob = places.take(&bob).unwrap();
        let of_nobody: Vec<_> = (0..299).map(|_| places.take(&Principal::default()).unwrap()).collect();
        let refused = places.take(&bob).err().unwrap();
        assert!(refused.message().contains("the limit of 400"), "{}", refused.message());
        drop((of_ann, of_bob, of_nobody));
        let taken = locked(&places.taken);
        assert_eq!((taken.all, taken.by_principal.len()), (0, 0));
    }

    #[test]
    fn a_few_are_for_everybody() {
        let places = Places::new(100);
        let ann = Principal::subject("ann");
        let all: Vec<_> = (0..100).map_while(|_| places.take(&ann).ok()).collect();
        assert_eq!(all.len(), LEAST);
    }
}
