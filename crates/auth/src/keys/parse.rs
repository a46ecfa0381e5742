//! From text to keys. Every mistake is named, not only the first.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use toml::{Table, Value};

use super::api_key::ApiKey;
use super::key_text::{ID_LEN, KeyHash};
use crate::tenant_name::is_tenant_name;

/// How many keys a file has at most.
pub(super) const MOST_KEYS: usize = 10_000;
/// How many mistakes are named: whoever has more has another kind of file.
const MOST_MISTAKES: usize = 20;
/// How many roles, scopes or endpoints a key has at most.
const MOST_WORDS: usize = 64;

const FIELDS: [&str; 10] =
    ["id", "name", "tenant", "roles", "scopes", "endpoints", "hash", "created", "expires", "revoked"];

/// The keys of a file, or its mistakes.
pub(super) fn parse(text: &str) -> Result<Vec<ApiKey>, Vec<String>> {
    let mut document: Table = toml::from_str(text).map_err(|error| vec![syntax(text, &error)])?;
    let mut mistakes = Vec::new();
    let entries = match document.remove("keys") {
        None => Vec::new(),
        Some(Value::Array(entries)) => entries,
        Some(_) => {
            mistakes.push("keys must be tables: write [[keys]] before each key".to_owned());
            Vec::new()
        }
    };
    for unknown in document.keys() {
        mistakes.push(format!("{unknown:?} means nothing here: there is [[keys]] and nothing else"));
    }
    if entries.len() > MOST_KEYS {
        mistakes
            .push(format!("it has {} keys, and {MOST_KEYS} are the most: remove old ones", entries.len()));
        return Err(mistakes);
    }
    let mut keys: Vec<ApiKey> = Vec::with_capacity(entries.len());
    let mut ids = HashSet::new();
    for (index, entry) in entries.into_iter().enumerate() {
        let mut entry = Entry::new(index, entry, &mut mistakes);
        if let Some(key) = entry.key() {
            if !ids.insert(key.id.clone()) {
                let id = &key.id;
                entry.mistake(&format!("the id {id} is that of another key already"));
            } else {
                keys.push(key);
            }
        }
        if mistakes.len() >= MOST_MISTAKES {
            mistakes.truncate(MOST_MISTAKES);
            mistakes.push("and perhaps more".to_owned());
            break;
        }
    }
    if mistakes.is_empty() { Ok(keys) } else { Err(mistakes) }
}

/// Where the text stops being TOML. Only that: the text itself may be anything.
fn syntax(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(0, |span| span.start).min(text.len());
    let line = 1 + text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
    format!("line {line} is not TOML: {}", error.message())
}

/// One entry while it is read.
struct Entry<'a> {
    label: String,
    table: Table,
    mistakes: &'a mut Vec<String>,
    failed: bool,
}

