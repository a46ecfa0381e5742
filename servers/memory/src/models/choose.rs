//! Choosing a model: who is asked, and by which name.

use super::{Kind, Models, Provider};
use crate::error::{Fault, Result};

/// Longest name of a model.
const MAX_NAME: usize = 200;

/// Who is asked, and for which model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelChoice<'a> {
    pub(crate) provider: &'a Provider,
    /// The model; `None` if the provider is to be asked what it has.
    pub(crate) model: Option<&'a str>,
    /// Whether the name may be meant otherwise: it has a provider in it that is not known.
    pub(crate) doubtful: bool,
}

/// A name that may be one.
pub(crate) fn check(field: &str, model: Option<&str>) -> Result<()> {
    match model {
        Some(name) if name.trim().is_empty() => Err(Fault::input(field, "must not be empty")),
        Some(name) if name.chars().count() > MAX_NAME || name.chars().any(char::is_control) => {
            Err(Fault::input(field, format!("must have at most {MAX_NAME} characters on one line")))
        }
        _ => Ok(()),
    }
}

impl Models {
    /// Who is asked for this model, or for the usual one. `None` if there is no provider at all.
    pub(crate) fn choose<'a>(&'a self, wanted: Option<&'a str>) -> Result<Option<ModelChoice<'a>>> {
        let Some(first) = self.providers.first() else { return Ok(None) };
        let Some(wanted) = wanted.or(self.default_model.as_deref()) else {
            return Ok(Some(self.usual(first)));
        };
        let alone = wanted.strip_suffix(['/', ':']).unwrap_or(wanted);
        if let Some(provider) = self.provider(alone)
            && !self.providers.iter().any(|provider| provider.models.iter().any(|known| known == wanted))
        {
            return Ok(Some(self.usual(provider)));
        }
        // `provider/model`, and `provider:model` as others write it; a model may have such signs in its own name.
        let of_provider =
            wanted.split_once(['/', ':']).and_then(|(name, model)| Some((self.provider(name)?, model)));
        let (provider, model) = match of_provider {
            Some(named) => named,
            None => (self.knows(wanted).unwrap_or(first), wanted),
        };
        let is_listed = provider.models.iter().any(|known| known == model);
        if !provider.models.is_empty() && !is_listed {
            let known = self.known().join(", ");
            return Err(Fault::input(
                "model",
                format!("{wanted:?} is not available. Available models: {known}"),
            ));
        }
        let doubtful = of_provider.is_none() && !is_listed && wanted.contains('/');
        Ok(Some(ModelChoice { provider, model: Some(model), doubtful }))
    }

    fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.name.eq_ignore_ascii_case(name))
    }

    /// The model that is used of a provider where nobody names one.
    fn usual<'a>(&'a self, provider: &'a Provider) -> ModelChoice<'a> {
        let of_default = || {
            let (name, model) = self.default_model.as_deref()?.split_once(['/', ':'])?;
            Some(model).filter(|model| name.eq_ignore_ascii_case(&provider.name) && !model.is_empty())
        };
        let model = provider.models.first().map(String::as_str).or_else(of_default);
        ModelChoice { provider, model, doubtful: false }
    }

    /// A sentence about a model whose provider is not known.
    pub(super) fn unknown(&self, model: &str) -> Fault {
        let before = model.split('/').next().unwrap_or_default();
        let names: Vec<_> = self.providers.iter().map(|provider| provider.name.as_str()).collect();
        Fault::input(
            "model",
            format!(
                "{model:?} is not known: no provider has a model of that name, and none is called {before:?}. The \
                 providers are: {}",
                names.join(", ")
            ),
        )
    }

    /// The provider that is likely to know a model.
    fn knows(&self, model: &str) -> Option<&Provider> {
        let lists = |provider: &&Provider| provider.models.iter().any(|known| known == model);
        let open = |provider: &&Provider| provider.models.is_empty();
        let kind = if model.starts_with("claude") { Kind::Anthropic } else { Kind::OpenAi };
        let providers = || self.providers.iter();
        providers()
            .find(lists)
            .or_else(|| providers().filter(open).find(|provider| provider.kind == kind))
            .or_else(|| providers().find(open))
    }

    /// The models that are listed.
    fn known(&self) -> Vec<String> {
        let of = |provider: &Provider| {
            let name = provider.name.clone();
            provider.models.iter().map(move |model| format!("{name}/{model}")).collect::<Vec<_>>()
        };
        self.providers.iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_found_where_they_are() {
        let mut models = Models::new([
            Provider::anthropic("http://a", "k").models(["claude-x", "claude-y"]),
            Provider::openai("http://o").named("local"),
        ]);
        let chosen = |models: &Models, wanted: Option<&str>| {
            let chosen = models.choose(wanted).unwrap().unwrap();
            (chosen.provider.name.clone(), chosen.model.map(str::to_owned))
        };
        for (wanted, provider, model) in [
            (None, "anthropic", Some("claude-x")),
            (Some("claude-y"), "anthropic", Some("claude-y")),
            (Some("anthropic:claude-y"), "anthropic", Some("claude-y")),
            (Some("local/llama3:8b"), "local", Some("llama3:8b")),
            (Some("llama3:8b"), "local", Some("llama3:8b")),
            (Some("org/model"), "local", Some("org/model")),
            (Some("local"), "local", None),
            (Some("Local/"), "local", None),
            (Some("anthropic"), "anthropic", Some("claude-x")),
            (Some("anthropic:"), "anthropic", Some("claude-x")),
        ] {
            assert_eq!(
                chosen(&models, wanted),
                (provider.to_owned(), model.map(str::to_owned)),
                "{wanted:?}"
            );
        }
        let refused = models.choose(Some("anthropic/gpt")).unwrap_err();
        assert!(refused.message.contains("anthropic/claude-x, anthropic/claude-y"), "{refused}");
        models.default_model = Some("local/m".to_owned());
        assert_eq!(chosen(&models, None), ("local".to_owned(), Some("m".to_owned())));
        assert_eq!(chosen(&models, Some("local")), ("local".to_owned(), Some("m".to_owned())));
        let doubtful = |wanted| models.choose(Some(wanted)).unwrap().unwrap().doubtful;
        assert!(doubtful("org/model") && !doubtful("local/org/model") && !doubtful("llama3:8b"));
        assert!(Models::default().choose(None).unwrap().is_none());
        assert!(check("model", Some("a\nb")).is_err() && check("model", Some("a")).is_ok());
    }
}
