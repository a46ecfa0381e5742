//! Asking the client's own model.

use tidegate_server::{Cx, Sample};

use super::conversation::{ModelReply, Request};
use super::plain::{self, Speaker};
use crate::error::{Code, Fault, Result};

/// Asks the client's model, in plain text. `key` tells this question from the others of the call.
///
/// Nothing is waited for: the call ends with the question, and when it comes back with the answer everything before
/// this runs again. So what the request is made of must be the same then.
pub(crate) async fn say(
    cx: &Cx,
    key: &str,
    model: Option<&str>,
    request: &Request<'_>,
) -> Result<ModelReply> {
    let mut sample = Sample::new().key(key).system(plain::system(request)).max_tokens(request.max_tokens);
    if let Some(model) = model {
        sample = sample.model_hint(model);
    }
    for (who, text) in plain::messages(request.turns) {
        sample = match who {
            Speaker::User => sample.user(text),
            Speaker::Model => sample.assistant(text),
        };
    }
    let sampled = cx.try_sample(sample).await.map_err(|problem| {
        Fault::new(Code::Outside, format!("The client gave no answer of its model: what it gave {problem}"))
    })?;
    let mut said = ModelReply {
        text: sampled.text(),
        model: sampled.model,
        cut: sampled.stop_reason.as_deref() == Some("maxTokens"),
        ..ModelReply::default()
    };
    plain::read(&mut said, request);
    Ok(said)
}
