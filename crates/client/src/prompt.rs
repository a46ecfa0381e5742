//! [`Prompt`]: a prompt as its server describes it, and [`PromptResult`], what comes of it.

use serde_json::Value;
use tidegate_protocol::{Json, Object};

/// A prompt of a server: its definition as it came, and what can be read from it.
#[derive(Debug, Clone)]
pub struct Prompt {
    name: String,
    definition: Json,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Whether the prompt cannot do without it.
    pub required: bool,
}

impl Prompt {
    /// Reads a definition; `None` if it has no name.
    pub(crate) fn read(definition: Json) -> Option<Prompt> {
        let name = Object::of(&definition)?.str("name")?.into_owned();
        Some(Prompt { name, definition })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its definition as it came from the server.
    pub fn definition(&self) -> &Json {
        &self.definition
    }

    /// Its title for people, if it has one.
    pub fn title(&self) -> Option<String> {
        self.text("title")
    }

    /// What it says it is for.
    pub fn description(&self) -> Option<String> {
        self.text("description")
    }

    /// What it wants to be told.
    pub fn arguments(&self) -> Vec<PromptArgument> {
        let arguments = Object::of(&self.definition).and_then(|o| o.json("arguments"));
        let arguments = arguments.and_then(|arguments| arguments.elements()).unwrap_or_default();
        let read = |argument: Json| {
            let argument = Object::of(&argument)?;
            Some(PromptArgument {
                name: argument.str("name")?.into_owned(),
                description: argument.str("description").map(|text| text.into_owned()),
                required: argument.get("required") == Some("true"),
            })
        };
        arguments.into_iter().filter_map(read).collect()
    }

    fn text(&self, member: &str) -> Option<String> {
        Object::of(&self.definition)?.str(member).map(|text| text.into_owned())
    }
}

/// Who says a message of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// Somebody that this version does not know.
    Other(String),
}

/// A message of a prompt.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PromptMessage {
    /// Who says it.
    pub role: Role,
    /// What is said: a content block as it came.
    pub content: Value,
}

impl PromptMessage {
    /// The text, if it is text.
    pub fn text(&self) -> Option<&str> {
        match self.content.get("type").and_then(Value::as_str) {
            Some("text") => self.content.get("text").and_then(Value::as_str),
            _ => None,
        }
    }
}

/// What comes of a prompt: messages for the model.
#[derive(Debug, Clone)]
pub struct PromptResult(Json);

impl PromptResult {
    pub(crate) fn new(json: Json) -> PromptResult {
        PromptResult(json)
    }

    /// The whole result object as it came.
    pub fn json(&self) -> &Json {
        &self.0
    }

    /// What it is, if the server says so.
    pub fn description(&self) -> Option<String> {
        Object::of(&self.0)?.str("description").map(|text| text.into_owned())
    }

    /// The messages.
    pub fn messages(&self) -> Vec<PromptMessage> {
        let messages = Object::of(&self.0).and_then(|o| o.json("messages"));
        let messages = messages.and_then(|messages| messages.elements()).unwrap_or_default();
        let read = |message: Json| {
            let message = Object::of(&message)?;
            let role = match &*message.str("role")? {
                "user" => Role::User,
                "assistant" => Role::Assistant,
                other => Role::Other(other.to_owned()),
            };
            Some(PromptMessage { role, content: message.json("content")?.to().ok()? })
        };
        messages.into_iter().filter_map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_as_far_as_they_have_a_name() {
        let prompt = Prompt::read(Json::trusted(
            r#"{"name":"p","arguments":[{"name":"a","required":true},{"description":"nameless"},{"name":"b","description":"d"},7]}"#,
        ))
        .unwrap();
        let arguments: Vec<_> =
            prompt.arguments().into_iter().map(|a| (a.name, a.description, a.required)).collect();
        assert_eq!(arguments, [("a".to_owned(), None, true), ("b".to_owned(), Some("d".to_owned()), false)]);
        assert!(Prompt::read(Json::trusted(r#"{"title":"nameless"}"#)).is_none());
    }

    #[test]
    fn messages_keep_their_content() {
        let result = PromptResult::new(Json::trusted(
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}},{"role":"tool","content":{"type":"image","data":"AA==","mimeType":"image/png"}},{"content":{}}]}"#,
        ));
        let messages = result.messages();
        assert_eq!((messages.len(), messages[0].text()), (2, Some("hi")));
        assert_eq!((&messages[1].role, messages[1].text()), (&Role::Other("tool".to_owned()), None));
        assert_eq!(messages[1].content["mimeType"], "image/png");
    }
}
