//! Who may call what a configuration serves, and over what: files that are read for it, and what comes of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use tidegate::edge::http::TlsCertificate;
use tidegate_auth::Authenticator;
use tidegate_auth::keys::{DEFAULT_ENDPOINT, KeyFile, KeyState};
use tidegate_config::{
    AuditSettings, AuthSettings, EndpointSettings, LimitScopes, LimitSettings, ListenAddress, Settings,
    ToolMode, WhenFull,
};
use tidegate_policy::{DefaultEffect, Policy, PolicyMode};
use tidegate_service::{epoch_ms, rfc3339_ms};
use tracing::subscriber::{NoSubscriber, with_default};
use url::Url;

use crate::commands::serve::authentication::resources;
use crate::commands::serve::banner::exposure_warning;
use crate::term::clean;
use crate::term::table::Table;

/// What is known of it.
pub(super) struct Access {
    /// The beginning of all URLs.
    pub(super) origin: String,
    keys: Option<KeyCount>,
    /// When the certificate expires.
    certificate_ends_ms: Option<u64>,
    /// Why nobody could be served: sentences.
    pub(super) problems: Vec<String>,
    /// What is worth knowing.
    pub(super) warnings: Vec<String>,
}

/// The keys of a file.
struct KeyCount {
    file: PathBuf,
    valid: usize,
    expired: usize,
    revoked: usize,
}

impl Access {
    /// Reads what serving would read. What that would log is told here.
    pub(super) fn of(settings: &Settings) -> Access {
        with_default(NoSubscriber::default(), || Access::read(settings))
    }

    fn read(settings: &Settings) -> Access {
        let listen = &settings.listen;
        let scheme = if listen.tls.is_some() { "https" } else { "http" };
        let origin = listen.public_url.clone().unwrap_or_else(|| format!("{scheme}://{}", listen.address));
        let mut access = Access {
            origin,
            keys: None,
            certificate_ends_ms: None,
            problems: Vec::new(),
            warnings: Vec::new(),
        };
        if let Some(tls) = &listen.tls {
            match TlsCertificate::load(&tls.cert, &tls.key) {
                Ok(certificate) => access.certificate(&certificate, listen.public_url.as_deref()),
                Err(error) => access.problems.push(format!("tls: {error}")),
            }
        }
        if listen.address.parse::<ListenAddress>().is_ok_and(|address| !address.is_loopback()) {
            access.warnings.extend(exposure_warning(&listen.address, settings));
        }
        if let Some(auth) = &settings.auth {
            access.callers(auth, &settings.endpoints, &listen.path);
        }
        access
    }

    /// Whether clients would accept a certificate, as far as that can be told here.
    fn certificate(&mut self, certificate: &TlsCertificate, public_url: Option<&str>) {
        let now = epoch_ms();
        self.certificate_ends_ms = certificate.expires_ms();
        let mut refused = |why: String| {
            self.warnings.push(format!("tls.cert: the certificate {why}: clients will refuse it."))
        };
        if let Some(end) = certificate.expires_ms().filter(|end| *end <= now) {
            refused(format!("has expired on {}", day(end)));
        }
        if let Some(begin) = certificate.begins_ms().filter(|begin| *begin > now) {
            refused(format!("is not valid before {}", day(begin)));
        }
        let host = public_url.and_then(|url| Url::parse(url).ok()?.host_str().map(str::to_owned));
        if let Some(host) = host.filter(|host| !certificate.is_for(host)) {
            refused(format!("is not for {host}, the host of public_url"));
        }
    }

