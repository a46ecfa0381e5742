//! The `initialize` request: which revision is spoken, and what each side can do.

use std::convert::Infallible;

use bytestring::ByteString;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{
    ClientCapabilities, Error, Json, Method, Object, Params, Request, Revision, lower, meta,
};
use tidegate_service::{Call, Connected, Context, CorrelationId, Door, Principal, Reply};

use super::client_session::{ClientSession, Offers};
use crate::edge_settings::EdgeSettings;
use crate::session_store::SessionMemory;

/// Answers `initialize`: the client that the client has become, and the result to send it.
pub(crate) async fn handshake<D: Door>(
    door: &D,
    request: &Request,
    principal: Principal,
    edge: &EdgeSettings,
) -> Result<(ClientSession, Json), Error> {
    let hello = Hello::read(&request.params)?;
    let connected = Connected::new();
    let discovered = discover(door, &hello, &principal, &connected, edge).await?;
    let capabilities = capabilities(&discovered);
    let server_info = discovered.object("_meta").and_then(|m| m.json(meta::SERVER_INFO));
    let mut w = ObjectWriter::with_capacity(512);
    w.str("protocolVersion", hello.revision.as_str()).json("capabilities", &capabilities);
    w.json(
        "serverInfo",
        &server_info.unwrap_or_else(|| Json::trusted(r#"{"name":"tidegate","version":"0"}"#)),
    );
    if let Some(instructions) = discovered.json("instructions") {
        w.json("instructions", &instructions);
    }
    let result = lower::result(&Method::Initialize, hello.revision, w.finish());
    let offers = Offers::read(&capabilities);
    let client = ClientSession::new(hello, principal, Some(connected), offers, edge);
    Ok((client, result))
}

/// A client that has shaken hands with an earlier process, without the handshake. What is offered may have changed since, so
/// the service is asked again.
pub(crate) async fn revive<D: Door>(
    door: &D,
    hello: Hello,
    principal: Principal,
    edge: &EdgeSettings,
    memory: SessionMemory,
) -> Result<ClientSession, Error> {
    let connected = Connected::new();
    let discovered = discover(door, &hello, &principal, &connected, edge).await?;
    let offers = Offers::read(&capabilities(&discovered));
    Ok(ClientSession::new(hello, principal, Some(connected), offers, edge).going_on(memory))
}

/// What the service offers. A legacy client never asks again, so it is asked in the client's own revision.
async fn discover<D: Door>(
    door: &D,
    hello: &Hello,
    principal: &Principal,
    connected: &Connected,
    edge: &EdgeSettings,
) -> Result<Object, Error> {
    let mut context = Context::new(CorrelationId::new(), hello.revision);
    context.client_info = hello.client_info.clone();
    context.capabilities = hello.capabilities.clone();
    context.principal = principal.clone();
    context.endpoint = edge.endpoint.clone();
    context.caller = Some(connected.caller());
    let reply: Result<Reply, Infallible> =
        door.answer(Call::new(Method::Discover, Params::empty(), context)).await;
    match reply {
        Ok(Reply::Complete(json)) => Object::of(&json).ok_or_else(Error::internal),
        Ok(Reply::Error(error)) => Err(error),
        Ok(_) => Err(Error::internal()),
    }
}

fn capabilities(discovered: &Object) -> Json {
    discovered.json("capabilities").unwrap_or_else(Json::empty_object)
}

/// What the client says in `initialize`.
pub(crate) struct Hello {
    pub(crate) revision: Revision,
    pub(crate) client_info: Option<Json>,
    pub(crate) capabilities: ClientCapabilities,
}

impl Hello {
    fn read(params: &Params) -> Result<Hello, Error> {
        let wanted = params
            .str("protocolVersion")
            .ok_or_else(|| Error::invalid_params("initialize needs a string \"protocolVersion\""))?;
        let object = |name: &str| match params.json(name) {
            Some(json) if json.is_object() => {
                meta::declared(&format!("\"{name}\""), &json)?;
                Ok(Some(detached(&json)))
            }
            None => Ok(None),
            Some(_) => Err(Error::invalid_params(format_args!("\"{name}\" must be an object"))),
        };
        Ok(Hello {
            revision: negotiate(&wanted),
            client_info: object("clientInfo")?,
            capabilities: object("capabilities")?
                .map_or_else(ClientCapabilities::none, ClientCapabilities::from_json),
        })
    }
}

/// The client's revision if it is one with a handshake, else the newest that is (2025-11-25 basic/lifecycle).
fn negotiate(wanted: &str) -> Revision {
    match wanted.parse::<Revision>() {
        Ok(revision) if !revision.is_modern() => revision,
        _ => Revision::LATEST_LEGACY,
    }
}

/// A copy with a buffer of its own, so that an idle session does not keep the message it came in.
fn detached(json: &Json) -> Json {
    Json::trusted(ByteString::from(json.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negotiation() {
        for revision in Revision::LEGACY {
            assert_eq!(negotiate(revision.as_str()), *revision);
        }
        for other in ["2026-07-28", "1999-01-01", ""] {
            assert_eq!(negotiate(other), Revision::V2025_11_25);
        }
    }
}
