//! The revisions of the protocol, and the one table that says what each allows.

use std::fmt;
use std::str::FromStr;

/// A published revision of the Model Context Protocol. Later revisions compare greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05: stdio and HTTP+SSE.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, audio, tool annotations, batches.
    V2025_03_26,
    /// 2025-06-18: structured content, resource links, elicitation, titles.
    V2025_06_18,
    /// 2025-11-25: icons, tasks, URL elicitation, sampling with tools.
    V2025_11_25,
    /// 2026-07-28: no handshake, no session; every request stands alone.
    V2026_07_28,
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
    /// All revisions, oldest first.
    pub const ALL: [Revision; 5] = [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ];

    /// The newest revision.
    pub const LATEST: Revision = Revision::V2026_07_28;

    /// The newest revision with a handshake, offered to a client that asks for one nobody knows.
    pub const LATEST_LEGACY: Revision = Revision::V2025_11_25;

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
            Revision::V2026_07_28 => "2026-07-28",
        }
    }

    /// Which era the revision belongs to.
    pub const fn era(self) -> Era {
        match self {
            Revision::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Whether requests of this revision stand alone.
    pub const fn is_modern(self) -> bool {
        matches!(self.era(), Era::Modern)
    }

    /// Whether this revision knows `feature`.
    pub fn allows(self, feature: Feature) -> bool {
        let (since, until) = feature.range();
        since <= self && self <= until
    }
}

impl Feature {
    /// The first and the last revision that know the feature: the one table.
    const fn range(self) -> (Revision, Revision) {
        use Revision::*;
        const NOW: Revision = Revision::LATEST;
        match self {
            Feature::Audio
            | Feature::ToolAnnotations
            | Feature::CompletionsCapability
            | Feature::ProgressMessage
            | Feature::StreamableHttp => (V2025_03_26, NOW),
            Feature::Batching => (V2025_03_26, V2025_03_26),
            Feature::StructuredContent
            | Feature::ResourceLinks
            | Feature::Titles
            | Feature::DefinitionMeta
            | Feature::CompletionContext
            | Feature::VersionHeader
            | Feature::Elicitation => (V2025_06_18, NOW),
            Feature::Icons | Feature::UrlElicitation | Feature::SamplingTools | Feature::OptionalErrorId => {
                (V2025_11_25, NOW)
            }
            Feature::CoreTasks | Feature::PolledStreams => (V2025_11_25, V2025_11_25),
            Feature::Sessions => (V2024_11_05, V2025_11_25),
            Feature::StatelessMeta
            | Feature::ResultType
            | Feature::CacheHints
            | Feature::RoutingHeaders
            | Feature::AnyStructuredContent
            | Feature::Extensions => (V2026_07_28, NOW),
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
        Revision::ALL.into_iter().rev().find(|r| r.as_str() == text).ok_or(())
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
}
