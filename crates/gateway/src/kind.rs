//! [`Kind`]: the things that servers list.

use bytestring::ByteString;
use tidegate_client::ServerInfo;
use tidegate_protocol::Method;
use tidegate_service::Notice;

use crate::extensions;

/// What a list is a list of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Kind {
    Tools,
    Prompts,
    Resources,
    #[serde(rename = "resourceTemplates")]
    Templates,
    /// SEP-2640.
    Skills,
}

impl Kind {
    pub(crate) const ALL: [Kind; Kind::COUNT] =
        [Kind::Tools, Kind::Prompts, Kind::Resources, Kind::Templates, Kind::Skills];
    pub(crate) const COUNT: usize = 5;

    /// Those of the protocol itself, which are read as soon as a server is there. Those of extensions are read when somebody
    /// wants them.
    pub(crate) const CORE: [Kind; 4] = [Kind::Tools, Kind::Prompts, Kind::Resources, Kind::Templates];

    /// The kind that a method of the protocol lists.
    pub(crate) fn listed_by(method: &Method) -> Option<Kind> {
        Kind::CORE.into_iter().find(|kind| kind.method() == *method)
    }

    /// The method that lists it.
    pub(crate) fn method(self) -> Method {
        match self {
            Kind::Tools => Method::ToolsList,
            Kind::Prompts => Method::PromptsList,
            Kind::Resources => Method::ResourcesList,
            Kind::Templates => Method::ResourcesTemplatesList,
            Kind::Skills => Method::Other(ByteString::from_static("skills/list")),
        }
    }

    /// The member of the result under which the entries stand.
    pub(crate) fn member(self) -> &'static str {
        match self {
            Kind::Tools => "tools",
            Kind::Prompts => "prompts",
            Kind::Resources => "resources",
            Kind::Templates => "resourceTemplates",
            Kind::Skills => "skills",
        }
    }

    /// The member of an entry by which it is called.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Kind::Tools | Kind::Prompts => "name",
            Kind::Resources | Kind::Skills => "uri",
            Kind::Templates => "uriTemplate",
        }
    }

    /// Whether a server has such a list at all.
    pub(crate) fn offered(self, facts: &ServerInfo) -> bool {
        facts.has_capability(match self {
            Kind::Tools => "tools",
            Kind::Prompts => "prompts",
            Kind::Resources | Kind::Templates => "resources",
            Kind::Skills => return extensions::declared(&facts.capabilities, extensions::SKILLS).is_some(),
        })
    }

    /// Whether a server tells when the list has changed.
    pub(crate) fn announced(self, facts: &ServerInfo) -> bool {
        facts.has_capability(match self {
            Kind::Tools => "tools.listChanged",
            Kind::Prompts => "prompts.listChanged",
            Kind::Resources | Kind::Templates => "resources.listChanged",
            // The extension has no such announcement.
            Kind::Skills => return false,
        })
    }

    /// What is told when the list has changed.
    pub(crate) fn notice(self) -> Notice {
        match self {
            Kind::Tools => Notice::ToolsChanged,
            Kind::Prompts => Notice::PromptsChanged,
            // The files of skills are resources.
            Kind::Resources | Kind::Templates | Kind::Skills => Notice::ResourcesChanged,
        }
    }

    /// Its place in arrays that have one of each.
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}
