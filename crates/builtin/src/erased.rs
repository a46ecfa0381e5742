//! [`Builtin`]: a [`BuiltinServer`] without its type.

use std::any::Any;
use std::fmt;

use schemars::{Schema, SchemaGenerator};
use serde::Deserialize;
use tidegate_protocol::Error;
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

use crate::opened::Opened;
use crate::pages::Pages;
use crate::reading::{Findings, Reading, Unwritten};
use crate::running::Running;
use crate::server::{BuiltinServer, Host};
use crate::settings::BuiltinSettings;

/// A server that is part of the program.
#[derive(Clone, Copy)]
pub struct Builtin {
    name: &'static str,
    description: &'static str,
    schema: fn(&mut SchemaGenerator) -> Schema,
    unwritten: fn() -> Written,
    read: fn(Spanned<DeValue<'_>>) -> Result<Written, toml::de::Error>,
    settings: fn(&Written, &mut Reading<'_>) -> BuiltinSettings,
    open: fn(&BuiltinSettings, Host) -> Result<Opened, Error>,
    pages: fn(&str) -> Option<Pages>,
}

/// The section of a server as it was written, without its type.
pub struct Written(Box<dyn Any>);

impl Builtin {
    /// The one that is described by a type.
    pub fn of<S: BuiltinServer>() -> Builtin {
        Builtin {
            name: S::NAME,
            description: S::DESCRIPTION,
            schema: |generator| generator.subschema_for::<S::Written>(),
            unwritten: || Written(Box::new(S::Written::default())),
            read: |value| {
                let written = S::Written::deserialize(ValueDeserializer::from(value))?;
                Ok(Written(Box::new(written)))
            },
            settings: |written, reading| {
                let usual = S::Written::default();
                // What was written for another server says nothing to this one.
                let written = written.0.downcast_ref().unwrap_or(&usual);
                BuiltinSettings::new(S::settings(written, reading))
            },
            open: |settings, host| match settings.get() {
                Some(settings) => S::open(settings, host),
                None => Err(Error::internal()),
            },
            pages: S::pages,
        }
    }

    /// What it is called in a configuration.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it is, as a sentence.
    pub fn description(&self) -> &'static str {
        self.description
    }

    /// The schema of its section.
    pub fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.schema)(generator)
    }

    /// Its section, if nothing is written.
    pub fn unwritten(&self) -> Written {
        (self.unwritten)()
    }

    /// Its section. The error names the first mistake.
    pub fn read(&self, section: Spanned<DeValue<'_>>) -> Result<Written, toml::de::Error> {
        (self.read)(section)
    }

    /// What its section means.
    pub fn settings(&self, written: &Written, findings: &mut dyn Findings) -> BuiltinSettings {
        (self.settings)(written, &mut Reading::new(self.name, findings))
    }

    /// What it is told if nobody says anything.
    pub fn usual_settings(&self) -> BuiltinSettings {
        self.settings(&self.unwritten(), &mut Unwritten)
    }

    /// Opens it.
    pub fn open(&self, settings: &BuiltinSettings, host: Host) -> Result<Opened, Error> {
        (self.open)(settings, host)
    }

    /// The server as a door behind which it is opened when somebody comes. `server` is what the configuration calls it.
    pub fn start(&self, server: &str, settings: Option<&BuiltinSettings>, host: Host) -> Running {
        let settings = settings.cloned().unwrap_or_else(|| self.usual_settings());
        Running::new(*self, server, settings, host)
    }

    /// Its pages, beside the MCP endpoint at this path.
    pub fn pages(&self, endpoint: &str) -> Option<Pages> {
        (self.pages)(endpoint)
    }
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Builtin({})", self.name)
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Written")
    }
}
