//! What seals: keys that nobody can guess.

use std::collections::HashSet;

use tidegate_protocol::seal::Key;
use tidegate_service::secrets::register;

use super::Resolver;

/// Fewer random characters could be tried out.
const LEAST: usize = 32;
/// So many different ones are in any random text of that length.
const LEAST_DIFFERENT: usize = 8;
/// Most keys. Each is tried when something is opened.
const MOST: usize = 8;

impl Resolver<'_> {
    pub(super) fn sealing_keys(&mut self, written: &[String]) -> Vec<Key> {
        let at = ["sealing_keys"];
        // An empty one stands for a variable that may not be set.
        let written: Vec<&str> = written.iter().map(|key| key.trim()).filter(|key| !key.is_empty()).collect();
        if written.len() > MOST {
            self.wrong(&at, format!("must have at most {MOST} keys"));
        }
        for key in &written {
            register(key);
            let different: HashSet<char> = key.chars().collect();
            if key.chars().count() < LEAST || different.len() < LEAST_DIFFERENT {
                let what = format!(
                    "each key must be at least {LEAST} random characters, such as what openssl rand -hex 32 prints"
                );
                self.wrong(&at, what);
            }
        }
        written.into_iter().map(Key::derive).collect()
    }
}
