//! Endpoints beside the default one.

use indexmap::IndexMap;

use super::Resolver;
use crate::auth_settings::AuthSettings;
use crate::endpoint_settings::EndpointSettings;
use crate::names;
use crate::settings::ToolMode;
use crate::written::{Endpoint, Mode};
use tidegate_policy::Patterns;

/// What is, or will be, beside endpoints.
const RESERVED: [&str; 10] =
    ["default", "sse", "messages", "well-known", "health", "ready", "live", "metrics", "admin", "api"];

impl Resolver<'_> {
    /// `servers` are the names of all servers of the file.
    pub(super) fn endpoints(
        &mut self,
        written: IndexMap<String, Endpoint>,
        path: &str,
        servers: &[String],
    ) -> Vec<EndpointSettings> {
        let all = written.into_iter().map(|(name, endpoint)| self.endpoint(name, endpoint, path, servers));
        all.collect()
    }

    fn endpoint(
        &mut self,
        name: String,
        endpoint: Endpoint,
        path: &str,
        servers: &[String],
    ) -> EndpointSettings {
        if let Err(sentence) = names::check_endpoint(&name) {
            self.wrong(&["endpoints", &name], sentence);
        } else if let Some(other) = self.taken(&name, path) {
            self.wrong(&["endpoints", &name], format!("/{name} is {other}: choose another name"));
        }
        let mut patterns = |field: &'static str, written: Option<Vec<String>>| {
            written.map(|texts| self.patterns(&["endpoints", &name, field], &texts))
        };
        let chosen = patterns("servers", endpoint.servers);
        let tools = patterns("tools", endpoint.tools);
        let prompts = patterns("prompts", endpoint.prompts);
        let resources = patterns("resources", endpoint.resources);
        self.check_servers(&name, chosen.as_ref(), servers);
        if endpoint.instructions.as_ref().is_some_and(|text| text.trim().is_empty()) {
            self.wrong(&["endpoints", &name, "instructions"], "must be a text, and is empty");
        }
        EndpointSettings {
            path: EndpointSettings::path_beside(&name, path),
            servers: chosen,
            tools,
            prompts,
            resources,
            instructions: endpoint.instructions,
            mode: endpoint.mode.map(|mode| match mode {
                Mode::All => ToolMode::All,
                Mode::Search => ToolMode::Search,
            }),
            audience: self.audience(&["endpoints", &name, "audience"], endpoint.audience),
            name,
        }
    }

    /// What else is at the place of an endpoint, in words.
    fn taken(&self, name: &str, path: &str) -> Option<&'static str> {
        let begins = |path: &str| path.split('/').nth(1) == Some(name);
        let pages = self.builtins.iter().filter_map(|builtin| builtin.pages(path));
        if begins(path) {
            Some("the path of the default endpoint")
        } else if pages.flat_map(|pages| pages.files).any(|file| begins(file.path)) {
            Some("a page of a built-in server")
        } else {
            RESERVED.contains(&name).then_some("kept for the gateway itself")
        }
    }

    /// A pattern that selects no server may be a name that somebody mistyped.
    fn check_servers(&mut self, name: &str, chosen: Option<&Patterns>, servers: &[String]) {
        for text in chosen.into_iter().flat_map(|patterns| patterns.iter()) {
            let Ok(pattern) = Patterns::new([text]) else { continue };
            if !servers.iter().any(|server| pattern.matches(server)) {
                self.note(
                    &["endpoints", name, "servers"],
                    &format!("has {text:?}, which matches no server."),
                );
            }
        }
    }

    /// Says which tokens are good for more than one endpoint.
    pub(super) fn check_audiences(
        &mut self,
        endpoints: &[EndpointSettings],
        auth: Option<&AuthSettings>,
        public_url: Option<&str>,
        path: &str,
    ) {
        let issuers = auth.map_or(0, |auth| auth.jwt.len() + auth.introspection.len());
        let usual = |path: &str| public_url.map(|url| format!("{url}{path}"));
        let effective = |said: &[String], path: &str| match said {
            [] => usual(path).into_iter().collect(),
            said => said.to_vec(),
        };
        let mut known: Vec<(String, String)> = Vec::new();
        if let Some(auth) = auth {
            let jwt = auth.jwt.iter().map(|jwt| &jwt.audience);
            let all = jwt.chain(auth.introspection.iter().map(|asked| &asked.audience));
            known.extend(
                all.flat_map(|said| effective(said, path)).map(|audience| (audience, DEFAULT.to_owned())),
            );
        }
        for endpoint in endpoints {
            let at = ["endpoints", &endpoint.name, "audience"];
            if issuers == 0 && !endpoint.audience.is_empty() {
                self.note(&at, "has no effect: there is no [[auth.jwt]] and no [[auth.introspection]].");
                continue;
            }
            let audiences = effective(&endpoint.audience, &endpoint.path);
            let shared = known.iter().find(|(audience, _)| audiences.contains(audience));
            if let Some((_, other)) = shared.filter(|_| issuers > 0) {
                let sentence = format!("is also that of {other}: one token is good for both.");
                self.note(&at, &sentence);
            }
            known.extend(
                audiences.into_iter().map(|audience| (audience, format!("the endpoint {:?}", endpoint.name))),
            );
        }
    }
}

const DEFAULT: &str = "the default endpoint";
