//! [`About`]: the few things in a record that matter for whether the next one is as it should be.

use tidegate_protocol::{Json, Object};

use crate::chain::{HEAD, Hash, unhex};

/// What a record says that matters here.
#[derive(Debug, Default)]
pub(super) struct About {
    pub(super) kind: String,
    pub(super) time: String,
    /// The hash that it says it follows, where it says so.
    pub(super) previous: Option<Hash>,
    pub(super) torn: Option<u64>,
    /// The records that the file did not get.
    pub(super) lost: Option<(u64, u64)>,
}

impl About {
    pub(super) fn of(line: &[u8]) -> About {
        let after = |text: &'_ [u8], mark: &[u8]| -> Option<(usize, usize)> {
            let start = text.windows(mark.len()).position(|part| part == mark)? + mark.len();
            let length = text[start..].iter().position(|byte| *byte == b'"')?;
            Some((start, start + length))
        };
        // Time and kind are at the beginning: only few records have to be read as a whole.
        let begin = &line[..line.len().min(HEAD.len() + 100)];
        let text = |mark: &[u8]| {
            let (from, to) = after(begin, mark)?;
            Some(String::from_utf8_lossy(&begin[from..to]).into_owned())
        };
        let mut about = About {
            kind: text(b"\"kind\":\"").unwrap_or_default(),
            time: text(b"\"time\":\"").unwrap_or_default(),
            ..About::default()
        };
        if !matches!(about.kind.as_str(), "start" | "lost") {
            return about;
        }
        let whole = std::str::from_utf8(line).ok().map(str::to_owned);
        let object = whole.and_then(|text| Object::parse(text, &Default::default()).ok());
        let Some(object) = object else { return about };
        let number =
            |name: &str| object.json(name).as_ref().map(Json::as_str).and_then(|text| text.parse().ok());
        about.previous = object.str("previous").and_then(|hex| unhex(hex.as_bytes()));
        about.torn = number("torn");
        if object.str("sink").as_deref() == Some("file") {
            about.lost = number("from").zip(number("to"));
        }
        about
    }
}
