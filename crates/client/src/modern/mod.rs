//! Modern servers: every request stands alone.

mod exchange;
mod legacy_callers;
mod notify;
mod request;
mod subscription;

use std::sync::Arc;

use tidegate_protocol::{Error, Json, Method, Object, Revision, Symbol};
use tidegate_service::{Call, InputRequired, Question, Reply};

use crate::app_error::ErrorProfile;
use crate::cache::{Fetch, ToolCache};
use crate::connection::Connection;
use crate::dial::Dialer;
use crate::http::HttpClient;
use crate::legacy::result as raised;
use crate::rounds::too_many_questions;
use crate::server_info::ServerInfo;
use crate::time_budget::TimeBudget;
use crate::upstream_error::{is_modern_error, passed_error, upstream_error};

pub(crate) use exchange::ExchangeError;
pub(crate) use legacy_callers::is_legacy_caller;
pub(crate) use request::ModernRequest;
pub(crate) use subscription::{SubscriptionEvent, SubscriptionStream};

/// A modern server.
pub(crate) struct Modern {
    pub(crate) via: Via,
    pub(crate) server_info: ServerInfo,
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) cache: Arc<ToolCache>,
}

/// How it is reached.
#[derive(Clone)]
pub(crate) enum Via {
    /// A process: one connection for everything.
    Connection(Arc<Connection>),
    /// HTTP: each request has a connection to itself.
    Http(HttpClient),
}

impl Modern {
    /// The same server, spoken to in another revision.
    pub(crate) fn speaking(&self, revision: Revision) -> Arc<Modern> {
        let server_info = ServerInfo { revision, ..self.server_info.clone() };
        let (via, dialer, cache) = (self.via.clone(), self.dialer.clone(), self.cache.clone());
        Arc::new(Modern { via, server_info, dialer, cache })
    }

    /// Whether it can still be reached over this link.
    pub(crate) fn is_open(&self) -> bool {
        match &self.via {
            Via::Connection(connection) => connection.is_open(),
            Via::Http(_) => true,
        }
    }

    /// Answers a call.
    pub(crate) async fn call(
        self: &Arc<Self>,
        call: &Call,
        budget: TimeBudget,
    ) -> Result<Reply, ExchangeError> {
        if call.method == Method::Ping {
            // There is no `ping` any more; what was asked is whether the server answers.
            let discover = Call { method: Method::Discover, ..call.clone() };
            return Ok(match Box::pin(self.exchange(&discover, budget)).await? {
                Ok(_) => Reply::complete(call.context.revision, ""),
                Err(error) => Reply::Error(passed_on(self.dialer.settings.profile, call, &error)),
            });
        }
        let result = match self.exchange(call, budget).await? {
            Ok(result) => result,
            Err(error) => match Box::pin(self.second_try(call, &error, budget)).await? {
                Some(result) => result,
                None => return Ok(Reply::Error(passed_on(self.dialer.settings.profile, call, &error))),
            },
        };
        let result = self.edited(&call.method, result);
        reply(call, result, self.dialer.settings.max_questions).map_err(ExchangeError::Error)
    }

    /// What can be mended and tried once more: nothing was executed.
    async fn second_try(
        self: &Arc<Self>,
        call: &Call,
        error: &Json,
        budget: TimeBudget,
    ) -> Result<Option<Json>, ExchangeError> {
        match crate::status::code_of(error) {
            // 2026-07-28 streamable-http, Client Behavior: the tool's schema may have changed.
            Some(-32020) if call.method == Method::ToolsCall => {
                tracing::info!(server = %self.dialer.name, "headers did not match; fetching the tools again");
                self.list_within(call, &budget).await?;
            }
            // 2026-07-28 versioning: choose from the versions that the server supports and try again.
            Some(-32022) => {
                let supported =
                    Object::of(error).and_then(|e| e.object("data")).and_then(|d| d.json("supported"));
                let supported: Vec<String> = supported.and_then(|s| s.to().ok()).unwrap_or_default();
                if !supported.iter().any(|version| version == self.server_info.revision.as_str()) {
                    return Err(ExchangeError::WrongEra(passed_on(
                        self.dialer.settings.profile,
                        call,
                        error,
                    )));
                }
            }
            _ => return Ok(None),
        }
        match self.exchange(call, budget).await? {
            Ok(result) => Ok(Some(result)),
            Err(again) => Err(ExchangeError::Error(passed_on(self.dialer.settings.profile, call, &again))),
        }
    }

    /// Fetches pages of the list of tools for whoever made this call.
    pub(crate) fn fetch(self: &Arc<Self>, call: &Call) -> Fetch {
        let (modern, context) = (self.clone(), call.context.clone());
        let settings = self.dialer.settings.clone();
        Arc::new(move |cursor| {
            let (modern, mut context) = (modern.clone(), context.clone());
            let budget = TimeBudget::new(std::time::Instant::now(), settings.timeout, false, None)
                .granted_by("timeout");
            context.outbox = None;
            Box::pin(async move {
                let params = crate::page_params(cursor)?;
                let call = Call::new(Method::ToolsList, params, context);
                let exchange = tokio::select! {
                    exchange = modern.exchange(&call, budget) => exchange,
                    () = modern.dialer.over.cancelled() => return Err(crate::upstream::closed()),
                };
                match exchange {
                    Ok(Ok(result)) => Ok(modern.edited(&Method::ToolsList, result)),
                    Ok(Err(error)) => Err(upstream_error(&Method::ToolsList, None, &error)),
                    Err(ExchangeError::Error(error) | ExchangeError::WrongEra(error)) => Err(error),
                }
            })
        })
    }

