//! Rounds: a call that asks something is made again with the answers, until it is done.

use futures_util::future::{BoxFuture, try_join_all};
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Json, Limits, Object, Params, Symbol};
use tidegate_service::{Call, InputRequired, Reply};

use crate::handlers::Handlers;
use crate::peer::needed;

/// Makes a call until it asks nothing any more; `handlers` answer in between.
pub(crate) async fn until_done(
    mut call: Call,
    handlers: &Handlers,
    max: usize,
    once: impl for<'a> Fn(&'a Call) -> BoxFuture<'a, Result<Reply, Error>>,
) -> Result<Reply, Error> {
    for _ in 0..max {
        match once(&call).await? {
            Reply::InputRequired(input) => call.params = answered(&call, handlers, &input).await?,
            done => return Ok(done),
        }
    }
    Err(too_many(max))
}

/// The error of a call that does not stop asking.
pub(crate) fn too_many(max: usize) -> Error {
    let what = format!("The call asked for input {max} times without coming to an end, and was given up");
    Error::new(Symbol::ToolExecution, what).as_protocol()
}

/// The parameters of the next round.
async fn answered(call: &Call, handlers: &Handlers, input: &InputRequired) -> Result<Params, Error> {
    let declared = &call.context.capabilities;
    let answers = try_join_all(input.questions.iter().map(|question| async move {
        match needed(&question.method, &question.params) {
            Some(capability) if declared.has(capability) => handlers
                .answer(&question.method, question.params.clone())
                .await
                .map(|a| (question.key.clone(), a)),
            Some(capability) => Err(Error::missing_capabilities(&[capability])),
            None => Err(Error::method_not_found(question.method.as_str())),
        }
    }))
    .await?;
    // The state of the round before is not good for the next.
    let mut next = call.params.without(&["requestState", "inputResponses"]);
    if !answers.is_empty() {
        let mut all = ObjectWriter::new();
        for (key, answer) in &answers {
            all.json(key, answer);
        }
        next = Object::of(&next).ok_or_else(Error::internal)?.with("inputResponses", &all.finish());
    }
    if let Some(state) = &input.state {
        next = Object::of(&next).ok_or_else(Error::internal)?.with("requestState", &Json::string(state));
    }
    Params::parse(&next, &Limits { max_depth: 127, max_bytes: usize::MAX }).map_err(|_| Error::internal())
}
