//! One client for all tests: makes calls on a door directly, without a transport.
#![allow(dead_code, unreachable_pub)] // each test file uses its own part

use serde_json::{Value, json};
use tidegate_protocol::{ClientCapabilities, Json, Level, Limits, Method, Params, Revision};
use tidegate_server::{Principal, ServerDoor};
use tidegate_service::{
    Call, Context, Door, InputRequired, Notice, Outbox, ParamHeaders, Reply, Subscription,
};

pub const LEGACY: Revision = Revision::V2025_11_25;

/// Somebody who calls. Each setter makes another one.
#[derive(Clone)]
pub struct Client {
    door: ServerDoor,
    context: Context,
}

impl Client {
    /// A modern client without capabilities.
    pub fn modern(door: &ServerDoor) -> Client {
        Client { door: door.clone(), context: Context::local() }
    }

    /// A client of 2025-11-25 without capabilities.
    pub fn legacy(door: &ServerDoor) -> Client {
        Client::modern(door).revision(LEGACY)
    }

    pub fn revision(mut self, revision: Revision) -> Client {
        self.context.revision = revision;
        self
    }

    pub fn can(mut self, capabilities: Value) -> Client {
        self.context.capabilities = ClientCapabilities::from_json(Json::from(capabilities));
        self
    }

    /// Can be asked everything, and knows tasks.
    pub fn able(self) -> Client {
        self.can(json!({
            "elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        }))
    }

    /// Can be asked everything, and does not know tasks.
    pub fn askable(self) -> Client {
        self.can(json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}))
    }

    pub fn named(mut self, subject: &str) -> Client {
        self.context.principal = Principal::subject(subject);
        self
    }

    pub fn outbox(mut self, outbox: &Outbox) -> Client {
        self.context.outbox = Some(outbox.clone());
        self
    }

    pub fn logs(mut self, level: Level) -> Client {
        self.context.log_level = Some(level);
        self
    }

    pub fn progress(mut self, token: &'static str) -> Client {
        self.context.progress_token = Some(Json::trusted(token));
        self
    }

    pub fn headers(mut self, headers: &[(&str, &str)]) -> Client {
        let headers = headers.iter().map(|(n, v)| ((*n).into(), v.as_bytes().to_vec())).collect();
        self.context.param_headers = Some(std::sync::Arc::new(ParamHeaders(headers)));
        self
    }

    pub fn context(&mut self) -> &mut Context {
        &mut self.context
    }

    /// The reply as it is.
    pub async fn reply(&self, method: &str, params: &str) -> Reply {
        let params = Json::parse(params.to_owned(), &Limits::default()).expect("JSON");
        let params = Params::parse(&params, &Limits::default()).expect("an object without duplicate keys");
        let call = Call::new(Method::from_name(method), params, self.context.clone());
        match self.door.answer(call).await {
            Ok(reply) => reply,
            Err(never) => match never {},
        }
    }

    /// The reply as the client would see it: a result, or `{"error": …}`.
    pub async fn request(&self, method: &str, params: Value) -> Value {
        serde_json::from_str(&self.text(method, &params.to_string()).await).expect("JSON")
    }

    /// The same, to the byte.
    pub async fn text(&self, method: &str, params: &str) -> String {
        match self.reply(method, params).await {
            Reply::Complete(result) | Reply::Task(result) => result.as_str().to_owned(),
            Reply::InputRequired(input) => input.to_json().as_str().to_owned(),
            Reply::Error(error) => format!("{{\"error\":{}}}", error.to_json(self.context.revision)),
            Reply::Subscription(_) => panic!("a subscription"),
        }
    }

    pub async fn tool(&self, name: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": name, "arguments": arguments})).await
    }

    /// The text of a tool's only content.
    pub async fn tool_text(&self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments).await;
        text_of(&result).unwrap_or_else(|| panic!("no text: {result}")).to_owned()
    }

    /// The questions that a call leads to.
    pub async fn asked(&self, method: &str, params: Value) -> InputRequired {
        match self.reply(method, &params.to_string()).await {
            Reply::InputRequired(input) => input,
            other => panic!("no questions: {other:?}"),
        }
    }

    /// Calls a tool and answers what it asks, round by round, until it is done.
    pub async fn converse(&self, name: &str, arguments: Value, answers: Value) -> (Value, usize) {
        let mut params = json!({"name": name, "arguments": arguments});
        for round in 0..10 {
            let result = self.request("tools/call", params.clone()).await;
            let Some(questions) = result.get("inputRequests") else { return (result, round) };
            let given: serde_json::Map<_, _> = questions
                .as_object()
                .expect("an object")
                .keys()
                .filter_map(|key| Some((key.clone(), answers.get(key)?.clone())))
                .collect();
            params["inputResponses"] = given.into();
            params["requestState"] = result["requestState"].clone();
        }
        panic!("asked too often");
    }

    pub async fn listen(&self, filter: Value) -> Subscription {
        match self.reply("subscriptions/listen", &json!({"notifications": filter}).to_string()).await {
            Reply::Subscription(subscription) => subscription,
            other => panic!("no subscription: {other:?}"),
        }
    }
}

pub fn text_of(result: &Value) -> Option<&str> {
    result["content"][0]["text"].as_str()
}

/// An accepted form.
pub fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// Everything that waits in a queue.
pub fn drain(outbox: &Outbox) -> Vec<Notice> {
    std::iter::from_fn(|| outbox.try_next()).collect()
}

/// The parameters of the progress and log messages that wait in a queue.
pub fn params(outbox: &Outbox) -> Vec<Value> {
    drain(outbox)
        .into_iter()
        .map(|notice| match notice {
            Notice::Progress(params) | Notice::Log(params) => params.to().expect("JSON"),
            other => panic!("{other:?}"),
        })
        .collect()
}

pub fn error_code(result: &Value) -> Option<i64> {
    result["error"]["code"].as_i64()
}
