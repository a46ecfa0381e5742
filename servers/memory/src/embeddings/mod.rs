//! Embeddings: texts as vectors, so that what means the same is found.
//!
//! A page that is indexed is also queued here with its text. If there is a model ([`Embedder`]), a worker in the
//! background makes a vector of each text and keeps it; if the model is another than before, of all of them anew. A
//! search compares the vector of the question with all vectors of the tenant: in the database if that is PostgreSQL with
//! pgvector ([`pgvector`]), else in memory ([`vector_index`]).

mod download;
pub(crate) mod embedder;
mod endpoint;
mod local;
#[cfg(test)]
mod loopback;
pub(crate) mod pgvector;
mod semantic_index;
mod vector_index;
pub(crate) mod vectors;
mod worker;

pub use download::{HUGGING_FACE, download};
pub use embedder::Embedder;
pub use endpoint::Endpoint;
pub use local::FILES as MODEL_FILES;
pub(crate) use semantic_index::SemanticIndex;
pub(crate) use vectors::{TABLES, TextOfPage, forget, queue};
