//! One server of a file.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::error::Fault;
use super::expand::{Expander, Surroundings};
use super::parse::ADDRESSES;
use super::{Entry, ServersFile, ServersFileError, env_file};
use crate::target::{Command, Remote, Target, TargetError};

/// Reads the description of a server and fills in its variables.
pub(super) fn read(
    file: &ServersFile,
    name: &str,
    value: &Value,
    around: &Surroundings<'_>,
) -> Result<Entry, ServersFileError> {
    let expand = Expander::new(around, &file.origin, &file.inputs);
    let entry = || {
        let Value::Object(members) = value else {
            return Err(Fault::Other("it must be an object with a \"command\" or a \"url\"".to_owned()));
        };
        let mut reader = Reader { members: members.clone(), expand };
        let disabled = reader.flag("disabled")? == Some(true) || reader.flag("enabled")? == Some(false);
        let target = reader.target()?;
        Ok(Entry { name: name.to_owned(), target, disabled, notes: reader.notes() })
    };
    entry().map_err(|fault: Fault| fault.at(&file.origin, name))
}

/// How a server is reached, as far as the file says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Http,
    Sse,
}

/// Takes members out of a description; what remains was not understood.
struct Reader<'a> {
    members: Map<String, Value>,
    expand: Expander<'a>,
}

impl Reader<'_> {
    fn target(&mut self) -> Result<Target, Fault> {
        let kind = self.kind()?;
        let program = self.members.contains_key("command");
        let address = ADDRESSES.iter().copied().find(|key| self.members.contains_key(*key));
        match (kind, program, address) {
            (None | Some(Kind::Stdio), true, _) => self.command().map(Target::Command),
            (None | Some(Kind::Http | Kind::Sse), _, Some(key)) => {
                self.remote(key, kind == Some(Kind::Sse)).map(Target::Url)
            }
            (Some(Kind::Stdio), ..) => {
                Err(Fault::Other("its type is \"stdio\", so it needs a \"command\"".to_owned()))
            }
            (Some(_), ..) => Err(Fault::Other("its type says HTTP, so it needs a \"url\"".to_owned())),
            (None, ..) => Err(Fault::Other("it needs a \"command\" or a \"url\"".to_owned())),
        }
    }

    fn kind(&mut self) -> Result<Option<Kind>, Fault> {
        let (key, kind) = match (self.raw_text("type")?, self.raw_text("transport")?) {
            (Some(kind), _) => ("type", kind),
            (None, Some(kind)) => ("transport", kind),
            (None, None) => return Ok(None),
        };
        let letters: String = kind.chars().filter(char::is_ascii_alphabetic).collect();
        match letters.to_ascii_lowercase().as_str() {
            "stdio" => Ok(Some(Kind::Stdio)),
            "http" | "streamablehttp" => Ok(Some(Kind::Http)),
            "sse" => Ok(Some(Kind::Sse)),
            _ => Err(Fault::Other(format!("its {key:?} must be \"stdio\", \"http\" or \"sse\""))),
        }
    }

    fn command(&mut self) -> Result<Command, Fault> {
        let program = self.raw_text("command")?.unwrap_or_default();
        let program = self.expand.program(&program)?;
        if program.trim().is_empty() {
            return Err(Fault::Other("its \"command\" is empty, so name a program".to_owned()));
        }
        let args = self.texts("args")?;
        let cwd = self.raw_text("cwd")?.map(|cwd| self.expand.path(&cwd)).transpose()?;
        let mut env = self.env_file()?;
        env.extend(self.map("env")?);
        Ok(Command { program, args, env, cwd })
    }

    fn remote(&mut self, key: &str, sse: bool) -> Result<Remote, Fault> {
        let address = self.raw_text(key)?.unwrap_or_default();
        let address = self.expand.text(&address)?;
        let mut remote = Remote::parse(&address).map_err(|error| match error {
            TargetError::Url(reason) => Fault::Other(format!("its {key:?} is not a valid URL ({reason})")),
            _ => Fault::Other(format!("its {key:?} must start with http:// or https://")),
        })?;
        remote.headers = self.map("headers")?;
        remote.sse = sse;
        for (name, value) in &remote.headers {
            if HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(Fault::Other(format!("{name:?} is no name for an HTTP header")));
            }
            if HeaderValue::from_str(value).is_err() {
                return Err(Fault::Other(format!(
                    "the value of the header {name:?} holds characters that no header may hold, such as line breaks"
                )));
            }
        }
        Ok(remote)
    }

    fn env_file(&mut self) -> Result<BTreeMap<String, String>, Fault> {
        let Some(path) = self.raw_text("envFile")? else { return Ok(BTreeMap::new()) };
        let path = self.expand.path(&path)?;
        let text = crate::read_regular_text(&path, super::MAX_BYTES).map_err(|error| {
            Fault::Other(format!("its \"envFile\" {} cannot be read: {error}", path.display()))
        })?;
        env_file::parse(&text).map_err(|line| {
            Fault::Other(format!("line {line} of its \"envFile\" {} is not NAME=value", path.display()))
        })
    }

    /// A text as it stands in the file.
    fn raw_text(&mut self, key: &str) -> Result<Option<String>, Fault> {
        match self.members.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Fault::Other(format!("its {key:?} must be a text"))),
        }
    }

    fn flag(&mut self, key: &str) -> Result<Option<bool>, Fault> {
        match self.members.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(Fault::Other(format!("its {key:?} must be true or false"))),
        }
    }

    fn texts(&mut self, key: &str) -> Result<Vec<String>, Fault> {
        let wrong = || Fault::Other(format!("its {key:?} must be a list of texts"));
        match self.members.remove(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                items.iter().map(|item| self.expand.text(&scalar(item).ok_or_else(wrong)?)).collect()
            }
            Some(_) => Err(wrong()),
        }
    }

    /// A map from names to texts. A member that is null is one that is not there.
    fn map(&mut self, key: &str) -> Result<BTreeMap<String, String>, Fault> {
        let wrong = || Fault::Other(format!("its {key:?} must map names to texts"));
        match self.members.remove(key) {
            None | Some(Value::Null) => Ok(BTreeMap::new()),
            Some(Value::Object(members)) => members
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| Ok((name, self.expand.text(&scalar(&value).ok_or_else(wrong)?)?)))
                .collect(),
            Some(_) => Err(wrong()),
        }
    }

    /// A sentence about everything that nobody took.
    fn notes(&self) -> Vec<String> {
        self.members
            .keys()
            .map(|key| match key.as_str() {
                "dev" => "\"dev\" is ignored: it is for developing the server in VS Code".to_owned(),
                "env" | "envFile" | "args" | "cwd" | "command" => {
                    format!(
                        "{key:?} is ignored: the server is reached by its address, and no program is started"
                    )
                }
                "headers" | "url" | "serverUrl" | "httpUrl" => {
                    format!("{key:?} is ignored: the server is a program, or has a better address")
                }
                _ => format!("{key:?} is ignored"),
            })
            .collect()
    }
}

/// Numbers and booleans are texts too where nothing else can be meant.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}
