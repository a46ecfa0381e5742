//! The `_meta` fields of the protocol.

use bytestring::ByteString;

use crate::capabilities::ClientCapabilities;
use crate::error::{Error, Symbol};
use crate::id::LONGEST_ID;
use crate::json::{Json, Object};
use crate::level::Level;
use crate::revision::Revision;

/// Protocol version of a request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Name and version of the client.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Capabilities of the client.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Least severe log message the client wants for this request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Name and version of the server, on results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The subscription a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The task a message belongs to (2025-11-25).
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// Opts a request into progress notifications.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The span that a request belongs to: W3C Trace Context.
pub const TRACEPARENT: &str = "traceparent";
/// The machine form of an error, on results with `isError`.
pub const ERROR: &str = "dev.tidegate/error";
/// The id of the call, on results: the one that a gateway tells what happened by.
pub const CORRELATION: &str = "dev.tidegate/correlationId";
/// The key of a question, on server-to-client requests: `{key, of}`, and `call`, the id of the request that asks, where
/// the session is used for several clients.
pub const INPUT: &str = "dev.tidegate/input";
/// The client behind a request, where a session is used for several: `{clientInfo, clientCapabilities}`.
pub const CALLER: &str = "dev.tidegate/caller";
/// On progress notifications: the message is a piece of the answer's text, not a message about the work.
pub const TEXT: &str = "dev.tidegate/text";
/// Names the tenant of a request, where nobody is authenticated.
pub const TENANT: &str = "dev.tidegate/tenant";
/// Through how many gateways a request has come.
pub const HOPS: &str = "dev.tidegate/hops";

/// How large what a client says of itself may be: its name and version, and its capabilities, each. Both are kept as long
/// as its session, and go with each of its calls.
pub const MAX_DECLARED: usize = 16 * 1024;

/// What the `_meta` of a modern request says.
#[derive(Debug, Clone)]
pub struct Meta {
    /// The protocol version as it stands.
    pub version: ByteString,
    /// Who the client says it is.
    pub client_info: Option<Json>,
    /// What the client says it can do.
    pub capabilities: ClientCapabilities,
    /// Least severe log message wanted, if any is.
    pub log_level: Option<Level>,
    /// The token under which progress is wanted, if any is.
    pub progress_token: Option<Json>,
    /// The caller's W3C trace context.
    pub traceparent: Option<ByteString>,
    /// Through how many gateways the request has come.
    pub hops: u8,
}

impl Meta {
    /// Whether this `_meta` makes its request a modern one.
    pub fn is_modern(meta: Option<&Object>) -> bool {
        meta.is_some_and(|m| m.has(PROTOCOL_VERSION) || m.has(CLIENT_CAPABILITIES))
    }

    /// Reads the fields that every modern request must or may carry.
    pub fn read(meta: Option<&Object>) -> Result<Meta, Error> {
        let missing = |field: &str| {
            Error::new(
                Symbol::MissingMeta,
                format!("Invalid params: _meta[{field:?}] is missing or of a wrong type"),
            )
        };
        let meta = meta.ok_or_else(|| missing(PROTOCOL_VERSION))?;
        let (mut version, mut capabilities) = (None, None);
        let (mut client_info, mut log_level, mut progress_token, mut traceparent) = (None, None, None, None);
        let mut hops = 0;
        // One pass, because every call goes through here.
        for (at, name) in meta.names().enumerate() {
            let value = || meta.json_at(at);
            match &*name {
                PROTOCOL_VERSION => version = meta.text_at(at),
                CLIENT_CAPABILITIES => capabilities = value().filter(Json::is_object),
                CLIENT_INFO => {
                    client_info = Some(value().filter(Json::is_object).ok_or_else(|| missing(CLIENT_INFO))?)
                }
                LOG_LEVEL => log_level = Some(level(meta)?),
                PROGRESS_TOKEN => progress_token = Some(token(value().unwrap_or_else(Json::null))?),
                TRACEPARENT => traceparent = meta.text_at(at),
                HOPS => hops = meta.get(HOPS).map_or(0, number_of_hops),
                _ => {}
            }
        }
        let version = version.ok_or_else(|| missing(PROTOCOL_VERSION))?;
        let capabilities = capabilities.ok_or_else(|| missing(CLIENT_CAPABILITIES))?;
        declared("_meta[\"io.modelcontextprotocol/clientCapabilities\"]", &capabilities)?;
        if let Some(info) = &client_info {
            declared("_meta[\"io.modelcontextprotocol/clientInfo\"]", info)?;
        }
        Ok(Meta {
            version,
            capabilities: ClientCapabilities::from_json(capabilities),
            client_info,
            log_level,
            progress_token,
            traceparent,
            hops,
        })
    }

