//! Where clients come in, and whether everybody who could may.

use super::Resolver;
use crate::auth_settings::AuthSettings;
use crate::config::Purpose;
use crate::error::Problem;
use crate::exposure::check_exposure;
use crate::listen::{self, ListenAddress};
use crate::settings::ListenSettings;
use crate::written::File;

/// Less could not hold a few messages.
const LEAST_BUFFERED: usize = 16 * 1024 * 1024;

/// What is beside the endpoint.
const PAGES: [&str; 13] = [
    "/health",
    "/ready",
    "/live",
    "/metrics",
    "/api",
    "/api/status",
    "/api/servers",
    "/api/calls",
    "/api/logs",
    "/api/logs/stream",
    "/api/log/level",
    "/api/events",
    "/api/openapi.json",
];
/// Below which names of servers stand.
const SERVERS: &str = "/api/servers/";

impl Resolver<'_> {
    pub(super) fn listen(&mut self, file: &File) -> ListenSettings {
        let usual = ListenSettings::default();
        let address = match file.listen.as_ref().map(|listen| listen.0.parse::<ListenAddress>()) {
            None => usual.address,
            Some(Ok(address)) => address.to_string(),
            Some(Err(_)) => {
                self.wrong(&["listen"], format!("must be {}", listen::FORMS));
                usual.address
            }
        };
        let path = file.path.clone().unwrap_or(usual.path);
        if !path.starts_with('/') || path.contains(|c: char| c.is_whitespace() || "?#{}".contains(c)) {
            self.wrong(&["path"], "must be the path of a URL, such as \"/mcp\"");
        }
        if PAGES.contains(&&*path) || path.starts_with(SERVERS) {
            self.wrong(&["path"], "is the path of a page of the gateway: use another, such as \"/mcp\"");
        }
        for sentence in file.allow_origins.iter().filter_map(|origin| listen::check_origin(origin).err()) {
            self.wrong(&["allow_origins"], sentence);
        }
        for sentence in file.allow_hosts.iter().filter_map(|host| listen::check_host(host).err()) {
            self.wrong(&["allow_hosts"], sentence);
        }
        let max_message = self.size(&["max_message"], file.max_message.as_ref(), usual.max_message);
        let max_buffered = file.max_buffered.as_ref().map(|size| self.size(&["max_buffered"], Some(size), 0));
        if max_buffered.is_some_and(|bytes| bytes < LEAST_BUFFERED) {
            self.wrong(&["max_buffered"], "must be at least \"16MiB\"");
        }
        let max_connections = self.count("max_connections", file.max_connections, usual.max_connections);
        let connection_idle =
            self.time(&["connection_idle"], file.connection_idle.as_ref(), usual.connection_idle);
        let request_within =
            self.time(&["request_within"], file.request_within.as_ref(), usual.request_within);
        let (public_url, public_host) = self.public_url(file.public_url.as_deref()).unzip();
        let mut hosts = file.allow_hosts.clone();
        // Whoever is sent there may come in.
        hosts.extend(public_host.flatten().filter(|host| !file.allow_hosts.contains(host)));
        let trusted_proxies = self.trusted_proxies(&file.trusted_proxies);
        let tls = self.tls(file.tls.as_ref());
        if tls.is_some() && public_url.as_ref().is_some_and(|url| !url.starts_with("https:")) {
            self.wrong(&["public_url"], "must begin with https://, because the gateway serves HTTPS ([tls])");
        }
        ListenSettings {
            address,
            address_is_said: file.listen.is_some(),
            path,
            hosts,
            origins: file.allow_origins.clone(),
            http_sse: file.http_sse.unwrap_or(usual.http_sse),
            max_message,
            max_buffered,
            max_connections,
            connection_idle,
            request_within,
            public_url,
            trusted_proxies,
            tls,
            insecure: file.insecure.unwrap_or(usual.insecure),
        }
    }

    /// Whether others may reach what was written.
    pub(super) fn check_exposure(&mut self, listen: &ListenSettings, auth: Option<&AuthSettings>) {
        // What is wrong with a field has been said, and it is not missing.
        let is_wrong = |field: &str| {
            let is_it = |problem: &Problem| problem.field.as_deref() == Some(field);
            let is_first = |path: &Vec<String>| path.first().is_some_and(|first| first == field);
            self.removed.iter().any(is_first) || self.problems.iter().any(is_it)
        };
        let fields = ["listen", "auth", "tls", "trusted_proxies", "public_url", "allow_hosts"];
        let is_known = !fields.into_iter().any(is_wrong) && self.purpose == Purpose::Serving;
        let address = listen.address.parse::<ListenAddress>();
        if let (true, Ok(Err(error))) =
            (is_known, address.map(|address| check_exposure(&address, listen, auth)))
        {
            self.wrong(&["listen"], error.to_string());
        }
        if auth.is_some() && listen.origins.iter().any(|origin| origin == "null") {
            self.note(
                &["allow_origins"],
                "has \"null\", which is the origin of any sandboxed page and of local files: with [auth], name the origins that are yours.",
            );
        }
        if auth.is_none()
            && !listen.insecure
            && (listen.public_url.is_some() || !listen.trusted_proxies.is_empty())
        {
            self.notes.push(
                "There is no [auth]: whoever can reach the gateway through a proxy can call every tool, unless the proxy itself lets nobody in."
                    .to_owned(),
            );
        }
    }
}
