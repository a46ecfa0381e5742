//! Rounds: a call that asks something is made again with the answers, until it is done.

use futures_util::future::{BoxFuture, try_join_all};
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Json, Limits, Object, Params, Symbol};
use tidegate_service::{Call, InputRequired, Reply};

use crate::connection::needed;
use crate::handlers::Handlers;
use crate::settings::ClientSettings;

/// Makes a call until it asks nothing any more; `handlers` answer in between.
pub(crate) async fn until_done(
    mut call: Call,
    handlers: &Handlers,
    settings: &ClientSettings,
    once: impl for<'a> Fn(&'a Call) -> BoxFuture<'a, Result<Reply, Error>>,
) -> Result<Reply, Error> {
    let mut asked = 0;
    for round in 0..settings.max_rounds {
        // The rounds before have done something, even if this one has not.
        let begun = |error: Error| if round == 0 { error } else { error.begun() };
        match once(&call).await.map_err(begun)? {
            Reply::InputRequired(input) => {
                asked += input.questions.len();
                if asked > settings.max_questions {
                    return Err(too_many_questions(settings.max_questions));
                }
                call.params = answered(&call, handlers, &input).await?;
            }
            Reply::Error(error) => return Err(begun(error)),
            done => return Ok(done),
        }
    }
    Err(too_many(settings.max_rounds))
}

/// The error of a call that does not stop asking.
pub(crate) fn too_many(max: usize) -> Error {
    let what = format!("The call was stopped: it asked for input {max} times without finishing");
    Error::new(Symbol::ToolExecution, what).as_protocol()
}

/// The error of a call that asks too much.
pub(crate) fn too_many_questions(max: usize) -> Error {
    let what = format!("The call was stopped: it asked more than {max} questions");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handlers::ElicitAnswer;
    use tidegate_protocol::Method;
    use tidegate_service::{Context, Question};

    fn asks(count: usize) -> InputRequired {
        let questions = (0..count).map(|n| Question {
            key: format!("q{n}").into(),
            method: Method::ElicitCreate,
            params: Json::trusted(r#"{"message":"?","requestedSchema":{"type":"object","properties":{}}}"#),
        });
        InputRequired { questions: questions.collect(), state: None, original: None }
    }

    async fn made(once: impl Fn() -> Result<Reply, Error> + Send + Sync) -> Error {
        let handlers = Handlers::new().on_elicit(false, |_| async { ElicitAnswer::Decline });
        let mut call = Call::new(Method::ToolsCall, Params::empty(), Context::local());
        call.context.capabilities = handlers.capabilities();
        let settings = ClientSettings::default();
        let done = until_done(call, &handlers, &settings, |_| {
            let reply = once();
            Box::pin(async move { reply })
        });
        done.await.expect_err("an error")
    }

    #[tokio::test]
    async fn questions_are_counted_and_not_only_rounds() {
        let rounds = std::sync::atomic::AtomicUsize::new(0);
        let error = made(|| {
            rounds.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(Reply::InputRequired(asks(100)))
        })
        .await;
        assert!(error.message().contains("more than 256 questions"), "{error}");
        assert_eq!(rounds.into_inner(), 3);
        let error = made(|| Ok(Reply::InputRequired(asks(1)))).await;
        assert!(error.message().contains("asked for input 16 times"), "{error}");
    }

    #[tokio::test]
    async fn a_later_round_was_begun_before() {
        let rounds = std::sync::atomic::AtomicUsize::new(0);
        let refused = || Error::new(Symbol::Unavailable, "connection refused").unexecuted();
        assert!(made(|| Err(refused())).await.is_unexecuted());
        for as_reply in [true, false] {
            rounds.store(0, std::sync::atomic::Ordering::Relaxed);
            let error = made(|| match rounds.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                0 => Ok(Reply::InputRequired(asks(1))),
                _ if as_reply => Ok(Reply::Error(refused())),
                _ => Err(refused()),
            });
            assert!(!error.await.is_unexecuted(), "the first round may have done something");
        }
    }
}