    /// The revision this `_meta` names, if it is one of `supported`.
    pub fn revision(&self, supported: &[Revision]) -> Result<Revision, Error> {
        match self.version.parse() {
            Ok(revision) if supported.contains(&revision) && revision.is_modern() => Ok(revision),
            // A version that needs a handshake is not an answer to give to somebody who asked for it without one.
            _ => {
                let others: Vec<_> =
                    supported.iter().copied().filter(|r| r.as_str() != &*self.version).collect();
                Err(Error::unsupported_version(&self.version, &others))
            }
        }
    }
}

/// The progress token of a request: any string or integer, 0 included.
pub fn progress_token(meta: Option<&Object>) -> Result<Option<Json>, Error> {
    meta.and_then(|m| m.json(PROGRESS_TOKEN)).map(token).transpose()
}

/// Through how many gateways a request has come.
pub fn hops(meta: Option<&Object>) -> u8 {
    meta.and_then(|m| m.get(HOPS)).map_or(0, number_of_hops)
}

/// A number that is too large is still a number of gateways; anything else says nothing.
fn number_of_hops(raw: &str) -> u8 {
    raw.parse::<f64>().map_or(0, |hops| hops as u8)
}

/// The client behind a request on a session that is used for several: who it is, and what it can do.
pub fn caller(meta: Option<&Object>) -> Result<Option<(Option<Json>, ClientCapabilities)>, Error> {
    let Some(caller) = meta.and_then(|m| m.json(CALLER)) else { return Ok(None) };
    let wrong =
        || Error::invalid_params("_meta[\"dev.tidegate/caller\"] must be an object with objects in it");
    let caller = Object::of(&caller).ok_or_else(wrong)?;
    let object = |name: &str| match caller.json(name) {
        Some(json) if json.is_object() => {
            declared(&format!("_meta[\"dev.tidegate/caller\"].{name}"), &json)?;
            Ok(Some(json))
        }
        None => Ok(None),
        Some(_) => Err(wrong()),
    };
    let capabilities =
        object("clientCapabilities")?.map_or_else(ClientCapabilities::none, ClientCapabilities::from_json);
    Ok(Some((object("clientInfo")?, capabilities)))
}

/// Whether what a client says of itself in `field` is small enough to be kept ([`MAX_DECLARED`]).
pub fn declared(field: &str, value: &Json) -> Result<(), Error> {
    match value.len() {
        0..=MAX_DECLARED => Ok(()),
        length => Err(Error::invalid_params(format_args!(
            "{field} may have at most {MAX_DECLARED} bytes, and this one has {length}"
        ))),
    }
}

fn token(token: Json) -> Result<Json, Error> {
    if token.len() > LONGEST_ID {
        let length = token.len();
        return Err(Error::invalid_params(format_args!(
            "_meta.progressToken may have at most {LONGEST_ID} bytes, and this one has {length}"
        )));
    }
    if token.is_string() || token.is_integer() {
        return Ok(token);
    }
    let what = format_args!("_meta.progressToken must be a string or an integer, not {token}");
    Err(Error::invalid_params(what))
}

fn level(meta: &Object) -> Result<Level, Error> {
    meta.str(LOG_LEVEL).and_then(|name| name.parse().ok()).ok_or_else(|| {
        let raw = meta.get(LOG_LEVEL).unwrap_or_default();
        Error::invalid_params(format_args!("_meta[{LOG_LEVEL:?}] must be a log level, not {raw}"))
    })
}
