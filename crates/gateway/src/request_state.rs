//! Request states of servers: what a server gives out with its questions, for the caller to bring back with the answers.
//!
//! A server of 2026-07-28 need not bind it to anybody: all it knows is the gateway. Where callers are authenticated, the gateway binds
//! it to the one who was asked, and to what was asked for; where everybody is one user, it passes as it is.

use tidegate_protocol::json::Edit;
use tidegate_protocol::seal::digest_of;
use tidegate_protocol::{Error, Json, Method, Params, Symbol};
use tidegate_service::{Call, InputRequired};

use crate::link_owners::Recipient;
use crate::router::Router;

/// The parameter, and the member of a result.
const STATE: &str = "requestState";

/// A call whose request state, if it has one, is the server's own again.
pub(crate) fn opened(router: &Router, mut call: Call) -> Result<Call, Error> {
    if call.params.has(STATE) && router.state.load().is_authenticated {
        let sealed = call.params.str(STATE);
        let sealed = sealed.ok_or_else(|| Error::invalid_params("\"requestState\" must be a string"))?;
        let binding = call.context.binding(call.method.as_str(), digest_of(&call.params));
        let state = router.sealer.load().open(&sealed, &binding, 0)?;
        let state = String::from_utf8(state).map_err(|_| Error::internal())?;
        call.params = call.params.with(STATE, &Json::string(&state));
    }
    Ok(call)
}

/// Questions whose request state is good for this caller alone, and for a call of this method with these parameters.
pub(crate) fn sealed(
    router: &Router,
    method: &Method,
    params: &Params,
    whom: &Recipient,
    mut input: InputRequired,
) -> Result<InputRequired, Error> {
    let Some(state) = input.state.as_ref().filter(|_| router.state.load().is_authenticated) else {
        return Ok(input);
    };
    let binding = whom.binding(method.as_str(), digest_of(params));
    let nonce = tidegate_service::random();
    let sealed = router.sealer.load().seal(state.as_bytes(), &binding, u64::MAX, nonce);
    let sealed = sealed.ok_or_else(|| {
        Error::new(Symbol::TooLarge, "The server's request state is too large to be bound to its caller")
    })?;
    if let Some(original) = &input.original {
        let edited = Edit::of(original).and_then(|mut edit| {
            edit.set(STATE, Json::string(&sealed));
            edit.finish()
        });
        input.original = Some(edited.ok_or_else(Error::internal)?);
    }
    input.state = Some(sealed.into());
    Ok(input)
}
