//! What people do to keys: add, revoke, rotate.

use std::fmt::Write as _;
use std::sync::Arc;

use tidegate_service::rfc3339_ms;
use tidegate_service::secrets::Secret;
use toml_edit::{Array, ArrayOfTables, Datetime, Item, Table, value};

use super::api_key::{ApiKey, KeyState};
use super::error::KeyFileError;
use super::key_file::KeyFile;
use super::key_text::{generate, hash_of};
use super::parse::{MOST_KEYS, is_endpoint, is_scope, is_word};
use crate::tenant_name::is_tenant_name;

/// A key to be made.
#[derive(Debug, Clone, Default)]
pub struct NewKey {
    /// Whose it is.
    pub name: String,
    /// The tenant of its holder.
    pub tenant: Option<String>,
    /// What its holder is.
    pub roles: Vec<String>,
    /// What it may be used for; `None` if scopes do not restrict it.
    pub scopes: Option<Vec<String>>,
    /// Where it may be used, `default` for the default endpoint; `None` for everywhere.
    pub endpoints: Option<Vec<String>>,
    /// When it ends by itself, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
}

/// How a key is replaced by a new one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rotation {
    /// For how many milliseconds the old one is good beside the new one.
    pub grace_ms: u64,
    /// When the new one ends. `None`: the old one's lifetime from now on, if it had an end.
    pub expires_ms: Option<u64>,
}

/// How many keys that are not good any more a holder keeps when there is a new one.
const MOST_DEAD: usize = 8;

impl KeyFile {
    /// Adds a key and returns it. Nobody can find it out later.
    ///
    /// # Errors
    ///
    /// When the name is taken, also by a key that is not good any more: whoever got it would be the same to every server.
    pub fn add(&mut self, new: NewKey, now_ms: u64) -> Result<Secret, KeyFileError> {
        check(&new, now_ms)?;
        let taken: Vec<usize> = self.indices(|key| *key.name == *new.name);
        match taken.is_empty() {
            true => self.push(new, now_ms),
            false if self.in_force(&taken, now_ms).is_none() => Err(KeyFileError::Revoked(new.name)),
            false => Err(KeyFileError::NameTaken(new.name)),
        }
    }

    /// Ends the keys with this name, or the one with this id, and returns them. Those that were ended before stay as they are and
    /// are not among them.
    ///
    /// # Errors
    ///
    /// When there is no such key.
    pub fn revoke(&mut self, name: &str, now_ms: u64) -> Result<Vec<ApiKey>, KeyFileError> {
        let found = self.find(name)?;
        let mut revoked = Vec::new();
        for index in found {
            let key = &mut self.keys[index];
            if key.revoked_ms.is_none() {
                key.revoked_ms = Some(now_ms);
                revoked.push(key.clone());
                self.set(index, "revoked", now_ms);
            }
        }
        Ok(revoked)
    }

    /// Gives the holder of a key a new one, and returns it: the principal stays the same. The old one is revoked, or ends after
    /// the grace period. It stays in the file, so that people see when it was last used; of those that are not good any more, each
    /// holder keeps the newest few.
    ///
    /// # Errors
    ///
    /// When there is no such key, or when its holder has none but those that somebody revoked.
    pub fn rotate(&mut self, name: &str, how: Rotation, now_ms: u64) -> Result<Secret, KeyFileError> {
        let found = self.find(name)?;
        let is_holder = |key: &ApiKey| {
            found
                .iter()
                .map(|index| &self.keys[*index])
                .any(|one| (&one.name, &one.tenant) == (&key.name, &key.tenant))
        };
        let old = self.in_force(&self.indices(is_holder), now_ms).map(|index| self.keys[index].clone());
        let Some(old) = old else {
            let name = found.first().map_or(name, |index| &*self.keys[*index].name);
            return Err(KeyFileError::Revoked(name.to_owned()));
        };
        let lifetime = old.expires_ms.map(|end| end.saturating_sub(old.created_ms.unwrap_or(now_ms)));
        let texts = |list: &Vec<Arc<str>>| list.iter().map(|one| one.to_string()).collect::<Vec<_>>();
        let new = NewKey {
            name: old.name.to_string(),
            tenant: old.tenant.as_deref().map(str::to_owned),
            roles: texts(&old.roles),
            scopes: old.scopes.as_ref().map(texts),
            endpoints: old.endpoints.as_ref().map(texts),
            expires_ms: how.expires_ms.or_else(|| lifetime.map(|life| now_ms.saturating_add(life))),
        };
        check(&new, now_ms)?;
        let last = now_ms.saturating_add(how.grace_ms);
        let of_holder = |key: &ApiKey| (&key.name, &key.tenant) == (&old.name, &old.tenant);
        for index in self.indices(of_holder) {
            if self.keys[index].state(now_ms) != KeyState::Valid {
                continue;
            }
            if how.grace_ms == 0 {
                self.keys[index].revoked_ms = Some(now_ms);
                self.set(index, "revoked", now_ms);
            } else if self.keys[index].expires_ms.is_none_or(|end| end > last) {
                self.keys[index].expires_ms = Some(last);
                self.set(index, "expires", last);
            }
        }
        let mut dead = self.indices(|key| of_holder(key) && key.state(now_ms) != KeyState::Valid);
        dead.sort_by_key(|index| self.keys[*index].created_ms);
        dead.truncate(dead.len().saturating_sub(MOST_DEAD));
        dead.sort_unstable();
        for index in dead.into_iter().rev() {
            self.keys.remove(index);
            self.tables().remove(index);
        }
        self.push(new, now_ms)
    }

