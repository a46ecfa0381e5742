//! Secrets of the configuration, known to the whole process so that none of them gets into a log line or an error.
//!
//! Whoever reads a secret says so ([`register`]), or holds it as a [`Secret`], which says so by itself; whoever writes a line for
//! people asks for it ([`mask`]). Results of tools are never looked at: what a server answers is its caller's.

mod json;
mod names;

use std::borrow::Cow;
use std::fmt;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

pub use json::hide_in_json;
pub(crate) use names::first_of;
pub use names::hide_in_text;

/// What stands where a secret was.
const HIDDEN: &str = "***";
/// Shorter values are words and numbers that are found everywhere.
const SHORTEST: usize = 8;
/// Parts of a path that are shorter are names.
const RANDOM: usize = 16;
/// How many are known at most. The oldest are forgotten first: they are those of configurations that are gone.
const MOST: usize = 4096;

/// The values, the longest first, so that no part of one is left when another is a piece of it.
static SECRETS: RwLock<Vec<Registered>> = RwLock::new(Vec::new());
/// Whether there are any: without secrets, masking costs one look at this.
static ANY: AtomicBool = AtomicBool::new(false);

struct Registered {
    value: String,
    /// How many came before it.
    age: u64,
}

/// A token, a password or a key. Its `Debug` shows nothing of it, and it has no `Display`.
///
/// ```
/// use tidegate_service::secrets::{Secret, mask};
///
/// let key = Secret::new("sk-a-key-of-the-docs");
/// assert_eq!(format!("{key:?}"), "Secret(…)");
/// assert_eq!(mask("refused: sk-a-key-of-the-docs"), "refused: ***");
/// assert_eq!(key.reveal(), "sk-a-key-of-the-docs");
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text, which no log line and no error shows from now on.
    pub fn new(text: impl Into<String>) -> Secret {
        let text = text.into();
        register(&text);
        Secret(text)
    }

    /// The text itself, for where it has to be sent.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Secret {
        Secret::new(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Secret {
        Secret::new(text)
    }
}

/// Takes a value for a secret from now on, as a whole, line by line, and without the `Bearer` before it: from 8 characters
/// on.
pub fn register(value: &str) {
    let value = value.trim();
    let bare =
        value.split_once(' ').map(|(_, rest)| rest.trim()).filter(|rest| !rest.contains(char::is_whitespace));
    for piece in std::iter::once(value).chain(bare).chain(value.lines().map(str::trim)) {
        if piece.len() >= SHORTEST && !piece.starts_with("-----") {
            add(piece);
            // As it looks inside quotes of Rust, in JSON, and in JSON that is a text in JSON.
            let (quoted, json) = (piece.escape_debug().to_string(), in_json(piece));
            let nested = in_json(&json);
            for other in [quoted, json, nested].iter().filter(|other| *other != piece) {
                add(other);
            }
        }
    }
}

/// A text as it stands between the quotes of JSON.
fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Takes the value of a setting for a secret, unless it is seen to be none: a path that exists, or an address without
/// anything that looks secret.
pub fn register_setting(value: &str) {
    match value.split_once("://") {
        Some((_, rest)) if !value.contains(char::is_whitespace) => register_address(value, rest),
        _ if std::path::Path::new(value.trim()).exists() => {}
        _ => register(value),
    }
}

/// Takes what gives access in an address for secrets: who logs in, the query, and whatever in its path nobody would type,
/// which is how webhooks are written. With any of these, the address as a whole is one, too.
fn register_address(whole: &str, rest: &str) {
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut path = before.split('/');
    let login = path.next().unwrap_or_default().rsplit_once('@').map(|(login, _)| login);
    let login = login.map(|login| login.split_once(':').map_or(login, |(_, password)| password));
    let query = query.split('&').filter_map(|pair| pair.split_once('=')).map(|(_, value)| value);
    let secrets: Vec<&str> =
        login.into_iter().chain(query).chain(path.chain([fragment]).filter(|part| is_random(part))).collect();
    secrets.iter().for_each(|secret| register(secret));
    if secrets.iter().any(|secret| !secret.is_empty()) {
        register(whole);
    }
}

