//! [`Endpoints`]: what there is at each endpoint of the configuration.
//!
//! A selection is a matter of patterns over names, so whether one thing is there is answered without a lock and without a list.
//! Lists are views of the snapshot like any other (see [`view`](crate::view)).

use std::collections::HashMap;

use foldhash::fast::RandomState;
use tidegate_config::{EndpointSettings, Patterns, ToolMode};
use tidegate_service::ContextParts;

use crate::extensions;
use crate::kind::Kind;
use crate::uris::may_lead_elsewhere;
use crate::view::{Offer, OfferKind};

/// The endpoints beside the default one, which has everything.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Endpoints {
    by_name: HashMap<String, Endpoint, RandomState>,
    /// What there is at an endpoint that no configuration has, or has no more.
    nothing: Endpoint,
}

/// One endpoint.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Endpoint {
    servers: Option<Patterns>,
    tools: Option<Patterns>,
    prompts: Option<Patterns>,
    resources: Option<Patterns>,
    mode: Option<ToolMode>,
    instructions: Option<String>,
}

impl Endpoints {
    pub(crate) fn new(settings: &[EndpointSettings]) -> Endpoints {
        let by_name = settings.iter().map(|one| (one.name.clone(), Endpoint::new(one))).collect();
        Endpoints { by_name, nothing: Endpoint::nothing() }
    }

    /// The endpoint that was called; `None` for the default one.
    pub(crate) fn of(&self, context: &ContextParts) -> Option<&Endpoint> {
        let name = context.endpoint.as_deref()?;
        Some(self.by_name.get(name).unwrap_or(&self.nothing))
    }

    /// Whether one of them lists tools in this way.
    pub(crate) fn has_mode(&self, mode: ToolMode) -> bool {
        self.by_name.values().any(|endpoint| endpoint.mode == Some(mode))
    }
}

impl Endpoint {
    fn new(settings: &EndpointSettings) -> Endpoint {
        let EndpointSettings { servers, tools, prompts, resources, mode, instructions, .. } =
            settings.clone();
        Endpoint { servers, tools, prompts, resources, mode, instructions }
    }

    fn nothing() -> Endpoint {
        let none = || Some(Patterns::default());
        let (servers, tools, prompts, resources) = (none(), none(), none(), none());
        Endpoint { servers, tools, prompts, resources, mode: Some(ToolMode::All), instructions: None }
    }

    /// Whether something of a server is there.
    pub(crate) fn shows(&self, offer: &Offer<'_>) -> bool {
        self.has_server(offer.server)
            && match offer.kind {
                OfferKind::Tool => selects(&self.tools, offer.name),
                OfferKind::Prompt => selects(&self.prompts, offer.name),
                // Whoever resolves dots ends up outside of what a pattern selects.
                OfferKind::Resource | OfferKind::ResourceTemplate => {
                    selects(&self.resources, offer.name)
                        && (self.resources.is_none() || !may_lead_elsewhere(offer.name))
                }
                // What is asked for with these are resources, each of which is looked at.
                OfferKind::Method if extensions::is_of_resources(offer.name) => true,
                OfferKind::Method => self.has_all_of(offer.server),
            }
    }

    /// Whether anything of a server can be there.
    pub(crate) fn has_server(&self, server: &str) -> bool {
        selects(&self.servers, server)
    }

    /// Whether everything of a server is there. Nobody knows what a method of its own does, or what it logs outside of calls:
    /// where some of its tools are left out, these might be about them.
    pub(crate) fn has_all_of(&self, server: &str) -> bool {
        self.has_server(server)
            && [&self.tools, &self.prompts, &self.resources].iter().all(|some| some.is_none())
    }

    /// Whether a server may be named of which nobody knows yet what it lists of a kind: if it was chosen by its name, or
    /// whatever it lists would be there.
    pub(crate) fn may_name(&self, server: &str, kind: Kind) -> bool {
        let chosen = match kind {
            Kind::Tools => &self.tools,
            Kind::Prompts => &self.prompts,
            Kind::Resources | Kind::Templates | Kind::Skills => &self.resources,
        };
        self.has_server(server) && (self.servers.is_some() || chosen.is_none())
    }

