//! Keeping documents: new ones, new versions of old ones, and forgetting.

use serde_json::{Map, Value as Json};

use super::chunks::{numbered, replace_chunks};
use super::model::{self, Base, Document};
use super::read::{self, DocumentRow};
use crate::error::{Fault, Result};
use crate::pages;
use crate::store::{Change, Value};
use crate::texts::SourceText;
use crate::texts::chunk::chunks;
use crate::texts::kind::Kind;

/// Longest address or path that a document is found by again, in bytes: an index of PostgreSQL has room for no more.
pub(crate) const MAX_ORIGIN: usize = 2_500;

/// A document as it should be.
#[derive(Debug, Clone)]
pub(crate) struct NewVersion {
    pub(crate) title: String,
    pub(crate) base: Base,
    pub(crate) origin: Option<String>,
    pub(crate) source: String,
    pub(crate) kind: Kind,
    pub(crate) tags: Vec<String>,
    pub(crate) metadata: Map<String, Json>,
    /// `None` leaves the text as it is.
    pub(crate) text: Option<String>,
}

/// What became of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    Created,
    Updated,
    Unchanged,
}

impl WriteOutcome {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            WriteOutcome::Created => "created",
            WriteOutcome::Updated => "updated",
            WriteOutcome::Unchanged => "unchanged",
        }
    }
}

/// What a caller says of a document besides its text.
#[derive(Debug, Clone, Default)]
pub(crate) struct DocumentFields {
    pub(crate) title: Option<String>,
    pub(crate) base: Option<Base>,
    pub(crate) tags: Option<Vec<String>>,
    pub(crate) metadata: Option<Map<String, Json>>,
}

impl DocumentFields {
    pub(crate) fn check(&self) -> Result<()> {
        self.title.as_deref().map_or(Ok(()), model::title)?;
        self.tags.as_deref().map_or(Ok(()), model::tags)?;
        self.metadata.as_ref().map_or(Ok(()), model::metadata)
    }
}

/// Keeps a text: as a new version of the document that came from the same place or says the same, or as a new one.
/// What is not given stays as it was.
pub(crate) fn ingest(
    change: &mut Change<'_>,
    given: DocumentFields,
    taken: SourceText,
) -> Result<(Document, WriteOutcome)> {
    if let Some(origin) = taken.origin.as_ref().filter(|origin| origin.len() > MAX_ORIGIN) {
        let field = if origin.starts_with("file:") { "file_path" } else { "url" };
        let reason = format!("must have at most {MAX_ORIGIN} bytes in full, and has {}", origin.len());
        return Err(Fault::input(field, reason));
    }
    let base = given.base.unwrap_or(Base::Documents);
    let title = given.title.clone().unwrap_or_else(|| taken.title());
    let known = match &taken.origin {
        Some(origin) => read::by_origin(change, origin)?,
        None => {
            let mut same = None;
            for kept in read::with_digest(change, pages::digest(&taken.text), &title, base)? {
                if same.is_none() && read::text(change, &kept)? == taken.text {
                    same = Some(kept);
                }
            }
            same
        }
    };
    if let Some(kept) = known {
        let old = as_it_is(&kept);
        let wanted = NewVersion {
            title: given.title.unwrap_or(old.title),
            base: given.base.unwrap_or(old.base),
            tags: given.tags.unwrap_or(old.tags),
            metadata: given.metadata.unwrap_or(old.metadata),
            origin: taken.origin,
            source: taken.source,
            kind: taken.kind,
            text: Some(taken.text),
        };
        return replace(change, kept, wanted);
    }
    let wanted = NewVersion {
        title,
        base,
        tags: given.tags.unwrap_or_default(),
        metadata: given.metadata.unwrap_or_default(),
        origin: taken.origin,
        source: taken.source,
        kind: taken.kind,
        text: None,
    };
    let key = row(change, None, &wanted, &Measures::of(&taken.text), 1)?;
    let count = replace_chunks(change, key, &wanted.title, &chunks(&taken.text, wanted.kind), true)?;
    set_chunk_count(change, key, count)?;
    Ok((read::require(change, key)?.document, WriteOutcome::Created))
}

