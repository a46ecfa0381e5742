//! The digest of a server: what tells whether anything about it has changed.

use std::fmt::Write;

use sha2::{Digest, Sha256};
use tidegate_client::Target;

use crate::settings::{ServerSettings, Source};

impl ServerSettings {
    /// The same with a digest that fits. To be called after the last change.
    pub fn seal(mut self) -> ServerSettings {
        self.digest = of(&self);
        self
    }
}

fn of(server: &ServerSettings) -> String {
    // Taken apart, so that a field that is added later is not forgotten here.
    let ServerSettings {
        name,
        source,
        prefix,
        tools,
        allow,
        deny,
        options,
        idle,
        builtin,
        shown: _,
        digest: _,
    } = server;
    let mut sum = Sum(Sha256::new());
    sum.add(name);
    sum.source(source);
    sum.add(prefix);
    sum.all(tools.iter().flat_map(|(tool, change)| {
        let text = |text: &Option<String>| format!("{text:?}");
        [tool.clone(), text(&change.name), text(&change.description)]
    }));
    sum.all(allow.iter());
    sum.all(deny.iter());
    // The one part of the options whose order is left to chance.
    let mut options = options.clone();
    let mut times: Vec<_> = std::mem::take(&mut options.tool_timeouts).into_iter().collect();
    times.sort();
    sum.add(format!("{times:?}"));
    sum.add(format!("{options:?}"));
    sum.add(format!("{idle:?}"));
    sum.all(builtin.iter().map(|told| told.identity()));
    hex(&sum.0.finalize())
}

/// A digest over a list of texts, each with its length, so that no two lists look the same.
struct Sum(Sha256);

impl Sum {
    fn add(&mut self, text: impl AsRef<[u8]>) {
        let bytes = text.as_ref();
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn all(&mut self, texts: impl IntoIterator<Item = impl AsRef<[u8]>>) {
        let texts: Vec<_> = texts.into_iter().collect();
        self.0.update((texts.len() as u64).to_le_bytes());
        texts.iter().for_each(|text| self.add(text));
    }

    fn source(&mut self, source: &Source) {
        match source {
            Source::Builtin(name) => self.all(["builtin", name]),
            Source::Target(Target::Command(command)) => {
                self.all(["command", &command.program]);
                self.all(&command.args);
                self.all(command.env.iter().flat_map(|(name, value)| [name, value]));
                self.add(format!("{:?}", command.cwd));
            }
            Source::Target(Target::Url(remote)) => {
                self.all(["url", remote.url.as_str()]);
                self.all(remote.headers.iter().flat_map(|(name, value)| [name, value]));
                self.add(format!("{}", remote.sse));
            }
            Source::Target(other) => self.all(["other", &other.to_string()]),
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use tidegate_policy::Patterns;

    fn server() -> ServerSettings {
        let target = Target::parse("TOKEN=hush npx server --flag").unwrap();
        let mut server = ServerSettings::new("a", Source::Target(target));
        for tool in ["one", "two", "three", "four", "five"] {
            server.options.tool_timeouts.insert(tool.to_owned(), Duration::from_secs(1));
        }
        server
    }

    fn command(server: &mut ServerSettings) -> &mut tidegate_client::Command {
        match &mut server.source {
            Source::Target(Target::Command(command)) => command,
            _ => unreachable!(),
        }
    }

    #[test]
    fn equal_settings_have_equal_digests() {
        let digest = server().seal().digest;
        assert_eq!(digest.len(), 64);
        for _ in 0..20 {
            assert_eq!(server().seal().digest, digest);
        }
    }

    #[test]
    fn whatever_changes_changes_the_digest() {
        let changes: [fn(&mut ServerSettings); 9] = [
            |server| server.name = "b".to_owned(),
            |server| server.prefix = String::new(),
            |server| server.allow = Patterns::new(["x"]).unwrap(),
            |server| server.deny = Patterns::new(["x"]).unwrap(),
            |server| server.idle = None,
            |server| server.options.timeout = Duration::from_secs(1),
            |server| server.options.tool_timeouts.clear(),
            |server| drop(command(server).env.insert("TOKEN".to_owned(), "other".to_owned())),
            |server| drop(server.tools.insert("t".to_owned(), Default::default())),
        ];
        let before = server().seal().digest;
        for (number, change) in changes.iter().enumerate() {
            let mut server = server();
            change(&mut server);
            assert_ne!(server.seal().digest, before, "change {number}");
        }
    }

    #[test]
    fn nothing_shows_secrets() {
        let shown = format!("{:?}", server());
        assert!(!shown.contains("hush") && !shown.contains(&server().digest), "{shown}");
    }
}
