//! Writing modern requests: the terms on which they are made, and the headers that mirror them.

use http::{HeaderName, HeaderValue};
use serde_json::Value;
use tidegate_protocol::json::write_str;
use tidegate_protocol::{Id, Method, Revision, headers, meta};
use tidegate_service::Call;

use crate::http::{Headers, METHOD, PROTOCOL_VERSION};
use crate::settings::ClientSettings;
use crate::tool::Tool;
use crate::wire;

// Checked by the compiler, not with each request.
const NAME: HeaderName = HeaderName::from_static(headers::NAME);

/// On which terms a request is made: what its `_meta` says.
pub(crate) struct ModernRequest<'a> {
    pub(crate) call: &'a Call,
    pub(crate) settings: &'a ClientSettings,
    pub(crate) revision: Revision,
}

impl ModernRequest<'_> {
    /// Whether progress is wanted: by the caller, or to know that the server is alive.
    fn wants_progress(&self) -> bool {
        let context = &self.call.context;
        (context.outbox.is_some() && context.progress_token.is_some())
            || (self.settings.extend_on_progress
                && self.call.method != Method::Listen
                && !self.call.method.is_notification())
    }

    /// The whole request.
    pub(crate) fn write(&self, id: &Id) -> Vec<u8> {
        let room = self.call.params.as_str().len() + 320;
        tidegate_protocol::write::request(id, self.call.method.as_str(), room, |out| {
            self.write_params(out, id)
        })
    }

    /// Its parameters.
    pub(crate) fn write_params(&self, out: &mut Vec<u8>, id: &Id) {
        let context = &self.call.context;
        let span = wire::span_of(context);
        wire::params(out, &self.call.params, &[], wire::is_replaced(span), |out| {
            let mut member = |name: &str, raw: &str| {
                wire::comma(out);
                wire::plain_name(out, name);
                out.extend_from_slice(raw.as_bytes());
            };
            member(meta::PROTOCOL_VERSION, self.revision.as_json());
            let info = context.client_info.as_ref().unwrap_or(&self.settings.client_info);
            member(meta::CLIENT_INFO, info.as_str());
            member(meta::CLIENT_CAPABILITIES, context.capabilities.as_json().as_str());
            if let Some(level) = context.log_level {
                wire::comma(out);
                wire::plain_name(out, meta::LOG_LEVEL);
                write_str(out, level.as_str());
            }
            if self.wants_progress() {
                wire::comma(out);
                out.extend_from_slice(b"\"progressToken\":");
                out.extend_from_slice(id.as_json().as_bytes());
            }
            wire::hops(out, context.hops);
            wire::traceparent(out, span);
        });
    }

    /// The headers that mirror the request (2026-07-28 streamable-http, Request Metadata).
    pub(crate) fn headers(&self, tool: Option<&Tool>) -> Headers {
        let mut all = self.common_headers();
        all.push_traceparent(wire::span_of(&self.call.context));
        let named = self.call.method.name_param().and_then(|param| self.call.params.str(param));
        if let Some(value) = named.and_then(|name| HeaderValue::from_str(&headers::encode_value(&name)).ok())
        {
            all.push(NAME, value);
        }
        if let Some(Ok(mirrored)) = tool.map(|tool| &tool.headers)
            && !mirrored.is_empty()
        {
            let arguments = self.call.params.json("arguments").and_then(|a| a.to::<Value>().ok());
            for (name, value) in mirrored.headers_for(arguments.as_ref()) {
                if let (Ok(name), Ok(value)) =
                    (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(&value))
                {
                    all.push(name, value);
                }
            }
        }
        all
    }

    /// Those that every modern request has.
    fn common_headers(&self) -> Headers {
        if self.call.method == Method::ToolsCall && self.revision == Revision::LATEST_MODERN {
            return Headers::of_tool_call();
        }
        let mut all = Headers::new();
        all.push(PROTOCOL_VERSION, HeaderValue::from_static(self.revision.as_str()));
        let method = match self.call.method.known_name() {
            Some(name) => Ok(HeaderValue::from_static(name)),
            None => HeaderValue::from_str(self.call.method.as_str()),
        };
        if let Ok(value) = method {
            all.push(METHOD, value);
        }
        all
    }
}
