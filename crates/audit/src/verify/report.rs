//! What is found in a trail: how far it goes, what is damaged, and what is worth knowing.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::chain::{Position, hex_text, unhex};

/// The number and the hash of a record, as `12:9f86…`: what stands for everything before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The number.
    pub seq: u64,
    /// The hash.
    pub hash: [u8; 32],
}

impl From<Position> for Head {
    fn from(at: Position) -> Head {
        Head { seq: at.seq, hash: at.hash }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, hex_text(&self.hash))
    }
}

impl FromStr for Head {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Head, &'static str> {
        const FORM: &str =
            "must be the number and the hash of a record, as tidegate audit verify shows them: 12:9f86…";
        let (seq, hash) = text.trim().split_once(':').ok_or(FORM)?;
        let hash = unhex(hash.to_ascii_lowercase().as_bytes()).ok_or(FORM)?;
        Ok(Head { seq: seq.parse().map_err(|_| FORM)?, hash })
    }
}

/// A record that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Its number.
    pub seq: u64,
    /// Its time.
    pub time: String,
}

/// What was found in a trail.
#[derive(Debug, Default)]
pub struct Report {
    /// The files, oldest first.
    pub files: Vec<PathBuf>,
    /// How many records there are.
    pub records: u64,
    /// The first one.
    pub first: Option<Mark>,
    /// The last one.
    pub last: Option<Mark>,
    /// Its number and hash.
    pub head: Option<Head>,
    /// What is damaged, in the order of the files.
    pub damage: Vec<Damage>,
    /// How much more is damaged than is listed.
    pub unlisted: u64,
    /// What is worth knowing and no damage: sentences.
    pub notes: Vec<String>,
}

impl Report {
    /// Whether everything is as it was written.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty() && self.unlisted == 0
    }
}

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// The line where it was noticed, if it was on one.
    pub line: Option<u64>,
    /// The record, if it is known which.
    pub seq: Option<u64>,
    /// What it is.
    pub what: What,
}

/// What can be wrong with a trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// A record is not what it was, or does not follow the one before.
    Changed,
    /// A record says another number than the one that it was written with.
    Renumbered {
        /// What it says.
        says: u64,
    },
    /// A line is no record.
    NotARecord,
    /// Records are not there, up to this one.
    Missing {
        /// The last of them.
        to: u64,
    },
    /// Records at the end are not there, up to this one.
    Cut {
        /// The last of them.
        to: u64,
    },
    /// A record is there twice.
    Duplicate,
    /// A record is not where it belongs.
    OutOfPlace,
    /// The line that a file begins with is not what it was.
    Opening,
    /// The file with the head does not agree with the records, or is none.
    Head,
    /// The head that was noted elsewhere does not agree with the records.
    Expected,
}

impl What {
    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            What::Changed | What::Renumbered { .. } => "changed",
            What::NotARecord => "not_a_record",
            What::Missing { .. } => "missing",
            What::Cut { .. } => "cut",
            What::Duplicate => "duplicate",
            What::OutOfPlace => "out_of_place",
            What::Opening => "opening",
            What::Head => "head",
            What::Expected => "expected",
        }
    }

    /// The last of several records that it is about.
    pub fn to(&self) -> Option<u64> {
        match self {
            What::Missing { to } | What::Cut { to } => Some(*to),
            _ => None,
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match self.line {
            Some(line) => write!(f, "{file}:{line}: ")?,
            None => write!(f, "{file}: ")?,
        }
        let seq = self.seq.unwrap_or_default();
        let several = |to: u64| match seq == to {
            true => format!("record {seq} is"),
            false => format!("records {seq} to {to} are"),
        };
        match self.what {
            What::Changed => write!(f, "record {seq} was changed"),
            What::Renumbered { says } => write!(f, "record {seq} was changed: it says that it is {says}"),
            What::NotARecord if self.seq.is_some() => {
                write!(f, "record {seq} was changed: this line is no record any more")
            }
            What::NotARecord => write!(f, "this line is not a record, and was added"),
            What::Missing { to } => write!(f, "{} missing before this line", several(to)),
            What::Cut { to } => write!(f, "{} missing at the end: the tail was cut off", several(to)),
            What::Duplicate => write!(f, "record {seq} is there twice"),
            What::OutOfPlace => write!(f, "record {seq} is not where it belongs"),
            What::Opening => write!(f, "the line that the file begins with was changed or is missing"),
            What::Head => match self.seq {
                Some(seq) => write!(
                    f,
                    "the hash of record {seq} is not the one of the head: the trail was written anew, or the head was changed"
                ),
                None => write!(f, "the head cannot be read"),
            },
            What::Expected => {
                write!(f, "record {seq} is not the one that was expected: the trail was written anew, or cut")
            }
        }
    }
}
