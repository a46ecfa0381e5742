//! One server.

use std::collections::{BTreeMap, HashMap};

use http::{HeaderName, HeaderValue};
use tidegate_client::{Remote, Target, TargetError};
use tidegate_service::nearest_name;

use super::Resolver;
use crate::disabled::DisabledServer;
use crate::names;
use crate::settings::{NameStyle, ServerSettings, Source, ToolOverride};
use crate::written::{Server, Tool, Transport};

impl Resolver<'_> {
    /// What a server is; `None` if it is switched off, or is no server.
    pub(super) fn server(
        &mut self,
        name: String,
        server: Server,
        style: NameStyle,
    ) -> Option<ServerSettings> {
        if let Err(sentence) = names::check_server(&name) {
            self.wrong(&["servers", &name], sentence);
        }
        if server.enabled == Some(false) {
            self.disabled.push(DisabledServer::off(&name, "enabled = false"));
            return None;
        }
        let source = self.source(&name, &server);
        // A server whose source is wrong is looked at all the same, for whatever else is wrong.
        let placeholder = || Source::Builtin(String::new());
        let mut settings = ServerSettings::new(&name, source.unwrap_or_else(placeholder));
        self.terms(&name, &server, &mut settings.options);
        self.protocol(&name, &server, &mut settings.options);
        if let Some(prefix) = &server.prefix {
            if style == NameStyle::Portable && !prefix.is_empty() && !names::is_portable(prefix) {
                let sentence = "may contain only letters, digits, \"_\" and \"-\", at most 64 of them, \
                                unless tools.names = \"exact\"";
                self.wrong(&["servers", &name, "prefix"], sentence);
            }
            settings.prefix.clone_from(prefix);
        }
        settings.allow = self.patterns(&["servers", &name, "allow"], &server.allow);
        settings.deny = self.patterns(&["servers", &name, "deny"], &server.deny);
        settings.idle = self.idle(&name, server.idle.as_ref());
        for (tool, change) in server.tools {
            let change = self.tool(&name, &tool, change, style, &mut settings);
            if settings.offers(&tool) {
                settings.tools.insert(tool, change);
            } else {
                self.note(&["servers", &name, "tools", &tool], "has no effect: the tool is not offered.");
            }
        }
        // Known only now: command lines and files of variables are read on the way.
        if let Some(disabled) = self.without(&name) {
            self.disabled.push(disabled);
            return None;
        }
        Some(settings.seal())
    }

    fn tool(
        &mut self,
        server: &str,
        tool: &str,
        change: Tool,
        style: NameStyle,
        settings: &mut ServerSettings,
    ) -> ToolOverride {
        let at = |field: &'static str| ["servers", server, "tools", tool, field];
        if let Some(name) = &change.name {
            if name.is_empty() {
                self.wrong(&at("name"), "must be a name, and is empty");
            } else if style == NameStyle::Portable && !names::is_portable(name) {
                let sentence = "may contain only letters, digits, \"_\" and \"-\", at most 64 of them, \
                                unless tools.names = \"exact\"";
                self.wrong(&at("name"), sentence);
            }
        }
        if change.timeout.is_some() {
            let time = self.some_time(&at("timeout"), change.timeout.as_ref(), settings.options.timeout);
            settings.options.tool_timeouts.insert(tool.to_owned(), time);
            settings.options.max_timeout = settings.options.max_timeout.max(time);
        }
        ToolOverride { name: change.name, description: change.description }
    }

    /// Two tools cannot be told apart by the same name.
    pub(super) fn check_exposed_names(&mut self, servers: &[ServerSettings]) {
        let mut taken: HashMap<&str, (&str, &str)> = HashMap::new();
        for server in servers {
            for (tool, change) in &server.tools {
                let Some(name) = &change.name else { continue };
                if let Some((other, its)) = taken.insert(name, (&server.name, tool)) {
                    let at = ["servers", &server.name, "tools", tool, "name"];
                    self.wrong(
                        &at,
                        format!("the tool {its:?} of the server {other:?} already has this name"),
                    );
                }
            }
        }
    }

    fn source(&mut self, name: &str, server: &Server) -> Option<Source> {
        let at = ["servers", name];
        let given: Vec<&str> = [
            ("command", server.command.is_some()),
            ("url", server.url.is_some()),
            ("builtin", server.builtin.is_some()),
        ]
        .iter()
        .filter_map(|(field, given)| given.then_some(*field))
        .collect();
        match given.as_slice() {
            ["command"] => {
                self.unused(name, server, "the server is a program", &["headers", "transport"]);
                self.command(name, server).map(Source::Target)
            }
            ["url"] => {
                self.unused(name, server, "no program is started", &["args", "env", "env_file", "cwd"]);
                self.remote(name, server).map(|remote| Source::Target(Target::Url(remote)))
            }
            ["builtin"] => {
                let all = ["args", "env", "env_file", "cwd", "headers", "transport"];
                self.unused(name, server, "the server is built in", &all);
                self.builtin(name, server.builtin.as_deref().unwrap_or_default())
            }
            [] => {
                let sentence = "needs a command (a program to start), a url or a builtin";
                self.required(&at, &["command", "url", "builtin"], sentence);
                None
            }
            several => {
                let several = several.join(" and ");
                self.wrong(&at, format!("has {several}; keep one of them"));
                None
            }
        }
    }

    /// Says which fields have no effect.
    fn unused(&mut self, name: &str, server: &Server, why: &str, fields: &[&'static str]) {
        for field in fields {
            let written = match *field {
                "args" => server.args.is_some(),
                "env" => !server.env.is_empty(),
                "env_file" => server.env_file.is_some(),
                "cwd" => server.cwd.is_some(),
                "headers" => !server.headers.is_empty(),
                _ => server.transport.is_some(),
            };
            if written {
                self.note(&["servers", name, field], &format!("has no effect: {why}."));
            }
        }
    }

    fn builtin(&mut self, name: &str, builtin: &str) -> Option<Source> {
        if self.builtins.get(builtin).is_some() {
            return Some(Source::Builtin(builtin.to_owned()));
        }
        let meant = nearest_name(builtin, self.builtins.names());
        let hint = meant.map_or(String::new(), |meant| format!("; did you mean {meant:?}?"));
        let known = self.builtins.names().collect::<Vec<_>>().join(", ");
        self.wrong(
            &["servers", name, "builtin"],
            format!("Tidegate has no built-in server of this name, only {known}{hint}"),
        );
        None
    }

    fn remote(&mut self, name: &str, server: &Server) -> Option<Remote> {
        let at = ["servers", name, "url"];
        let mut remote = match Remote::parse(server.url.as_deref().unwrap_or_default()) {
            Ok(remote) => remote,
            Err(TargetError::Url(reason)) => {
                self.wrong(&at, format!("is not a valid URL ({reason})"));
                return None;
            }
            Err(_) => {
                self.wrong(&at, "must start with http:// or https://");
                return None;
            }
        };
        if !remote.url.username().is_empty() || remote.url.password().is_some() {
            self.wrong(&at, "contains a user name or a password; use an Authorization header instead");
            return None;
        }
        remote.sse = matches!(server.transport, Some(Transport::Sse));
        remote.headers = self.headers(name, &server.headers);
        Some(remote)
    }

    fn headers(&mut self, server: &str, headers: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut seen: Vec<String> = Vec::new();
        for (name, value) in headers {
            let at = ["servers", server, "headers", name];
            if HeaderName::from_bytes(name.as_bytes()).is_err() {
                self.wrong(&at, "this is not a valid name for an HTTP header");
            }
            if HeaderValue::from_str(value).is_err() {
                self.wrong(&at, "contains characters that are not allowed in a header, such as line breaks");
            }
            let lower = name.to_ascii_lowercase();
            if seen.contains(&lower) {
                self.wrong(&at, "this header is given twice; its name is not case-sensitive");
            }
            seen.push(lower);
        }
        headers.clone()
    }
}
