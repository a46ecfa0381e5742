//! One look at one member: cheaper than an [`Object`](super::Object) for whoever wants nothing else of it.

use std::borrow::Cow;
use std::ops::Range;

use smallvec::SmallVec;

use super::members::start_value;
use super::scan::{Limits, Scan, Scanner};
use super::text::Json;

const LIMITS: Limits = Limits { max_depth: 127, max_bytes: usize::MAX };

impl Json {
    /// The first member of this name, as text; `None` if this is no object or has none. Of what stands behind it, nothing is read.
    ///
    /// ```
    /// use tidegate_protocol::Json;
    ///
    /// let info = Json::trusted(r#"{"name": "tide", "version": "1"}"#);
    /// assert_eq!(info.member("version"), Some("\"1\""));
    /// assert_eq!(info.member("title"), None);
    /// ```
    pub fn member(&self, name: &str) -> Option<&str> {
        let found = find(self.as_str(), name).ok()??;
        Some(&self.as_str()[found.start..found.end])
    }

    /// The content of the first member of this name, if that is a string.
    pub fn member_str(&self, name: &str) -> Option<Cow<'_, str>> {
        let found = find(self.as_str(), name).ok()??;
        let raw = &self.as_str()[found.start..found.end];
        match raw.strip_prefix('"')?.strip_suffix('"') {
            Some(plain) if !found.escapes => Some(Cow::Borrowed(plain)),
            _ => serde_json::from_str(raw).ok().map(Cow::Owned),
        }
    }
}

/// Where a value stands, and whether it is a string with escapes.
struct Found {
    start: usize,
    end: usize,
    escapes: bool,
}

/// Where the values of all members of this name stand, in whatever spelling: more than one if the name is there twice. `None` if this is no object.
pub(crate) fn places(text: &str, name: &str) -> Option<SmallVec<[Range<usize>; 1]>> {
    all(text, name).ok()
}

fn all(text: &str, name: &str) -> Scan<SmallVec<[Range<usize>; 1]>> {
    let mut places = SmallVec::new();
    let mut scanner = Scanner::new(text, &LIMITS);
    let mut more = scanner.open_object(0)?;
    while more {
        scanner.next_key()?;
        let is_it = scanner.key.is(text, name);
        let (start, _) = start_value(&mut scanner);
        scanner.value(1)?;
        if is_it {
            places.push(start..scanner.at);
        }
        more = scanner.more_members()?;
    }
    Ok(places)
}

fn find(text: &str, name: &str) -> Scan<Option<Found>> {
    let mut scanner = Scanner::new(text, &LIMITS);
    let mut more = scanner.open_object(0)?;
    while more {
        scanner.next_key()?;
        let is_it = scanner.key.is(text, name);
        let (start, _) = start_value(&mut scanner);
        scanner.value(1)?;
        if is_it {
            return Ok(Some(Found { start, end: scanner.at, escapes: scanner.escapes }));
        }
        more = scanner.more_members()?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Object;

    #[test]
    fn one_member() {
        let json = Json::trusted(r#" { "a\u0062" : [1,{"c":2}] , "c":"x\ny","d":null} "#);
        assert_eq!(json.member("ab"), Some(r#"[1,{"c":2}]"#));
        assert_eq!((json.member("c"), json.member_str("c").as_deref()), (Some(r#""x\ny""#), Some("x\ny")));
        assert_eq!((json.member("d"), json.member_str("d")), (Some("null"), None));
        assert_eq!((json.member("e"), Json::trusted("[1]").member("a")), (None, None));
        assert_eq!(Json::empty_object().member("a"), None);
    }

    proptest! {
        #[test]
        fn as_an_object_has_it(members in prop::collection::btree_map("[a-c\"é]{0,3}", "[a\\\\\"😀\n]{0,4}", 0..4)) {
            let json = Json::of(&members).unwrap();
            let object = Object::of(&json).unwrap();
            for name in members.keys().map(String::as_str).chain(["", "a"]) {
                prop_assert_eq!(json.member(name), object.get(name));
                prop_assert_eq!(json.member_str(name), object.str(name));
            }
        }
    }
}
