//! Which protocol is spoken with a server: revision, handshake, what it must have, and what its error numbers mean.

use tidegate_client::{ClientSettings, EraChoice, ErrorProfile, ServerCapability};
use tidegate_protocol::Revision;
use tidegate_protocol::json::ObjectWriter;

use super::Resolver;
use crate::written::{Errors, Handshake, Requirement, Server};

/// The revision that the three steps offer, unless somebody says otherwise.
const THREE_STEPS: Revision = Revision::V2024_11_05;

impl Resolver<'_> {
    /// Changes the usual options to what the server says.
    pub(super) fn protocol(&mut self, name: &str, server: &Server, options: &mut ClientSettings) {
        let at = |field: &'static str| ["servers", name, field];
        options.profile = profile(server.errors);
        options.require = server.require.iter().map(|required| required.capability()).collect();
        if let Some(info) = &server.client_info {
            let mut said = ObjectWriter::new();
            said.str("name", &info.name).str("version", info.version.as_deref().unwrap_or("1.0.0"));
            options.client_info = said.finish();
        }
        let version = server.protocol_version.as_deref().and_then(|version| {
            let known = version.parse::<Revision>().ok();
            if known.is_none() {
                let all = Revision::ALL.map(Revision::as_str).join(", ");
                self.wrong(&at("protocol_version"), format!("must be one of {all}"));
            }
            known
        });
        let three_steps = matches!(server.handshake, Some(Handshake::ThreeStep));
        let era = options.era;
        match version {
            Some(version) if version.is_modern() && (three_steps || era == EraChoice::Legacy) => {
                let beside = if three_steps { "handshake = \"three-step\"" } else { "era = \"legacy\"" };
                let what = format!("must be {} or earlier, because of {beside}", Revision::LATEST_LEGACY);
                self.wrong(&at("protocol_version"), what);
            }
            Some(version) if !version.is_modern() && era == EraChoice::Modern => {
                let modern: Vec<_> = Revision::MODERN.iter().map(|revision| revision.as_str()).collect();
                let what = format!("must be {}, because of era = \"modern\"", modern.join(" or "));
                self.wrong(&at("protocol_version"), what);
            }
            Some(version) if version.is_modern() => options.era = EraChoice::Modern,
            Some(version) => options.offer_revision(version),
            None => {}
        }
        if three_steps {
            if era == EraChoice::Modern {
                self.wrong(&at("handshake"), "cannot be \"three-step\", because of era = \"modern\"");
            }
            let version = version.or_else(|| self.version_of_the_environment());
            options.three_steps(version.filter(|version| !version.is_modern()).unwrap_or(THREE_STEPS));
        }
        let is_builtin = server.builtin.is_some();
        for (field, written) in [
            ("handshake", server.handshake.is_some()),
            ("protocol_version", server.protocol_version.is_some()),
            ("client_info", server.client_info.is_some()),
        ] {
            if is_builtin && written {
                self.note(&at(field), "has no effect, because the server is part of Tidegate");
            }
        }
    }

    fn version_of_the_environment(&self) -> Option<Revision> {
        self.secrets.text("${MCP_PROTOCOL_VERSION:-}").ok()?.parse().ok()
    }
}

/// Whose error numbers are meant.
pub(super) fn profile(errors: Option<Errors>) -> ErrorProfile {
    match errors {
        None | Some(Errors::Standard) => ErrorProfile::Standard,
        Some(Errors::Gbif) => ErrorProfile::Gbif,
        Some(Errors::Percolate) => ErrorProfile::Percolate,
        Some(Errors::Docling) => ErrorProfile::Docling,
        Some(Errors::Devflow) => ErrorProfile::DevFlow,
    }
}

impl Requirement {
    fn capability(self) -> ServerCapability {
        match self {
            Requirement::Tools => ServerCapability::Tools,
            Requirement::Resources => ServerCapability::Resources,
            Requirement::Prompts => ServerCapability::Prompts,
            Requirement::Completions => ServerCapability::Completions,
            Requirement::Logging => ServerCapability::Logging,
        }
    }
}
