//! Reading documents: what there is, what it says, and what it said.

use schemars::JsonSchema;
use serde::Serialize;

use super::model::{self, Base, Document};
use crate::error::{Code, Fault, Result};
use crate::pages::PageText;
use crate::store::{Row, Value, View, prefix_range};
use crate::texts::kind::Kind;

/// The columns of [`DocumentRow::read`].
const COLUMNS: &str = "key, version, title, base, origin, source, kind, bytes, characters, chunks, tags, metadata, created, since, \
                       made, gone";
/// How many columns those are.
const WIDTH: usize = 16;

/// A version of a document as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct DocumentRow {
    pub(crate) key: i64,
    pub(crate) origin: Option<String>,
    pub(crate) kind: Kind,
    /// The change that made this version.
    pub(crate) made: i64,
    pub(crate) gone: Option<i64>,
    pub(crate) document: Document,
}

impl DocumentRow {
    fn read(row: &dyn Row) -> Result<DocumentRow> {
        let (key, kind) = (row.int(0)?, Kind::named(&row.text(6)?));
        Ok(DocumentRow {
            key,
            origin: row.maybe_text(4)?,
            kind,
            made: row.int(14)?,
            gone: row.maybe_int(15)?,
            document: Document {
                id: model::id(key),
                uri: model::uri(key),
                version: row.int(1)?,
                title: row.text(2)?,
                knowledge_base: row.text(3)?,
                source: row.text(5)?,
                mime_type: kind.mime_type().to_owned(),
                bytes: row.int(7)?,
                characters: row.int(8)?,
                chunks: row.int(9)?,
                tags: serde_json::from_str(&row.text(10)?).unwrap_or_default(),
                metadata: serde_json::from_str(&row.text(11)?).unwrap_or_default(),
                created_at: row.int(12)?,
                updated_at: row.int(13)?,
            },
        })
    }
}

/// The document with this number, if it is there.
pub(crate) fn find(view: &mut View<'_>, key: i64) -> Result<Option<DocumentRow>> {
    let sql = format!("SELECT {COLUMNS} FROM documents WHERE tenant = ?1 AND key = ?2 AND gone IS NULL");
    view.one(&sql, &[Value::Int(key)], DocumentRow::read)
}

/// A version by the number of its row.
pub(crate) fn row(view: &mut View<'_>, id: i64) -> Result<DocumentRow> {
    let sql = format!("SELECT {COLUMNS} FROM documents WHERE tenant = ?1 AND id = ?2");
    let found = view.one(&sql, &[Value::Int(id)], DocumentRow::read)?;
    found.ok_or_else(|| Fault::new(Code::Database, "The version is not there any more"))
}

/// The document with this number, or a sentence.
pub(crate) fn require(view: &mut View<'_>, key: i64) -> Result<DocumentRow> {
    find(view, key)?.ok_or_else(|| model::none(key))
}

/// One version of a document, whatever became of it.
pub(crate) fn version(view: &mut View<'_>, key: i64, version: i64) -> Result<Option<DocumentRow>> {
    let sql = format!("SELECT {COLUMNS} FROM documents WHERE tenant = ?1 AND key = ?2 AND version = ?3");
    view.one(&sql, &[Value::Int(key), Value::Int(version)], DocumentRow::read)
}

/// A version of a document, and when it held.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Version {
    /// What the document was then, without its text.
    #[serde(flatten)]
    document: Document,
    /// From when on it was so, in milliseconds.
    valid_from: i64,
    /// Until when; absent if it still is.
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_to: Option<i64>,
    /// Who made it so.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_by: Option<String>,
}

