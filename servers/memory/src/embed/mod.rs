//! Embeddings: texts as vectors, so that what means the same is found.
//!
//! A page that is indexed is also queued here with its text. If there is a model ([`Embedder`]), a worker in the
//! background makes a vector of each text and keeps it; if the model is another than before, of all of them anew. A
//! search compares the vector of the question with all vectors of the tenant: in the database if that is PostgreSQL with
//! pgvector ([`pgvector`]), else in memory ([`index`]).

mod download;
mod embedder;
mod endpoint;
mod index;
mod kept;
mod local;
#[cfg(test)]
mod loopback;
mod meaning;
pub(crate) mod pgvector;
mod semantic;
mod tools;
mod worker;

use tidegate_server::Server;

use crate::Recall;
use crate::search::Hit;
use crate::store::{Memory, Result};

pub use download::{HUGGING_FACE, download};
pub use embedder::Embedder;
pub use endpoint::Endpoint;
pub(crate) use kept::{TABLES, forget, queue};
pub use local::FILES as MODEL_FILES;
pub(crate) use meaning::Meaning;

/// What this module adds to a server: tools, resources and prompts.
pub(crate) fn add(server: Server, recall: &Recall) -> Server {
    tools::tools(recall).into_iter().fold(server, Server::tool)
}

/// The pages of these kinds whose meaning is nearest, at most `limit`, with the cosine as score. `None` if there is no
/// model to compare with, or if it does not answer: then the words must do.
pub(crate) async fn near(
    recall: &Recall,
    memory: &Memory,
    text: &str,
    kinds: &[i64],
    limit: usize,
) -> Result<Option<Vec<Hit>>> {
    let Some(meaning) = &recall.meaning else { return Ok(None) };
    match meaning.nearest(memory, text, kinds, limit).await {
        Ok(hits) => Ok(Some(hits)),
        Err(fault) if fault.code.is_outside() => {
            tracing::warn!(%fault, "searching by words alone");
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

/// How many pages wait for a vector.
pub(crate) async fn pending(recall: &Recall, memory: &Memory) -> Result<i64> {
    let Some(meaning) = &recall.meaning else { return Ok(0) };
    let model = meaning.model().clone();
    memory.view(move |view| kept::count_pending(view, &model)).await
}
