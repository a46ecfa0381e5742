//! Asking the person behind the client: a form to fill in, or a page to visit.

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidegate_protocol::json::ObjectWriter;

use super::{Ask, Asked, Kind, form};
use crate::cx::Cx;
use crate::tool::ToolError;
use crate::tool::read::read;
use crate::tool::schema::form_of;

/// A question to the person behind the client.
#[derive(Debug)]
pub struct Elicit<T> {
    asked: Result<Asked, String>,
    key: Option<String>,
    answer: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + JsonSchema> Elicit<T> {
    /// A form whose fields are those of `T`: a flat struct of strings, numbers, booleans and unit-only enums.
    /// Optional fields are `Option`s.
    pub fn form(message: impl AsRef<str>) -> Elicit<T> {
        let schema = form::flatten(form_of::<T>());
        Elicit { asked: form(message.as_ref(), schema), key: None, answer: PhantomData }
    }
}

impl Elicit<Value> {
    /// A form with a hand-written schema, which must be a flat object of primitive properties.
    pub fn form_schema(message: impl AsRef<str>, schema: Value) -> Elicit<Value> {
        let schema = form::check(&schema).map(|()| schema);
        Elicit { asked: form(message.as_ref(), schema), key: None, answer: PhantomData }
    }
}

impl Elicit<()> {
    /// A page for the person to visit, for whatever must not pass through the client: logins, payments, secrets.
    /// Accepting means that the person agreed to go there, not that anything was done there.
    pub fn url(message: impl AsRef<str>, url: impl AsRef<str>) -> Elicit<()> {
        let mut w = ObjectWriter::with_capacity(128);
        w.str("mode", "url").str("message", message.as_ref()).str("url", url.as_ref());
        let asked = Ok(Asked { kind: Kind::Url, params: w.finish() });
        Elicit { asked, key: None, answer: PhantomData }
    }
}

impl<T> Elicit<T> {
    /// The key under which the answer comes back; see [`Ask::key`].
    pub fn key(mut self, key: impl Into<String>) -> Elicit<T> {
        self.key = Some(key.into());
        self
    }
}

fn form(message: &str, schema: Result<Value, String>) -> Result<Asked, String> {
    let schema = schema?;
    let mut w = ObjectWriter::with_capacity(256);
    w.str("mode", "form").str("message", message).value("requestedSchema", &schema);
    Ok(Asked { kind: Kind::Form(schema), params: w.finish() })
}

/// What the person answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elicited<T> {
    /// The person filled in the form, or agreed to visit the page.
    Accept(T),
    /// The person said no.
    Decline,
    /// The person closed the question without deciding.
    Cancel,
}

impl<T> Elicited<T> {
    /// The value, if there is one.
    pub fn accept(self) -> Option<T> {
        match self {
            Elicited::Accept(value) => Some(value),
            Elicited::Decline | Elicited::Cancel => None,
        }
    }

    /// The value, or a failure that says that the person did not want to answer.
    pub fn accepted(self) -> Result<T, ToolError> {
        match self {
            Elicited::Accept(value) => Ok(value),
            Elicited::Decline => Err("The user declined to answer".into()),
            Elicited::Cancel => Err("The user dismissed the question".into()),
        }
    }

    /// `accept`, `decline` or `cancel`.
    pub fn action(&self) -> &'static str {
        match self {
            Elicited::Accept(_) => "accept",
            Elicited::Decline => "decline",
            Elicited::Cancel => "cancel",
        }
    }
}

impl Cx {
    /// Asks the person behind the client.
    ///
    /// ```
    /// use tidegate_server::{Cx, Elicit, Tool, ToolError, schemars};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Confirm {
    ///     /// Really?
    ///     sure: bool,
    /// }
    ///
    /// let tool = Tool::new("wipe").description("Wipes the disk").handler(|_: (), cx: Cx| async move {
    ///     let answer = cx.elicit(Elicit::<Confirm>::form("This wipes the disk.").key("confirm")).await.accepted()?;
    ///     if !answer.sure {
    ///         return Ok("Nothing was done.");
    ///     }
    ///     Ok::<_, ToolError>("Wiped.")
    /// });
    /// ```
    ///
    /// Ask before you act: everything up to here runs again when the answer comes (see [`Cx::run_once`]). A client that
    /// cannot be asked makes the call fail with `-32021`; look with [`Cx::can`] where that matters.
    pub fn elicit<T: DeserializeOwned>(&self, elicit: Elicit<T>) -> Ask<Elicited<T>> {
        Ask::new(self, elicit.key, elicit.asked, decode)
    }
}

fn decode<T: DeserializeOwned>(mut answer: Value) -> Result<Elicited<T>, String> {
    Ok(match answer.get("action").and_then(Value::as_str) {
        Some("accept") => {
            // A visited page leaves no content; `()` is read from null.
            let content = answer.get_mut("content").map_or(Value::Null, Value::take);
            Elicited::Accept(read(content).map_err(|problem| format!("does not fit the form: {problem}"))?)
        }
        Some("decline") => Elicited::Decline,
        _ => Elicited::Cancel,
    })
}
