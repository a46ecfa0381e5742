//! Everything of a memory with its history, as the lines of a file.
//!
//! One JSON object a line, each with a `type`. The first says what the file is, the last how many lines it has. Between
//! them are the changes, oldest first, and then the rows of each table, oldest first. A row says when it held (`since`,
//! `until`, in milliseconds), which changes made and ended it (`made`, `gone`), and which row it brings back (`origin`).
//! Numbers are those that rows had where they were written; who reads the file gives them numbers of its own.

use serde::{Deserialize, Serialize};

use super::numbers::Numbers;
use crate::agents::archive::AgentVersion;
use crate::documents::archive::{DocumentPiece, DocumentText, DocumentVersion};
use crate::graph::archive::{Change as Noted, EntityVersion, Observation, RelationVersion};
use crate::store::{Change, Code, Fault, Result, Value, View};
use crate::{agents, documents, graph};

/// What the first line says of the file.
const FORMAT: &str = "tidegate-memory";
/// The version of the format that is written, and the newest that is read.
const VERSION: i64 = 1;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum Line {
    Memory { format: String, version: i64 },
    Change(Noted),
    EntityVersion(EntityVersion),
    Observation(Observation),
    RelationVersion(RelationVersion),
    DocumentVersion(DocumentVersion),
    DocumentText(DocumentText),
    DocumentPiece(DocumentPiece),
    AgentVersion(AgentVersion),
    End { lines: usize },
}

/// How much a file has: changes, and what is known now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) changes: usize,
    pub(crate) entities: usize,
    pub(crate) relations: usize,
    pub(crate) documents: usize,
    pub(crate) agents: usize,
}

impl Counts {
    fn add(&mut self, line: &Line) {
        match line {
            Line::Change(_) => self.changes += 1,
            Line::EntityVersion(row) => self.entities += usize::from(row.row.gone.is_none()),
            Line::RelationVersion(row) => self.relations += usize::from(row.row.gone.is_none()),
            Line::DocumentVersion(row) => self.documents += usize::from(row.row.gone.is_none()),
            Line::AgentVersion(row) => self.agents += usize::from(row.row.gone.is_none()),
            _ => {}
        }
    }
}

/// Lines that are being written.
pub(crate) struct Writer {
    text: String,
    lines: usize,
    most: usize,
    counts: Counts,
}

impl Writer {
    pub(crate) fn line(&mut self, line: &Line) -> Result<()> {
        let written = serde_json::to_string(line)
            .map_err(|error| Fault::input("history", format!("cannot be written as JSON: {error}")))?;
        if self.text.len() + written.len() > self.most {
            let most = self.most;
            let why = format!("there is more than {most} bytes of it: copy the file or the database instead");
            return Err(Fault::input("history", why));
        }
        if self.lines > 0 {
            self.text.push('\n');
        }
        self.text.push_str(&written);
        self.lines += 1;
        self.counts.add(line);
        Ok(())
    }
}

/// Everything of a tenant but what was said to agents, which is not everybody's. At most `most` bytes.
pub(crate) fn write(view: &mut View<'_>, most: usize) -> Result<(String, Counts)> {
    let mut writer = Writer { text: String::new(), lines: 0, most, counts: Counts::default() };
    writer.line(&Line::Memory { format: FORMAT.to_owned(), version: VERSION })?;
    graph::archive::write(view, &mut writer)?;
    documents::archive::write(view, &mut writer)?;
    agents::archive::write(view, &mut writer)?;
    let lines = writer.lines + 1;
    writer.line(&Line::End { lines })?;
    Ok((writer.text, writer.counts))
}

/// Whether a text is such a file.
pub(crate) fn is(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    matches!(serde_json::from_str(first), Ok(Line::Memory { .. }))
}

/// A file that was read: its lines, with their numbers.
pub(crate) struct File(Vec<(usize, Line)>);