    /// Of the keys of a holder, the one that says what the holder may do: the newest that is good, else the newest of all. `None`
    /// if that one is revoked.
    fn in_force(&self, of_holder: &[usize], now_ms: u64) -> Option<usize> {
        let newest = |is_it: &dyn Fn(KeyState) -> bool| {
            let fitting = of_holder.iter().copied().filter(|index| is_it(self.keys[*index].state(now_ms)));
            // Rotated twice within a grace period, there are two that are good.
            fitting.max_by_key(|index| self.keys[*index].created_ms)
        };
        let newest = newest(&|state| state == KeyState::Valid).or_else(|| newest(&|_| true))?;
        self.keys[newest].revoked_ms.is_none().then_some(newest)
    }

    fn push(&mut self, new: NewKey, now_ms: u64) -> Result<Secret, KeyFileError> {
        if self.keys.len() >= MOST_KEYS {
            let path = self.path().display();
            let why = format!(
                "The file of API keys {path} has {MOST_KEYS} keys, which are the most: remove old ones"
            );
            return Err(KeyFileError::Rejected(why));
        }
        let (id, secret) = loop {
            let (id, secret) = generate();
            if self.keys.iter().all(|key| *key.id != *id) {
                break (id, secret);
            }
        };
        let hash = hash_of(secret.reveal());
        let mut table = Table::new();
        table["id"] = value(&id);
        table["name"] = value(&new.name);
        if let Some(tenant) = &new.tenant {
            table["tenant"] = value(tenant);
        }
        if !new.roles.is_empty() {
            table["roles"] = list(&new.roles);
        }
        if let Some(scopes) = &new.scopes {
            table["scopes"] = list(scopes);
        }
        if let Some(endpoints) = &new.endpoints {
            table["endpoints"] = list(endpoints);
        }
        let digits = hash.iter().fold(String::from("sha256:"), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        table["hash"] = value(digits);
        table["created"] = time(now_ms);
        if let Some(end) = new.expires_ms {
            table["expires"] = time(end);
        }
        if self.keys.is_empty() {
            // What was written above no key is above the first one.
            let comment = self.document.trailing().as_str().unwrap_or_default().to_owned();
            self.document.set_trailing("");
            table.decor_mut().set_prefix(comment);
        }
        self.tables().push(table);
        let shared = |list: Vec<String>| list.into_iter().map(Arc::from).collect::<Vec<Arc<str>>>();
        self.keys.push(ApiKey {
            id: id.into(),
            name: new.name.into(),
            tenant: new.tenant.map(Arc::from),
            roles: shared(new.roles),
            scopes: new.scopes.map(shared),
            endpoints: new.endpoints.map(shared),
            hash,
            created_ms: Some(now_ms),
            expires_ms: new.expires_ms,
            revoked_ms: None,
        });
        Ok(secret)
    }

    /// Those with this name, else the one with this id.
    fn find(&self, name: &str) -> Result<Vec<usize>, KeyFileError> {
        let named = self.indices(|key| *key.name == *name);
        let found = if named.is_empty() { self.indices(|key| *key.id == *name) } else { named };
        if found.is_empty() { Err(KeyFileError::NoSuchKey(name.to_owned())) } else { Ok(found) }
    }

    fn indices(&self, is_it: impl Fn(&ApiKey) -> bool) -> Vec<usize> {
        (0..self.keys.len()).filter(|index| is_it(&self.keys[*index])).collect()
    }

    fn set(&mut self, index: usize, field: &str, ms: u64) {
        if let Some(table) = self.tables().get_mut(index) {
            table[field] = time(ms);
        }
    }

    /// The keys as they are written, in the order of `keys`.
    fn tables(&mut self) -> &mut ArrayOfTables {
        let item = self.document.entry("keys").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        if !item.is_array_of_tables() {
            // `keys = [{ … }]` means the same.
            let tables = std::mem::take(item).into_array_of_tables().unwrap_or_default();
            *item = Item::ArrayOfTables(tables);
        }
        item.as_array_of_tables_mut().expect("it was made one above")
    }
}

fn check(new: &NewKey, now_ms: u64) -> Result<(), KeyFileError> {
    let wrong = |why: String| Err(KeyFileError::Rejected(why));
    if !is_tenant_name(&new.name) {
        return wrong(
            "The name of a key is 1 to 200 characters that can be seen, without spaces around them"
                .to_owned(),
        );
    }
    if new.tenant.as_deref().is_some_and(|tenant| !is_tenant_name(tenant)) {
        return wrong(
            "A tenant is 1 to 200 characters that can be seen, without spaces around them".to_owned(),
        );
    }
    if let Some(role) = new.roles.iter().find(|role| !is_word(role)) {
        return wrong(format!("{role:?} cannot be a role: it is one word without spaces"));
    }
    if let Some(scope) = new.scopes.iter().flatten().find(|scope| !is_scope(scope)) {
        return wrong(format!("{scope:?} cannot be a scope: it has no spaces, quotes or backslashes"));
    }
    if let Some(name) = new.endpoints.iter().flatten().find(|name| !is_endpoint(name)) {
        return wrong(format!("{name:?} cannot be an endpoint: it has lower-case letters, digits and -"));
    }
    if new.expires_ms.is_some_and(|end| end <= now_ms) {
        return wrong("The key would have expired already: choose a later time".to_owned());
    }
    Ok(())
}

fn list(words: &[String]) -> Item {
    value(words.iter().map(String::as_str).collect::<Array>())
}

/// A time of TOML, in seconds: nobody wants to read more. Rounded up, so that nothing ends too early.
fn time(ms: u64) -> Item {
    let text = rfc3339_ms(ms.div_ceil(1000) * 1000).replace(".000Z", "Z");
    match text.parse::<Datetime>() {
        Ok(time) => value(time),
        Err(_) => value(text),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn file(text: &str) -> KeyFile {
        KeyFile::parse(Path::new("keys.toml"), text).unwrap()
    }

    fn again(file: &KeyFile) -> Vec<ApiKey> {
        KeyFile::parse(Path::new("keys.toml"), &file.document.to_string()).unwrap().keys
    }

    fn ann() -> NewKey {
        NewKey {
            name: "ann".into(),
            tenant: Some("acme".into()),
            roles: vec!["dev".into()],
            scopes: Some(vec!["mcp".into()]),
            endpoints: Some(vec!["research".into()]),
            expires_ms: Some(90_000),
        }
    }

    #[test]
    fn what_is_added_is_read_and_comments_stay() {
        let mut file = file("# Whoever reads this: chmod 600\n");
        let key = file.add(ann(), 1000).unwrap();
        assert_eq!(again(&file), file.keys);
        let text = file.document.to_string();
        assert!(text.starts_with("# Whoever") && text.contains("expires = 1970-01-01T00:01:30Z"), "{text}");
        assert!(!text.contains(key.reveal()) && !text.contains(&key.reveal()[18..]), "{text}");
        assert!(matches!(file.add(ann(), 2000), Err(KeyFileError::NameTaken(_))));
    }

    #[test]
    fn revoked_by_name_or_id_and_only_once() {
        let mut file = file("");
        file.add(ann(), 1000).unwrap();
        let id = file.keys[0].id.clone();
        assert!(matches!(file.revoke("bob", 2000), Err(KeyFileError::NoSuchKey(_))));
        assert_eq!(file.revoke(&id, 2000).unwrap().len(), 1);
        assert_eq!(file.revoke("ann", 3000).unwrap(), []);
        assert_eq!(again(&file)[0].revoked_ms, Some(2000));
        assert_eq!(file.keys[0].state(0), KeyState::Revoked);
        // A name is never given to somebody else, and nobody gets access back by the way.
        assert!(matches!(file.add(ann(), 4000), Err(KeyFileError::Revoked(name)) if name == "ann"));
        for name in ["ann", &*id] {
            let refused = file.rotate(name, Rotation::default(), 4000);
            assert!(matches!(refused, Err(KeyFileError::Revoked(name)) if name == "ann"));
        }
        assert_eq!(file.keys.len(), 1);
    }

    #[test]
    fn rotated_at_once_or_with_grace() {
        let mut file = file("");
        let first = file.add(ann(), 1000).unwrap();
        let second = file.rotate("ann", Rotation::default(), 11_000).unwrap();
        assert_ne!(first.reveal(), second.reveal());
        // The old one is seen, and no good.
        let states = |file: &KeyFile, now| file.keys.iter().map(|key| key.state(now)).collect::<Vec<_>>();
        assert_eq!(states(&file, 11_000), [KeyState::Revoked, KeyState::Valid]);
        // The lifetime of the old one, from now on.
        assert_eq!(file.keys[1].expires_ms, Some(100_000));
        assert_eq!(again(&file), file.keys);
        file.rotate("ann", Rotation { grace_ms: 5000, expires_ms: Some(200_000) }, 20_000).unwrap();
        let ends: Vec<_> = file.keys.iter().map(|key| key.expires_ms).collect();
        assert_eq!(ends, [Some(90_000), Some(25_000), Some(200_000)]);
        assert_eq!(again(&file), file.keys);
        assert!(file.keys.iter().all(|key| *key.name == *"ann" && key.tenant.as_deref() == Some("acme")));
        file.rotate("ann", Rotation { grace_ms: 5000, expires_ms: None }, 30_000).unwrap();
        use KeyState::{Expired, Revoked, Valid};
        assert_eq!(states(&file, 30_000), [Revoked, Expired, Valid, Valid]);
        assert_eq!(file.revoke("ann", 31_000).unwrap().len(), 3);
        assert_eq!(again(&file), file.keys);
    }

    #[test]
    fn a_key_that_has_expired_can_be_rotated_and_one_that_is_left_over_too() {
        let mut file = file("");
        file.add(ann(), 1000).unwrap();
        file.rotate("ann", Rotation { grace_ms: 5000, expires_ms: None }, 100_000).unwrap();
        assert_eq!(file.keys.len(), 2);
        file.rotate("ann", Rotation { grace_ms: 5000, expires_ms: None }, 101_000).unwrap();
        // The new one is lost: the one before is still good, and so is its holder.
        let newest = file.keys[2].id.clone();
        file.revoke(&newest, 102_000).unwrap();
        file.rotate(&newest, Rotation::default(), 103_000).unwrap();
        assert_eq!(file.keys.iter().filter(|key| key.state(103_000) == KeyState::Valid).count(), 1);
    }

    #[test]
    fn a_holder_keeps_few_of_the_old_keys() {
        let mut file = file("");
        file.add(NewKey { name: "bob".into(), ..NewKey::default() }, 1000).unwrap();
        file.revoke("bob", 1000).unwrap();
        file.add(NewKey { name: "ann".into(), ..NewKey::default() }, 1000).unwrap();
        for second in 2..20 {
            file.rotate("ann", Rotation::default(), second * 1000).unwrap();
        }
        assert_eq!(file.keys.len(), 1 + MOST_DEAD + 1);
        assert_eq!(&*file.keys[0].name, "bob");
        // The newest ones.
        let created: Vec<_> = file.keys[1..].iter().map(|key| key.created_ms.unwrap() / 1000).collect();
        assert_eq!(created, (11..20).collect::<Vec<u64>>());
        assert_eq!(again(&file), file.keys);
    }

    #[test]
    fn keys_written_in_one_line_can_be_changed_too() {
        let hash = "sha256:0000000000000000000000000000000000000000000000000000000000000001";
        let mut file =
            file(&format!("keys = [{{ id = \"abcdEF12\", name = \"ann\", hash = \"{hash}\" }}]\n"));
        file.revoke("ann", 1000).unwrap();
        file.add(NewKey { name: "bob".into(), ..NewKey::default() }, 2000).unwrap();
        assert_eq!(again(&file), file.keys);
    }

    #[test]
    fn what_cannot_be_a_key() {
        let new = |change: fn(&mut NewKey)| {
            let mut key = ann();
            change(&mut key);
            file("").add(key, 1000).unwrap_err().to_string()
        };
        assert!(new(|key| key.name = " ".into()).contains("name"));
        assert!(new(|key| key.tenant = Some("a\u{200b}".into())).contains("tenant"));
        assert!(new(|key| key.roles = vec!["a b".into()]).contains("role"));
        assert!(new(|key| key.scopes = Some(vec!["a\"".into()])).contains("scope"));
        assert!(new(|key| key.endpoints = Some(vec!["A".into()])).contains("endpoint"));
        assert!(new(|key| key.expires_ms = Some(1000)).contains("expired"));
    }
}
