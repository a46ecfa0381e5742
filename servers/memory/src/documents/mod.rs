//! Documents: texts that were given to keep, in pieces that can be found.
//!
//! A document has versions, and a version has chunks: pieces of its text that are found by their words. The text of a
//! piece is kept once, however many versions have it.

pub(crate) mod archive;
mod chunk;
mod decode;
mod fetch;
mod file;
mod html;
mod ingest;
mod keep;
mod kind;
mod lookup;
mod model;
mod pieces;
mod prompts;
mod read;
mod resources;
mod search;
mod snippet;
mod tenant;
mod tools;
mod undo;

use tidegate_server::Server;

use crate::Recall;

pub(crate) use fetch::Fetcher;
pub(crate) use model::MAX_BYTES;
pub(crate) use read::said;
pub(crate) use resources::key_at;
pub(crate) use snippet::snippet;
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

/// What came to these tables later: what a change did to documents can be undone.
pub(crate) const LATER: &[&str] = &[
    // A row that brings back another one says which: the first of its kind.
    "ALTER TABLE documents ADD COLUMN root INTEGER",
    "CREATE INDEX documents_made ON documents (tenant, made)",
    "CREATE INDEX documents_gone ON documents (tenant, gone) WHERE gone IS NOT NULL",
];

/// What this module adds to a server: tools, resources and prompts.
pub(crate) fn add(server: Server, recall: &Recall) -> Server {
    let server = ingest::tools(recall).into_iter().fold(server, Server::tool);
    let server = tools::tools(recall).into_iter().fold(server, Server::tool);
    let server = search::tools(recall).into_iter().fold(server, Server::tool);
    let server = lookup::tools(recall).into_iter().fold(server, Server::tool);
    let server = resources::add(server, recall);
    prompts::add(server, recall)
}
