//! What a client has declared that it can do.

use crate::json::{Json, Object, ObjectWriter};

/// Identifier of the tasks extension (SEP-2663).
pub const fn tasks_extension() -> &'static str {
    "io.modelcontextprotocol/tasks"
}

/// Something a server may need of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Capability {
    /// Elicitation in form mode.
    ElicitForm,
    /// Elicitation in URL mode.
    ElicitUrl,
    /// Sampling.
    Sampling,
    /// Sampling with tools.
    SamplingTools,
    /// Roots.
    Roots,
    /// The tasks extension.
    Tasks,
}

impl Capability {
    /// The capabilities object that declares just this one, as in `data.requiredCapabilities`.
    pub fn declaration(self) -> Json {
        Json::trusted(match self {
            Capability::ElicitForm => r#"{"elicitation":{"form":{}}}"#,
            Capability::ElicitUrl => r#"{"elicitation":{"url":{}}}"#,
            Capability::Sampling => r#"{"sampling":{}}"#,
            Capability::SamplingTools => r#"{"sampling":{"tools":{}}}"#,
            Capability::Roots => r#"{"roots":{}}"#,
            Capability::Tasks => r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
        })
    }

    /// Everything that a server may ask a client for in the middle of a call.
    pub const ASKABLE: [Capability; 5] = [
        Capability::ElicitForm,
        Capability::ElicitUrl,
        Capability::Sampling,
        Capability::SamplingTools,
        Capability::Roots,
    ];

    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Capability::ElicitForm => "elicitation.form",
            Capability::ElicitUrl => "elicitation.url",
            Capability::Sampling => "sampling",
            Capability::SamplingTools => "sampling.tools",
            Capability::Roots => "roots",
            Capability::Tasks => "extensions[\"io.modelcontextprotocol/tasks\"]",
        }
    }
}

/// The client's capabilities as it declared them: raw, read only where somebody asks.
#[derive(Debug, Clone)]
pub struct ClientCapabilities(Json);

impl ClientCapabilities {
    /// No capabilities.
    pub fn none() -> Self {
        ClientCapabilities(Json::empty_object())
    }

    /// Everything that a server can ask. For whoever only wants to know what a server has: some hide what they could not
    /// do for a client that cannot be asked.
    pub fn all() -> Self {
        ClientCapabilities::from_json(Json::trusted(
            r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#,
        ))
    }

