//! The id of a call in its result, `_meta["dev.tidegate/correlationId"]`: put there while the result is written, without a copy of its own.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use smallvec::{SmallVec, smallvec};

use crate::json::{Edit, Json, Object, places, write_str};
use crate::meta;

/// The member of an error's data, and of the machine form of a tool's failure, that names the call.
pub const CORRELATION: &str = "correlationId";

/// Where something else stands, and what.
type Changes = SmallVec<[(Range<usize>, Vec<u8>); 1]>;

/// What is different in a result that names its call: pieces of text, in their order, and what stands there instead.
#[derive(Debug, Default)]
pub struct Splices(Changes);

impl Splices {
    /// What `result` needs to name the call `id`. Whatever names another call there, because a server wrote it, names this one afterwards.
    ///
    /// ```
    /// use tidegate_protocol::Json;
    /// use tidegate_protocol::result_id::Splices;
    ///
    /// let result = Json::trusted(r#"{"content":[]}"#);
    /// let named = Splices::naming(&result, "1-abc").applied(&result);
    /// assert_eq!(named.as_str(), r#"{"content":[],"_meta":{"dev.tidegate/correlationId":"1-abc"}}"#);
    /// ```
    pub fn naming(result: &Json, id: &str) -> Splices {
        let text = result.as_str();
        let places = match may_have_meta(text.as_bytes()) {
            false => SmallVec::new(),
            true => match places(text, "_meta") {
                Some(places) => places,
                None => return Splices::default(),
            },
        };
        if places.is_empty() {
            return Splices(at_the_end(text, 0, |out| {
                write_str(out, "_meta");
                out.extend_from_slice(b":{");
                write_id(out, id);
                out.push(b'}');
            }));
        }
        // Twice is wrong, and which one counts depends on the reader.
        let each = places.into_iter().flat_map(|place| in_meta(text, place, id));
        Splices(each.collect())
    }

    /// The result in pieces: as much as stands between the changes as it is, and the changes.
    pub fn pieces<'a>(&'a self, result: &'a str) -> impl Iterator<Item = Piece<'a>> {
        let mut at = 0;
        let changes = self.0.iter().flat_map(move |(range, text)| {
            let before = Piece::Kept(at..range.start);
            at = range.end;
            [before, Piece::New(text)]
        });
        let end = self.0.last().map_or(0, |(range, _)| range.end);
        changes.chain([Piece::Kept(end..result.len())])
    }

    /// By how many bytes the result may grow.
    pub fn room(&self) -> usize {
        self.0.iter().map(|(_, text)| text.len()).sum()
    }

    /// Appends the changed result.
    pub fn write(&self, result: &Json, out: &mut Vec<u8>) {
        let text = result.as_str();
        for piece in self.pieces(text) {
            match piece {
                Piece::Kept(range) => out.extend_from_slice(&text.as_bytes()[range]),
                Piece::New(new) => out.extend_from_slice(new),
            }
        }
    }

    /// The changed result.
    pub fn applied(&self, result: &Json) -> Json {
        let mut out = Vec::with_capacity(result.len() + self.room());
        self.write(result, &mut out);
        Json::from_written(out)
    }
}

/// A piece of a result.
#[derive(Debug)]
pub enum Piece<'a> {
    /// A part of the result as it is.
    Kept(Range<usize>),
    /// Something else.
    New(&'a [u8]),
}

/// Whether a result can have a `_meta`. Most have none, which a look at the text tells: a key that is spelled with escapes has one of these.
fn may_have_meta(text: &[u8]) -> bool {
    static PLAIN: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(b"_meta\""));
    static ESCAPED: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(b"\\u00"));
    PLAIN.find(text).is_some() || ESCAPED.find(text).is_some()
}

fn write_id(out: &mut Vec<u8>, id: &str) {
    write_str(out, meta::CORRELATION);
    out.push(b':');
    write_str(out, id);
}

/// One more member at the end of an object, which begins in the whole text at `start`. Nothing if it is no object.
fn at_the_end(object: &str, start: usize, member: impl FnOnce(&mut Vec<u8>)) -> Changes {
    let Some(inside) = object.trim_ascii().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        return SmallVec::new();
    };
    let end = start + object.trim_ascii_end().len() - 1;
    let mut out = Vec::with_capacity(96);
    if !inside.trim_ascii().is_empty() {
        out.push(b',');
    }
    member(&mut out);
    smallvec![(end..end, out)]
}

/// What changes in a `_meta` that is there. One that is no object is the server's mistake, and stays.
fn in_meta(text: &str, place: Range<usize>, id: &str) -> Changes {
    let meta = &text[place.clone()];
    let own = Json::trusted(meta.to_owned());
    let object = Object::of(&own);
    let error = object.as_ref().and_then(|object| object.object(meta::ERROR));
    let forged =
        error.filter(|error| error.has(CORRELATION) && error.str(CORRELATION).as_deref() != Some(id));
    let says_more = object.as_ref().is_some_and(|object| object.has(meta::CORRELATION)) || forged.is_some();
    if object.is_none()
        && let Some(changes) = in_repeated(meta, place.start, id)
    {
        return changes;
    }
    let Some(object) = object.filter(|_| says_more) else {
        return at_the_end(meta, place.start, |out| write_id(out, id));
    };
    let mut edit = Edit::new(object);
    if let Some(error) = forged {
        edit.set(meta::ERROR, error.with(CORRELATION, &Json::string(id)));
    }
    edit.set(meta::CORRELATION, Json::string(id));
    edit.finish().map(|edited| (place, edited.as_str().as_bytes().to_vec())).into_iter().collect()
}

