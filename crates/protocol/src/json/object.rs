//! [`Object`]: an object whose members are indexed and whose values stay raw.

use std::borrow::Cow;

use bytestring::ByteString;

use super::members::{Members, Position, split_object};
use super::scan::{Fault, FaultKind, Limits, Scanner};
use super::text::Json;
use super::write::write_str;

/// An object split one level deep: ordered members, raw values, no duplicate keys.
///
/// ```
/// use tidegate_protocol::{Json, Limits, Object};
///
/// let object = Object::parse(r#"{"name":"echo","n":1.0}"#, &Limits::default())?;
/// assert_eq!(object.get("n"), Some("1.0"));
/// let renamed = object.with("name", &Json::string("shout"));
/// assert_eq!(renamed.as_str(), r#"{"name":"shout","n":1.0}"#);
/// # Ok::<(), tidegate_protocol::json::Fault>(())
/// ```
#[derive(Clone)]
pub struct Object {
    /// The buffer all positions refer to. It may hold more than this object.
    text: ByteString,
    start: u32,
    end: u32,
    members: Members,
}

/// One member of an [`Object`].
#[derive(Debug, Clone)]
pub struct Member<'a> {
    /// The name, with escapes resolved.
    pub name: Cow<'a, str>,
    /// The value as text.
    pub value: &'a str,
}

impl Object {
    /// Splits `text`, which must be one object.
    pub fn parse(text: impl Into<ByteString>, limits: &Limits) -> Result<Object, Fault> {
        let text = text.into();
        if text.len() > limits.max_bytes.min(u32::MAX as usize) {
            return Err(Fault { kind: FaultKind::TooLong(limits.max_bytes), at: limits.max_bytes });
        }
        let mut scanner = Scanner::new(&text, limits);
        scanner.next_token();
        let start = scanner.at;
        let mut members = Members::default();
        split_object(&mut scanner, 0, &mut members).map_err(|fault| *fault)?;
        let end = scanner.at;
        scanner.finish().map_err(|fault| *fault)?;
        Ok(Object { text, start: start as u32, end: end as u32, members })
    }

    /// Splits a value that is known to be well formed; `None` if it is not an object or has duplicate keys.
    pub fn of(json: &Json) -> Option<Object> {
        Object::parse(json.text().clone(), &Limits { max_depth: 127, max_bytes: usize::MAX }).ok()
    }

    /// `{}`.
    pub fn empty() -> Object {
        Object { text: ByteString::from_static("{}"), start: 0, end: 2, members: Members::default() }
    }

    /// Positions found by a scan over a larger text.
    pub(crate) fn from_parts(text: &ByteString, start: usize, end: usize, members: Members) -> Object {
        Object { text: text.clone(), start: start as u32, end: end as u32, members }
    }

    #[inline]
    fn find(&self, name: &str) -> Option<&Position> {
        self.members.find(&self.text, name)
    }

