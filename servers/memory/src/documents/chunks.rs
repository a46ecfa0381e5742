//! The pieces of a document: where they stand, what they say, and the index of their words.
//!
//! Of a new version only what is new is written: pieces that say the same at the same place stay as they are, and pieces
//! that say the same elsewhere keep their text and their page.

use std::collections::{BTreeMap, BTreeSet};

use crate::embeddings;
use crate::error::{Code, Fault, Result};
use crate::pages;
use crate::search::{self, IndexText};
use crate::store::{Change, Value};
use crate::texts::chunk::Chunk;

/// Where a piece stands, and which text it has.
#[derive(PartialEq, Eq, Clone)]
struct ChunkRow {
    text: i64,
    heading: String,
    lead: i64,
    start: i64,
    length: i64,
    first_line: i64,
    last_line: i64,
}

/// Makes these the pieces of a document, and returns how many they are. All are indexed anew if `afresh`, else those
/// that are new or stand under another heading.
pub(crate) fn replace_chunks(
    change: &mut Change<'_>,
    key: i64,
    title: &str,
    chunks: &[Chunk<'_>],
    afresh: bool,
) -> Result<usize> {
    let before = change.all(
        "SELECT text, heading, lead, start, length, first_line, last_line FROM chunks
         WHERE tenant = ?1 AND document = ?2 AND gone IS NULL ORDER BY place",
        &[Value::Int(key)],
        |row| {
            Ok(ChunkRow {
                text: row.int(0)?,
                heading: row.text(1)?,
                lead: row.int(2)?,
                start: row.int(3)?,
                length: row.int(4)?,
                first_line: row.int(5)?,
                last_line: row.int(6)?,
            })
        },
    )?;
    let mut after = Vec::with_capacity(chunks.len());
    let mut contents = BTreeMap::new();
    for chunk in chunks {
        let (text, page) = text_of(change, key, chunk.text)?;
        contents.entry(text).or_insert((page, chunk.text));
        after.push(ChunkRow {
            text,
            heading: chunk.heading.clone(),
            lead: chunk.lead as i64,
            start: chunk.start as i64,
            length: chunk.length as i64,
            first_line: chunk.first_line as i64,
            last_line: chunk.last_line as i64,
        });
    }
    for place in 0..before.len().max(after.len()) {
        if before.get(place) != after.get(place) {
            put(change, key, place as i64, after.get(place))?;
        }
    }
    let (old, new) = (headed(&before), headed(&after));
    for text in old.keys().filter(|text| !new.contains_key(*text)) {
        let page = change.one(
            "SELECT page FROM document_texts WHERE tenant = ?1 AND id = ?2",
            &[Value::Int(*text)],
            |row| row.int(0),
        )?;
        page.map_or(Ok(()), |page| unindex(change, page))?;
    }
    for (text, heading) in &new {
        if (afresh || old.get(text) != Some(heading))
            && let Some((page, content)) = contents.get(text)
        {
            index(change, *page, title, heading, content)?;
        }
    }
    Ok(after.len())
}

/// The texts of pieces, each with the heading where it stands first.
fn headed(placed: &[ChunkRow]) -> BTreeMap<i64, &str> {
    placed.iter().rev().map(|placed| (placed.text, placed.heading.as_str())).collect()
}

/// The number and the page of a text, which is written if the document never had it.
fn text_of(change: &mut Change<'_>, key: i64, content: &str) -> Result<(i64, i64)> {
    let known = change.one(
        "SELECT id, page FROM document_texts WHERE tenant = ?1 AND document = ?2 AND digest = ?3 AND content = ?4",
        &[Value::Int(key), Value::Int(pages::digest(content)), Value::Text(content.into())],
        |row| Ok((row.int(0)?, row.int(1)?)),
    )?;
    match known {
        Some(known) => Ok(known),
        None => write_text(change, key, content),
    }
}

/// Writes a text that the document never had. Returns its number and its page.
pub(crate) fn write_text(change: &mut Change<'_>, key: i64, content: &str) -> Result<(i64, i64)> {
    let page = pages::create(change, pages::DOCUMENT, key, 1)?;
    let id = change.one(
        "INSERT INTO document_texts (tenant, document, page, digest, content) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id",
        &[Value::Int(key), Value::Int(page), Value::Int(pages::digest(content)), Value::Text(content.into())],
        |row| row.int(0),
    )?;
    Ok((numbered(id)?, page))
}

/// Indexes all pieces of a document.
pub(crate) fn index_all(change: &mut Change<'_>, key: i64, title: &str) -> Result<()> {
    let pieces = change.all(
        "SELECT t.page, c.heading, t.content FROM chunks c
         JOIN document_texts t ON t.tenant = ?1 AND t.id = c.text
         WHERE c.tenant = ?1 AND c.document = ?2 AND c.gone IS NULL ORDER BY c.place",
        &[Value::Int(key)],
        |row| Ok((row.int(0)?, row.text(1)?, row.text(2)?)),
    )?;
    let mut seen = BTreeSet::new();
    for (page, heading, content) in pieces {
        // Under the heading where it stands first.
        if seen.insert(page) {
            index(change, page, title, &heading, &content)?;
        }
    }
    Ok(())
}

/// Puts a piece in its place, or leaves the place empty.
fn put(change: &mut Change<'_>, key: i64, place: i64, piece: Option<&ChunkRow>) -> Result<()> {
    let (now, id) = (Value::Int(change.now), Value::Int(change.id));
    change.run(
        "UPDATE chunks SET until = ?2, gone = ?3 WHERE tenant = ?1 AND document = ?4 AND place = ?5 AND gone IS NULL",
        &[now.clone(), id.clone(), Value::Int(key), Value::Int(place)],
    )?;
    let Some(piece) = piece else { return Ok(()) };
    change.run(
        "INSERT INTO chunks (tenant, document, text, place, heading, lead, start, length, first_line, last_line,
             since, made)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        &[
            Value::Int(key),
            Value::Int(piece.text),
            Value::Int(place),
            Value::Text((&*piece.heading).into()),
            Value::Int(piece.lead),
            Value::Int(piece.start),
            Value::Int(piece.length),
            Value::Int(piece.first_line),
            Value::Int(piece.last_line),
            now,
            id,
        ],
    )?;
    Ok(())
}

/// Indexes the page of a piece anew: the title of its document, the heading that it stands under, and what it says.
fn index(change: &mut Change<'_>, page: i64, title: &str, heading: &str, body: &str) -> Result<()> {
    embeddings::queue(change, page)?;
    search::put(change, page, &IndexText { name: title, about: heading, body })
}

/// Takes a page out of the index.
fn unindex(change: &mut Change<'_>, page: i64) -> Result<()> {
    embeddings::forget(change, page)?;
    search::forget(change, page)
}

pub(crate) fn numbered(id: Option<i64>) -> Result<i64> {
    id.ok_or_else(|| Fault::new(Code::Database, "The document has no number"))
}
