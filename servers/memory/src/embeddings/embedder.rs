//! [`Embedder`]: makes vectors of texts, with a service or with a model in a folder.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tidegate_service::layers::Circuit;
use tokio::time::Instant;

use super::endpoint::{Endpoint, Service};
use super::local::Model;
use crate::error::{Code, Fault, Result};

/// How many texts are sent at once.
pub(crate) const BATCH: usize = 32;
/// How much of a text counts, in characters. What is longer is cut: services refuse more than some thousand tokens.
pub(crate) const MAX_TEXT: usize = 6_000;

/// Makes vectors of texts, so that what means the same is found. Clones are the same.
#[derive(Clone)]
pub struct Embedder(Arc<Kind>);

enum Kind {
    Service(Service),
    Local(Model),
}

impl Embedder {
    /// With a service that speaks as OpenAI's does. Nothing is sent yet.
    pub fn endpoint(endpoint: Endpoint) -> Result<Embedder, Fault> {
        Service::new(endpoint).map(|service| Embedder(Arc::new(Kind::Service(service))))
    }

    /// With a model2vec model in a folder: `model.safetensors`, `tokenizer.json` and `config.json`.
    pub fn folder(folder: impl AsRef<Path>) -> Result<Embedder, Fault> {
        Model::open(folder.as_ref()).map(|model| Embedder(Arc::new(Kind::Local(model))))
    }

    /// The model, by a name that differs if its vectors do.
    pub fn model(&self) -> String {
        match &*self.0 {
            Kind::Service(service) => service.name(),
            Kind::Local(model) => model.name.clone(),
        }
    }

    /// Whether texts stay on this machine.
    pub fn is_local(&self) -> bool {
        matches!(&*self.0, Kind::Local(_))
    }

    /// The circuit of the service, if texts do not stay on this machine.
    pub(crate) fn circuit(&self) -> Option<&Circuit> {
        match &*self.0 {
            Kind::Service(service) => Some(&service.circuit),
            Kind::Local(_) => None,
        }
    }

    /// The vectors of these texts, each of length 1, or all 0 if nothing of a text is known to the model.
    pub(crate) async fn embed(&self, texts: Vec<String>, within: Duration) -> Result<Vec<Vec<f32>>> {
        let texts: Vec<String> = texts.into_iter().map(shortened).collect();
        let vectors = match &*self.0 {
            Kind::Service(service) => service.embed(&texts, Instant::now() + within).await?,
            Kind::Local(_) => {
                let this = self.clone();
                let made = tokio::task::spawn_blocking(move || match &*this.0 {
                    Kind::Local(model) => texts.iter().map(|text| model.embed(text)).collect(),
                    Kind::Service(_) => Vec::new(),
                });
                made.await.map_err(|_| Fault::new(Code::Outside, "The embedding model gave no vectors"))?
            }
        };
        Ok(vectors.into_iter().map(normalised).collect())
    }
}

fn shortened(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(MAX_TEXT) {
        text.truncate(at);
    }
    // Services refuse an empty text.
    if text.trim().is_empty() { " ".to_owned() } else { text }
}

/// The same direction with the length 1.
pub(crate) fn normalised(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt() as f32;
    match length > 0.0 && length.is_finite() {
        true => vector.iter_mut().for_each(|number| *number /= length),
        false => vector.fill(0.0),
    }
    vector
}
