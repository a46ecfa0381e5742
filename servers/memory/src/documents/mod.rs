//! Documents: texts that were given to keep, in pieces that can be found.
//!
//! A document has versions, and a version has chunks: pieces of its text that are found by their words. The text of a
//! piece is kept once, however many versions have it.

pub(crate) mod chunks;
pub(crate) mod model;
pub(crate) mod read;
mod undo;
pub(crate) mod write;

pub(crate) use read::page_text;
pub(crate) use undo::undo;

/// The tables of this module.
pub(crate) const TABLES: &[&str] = &[
    // `key` is the same in all versions of a document. `origin` is the page or file that it was read from, if it was.
    "CREATE TABLE documents (
        id INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL, key INTEGER NOT NULL, version INTEGER NOT NULL,
        title TEXT NOT NULL, base TEXT NOT NULL, origin TEXT, source TEXT NOT NULL, kind TEXT NOT NULL,
        bytes INTEGER NOT NULL, characters INTEGER NOT NULL, chunks INTEGER NOT NULL, digest INTEGER NOT NULL,
        tags TEXT NOT NULL, metadata TEXT NOT NULL, created INTEGER NOT NULL,
        since INTEGER NOT NULL, until INTEGER, made INTEGER NOT NULL, gone INTEGER)",
    "CREATE UNIQUE INDEX documents_live ON documents (tenant, key) WHERE gone IS NULL",
    "CREATE UNIQUE INDEX documents_from ON documents (tenant, origin) WHERE gone IS NULL",
    "CREATE INDEX documents_all ON documents (tenant, key, version)",
    "CREATE INDEX documents_alike ON documents (tenant, digest)",
    // The text of pieces. Its page is in the index of words as long as a chunk that is not gone has the text.
    "CREATE TABLE document_texts (
        id INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL, document INTEGER NOT NULL, page INTEGER NOT NULL,
        digest INTEGER NOT NULL, content TEXT NOT NULL)",
    "CREATE INDEX document_texts_of ON document_texts (tenant, document, digest)",
    "CREATE INDEX document_texts_on ON document_texts (tenant, page)",
    // Where a piece stands in its document. The first `lead` bytes of its text are the end of the piece before.
    "CREATE TABLE chunks (
        id INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL, document INTEGER NOT NULL, text INTEGER NOT NULL, place INTEGER NOT NULL,
        heading TEXT NOT NULL, lead INTEGER NOT NULL, start INTEGER NOT NULL, length INTEGER NOT NULL,
        first_line INTEGER NOT NULL, last_line INTEGER NOT NULL,
        since INTEGER NOT NULL, until INTEGER, made INTEGER NOT NULL, gone INTEGER)",
    "CREATE UNIQUE INDEX chunks_live ON chunks (tenant, document, place) WHERE gone IS NULL",
    "CREATE INDEX chunks_all ON chunks (tenant, document, id)",
    "CREATE INDEX chunks_with ON chunks (tenant, text) WHERE gone IS NULL",
];

/// What came with undo: what a change did to documents can be found and undone.
pub(crate) const UNDO_COLUMNS: &[&str] = &[
    // A row that brings back another one says which: the first of its kind.
    "ALTER TABLE documents ADD COLUMN root INTEGER",
    "CREATE INDEX documents_made ON documents (tenant, made)",
    "CREATE INDEX documents_gone ON documents (tenant, gone) WHERE gone IS NOT NULL",
];

/// What came with lists in parts: documents are found by how their titles begin.
pub(crate) const LIST_INDEXES: &[&str] =
    &["CREATE INDEX documents_begin ON documents (tenant, LOWER(title), title) WHERE gone IS NULL"];
