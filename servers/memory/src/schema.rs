//! What is kept in the store of a memory: the tables of all its parts, in the order in which they came.

use std::path::Path;

use crate::error::{Fault, Result};
use crate::store::{self, Schema, Store};
use crate::{agents, documents, embeddings, graph, indexing, pages, search};

/// What is kept in the store of a memory. The order of the steps never changes, and none is changed once released.
pub(crate) static SCHEMA: Schema = Schema {
    steps: &[
        &[store::TABLES, graph::TABLES, pages::TABLES],
        &[documents::TABLES],
        &[agents::TABLES],
        &[embeddings::TABLES],
        &[search::TABLES, graph::SEARCH_INDEXES],
        &[graph::UNDO_COLUMNS],
        &[documents::UNDO_COLUMNS],
        &[agents::PAGES],
        &[graph::LIST_INDEXES, documents::LIST_INDEXES],
        &[search::NAMES_AS_WRITTEN],
        &[agents::OWNERS],
        &[graph::PROPERTY_TABLES],
        &[agents::ANYWHERE],
    ],
    temporary: pages::TOUCHED,
    tenant_table: search::own_table,
    prepare: embeddings::pgvector::prepare,
    unsettled: pages::TENANTS_TOUCHED,
    settle: indexing::index_touched,
};

impl Store {
    /// Opens the file, which is made if it is not there.
    pub fn open(path: impl AsRef<Path>) -> Result<Store, Fault> {
        Store::in_file(path.as_ref(), &SCHEMA)
    }

    /// Uses a database of a PostgreSQL server, version 15 or newer: `postgres://user:password@host:5432/database`. Its
    /// tables are made if they are not there. Any number of processes on any number of machines may use the same one.
    ///
    /// This waits for the server, and fails if it is not there. Later on a connection that is lost is made anew: who calls
    /// in the meantime waits up to ten seconds. A change that was being committed at that moment fails with
    /// [`Code::Uncertain`](crate::error::Code::Uncertain) and is not repeated.
    ///
    /// TLS is used if the server has it, and its certificate must then be one that the system trusts; with
    /// `?sslmode=require` a server without TLS is refused, and `?sslmode=disable` does without.
    pub fn connect(url: &str) -> Result<Store, Fault> {
        Store::on_server(url, &SCHEMA)
    }
}