/// Makes a new version of a document, unless it is as wanted already.
pub(crate) fn replace(
    change: &mut Change<'_>,
    kept: DocumentRow,
    wanted: NewVersion,
) -> Result<(Document, WriteOutcome)> {
    let before = read::text(change, &kept)?;
    let text = wanted.text.as_deref().unwrap_or(&before);
    let old = &kept.document;
    let same_text = text == before && wanted.kind == kept.kind;
    let same = same_text
        && (&wanted.title, wanted.base.as_str(), &wanted.tags, &wanted.metadata, &wanted.source)
            == (&old.title, &*old.knowledge_base, &old.tags, &old.metadata, &old.source);
    if same {
        return Ok((kept.document, WriteOutcome::Unchanged));
    }
    close(change, kept.key)?;
    row(change, Some(&kept), &wanted, &Measures::of(text), kept.document.version + 1)?;
    let retitled = wanted.title != kept.document.title;
    let count = replace_chunks(change, kept.key, &wanted.title, &chunks(text, wanted.kind), retitled)?;
    set_chunk_count(change, kept.key, count)?;
    Ok((read::require(change, kept.key)?.document, WriteOutcome::Updated))
}

/// Forgets a document. Its history stays.
pub(crate) fn delete(change: &mut Change<'_>, key: i64) -> Result<Document> {
    let kept = read::require(change, key)?;
    close(change, key)?;
    replace_chunks(change, key, &kept.document.title, &[], false)?;
    Ok(kept.document)
}

/// How long a text is.
struct Measures {
    bytes: i64,
    characters: i64,
    digest: i64,
}

impl Measures {
    fn of(text: &str) -> Measures {
        Measures {
            bytes: text.len() as i64,
            characters: text.chars().count() as i64,
            digest: pages::digest(text),
        }
    }
}

/// Writes a version. Returns the number of its document.
fn row(
    change: &mut Change<'_>,
    before: Option<&DocumentRow>,
    wanted: &NewVersion,
    measures: &Measures,
    version: i64,
) -> Result<i64> {
    let text = |text: &str| Value::Text(text.to_owned().into());
    let values = [
        Value::Int(before.map_or(0, |kept| kept.key)),
        Value::Int(version),
        text(&wanted.title),
        text(wanted.base.as_str()),
        wanted.origin.as_deref().map_or(Value::Null, text),
        text(&wanted.source),
        text(wanted.kind.as_str()),
        Value::Int(measures.bytes),
        Value::Int(measures.characters),
        Value::Int(measures.digest),
        text(&Json::from(wanted.tags.clone()).to_string()),
        text(&Json::from(wanted.metadata.clone()).to_string()),
        Value::Int(before.map_or(change.now, |kept| kept.document.created_at)),
        Value::Int(change.now),
        Value::Int(change.id),
    ];
    let id = change.one(
        "INSERT INTO documents (tenant, key, version, title, base, origin, source, kind, bytes, characters, chunks,
             digest, tags, metadata, created, since, made)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, ?11, ?12, ?13, ?14, ?15, ?16) RETURNING id",
        &values,
        |row| row.int(0),
    )?;
    let id = numbered(id)?;
    if let Some(kept) = before {
        return Ok(kept.key);
    }
    // Documents that were brought from elsewhere kept their numbers, which may be larger.
    let last = change.one("SELECT max(key) FROM documents WHERE tenant = ?1", &[], |row| row.maybe_int(0))?;
    let key = id.max(last.flatten().unwrap_or_default() + 1);
    change.run(
        "UPDATE documents SET key = ?3 WHERE tenant = ?1 AND id = ?2",
        &[Value::Int(id), Value::Int(key)],
    )?;
    Ok(key)
}

pub(crate) fn set_chunk_count(change: &mut Change<'_>, key: i64, chunks: usize) -> Result<()> {
    let sql = "UPDATE documents SET chunks = ?3 WHERE tenant = ?1 AND key = ?2 AND gone IS NULL";
    change.run(sql, &[Value::Int(key), Value::Int(chunks as i64)]).map(drop)
}

fn close(change: &mut Change<'_>, key: i64) -> Result<()> {
    let sql = "UPDATE documents SET until = ?2, gone = ?3 WHERE tenant = ?1 AND key = ?4 AND gone IS NULL";
    change.run(sql, &[Value::Int(change.now), Value::Int(change.id), Value::Int(key)]).map(drop)
}

/// What a document is now, as what it should be.
pub(crate) fn as_it_is(kept: &DocumentRow) -> NewVersion {
    let document = &kept.document;
    NewVersion {
        title: document.title.clone(),
        base: Base::named(&document.knowledge_base),
        origin: kept.origin.clone(),
        source: document.source.clone(),
        kind: kept.kind,
        tags: document.tags.clone(),
        metadata: document.metadata.clone(),
        text: None,
    }
}