/// The last versions of a document before one, at most `limit`, oldest first, whatever became of it; and how many there
/// are in all.
pub(crate) fn history(
    view: &mut View<'_>,
    key: i64,
    limit: usize,
    before: Option<i64>,
) -> Result<(Vec<Version>, i64)> {
    let columns = COLUMNS.split(", ").map(|column| format!("d.{column}")).collect::<Vec<_>>().join(", ");
    let sql = format!(
        "SELECT {columns}, d.until, c.who FROM documents d
         LEFT JOIN changes c ON c.tenant = ?1 AND c.id = d.made
         WHERE d.tenant = ?1 AND d.key = ?2 AND d.version < ?3 ORDER BY d.version DESC LIMIT ?4"
    );
    let values = [Value::Int(key), Value::Int(before.unwrap_or(i64::MAX)), Value::Int(limit as i64)];
    let mut versions = view.all(&sql, &values, |row| {
        let document = DocumentRow::read(row)?.document;
        let (valid_to, changed_by) = (row.maybe_int(WIDTH)?, row.maybe_text(WIDTH + 1)?);
        Ok(Version { valid_from: document.updated_at, document, valid_to, changed_by })
    })?;
    versions.reverse();
    let count = view.one(
        "SELECT count(*) FROM documents WHERE tenant = ?1 AND key = ?2",
        &[Value::Int(key)],
        |row| row.int(0),
    )?;
    Ok((versions, count.unwrap_or_default()))
}

/// The last version of a document, whatever became of it.
pub(crate) fn last(view: &mut View<'_>, key: i64) -> Result<Option<DocumentRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM documents WHERE tenant = ?1 AND key = ?2 ORDER BY version DESC LIMIT 1"
    );
    view.one(&sql, &[Value::Int(key)], DocumentRow::read)
}

/// The document that was read from there.
pub(crate) fn by_origin(view: &mut View<'_>, origin: &str) -> Result<Option<DocumentRow>> {
    let sql = format!("SELECT {COLUMNS} FROM documents WHERE tenant = ?1 AND origin = ?2 AND gone IS NULL");
    view.one(&sql, &[Value::Text(origin.into())], DocumentRow::read)
}

/// The documents of this digest that were given as text, under this title and on this shelf.
pub(crate) fn with_digest(
    view: &mut View<'_>,
    digest: i64,
    title: &str,
    base: Base,
) -> Result<Vec<DocumentRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM documents WHERE tenant = ?1 AND digest = ?2 AND title = ?3 AND base = ?4
         AND origin IS NULL AND gone IS NULL ORDER BY key"
    );
    let values = [Value::Int(digest), Value::Text(title.into()), Value::Text(base.as_str().into())];
    view.all(&sql, &values, DocumentRow::read)
}

/// Documents, the newest first, from those older than the one with the number `before`.
pub(crate) fn list(
    view: &mut View<'_>,
    base: Option<Base>,
    before: Option<i64>,
    limit: usize,
) -> Result<Vec<DocumentRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM documents WHERE tenant = ?1 AND gone IS NULL AND key < ?2
         AND (?3 = '' OR base = ?3) ORDER BY key DESC LIMIT ?4"
    );
    let base = base.map_or("", Base::as_str);
    let values = [Value::Int(before.unwrap_or(i64::MAX)), Value::Text(base.into()), Value::Int(limit as i64)];
    view.all(&sql, &values, DocumentRow::read)
}

/// The document of this id, address or title.
pub(crate) fn by_name(view: &mut View<'_>, name: &str) -> Result<Option<DocumentRow>> {
    if let Ok(key) = model::key("id", name)
        && let Some(kept) = find(view, key)?
    {
        return Ok(Some(kept));
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM documents WHERE tenant = ?1 AND title = ?2 AND gone IS NULL ORDER BY key DESC LIMIT 1"
    );
    view.one(&sql, &[Value::Text(name.trim().into())], DocumentRow::read)
}

/// Documents whose title begins so, in capitals or not: their numbers and titles.
pub(crate) fn by_title_prefix(view: &mut View<'_>, typed: &str, limit: usize) -> Result<Vec<(i64, String)>> {
    let [from, to] = prefix_range(typed);
    view.all(
        "SELECT key, title FROM documents
         WHERE tenant = ?1 AND gone IS NULL AND LOWER(title) >= ?2 AND LOWER(title) < ?3
         ORDER BY LOWER(title), title, key LIMIT ?4",
        &[from, to, Value::Int(limit as i64)],
        |row| Ok((row.int(0)?, row.text(1)?)),
    )
}

