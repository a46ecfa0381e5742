//! The members of an object: where they stand, and that no two have the same name.

use std::borrow::Cow;
use std::collections::HashSet;

use bytestring::ByteString;

use super::scan::{FaultKind, Scan, Scanner};
use super::text::Json;

/// How many members need no allocation of their own.
const NEAR: usize = 4;

/// Where the members of an object stand.
#[derive(Clone, Default)]
pub(crate) struct Members {
    len: usize,
    /// The members, if these are enough.
    near: [Position; NEAR],
    /// All members, if not.
    far: Vec<Position>,
    /// A bit for each length that a name has, modulo 64. It tells most absent names without comparing any.
    lengths: u64,
}

impl Members {
    #[inline]
    pub(crate) fn as_slice(&self) -> &[Position] {
        self.near.get(..self.len).unwrap_or(&self.far)
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [Position] {
        self.near.get_mut(..self.len).unwrap_or(&mut self.far)
    }

    /// Whether there may be a name of this length.
    #[inline]
    fn may_have(&self, length: usize) -> bool {
        self.lengths & (1 << (length % 64)) != 0
    }

    #[inline]
    pub(crate) fn find(&self, text: &str, name: &str) -> Option<&Position> {
        if !self.may_have(name.len()) {
            return None;
        }
        self.as_slice().iter().find(|m| m.is(text, name))
    }

    /// Records a member whose value is consumed: where the value started, and whether it is a string.
    #[inline(always)]
    pub(crate) fn push(&mut self, scanner: &Scanner<'_>, key: Key, (start, is_string): (usize, bool)) {
        let length = if key.escaped { key.name(scanner.text).len() } else { key.len() };
        self.lengths |= 1 << (length % 64);
        let position = Position {
            key_start: key.start,
            key_end: key.end,
            value_start: start as u32,
            value_end: scanner.at as u32,
            escaped: key.escaped,
            plain: is_string && !scanner.escapes,
        };
        match self.near.get_mut(self.len) {
            Some(near) => *near = position,
            None => self.push_far(position),
        }
        self.len += 1;
    }

    #[cold]
    fn push_far(&mut self, position: Position) {
        if self.far.is_empty() {
            self.far.extend(self.near);
        }
        self.far.push(position);
    }
}

/// Goes to a value. Returns where it starts and whether it is a string.
#[inline(always)]
pub(crate) fn start_value(scanner: &mut Scanner<'_>) -> (usize, bool) {
    let is_string = scanner.next_token() == Some(b'"');
    scanner.escapes = false;
    (scanner.at, is_string)
}

/// For those who only want to know that no name comes twice.
pub(crate) fn empty_members() -> Members {
    Members::default()
}

/// Where a member stands in the text. `u32` because messages are far below 4 GiB.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Position {
    pub(super) key_start: u32,
    pub(super) key_end: u32,
    pub(super) value_start: u32,
    pub(super) value_end: u32,
    /// Whether the key holds escapes.
    escaped: bool,
    /// Whether the value is a string without escapes.
    pub(super) plain: bool,
}

impl Position {
    #[inline]
    fn key(&self) -> Key {
        Key { start: self.key_start, end: self.key_end, escaped: self.escaped }
    }

    #[inline]
    pub(super) fn name<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.key().name(text)
    }

    #[inline]
    pub(super) fn is(&self, text: &str, name: &str) -> bool {
        self.key().is(text, name)
    }

    #[inline]
    pub(super) fn value<'t>(&self, text: &'t str) -> &'t str {
        &text[self.value_start as usize..self.value_end as usize]
    }

    pub(super) fn json(&self, text: &ByteString) -> Json {
        Json::from_span(text, self.value_start as usize, self.value_end as usize)
    }

    /// The content of a string value.
    #[inline]
    pub(super) fn content<'t>(&self, text: &'t str) -> Option<Cow<'t, str>> {
        if self.plain {
            // The quotes stay outside.
            return Some(Cow::Borrowed(&text[self.value_start as usize + 1..self.value_end as usize - 1]));
        }
        self.decoded(text)
    }

    #[cold]
    fn decoded<'t>(&self, text: &'t str) -> Option<Cow<'t, str>> {
        let raw = self.value(text);
        if raw.starts_with('"') { serde_json::from_str::<String>(raw).ok().map(Cow::Owned) } else { None }
    }
}

/// A key as it stands in the text: where its content starts and ends, and whether it holds escapes. Small enough to be
/// passed in registers.
#[derive(Clone, Copy, Default)]
pub(crate) struct Key {
    start: u32,
    end: u32,
    pub(crate) escaped: bool,
}

impl Key {
    /// A key without escapes that starts at a quote and has this length with quotes and colon.
    #[inline(always)]
    pub(crate) fn before_colon(at: usize, length: usize) -> Key {
        Key { start: at as u32 + 1, end: (at + length - 2) as u32, escaped: false }
    }