    fn callers(&mut self, auth: &AuthSettings, endpoints: &[EndpointSettings], path: &str) {
        // Nothing is fetched, and nothing written, as long as nobody calls.
        if let Err(error) = Authenticator::start(auth, resources(endpoints, &self.origin, path), None) {
            self.problems.push(format!("auth: {error}"));
        }
        let Some(file) = auth.keys.as_deref().and_then(|path| KeyFile::read(path).ok()) else { return };
        let now = epoch_ms();
        let count = |state| file.keys().iter().filter(|key| key.state(now) == state).count();
        self.warnings.extend(file.note());
        let keys = KeyCount {
            file: file.path().to_owned(),
            valid: count(KeyState::Valid),
            expired: count(KeyState::Expired),
            revoked: count(KeyState::Revoked),
        };
        if keys.valid == 0 && auth.jwt.is_empty() && auth.introspection.is_empty() {
            self.warnings.push(
                "auth.keys: no key is valid, so nobody can call. Make one with tidegate keys add.".to_owned(),
            );
        }
        self.keys = Some(keys);
        let good = file.keys().iter().filter(|key| key.state(now) == KeyState::Valid);
        let mut gone: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for key in good {
            let is_known = |name: &str| {
                name == DEFAULT_ENDPOINT || endpoints.iter().any(|endpoint| endpoint.name == name)
            };
            for name in key.endpoints.iter().flatten().filter(|name| !is_known(name)) {
                gone.entry(name).or_default().push(&key.name);
            }
        }
        for (endpoint, holders) in gone {
            let more = match holders.len() - 1 {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            let holder = holders[0];
            self.warnings.push(format!(
                "auth.keys: the key of {holder}{more} is limited to the endpoint {endpoint:?}, which is not configured."
            ));
        }
    }

    /// Who may call and over what, for people; nothing where only this machine's user does.
    pub(super) fn lines(&self, settings: &Settings) -> Option<Table> {
        let mut table = Table::new(&["", ""]);
        let mut is_empty = true;
        let mut row = |what: &str, text: String| {
            is_empty = false;
            table.row([what, &text]);
        };
        if let Some(tls) = &settings.listen.tls {
            let ends =
                self.certificate_ends_ms.map(|ms| format!(", valid until {}", day(ms))).unwrap_or_default();
            row("https", format!("{}{ends}", clean::line(&tls.cert.display().to_string())));
        }
        if !settings.listen.trusted_proxies.is_empty() {
            row("proxies", settings.listen.trusted_proxies.join(", "));
        }
        if let Some(auth) = &settings.auth {
            if let Some(keys) = &self.keys {
                row("keys", format!("{}: {}", clean::line(&keys.file.display().to_string()), keys.shown()));
            }
            let usual = format!("{}{}", self.origin, settings.listen.path);
            for (kind, issuer, audience) in issuers(auth) {
                row(kind, format!("{}, for {}", clean::line(issuer), audience_or(audience, &usual)));
            }
            if !auth.scopes.required.is_empty() {
                row("scopes", auth.scopes.required.join(" "));
            }
            for (scope, tools) in &auth.scopes.tools {
                row("scope", format!("{scope} for {}", tools.join(", ")));
            }
        }
        if let Some(policy) = &settings.policy {
            row("policy", policy_in_words(policy));
        }
        if let Some(limits) = &settings.limits {
            row("limits", limits_in_words(limits));
        }
        if let Some(audit) = &settings.audit {
            row("audit", audit_places(audit));
        }
        if let Some(listen) = &settings.admin.listen {
            row("admin", format!("{listen}: the admin API and /metrics"));
        }
        for (what, said) in super::watching::rows(settings) {
            row(what, said);
        }
        for endpoint in &settings.endpoints {
            let url = format!("{}{}", self.origin, endpoint.path);
            let said = match endpoint.audience.is_empty() {
                true => String::new(),
                false => format!(", for {}", endpoint.audience.join(", ")),
            };
            row("endpoint", format!("{url}: {}{said}", selection(endpoint)));
        }
        (!is_empty).then_some(table)
    }

    /// The same for programs.
    pub(super) fn json(&self, settings: &Settings) -> Value {
        let auth = settings.auth.as_ref().map(|auth| {
            let usual = vec![format!("{}{}", self.origin, settings.listen.path)];
            let issuers = issuers(auth).into_iter().map(|(kind, issuer, audience)| {
                let audience = if audience.is_empty() { &usual } else { audience };
                json!({"kind": kind, "issuer": issuer, "audience": audience})
            });
            json!({
                "keys": self.keys.as_ref().map(|keys| json!({
                    "file": keys.file, "valid": keys.valid, "expired": keys.expired, "revoked": keys.revoked,
                })),
                "issuers": issuers.collect::<Vec<_>>(),
                "scopes": auth.scopes.required,
            })
        });
        let endpoints = settings.endpoints.iter().map(|endpoint| {
            let url = format!("{}{}", self.origin, endpoint.path);
            let audience =
                if endpoint.audience.is_empty() { vec![url.clone()] } else { endpoint.audience.clone() };
            json!({"name": endpoint.name, "url": url, "audience": audience})
        });
        json!({
            "auth": auth,
            "policy": settings.policy.as_ref().map(|policy| json!({
                "rules": policy.spec().rules.len(),
                "mode": if policy.mode() == PolicyMode::Shadow { "shadow" } else { "enforce" },
            })),
            "audit": settings.audit.as_ref().map(|audit| json!({
                "file": audit.file.as_ref().map(|file| &file.path),
                "stdout": audit.stdout,
                "syslog": audit.syslog.as_ref().map(|syslog| syslog.server.to_string()),
                "whenFull": audit.when_full.as_str(),
            })),
            "admin": settings.admin.listen.as_ref().map(|listen| json!({"listen": listen})),
            "endpoints": endpoints.collect::<Vec<_>>(),
            "certificateExpires": self.certificate_ends_ms.map(rfc3339_ms),
        })
    }
}

impl KeyCount {
    fn shown(&self) -> String {
        let more = [(self.expired, "expired"), (self.revoked, "revoked")];
        let more =
            more.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}"));
        format!("{} valid{}", self.valid, more.collect::<String>())
    }
}

