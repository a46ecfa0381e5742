//! Documents with their history, row by row: out of the tables, and back into them.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::history::{ArchiveLine, ArchiveWriter};
use super::numbers::{COLUMNS, RowKind, RowNumbers, VersionedRow, number};
use crate::documents::chunks;
use crate::documents::model::{self, Base};
use crate::documents::write::MAX_ORIGIN;
use crate::error::{Fault, Result};
use crate::store::{Change, Value, View};
use crate::texts::kind::Kind;

/// Longest text of a piece, source and heading, in bytes: more than is ever written.
const MAX_TEXT: usize = 100_000;

/// A version of a document.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DocumentVersion {
    #[serde(flatten)]
    pub(crate) row: VersionedRow,
    /// The number of the document: 7 is `doc-7`. It stays the same.
    key: i64,
    version: i64,
    title: String,
    knowledge_base: Base,
    /// The page or file that it was read from, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read_from: Option<String>,
    source: String,
    kind: String,
    bytes: i64,
    characters: i64,
    chunks: i64,
    digest: i64,
    tags: Vec<String>,
    metadata: Map<String, Json>,
    created: i64,
}

/// What a piece of a document says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DocumentText {
    id: i64,
    document: i64,
    content: String,
}

/// Where a piece stands in its document.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DocumentPiece {
    #[serde(flatten)]
    row: VersionedRow,
    document: i64,
    text: i64,
    place: i64,
    heading: String,
    lead: i64,
    start: i64,
    length: i64,
    first_line: i64,
    last_line: i64,
}

/// Writes documents, the texts of their pieces, and the pieces.
pub(crate) fn write(view: &mut View<'_>, to: &mut ArchiveWriter) -> Result<()> {
    let sql = format!(
        "SELECT {COLUMNS}, root, key, version, title, base, origin, source, kind, bytes, characters, chunks, digest,
             tags, metadata, created
         FROM documents WHERE tenant = ?1 ORDER BY id"
    );
    view.each(&sql, &[], |row| {
        to.line(&ArchiveLine::DocumentVersion(DocumentVersion {
            row: VersionedRow::read(row, Some(5))?,
            key: row.int(6)?,
            version: row.int(7)?,
            title: row.text(8)?,
            knowledge_base: Base::named(&row.text(9)?),
            read_from: row.maybe_text(10)?,
            source: row.text(11)?,
            kind: row.text(12)?,
            bytes: row.int(13)?,
            characters: row.int(14)?,
            chunks: row.int(15)?,
            digest: row.int(16)?,
            tags: serde_json::from_str(&row.text(17)?).unwrap_or_default(),
            metadata: serde_json::from_str(&row.text(18)?).unwrap_or_default(),
            created: row.int(19)?,
        }))
    })?;
    let sql = "SELECT id, document, content FROM document_texts WHERE tenant = ?1 ORDER BY id";
    view.each(sql, &[], |row| {
        to.line(&ArchiveLine::DocumentText(DocumentText {
            id: row.int(0)?,
            document: row.int(1)?,
            content: row.text(2)?,
        }))
    })?;
    let sql = format!(
        "SELECT {COLUMNS}, document, text, place, heading, lead, start, length, first_line, last_line
         FROM chunks WHERE tenant = ?1 ORDER BY id"
    );
    view.each(&sql, &[], |row| {
        to.line(&ArchiveLine::DocumentPiece(DocumentPiece {
            row: VersionedRow::read(row, None)?,
            document: row.int(5)?,
            text: row.int(6)?,
            place: row.int(7)?,
            heading: row.text(8)?,
            lead: row.int(9)?,
            start: row.int(10)?,
            length: row.int(11)?,
            first_line: row.int(12)?,
            last_line: row.int(13)?,
        }))
    })
}

/// Documents that are being brought.
pub(crate) struct DocumentImport {
    /// How long a document may be, in characters.
    max: usize,
    documents: BTreeMap<i64, ImportedDocument>,
    /// What pieces say, by the numbers that they had.
    texts: HashMap<i64, DocumentText>,
}

/// A document that is being brought.
#[derive(Default)]
struct ImportedDocument {
    /// Its title, if it is there now.
    title: Option<String>,
    /// How long it was after a change.
    versions: Vec<(i64, i64)>,
    /// By how much the pieces that it has became longer or shorter by a change.
    lengths: BTreeMap<i64, i64>,
}

