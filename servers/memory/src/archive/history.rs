//! Everything of a memory with its history, as the lines of a file.
//!
//! One JSON object a line, each with a `type`. The first says what the file is, the last how many lines it has. Between
//! them are the changes, oldest first, and then the rows of each table, oldest first. A row says when it held (`since`,
//! `until`, in milliseconds), which changes made and ended it (`made`, `gone`), and which row it brings back (`origin`).
//! Numbers are those that rows had where they were written; who reads the file gives them numbers of its own.

use std::io::Write;

use serde::{Deserialize, Serialize};

use super::agents::AgentVersion;
use super::cost;
use super::documents::{DocumentPiece, DocumentText, DocumentVersion};
use super::file::unwritable;
use super::graph::{Change as Noted, EntityVersion, Observation, Property, RelationVersion};
use super::numbers::RowNumbers;
use super::{agents, documents, graph};
use crate::changes;
use crate::error::{Code, Fault, Result};
use crate::store::{Change, Value, View};

/// What the first line says of the file.
const FORMAT: &str = "tidegate-memory";
/// The version of the format that is written, and the newest that is read. Version 1 had neither properties nor ids of
/// entities.
const VERSION: i64 = 2;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum ArchiveLine {
    Memory { format: String, version: i64 },
    Change(Noted),
    EntityVersion(EntityVersion),
    Observation(Observation),
    Property(Property),
    RelationVersion(RelationVersion),
    DocumentVersion(DocumentVersion),
    DocumentText(DocumentText),
    DocumentPiece(DocumentPiece),
    AgentVersion(AgentVersion),
    End { lines: usize },
}

/// How much a file has: changes, and what is known now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Changes, which only a file with history has.
    pub changes: usize,
    /// Entities.
    pub entities: usize,
    /// What is known of them.
    pub observations: usize,
    /// Properties of entities.
    pub properties: usize,
    /// Relations.
    pub relations: usize,
    /// Documents, which only a file with history has.
    pub documents: usize,
    /// Agents, which only a file with history has.
    pub agents: usize,
}

impl Counts {
    /// The same for programs to read; with what only a file with history has, if it is one.
    pub fn to_json(&self, history: bool) -> serde_json::Value {
        let mut told = serde_json::json!({
            "entities": self.entities, "observations": self.observations, "relations": self.relations,
        });
        if self.properties > 0 {
            told["properties"] = self.properties.into();
        }
        if history {
            told["documents"] = self.documents.into();
            told["agents"] = self.agents.into();
            told["changes"] = self.changes.into();
        }
        told
    }

    fn add(&mut self, line: &ArchiveLine) {
        match line {
            ArchiveLine::Change(_) => self.changes += 1,
            ArchiveLine::EntityVersion(row) => self.entities += usize::from(row.row.gone.is_none()),
            ArchiveLine::Observation(row) => self.observations += usize::from(row.row.gone.is_none()),
            ArchiveLine::Property(row) => self.properties += usize::from(row.row.gone.is_none()),
            ArchiveLine::RelationVersion(row) => self.relations += usize::from(row.row.gone.is_none()),
            ArchiveLine::DocumentVersion(row) => self.documents += usize::from(row.row.gone.is_none()),
            ArchiveLine::AgentVersion(row) => self.agents += usize::from(row.row.gone.is_none()),
            _ => {}
        }
    }
}

/// Where lines go.
enum Output {
    /// Into an answer, which has at most so many bytes.
    Answer(String, usize),
    /// Anywhere.
    File(Box<dyn Write>),
}

/// Lines that are being written.
pub(crate) struct ArchiveWriter {
    to: Output,
    lines: usize,
    used: usize,
    counts: Counts,
}

impl ArchiveWriter {
    fn new(to: Output) -> ArchiveWriter {
        ArchiveWriter { to, lines: 0, used: 0, counts: Counts::default() }
    }

    pub(crate) fn line(&mut self, line: &ArchiveLine) -> Result<()> {
        let mut written = serde_json::to_string(line)
            .map_err(|error| Fault::input("history", format!("cannot be written as JSON: {error}")))?;
        match &mut self.to {
            Output::Answer(text, most) => {
                self.used += cost(&written);
                if self.used > *most {
                    let why = format!(
                        "is larger than {most} bytes, too much for one result; \
                         `tidegate memory export --history FILE` writes it to a file"
                    );
                    return Err(Fault::input("history", why));
                }
                if self.lines > 0 {
                    text.push('\n');
                }
                text.push_str(&written);
            }
            Output::File(file) => {
                written.push('\n');
                file.write_all(written.as_bytes()).map_err(|error| unwritable(&error))?;
            }
        }
        self.lines += 1;
        self.counts.add(line);
        Ok(())
    }