    /// The raw value of a member.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.find(name).map(|m| m.value(&self.text))
    }

    /// The value of a member, sharing the buffer.
    pub fn json(&self, name: &str) -> Option<Json> {
        self.find(name).map(|m| m.json(&self.text))
    }

    /// The value of a member, split in turn; `None` if absent or not an object.
    pub fn object(&self, name: &str) -> Option<Object> {
        Object::of(&self.json(name)?)
    }

    /// The content of a string member; `None` if absent or not a string.
    pub fn str(&self, name: &str) -> Option<Cow<'_, str>> {
        self.find(name)?.content(&self.text)
    }

    /// The content of a string member, sharing the buffer where it needs no decoding.
    pub fn text(&self, name: &str) -> Option<ByteString> {
        self.find(name).and_then(|m| self.text_of(m))
    }

    fn text_of(&self, member: &Position) -> Option<ByteString> {
        match member.content(&self.text)? {
            Cow::Borrowed(plain) => Some(self.text.slice_ref(plain)),
            Cow::Owned(decoded) => Some(decoded.into()),
        }
    }

    /// Whether there is such a member.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// All members in their order.
    pub fn members(&self) -> impl ExactSizeIterator<Item = Member<'_>> {
        let each = self.members.as_slice().iter();
        each.map(|m| Member { name: m.name(&self.text), value: m.value(&self.text) })
    }

    /// The names of all members in their order.
    pub(crate) fn names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.members.as_slice().iter().map(|m| m.name(&self.text))
    }

    /// The value of a member by its position among [`Object::members`], sharing the buffer.
    pub fn json_at(&self, index: usize) -> Option<Json> {
        self.members.as_slice().get(index).map(|m| m.json(&self.text))
    }

    /// The content of a string member by its position among [`Object::members`].
    pub(crate) fn text_at(&self, index: usize) -> Option<ByteString> {
        self.members.as_slice().get(index).and_then(|m| self.text_of(m))
    }

    /// A member as it stands, key and value, by its position among [`Object::members`], which must be less than their
    /// number.
    pub fn raw_member(&self, index: usize) -> &str {
        let m = &self.members.as_slice()[index];
        // The key's quotes stand just outside the recorded position.
        &self.text[m.key_start as usize - 1..m.value_end as usize]
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.members.as_slice().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.as_slice().is_empty()
    }

    /// The object's text.
    pub fn as_str(&self) -> &str {
        &self.text[self.start as usize..self.end as usize]
    }

    /// The object as [`Json`], sharing the buffer.
    pub fn to_json(&self) -> Json {
        Json::from_span(&self.text, self.start as usize, self.end as usize)
    }

    /// This object with one member set: replaced in place if it is there, else added at the end. All other
    /// bytes are copied as they stand.
    pub fn with(&self, name: &str, value: &Json) -> Json {
        let text = self.as_str();
        let mut out = Vec::with_capacity(text.len() + name.len() + value.len() + 4);
        if let Some(m) = self.find(name) {
            out.extend_from_slice(&self.text.as_bytes()[self.start as usize..m.value_start as usize]);
            out.extend_from_slice(value.as_str().as_bytes());
            out.extend_from_slice(&self.text.as_bytes()[m.value_end as usize..self.end as usize]);
        } else {
            out.extend_from_slice(&text.as_bytes()[..text.len() - 1]);
            if !self.members.as_slice().is_empty() {
                out.push(b',');
            }
            write_str(&mut out, name);
            out.push(b':');
            out.extend_from_slice(value.as_str().as_bytes());
            out.push(b'}');
        }
        Json::from_written(out)
    }

    /// The same as [`Object::with`] for a member that is there, without scanning the text again; `None` if it is not.
    /// `inner` is an object within this one, which comes along.
    pub(crate) fn respelled(
        &self,
        name: &str,
        value: &Json,
        inner: Option<&Object>,
    ) -> Option<(Object, Option<Object>)> {
        let at = *self.find(name)?;
        let (start, cut, rest) = (self.start as usize, at.value_start as usize, at.value_end as usize);
        let mut out = Vec::with_capacity(self.as_str().len() + value.len());
        let bytes = self.text.as_bytes();
        out.extend_from_slice(&bytes[start..cut]);
        out.extend_from_slice(value.as_str().as_bytes());
        out.extend_from_slice(&bytes[rest..self.end as usize]);
        let text = Json::from_written(out).into_text();
        if text.len() > u32::MAX as usize {
            return None;
        }
        // Where something that stood at `place` stands now. The value may have become shorter, so the shift wraps.
        let shift = (value.len() as u32).wrapping_sub(at.value_end - at.value_start);
        let moved =
            |place: u32| (place - self.start).wrapping_add(if place > at.value_start { shift } else { 0 });
        let moved_object = |object: &Object| {
            let mut members = object.members.clone();
            for m in members.as_mut_slice() {
                (m.key_start, m.key_end) = (moved(m.key_start), moved(m.key_end));
                (m.value_start, m.value_end) = (moved(m.value_start), moved(m.value_end));
            }
            Object { text: text.clone(), start: moved(object.start), end: moved(object.end), members }
        };
        let inner = match inner {
            // Only positions in the same text can be moved along.
            Some(inner) if inner.text.as_ptr() != self.text.as_ptr() => return None,
            inner => inner.map(moved_object),
        };
        let mut outer = moved_object(self);
        if let Some(m) =
            outer.members.as_mut_slice().iter_mut().find(|m| m.value_start == moved(at.value_start))
        {
            m.plain = value.is_string() && !value.as_str().contains('\\');
        }
        Some((outer, inner))
    }

    /// This object without the named members. All other bytes are copied as they stand.
    pub fn without(&self, names: &[&str]) -> Json {
        if !self.members.as_slice().iter().any(|m| names.iter().any(|n| m.is(&self.text, n))) {
            return self.to_json();
        }
        let mut out = Vec::with_capacity(self.as_str().len());
        out.push(b'{');
        for m in self.members.as_slice() {
            if names.iter().any(|n| m.is(&self.text, n)) {
                continue;
            }
            if out.len() > 1 {
                out.push(b',');
            }
            // The key's quotes stand just outside the recorded position.
            let member = &self.text.as_bytes()[m.key_start as usize - 1..m.value_end as usize];
            out.extend_from_slice(member);
        }
        out.push(b'}');
        Json::from_written(out)
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &'static str) -> Result<Object, FaultKind> {
        Object::parse(text, &Limits::default()).map_err(|f| f.kind)
    }

    #[test]
    fn members_keep_order_and_spelling() {
        let object = parse(r#" { "b" : 1.50 , "a":[1, 2] } "#).unwrap();
        let members: Vec<_> = object.members().map(|m| (m.name.into_owned(), m.value)).collect();
        assert_eq!(members, [("b".to_owned(), "1.50"), ("a".to_owned(), "[1, 2]")]);
        assert_eq!(object.as_str(), r#"{ "b" : 1.50 , "a":[1, 2] }"#);
    }

    #[test]
    fn duplicate_keys_are_refused_in_any_spelling() {
        for text in [r#"{"a":1,"a":2}"#, r#"{"a":1,"\u0061":2}"#, r#"{"\u0061":1,"a":2}"#] {
            assert_eq!(parse(text).unwrap_err(), FaultKind::DuplicateKey("a".into()), "{text}");
        }
        let many: String = (0..1000).map(|i| format!("\"k{i}\":0,")).collect();
        let text = format!("{{{many}\"k7\":1}}");
        let fault = Object::parse(text, &Limits::default()).unwrap_err();
        assert_eq!(fault.kind, FaultKind::DuplicateKey("k7".into()));
    }

    #[test]
    fn one_member_is_spliced_and_the_rest_untouched() {
        let object = parse(r#"{"a": 1e2,"b":"x" , "c":null}"#).unwrap();
        let x = Json::trusted("7");
        assert_eq!(object.with("b", &x).as_str(), r#"{"a": 1e2,"b":7 , "c":null}"#);
        assert_eq!(object.with("d", &x).as_str(), r#"{"a": 1e2,"b":"x" , "c":null,"d":7}"#);
        assert_eq!(object.without(&["b"]).as_str(), r#"{"a": 1e2,"c":null}"#);
        assert_eq!(object.without(&["a", "b", "c"]).as_str(), "{}");
        assert_eq!(parse("{}").unwrap().with("d", &x).as_str(), r#"{"d":7}"#);
    }

    #[test]
    fn only_objects() {
        assert_eq!(parse("[]").unwrap_err(), FaultKind::Expected("an object"));
        assert_eq!(parse(r#"{"a":1} x"#).unwrap_err(), FaultKind::Trailing);
    }
}
