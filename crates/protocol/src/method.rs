//! The method names of the protocol.

use std::fmt;

use bytestring::ByteString;

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident = $text:literal),+ $(,)?) => {
        /// A method name: one that the protocol defines, or any other as it came.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[allow(missing_docs)] // the names are the protocol's own
        pub enum Method {
            $($(#[$doc])* $name,)+
            /// A method that no revision defines.
            Other(ByteString),
        }

        impl Method {
            /// The method with this name.
            pub fn from_name(name: &str) -> Method {
                match name {
                    $($text => Method::$name,)+
                    _ => Method::Other(ByteString::from(name)),
                }
            }

            /// The name on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Method::$name => $text,)+
                    Method::Other(name) => name,
                }
            }

            /// The name on the wire of a method that the protocol defines.
            pub fn known_name(&self) -> Option<&'static str> {
                match self {
                    $(Method::$name => Some($text),)+
                    Method::Other(_) => None,
                }
            }
        }
    };
}

methods! {
    Initialize = "initialize",
    Ping = "ping",
    Discover = "server/discover",
    ToolsList = "tools/list",
    ToolsCall = "tools/call",
    ResourcesList = "resources/list",
    ResourcesTemplatesList = "resources/templates/list",
    ResourcesRead = "resources/read",
    ResourcesSubscribe = "resources/subscribe",
    ResourcesUnsubscribe = "resources/unsubscribe",
    PromptsList = "prompts/list",
    PromptsGet = "prompts/get",
    Complete = "completion/complete",
    SetLevel = "logging/setLevel",
    Listen = "subscriptions/listen",
    TasksGet = "tasks/get",
    TasksUpdate = "tasks/update",
    TasksCancel = "tasks/cancel",
    TasksResult = "tasks/result",
    TasksList = "tasks/list",
    Initialized = "notifications/initialized",
    Cancelled = "notifications/cancelled",
    Progress = "notifications/progress",
    RootsChanged = "notifications/roots/list_changed",
    ElicitCreate = "elicitation/create",
    SamplingCreate = "sampling/createMessage",
    RootsList = "roots/list",
}

impl Method {
    /// The parameter that the `Mcp-Name` header mirrors (2026-07-28 streamable-http, SEP-2243; tasks: SEP-2663).
    pub fn name_param(&self) -> Option<&'static str> {
        match self {
            Method::ToolsCall | Method::PromptsGet => Some("name"),
            Method::ResourcesRead => Some("uri"),
            Method::TasksGet | Method::TasksUpdate | Method::TasksCancel => Some("taskId"),
            _ => None,
        }
    }

    /// Whether the reply may ask for input (2026-07-28 basic/patterns/mrtr, Supported Requests).
    pub fn may_ask(&self) -> bool {
        matches!(self, Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead)
    }

    /// Whether a complete result carries `ttlMs` and `cacheScope` (2026-07-28 server/utilities/caching).
    pub fn is_cacheable(&self) -> bool {
        matches!(
            self,
            Method::Discover
                | Method::ToolsList
                | Method::PromptsList
                | Method::ResourcesList
                | Method::ResourcesTemplatesList
                | Method::ResourcesRead
        )
    }

    /// Whether the name belongs to a notification.
    pub fn is_notification(&self) -> bool {
        self.as_str().starts_with("notifications/")
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