    /// Everything of a tenant but what was said to agents, which is not everybody's.
    fn all(&mut self, view: &mut View<'_>) -> Result<()> {
        self.line(&ArchiveLine::Memory { format: FORMAT.to_owned(), version: VERSION })?;
        graph::write(view, self)?;
        documents::write(view, self)?;
        agents::write(view, self)?;
        let lines = self.lines + 1;
        self.line(&ArchiveLine::End { lines })
    }
}

/// Everything as one text, which takes at most `most` bytes in an answer.
pub(crate) fn write(view: &mut View<'_>, most: usize) -> Result<(String, Counts)> {
    let mut writer = ArchiveWriter::new(Output::Answer(String::new(), most));
    writer.all(view)?;
    let Output::Answer(text, _) = writer.to else { return Err(Fault::input("history", "is not a text")) };
    Ok((text, writer.counts))
}

/// Writes everything to a file.
pub(crate) fn write_to(view: &mut View<'_>, file: Box<dyn Write>) -> Result<Counts> {
    let mut writer = ArchiveWriter::new(Output::File(file));
    writer.all(view)?;
    if let Output::File(file) = &mut writer.to {
        file.flush().map_err(|error| unwritable(&error))?;
    }
    Ok(writer.counts)
}

/// Whether a file with this first line is such a file.
pub(crate) fn begins(first: &[u8]) -> bool {
    matches!(serde_json::from_slice(first), Ok(ArchiveLine::Memory { .. }))
}

/// Whether a text is such a file.
pub(crate) fn is(text: &str) -> bool {
    begins(text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().as_bytes())
}

/// A line with its number.
pub(crate) type Numbered = (usize, ArchiveLine);

/// Reads the lines of a text, all of which must be there.
pub(crate) fn read(text: &str) -> Result<Vec<Numbered>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    checked(lines.map(|(at, line)| Ok((at + 1, line)))).collect()
}

/// Reads lines one after the other. What is missing is told in the place of the end.
pub(crate) fn checked(
    lines: impl Iterator<Item = Result<(usize, impl AsRef<[u8]>)>>,
) -> impl Iterator<Item = Result<Numbered>> {
    let mut seen = LineChecker::default();
    let mut lines = lines.fuse();
    std::iter::from_fn(move || match lines.next() {
        Some(line) => Some(line.and_then(|(number, line)| seen.line(number, line.as_ref()))),
        None => seen.end().err().map(Err),
    })
}

/// How far a file was read.
#[derive(Default)]
struct LineChecker {
    lines: usize,
    /// How many lines the last one says there are.
    said: Option<usize>,
    /// Something was wrong, and was told.
    over: bool,
}

impl LineChecker {
    fn line(&mut self, number: usize, line: &[u8]) -> Result<Numbered> {
        let read = self.read(number, line);
        self.over = read.is_err();
        read
    }

    fn read(&mut self, number: usize, line: &[u8]) -> Result<Numbered> {
        let line: ArchiveLine =
            serde_json::from_slice(line).map_err(|error| wrong(number, &error.to_string()))?;
        self.lines += 1;
        match &line {
            _ if self.said.is_some() => {
                return Err(wrong(number, "comes after the last line, {\"type\":\"end\",…}"));
            }
            ArchiveLine::Memory { .. } if self.lines > 1 => {
                return Err(wrong(number, "type: must be on the first line only"));
            }
            ArchiveLine::Memory { format, .. } if format != FORMAT => {
                return Err(wrong(number, &format!("the format must be {FORMAT:?}")));
            }
            ArchiveLine::Memory { version, .. } if !(1..=VERSION).contains(version) => {
                let why = format!("the version is {version}; this version of Tidegate reads 1 to {VERSION}");
                return Err(wrong(number, &why));
            }
            ArchiveLine::End { lines } => self.said = Some(*lines),
            _ => {}
        }
        Ok((number, line))
    }

