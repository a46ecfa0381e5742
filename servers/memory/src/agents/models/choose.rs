//! Choosing a model: who is asked, and by which name.

use super::{Kind, Models, Provider};
use crate::store::{Fault, Result};

/// Longest name of a model.
const MAX_NAME: usize = 200;

/// Who is asked, and for which model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chosen<'a> {
    pub(crate) provider: &'a Provider,
    /// The model; `None` if the provider is to be asked what it has.
    pub(crate) model: Option<&'a str>,
}

/// A name that may be one.
pub(crate) fn check(field: &str, model: Option<&str>) -> Result<()> {
    match model {
        Some(name) if name.trim().is_empty() => Err(Fault::input(field, "must not be empty")),
        Some(name) if name.chars().count() > MAX_NAME || name.chars().any(char::is_control) => {
            Err(Fault::input(field, format!("must have at most {MAX_NAME} characters, in one line")))
        }
        _ => Ok(()),
    }
}

impl Models {
    /// Who is asked for this model, or for the usual one. `None` if there is no provider at all.
    pub(crate) fn choose<'a>(&'a self, wanted: Option<&'a str>) -> Result<Option<Chosen<'a>>> {
        let Some(first) = self.providers.first() else { return Ok(None) };
        let Some(wanted) = wanted.or(self.default_model.as_deref()) else {
            return Ok(Some(Chosen { provider: first, model: first.models.first().map(String::as_str) }));
        };
        // `provider/model`, and `provider:model` as others write it; a model may have such signs in its own name.
        let of_provider = wanted.split_once(['/', ':']).and_then(|(name, model)| {
            let provider = self.providers.iter().find(|provider| provider.name.eq_ignore_ascii_case(name))?;
            Some((provider, model))
        });
        let (provider, model) = match of_provider {
            Some(named) => named,
            None => (self.knows(wanted).unwrap_or(first), wanted),
        };
        if !provider.models.is_empty() && !provider.models.iter().any(|known| known == model) {
            let known = self.known().join(", ");
            return Err(Fault::input("model", format!("{wanted:?} is not one of those here: {known}")));
        }
        Ok(Some(Chosen { provider, model: Some(model) }))
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
        assert!(Models::default().choose(None).unwrap().is_none());
        assert!(check("model", Some("a\nb")).is_err() && check("model", Some("a")).is_ok());
    }
}
