//! `call_tool`: the call of another tool, as if it had been called itself.

use std::sync::Arc;

use tidegate_protocol::json::Edit;
use tidegate_protocol::{Error, Json, Limits, Params};
use tidegate_service::{Call, Door, Reply};

use super::definitions::{CALL, SEARCH};
use super::index::Seen;
use super::{arguments, indexed, search, wrong};
use crate::kind::Kind;
use crate::router::Router;

/// How many names are suggested for one that is wrong.
const SUGGESTIONS: usize = 3;

pub(super) async fn call_tool(router: &Arc<Router>, mut call: Call) -> Result<Reply, Error> {
    let inner = arguments(&call.params)?;
    let name = inner.text("name").ok_or_else(|| wrong("\"name\" must be a string: the name of a tool"))?;
    let given = inner.json("arguments").filter(|given| given.as_str() != "null");
    if given.as_ref().is_some_and(|given| !given.is_object()) {
        return Err(wrong("\"arguments\" must be an object: the arguments of the tool"));
    }
    call.params = aimed(&call.params, &name, given)?;
    // The headers are about the arguments of this tool, not of the other.
    call.context.param_headers = None;
    if name == SEARCH {
        return search(router, &call).await;
    }
    match router.known_tool(&call)? {
        Some(_) => {}
        None if name == CALL => return Err(wrong(format_args!("{CALL} cannot call itself"))),
        None => {
            router.look_again(Kind::Tools).await;
            if router.known_tool(&call)?.is_none() {
                // Nothing is called, so that it is refused stands in the record of this call.
                router.permitted_tool(&call)?;
                return Err(no_tool(router, &name, &call).await);
            }
        }
    }
    // Whoever may not call the tool itself may not do so in this way, either: it passes the whole front under its name.
    let Ok(reply) = router.front()?.answer(call).await;
    Ok(reply)
}

/// A name that nobody has, with those that were probably meant.
/// Not every client shows its model more of an error than the sentence, so that has the best of them too.
async fn no_tool(router: &Router, name: &str, call: &Call) -> Error {
    let error = router.unknown(Kind::Tools, &call.params, &call.context);
    let near = match indexed(router).await {
        Ok(state) => {
            let view = router.views.view(&state, &call.context);
            let seen = Seen(view.as_ref().map(|view| &view.callable[..]));
            state.index().search(name, None, SUGGESTIONS, seen).names
        }
        Err(error) => return error,
    };
    let mut sentence = error.message().to_owned();
    if !near.is_empty() {
        let near: Vec<&str> = near.iter().map(|name| &**name).collect();
        sentence.push_str(&format!(". Did you mean {}?", near.join(", ")));
    }
    let stop = if near.is_empty() { "." } else { "" };
    sentence.push_str(&format!("{stop} Find tools by what they do with {SEARCH}"));
    error.with_message(sentence)
}

/// The parameters of the call of another tool. Everything else stays: metadata, answers to questions, the state that
/// comes back with them.
fn aimed(params: &Params, name: &str, arguments: Option<Json>) -> Result<Params, Error> {
    let mut edit = Edit::new(params.object().clone());
    edit.set("name", Json::string(name));
    match arguments {
        Some(arguments) => edit.set("arguments", arguments),
        None => edit.remove("arguments"),
    };
    let params = edit.finish().ok_or_else(Error::internal)?;
    let limits = Limits { max_depth: 127, max_bytes: usize::MAX };
    Params::parse(&params, &limits).map_err(Error::invalid_params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_name_and_arguments_are_replaced() {
        let text = r#"{"name":"call_tool","arguments":{"name":"x","arguments":{"n": 1.0}},"_meta":{"progressToken": 7},"requestState":"s","inputResponses":{}}"#;
        let params = Params::parse(&Json::trusted(text), &Limits::default()).unwrap();
        let with = aimed(&params, "x", Some(Json::trusted(r#"{"n": 1.0}"#))).unwrap();
        assert_eq!(
            with.object().as_str(),
            r#"{"name":"x","arguments":{"n": 1.0},"_meta":{"progressToken": 7},"requestState":"s","inputResponses":{}}"#
        );
        assert!(with.meta().is_some_and(|meta| meta.has("progressToken")));
        let without = aimed(&params, "x", None).unwrap();
        assert!(!without.has("arguments"), "{:?}", without.object());
    }
}
