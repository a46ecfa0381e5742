//! [`KeyTable`]: the keys of a file, ready to be asked.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use subtle::ConstantTimeEq;
use tidegate_service::{Claims, Identity, Principal};

use super::KEYS_ISSUER;
use super::api_key::{ApiKey, KeyState};
use super::key_text::{KeyHash, KeyId, hash_of, id_of};
use crate::refusal::Refusal;
use crate::verified::Verified;

/// Verifies API keys.
///
/// One hash is computed and compared for each key that is well-formed, whether its id is known or not, and the comparison takes
/// the same time wherever the difference is.
pub struct KeyTable {
    entries: HashMap<KeyId, Entry>,
}

struct Entry {
    key: ApiKey,
    verified: Verified,
    used: Arc<KeyUse>,
}

/// One use of a key after the other.
pub(crate) struct KeyUse {
    pub(crate) id: Arc<str>,
    /// When, in milliseconds since 1970; 0 for never.
    last_ms: AtomicU64,
}

impl KeyUse {
    /// It is used now. Written at most once a second: the line is shared by everybody who has this key.
    pub(crate) fn note(&self, now_ms: u64) {
        if now_ms.saturating_sub(self.last_ms.load(Ordering::Relaxed)) >= 1000 {
            self.last_ms.store(now_ms, Ordering::Relaxed);
        }
    }
}

impl KeyTable {
    /// A table of these keys.
    pub fn new(keys: &[ApiKey]) -> KeyTable {
        KeyTable::after(keys, None)
    }

    /// A table of these keys in the place of another one, whose uses it goes on counting.
    pub(crate) fn after(keys: &[ApiKey], before: Option<&KeyTable>) -> KeyTable {
        let mut interned = Interned::default();
        let entry = |key: &ApiKey| {
            let id: KeyId = key.id.as_bytes().try_into().ok()?;
            let used = before.and_then(|table| table.entries.get(&id)).map(|entry| entry.used.clone());
            let used =
                used.unwrap_or_else(|| Arc::new(KeyUse { id: key.id.clone(), last_ms: AtomicU64::new(0) }));
            Some((id, Entry { verified: verified(key, &mut interned), key: key.clone(), used }))
        };
        KeyTable { entries: keys.iter().filter_map(entry).collect() }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What a key says, if it is good at this time.
    ///
    /// # Errors
    ///
    /// [`Refusal::Malformed`] if it is no key; else why it is not good, which its sentence does not tell.
    pub fn verify(&self, key: &str, now_ms: u64) -> Result<Verified, Refusal> {
        self.find(key, now_ms).map(|(verified, _)| verified.clone())
    }

    pub(crate) fn find(&self, key: &str, now_ms: u64) -> Result<(&Verified, &Arc<KeyUse>), Refusal> {
        const NOBODYS: KeyHash = [0; 32];
        let id = id_of(key).ok_or(Refusal::Malformed)?;
        let entry = self.entries.get(&id);
        let expected = entry.map_or(&NOBODYS, |entry| &entry.key.hash);
        let is_equal: bool = hash_of(key).ct_eq(expected).into();
        let entry = entry.filter(|_| is_equal).ok_or(Refusal::UnknownKeyId)?;
        match entry.key.state(now_ms) {
            KeyState::Valid => Ok((&entry.verified, &entry.used)),
            KeyState::Revoked => Err(Refusal::KeyRevoked),
            KeyState::Expired => Err(Refusal::KeyExpired),
        }
    }

    /// The name and the id of a key that is in the table, good or not. Its secret is not looked at.
    pub(crate) fn name_and_id(&self, key: &str) -> Option<(&str, &str)> {
        let entry = self.entries.get(&id_of(key)?)?;
        Some((&entry.key.name, &entry.key.id))
    }

    /// Whether a key of the table before is as good in this one. What it says of its holder may not have changed: an open stream
    /// would go on with what it said before.
    pub(crate) fn goes_on(&self, id: &str, before: &KeyTable) -> bool {
        let Ok(id) = KeyId::try_from(id.as_bytes()) else { return false };
        match (self.entries.get(&id), before.entries.get(&id)) {
            (Some(now), Some(then)) => now.key.revoked_ms.is_none() && now.key.means_the_same(&then.key),
            _ => false,
        }
    }

    /// Whether anybody of this principal has a key that is good.
    pub(crate) fn has(&self, principal: &Principal, now_ms: u64) -> bool {
        self.entries.values().any(|entry| {
            entry.verified.identity.principal == *principal && entry.key.state(now_ms) == KeyState::Valid
        })
    }

    /// The principals whose last good key is not there any more.
    pub(crate) fn lost(&self, before: &KeyTable, now_ms: u64) -> Vec<Principal> {
        let was_good = before.entries.values().filter(|entry| entry.key.revoked_ms.is_none());
        let mut lost: Vec<Principal> = Vec::new();
        for entry in was_good {
            let principal = &entry.verified.identity.principal;
            if !self.goes_on(&entry.key.id, before)
                && !lost.contains(principal)
                && !self.has(principal, now_ms)
            {
                lost.push(principal.clone());
            }
        }
        lost
    }

    /// The keys that are not good any more though their holder has another one: a rotation without grace.
    pub(crate) fn replaced(&self, before: &KeyTable, now_ms: u64) -> Vec<(Principal, Arc<str>)> {
        let gone = before.entries.values().filter(|entry| self.has_lost(entry));
        let principal = |entry: &Entry| entry.verified.identity.principal.clone();
        gone.map(|entry| (principal(entry), entry.key.id.clone()))
            .filter(|(principal, _)| self.has(principal, now_ms))
            .collect()
    }

    /// How many keys came and how many went since another table.
    pub(crate) fn compared(&self, before: &KeyTable) -> (usize, usize) {
        let added = self.entries.values().filter(|entry| before.has_lost(entry)).count();
        (added, before.entries.values().filter(|entry| self.has_lost(entry)).count())
    }

    /// Whether a key of another table that nobody has revoked there is not in this one, or revoked.
    fn has_lost(&self, entry: &Entry) -> bool {
        let here = KeyId::try_from(entry.key.id.as_bytes()).ok().and_then(|id| self.entries.get(&id));
        entry.key.revoked_ms.is_none() && here.is_none_or(|here| here.key.revoked_ms.is_some())
    }

    /// The ids of those that end by themselves in a span of time, its end included.
    pub(crate) fn expired_between(&self, after_ms: u64, until_ms: u64) -> Vec<Arc<str>> {
        let is_due = |end: &u64| *end > after_ms && *end <= until_ms;
        let due = self.entries.values().filter(|entry| entry.key.expires_ms.as_ref().is_some_and(is_due));
        due.map(|entry| entry.key.id.clone()).collect()
    }

    /// Whether there is a key with this id.
    pub(crate) fn knows(&self, id: &str) -> bool {
        KeyId::try_from(id.as_bytes()).is_ok_and(|id| self.entries.contains_key(&id))
    }

    /// When keys were last used, of those that were.
    pub(crate) fn uses(&self) -> impl Iterator<Item = (&Arc<str>, u64)> {
        let last = |entry: &Entry| entry.used.last_ms.load(Ordering::Relaxed);
        self.entries.values().map(move |entry| (&entry.key.id, last(entry))).filter(|(_, last)| *last > 0)
    }
}

impl fmt::Debug for KeyTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyTable({})", self.entries.len())
    }
}

