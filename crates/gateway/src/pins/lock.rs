//! [`Lock`]: the file that pins are kept in, made for version control: sorted, one line for each thing that can change.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use bytestring::ByteString;
use tidegate_protocol::{Json, Limits, Object};

use super::canonical::pretty;
use super::pin::Pin;
use super::store;

/// The form of the file that is written.
const VERSION: &str = "1";
/// Most that is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
const LIMITS: Limits = Limits { max_depth: 127, max_bytes: MAX_BYTES as usize };

/// Tools as they were approved, by server and by the server's own names for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lock {
    servers: BTreeMap<String, BTreeMap<String, Pin>>,
}

/// Why a lock file cannot be used.
#[derive(Debug, Clone)]
pub struct LockError {
    file: PathBuf,
    line: Option<usize>,
    what: String,
}

impl Lock {
    /// Reads a lock file. One that does not exist holds nothing.
    pub fn load(path: &Path) -> Result<Lock, LockError> {
        let cannot = |what: String| LockError { file: path.to_owned(), line: None, what };
        match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Lock::default()),
            _ => {}
        }
        let text = tidegate_client::read_regular_text(path, MAX_BYTES)
            .map_err(|error| cannot(format!("cannot be read: {error}")))?;
        Lock::parse(text, path)
    }

    /// Changes a lock file: reads what it holds now, lets `change` change it, and puts it in place as a whole. Writers in
    /// all processes wait for each other, so that nothing is lost.
    pub fn update(path: &Path, change: impl FnOnce(&mut Lock)) -> Result<(), LockError> {
        let cannot = |error: std::io::Error| LockError {
            file: path.to_owned(),
            line: None,
            what: format!("cannot be written: {error}"),
        };
        let turn = store::Turn::wait(path).map_err(cannot)?;
        let before = Lock::load(path)?;
        let mut lock = before.clone();
        change(&mut lock);
        if lock == before {
            return Ok(());
        }
        turn.write(&lock.to_text()).map_err(cannot)
    }

    /// Reads the text of a lock file; `file` is what errors name.
    pub fn parse(text: impl Into<ByteString>, file: &Path) -> Result<Lock, LockError> {
        let reader = Reader { text: text.into(), file };
        let top = reader.split(&reader.text)?;
        match top.get("version") {
            Some(VERSION) => {}
            Some(other) => {
                let what =
                    format!("version {other} of the file is not known here: a newer tidegate wrote it");
                return Err(reader.error(top.get("version"), what));
            }
            None => return Err(reader.error(Some(top.as_str()), "\"version\" is missing".to_owned())),
        }
        let mut lock = Lock::default();
        let servers = match top.json("servers") {
            Some(servers) => reader.object(&servers)?,
            None => return Err(reader.error(Some(top.as_str()), "\"servers\" is missing".to_owned())),
        };
        for (server, tools) in members(&servers) {
            for (tool, entry) in members(&reader.object(&tools)?) {
                let pin = reader.pin(&server, &tool, &entry)?;
                lock.set(&server, &tool, pin);
            }
        }
        Ok(lock)
    }

    /// The pin of a tool.
    pub fn get(&self, server: &str, tool: &str) -> Option<&Pin> {
        self.servers.get(server)?.get(tool)
    }

    /// Pins a tool.
    pub fn set(&mut self, server: &str, tool: &str, pin: Pin) {
        self.servers.entry(server.to_owned()).or_default().insert(tool.to_owned(), pin);
    }

    /// Forgets a tool.
    pub fn remove(&mut self, server: &str, tool: &str) {
        if let Some(tools) = self.servers.get_mut(server) {
            tools.remove(tool);
            if tools.is_empty() {
                self.servers.remove(server);
            }
        }
    }

    /// The pinned tools of a server.
    pub fn tools(&self, server: &str) -> impl Iterator<Item = (&str, &Pin)> {
        self.servers.get(server).into_iter().flatten().map(|(name, pin)| (name.as_str(), pin))
    }

    /// The servers of which something is pinned.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// What is written to the file.
    pub fn to_text(&self) -> String {
        let quoted = |text: &str| Json::string(text);
        let mut out = format!("{{\n  \"version\": {VERSION},\n  \"servers\": {{");
        for (place, (server, tools)) in self.servers.iter().enumerate() {
            out.push_str(if place > 0 { ",\n    " } else { "\n    " });
            out.push_str(&format!("{}: {{", quoted(server)));
            for (place, (tool, pin)) in tools.iter().enumerate() {
                out.push_str(if place > 0 { ",\n      " } else { "\n      " });
                out.push_str(&format!(
                    "{}: {{\n        \"sha256\": \"{}\",\n        \"definition\": {}\n      }}",
                    quoted(tool),
                    pin.digest(),
                    pretty(pin.definition().as_str(), 8)
                ));
            }
            out.push_str("\n    }");
        }
        out.push_str(if self.servers.is_empty() { "}\n}\n" } else { "\n  }\n}\n" });
        out
    }
}

