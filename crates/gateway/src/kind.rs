//! [`Kind`]: the four things that servers list.

use tidegate_client::ServerInfo;
use tidegate_protocol::Method;
use tidegate_service::Notice;

/// What a list is a list of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Kind {
    Tools,
    Prompts,
    Resources,
    #[serde(rename = "resourceTemplates")]
    Templates,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Tools, Kind::Prompts, Kind::Resources, Kind::Templates];

    /// The kind that a method lists.
    pub(crate) fn listed_by(method: &Method) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.method() == *method)
    }

    /// The method that lists it.
    pub(crate) fn method(self) -> Method {
        match self {
            Kind::Tools => Method::ToolsList,
            Kind::Prompts => Method::PromptsList,
            Kind::Resources => Method::ResourcesList,
            Kind::Templates => Method::ResourcesTemplatesList,
        }
    }

    /// The member of the result under which the entries stand.
    pub(crate) fn member(self) -> &'static str {
        match self {
            Kind::Tools => "tools",
            Kind::Prompts => "prompts",
            Kind::Resources => "resources",
            Kind::Templates => "resourceTemplates",
        }
    }

    /// The member of an entry by which it is called.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Kind::Tools | Kind::Prompts => "name",
            Kind::Resources => "uri",
            Kind::Templates => "uriTemplate",
        }
    }

    /// Whether a server has such a list at all.
    pub(crate) fn offered(self, facts: &ServerInfo) -> bool {
        facts.has_capability(match self {
            Kind::Tools => "tools",
            Kind::Prompts => "prompts",
            Kind::Resources | Kind::Templates => "resources",
        })
    }

    /// Whether a server tells when the list has changed.
    pub(crate) fn announced(self, facts: &ServerInfo) -> bool {
        facts.has_capability(match self {
            Kind::Tools => "tools.listChanged",
            Kind::Prompts => "prompts.listChanged",
            Kind::Resources | Kind::Templates => "resources.listChanged",
        })
    }

    /// What is told when the list has changed.
    pub(crate) fn notice(self) -> Notice {
        match self {
            Kind::Tools => Notice::ToolsChanged,
            Kind::Prompts => Notice::PromptsChanged,
            Kind::Resources | Kind::Templates => Notice::ResourcesChanged,
        }
    }

    /// Its place in arrays that have one of each.
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}
