//! [`ServerEntry`]: a server as it is to be written.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tidegate_client::EraChoice;
use toml_edit::{Array, InlineTable, Item, Table, Value};

use crate::config::Variables;
use crate::missing_reference::Missing;
use crate::secrets::{Fault, Secrets};
use crate::server_summary;

/// A server as it is to be written. Texts are written as they are, so `${NAME}` refers to a variable.
///
/// Its `Debug` is fit for logs: it leaves out the values of variables and headers.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ServerEntry {
    /// The program.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables for it.
    pub env: BTreeMap<String, String>,
    /// A file with such variables.
    pub env_file: Option<String>,
    /// Where it runs.
    pub cwd: Option<String>,
    /// The name of a server that is part of the program, if it is neither a program nor an address.
    pub builtin: Option<String>,
    /// The address, if it is no program.
    pub url: Option<String>,
    /// Headers for it.
    pub headers: BTreeMap<String, String>,
    /// Whether the address is known to be one of HTTP+SSE.
    pub sse: bool,
    /// The prefix of its tools' names, if not the name of the server.
    pub prefix: Option<String>,
    /// The era, if not whichever the server speaks.
    pub era: EraChoice,
    /// Which tools are offered: patterns; all if there is none.
    pub allow: Vec<String>,
    /// Which tools are not offered, even if they are allowed.
    pub deny: Vec<String>,
    /// How long a call may take, if not as long as usual.
    pub timeout: Option<Duration>,
    /// How long it may take to start, if not as long as usual.
    pub start_timeout: Option<Duration>,
    /// Whether it is there, but not used.
    pub disabled: bool,
}

impl ServerEntry {
    /// The environment variables that it refers to and that are set neither in `env` nor in the `.env` beside the
    /// configuration that it is in, or will be. Each once, in the order of the fields.
    pub fn missing_variables(&self, config: &Path, env: Variables<'_>) -> Vec<String> {
        let secrets = Secrets::new(config, env);
        let single = [&self.command, &self.url, &self.cwd, &self.env_file].into_iter().flatten();
        let texts = single.chain(&self.args).chain(self.env.values()).chain(self.headers.values());
        let mut missing = Vec::new();
        for fault in texts.filter_map(|text| secrets.text(text).err()).flatten() {
            if let Fault::Missing(Missing::Variable(name)) = fault
                && !missing.contains(&name)
            {
                missing.push(name);
            }
        }
        missing
    }

    /// The names of variables and headers whose values look like secrets in plain text.
    pub fn literal_secrets(&self) -> Vec<&str> {
        let secret = |(name, value): &(&String, &String)| is_plain_secret(name, value);
        self.env.iter().chain(&self.headers).filter(secret).map(|(name, _)| name.as_str()).collect()
    }

    /// What it is in words for people and logs, without secrets.
    pub fn shown(&self) -> String {
        if let Some(builtin) = &self.builtin {
            return format!("builtin {builtin}");
        }
        match (&self.command, &self.url) {
            (Some(program), _) => server_summary::program(program, &self.args, self.env.keys()),
            (None, url) => server_summary::address(url.as_deref().unwrap_or_default()),
        }
    }

    /// As a table.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new();
        if let Some(command) = &self.command {
            if self.args.is_empty() && command.contains(char::is_whitespace) {
                // As a text it would be split into words.
                table.insert("command", Item::Value(list(std::slice::from_ref(command))));
            } else {
                table.insert("command", text(command));
            }
        }
        if !self.args.is_empty() {
            table.insert("args", Item::Value(list(&self.args)));
        }
        for (field, value) in [
            ("builtin", &self.builtin),
            ("url", &self.url),
            ("cwd", &self.cwd),
            ("env_file", &self.env_file),
            ("prefix", &self.prefix),
        ] {
            if let Some(value) = value {
                table.insert(field, text(value));
            }
        }
        if self.sse {
            table.insert("transport", text("sse"));
        }
        match self.era {
            EraChoice::Auto => {}
            EraChoice::Legacy => drop(table.insert("era", text("legacy"))),
            EraChoice::Modern => drop(table.insert("era", text("modern"))),
        }
        for (field, patterns) in [("allow", &self.allow), ("deny", &self.deny)] {
            if !patterns.is_empty() {
                table.insert(field, Item::Value(list(patterns)));
            }
        }
        for (field, time) in [("timeout", self.timeout), ("start_timeout", self.start_timeout)] {
            if let Some(time) = time {
                table.insert(field, text(&humantime::format_duration(time).to_string()));
            }
        }
        if self.disabled {
            table.insert("enabled", Item::Value(false.into()));
        }
        for (field, map) in [("env", &self.env), ("headers", &self.headers)] {
            if !map.is_empty() {
                let members: InlineTable = map.iter().map(|(name, value)| (name, value.as_str())).collect();
                table.insert(field, Item::Value(Value::InlineTable(members)));
            }
        }
        table
    }
}

impl std::fmt::Debug for ServerEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerEntry")
            .field("source", &self.shown())
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

fn text(value: &str) -> Item {
    Item::Value(value.into())
}

fn list(values: &[String]) -> Value {
    Value::Array(values.iter().map(String::as_str).collect::<Array>())
}

/// Whether this is a secret in plain text, by its name.
pub(crate) fn is_plain_secret(name: &str, value: &str) -> bool {
    !value.contains("${") && !value.is_empty() && looks_secret(name)
}

/// Whether a variable or header of this name is likely to hold a secret.
fn looks_secret(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "token",
        "secret",
        "password",
        "passwd",
        "pwd",
        "key",
        "auth",
        "credential",
        "bearer",
        "cookie",
        "pat",
    ];
    let lower = name.to_ascii_lowercase();
    lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| {
        WORDS.iter().any(|word| if word.len() > 3 { part.contains(word) } else { part.ends_with(word) })
    })
}