    /// What is declared on behalf of others to whom questions can be passed on: the askable ones among these.
    pub fn on_behalf(bridged: &[Capability]) -> Self {
        let mut declared = ClientCapabilities::required(bridged);
        if bridged.contains(&Capability::Roots) {
            let roots = Json::trusted(r#"{"listChanged":true}"#);
            declared = Object::of(&declared).map_or(declared, |all| all.with("roots", &roots));
        }
        ClientCapabilities(declared)
    }

    /// Whether a server may ask the client anything.
    pub fn can_be_asked(&self) -> bool {
        self.0.as_str() != "{}" && Capability::ASKABLE.into_iter().any(|capability| self.has(capability))
    }

    /// The same, without what a server may not ask of `session` either: what one of several clients can do that share it.
    pub fn within(&self, session: &ClientCapabilities) -> ClientCapabilities {
        let (kept, lost): (Vec<_>, Vec<_>) = Capability::ASKABLE
            .into_iter()
            .filter(|capability| self.has(*capability))
            .partition(|capability| session.has(*capability));
        if lost.is_empty() {
            return self.clone();
        }
        let Some(own) = Object::of(&self.0) else { return ClientCapabilities::none() };
        let kept = ClientCapabilities::required(&kept);
        let kept = Object::of(&kept).unwrap_or_else(Object::empty);
        let mut rest = own.without(&["elicitation", "sampling", "roots"]);
        for name in ["elicitation", "sampling", "roots"] {
            if let (Some(all), Some(value)) = (Object::of(&rest), kept.json(name)) {
                rest = all.with(name, &value);
            }
        }
        ClientCapabilities(rest)
    }

    /// Takes a capabilities object as it came.
    pub fn from_json(json: Json) -> Self {
        ClientCapabilities(json)
    }

    /// The object as it came.
    pub fn as_json(&self) -> &Json {
        &self.0
    }

    /// Whether the client declared `capability`.
    pub fn has(&self, capability: Capability) -> bool {
        let Some(all) = Object::of(&self.0) else { return false };
        let inner = |name: &str| all.object(name);
        match capability {
            // 2025-11-25 client/elicitation: an empty object means form mode.
            Capability::ElicitForm => inner("elicitation").is_some_and(|e| e.has("form") || !e.has("url")),
            Capability::ElicitUrl => inner("elicitation").is_some_and(|e| e.has("url")),
            Capability::Sampling => inner("sampling").is_some(),
            Capability::SamplingTools => inner("sampling").is_some_and(|s| s.has("tools")),
            Capability::Roots => inner("roots").is_some(),
            Capability::Tasks => inner("extensions").is_some_and(|e| e.has(tasks_extension())),
        }
    }

    /// One object that declares all of `missing`, for `data.requiredCapabilities`.
    pub fn required(missing: &[Capability]) -> Json {
        let mut all = serde_json::Map::new();
        for capability in missing {
            if let Ok(serde_json::Value::Object(one)) = capability.declaration().to() {
                merge(&mut all, one);
            }
        }
        let mut w = ObjectWriter::new();
        for (name, value) in &all {
            w.value(name, value);
        }
        w.finish()
    }
}

fn merge(
    into: &mut serde_json::Map<String, serde_json::Value>,
    from: serde_json::Map<String, serde_json::Value>,
) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(serde_json::Value::Object(a)), serde_json::Value::Object(b)) => merge(a, b),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_elicitation_object_means_forms() {
        let has = |text: &'static str, c| ClientCapabilities::from_json(Json::trusted(text)).has(c);
        assert!(has(r#"{"elicitation":{}}"#, Capability::ElicitForm));
        assert!(!has(r#"{"elicitation":{}}"#, Capability::ElicitUrl));
        assert!(!has(r#"{"elicitation":{"url":{}}}"#, Capability::ElicitForm));
        assert!(!has("{}", Capability::Sampling));
        assert!(has(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#, Capability::Tasks));
    }

    #[test]
    fn what_a_client_of_a_shared_session_can_do_is_only_narrower() {
        let of = |text: &'static str| ClientCapabilities::from_json(Json::trusted(text));
        let within = |own, session| of(own).within(&of(session)).as_json().as_str().to_owned();
        let own = r#"{ "sampling":{},"elicitation":{},"extensions":{"x":1} }"#;
        assert_eq!(within(own, r#"{"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}"#), own);
        assert_eq!(
            within(own, r#"{"elicitation":{}}"#),
            r#"{"extensions":{"x":1},"elicitation":{"form":{}}}"#
        );
        assert_eq!(
            within(r#"{"elicitation":{"form":{},"url":{}}}"#, r#"{"elicitation":{}}"#),
            r#"{"elicitation":{"form":{}}}"#
        );
        assert_eq!(within(own, "{}"), r#"{"extensions":{"x":1}}"#);
        assert!(!of(r#"{"extensions":{}}"#).can_be_asked() && of(own).can_be_asked());
    }

    #[test]
    fn what_is_declared_on_behalf_of_others() {
        let all = ClientCapabilities::on_behalf(&Capability::ASKABLE);
        let wanted =
            r#"{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"sampling":{"tools":{}}}"#;
        assert_eq!(all.as_json().as_str(), wanted);
        assert_eq!(
            ClientCapabilities::on_behalf(&[Capability::Sampling]).as_json().as_str(),
            r#"{"sampling":{}}"#
        );
        assert_eq!(ClientCapabilities::on_behalf(&[]).as_json().as_str(), "{}");
    }

    #[test]
    fn required_capabilities_are_merged() {
        let all =
            ClientCapabilities::required(&[Capability::ElicitForm, Capability::ElicitUrl, Capability::Roots]);
        assert_eq!(all.as_str(), r#"{"elicitation":{"form":{},"url":{}},"roots":{}}"#);
    }
}