impl DocumentVersion {
    pub(crate) fn put(
        self,
        change: &mut Change<'_>,
        numbers: &mut RowNumbers,
        all: &mut DocumentImport,
    ) -> Result<()> {
        model::title(&self.title)?;
        model::tags(&self.tags)?;
        model::metadata(&self.metadata)?;
        short("source", &self.source, MAX_TEXT)?;
        self.read_from.as_deref().map_or(Ok(()), |origin| short("readFrom", origin, MAX_ORIGIN))?;
        if self.key == 0 {
            return Err(Fault::input("key", "must not be 0"));
        }
        if self.characters.max(self.bytes) > all.max as i64 {
            return Err(crate::texts::file::too_large("bytes", all.max));
        }
        numbers.require_unique(&self.row, || format!("the document {:?}", model::id(self.key)))?;
        if let Some(origin) = &self.read_from {
            numbers.require_unique(&self.row, || format!("a document that was read from {origin:?}"))?;
        }
        let [since, until, made, gone, root] = numbers.span(&self.row, RowKind::Document)?;
        let brought = all.documents.entry(self.key).or_default();
        brought.versions.push((self.row.made, self.characters));
        if self.row.is_live() {
            brought.title = Some(self.title.clone());
        }
        let text = |text: String| Value::Text(text.into());
        let new = change.one(
            "INSERT INTO documents (tenant, key, version, title, base, origin, source, kind, bytes, characters, chunks,
                 digest, tags, metadata, created, since, until, made, gone, root)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)
             RETURNING id",
            &[
                number("key", self.key)?,
                number("version", self.version)?,
                text(self.title),
                text(self.knowledge_base.as_str().to_owned()),
                self.read_from.map_or(Value::Null, text),
                text(self.source),
                text(Kind::named(&self.kind).as_str().to_owned()),
                number("bytes", self.bytes)?,
                number("characters", self.characters)?,
                number("chunks", self.chunks)?,
                Value::Int(self.digest),
                text(Json::from(self.tags).to_string()),
                text(Json::from(self.metadata).to_string()),
                number("created", self.created)?,
                since,
                until,
                made,
                gone,
                root,
            ],
            |row| row.int(0),
        )?;
        numbers.add(RowKind::Document, self.row.id, new).map(drop)
    }
}

impl DocumentText {
    pub(crate) fn put(
        self,
        change: &mut Change<'_>,
        numbers: &mut RowNumbers,
        all: &mut DocumentImport,
    ) -> Result<()> {
        short("content", &self.content, MAX_TEXT)?;
        all.document(self.document)?;
        let (new, _) = chunks::write_text(change, self.document, &self.content)?;
        numbers.add(RowKind::Text, self.id, Some(new))?;
        all.texts.insert(self.id, self);
        Ok(())
    }
}

impl DocumentPiece {
    pub(crate) fn put(
        self,
        change: &mut Change<'_>,
        numbers: &mut RowNumbers,
        all: &mut DocumentImport,
    ) -> Result<()> {
        short("heading", &self.heading, MAX_TEXT)?;
        numbers.require_unique(&self.row, || {
            format!("the piece {} of the document {}", self.place, self.document)
        })?;
        let text = numbers.new_number(RowKind::Text, "text", self.text)?;
        let said = all.texts.get(&self.text).filter(|text| text.document == self.document);
        let said = said.ok_or_else(|| Fault::input("text", "is not one of this document"))?;
        let fresh = usize::try_from(self.lead).ok().and_then(|lead| said.content.get(lead..));
        if fresh.map(|fresh| fresh.chars().count() as i64) != Some(self.length) {
            return Err(Fault::input("length", "is not what the text has after \"lead\""));
        }
        let brought = all.document(self.document)?;
        *brought.lengths.entry(self.row.made).or_default() += self.length;
        if let Some(gone) = self.row.gone {
            *brought.lengths.entry(gone).or_default() -= self.length;
        }
        let [since, until, made, gone, _] = numbers.span(&self.row, RowKind::Piece)?;
        change.run(
            "INSERT INTO chunks (tenant, document, text, place, heading, lead, start, length, first_line, last_line,
                 since, until, made, gone)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            &[
                Value::Int(self.document),
                Value::Int(text),
                number("place", self.place)?,
                Value::Text(self.heading.into()),
                number("lead", self.lead)?,
                number("start", self.start)?,
                number("length", self.length)?,
                number("firstLine", self.first_line)?,
                number("lastLine", self.last_line)?,
                since,
                until,
                made,
                gone,
            ],
        )?;
        Ok(())
    }
}

impl DocumentImport {
    pub(crate) fn new(max: usize) -> DocumentImport {
        DocumentImport { max, documents: BTreeMap::new(), texts: HashMap::new() }
    }

    fn document(&mut self, key: i64) -> Result<&mut ImportedDocument> {
        let known = self.documents.get_mut(&key);
        known.ok_or_else(|| Fault::input("document", format!("{key} does not stand before this line")))
    }

    /// Sees to it that every version is as long as it says, and that what is there can be found.
    pub(crate) fn settle(self, change: &mut Change<'_>) -> Result<()> {
        drop(self.texts);
        for (key, mut brought) in self.documents {
            let mut lengths = brought.lengths.into_iter().peekable();
            let mut length = 0;
            brought.versions.sort_unstable();
            for (made, characters) in brought.versions {
                while let Some((_, more)) = lengths.next_if(|(at, _)| *at <= made) {
                    length += more;
                }
                if length != characters {
                    let id = model::id(key);
                    let why =
                        format!("{id} has {length} characters after change {made}, and says {characters}");
                    return Err(Fault::input("jsonl", why));
                }
            }
            if let Some(title) = brought.title {
                chunks::index_all(change, key, &title)?;
            }
        }
        Ok(())
    }
}

fn short(field: &str, text: &str, max: usize) -> Result<()> {
    match text.len() > max {
        true => Err(Fault::input(field, format!("must have at most {max} bytes, and has {}", text.len()))),
        false => Ok(()),
    }
}
