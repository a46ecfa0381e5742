//! The names of models: which one to ask for, and what a name says about its model.

use serde_json::Value;

use tidegate_web::Request;

use super::http::{MAX_ANSWER, WITHIN, address, headers, outside, unreachable};
use super::{ModelChoice, Models, Provider};
use crate::error::{Fault, Result};

/// Words that only models have in their names which do not talk: they compare, hear, speak, draw or judge.
const WORDS: [&str; 16] = [
    "tts", "stt", "asr", "bge", "e5", "gte", "clip", "siglip", "flux", "sdxl", "sora", "veo", "imagen",
    "image", "ocr", "reward",
];
/// The same, wherever they stand in a name.
const PARTS: [&str; 13] = [
    "embed",
    "minilm",
    "sentence-t5",
    "rerank",
    "guard",
    "moderation",
    "whisper",
    "transcri",
    "dall-e",
    "diffusion",
    "speech",
    "babbage",
    "davinci",
];

/// The model to ask for: the chosen one, or the first that the provider has and that can talk.
pub(crate) async fn name_of(models: &Models, chosen: ModelChoice<'_>) -> Result<String> {
    if let Some(name) = chosen.model {
        let listed = if chosen.doubtful { has(models, chosen.provider).await.ok() } else { None };
        return match listed {
            Some(listed) if !listed.is_empty() && !listed.iter().any(|known| known == name) => {
                Err(models.unknown(name))
            }
            _ => Ok(name.to_owned()),
        };
    }
    let listed = has(models, chosen.provider).await?;
    let first = listed.iter().find(|name| can_talk(name)).cloned();
    first.ok_or_else(|| {
        let why = if listed.is_empty() { "has no models" } else { "has no chat model" };
        nameless(chosen.provider, why)
    })
}

fn nameless(provider: &Provider, why: &str) -> Fault {
    outside(format!(
        "The provider {} {why}: name a model, in the call, in the agent or with TIDEGATE_MODEL",
        provider.name
    ))
}

/// The models that a provider says it has.
async fn has(models: &Models, provider: &Provider) -> Result<Vec<String>> {
    let at = address(provider, "models")?;
    let pass = models.leave(provider, None, None)?;
    let response = match models.web.send(Request::get(at).headers(headers(provider)?).within(WITHIN)).await {
        Ok(response) => response,
        Err(error) => {
            let fault = unreachable(provider, &error);
            pass.failure(&fault.message);
            return Err(fault);
        }
    };
    match response.status() {
        status if status.is_server_error() => pass.failure(&format!("it answered {status}")),
        _ => pass.success(),
    }
    if !response.status().is_success() {
        return Err(nameless(provider, "does not list its models"));
    }
    let listed = serde_json::from_slice::<Value>(&response.beginning(MAX_ANSWER).await).unwrap_or_default();
    let names = |list: &Value, name: &str| -> Vec<String> {
        let items = list.as_array().into_iter().flatten();
        items.filter_map(|item| item[name].as_str().map(str::to_owned)).collect()
    };
    let data = names(&listed["data"], "id");
    Ok(if data.is_empty() { names(&listed["models"], "name") } else { data })
}

/// Whether a model can be talked with, as far as its name tells.
fn can_talk(name: &str) -> bool {
    let name = name.to_lowercase();
    let mut words = name.split(|c: char| !c.is_alphanumeric());
    !PARTS.iter().any(|part| name.contains(part)) && !words.any(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_do_not_talk_are_known_by_their_names() {
        for name in [
            "nomic-embed-text:latest",
            "text-embedding-3-small",
            "mxbai-embed-large",
            "bge-m3",
            "all-minilm:l6-v2",
            "intfloat/e5-large",
            "whisper-1",
            "gpt-4o-transcribe",
            "dall-e-3",
            "gpt-image-1",
            "tts-1-hd",
            "jina-reranker-v2",
            "omni-moderation-latest",
            "llama-guard3:8b",
            "stable-diffusion-xl",
            "davinci-002",
        ] {
            assert!(!can_talk(name), "{name}");
        }
        for name in [
            "llama3.2:latest",
            "gpt-4.1",
            "claude-sonnet-4-5",
            "qwen3:8b",
            "mistral",
            "deepseek-r1",
            "gemma3",
        ] {
            assert!(can_talk(name), "{name}");
        }
    }
}