    fn end(&mut self) -> Result<()> {
        let lines = self.lines;
        if std::mem::replace(&mut self.over, true) {
            return Ok(());
        }
        match self.said {
            Some(said) if said == lines => Ok(()),
            Some(said) => {
                let why = format!("has {lines} lines, but its last line says {said}: some are missing");
                Err(Fault::input("jsonl", why))
            }
            None => {
                Err(Fault::input("jsonl", "does not end with {\"type\":\"end\",…}: the file is incomplete"))
            }
        }
    }
}

fn wrong(number: usize, why: &str) -> Fault {
    Fault::input(&format!("jsonl, line {number}"), why)
}

/// Brings a file into a memory that is empty.
pub(crate) fn import(
    change: &mut Change<'_>,
    lines: impl Iterator<Item = Result<Numbered>>,
    max_document: usize,
) -> Result<Counts> {
    refuse_others(change)?;
    let mut numbers = RowNumbers::default();
    let mut pieces = documents::DocumentImport::new(max_document);
    let mut counts = Counts::default();
    for line in lines {
        let (number, line) = line?;
        counts.add(&line);
        let put = match line {
            ArchiveLine::Change(row) => row.put(change, &mut numbers),
            ArchiveLine::EntityVersion(row) => row.put(change, &mut numbers),
            ArchiveLine::Observation(row) => row.put(change, &mut numbers),
            ArchiveLine::Property(row) => row.put(change, &mut numbers),
            ArchiveLine::RelationVersion(row) => row.put(change, &mut numbers),
            ArchiveLine::DocumentVersion(row) => row.put(change, &mut numbers, &mut pieces),
            ArchiveLine::DocumentText(row) => row.put(change, &mut numbers, &mut pieces),
            ArchiveLine::DocumentPiece(row) => row.put(change, &mut numbers, &mut pieces),
            ArchiveLine::AgentVersion(row) => row.put(change, &mut numbers),
            ArchiveLine::Memory { .. } | ArchiveLine::End { .. } => Ok(()),
        };
        put.map_err(|fault| match fault.code {
            Code::InvalidInput | Code::InvalidEntityName => wrong(number, &fault.message),
            _ => fault,
        })?;
    }
    graph::connect(change, &numbers)?;
    pieces.settle(change)?;
    numbers.close(change)?;
    last_of_all(change)?;
    Ok(counts)
}

/// History can be brought where there is none, and cannot be mixed with another.
fn refuse_others(change: &mut Change<'_>) -> Result<()> {
    for table in changes::TABLES {
        let sql = format!("SELECT 1 FROM {table} WHERE tenant = ?1 LIMIT 1");
        if change.one(&sql, &[], |row| row.int(0))?.is_some() {
            let why = "jsonl: a file with history can only be imported into a memory that was never used; export it \
                       without \"history\" to add it to this one";
            return Err(Fault::new(Code::Conflict, why));
        }
    }
    Ok(())
}

/// Puts this change after those that it has brought.
fn last_of_all(change: &mut Change<'_>) -> Result<()> {
    let this = [Value::Int(change.id)];
    change.run(
        "INSERT INTO changes (tenant, at, who, what) SELECT tenant, at, who, what FROM changes
         WHERE tenant = ?1 AND id = ?2",
        &this,
    )?;
    change.run("DELETE FROM changes WHERE tenant = ?1 AND id = ?2", &this)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_not_written() {
        let mut writer = ArchiveWriter::new(Output::Answer(String::new(), 100));
        let line = || ArchiveLine::Memory { format: FORMAT.to_owned(), version: VERSION };
        writer.line(&line()).unwrap();
        let why = writer.line(&line()).unwrap_err();
        assert!(why.message.starts_with("history: is larger than 100 bytes"), "{why}");
    }

    #[test]
    fn files_are_told_apart() {
        let first = "{\"type\":\"memory\",\"format\":\"tidegate-memory\",\"version\":1}";
        assert!(is(&format!("\n{first}\n")));
        for other in ["", "nonsense", "{\"type\":\"entity\",\"name\":\"a\",\"entityType\":\"t\"}"] {
            assert!(!is(other), "{other}");
        }
        let whole = format!("{first}\n{{\"type\":\"end\",\"lines\":2}}");
        assert_eq!(read(&whole).unwrap().len(), 2);
        assert!(read(first).is_err(), "it was cut off");
    }
}
