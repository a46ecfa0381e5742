//! Providers from variables of the environment.

use super::{Models, Provider};

/// Where the two are that have an address of their own.
pub(super) const ANTHROPIC: &str = "https://api.anthropic.com";
pub(super) const OPENAI: &str = "https://api.openai.com/v1";

/// The models that are used where nobody names one.
const CLAUDE: &str = "claude-sonnet-4-5";
const GPT: &str = "gpt-4.1";

impl Models {
    /// The providers that the environment speaks of.
    ///
    /// | Variable | What it says |
    /// |---|---|
    /// | `ANTHROPIC_API_KEY` | the key of Anthropic, which is used if it is there |
    /// | `ANTHROPIC_BASE_URL` | another address of it |
    /// | `OPENAI_API_KEY` | the key of OpenAI, which is used if it is there |
    /// | `OPENAI_BASE_URL` | another endpoint that speaks like it; it is used without a key, too |
    /// | `OLLAMA_HOST` | where Ollama listens: `127.0.0.1:11434`, for example |
    /// | `TIDEGATE_MODEL` | the model to use where nobody names one: `name` or `provider/name` |
    pub fn from_env() -> Models {
        read(|name| std::env::var(name).ok())
    }
}

fn read(variable: impl Fn(&str) -> Option<String>) -> Models {
    let set =
        |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let default_model = set("TIDEGATE_MODEL");
    let mut providers = Vec::new();
    if let Some(key) = set("ANTHROPIC_API_KEY") {
        let base = set("ANTHROPIC_BASE_URL").unwrap_or_else(|| ANTHROPIC.to_owned());
        providers.push((Provider::anthropic(base, key), Some(CLAUDE)));
    }
    match (set("OPENAI_BASE_URL"), set("OPENAI_API_KEY")) {
        (None, None) => {}
        (Some(base), None) => providers.push((Provider::openai(base), None)),
        (Some(base), Some(key)) => providers.push((Provider::openai(base).api_key(key), None)),
        (None, Some(key)) => {
            providers.push((Provider::openai(OPENAI).api_key(key), Some(GPT)));
        }
    }
    if let Some(host) = set("OLLAMA_HOST") {
        providers.push((Provider::openai(ollama(&host)).named("ollama"), None));
    }
    // Other endpoints are asked what they have, when there is nothing else to go by.
    let usual =
        providers.first().and_then(|(provider, model)| Some(format!("{}/{}", provider.name, (*model)?)));
    Models {
        providers: providers.into_iter().map(|(provider, _)| provider).collect(),
        default_model: default_model.or(usual),
        ..Models::default()
    }
}

/// The address of Ollama's endpoint, from what `OLLAMA_HOST` may say: a host, a port or both, or an address.
fn ollama(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.trim_end_matches('/');
    let (name, port) = match rest.rsplit_once(':') {
        // The colons of an IPv6 address are inside its brackets.
        Some((name, port)) if !port.contains(']') => (name, port),
        _ if scheme == "https" => (rest, "443"),
        _ => (rest, "11434"),
    };
    // To listen everywhere is not a place to go to.
    let name = if matches!(name, "" | "0.0.0.0" | "[::]") { "127.0.0.1" } else { name };
    format!("{scheme}://{name}:{port}/v1")
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Models {
        read(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_environment_names_providers() {
        let none = with(&[("ANTHROPIC_API_KEY", " "), ("ANTHROPIC_BASE_URL", "http://x")]);
        assert!(none.providers.is_empty() && none.default_model.is_none());
        let both = with(&[("ANTHROPIC_API_KEY", "a"), ("OPENAI_BASE_URL", "http://l:8080/v1")]);
        let shown: Vec<_> = both.providers.iter().map(|p| (&*p.name, p.kind, &*p.base_url)).collect();
        assert_eq!(
            shown,
            [
                ("anthropic", Kind::Anthropic, "https://api.anthropic.com"),
                ("openai", Kind::OpenAi, "http://l:8080/v1")
            ]
        );
        assert_eq!(both.default_model.as_deref(), Some("anthropic/claude-sonnet-4-5"));
        let chosen = with(&[("OPENAI_API_KEY", "a"), ("TIDEGATE_MODEL", "gpt-x")]);
        assert_eq!(chosen.default_model.as_deref(), Some("gpt-x"));
        let local = with(&[("OLLAMA_HOST", "0.0.0.0")]);
        assert_eq!((&*local.providers[0].name, local.default_model), ("ollama", None));
    }

    #[test]
    fn hosts_of_ollama_are_understood() {
        for (host, url) in [
            ("127.0.0.1", "http://127.0.0.1:11434/v1"),
            (":8000", "http://127.0.0.1:8000/v1"),
            ("0.0.0.0:8000", "http://127.0.0.1:8000/v1"),
            ("http://box:1/", "http://box:1/v1"),
            ("https://box", "https://box:443/v1"),
            ("[::1]", "http://[::1]:11434/v1"),
            ("[::]:5", "http://127.0.0.1:5/v1"),
        ] {
            assert_eq!(ollama(host), url, "{host}");
        }
    }
}