    /// Whether resources of a server can be there.
    pub(crate) fn has_resources_of(&self, server: &str) -> bool {
        self.has_server(server) && self.resources.as_ref().is_none_or(|some| !some.is_empty())
    }

    /// Whether there can be tools at all.
    pub(crate) fn has_tools(&self) -> bool {
        [&self.servers, &self.tools].iter().all(|some| some.as_ref().is_none_or(|some| !some.is_empty()))
    }

    /// All tools, or a way to search for them, where that is not as everywhere else.
    pub(crate) fn mode(&self) -> Option<ToolMode> {
        self.mode
    }

    /// What is said in place of what the servers say.
    pub(crate) fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }
}

/// Without patterns everything is selected.
fn selects(patterns: &Option<Patterns>, name: &str) -> bool {
    patterns.as_ref().is_none_or(|patterns| patterns.matches(name))
}

#[cfg(test)]
mod tests {
    use tidegate_service::Context;

    use super::*;

    fn endpoint(edit: impl FnOnce(&mut EndpointSettings)) -> Endpoint {
        let mut settings = EndpointSettings {
            name: "e".to_owned(),
            path: "/e/mcp".to_owned(),
            servers: None,
            tools: None,
            prompts: None,
            resources: None,
            instructions: None,
            mode: None,
            audience: Vec::new(),
        };
        edit(&mut settings);
        Endpoint::new(&settings)
    }

    fn patterns(texts: &[&str]) -> Option<Patterns> {
        Some(Patterns::new(texts.iter().copied()).unwrap())
    }

    const ALL: [OfferKind; 5] = [
        OfferKind::Tool,
        OfferKind::Prompt,
        OfferKind::Resource,
        OfferKind::ResourceTemplate,
        OfferKind::Method,
    ];

    #[test]
    fn what_is_there() {
        let shown = |endpoint: &Endpoint, server: &str, name: &str| {
            ALL.map(|kind| endpoint.shows(&Offer { kind, name, server }))
        };
        let all = endpoint(|_| {});
        assert_eq!(shown(&all, "s", "x"), [true; 5]);
        let servers = endpoint(|e| e.servers = patterns(&["s*"]));
        assert_eq!((shown(&servers, "s1", "x"), shown(&servers, "t", "x")), ([true; 5], [false; 5]));
        let tools = endpoint(|e| e.tools = patterns(&["x", "y_*"]));
        assert_eq!(shown(&tools, "s", "x"), [true, true, true, true, false]);
        assert_eq!(shown(&tools, "s", "z"), [false, true, true, true, false]);
        let none = endpoint(|e| (e.prompts, e.resources) = (patterns(&[]), patterns(&[])));
        assert_eq!(shown(&none, "s", "x"), [true, false, false, false, false]);
        let skills = Offer { kind: OfferKind::Method, name: "skills/list", server: "s" };
        assert!(tools.shows(&skills), "skills are resources");
        assert_eq!(shown(&Endpoint::nothing(), "s", "x"), [false; 5]);
    }

    #[test]
    fn an_endpoint_that_nobody_has_configured_has_nothing() {
        let endpoints = Endpoints::new(&[]);
        let mut context = Context::local();
        assert!(endpoints.of(&context).is_none());
        context.endpoint = Some("gone".into());
        let nothing = endpoints.of(&context).unwrap();
        assert!(!nothing.has_server("s") && !nothing.has_tools() && !nothing.may_name("s", Kind::Tools));
    }

    #[test]
    fn servers_are_named_that_were_chosen() {
        let tools = endpoint(|e| e.tools = patterns(&["a_*"]));
        assert!(!tools.may_name("b", Kind::Tools) && tools.may_name("b", Kind::Prompts));
        let servers = endpoint(|e| (e.servers, e.tools) = (patterns(&["a"]), patterns(&["a_*"])));
        assert!(servers.may_name("a", Kind::Tools) && !servers.may_name("b", Kind::Tools));
    }
}
