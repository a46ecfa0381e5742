//! Files of a memory, line by line: a memory of any size goes out and comes in without being held as a whole.

use std::io::{BufRead, BufWriter, Error, Read, Write};
use std::iter::Peekable;

use super::history::{self, Counts};
use super::page::{ExportCursor, export_page};
use super::read::{Problem, Reader};
use crate::error::{Code, Fault, Result};
use crate::graph::model::{Graph, MAX_PROPERTIES_AT_ONCE};
use crate::graph::{entities, properties, relations};
use crate::store::{Change, Memory};
use crate::texts::MAX_BYTES;

/// How much is read before it is written.
const PART: usize = 1024 * 1024;
/// How many lines, and about how many bytes of them and properties in them, one change brings.
const LINES: usize = 2_000;
const BYTES: usize = 4 * 1024 * 1024;
/// Longest line, in bytes.
const MAX_LINE: u64 = 64 * 1024 * 1024;

/// What a file has brought.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// What is new.
    pub counts: Counts,
    /// Whether it came with its history.
    pub history: bool,
    /// How much was left out: lines, and parts of lines.
    pub skipped: usize,
    /// The first things that were left out, and why.
    pub problems: Vec<Problem>,
}

impl Memory {
    /// Writes what is known now, as the lines of a file of `server-memory`; or everything with its history. All of it is of
    /// the same moment.
    pub async fn export(&self, to: impl Write + Send + 'static, history: bool) -> Result<Counts, Fault> {
        self.view(move |view| {
            let mut to = BufWriter::new(to);
            if history {
                return history::write_to(view, Box::new(to));
            }
            let (mut counts, mut place) = (Counts::default(), Some(ExportCursor::FIRST));
            while let Some(from) = place {
                let part = export_page(view, from, PART, false)?;
                counts.entities += part.entities;
                counts.observations += part.observations;
                counts.properties += part.properties;
                counts.relations += part.relations;
                let end: &[u8] = if part.text.is_empty() { b"" } else { b"\n" };
                let written = to.write_all(part.text.as_bytes()).and_then(|()| to.write_all(end));
                written.map_err(|error| unwritable(&error))?;
                place = part.next;
            }
            to.flush().map_err(|error| unwritable(&error))?;
            Ok(counts)
        })
        .await
    }

    /// Adds what the lines of a file say: a file of `server-memory`, or one with history for an empty memory.
    ///
    /// A file with history is brought as a whole or not at all. Of another, what cannot be kept is left out, and changes
    /// are made after every few thousand lines: those that were made stay if something fails later.
    pub async fn import(&self, from: impl BufRead + Send + 'static) -> Result<Imported, Fault> {
        let peek = move || {
            let mut lines = Lines::new(from).peekable();
            let whole = matches!(lines.peek(), Some(Ok((_, first))) if history::begins(first));
            (lines, whole)
        };
        let (mut lines, whole) = blocking(peek).await?;
        if whole {
            let bring = |change: &mut Change<'_>| history::import(change, history::checked(lines), MAX_BYTES);
            let counts = self.change("import_graph", bring).await?;
            return Ok(Imported { counts, history: true, ..Imported::default() });
        }
        let (mut reader, mut counts) = (Reader::default(), Counts::default());
        loop {
            let (batch, left) = blocking(move || {
                let batch = batch(&mut lines, &mut reader);
                (batch, (lines, reader))
            })
            .await?;
            (lines, reader) = left;
            let Some(graph) = batch? else { break };
            let added = self.change("import_graph", |change| add(change, graph)).await?;
            counts.entities += added.entities;
            counts.observations += added.observations;
            counts.properties += added.properties;
            counts.relations += added.relations;
        }
        Ok(Imported { counts, history: false, skipped: reader.skipped, problems: reader.problems })
    }
}

/// Does something in a thread that may wait.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Fault::new(Code::Internal, format!("The file could not be read: {error}")))
}

/// The next lines that can be kept, if there are any.
fn batch<R: BufRead>(lines: &mut Peekable<Lines<R>>, reader: &mut Reader) -> Result<Option<Graph>> {
    let (mut graph, mut count, mut bytes, mut properties) = (Graph::default(), 0, 0, 0);
    while count < LINES && bytes < BYTES && properties < MAX_PROPERTIES_AT_ONCE {
        let Some(line) = lines.next() else { break };
        let (number, line) = line?;
        let known = graph.entities.len();
        reader.take(number, &line, &mut graph)?;
        properties += graph.entities[known..].iter().map(|entity| entity.properties.len()).sum::<usize>();
        (count, bytes) = (count + 1, bytes + line.len());
    }
    Ok((count > 0).then_some(graph))
}

/// Adds what is not known yet.
pub(crate) fn add(change: &mut Change<'_>, graph: Graph) -> Result<Counts> {
    let mut counts = Counts::default();
    for entity in graph.entities {
        // A file may say more of what is known: that is added.
        let known = entities::find(change, &entity.name)?;
        let observed = match known {
            Some(known) => {
                counts.properties += properties::add(change, &known, entity.properties)?.set;
                entities::observe(change, &known, entity.observations, false)?
            }
            None => {
                let made = entities::create(change, vec![entity])?;
                counts.entities += made.len();
                counts.properties += made.iter().map(|entity| entity.properties.len()).sum::<usize>();
                made.into_iter().flat_map(|entity| entity.observations).collect()
            }
        };
        counts.observations += observed.len();
    }
    counts.relations = relations::create(change, graph.relations)?.len();
    Ok(counts)
}

/// The lines of a file that have something in them, with their numbers from 1.
struct Lines<R> {
    from: R,
    number: usize,
}

impl<R: BufRead> Lines<R> {
    fn new(from: R) -> Lines<R> {
        Lines { from, number: 0 }
    }

    fn read(&mut self) -> Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let read = (&mut self.from).take(MAX_LINE + 1).read_until(b'\n', &mut line);
        let count =
            read.map_err(|error| Fault::new(Code::Outside, format!("The file cannot be read: {error}")))?;
        self.number += 1;
        if count as u64 > MAX_LINE {
            let field = format!("jsonl, line {}", self.number);
            return Err(Fault::input(&field, format!("must have at most {MAX_LINE} bytes")));
        }
        // Some editors put a mark of the byte order in front.
        if self.number == 1 && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        Ok((count > 0).then_some(line))
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<(usize, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.read() {
                Ok(Some(line)) if line.trim_ascii().is_empty() => {}
                read => return read.map(|line| line.map(|line| (self.number, line))).transpose(),
            }
        }
    }
}

/// What could not be written, and why.
pub(super) fn unwritable(error: &Error) -> Fault {
    Fault::new(Code::Outside, format!("The file cannot be written: {error}"))
}
