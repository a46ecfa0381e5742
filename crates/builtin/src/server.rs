//! [`BuiltinServer`]: what a server that is part of the program brings.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tidegate_protocol::{Error, Profile};
use tidegate_service::{BoxDoor, Call};

use crate::opened::Opened;
use crate::pages::Pages;
use crate::reading::Reading;

/// A server that is part of the program. It is never made: what is said here is said of the type.
pub trait BuiltinServer: 'static {
    /// Its name: `builtin = "name"` in the configuration of a server, and `[name]` for what it is told. Lower-case letters,
    /// and no field that every configuration has, such as `tools`.
    const NAME: &'static str;

    /// What it is, as a sentence, for the schema of the configuration: "The built-in memory."
    const DESCRIPTION: &'static str;

    /// `[name]` of a configuration as it is written. The comments on its fields are what people read: editors show them.
    ///
    /// Derive `Deserialize`, `JsonSchema` and `Default`, with `#[serde(deny_unknown_fields, default)]`, so that a field that
    /// does not exist is a mistake and all others can be left out. References such as `${NAME}` are filled in already.
    type Written: DeserializeOwned + JsonSchema + Default + 'static;

    /// What it means: every default filled in, every path complete. Its `Debug` must not show secrets.
    type Settings: fmt::Debug + Send + Sync + 'static;

    /// Finds out what was written means. Whatever is wrong is told to `reading`, and the rest is looked at all the same, so
    /// that people see all their mistakes at once.
    fn settings(written: &Self::Written, reading: &mut Reading<'_>) -> Self::Settings;

    /// Opens the server: files, connections, whatever it needs. This may wait, and it may fail; then it is tried again when
    /// somebody calls. The error is for the operator and may say where something is; callers never see it.
    fn open(settings: &Self::Settings, host: Host) -> Result<Opened, Error>;

    /// The pages that are served beside the MCP endpoint, which is at the path `endpoint`, while such a server is
    /// configured.
    fn pages(endpoint: &str) -> Option<Pages> {
        let _ = endpoint;
        None
    }
}

/// What the program has for the servers that are part of it.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Host {
    /// Whose numbers errors have.
    pub errors: Profile,
    /// The tools of all servers beside this one, if there are others: a way back to the gateway.
    pub tools: Option<BoxDoor>,
    /// Whether every caller is authenticated: then whose data a call is about follows from who calls, and from nothing else.
    pub is_authenticated: bool,
    /// Whether the caller of a call could make it where callers come in: see [`Allows`]. `None` if there is nothing in front.
    pub allows: Option<Allows>,
}

/// Looks at a call of a server's own tool, or for a resource of its own, by the names that the server has for them, before the server
/// makes it in the name of its caller.
pub type Allows = Arc<dyn Fn(&Call) -> Result<(), Error> + Send + Sync>;

impl Host {
    /// A program with these.
    pub fn new(errors: Profile, tools: Option<BoxDoor>) -> Host {
        Host { errors, tools, is_authenticated: false, allows: None }
    }

    /// The same in front of which everybody is authenticated, or not.
    pub fn authenticated(mut self, is_authenticated: bool) -> Host {
        self.is_authenticated = is_authenticated;
        self
    }

    /// The same, which asks this about what servers do in the name of their callers.
    pub fn allowing(mut self, allows: Allows) -> Host {
        self.allows = Some(allows);
        self
    }
}
