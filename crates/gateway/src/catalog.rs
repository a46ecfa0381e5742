//! [`Catalog`]: everything that one server lists, read to the end of its pages.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytestring::ByteString;
use serde_json::Value;
use tidegate_client::ServerInfo;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Json, Limits, Object, Params, Symbol};
use tidegate_service::budget::{Budget, Hold, MAX_LISTS};
use tidegate_service::schema::portable;
use tidegate_service::{Call, Context, Door, Reply};

use crate::caller_resources;
use crate::kind::Kind;

/// Most pages of one list.
const MAX_PAGES: usize = 1000;
/// Most entries of one list.
const MAX_ENTRIES: usize = 50_000;

/// What one server lists. A part that is missing is not known yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalog {
    pub(crate) parts: [Option<Part>; Kind::COUNT],
    /// What the server says about itself, if that is known.
    pub(crate) about: Option<About>,
}

/// What a server says about itself that goes into what the gateway says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct About {
    /// Its capabilities as they came.
    pub(crate) capabilities: Json,
    /// What it says a model should know.
    pub(crate) instructions: Option<String>,
}

impl About {
    pub(crate) fn of(facts: &ServerInfo) -> About {
        About { capabilities: facts.capabilities.clone(), instructions: facts.instructions.clone() }
    }
}

impl Catalog {
    pub(crate) fn part(&self, kind: Kind) -> Option<&Part> {
        self.parts[kind.index()].as_ref()
    }
}

/// One list of one server.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) entries: Vec<Entry>,
    /// For how long the server says the list is good, counted from when it was read. A legacy server says nothing,
    /// and that is no time at all.
    pub(crate) ttl: Duration,
    /// Whether the server says that the list is for one caller only.
    pub(crate) private: bool,
    /// When it was read; `None` for a list that was kept from an earlier run.
    pub(crate) read: Option<Instant>,
    /// What it takes, set aside: entry by entry, and once more in the list that is ready to be sent.
    pub(crate) hold: Option<Arc<Hold>>,
}

impl Part {
    /// A list that is known to be empty, for as long as nobody says otherwise.
    pub(crate) fn none() -> Part {
        Part {
            entries: Vec::new(),
            ttl: Duration::MAX,
            private: false,
            read: Some(Instant::now()),
            hold: None,
        }
    }

    /// A list that was kept from an earlier run.
    pub(crate) fn kept(entries: Vec<Entry>) -> Part {
        let mut part = Part { entries, ttl: Duration::ZERO, private: true, read: None, hold: None };
        part.count();
        part
    }

    /// How many bytes its entries have.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.iter().map(Entry::bytes).sum()
    }

    fn count(&mut self) {
        self.hold = Some(Arc::new(Budget::of_process().hold_anyway(2 * self.bytes())));
    }

    /// How much of its time is left.
    pub(crate) fn good_for(&self, now: Instant) -> Duration {
        match self.read {
            Some(read) => self.ttl.saturating_sub(now.saturating_duration_since(read)),
            None => Duration::ZERO,
        }
    }

    /// Whether both list the same.
    pub(crate) fn same_as(&self, other: &Part) -> bool {
        self.private == other.private
            && self.entries.len() == other.entries.len()
            && self.entries.iter().zip(&other.entries).all(|(a, b)| a.definition == b.definition)
    }
}

/// One entry of a list: by which name or address its server knows it, and its definition as it came.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: ByteString,
    pub(crate) definition: Json,
    /// The input schema of a tool as every client understands it, once somebody wants that and if it is another.
    portable: OnceLock<Option<Json>>,
}

impl Entry {
    /// Reads a definition; `None` if it has nothing to be called by.
    pub(crate) fn read(kind: Kind, definition: &Json) -> Option<Entry> {
        // A buffer of its own: an entry outlives the page it came on.
        let definition = Json::trusted(ByteString::from(definition.as_str()));
        let key = Object::of(&definition)?.text(kind.key())?;
        Some(Entry { key, definition, portable: OnceLock::new() })
    }

    /// The input schema of a tool as every client understands it, if it is another than the server's own.
    pub(crate) fn portable_input(&self) -> Option<&Json> {
        let written = self.portable.get_or_init(|| {
            let own: Value = Object::of(&self.definition)?.json("inputSchema")?.to().ok()?;
            let portable = portable(&own);
            (portable != own).then(|| Json::from(portable))
        });
        written.as_ref()
    }

    fn bytes(&self) -> usize {
        size_of::<Entry>() + self.definition.len()
    }
}

/// Reads all pages of a list; with `shared_only`, without what the server has for single callers. `room` is how many
/// bytes the server's lists may still take.
pub(crate) async fn read(
    door: &impl Door,
    kind: Kind,
    context: &Context,
    shared_only: bool,
    room: usize,
) -> Result<Part, Error> {
    let mut part = Part::none();
    let mut bytes = 0;
    let (mut cursor, mut seen) = (None::<String>, HashSet::new());
    let broken = |what: &str| {
        Err(Error::new(Symbol::Internal, format!("The server's answer to {} {what}", kind.method())))
    };
    for _ in 0..MAX_PAGES {
        let params = match shared_only {
            true => caller_resources::params(cursor.as_deref(), false)?,
            false => page_params(cursor.as_deref())?,
        };
        let call = Call::new(kind.method(), params, context.clone());
        let page = match door.answer(call).await {
            Ok(Reply::Complete(page)) => page,
            Ok(Reply::Error(error)) => return Err(error),
            Ok(_) => return broken("is not a list"),
        };
        let Some(page) = Object::of(&page) else { return broken("is not an object") };
        let Some(entries) = page.json(kind.member()).and_then(|list| list.elements()) else {
            return broken(&format!("has no array {:?}", kind.member()));
        };
        for definition in &entries {
            match Entry::read(kind, definition) {
                Some(entry) => {
                    bytes += entry.bytes();
                    part.entries.push(entry);
                }
                None => tracing::warn!("ignored an entry without {:?} in {}", kind.key(), kind.method()),
            }
        }
        if part.entries.len() > MAX_ENTRIES {
            return broken(&format!("has more than {MAX_ENTRIES} entries"));
        }
        if bytes > room {
            return broken(&format!(
                "is too large: all its lists together may have at most {MAX_LISTS} bytes"
            ));
        }
        let said = page.get("ttlMs").and_then(|ms| ms.parse::<f64>().ok()).unwrap_or(0.0);
        part.ttl = part.ttl.min(Duration::from_millis(said.clamp(0.0, 1e12) as u64));
        part.private |= page.str("cacheScope").is_none_or(|scope| scope != "public");
        cursor = page.str("nextCursor").map(|cursor| cursor.into_owned());
        match &cursor {
            None => {
                part.count();
                return Ok(part);
            }
            Some(next) if !seen.insert(next.clone()) => return broken("repeats a page without end"),
            Some(_) => {}
        }
    }
    broken(&format!("has more than {MAX_PAGES} pages"))
}

fn page_params(cursor: Option<&str>) -> Result<Params, Error> {
    let Some(cursor) = cursor else { return Ok(Params::empty()) };
    let mut w = ObjectWriter::new();
    w.str("cursor", cursor);
    Params::parse(&w.finish(), &Limits::default()).map_err(|_| Error::internal())
}