    /// A list of tools without those that may not be offered over HTTP. Everything else is left as it came.
    fn edited(&self, method: &Method, result: Json) -> Json {
        let marked = || memchr::memmem::find(result.as_str().as_bytes(), b"x-mcp-header").is_some();
        let as_it_came = self.dialer.settings.list_faulty_tools || !matches!(self.via, Via::Http(_));
        if *method != Method::ToolsList || as_it_came || !marked() {
            return result;
        }
        without_bad_headers(&self.dialer.name, &result).unwrap_or(result)
    }
}

/// 2026-07-28 streamable-http, Schema Extension: a tool whose marks are wrong is left out, with a warning.
fn without_bad_headers(server: &str, result: &Json) -> Option<Json> {
    let object = Object::of(result)?;
    let tools = object.json("tools")?.elements()?;
    let count = tools.len();
    let good: Vec<Json> = tools
        .into_iter()
        .filter(|definition| match crate::tool::Tool::read(definition.clone()) {
            Some(tool) => match &tool.headers {
                Ok(_) => true,
                Err(fault) => {
                    tracing::warn!(server, tool = tool.name(), %fault, "ignored a tool with an invalid x-mcp-header");
                    false
                }
            },
            None => true,
        })
        .collect();
    (good.len() < count).then(|| object.with("tools", &Json::array(&good)))
}

fn passed_on(profile: ErrorProfile, call: &Call, error: &Json) -> Error {
    let passed = passed_error(profile, &call.method, Some(&call.params), error);
    // These are found before anything is done.
    if is_modern_error(error) { passed.unexecuted() } else { passed }
}

/// The reply that a result is.
fn reply(call: &Call, result: Json, max_questions: usize) -> Result<Reply, Error> {
    // How nearly all of them begin, ours included; no need to take a large one apart.
    if result.as_str().starts_with(r#"{"resultType":"complete""#) {
        return Ok(Reply::Complete(result));
    }
    let broken =
        || Error::new(Symbol::Unavailable, "The server answered with a result that is not an object");
    let object = Object::of(&result).ok_or_else(broken)?;
    match object.str("resultType").as_deref() {
        Some("input_required") if call.method.may_ask() => {
            input_required(&object, max_questions).map(Reply::InputRequired)
        }
        Some("input_required") => {
            let what =
                format!("The server asked for input in answer to {}, which is not allowed", call.method);
            Err(Error::new(Symbol::Unavailable, what))
        }
        Some("task") => Ok(Reply::Task(result)),
        _ => Ok(Reply::Complete(raised(&call.method, call.context.revision, result))),
    }
}

fn input_required(object: &Object, max_questions: usize) -> Result<InputRequired, Error> {
    let broken =
        |what: &str| Error::new(Symbol::Unavailable, format!("The server asks for input, but {what}"));
    let mut questions = Vec::new();
    if let Some(asked) = object.object("inputRequests") {
        for (at, member) in asked.members().enumerate() {
            if at == max_questions {
                return Err(too_many_questions(max_questions));
            }
            let question = asked.json_at(at).and_then(|q| Object::of(&q));
            let question = question.ok_or_else(|| broken("a question is not an object"))?;
            let method = question.str("method").ok_or_else(|| broken("a question has no method"))?;
            questions.push(Question {
                key: member.name.as_ref().into(),
                method: Method::from_name(&method),
                params: question.json("params").unwrap_or_else(Json::empty_object),
            });
        }
    }
    let state = object.text("requestState");
    if questions.is_empty() && state.is_none() {
        return Err(broken("with neither questions nor a state"));
    }
    Ok(InputRequired { questions, state, original: Some(object.to_json()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_protocol::Params;
    use tidegate_service::Context;

    #[test]
    fn a_server_may_ask_only_so_much_at_once() {
        let call = Call::new(Method::ToolsCall, Params::empty(), Context::local());
        let asks = |count: usize| {
            let questions: Vec<_> =
                (0..count).map(|n| format!(r#""q{n}":{{"method":"roots/list"}}"#)).collect();
            Json::trusted(format!(
                r#"{{"resultType":"input_required","inputRequests":{{{}}}}}"#,
                questions.join(",")
            ))
        };
        assert!(
            matches!(reply(&call, asks(256), 256), Ok(Reply::InputRequired(i)) if i.questions.len() == 256)
        );
        let error = reply(&call, asks(257), 256).expect_err("an error");
        assert!(error.message().contains("more than 256 questions"), "{error}");
    }
}
