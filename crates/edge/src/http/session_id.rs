//! Ids of legacy sessions. Where there is a key for it they are sealed and say what the handshake has said, so that whoever has
//! the key can open the session anew.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::seal::{Binding, Sealer, digest};
use tidegate_protocol::{ClientCapabilities, Json, Limits, Object, Revision, tasks_extension};
use tidegate_service::{Principal, epoch_ms, random};

use super::settings::Settings;
use crate::legacy::Hello;
use crate::session_store::SessionKey;

/// The longest id that is given out or looked at.
const LONGEST: usize = 1024;
/// How much of the client's name and version goes in, and of capabilities that the flags cannot say.
const LONGEST_NAME: usize = 128;
const LONGEST_VERSION: usize = 64;
const LONGEST_REST: usize = 512;

/// What sessions are sealed with. Keys may change while the process runs: which are in force is asked each time.
#[derive(Clone)]
pub struct SessionSealer(Arc<dyn Fn() -> Arc<Sealer> + Send + Sync>);

impl SessionSealer {
    /// Asks `current` which keys are in force.
    pub fn following(current: impl Fn() -> Arc<Sealer> + Send + Sync + 'static) -> SessionSealer {
        SessionSealer(Arc::new(current))
    }

    /// Apart from whatever else is sealed with the same keys.
    fn scoped(&self) -> Sealer {
        self.0().scoped("HTTP sessions")
    }
}

impl From<Sealer> for SessionSealer {
    fn from(sealer: Sealer) -> SessionSealer {
        let sealer = Arc::new(sealer);
        SessionSealer::following(move || sealer.clone())
    }
}

impl fmt::Debug for SessionSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionSealer(…)")
    }
}

/// Gives out ids and opens them.
pub(super) struct SessionIds {
    sealer: Option<SessionSealer>,
    /// Ids are good for one endpoint: its name, unless it is the default one, and the digest of its path.
    endpoint: Option<Arc<str>>,
    path: [u8; 32],
    lifetime: Duration,
}

impl SessionIds {
    pub(super) fn new(settings: &Settings) -> SessionIds {
        SessionIds {
            sealer: settings.session_sealer.clone(),
            endpoint: settings.edge.endpoint.clone(),
            path: digest([settings.path.as_str()]),
            lifetime: settings.session_lifetime,
        }
    }

    fn binding<'a>(&'a self, principal: &'a Principal) -> Binding<'a> {
        let endpoint = self.endpoint.as_deref().unwrap_or_default();
        Binding { endpoint, ..principal.binding("Mcp-Session-Id", self.path) }
    }

    /// An id for a client that has shaken hands, and the session's key if it can be opened anew.
    pub(super) fn issue(&self, hello: &Hello, principal: &Principal) -> (String, Option<SessionKey>) {
        let Some(sealer) = &self.sealer else { return (random_id(), None) };
        let sealer = sealer.scoped();
        let lifetime = u64::try_from(self.lifetime.as_millis()).unwrap_or(u64::MAX);
        let expires_ms = epoch_ms().saturating_add(lifetime);
        let seal = |content: Vec<u8>| {
            let id = sealer.seal(&content, &self.binding(principal), expires_ms, random())?;
            (id.len() <= LONGEST).then_some(id)
        };
        // What others than the flags say is left out if it is too long.
        match seal(written(hello, true)).or_else(|| seal(written(hello, false))) {
            Some(id) => {
                let key = SessionKey::new(&id, expires_ms);
                (id, Some(key))
            }
            None => (random_id(), None),
        }
    }

    /// What an id says, if it was given out with one of the keys to this principal at this endpoint and has not expired. That is
    /// one decryption for each key that may be the right one, whatever is sent.
    pub(super) fn open(&self, id: &str, principal: &Principal) -> Option<(Hello, SessionKey)> {
        if id.len() > LONGEST {
            return None;
        }
        let sealer = self.sealer.as_ref()?.scoped();
        let (content, expires_ms) = sealer.open_until(id, &self.binding(principal), epoch_ms())?;
        Some((read(&content)?, SessionKey::new(id, expires_ms)))
    }
}

/// 128 random bits, because whoever knows the id has the session.
pub(super) fn random_id() -> String {
    format!("{:032x}", u128::from_le_bytes(random()))
}