    /// The name, with escapes resolved.
    #[inline(always)]
    pub(crate) fn name(self, text: &str) -> Cow<'_, str> {
        let raw = &text[self.start as usize..self.end as usize];
        if self.escaped { unescape(raw) } else { Cow::Borrowed(raw) }
    }

    #[inline(always)]
    pub(crate) fn is(self, text: &str, name: &str) -> bool {
        if self.escaped {
            return self.name(text) == name;
        }
        // Lengths tell most names apart, and bytes need no care for character boundaries.
        self.len() == name.len() && self.raw(text) == name.as_bytes()
    }

    #[inline(always)]
    fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// The key as it stands.
    #[inline(always)]
    pub(crate) fn raw(self, text: &str) -> &[u8] {
        &text.as_bytes()[self.start as usize..self.end as usize]
    }
}

/// Resolves the escapes of a key. A lone surrogate cannot be resolved and stands for itself.
#[cold]
fn unescape(raw: &str) -> Cow<'_, str> {
    match serde_json::from_str::<String>(&format!("\"{raw}\"")) {
        Ok(text) => Cow::Owned(text),
        Err(_) => Cow::Borrowed(raw),
    }
}

impl Scanner<'_> {
    /// Consumes the start of an object. Returns whether a member follows; if none does, its end is consumed too.
    #[inline(always)]
    pub(crate) fn open_object(&mut self, depth: usize) -> Scan<bool> {
        if self.next_token() != Some(b'{') {
            return self.fault(FaultKind::Expected("an object"));
        }
        if depth + 1 > self.max_depth {
            return self.fault(FaultKind::TooDeep(self.max_depth));
        }
        self.at += 1;
        if self.next_token() == Some(b'}') {
            self.at += 1;
            return Ok(false);
        }
        Ok(true)
    }

    /// Consumes a key and its colon. It is then in `self.key`.
    #[inline(always)]
    pub(crate) fn next_key(&mut self) -> Scan<()> {
        if self.next_token() != Some(b'"') {
            return self.unexpected();
        }
        let start = self.at as u32 + 1;
        self.escapes = false;
        self.string()?;
        self.key = Key { start, end: self.at as u32 - 1, escaped: self.escapes };
        self.colon()
    }

    /// Consumes what follows a member. Returns whether that is another one.
    #[inline(always)]
    pub(crate) fn more_members(&mut self) -> Scan<bool> {
        let more = match self.next_token() {
            Some(b',') => true,
            Some(b'}') => false,
            _ => return self.unexpected(),
        };
        self.at += 1;
        Ok(more)
    }
}

/// Consumes an object and records its members. Duplicate keys are refused.
#[inline(always)]
pub(crate) fn split_object(scanner: &mut Scanner<'_>, depth: usize, members: &mut Members) -> Scan<()> {
    let mut seen = Seen::default();
    let mut more = scanner.open_object(depth)?;
    while more {
        scanner.next_key()?;
        let key = scanner.key;
        seen.check(scanner, members, key)?;
        let start = start_value(scanner);
        scanner.value(depth + 1)?;
        members.push(scanner, key, start);
        more = scanner.more_members()?;
    }
    Ok(())
}

/// The same, with `value` to consume each value.
pub(crate) fn scan_members<'a>(
    scanner: &mut Scanner<'a>,
    depth: usize,
    members: &mut Members,
    mut value: impl FnMut(&str, &mut Scanner<'a>) -> Scan<()>,
) -> Scan<()> {
    let mut seen = Seen::default();
    let mut more = scanner.open_object(depth)?;
    while more {
        scanner.next_key()?;
        let key = scanner.key;
        seen.check(scanner, members, key)?;
        let start = start_value(scanner);
        value(&key.name(scanner.text), scanner)?;
        members.push(scanner, key, start);
        more = scanner.more_members()?;
    }
    Ok(())
}

/// The names met so far, once they are many. Comparing with each is quickest for the handful of members that messages
/// have; an object with thousands would make that quadratic, so past a bound they go into a set.
#[derive(Default)]
pub(crate) struct Seen<'a>(Option<HashSet<Cow<'a, str>>>);

impl<'a> Seen<'a> {
    const FEW: usize = 24;

    /// Refuses a key that is among `members` already.
    #[inline(always)]
    pub(crate) fn check(&mut self, scanner: &Scanner<'a>, members: &Members, key: Key) -> Scan<()> {
        if members.len < Self::FEW && !key.escaped && !members.may_have(key.len()) {
            return Ok(());
        }
        let name = key.name(scanner.text);
        if self.insert(scanner.text, members, &name) {
            return Ok(());
        }
        scanner.fault(FaultKind::DuplicateKey(name.into_owned()))
    }

    /// Whether a name is not among `members`.
    #[inline(never)]
    #[allow(clippy::ptr_arg)] // the set wants the name as it is, borrowed from the text or not
    fn insert(&mut self, text: &'a str, members: &Members, name: &Cow<'a, str>) -> bool {
        if members.len < Self::FEW {
            return members.find(text, name).is_none();
        }
        let all = || members.as_slice().iter().map(|m| m.name(text)).collect();
        self.0.get_or_insert_with(all).insert(name.clone())
    }
}
