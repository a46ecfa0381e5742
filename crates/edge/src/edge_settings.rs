//! What both transports can be told.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tidegate_protocol::{Limits, Revision};

/// Which eras an edge speaks. One that speaks a single era answers the other as a server that never heard of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Eras {
    /// All revisions.
    #[default]
    Both,
    /// 2024-11-05 to 2025-11-25.
    Legacy,
    /// 2026-07-28.
    Modern,
}

impl Eras {
    /// Whether legacy clients are served.
    pub fn legacy(self) -> bool {
        self != Eras::Modern
    }

    /// Whether modern clients are served.
    pub fn modern(self) -> bool {
        self != Eras::Legacy
    }

    /// The revisions, newest first.
    pub fn revisions(self) -> &'static [Revision] {
        match self {
            Eras::Both => Revision::NEWEST_FIRST,
            Eras::Legacy => Revision::LEGACY,
            Eras::Modern => Revision::MODERN,
        }
    }
}

impl FromStr for Eras {
    type Err = String;

    fn from_str(text: &str) -> Result<Eras, String> {
        match text {
            "both" => Ok(Eras::Both),
            "legacy" => Ok(Eras::Legacy),
            "modern" => Ok(Eras::Modern),
            other => Err(format!("unknown era {other:?}: use both, legacy or modern")),
        }
    }
}

/// Settings that stdio and HTTP share.
#[derive(Debug, Clone)]
pub struct EdgeSettings {
    /// Which eras are spoken. Default both.
    pub eras: Eras,
    /// How large and how deep one message may be. Default 4 MiB, 100 levels.
    pub limits: Limits,
    /// How long a question to a legacy client may stay open. Default 10 minutes.
    pub answer_within: Duration,
    /// How often one call may ask before it is stopped. Default 32.
    pub max_rounds: usize,
    /// How many questions one call may ask a legacy client, all rounds together. Default 256.
    pub max_questions: usize,
    /// How many requests of one legacy session or one stdio connection may be in flight. Default 1024.
    pub max_in_flight: usize,
    /// Serve requests before the handshake on stdio. Default off; some bare clients need it.
    pub lenient_init: bool,
    /// Whether the service behind passes on what other servers say, as a gateway does: then each modern call has a place
    /// for notifications, not only those that asked for progress or log messages. Default off.
    pub relays: bool,
    /// Whether callers get the id of their call with every answer, and not only with failures: in `_meta` of results, and over HTTP
    /// in the header `Tidegate-Correlation-Id`. Default off; a gateway remembers what happened under it.
    pub call_ids: bool,
    /// The endpoint that every call names, as in `Context::endpoint`. Default the one without a name.
    pub endpoint: Option<Arc<str>>,
}

impl Default for EdgeSettings {
    fn default() -> Self {
        EdgeSettings {
            eras: Eras::Both,
            limits: Limits::default(),
            answer_within: Duration::from_secs(600),
            max_rounds: 32,
            max_questions: 256,
            max_in_flight: 1024,
            lenient_init: false,
            relays: false,
            call_ids: false,
            endpoint: None,
        }
    }
}
