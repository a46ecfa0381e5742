//! The revisions of the protocol, and the one table that says what each allows.

use std::fmt;
use std::str::FromStr;

/// Makes the revisions of one table: what each is called, and which era it belongs to. There is no way to add one without
/// saying both.
macro_rules! revisions {
    ($($(#[$doc:meta])* $revision:ident = $name:literal, $era:ident;)+) => {
        /// A published revision of the Model Context Protocol. Later revisions compare greater.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Revision {
            $($(#[$doc])* $revision,)+
        }

        impl Revision {
            /// All revisions, oldest first.
            pub const ALL: [Revision; [$($name),+].len()] = [$(Revision::$revision),+];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Revision::$revision => $name,)+
                }
            }

            /// The name on the wire as JSON, in quotes.
            pub const fn as_json(self) -> &'static str {
                match self {
                    $(Revision::$revision => concat!("\"", $name, "\""),)+
                }
            }

            /// Which era the revision belongs to.
            pub const fn era(self) -> Era {
                match self {
                    $(Revision::$revision => Era::$era,)+
                }
            }
        }
    };
}

// Oldest first.
revisions! {
    /// 2024-11-05: stdio and HTTP+SSE.
    V2024_11_05 = "2024-11-05", Legacy;
    /// 2025-03-26: Streamable HTTP, audio, tool annotations, batches.
    V2025_03_26 = "2025-03-26", Legacy;
    /// 2025-06-18: structured content, resource links, elicitation, titles.
    V2025_06_18 = "2025-06-18", Legacy;
    /// 2025-11-25: icons, tasks, URL elicitation, sampling with tools.
    V2025_11_25 = "2025-11-25", Legacy;
    /// 2026-07-28: no handshake, no session; every request stands alone.
    V2026_07_28 = "2026-07-28", Modern;
}

/// The two shapes of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// Handshake, session, server-to-client requests: 2025-11-25 and earlier.
    Legacy,
    /// Every request stands alone: 2026-07-28 and later.
    Modern,
}

/// Something that only some revisions know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Feature {
    /// Audio content.
    Audio,
    /// Tool annotations (`readOnlyHint` and its kin).
    ToolAnnotations,
    /// `completions` as a server capability.
    CompletionsCapability,
    /// The `message` member of progress notifications.
    ProgressMessage,
    /// JSON-RPC batches.
    Batching,
    /// The Streamable HTTP transport.
    StreamableHttp,
    /// `structuredContent` and `outputSchema`.
    StructuredContent,
    /// `resource_link` content.
    ResourceLinks,
    /// `title` on tools, resources, prompts and implementations.
    Titles,
    /// `_meta` on definitions and content blocks, `lastModified` annotations.
    DefinitionMeta,
    /// The `context` of completion requests.
    CompletionContext,
    /// The `MCP-Protocol-Version` header.
    VersionHeader,
    /// Elicitation in form mode.
    Elicitation,
    /// `icons`, and `description`/`websiteUrl` of implementations.
    Icons,
    /// Tasks in the core protocol.
    CoreTasks,
    /// Elicitation in URL mode, and default values and multi-select enums in forms.
    UrlElicitation,
    /// Tools in sampling requests.
    SamplingTools,
    /// Error responses whose id may be absent.
    OptionalErrorId,
    /// Streams that the server may close for the client to come back to: SEP-1699.
    PolledStreams,
    /// Server-to-client requests, sessions, `ping`, `logging/setLevel`, `resources/subscribe`.
    Sessions,
    /// Version and capabilities in `_meta` of each request.
    StatelessMeta,
    /// `resultType` on results.
    ResultType,
    /// `ttlMs` and `cacheScope` on cacheable results.
    CacheHints,
    /// The `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` headers.
    RoutingHeaders,
    /// `structuredContent` and `outputSchema` of any JSON type.
    AnyStructuredContent,
    /// `extensions` in capabilities.
    Extensions,
}

impl Revision {
    /// All revisions, newest first.
    pub const NEWEST_FIRST: &'static [Revision] = &newest_first();

    /// The revisions without a handshake, newest first.
    pub const MODERN: &'static [Revision] = Self::NEWEST_FIRST.split_at(count(Era::Modern)).0;

    /// The revisions with a handshake, newest first.
    pub const LEGACY: &'static [Revision] = Self::NEWEST_FIRST.split_at(count(Era::Modern)).1;

    /// The newest revision without a handshake: what a server is asked for first, and in what form something is written
    /// for whoever has not said yet what they speak.
    pub const LATEST_MODERN: Revision = Self::MODERN[0];

    /// The newest revision with a handshake, offered to a client that asks for one nobody knows.
    pub const LATEST_LEGACY: Revision = Self::LEGACY[0];

    /// The revision of what never leaves the process: calls of the program itself, and errors that it tells its user.
    pub const INTERNAL: Revision = Self::LATEST_MODERN;

    /// Whether requests of this revision stand alone.
    pub const fn is_modern(self) -> bool {
        matches!(self.era(), Era::Modern)
    }

