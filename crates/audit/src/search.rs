//! Finding records in a trail: [`search`].

use std::io;
use std::path::Path;

use tidegate_protocol::Object;

use crate::file::names::trail;
use crate::lines::Lines;

/// What to look for. What is not said matches everything.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Members that must have exactly this value: `("subject", "ann")`.
    pub members: Vec<(&'static str, String)>,
    /// Not before this time, in RFC 3339 with milliseconds, UTC.
    pub since: Option<String>,
    /// Not after this time.
    pub until: Option<String>,
}

impl Query {
    /// Whether a record is what is looked for.
    fn matches(&self, record: &Object) -> bool {
        let has =
            |(name, value): &(&str, String)| record.str(name).is_some_and(|found| found == value.as_str());
        // Times of this form are in order when their texts are.
        let time = record.str("time").unwrap_or_default();
        self.members.iter().all(has)
            && self.since.as_deref().is_none_or(|since| &*time >= since)
            && self.until.as_deref().is_none_or(|until| &*time <= until)
    }
}

/// What was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Searched {
    /// How many records.
    pub records: u64,
    /// How many lines that are none.
    pub unreadable: u64,
}

/// Shows every record of a trail that matches, oldest first. `found` gets the line and the record, and says whether to go on.
pub fn search(
    path: &Path,
    query: &Query,
    mut found: impl FnMut(&str, &Object) -> bool,
) -> io::Result<Searched> {
    let mut searched = Searched::default();
    for file in trail(path)? {
        let mut lines = Lines::open(&file)?;
        while let Some(line) = lines.next()? {
            let text = std::str::from_utf8(line.bytes).ok();
            let record = text.and_then(|text| Object::parse(text.to_owned(), &Default::default()).ok());
            let (Some(text), Some(record)) = (text, record) else {
                searched.unreadable += 1;
                continue;
            };
            // What a file begins with is no record.
            if record.str("kind").as_deref() == Some("file") {
                continue;
            }
            searched.records += 1;
            if query.matches(&record) && !found(text, &record) {
                return Ok(searched);
            }
        }
    }
    Ok(searched)
}
