//! [`Step`]: one thing that a client does with a server, and what has to come of it.

use serde_json::{Value, json};

/// One thing to do.
pub(crate) struct Step {
    pub(crate) server: &'static str,
    /// What the gateway calls the server.
    pub(crate) mount: String,
    pub(crate) step: &'static str,
    pub(crate) kind: Kind,
    /// A name, an address, or what the names to be listed begin with.
    pub(crate) target: String,
    pub(crate) arguments: Value,
    pub(crate) expected: Expected,
}

/// What kind of thing that is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tools,
    Resources,
    Call,
    /// A call that is told how far it has come.
    Progress,
    Read,
    Prompt,
}

/// What has to come of it.
pub(crate) enum Expected {
    Text(String),
    /// A text with this in it.
    Part(String),
    /// A list with these in it.
    Names(Vec<String>),
    /// A text, and three steps towards it.
    Progress,
}

impl Step {
    /// As the clients read it.
    pub(crate) fn plan(&self) -> Value {
        let kind = match self.kind {
            Kind::Tools => "tools",
            Kind::Resources => "resources",
            Kind::Call => "call",
            Kind::Progress => "progress",
            Kind::Read => "read",
            Kind::Prompt => "prompt",
        };
        json!({
            "server": self.mount,
            "step": self.step,
            "kind": kind,
            "target": self.target,
            "arguments": self.arguments,
        })
    }
}

impl Expected {
    /// Whether this is it.
    pub(crate) fn is(&self, got: &Value) -> bool {
        match self {
            Expected::Text(text) => got == text.as_str(),
            Expected::Part(text) => got.as_str().is_some_and(|got| got.contains(text)),
            Expected::Names(names) => {
                let got: Vec<&str> = got.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                names.iter().all(|name| got.contains(&name.as_str()))
            }
            Expected::Progress => {
                let told = got["progress"].as_array().into_iter().flatten();
                let told: Vec<_> = told.map(|told| (told[0].as_f64(), told[1].as_f64())).collect();
                told == [1.0, 2.0, 3.0].map(|n| (Some(n), Some(3.0))) && got["text"].is_string()
            }
        }
    }
}