    /// Whether this revision knows `feature`.
    pub const fn allows(self, feature: Feature) -> bool {
        let (since, until) = feature.range();
        since as usize <= self as usize && self as usize <= until as usize
    }
}

const fn newest_first() -> [Revision; Revision::ALL.len()] {
    let mut all = Revision::ALL;
    let mut i = 0;
    while i < all.len() {
        all[i] = Revision::ALL[all.len() - 1 - i];
        i += 1;
    }
    all
}

const fn count(era: Era) -> usize {
    let (mut found, mut i) = (0, 0);
    while i < Revision::ALL.len() {
        if Revision::ALL[i].era() as usize == era as usize {
            found += 1;
        }
        i += 1;
    }
    found
}

const _: () = {
    let modern = Revision::MODERN;
    let mut i = 0;
    while i < modern.len() {
        assert!(
            modern[i].is_modern(),
            "eras do not mix: every modern revision is later than every legacy one"
        );
        i += 1;
    }
};

/// The newest revision that the table of features was gone through for. A feature does not extend to a later one by itself.
const DECIDED: Revision = Revision::V2026_07_28;

const _: () = assert!(
    DECIDED as usize + 1 == Revision::ALL.len(),
    "a revision was added: write in Feature::range which features it knows, then make it the one that is DECIDED"
);

impl Feature {
    /// The first and the last revision that know the feature: the one table.
    const fn range(self) -> (Revision, Revision) {
        use Revision::*;
        match self {
            Feature::Audio => (V2025_03_26, V2026_07_28),
            Feature::ToolAnnotations => (V2025_03_26, V2026_07_28),
            Feature::CompletionsCapability => (V2025_03_26, V2026_07_28),
            Feature::ProgressMessage => (V2025_03_26, V2026_07_28),
            Feature::StreamableHttp => (V2025_03_26, V2026_07_28),
            Feature::Batching => (V2025_03_26, V2025_03_26),
            Feature::StructuredContent => (V2025_06_18, V2026_07_28),
            Feature::ResourceLinks => (V2025_06_18, V2026_07_28),
            Feature::Titles => (V2025_06_18, V2026_07_28),
            Feature::DefinitionMeta => (V2025_06_18, V2026_07_28),
            Feature::CompletionContext => (V2025_06_18, V2026_07_28),
            Feature::VersionHeader => (V2025_06_18, V2026_07_28),
            Feature::Elicitation => (V2025_06_18, V2026_07_28),
            Feature::Icons => (V2025_11_25, V2026_07_28),
            Feature::CoreTasks => (V2025_11_25, V2025_11_25),
            Feature::UrlElicitation => (V2025_11_25, V2026_07_28),
            Feature::SamplingTools => (V2025_11_25, V2026_07_28),
            Feature::OptionalErrorId => (V2025_11_25, V2026_07_28),
            Feature::PolledStreams => (V2025_11_25, V2025_11_25),
            Feature::Sessions => (V2024_11_05, V2025_11_25),
            Feature::StatelessMeta => (V2026_07_28, V2026_07_28),
            Feature::ResultType => (V2026_07_28, V2026_07_28),
            Feature::CacheHints => (V2026_07_28, V2026_07_28),
            Feature::RoutingHeaders => (V2026_07_28, V2026_07_28),
            Feature::AnyStructuredContent => (V2026_07_28, V2026_07_28),
            Feature::Extensions => (V2026_07_28, V2026_07_28),
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Revision {
    type Err = ();

    fn from_str(text: &str) -> Result<Revision, ()> {
        // Newest first: that is what most peers will speak.
        Revision::NEWEST_FIRST.iter().copied().find(|r| r.as_str() == text).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        use Revision::*;
        assert!(!V2024_11_05.allows(Feature::Audio) && V2025_03_26.allows(Feature::Audio));
        assert_eq!(Revision::ALL.map(|r| r.allows(Feature::Batching)), [false, true, false, false, false]);
        assert_eq!(Revision::ALL.map(|r| r.allows(Feature::CoreTasks)), [false, false, false, true, false]);
        assert_eq!(Revision::ALL.map(|r| r.allows(Feature::Sessions)), [true, true, true, true, false]);
        assert_eq!("2025-06-18".parse(), Ok(V2025_06_18));
        assert_eq!("2025-06-19".parse::<Revision>(), Err(()));
    }

    #[test]
    fn eras() {
        use Revision::*;
        assert_eq!(Revision::MODERN, [V2026_07_28]);
        assert_eq!(Revision::LEGACY, [V2025_11_25, V2025_06_18, V2025_03_26, V2024_11_05]);
        assert!(
            Revision::MODERN.iter().all(|r| r.is_modern()) && !Revision::LEGACY.iter().any(|r| r.is_modern())
        );
        assert!(Revision::ALL.is_sorted() && Revision::NEWEST_FIRST.iter().rev().eq(&Revision::ALL));
        assert_eq!(Revision::LATEST_MODERN.as_json(), "\"2026-07-28\"");
    }
}
