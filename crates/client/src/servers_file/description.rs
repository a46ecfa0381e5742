//! [`Description`]: a server as a file has it, checked and brought into one form, with its variables still in place.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use super::parse::ADDRESSES;

/// A server as a file describes it. Texts are as they stand there: `${NAME}` is not filled in.
///
/// Its `Debug` is fit for logs: it leaves out values.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// The program, unless there is a `url`.
    pub program: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables for it.
    pub env: BTreeMap<String, String>,
    /// A file with such variables.
    pub env_file: Option<String>,
    /// Where it runs.
    pub cwd: Option<String>,
    /// The address, unless there is a `program`.
    pub url: Option<String>,
    /// Which member the address was in, for messages.
    pub(super) url_key: &'static str,
    /// Headers for it.
    pub headers: BTreeMap<String, String>,
    /// Whether the file says that it is one of the old HTTP+SSE transport.
    pub sse: bool,
    /// Whether the file says not to use it.
    pub disabled: bool,
    /// What else the file says about it that has a meaning here.
    pub settings: EntrySettings,
    /// What the file says about it that has no effect here, one sentence each.
    pub notes: Vec<String>,
}

/// How a server is to be used, as far as its file says so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntrySettings {
    /// How long a call may take.
    pub timeout: Option<Duration>,
    /// How long it may take to start.
    pub start_timeout: Option<Duration>,
    /// The tools that are offered, by name; all if there is none.
    pub include: Vec<String>,
    /// The tools that are not offered.
    pub exclude: Vec<String>,
}

/// How a server is reached, as far as the file says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Http,
    Sse,
}

/// Longer times are mistakes.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

impl Description {
    /// Reads a server in the usual form. The error is what is wrong with it.
    pub(super) fn read(value: &Value) -> Result<Description, String> {
        let Value::Object(members) = value else {
            return Err("it must be an object with a \"command\" or a \"url\"".to_owned());
        };
        let mut reader = Reader { members: members.clone() };
        let mut description = Description {
            disabled: reader.flag("disabled")? == Some(true) || reader.flag("enabled")? == Some(false),
            ..Description::default()
        };
        reader.source(&mut description)?;
        description.settings = EntrySettings {
            timeout: reader.time("timeoutMs"),
            start_timeout: reader.time("startTimeoutMs"),
            include: reader.texts("includeTools")?,
            exclude: reader.texts("excludeTools")?,
        };
        description.notes = reader.notes(description.url.is_some());
        Ok(description)
    }
}

impl fmt::Debug for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Description")
            .field("program", &self.program)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Takes members out of a description; what remains was not understood.
struct Reader {
    members: Map<String, Value>,
}

impl Reader {
    fn source(&mut self, into: &mut Description) -> Result<(), String> {
        let kind = self.kind()?;
        let program = self.members.contains_key("command");
        let address = ADDRESSES.iter().copied().find(|key| self.members.contains_key(*key));
        match (kind, program, address) {
            (None | Some(Kind::Stdio), true, _) => self.command(into),
            (None | Some(Kind::Http | Kind::Sse), _, Some(key)) => {
                into.url = Some(self.text(key)?.unwrap_or_default());
                into.url_key = key;
                into.headers = self.map("headers")?;
                into.sse = kind == Some(Kind::Sse);
                Ok(())
            }
            (Some(Kind::Stdio), ..) => Err("its type is \"stdio\", so it needs a \"command\"".to_owned()),
            (Some(_), ..) => Err("its type says HTTP, so it needs a \"url\"".to_owned()),
            (None, ..) if self.members.contains_key("settings") => {
                Err("it belongs to an extension of Zed, and only Zed can start it".to_owned())
            }
            (None, ..) => Err("it needs a \"command\" or a \"url\"".to_owned()),
        }
    }

    fn kind(&mut self) -> Result<Option<Kind>, String> {
        let (key, kind) = match (self.text("type")?, self.text("transport")?) {
            (Some(kind), _) => ("type", kind),
            (None, Some(kind)) => ("transport", kind),
            (None, None) => return Ok(None),
        };
        let letters: String = kind.chars().filter(char::is_ascii_alphabetic).collect();
        match letters.to_ascii_lowercase().as_str() {
            "stdio" => Ok(Some(Kind::Stdio)),
            "http" | "streamablehttp" => Ok(Some(Kind::Http)),
            "sse" => Ok(Some(Kind::Sse)),
            _ => Err(format!("its {key:?} must be \"stdio\", \"http\" or \"sse\"")),
        }
    }

    fn command(&mut self, into: &mut Description) -> Result<(), String> {
        let program = self.text("command")?.unwrap_or_default();
        if program.trim().is_empty() {
            return Err("its \"command\" is empty; enter a program".to_owned());
        }
        into.program = Some(program);
        into.args = self.texts("args")?;
        into.cwd = self.text("cwd")?;
        into.env_file = self.text("envFile")?;
        into.env = self.map("env")?;
        Ok(())
    }

    fn text(&mut self, key: &str) -> Result<Option<String>, String> {
        match self.members.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("its {key:?} must be a string")),
        }
    }

    fn flag(&mut self, key: &str) -> Result<Option<bool>, String> {
        match self.members.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(format!("its {key:?} must be true or false")),
        }
    }

    fn texts(&mut self, key: &str) -> Result<Vec<String>, String> {
        let wrong = || format!("its {key:?} must be a list of strings");
        match self.members.remove(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => items.iter().map(|item| scalar(item).ok_or_else(wrong)).collect(),
            Some(_) => Err(wrong()),
        }
    }

    /// A map from names to texts. A member that is null is one that is not there.
    fn map(&mut self, key: &str) -> Result<BTreeMap<String, String>, String> {
        let wrong = || format!("its {key:?} must map names to strings");
        match self.members.remove(key) {
            None | Some(Value::Null) => Ok(BTreeMap::new()),
            Some(Value::Object(members)) => members
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| Ok((name, scalar(&value).ok_or_else(wrong)?)))
                .collect(),
            Some(_) => Err(wrong()),
        }
    }

    /// A time in milliseconds. One that makes no sense is nobody's, and is noted.
    fn time(&mut self, key: &str) -> Option<Duration> {
        let time =
            self.members.get(key)?.as_f64().filter(|ms| *ms >= 1.0 && *ms <= LONGEST.as_millis() as f64)?;
        self.members.remove(key);
        // Whole milliseconds, so that it can be written as people would.
        Some(Duration::from_millis(time.round() as u64))
    }

    /// A sentence about everything that nobody took, in alphabetical order.
    fn notes(&self, has_url: bool) -> Vec<String> {
        let mut keys: Vec<&str> = self.members.keys().map(String::as_str).collect();
        keys.sort_unstable();
        let note = |key: &str| match key {
            "dev" => "\"dev\" is ignored: it is for developing the server in VS Code".to_owned(),
            "env" | "envFile" | "args" | "cwd" | "command" => {
                format!("{key:?} is ignored: the server has a URL, so no program is started")
            }
            "url" | "serverUrl" | "httpUrl" if has_url => {
                format!("{key:?} is ignored: the server has another URL")
            }
            "headers" | "url" | "serverUrl" | "httpUrl" => {
                format!("{key:?} is ignored: the server is a program")
            }
            "timeoutMs" => "\"timeout\" is ignored: it is not a sensible time".to_owned(),
            "startTimeoutMs" => "its start timeout is ignored: it is not a sensible time".to_owned(),
            _ => format!("{key:?} is ignored"),
        };
        keys.into_iter().map(note).collect()
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