/// The same where a name is there twice, which is wrong: every one of the ids names this call. Nothing if there is none.
fn in_repeated(meta: &str, start: usize, id: &str) -> Option<Changes> {
    let mut found = places(meta, meta::CORRELATION)?;
    for error in places(meta, meta::ERROR)? {
        let inner = places(&meta[error.clone()], CORRELATION).unwrap_or_default();
        found.extend(inner.into_iter().map(|place| error.start + place.start..error.start + place.end));
    }
    found.sort_by_key(|place| place.start);
    let named = |place: Range<usize>| {
        let mut text = Vec::with_capacity(id.len() + 2);
        write_str(&mut text, id);
        (start + place.start..start + place.end, text)
    };
    let is_named = places(meta, meta::CORRELATION).is_some_and(|places| !places.is_empty());
    is_named.then(|| found.into_iter().map(named).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(result: &'static str) -> String {
        let result = Json::trusted(result);
        Splices::naming(&result, "1-abc").applied(&result).as_str().to_owned()
    }

    #[test]
    fn the_id_is_added_and_the_rest_stays_as_it_is() {
        const ID: &str = r#""dev.tidegate/correlationId":"1-abc""#;
        for (result, expected) in [
            ("{}", format!(r#"{{"_meta":{{{ID}}}}}"#)),
            (" { } ", format!(r#" {{ "_meta":{{{ID}}}}} "#)),
            (r#"{"a": 1.0 }"#, format!(r#"{{"a": 1.0 ,"_meta":{{{ID}}}}}"#)),
            (r#"{"a":{"_meta":{"b":1}}}"#, format!(r#"{{"a":{{"_meta":{{"b":1}}}},"_meta":{{{ID}}}}}"#)),
            (r#"{"_meta":{},"a":1}"#, format!(r#"{{"_meta":{{{ID}}},"a":1}}"#)),
            (r#"{"_meta": {"b" : 2},"a":1}"#, format!(r#"{{"_meta": {{"b" : 2,{ID}}},"a":1}}"#)),
            (r#"{"\u005fmeta":{"b":2}}"#, format!(r#"{{"\u005fmeta":{{"b":2,{ID}}}}}"#)),
            (r#"{"text":"\u00e9"}"#, format!(r#"{{"text":"\u00e9","_meta":{{{ID}}}}}"#)),
        ] {
            assert_eq!(named(result), expected, "{result}");
        }
    }

    #[test]
    fn what_a_server_puts_there_does_not_count() {
        for result in [
            r#"{"_meta":{"dev.tidegate/correlationId":"forged"}}"#,
            r#"{"_meta":{"dev.tidegate\/correlationId":"forged"}}"#,
            r#"{"_meta":{"dev.tidegate/error":{"symbol":"X","correlationId":"forged"}}}"#,
            r#"{"_meta":{"dev.tidegate/error":{"correlationId":["forged"]}}}"#,
        ] {
            let said = named(result);
            assert!(!said.contains("forged") && said.contains("1-abc"), "{said}");
        }
        let twice = named(
            r#"{"_meta":{"dev.tidegate/correlationId":"forged"},"_meta":{"dev.tidegate/correlationId":"forged"}}"#,
        );
        assert_eq!((twice.matches("forged").count(), twice.matches("1-abc").count()), (0, 2), "{twice}");
        let twice = named(
            r#"{"_meta":{"dev.tidegate/correlationId":"forged","dev.tidegate\/correlationId":["forged"],"a":1,"dev.tidegate/error":{"correlationId":"forged"}}}"#,
        );
        assert_eq!((twice.matches("forged").count(), twice.matches("1-abc").count()), (0, 3), "{twice}");
        serde_json::from_str::<serde_json::Value>(&twice).unwrap();
        // One that has another name twice has no id yet.
        let other = named(r#"{"_meta":{"a":1,"a":2}}"#);
        assert!(other.ends_with(r#","dev.tidegate/correlationId":"1-abc"}}"#), "{other}");
    }

    #[test]
    fn what_is_no_object_stays() {
        for result in ["null", "[1]", r#"{"_meta":null}"#, r#"{"_meta":"x"}"#, r#"{"_meta":[]}"#] {
            assert_eq!(named(result), result);
        }
    }

    proptest! {
        #[test]
        fn nothing_else_changes(members in prop::collection::btree_map("[a_met\"é]{0,5}", "[a\\\\\"{}😀\n]{0,4}", 0..4)) {
            let result = Json::of(&members).unwrap();
            let named = Splices::naming(&result, "1-abc").applied(&result);
            let mut value: serde_json::Value = named.to().unwrap();
            let meta = value.as_object_mut().unwrap().remove("_meta");
            let mut expected = serde_json::to_value(&members).unwrap();
            match expected.as_object_mut().unwrap().remove("_meta") {
                Some(own) => prop_assert_eq!(meta, Some(own)),
                None => prop_assert_eq!(meta, Some(serde_json::json!({"dev.tidegate/correlationId": "1-abc"}))),
            }
            prop_assert_eq!(value, expected);
        }
    }
}