/// The numbers of documents whose number begins with these digits.
pub(crate) fn by_number_prefix(view: &mut View<'_>, digits: &str, limit: usize) -> Result<Vec<i64>> {
    let mut found = Vec::new();
    let Some(first) = digits.parse::<i64>().ok().filter(|first| *first > 0) else { return Ok(found) };
    // 12, then 120 to 129, then 1200 to 1299, …
    for zeros in 0..=18 {
        let span = 10_i64.pow(zeros);
        let Some(from) = first.checked_mul(span).filter(|_| found.len() < limit) else { break };
        let rest = Value::Int((limit - found.len()) as i64);
        found.extend(view.all(
            "SELECT key FROM documents WHERE tenant = ?1 AND gone IS NULL AND key >= ?2 AND key <= ?3
             ORDER BY key LIMIT ?4",
            &[Value::Int(from), Value::Int(from.saturating_add(span - 1)), rest],
            |row| row.int(0),
        )?);
    }
    Ok(found)
}

/// Part of the text of a version: `limit` characters from `offset`.
pub(crate) fn text_range(view: &mut View<'_>, kept: &DocumentRow, offset: i64, limit: i64) -> Result<String> {
    let mut text = String::new();
    let end = offset.saturating_add(limit);
    // The pieces that this version had: those that were there after the change that made it.
    view.each(
        "SELECT c.start, c.lead, t.content FROM chunks c JOIN document_texts t ON t.tenant = ?1 AND t.id = c.text
         WHERE c.tenant = ?1 AND c.document = ?2 AND c.made <= ?3 AND (c.gone IS NULL OR c.gone > ?3)
         AND c.start < ?5 AND c.start + c.length > ?4 ORDER BY c.place",
        &[Value::Int(kept.key), Value::Int(kept.made), Value::Int(offset), Value::Int(end)],
        |row| {
            let (start, lead, content) = (row.int(0)?, row.int(1)? as usize, row.text(2)?);
            let fresh = content.get(lead..).unwrap_or_default();
            let (skip, room) = ((offset - start).max(0), end - start.max(offset));
            text.extend(fresh.chars().skip(skip as usize).take(room as usize));
            Ok(())
        },
    )?;
    Ok(text)
}

/// The whole text of a version.
pub(crate) fn text(view: &mut View<'_>, kept: &DocumentRow) -> Result<String> {
    text_range(view, kept, 0, i64::MAX)
}

/// A piece of a document, found by its page.
pub(crate) struct FoundChunk {
    pub(crate) key: i64,
    pub(crate) title: String,
    pub(crate) base: String,
    pub(crate) source: String,
    pub(crate) place: i64,
    pub(crate) heading: String,
    pub(crate) first_line: i64,
    pub(crate) last_line: i64,
    pub(crate) content: String,
}

/// What the page of a piece says, with the title of its document and the heading that it stands under.
pub(crate) fn page_text(view: &mut View<'_>, page: i64) -> Result<Option<PageText>> {
    let piece = piece(view, page)?;
    Ok(piece.map(|piece| PageText { name: piece.title, about: piece.heading, body: piece.content }))
}

/// The piece whose page this is, unless its document does not have it any more.
pub(crate) fn piece(view: &mut View<'_>, page: i64) -> Result<Option<FoundChunk>> {
    view.one(
        "SELECT d.key, d.title, d.base, d.source, c.place, c.heading, c.first_line, c.last_line, t.content
         FROM document_texts t
         JOIN chunks c ON c.tenant = ?1 AND c.text = t.id AND c.gone IS NULL
         JOIN documents d ON d.tenant = ?1 AND d.key = c.document AND d.gone IS NULL
         WHERE t.tenant = ?1 AND t.page = ?2 ORDER BY c.place LIMIT 1",
        &[Value::Int(page)],
        |row| {
            Ok(FoundChunk {
                key: row.int(0)?,
                title: row.text(1)?,
                base: row.text(2)?,
                source: row.text(3)?,
                place: row.int(4)?,
                heading: row.text(5)?,
                first_line: row.int(6)?,
                last_line: row.int(7)?,
                content: row.text(8)?,
            })
        },
    )
}