/// Those whose tokens are accepted: how they are told to be good, who issues them, and what they must be for.
fn issuers(auth: &AuthSettings) -> Vec<(&'static str, &str, &Vec<String>)> {
    let jwt = auth.jwt.iter().map(|jwt| ("jwt", &*jwt.issuer, &jwt.audience));
    let asked = auth.introspection.iter().map(|asked| ("introspection", &*asked.issuer, &asked.audience));
    jwt.chain(asked).collect()
}

/// Where records of calls go, and what happens when they cannot.
/// What a policy is, in a line.
fn policy_in_words(policy: &Policy) -> String {
    let spec = policy.spec();
    let rules = match spec.rules.len() {
        1 => "1 rule".to_owned(),
        count => format!("{count} rules"),
    };
    let default = match (spec.default, spec.rules.is_empty()) {
        (Some(DefaultEffect::Allow), _) | (None, true) => "everything else is allowed",
        (Some(DefaultEffect::Deny), _) | (None, false) => "everything else is refused",
    };
    let shadow = match spec.mode {
        PolicyMode::Enforce => "",
        PolicyMode::Shadow => "; nothing is refused yet (mode = \"shadow\")",
    };
    format!("{rules}, {default}{shadow}")
}

/// Limits, in a line.
fn limits_in_words(limits: &LimitSettings) -> String {
    let LimitScopes { tenant, user, tool, server, endpoint } = &limits.scopes;
    let scopes =
        [("tenant", tenant), ("user", user), ("tool", tool), ("server", server), ("endpoint", endpoint)];
    let mut parts: Vec<String> = Vec::new();
    for (name, set) in scopes {
        let Some(set) = set else { continue };
        let rate = set.rate.map(|rate| rate.to_string());
        let at_once = set.concurrency.map(|it| format!("{} at once", it.running));
        let sizes = [("request", set.request), ("response", set.response)];
        let sizes = sizes.into_iter().filter_map(|(what, most)| Some(format!("{what} {} bytes", most?)));
        let said: Vec<String> = rate.into_iter().chain(at_once).chain(sizes).collect();
        parts.push(format!("each {name} {}", said.join(", ")));
    }
    match limits.rules.len() {
        0 => {}
        1 => parts.push("1 rule".to_owned()),
        count => parts.push(format!("{count} rules")),
    }
    if let Some(repeats) = limits.run.as_ref().and_then(|run| run.repeats) {
        parts.push(format!("the same call {repeats} times in a run"));
    }
    parts.join("; ")
}

fn audit_places(audit: &AuditSettings) -> String {
    let file = audit.file.as_ref().map(|file| clean::line(&file.path.display().to_string()));
    let stdout = audit.stdout.then(|| "standard output".to_owned());
    let syslog = audit.syslog.as_ref().map(|syslog| clean::line(&syslog.server.to_string()));
    let places: Vec<String> = [file, stdout, syslog].into_iter().flatten().collect();
    let when_full = match audit.when_full {
        WhenFull::Drop => "calls go on when it cannot be written",
        WhenFull::Refuse => "calls are refused when it cannot be written",
    };
    format!("{}; {when_full}", places.join(", "))
}

fn audience_or(audience: &[String], usual: &str) -> String {
    if audience.is_empty() { usual.to_owned() } else { clean::line(&audience.join(" or ")) }
}

/// What an endpoint has.
fn selection(endpoint: &EndpointSettings) -> String {
    let chosen = [
        ("servers", &endpoint.servers),
        ("tools", &endpoint.tools),
        ("prompts", &endpoint.prompts),
        ("resources", &endpoint.resources),
    ];
    let parts: Vec<String> = chosen
        .iter()
        .filter_map(|(what, patterns)| {
            let patterns = patterns.as_ref()?;
            Some(match patterns.is_empty() {
                true => format!("no {what}"),
                false => format!("{what} {}", patterns.join(", ")),
            })
        })
        .collect();
    let what = if parts.is_empty() { "everything".to_owned() } else { clean::line(&parts.join("; ")) };
    match endpoint.mode {
        None => what,
        Some(ToolMode::All) => format!("{what}; mode all"),
        Some(ToolMode::Search) => format!("{what}; mode search"),
    }
}

fn day(ms: u64) -> String {
    rfc3339_ms(ms).chars().take("2026-01-01".len()).collect()
}