/// Whether a part of a path is not a word: long, with letters and digits in it.
fn is_random(part: &str) -> bool {
    let has = |kind: fn(&char) -> bool| part.chars().any(|c| kind(&c));
    part.len() >= RANDOM && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
}

fn add(value: &str) {
    let mut known = SECRETS.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    if known.iter().any(|one| one.value == value) {
        return;
    }
    let age = known.iter().map(|one| one.age + 1).max().unwrap_or_default();
    if known.len() == MOST {
        let oldest = known.iter().enumerate().min_by_key(|(_, one)| one.age).map(|(at, _)| at);
        oldest.map(|at| known.remove(at));
    }
    let at = known.partition_point(|one| one.value.len() >= value.len());
    known.insert(at, Registered { value: value.to_owned(), age });
    ANY.store(true, Ordering::Release);
}

/// The text with `***` for every secret that is known.
pub fn mask(text: &str) -> Cow<'_, str> {
    if !ANY.load(Ordering::Acquire) || text.len() < SHORTEST {
        return Cow::Borrowed(text);
    }
    let known = SECRETS.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut masked = Cow::Borrowed(text);
    for one in known.iter().filter(|one| one.value.len() <= text.len()) {
        if masked.contains(&one.value) {
            masked = Cow::Owned(masked.replace(&one.value, HIDDEN));
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked() {
        assert_eq!(mask("nothing is known of sk-unit-0001 yet"), "nothing is known of sk-unit-0001 yet");
        register("Bearer sk-unit-0001");
        register("sk-unit-0001-longer");
        register("short");
        register("-----BEGIN X-----\nMIIunit0002\n-----END X-----");
        register("say:\"unit0003\"");
        for (text, want) in [
            ("key sk-unit-0001, twice sk-unit-0001!", "key ***, twice ***!"),
            ("Authorization: Bearer sk-unit-0001", "Authorization: ***"),
            ("sk-unit-0001-longer", "***"),
            ("a short word", "a short word"),
            ("line MIIunit0002 of a key", "line *** of a key"),
            (r#"quoted as "say:\"unit0003\"""#, r#"quoted as "***""#),
        ] {
            assert_eq!(mask(text), want);
        }
    }

    #[test]
    fn paths_and_addresses_are_no_secrets() {
        let here = std::env::current_dir().unwrap();
        register_setting(here.to_str().unwrap());
        register_setting("postgres://someone:unit-0004-pw@db.example:5432/things?sslkey=unit-0005-key");
        register_setting("unit-0006-value");
        let text = "db.example:5432/things unit-0004-pw unit-0005-key unit-0006-value";
        assert_eq!(mask(text), "db.example:5432/things *** *** ***");
        assert_eq!(mask(here.to_str().unwrap()), here.to_str().unwrap());
        for plain in ["https://unit-0007.example/mcp", "http://127.0.0.1:8080/v1/tools"] {
            register_setting(plain);
            assert_eq!(mask(plain), plain);
        }
    }

    #[test]
    fn addresses_with_secrets_are_masked_as_a_whole() {
        for (address, pieces) in [
            ("https://hooks.example/services/T0/Xk29dLq8Zw31unit0008", "Xk29dLq8Zw31unit0008"),
            ("https://api.example/mcp?key=unit9", "https://api.example/mcp?key=unit9"),
            ("https://unit-0010-token@git.example/", "unit-0010-token"),
            ("https://u:pw1@example.org/a", "https://u:pw1@example.org/a"),
        ] {
            register_setting(address);
            assert_eq!(mask(&format!("cannot reach {address}!")), "cannot reach ***!");
            assert_eq!(mask(&format!("it said {pieces}")), "it said ***", "{address}");
        }
    }
}