/// The flags: each a capability, or a part of one.
const FLAGS: [(&str, Option<&str>); 9] = [
    ("roots", None),
    ("roots", Some("listChanged")),
    ("sampling", None),
    ("sampling", Some("tools")),
    ("sampling", Some("context")),
    ("elicitation", None),
    ("elicitation", Some("form")),
    ("elicitation", Some("url")),
    ("extensions", Some(tasks_extension())),
];

fn flags(capabilities: &ClientCapabilities) -> u16 {
    let Some(all) = Object::of(capabilities.as_json()) else { return 0 };
    let has = |(name, part): (&str, Option<&str>)| {
        let Some(capability) = all.object(name) else { return false };
        part.is_none_or(|part| capability.get(part).is_some_and(|value| value != "false"))
    };
    FLAGS.iter().enumerate().fold(0, |flags, (at, flag)| flags | u16::from(has(*flag)) << at)
}

/// The capabilities that these flags say.
fn declared(flags: u16) -> Json {
    let mut all = ObjectWriter::new();
    for name in ["roots", "sampling", "elicitation", "extensions"] {
        let mut parts = ObjectWriter::new();
        let mut is_declared = false;
        for (_, (_, part)) in
            FLAGS.iter().enumerate().filter(|(at, flag)| flag.0 == name && flags >> at & 1 == 1)
        {
            is_declared = true;
            if let Some(part) = part {
                parts.raw(part, if *part == "listChanged" { "true" } else { "{}" });
            }
        }
        if is_declared {
            all.json(name, &parts.finish());
        }
    }
    all.finish()
}

