//! The names of spans and of what is said about them.
//!
//! They are those of OpenTelemetry's conventions for MCP, as they were in version 1.40 (in development), and our own under `tidegate.` where
//! it has none. With [`SpanNames::Percolate`], tools and resources have the names that Percolate's servers give them.

use tidegate_protocol::Method;

/// By which names spans go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpanNames {
    /// Those of OpenTelemetry's conventions.
    #[default]
    OpenTelemetry,
    /// Those of Percolate, where it has any.
    Percolate,
}

/// The attributes of spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttributeNames {
    pub(crate) tool: &'static str,
    pub(crate) session: &'static str,
    /// Who called is told only to those who use these names.
    pub(crate) tenant: Option<&'static str>,
    pub(crate) user: Option<&'static str>,
}

pub(crate) const METHOD: &str = "mcp.method.name";
pub(crate) const PROTOCOL: &str = "mcp.protocol.version";
pub(crate) const RESOURCE: &str = "mcp.resource.uri";
pub(crate) const PROMPT: &str = "gen_ai.prompt.name";
pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";
pub(crate) const REQUEST: &str = "jsonrpc.request.id";
pub(crate) const STATUS: &str = "rpc.response.status_code";
pub(crate) const ERROR: &str = "error.type";
pub(crate) const TOOL_ERROR: &str = "tool_error";
pub(crate) const TRANSPORT: &str = "network.transport";
pub(crate) const NETWORK_PROTOCOL: &str = "network.protocol.name";
pub(crate) const NETWORK_VERSION: &str = "network.protocol.version";
pub(crate) const CLIENT_ADDRESS: &str = "client.address";
pub(crate) const CLIENT_PORT: &str = "client.port";
pub(crate) const SERVER_ADDRESS: &str = "server.address";
pub(crate) const SERVER_PORT: &str = "server.port";
pub(crate) const SERVER: &str = "tidegate.server";
pub(crate) const OUTCOME: &str = "tidegate.outcome";
pub(crate) const SYMBOL: &str = "tidegate.error";
pub(crate) const ENDPOINT: &str = "tidegate.endpoint";
pub(crate) const CORRELATION: &str = "tidegate.correlation_id";
pub(crate) const RULE: &str = "tidegate.policy.rule";

impl SpanNames {
    /// What attributes are called.
    pub(crate) const fn attributes(self) -> AttributeNames {
        match self {
            SpanNames::OpenTelemetry => AttributeNames {
                tool: "gen_ai.tool.name",
                session: "mcp.session.id",
                tenant: None,
                user: None,
            },
            SpanNames::Percolate => AttributeNames {
                tool: "mcp.tool.name",
                session: "mcp.session_id",
                tenant: Some("mcp.tenant_id"),
                user: Some("mcp.user_id"),
            },
        }
    }

    /// The name of the span of a call: `target` is the tool or the prompt, if that is one that there is.
    pub(crate) fn span(self, method: &Method, target: Option<&str>) -> String {
        if self == SpanNames::Percolate {
            match method {
                Method::ToolsCall => return "mcp.tool.call".to_owned(),
                Method::ResourcesRead => return "mcp.resource.read".to_owned(),
                _ => {}
            }
        }
        let method = method.known_name().unwrap_or(crate::names::OTHER);
        match target {
            Some(target) => format!("{method} {target}"),
            None => method.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_an_interface() {
        let shared = [
            METHOD,
            PROTOCOL,
            RESOURCE,
            PROMPT,
            OPERATION,
            EXECUTE_TOOL,
            REQUEST,
            STATUS,
            ERROR,
            TOOL_ERROR,
            TRANSPORT,
            NETWORK_PROTOCOL,
            NETWORK_VERSION,
            CLIENT_ADDRESS,
            CLIENT_PORT,
            SERVER_ADDRESS,
            SERVER_PORT,
            SERVER,
            OUTCOME,
            SYMBOL,
            ENDPOINT,
            CORRELATION,
            RULE,
        ];
        let spans = [SpanNames::OpenTelemetry, SpanNames::Percolate].map(|names| {
            let spans = [
                names.span(&Method::ToolsCall, Some("add")),
                names.span(&Method::ToolsCall, None),
                names.span(&Method::PromptsGet, Some("greet")),
                names.span(&Method::ResourcesRead, None),
                names.span(&Method::ToolsList, None),
                names.span(&Method::from_name("made/up"), None),
            ];
            format!("{names:?}: {}\n{:?}", spans.join(", "), names.attributes())
        });
        insta::assert_snapshot!(format!("{}\n\n{}", shared.join("\n"), spans.join("\n")));
    }
}