/// Reads the lines of a file, all of which must be there.
pub(crate) fn read(text: &str) -> Result<File> {
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let read = serde_json::from_str(line).map_err(|error| wrong(at, &error.to_string()))?;
        lines.push((at, read));
    }
    match lines.first() {
        Some((_, Line::Memory { format, .. })) if format != FORMAT => {
            return Err(wrong(0, &format!("the format must be {FORMAT:?}")));
        }
        Some((_, Line::Memory { version, .. })) if *version != VERSION => {
            let why = format!("the version is {version}; this version of Tidegate reads version {VERSION}");
            return Err(wrong(0, &why));
        }
        _ => {}
    }
    match lines.last() {
        Some((_, Line::End { lines: said })) if *said == lines.len() => Ok(File(lines)),
        Some((_, Line::End { lines: said })) => {
            let why = format!("has {} lines, and its last one says {said}: some are missing", lines.len());
            Err(Fault::input("jsonl", why))
        }
        _ => Err(Fault::input("jsonl", "has no last line {\"type\":\"end\",…}: it was cut off")),
    }
}

fn wrong(at: usize, why: &str) -> Fault {
    Fault::input(&format!("jsonl, line {}", at + 1), why)
}

/// Brings a file into a memory that is empty.
pub(crate) fn bring(change: &mut Change<'_>, file: File, max_document: usize) -> Result<Counts> {
    refuse_others(change)?;
    let mut numbers = Numbers::default();
    let mut pieces = documents::archive::Pieces::new(max_document);
    let mut counts = Counts::default();
    let last = file.0.len().saturating_sub(1);
    for (place, (at, line)) in file.0.into_iter().enumerate() {
        counts.add(&line);
        let put = match line {
            Line::Change(row) => row.put(change, &mut numbers),
            Line::EntityVersion(row) => row.put(change, &mut numbers),
            Line::Observation(row) => row.put(change, &mut numbers),
            Line::RelationVersion(row) => row.put(change, &mut numbers),
            Line::DocumentVersion(row) => row.put(change, &mut numbers, &mut pieces),
            Line::DocumentText(row) => row.put(change, &mut numbers, &mut pieces),
            Line::DocumentPiece(row) => row.put(change, &mut numbers, &mut pieces),
            Line::AgentVersion(row) => row.put(change, &mut numbers),
            Line::Memory { .. } if place == 0 => Ok(()),
            Line::End { .. } if place == last => Ok(()),
            Line::Memory { .. } | Line::End { .. } => Err(Fault::input("type", "stands in the wrong place")),
        };
        put.map_err(|fault| match fault.code {
            Code::InvalidInput | Code::InvalidEntityName => wrong(at, &fault.message),
            _ => fault,
        })?;
    }
    graph::archive::connect(change, &numbers)?;
    pieces.settle(change)?;
    numbers.close(change)?;
    last_of_all(change)?;
    Ok(counts)
}

/// History can be brought where there is none, and cannot be mixed with another.
fn refuse_others(change: &mut Change<'_>) -> Result<()> {
    for table in graph::changes::TABLES {
        let sql = format!("SELECT 1 FROM {table} WHERE tenant = ?1 LIMIT 1");
        if change.one(&sql, &[], |row| row.int(0))?.is_some() {
            let why = "jsonl: a file with history can be brought into an empty memory only, and this one has or had \
                       something in it; without history (export_graph without \"history\") it can be added";
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
        let mut writer = Writer { text: String::new(), lines: 0, most: 100, counts: Counts::default() };
        let line = || Line::Memory { format: FORMAT.to_owned(), version: VERSION };
        writer.line(&line()).unwrap();
        let why = writer.line(&line()).unwrap_err();
        assert!(why.message.starts_with("history: there is more than 100 bytes of it"), "{why}");
    }

    #[test]
    fn files_are_told_apart() {
        let first = "{\"type\":\"memory\",\"format\":\"tidegate-memory\",\"version\":1}";
        assert!(is(&format!("\n{first}\n")));
        for other in ["", "nonsense", "{\"type\":\"entity\",\"name\":\"a\",\"entityType\":\"t\"}"] {
            assert!(!is(other), "{other}");
        }
        let whole = format!("{first}\n{{\"type\":\"end\",\"lines\":2}}");
        assert_eq!(read(&whole).unwrap().0.len(), 2);
        assert!(read(first).is_err(), "it was cut off");
    }
}