/// Flags, then revision, name, version and the capabilities that the flags cannot say, each with its length before it.
fn written(hello: &Hello, with_rest: bool) -> Vec<u8> {
    let flags = flags(&hello.capabilities);
    let capabilities = hello.capabilities.as_json();
    let is_said = declared(flags).canonical().as_str() == capabilities.canonical().as_str();
    let rest = if is_said || !with_rest { "" } else { capabilities.as_str() };
    let rest = if rest.len() > LONGEST_REST { "" } else { rest };
    let info = hello.client_info.as_ref().and_then(Object::of);
    let said = |name: &str| info.as_ref().and_then(|info| info.str(name)).unwrap_or_default().into_owned();
    let (name, version) = (said("name"), said("version"));
    let mut out = flags.to_le_bytes().to_vec();
    for text in [hello.revision.as_str(), cut(&name, LONGEST_NAME), cut(&version, LONGEST_VERSION), rest] {
        // None is longer than a few hundred bytes.
        out.extend_from_slice(&(text.len() as u16).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
    }
    out
}

fn read(content: &[u8]) -> Option<Hello> {
    let (flags, mut rest) = content.split_first_chunk()?;
    let mut next = || {
        let (len, after) = rest.split_first_chunk()?;
        let (text, after) = after.split_at_checked(u16::from_le_bytes(*len).into())?;
        rest = after;
        std::str::from_utf8(text).ok()
    };
    let (revision, name, version, capabilities) = (next()?, next()?, next()?, next()?);
    let capabilities = match capabilities {
        "" => declared(u16::from_le_bytes(*flags)),
        text => Json::parse(ByteString::from(text), &Limits::default()).ok()?,
    };
    let mut info = ObjectWriter::new();
    info.str("name", name).str("version", version);
    Some(Hello {
        revision: revision.parse::<Revision>().ok().filter(|revision| !revision.is_modern())?,
        client_info: (!name.is_empty()).then(|| info.finish()),
        capabilities: ClientCapabilities::from_json(capabilities),
    })
}

fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use tidegate_protocol::seal::Key;

    use super::*;

    fn hello(name: &str, capabilities: &str) -> Hello {
        let mut info = ObjectWriter::new();
        info.str("name", name).str("version", "1.2.3").str("title", "T");
        Hello {
            revision: Revision::V2025_06_18,
            client_info: Some(info.finish()),
            capabilities: ClientCapabilities::from_json(Json::trusted(capabilities.to_owned())),
        }
    }

    fn settings(sealer: impl Into<Option<Sealer>>, path: &str) -> Settings {
        let session_sealer = sealer.into().map(Into::into);
        Settings { session_sealer, session_lifetime: Duration::from_secs(60), ..Settings::default() }
            .path(path)
    }

    fn ids(key: &str, path: &str) -> SessionIds {
        SessionIds::new(&settings(Sealer::new(Key::derive(key)), path))
    }

    #[test]
    fn an_id_says_what_the_handshake_said() {
        let ids = ids("k", "/mcp");
        let nobody = Principal::default();
        for (capabilities, size) in [
            ("{}", 50..120),
            (r#"{"elicitation":{},"roots":{"listChanged":true},"sampling":{}}"#, 50..120),
            (r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}}}"#, 50..120),
            (r#"{"extensions":{"io.modelcontextprotocol/tasks":{}},"roots":{}}"#, 50..120),
            // What only the client knows comes back as it was.
            (
                r#"{"roots":{"listChanged":false},"extensions":{"com.example/ui":{"mimeTypes":["text/html"]}}}"#,
                120..300,
            ),
        ] {
            let (id, key) = ids.issue(&hello("client", capabilities), &nobody);
            assert!(size.contains(&id.len()), "{capabilities}: {} characters", id.len());
            assert!(id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
            let (said, again) = ids.open(&id, &nobody).unwrap();
            assert_eq!(Some(again), key);
            assert_eq!(said.revision, Revision::V2025_06_18);
            assert_eq!(said.client_info.unwrap().as_str(), r#"{"name":"client","version":"1.2.3"}"#);
            assert_eq!(
                said.capabilities.as_json().canonical(),
                Json::trusted(capabilities.to_owned()).canonical()
            );
        }
    }

    #[test]
    fn an_id_is_never_longer_than_it_may_be() {
        let ids = ids("k", "/mcp");
        let noise: String =
            (0..4000u32).map(|n| char::from(b'a' + (n.wrapping_mul(2654435761) >> 27) as u8 % 26)).collect();
        let many = format!(r#"{{"roots":{{}},"experimental":{{"{noise}":{{}}}}}}"#);
        let some = format!(r#"{{"roots":{{}},"experimental":{{"{}":{{}}}}}}"#, &noise[..450]);
        for capabilities in ["{}", &many, &some] {
            for name in [noise.as_str(), &"ü".repeat(4000), ""] {
                let (id, _) = ids.issue(&hello(name, capabilities), &Principal::default());
                assert!(id.len() <= LONGEST, "{}", id.len());
                let (said, _) = ids.open(&id, &Principal::default()).unwrap();
                assert_eq!(flags(&said.capabilities) & 1, flags(&hello("", capabilities).capabilities) & 1);
            }
        }
    }

    #[test]
    fn an_id_is_good_for_one_key_principal_and_endpoint() {
        let ann = Principal::subject("ann").in_tenant("reef").issued_by("https://id.example.com");
        let (id, _) = ids("k", "/mcp").issue(&hello("c", "{}"), &ann);
        assert!(ids("k", "/mcp").open(&id, &ann).is_some());
        assert!(ids("other", "/mcp").open(&id, &ann).is_none());
        assert!(ids("k", "/other").open(&id, &ann).is_none());
        let others = [
            Principal::default(),
            Principal::subject("ann"),
            ann.clone().in_tenant("tide"),
            ann.clone().issued_by("https://other.example.com"),
        ];
        for other in others {
            assert!(ids("k", "/mcp").open(&id, &other).is_none(), "{other:?}");
        }
        let rotated = Sealer::new(Key::derive("new")).accepting(Key::derive("k"));
        let rotated = SessionIds::new(&settings(rotated, "/mcp"));
        assert!(rotated.open(&id, &ann).is_some());
        assert!(SessionIds::new(&settings(None, "/mcp")).open(&id, &ann).is_none());
        let mut named = settings(Sealer::new(Key::derive("k")), "/mcp");
        named.edge.endpoint = Some("research".into());
        assert!(SessionIds::new(&named).open(&id, &ann).is_none());
        for garbage in ["", "A", &"A".repeat(LONGEST), &"A".repeat(LONGEST + 1), &"é".repeat(100), &id[1..]]
        {
            assert!(ids("k", "/mcp").open(garbage, &ann).is_none(), "{garbage}");
        }
    }
}
