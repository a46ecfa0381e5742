//! The handshake of legacy servers: what is said and what must come back.

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{ClientCapabilities, Error, Json, Object, Revision, Symbol};

use crate::server_info::ServerInfo;
use tidegate_service::events::{self, Event, ServerConnected};

/// The parameters of `initialize`.
pub(crate) fn hello(offer: Revision, capabilities: &ClientCapabilities, info: &Json) -> Json {
    let mut w = ObjectWriter::with_capacity(256);
    w.str("protocolVersion", offer.as_str())
        .json("capabilities", capabilities.as_json())
        .json("clientInfo", info);
    w.finish()
}

/// Reads the result of `initialize`, or says why nothing can be done with it.
pub(crate) fn welcome(
    server: &str,
    offered: Revision,
    result: &Json,
    transport: &'static str,
) -> Result<ServerInfo, Error> {
    let broken = |what: &str| {
        let what = format!("{server} answered initialize with {what}");
        Error::new(Symbol::Unavailable, what).unexecuted()
    };
    let result = Object::of(result).ok_or_else(|| broken("something that is not an object"))?;
    let version = result.str("protocolVersion").ok_or_else(|| broken("no \"protocolVersion\""))?;
    if !result.json("capabilities").is_some_and(|c| c.is_object()) {
        return Err(broken("no \"capabilities\""));
    }
    let revision = version.parse::<Revision>().ok().filter(|r| !r.is_modern()).ok_or_else(|| {
        let known: Vec<_> = Revision::ALL.iter().filter(|r| !r.is_modern()).map(|r| r.as_str()).collect();
        let what = format!(
            "{server} chose protocol version {version:?}, which this client does not support: it supports {}",
            known.join(", ")
        );
        Error::new(Symbol::UnsupportedVersion, what).unexecuted()
    })?;
    if revision != offered {
        tracing::warn!(
            target: crate::CONNECTED,
            server, %offered, spoken = %revision,
            "the server chose another protocol version than the one offered"
        );
    }
    let server_info = ServerInfo::initialized(&result, revision, transport);
    let (name, version) = (server_info.name().unwrap_or_default(), server_info.version().unwrap_or_default());
    let connected = ServerConnected { server, revision, name: &name, version: &version };
    events::emit(&Event::ServerConnected(connected));
    Ok(server_info)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str) -> Result<Revision, Symbol> {
        welcome("s", Revision::V2025_11_25, &Json::trusted(text), "stdio")
            .map(|server_info| server_info.revision)
            .map_err(|e| e.symbol())
    }

    #[test]
    fn any_legacy_revision_is_spoken_and_nothing_else() {
        assert_eq!(read(r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#), Ok(Revision::V2025_11_25));
        assert_eq!(read(r#"{"protocolVersion":"2024-11-05","capabilities":{}}"#), Ok(Revision::V2024_11_05));
        for bad in [
            r#"{"protocolVersion":"2026-07-28","capabilities":{}}"#,
            r#"{"protocolVersion":"1999-01-01","capabilities":{}}"#,
        ] {
            assert_eq!(read(bad), Err(Symbol::UnsupportedVersion), "{bad}");
        }
        for bad in
            ["{}", "[]", r#"{"protocolVersion":"2025-11-25"}"#, r#"{"protocolVersion":1,"capabilities":{}}"#]
        {
            assert_eq!(read(bad), Err(Symbol::Unavailable), "{bad}");
        }
    }

    #[test]
    fn what_is_said() {
        let info = Json::trusted(r#"{"name":"c","version":"1"}"#);
        assert_eq!(
            hello(Revision::V2025_06_18, &ClientCapabilities::none(), &info).as_str(),
            r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#
        );
    }
}
