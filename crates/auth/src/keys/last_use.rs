//! [`LastUse`]: when keys were last used.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use tidegate_service::rfc3339_ms;

use super::table::KeyTable;
use super::{file_lock, save};

const NAME: &str = "keys-used.json";
/// How large the file may be: 10,000 keys take half of it.
const MOST_BYTES: u64 = 1024 * 1024;

/// When keys were last used, by their ids: `keys-used.json` in the state directory. A gateway writes it now and then; several that
/// share a directory write the same file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastUse(BTreeMap<String, u64>);

impl LastUse {
    /// Reads what is known. A file that is not there or makes no sense says nothing: nothing depends on it.
    pub fn read(state_dir: &Path) -> LastUse {
        let mut text = String::new();
        let read =
            File::open(file(state_dir)).and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text));
        if read.is_err() {
            return LastUse::default();
        }
        let times: BTreeMap<String, String> = serde_json::from_str(&text).unwrap_or_default();
        LastUse(times.into_iter().filter_map(|(id, time)| Some((id, millis(&time)?))).collect())
    }

    /// When the key with this id was last used, in milliseconds since 1970.
    pub fn get(&self, id: &str) -> Option<u64> {
        self.0.get(id).copied()
    }

    /// Adds the uses of the keys of a table to what is written. Keys that are gone are forgotten.
    pub(crate) fn write(state_dir: &Path, table: &KeyTable) -> io::Result<()> {
        let path = file(state_dir);
        std::fs::create_dir_all(state_dir)?;
        // Whoever holds it writes the same times, or newer ones come soon.
        let Some(_lock) = file_lock::acquire(&save::beside(&path, "lock"), std::time::Duration::ZERO)? else {
            return Ok(());
        };
        let before = LastUse::read(state_dir);
        let mut now: BTreeMap<String, u64> = table.uses().map(|(id, last)| (id.to_string(), last)).collect();
        for (id, last) in before.0.iter().filter(|(id, _)| table.knows(id)) {
            let newest = now.entry(id.clone()).or_default();
            *newest = (*newest).max(*last);
        }
        if now == before.0 {
            return Ok(());
        }
        let times: BTreeMap<&str, String> =
            now.iter().map(|(id, last)| (id.as_str(), rfc3339_ms(*last))).collect();
        save::replace(&path, &serde_json::to_string_pretty(&times)?)
    }
}

fn file(state_dir: &Path) -> PathBuf {
    state_dir.join(NAME)
}

fn millis(text: &str) -> Option<u64> {
    let time = humantime::parse_rfc3339(text).ok()?;
    time.duration_since(UNIX_EPOCH).ok()?.as_millis().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::super::{KeyFile, NewKey};
    use super::*;

    #[test]
    fn the_last_use_is_found_again_and_that_of_keys_that_are_gone_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        let add = |name: &str| {
            let new = NewKey { name: name.into(), ..NewKey::default() };
            KeyFile::change(&path, |file| file.add(new, 1000)).unwrap()
        };
        let (ann, bob) = (add("ann"), add("bob"));
        let file = KeyFile::read(&path).unwrap();
        let (ann_id, bob_id) = (&file.keys()[0].id, &file.keys()[1].id);
        let first = KeyTable::new(file.keys());
        first.find(ann.reveal(), 5000).unwrap().1.note(5000);
        LastUse::write(folder.path(), &first).unwrap();
        // Another process, which saw only Bob.
        let second = KeyTable::new(file.keys());
        second.find(bob.reveal(), 6000).unwrap().1.note(6000);
        LastUse::write(folder.path(), &second).unwrap();
        let known = LastUse::read(folder.path());
        assert_eq!((known.get(ann_id), known.get(bob_id)), (Some(5000), Some(6000)));
        LastUse::write(folder.path(), &KeyTable::new(&file.keys()[1..])).unwrap();
        let known = LastUse::read(folder.path());
        assert_eq!((known.get(ann_id), known.get(bob_id)), (None, Some(6000)));
        std::fs::write(folder.path().join(NAME), "nonsense").unwrap();
        assert_eq!(LastUse::read(folder.path()), LastUse::default());
    }
}