/// Members with values that share the buffer.
fn members(object: &Object) -> impl Iterator<Item = (String, Json)> {
    let each = object.members().enumerate();
    each.filter_map(|(index, member)| Some((member.name.into_owned(), object.json_at(index)?)))
}

/// A text that is being read, to say where something is wrong.
struct Reader<'a> {
    text: ByteString,
    file: &'a Path,
}

impl Reader<'_> {
    /// An object in the text, without keys that come twice: after a merge both are there, and neither is right.
    fn object(&self, json: &Json) -> Result<Object, LockError> {
        self.split(json.text())
    }

    fn split(&self, part: &ByteString) -> Result<Object, LockError> {
        Object::parse(part.clone(), &LIMITS).map_err(|fault| {
            let line = self.line(self.offset(part) + fault.at);
            LockError { file: self.file.to_owned(), line: Some(line), what: fault.to_string() }
        })
    }

    fn pin(&self, server: &str, tool: &str, entry: &Json) -> Result<Pin, LockError> {
        let object = self.object(entry)?;
        let (Some(digest), Some(definition)) = (object.str("sha256"), object.json("definition")) else {
            let what = format!("{server}/{tool} must have \"sha256\" and \"definition\"");
            return Err(self.error(Some(entry.as_str()), what));
        };
        self.object(&definition)?;
        let pin = Pin::of(&definition);
        if *digest != *pin.digest() {
            let what = format!(
                "the digest of {server}/{tool} is not that of the definition beside it: remove the entry and run \
                 tidegate pin {server}/{tool}"
            );
            return Err(self.error(object.get("sha256"), what));
        }
        Ok(pin)
    }

    fn error(&self, at: Option<&str>, what: String) -> LockError {
        let line = at.map(|part| self.line(self.offset(part)));
        LockError { file: self.file.to_owned(), line, what }
    }

    /// Where a part of the text begins.
    fn offset(&self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }

    fn line(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }
}

impl LockError {
    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The line, counted from 1, where it is known.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for LockError {
    /// `tidegate.lock:12: …`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        match self.line {
            Some(line) => write!(f, ":{line}: {}", self.what),
            None => write!(f, ": {}", self.what),
        }
    }
}

impl std::error::Error for LockError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> Lock {
        let mut lock = Lock::default();
        for (server, tool) in [("b", "z"), ("b", "a.\"x\""), ("a", "t")] {
            let definition =
                format!(r#"{{"inputSchema":{{"type": "object"}},"name":{},"x":1}}"#, Json::string(tool));
            lock.set(server, tool, Pin::of(&Json::trusted(definition)));
        }
        lock
    }

    fn parse(text: &str) -> Result<Lock, String> {
        Lock::parse(text.to_owned(), Path::new("tidegate.lock")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_file_is_sorted_and_reads_back() {
        let text = lock().to_text();
        assert_eq!(parse(&text).unwrap(), lock());
        let place = |what: &str| text.find(what).unwrap();
        assert!(place("\"a\": {") < place("\"b\": {") && place("a.\\\"x") < place("\"z\": {"), "{text}");
        let digest = lock().get("a", "t").unwrap().digest().to_owned();
        let want = format!(
            "    \"a\": {{\n      \"t\": {{\n        \"sha256\": \"{digest}\",\n        \"definition\": {{\n          \
             \"inputSchema\": {{\n            \"type\": \"object\"\n          }},\n          \"name\": \"t\"\n        \
             }}\n      }}\n    }},"
        );
        assert!(text.contains(&want), "{text}");
        assert_eq!(parse(&Lock::default().to_text()).unwrap(), Lock::default());
    }

    #[test]
    fn what_is_wrong_is_named_by_file_and_line() {
        let good = lock().to_text();
        for (text, want) in [
            (
                good.replace("\"version\": 1", "\"version\": 2"),
                "tidegate.lock:2: version 2 of the file is not known",
            ),
            (good.replace("  \"version\": 1,\n", ""), "tidegate.lock:1: \"version\" is missing"),
            (good.replacen("    \"a\": {", "<<<<<<< ours\n    \"a\": {", 1), "tidegate.lock:4: "),
            (
                good.replacen("\"name\": \"t\"", "\"name\": \"u\"", 1),
                "tidegate.lock:6: the digest of a/t is not that",
            ),
            (good.replacen("\"sha256\"", "\"sha\"", 1), "tidegate.lock:5: a/t must have \"sha256\""),
            (good.replacen("\"b\": {", "\"a\": {", 1), "tidegate.lock:15: duplicate key \"a\""),
            (String::new(), "tidegate.lock:1: "),
            ("{\"version\": 1, \"servers\": {\n\"a\": []}}".to_owned(), "tidegate.lock:2: "),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.starts_with(want), "{want}: {error}\n{text}");
        }
    }
}
