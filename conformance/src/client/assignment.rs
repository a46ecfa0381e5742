//! [`Assignment`]: what the suite wants of this run. It comes in the environment, and the address as last argument.

use std::env;

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;
use tidegate_client::{Client, ClientBuilder, EraChoice};
use tidegate_protocol::Revision;

/// One scenario to play.
pub(crate) struct Assignment {
    /// The server's address.
    pub(crate) url: String,
    /// The scenario's name.
    pub(crate) scenario: String,
    /// The revision to speak.
    revision: Revision,
    /// What the scenario hands over: credentials, arguments. An object.
    context: Value,
}

impl Assignment {
    /// Reads it.
    pub(crate) fn read() -> Result<Assignment> {
        let Some(url) = env::args().nth(1) else { bail!("usage: conformance-client URL") };
        let revision = variable("MCP_CONFORMANCE_PROTOCOL_VERSION")?;
        let revision =
            revision.parse().map_err(|()| anyhow!("`{revision}` is no revision of the protocol"))?;
        let context = match env::var("MCP_CONFORMANCE_CONTEXT") {
            Ok(text) => serde_json::from_str(&text).context("MCP_CONFORMANCE_CONTEXT is not JSON")?,
            Err(_) => Value::Null,
        };
        Ok(Assignment { url, scenario: variable("MCP_CONFORMANCE_SCENARIO")?, revision, context })
    }

    /// A client for the server that speaks the wanted revision and no other.
    pub(crate) fn client(&self) -> Result<ClientBuilder> {
        let revision = self.revision;
        let builder = Client::builder(self.url.as_str())?.configure(|options| {
            options.offer_revision(revision);
            if revision.is_modern() {
                options.era = EraChoice::Modern;
            }
        });
        Ok(builder)
    }

    /// A member of the context.
    pub(crate) fn given(&self, name: &str) -> Result<&Value> {
        self.context.get(name).with_context(|| format!("the suite's context has no `{name}`"))
    }
}

fn variable(name: &str) -> Result<String> {
    env::var(name).with_context(|| format!("{name} is not set: this program is for the conformance suite"))
}