fn verified(key: &ApiKey, interned: &mut Interned) -> Verified {
    let mut words = |list: &[Arc<str>]| list.iter().map(|word| interned.get(word)).collect::<Vec<_>>();
    let claims = Claims {
        scopes: key.scopes.as_deref().map(&mut words),
        roles: words(&key.roles),
        client: Some(key.name.clone()),
        actors: Vec::new(),
        expires_ms: key.expires_ms,
    };
    let endpoints = key.endpoints.as_deref().map(&mut words);
    let principal = Principal {
        issuer: Some(interned.get(KEYS_ISSUER)),
        subject: Some(key.name.clone()),
        tenant: key.tenant.as_deref().map(|tenant| interned.get(tenant)),
    };
    Verified {
        identity: Identity { principal, claims: Some(Arc::new(claims)) },
        audiences: Vec::new(),
        endpoints,
        expires_ms: key.expires_ms,
        recheck_ms: None,
    }
}

/// Words that many keys have, each once.
#[derive(Default)]
struct Interned(HashMap<Box<str>, Arc<str>>);

impl Interned {
    fn get(&mut self, word: &str) -> Arc<str> {
        if let Some(known) = self.0.get(word) {
            return known.clone();
        }
        let shared: Arc<str> = word.into();
        self.0.insert(word.into(), shared.clone());
        shared
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{KeyFile, NewKey, Rotation};
    use super::*;

    fn table(file: &KeyFile) -> KeyTable {
        KeyTable::new(file.keys())
    }

    fn empty() -> KeyFile {
        KeyFile::parse(Path::new("keys.toml"), "").unwrap()
    }

    #[test]
    fn a_good_key_says_whose_it_is() {
        let mut file = empty();
        let new = NewKey {
            name: "ann".into(),
            tenant: Some("acme".into()),
            roles: vec!["dev".into()],
            endpoints: Some(vec!["research".into()]),
            expires_ms: Some(90_000),
            ..NewKey::default()
        };
        let key = file.add(new, 1000).unwrap();
        let verified = table(&file).verify(key.reveal(), 2000).unwrap();
        let ann = Principal::subject("ann").in_tenant("acme").issued_by(KEYS_ISSUER);
        assert_eq!(verified.identity.principal, ann);
        let claims = verified.identity.claims.unwrap();
        assert_eq!(
            (claims.scopes.as_ref(), &*claims.roles[0], claims.expires_ms),
            (None, "dev", Some(90_000))
        );
        assert_eq!(verified.endpoints.unwrap(), ["research".into()]);
    }

    #[test]
    fn keys_that_are_not_good() {
        let mut file = empty();
        let new = |name: &str| NewKey { name: name.into(), expires_ms: Some(5000), ..NewKey::default() };
        let ann = file.add(new("ann"), 1000).unwrap();
        let bob = file.add(new("bob"), 1000).unwrap();
        file.revoke("bob", 2000).unwrap();
        let stranger = empty().add(new("eve"), 1000).unwrap();
        // Ann's id with a secret of somebody else.
        let forged = {
            let (_, other) = super::super::key_text::generate();
            let text = format!("{}{}", &ann.reveal()[..18], &other.reveal()[18..61]);
            super::super::key_text::with_checksum(&text)
        };
        let table = table(&file);
        let refusal = |key: &str, now| table.verify(key, now).err();
        assert_eq!(refusal(ann.reveal(), 4999), None);
        assert_eq!(refusal(ann.reveal(), 5000), Some(Refusal::KeyExpired));
        assert_eq!(refusal(bob.reveal(), 2000), Some(Refusal::KeyRevoked));
        assert_eq!(refusal(stranger.reveal(), 2000), Some(Refusal::UnknownKeyId));
        assert_eq!(refusal(&forged, 2000), Some(Refusal::UnknownKeyId));
        assert_eq!(refusal("tidegate_nonsense", 2000), Some(Refusal::Malformed));
    }

    #[test]
    fn what_ends_when_the_file_changes() {
        let mut file = empty();
        for name in ["ann", "bob", "eve"] {
            file.add(NewKey { name: name.into(), ..NewKey::default() }, 1000).unwrap();
        }
        let before = table(&file);
        let ids: Vec<Arc<str>> = file.keys().iter().map(|key| key.id.clone()).collect();
        file.revoke("ann", 2000).unwrap();
        file.rotate("bob", Rotation::default(), 2000).unwrap();
        file.rotate("eve", Rotation { grace_ms: 5000, expires_ms: None }, 2000).unwrap();
        let after = KeyTable::after(file.keys(), Some(&before));
        let goes_on: Vec<bool> = ids.iter().map(|id| after.goes_on(id, &before)).collect();
        assert_eq!(goes_on, [false, false, true]);
        // Bob is still somebody: he has another key.
        let lost = after.lost(&before, 2000);
        assert_eq!(lost, [Principal::subject("ann").issued_by(KEYS_ISSUER)]);
        assert_eq!(
            after.replaced(&before, 2000),
            [(Principal::subject("bob").issued_by(KEYS_ISSUER), ids[1].clone())]
        );
        assert_eq!(after.compared(&before), (2, 2));
        assert_eq!(after.compared(&after), (0, 0));
        assert_eq!(KeyTable::new(&[]).compared(&before), (0, 3));
        assert_eq!(after.expired_between(6999, 7000), [ids[2].clone()]);
        assert_eq!(after.expired_between(7000, 8000), []);
    }

    #[test]
    fn uses_are_counted_across_changes_of_the_file() {
        let mut file = empty();
        let key = file.add(NewKey { name: "ann".into(), ..NewKey::default() }, 1000).unwrap();
        let before = table(&file);
        before.find(key.reveal(), 2000).unwrap().1.note(2000);
        before.find(key.reveal(), 2000).unwrap().1.note(2500);
        let after = KeyTable::after(file.keys(), Some(&before));
        assert_eq!(after.uses().map(|(_, last)| last).collect::<Vec<_>>(), [2000]);
    }
}
