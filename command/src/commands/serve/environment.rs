//! What the environment says: how servers are spoken to, by the same variables that the client commands look at, and where
//! spans and figures are sent, by those of OpenTelemetry.

use std::time::Duration;

use tidegate::protocol::Revision;
use tidegate_client::EraChoice;
use tidegate_config::{OtlpSettings, Settings};

const VERSION: &str = "MCP_PROTOCOL_VERSION";
const CACHE: &str = "MCP_TOOL_CACHE_TTL";

/// What the environment says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Environment {
    revision: Option<Revision>,
    cache_ttl: Option<Duration>,
    otlp: Option<OtlpSettings>,
}

impl Environment {
    /// Reads the variables. One that makes no sense is an error: who sets it means something by it.
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Environment, String> {
        let set = |name: &str| {
            variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let revision = match set(VERSION) {
            None => None,
            Some(version) => Some(version.parse::<Revision>().map_err(|()| {
                let known = Revision::ALL.map(Revision::as_str).join(", ");
                format!("{VERSION} must be a revision of the protocol ({known}), not {version:?}")
            })?),
        };
        let cache_ttl = match set(CACHE) {
            None => None,
            Some(ttl) => Some(Duration::from_millis(
                ttl.parse().map_err(|_| format!("{CACHE} must be a number of milliseconds, not {ttl:?}"))?,
            )),
        };
        // They are often set for all programs of a machine: one that makes no sense here is no reason not to serve.
        let otlp = OtlpSettings::from_environment(&variable).unwrap_or_else(|sentence| {
            tracing::warn!("Nothing is sent to a collector: {sentence}");
            None
        });
        Ok(Environment { revision, cache_ttl, otlp })
    }

    /// Has it hold where the configuration does not say otherwise.
    pub(super) fn apply(&self, settings: &mut Settings) {
        if *self == Environment::default() {
            return;
        }
        if settings.telemetry.otlp.is_none() {
            settings.telemetry.otlp = self.otlp.clone();
        }
        if self.revision.is_none() && self.cache_ttl.is_none() {
            return;
        }
        for server in &mut settings.servers {
            let options = &mut server.options;
            match (self.revision, options.era) {
                (Some(revision), EraChoice::Auto) => options.offer_revision(revision),
                (Some(revision), EraChoice::Legacy) if !revision.is_modern() => options.offer = revision,
                _ => {}
            }
            if let Some(ttl) = self.cache_ttl {
                options.cache_ttl = ttl;
            }
            *server = server.clone().seal();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::Config;

    fn with(version: &str, ttl: &str) -> Result<Environment, String> {
        Environment::read(|name| match name {
            VERSION => Some(version.to_owned()),
            CACHE => Some(ttl.to_owned()),
            _ => None,
        })
    }

    #[test]
    fn the_environment_holds_unless_the_configuration_says_otherwise() {
        let text = "[servers.a]\nurl = \"http://a/mcp\"\n[servers.b]\nurl = \"http://b/mcp\"\nera = \"modern\"\n\
                    [servers.c]\nurl = \"http://c/mcp\"\nera = \"legacy\"\n";
        let plain = Config::parse(text, "tidegate.toml", &Default::default(), &|_| None).unwrap();
        let mut settings = plain.clone();
        with("", " ").unwrap().apply(&mut settings);
        assert_eq!(settings.servers[0].digest, plain.servers[0].digest);
        with("2025-06-18", "1500").unwrap().apply(&mut settings);
        let of = |n: usize| (settings.servers[n].options.era, settings.servers[n].options.offer);
        assert_eq!(of(0), (EraChoice::Legacy, Revision::V2025_06_18));
        assert_eq!(of(1), (EraChoice::Modern, Revision::V2025_11_25));
        assert_eq!(of(2), (EraChoice::Legacy, Revision::V2025_06_18));
        assert!(settings.servers.iter().all(|s| s.options.cache_ttl == Duration::from_millis(1500)));
        assert!(with("1999", "").unwrap_err().contains("2026-07-28"));
        assert!(with("", "soon").unwrap_err().contains("MCP_TOOL_CACHE_TTL"));
    }
}