impl<'a> Entry<'a> {
    fn new(index: usize, entry: Value, mistakes: &'a mut Vec<String>) -> Entry<'a> {
        let table = match entry {
            Value::Table(table) => table,
            _ => Table::new(),
        };
        let label = match table.get("name") {
            Some(Value::String(name)) if is_tenant_name(name) => format!("key {} ({name})", index + 1),
            _ => format!("key {}", index + 1),
        };
        Entry { label, table, mistakes, failed: false }
    }

    fn key(&mut self) -> Option<ApiKey> {
        let unknown: Vec<String> =
            self.table.keys().filter(|field| !FIELDS.contains(&field.as_str())).cloned().collect();
        for field in unknown {
            self.mistake(&format!("{field:?} means nothing: there are {}", FIELDS.join(", ")));
        }
        let id = self.required("id", is_id, "8 letters and digits");
        let name = self.required("name", is_tenant_name, "1 to 200 characters that can be seen");
        let tenant = self.text("tenant", is_tenant_name, "1 to 200 characters that can be seen");
        let roles = self.words("roles", is_word, "words without spaces");
        let scopes = self.words("scopes", is_scope, "scopes as in RFC 6749, without spaces and quotes");
        let endpoints =
            self.words("endpoints", is_endpoint, "names of endpoints, default for the default one");
        let hash = self.required("hash", |text| hash_of(text).is_some(), "sha256: and 64 hexadecimal digits");
        let created_ms = self.time("created");
        let expires_ms = self.time("expires");
        let revoked_ms = self.time("revoked");
        if self.failed {
            return None;
        }
        Some(ApiKey {
            id: id?,
            name: name?,
            tenant,
            roles: roles.unwrap_or_default(),
            scopes,
            endpoints,
            hash: hash_of(&hash?)?,
            created_ms,
            expires_ms,
            revoked_ms,
        })
    }

    fn mistake(&mut self, what: &str) {
        self.failed = true;
        self.mistakes.push(format!("{}: {what}", self.label));
    }

    fn required(&mut self, field: &str, is_good: impl Fn(&str) -> bool, form: &str) -> Option<Arc<str>> {
        if !self.table.contains_key(field) {
            self.mistake(&format!("{field} is missing"));
        }
        self.text(field, is_good, form)
    }

    fn text(&mut self, field: &str, is_good: impl Fn(&str) -> bool, form: &str) -> Option<Arc<str>> {
        match self.table.get(field)? {
            Value::String(text) if is_good(text) => Some(text.as_str().into()),
            _ => {
                self.mistake(&format!("{field} must be {form}"));
                None
            }
        }
    }

    fn words(&mut self, field: &str, is_good: impl Fn(&str) -> bool, form: &str) -> Option<Vec<Arc<str>>> {
        let words = match self.table.get(field)? {
            Value::Array(list) if list.len() <= MOST_WORDS => {
                list.iter().map(|one| one.as_str().filter(|text| is_good(text)).map(Arc::from)).collect()
            }
            _ => None,
        };
        if words.is_none() {
            self.mistake(&format!("{field} must be a list of at most {MOST_WORDS} {form}"));
        }
        words
    }

    fn time(&mut self, field: &str) -> Option<u64> {
        let time = match self.table.get(field)? {
            Value::Datetime(time) => millis(&time.to_string()),
            Value::String(text) => millis(text),
            _ => None,
        };
        if time.is_none() {
            self.mistake(&format!("{field} must be a time like 2027-01-31T12:00:00Z"));
        }
        time
    }
}

fn millis(text: &str) -> Option<u64> {
    let time = humantime::parse_rfc3339(text).ok()?;
    time.duration_since(UNIX_EPOCH).ok()?.as_millis().try_into().ok()
}

fn is_id(text: &str) -> bool {
    text.len() == ID_LEN && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Also what a role is.
pub(super) fn is_word(text: &str) -> bool {
    (1..=128).contains(&text.len()) && !text.contains(|char: char| char.is_whitespace() || char.is_control())
}

/// RFC 6749, section 3.3.
pub(super) fn is_scope(text: &str) -> bool {
    let is_good = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    (1..=128).contains(&text.len()) && text.bytes().all(is_good)
}

pub(super) fn is_endpoint(text: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=64).contains(&text.len()) && text.bytes().all(is_good)
}

fn hash_of(text: &str) -> Option<KeyHash> {
    let digits = text.strip_prefix("sha256:").filter(|digits| digits.len() == 64)?;
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000001";

    #[test]
    fn a_file_by_hand() {
        let text = format!(
            "# Ours\n[[keys]]\nid = \"abcdEF12\"\nname = \"ann\"\ntenant = \"acme\"\nroles = [\"dev\"]\nscopes = []\n\
             endpoints = [\"default\", \"research\"]\nhash = \"{HASH}\"\ncreated = 2026-07-28T12:00:00Z\n\
             expires = \"2027-01-01T00:00:00Z\"\n[[keys]]\nid = \"abcdEF13\"\nname = \"bob\"\nhash = \"{HASH}\"\n\
             revoked = 2026-07-28T12:00:00.5Z\n"
        );
        let keys = parse(&text).unwrap();
        assert_eq!(keys[0].created_ms, Some(1_785_240_000_000));
        assert_eq!(keys[0].scopes.as_deref(), Some(&[][..]));
        assert_eq!(keys[0].endpoints.as_ref().map(Vec::len), Some(2));
        assert_eq!((keys[1].scopes.as_ref(), keys[1].revoked_ms), (None, Some(1_785_240_000_500)));
        assert_eq!(keys[1].hash[31], 1);
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn every_mistake_is_named() {
        let good = format!("[[keys]]\nid = \"abcdEF12\"\nname = \"ann\"\nhash = \"{HASH}\"\n");
        for (text, words) in [
            ("keys = 1".to_owned(), &["write [[keys]]"][..]),
            ("[auth]\n".to_owned(), &["\"auth\" means nothing"]),
            ("[[keys]]\nid = \n".to_owned(), &["line 2 is not TOML"]),
            ("[[keys]]\n".to_owned(), &["key 1: id is missing", "name is missing", "hash is missing"]),
            (
                format!(
                    "{good}tenant = \" x\"\nscopes = [\"a b\"]\nroles = 1\nendpoints = [\"/x\"]\nexpires = \"soon\""
                ),
                &["key 1 (ann): tenant must be", "scopes", "roles", "endpoints", "expires"],
            ),
            (format!("{good}{good}"), &["key 2 (ann): the id abcdEF12 is that of another"]),
            (good.replace("hash = \"sha256", "hash = \"md5"), &["hash must be sha256:"]),
            (format!("{good}secret = \"x\""), &["\"secret\""]),
            (format!("{good}expires = 2026-07-28T12:00:00+02:00"), &["expires must be a time"]),
            (format!("{good}expires = 2026-07-28"), &["expires must be a time"]),
        ] {
            let mistakes = parse(&text).unwrap_err().join("\n");
            assert!(words.iter().all(|word| mistakes.contains(word)), "{text}\n{mistakes}");
        }
        assert_eq!(parse(&"[[keys]]\n".repeat(50)).unwrap_err().len(), MOST_MISTAKES + 1);
        assert!(parse(&"[[keys]]\n".repeat(10_001)).unwrap_err()[0].contains("10001 keys"));
    }
}
