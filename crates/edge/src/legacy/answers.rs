//! Questions to a legacy client and its answers.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::try_join_all;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{
    Capability, ClientCapabilities, Error, Json, Method, Object, Params, Symbol, lower, meta,
};
use tidegate_service::{Door, Question};

use super::client_session::ClientSession;
use super::drive::{OWN, Run};
use crate::wire;

/// One answered question: its key and the client's result.
pub(super) type Answer = (String, Json);

/// Asks everything at once and waits for all answers. With `task`, the questions name the task they belong to.
pub(super) async fn ask_all<D: Door>(
    run: &Run<'_, D>,
    questions: &[Question],
    task: Option<&str>,
) -> Result<Vec<Answer>, Error> {
    if !run.sink.reaches_client() && !questions.is_empty() {
        return Err(cannot_be_asked(questions));
    }
    run.asked.more_questions(questions.len(), run.edge.max_questions)?;
    // All are lowered before any is sent: a call that cannot be finished must not bother the user first.
    let lowered = questions
        .iter()
        .map(|q| prepare(run, q, questions.len(), task))
        .collect::<Result<Vec<_>, Error>>()?;
    try_join_all(questions.iter().zip(lowered).map(|(question, params)| ask(run, question, params))).await
}

/// What one call has asked so far, in all its rounds.
#[derive(Default)]
pub(super) struct SoFar {
    questions: AtomicUsize,
    answer_bytes: AtomicUsize,
}

impl SoFar {
    fn more_questions(&self, more: usize, most: usize) -> Result<(), Error> {
        if self.questions.fetch_add(more, Ordering::Relaxed) + more <= most {
            return Ok(());
        }
        let what = format!("The call was stopped: it asks the client more than {most} questions");
        Err(Error::new(Symbol::Internal, what))
    }

    /// A modern client would send all of them in one message, so together they may be as large as one.
    fn more_answers(&self, bytes: usize, most: usize) -> Result<(), Error> {
        if self.answer_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= most {
            return Ok(());
        }
        let what = format!("The call was stopped: the client's answers have more than {most} bytes together");
        Err(Error::new(Symbol::TooLarge, what))
    }
}

/// The question as this client's revision and capabilities know it, or what they lack.
fn prepare<D>(run: &Run<'_, D>, question: &Question, of: usize, task: Option<&str>) -> Result<Json, Error> {
    let needed = needs(question);
    let lowered = lower::question(run.client.revision, question.method.as_str(), question.params.clone())
        .filter(|_| run.client.hello.capabilities.has(needed))
        .ok_or_else(|| Error::missing_capabilities(&[needed]))?;
    let mut params = Object::of(&lowered).ok_or_else(Error::internal)?;
    if needed == Capability::ElicitUrl && !params.has("elicitationId") {
        // 2025-11-25 wants an id that later revisions do not have.
        let id = Json::string(&format!("{:032x}", u128::from_le_bytes(tidegate_service::random())));
        params = Object::of(&params.with("elicitationId", &id)).ok_or_else(Error::internal)?;
    }
    let mut hint = ObjectWriter::new();
    hint.str("key", &question.key).value("of", &of);
    if run.on_behalf {
        // Whoever uses the session for several clients has to know which of them is asked.
        hint.json("call", &run.id.to_json());
    }
    let own = params.object("_meta").unwrap_or_else(Object::empty).with(meta::INPUT, &hint.finish());
    let own = match task {
        Some(task) => {
            let mut related = ObjectWriter::new();
            related.str("taskId", task);
            Object::of(&own).ok_or_else(Error::internal)?.with(meta::RELATED_TASK, &related.finish())
        }
        None => own,
    };
    Ok(params.with("_meta", &own))
}

fn needs(question: &Question) -> Capability {
    match question.method {
        Method::SamplingCreate => {
            let tools = Object::of(&question.params).is_some_and(|p| p.has("tools"));
            if tools { Capability::SamplingTools } else { Capability::Sampling }
        }
        Method::RootsList => Capability::Roots,
        _ => {
            let url = Object::of(&question.params).is_some_and(|p| p.str("mode").as_deref() == Some("url"));
            if url { Capability::ElicitUrl } else { Capability::ElicitForm }
        }
    }
}

/// A client that reads no stream would never see the questions.
fn cannot_be_asked(questions: &[Question]) -> Error {
    let needed: Vec<_> = questions.iter().map(needs).collect();
    let mut data = ObjectWriter::new();
    data.json("requiredCapabilities", &ClientCapabilities::required(&needed));
    let what = "The call asks the client something, which needs a session and Accept: text/event-stream";
    Error::new(Symbol::MissingCapability, what).with_data(data.finish())
}

async fn ask<D: Door>(run: &Run<'_, D>, question: &Question, params: Json) -> Result<Answer, Error> {
    let (id, answer) = run.client.ask();
    let _asked = Asked { client: run.client, id };
    run.sink.send(wire::request(id, question.method.as_str(), &params));
    let key = question.key.to_string();
    match tokio::time::timeout(run.edge.answer_within, answer).await {
        Ok(Ok(Ok(result))) if result.is_object() => {
            run.asked.more_answers(result.len(), run.edge.limits.max_bytes)?;
            Ok((key, lower::answer(run.client.revision, question.method.as_str(), &question.params, result)))
        }
        Ok(Ok(Ok(_))) => {
            let what = format!("The client's answer to {} is not an object", question.method);
            Err(Error::new(Symbol::ToolExecution, what))
        }
        // A client that refuses to show a form has said no; one that cannot sample has failed.
        Ok(Ok(Err(_))) if question.method == Method::ElicitCreate => {
            Ok((key, Json::trusted(r#"{"action":"cancel"}"#)))
        }
        Ok(Ok(Err(error))) => {
            let said = Object::of(&error).and_then(|e| e.str("message").map(|m| m.into_owned()));
            let what = format!(
                "The client answered {} with an error: {}",
                question.method,
                said.unwrap_or_default()
            );
            Err(Error::new(Symbol::ToolExecution, what))
        }
        Ok(Err(_)) => Err(Error::internal()),
        Err(_) => {
            let secs = run.edge.answer_within.as_secs();
            Err(Error::new(
                Symbol::Timeout,
                format!("The client did not answer {} within {secs} s", question.method),
            ))
        }
    }
}

/// Gives the place for the answer back when nobody waits any more.
struct Asked<'a> {
    client: &'a ClientSession,
    id: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.client.forget_question(self.id);
    }
}

/// The parameters of the next round: the same, with answers and state.
pub(super) fn with_answers(
    params: &Params,
    answers: &[Answer],
    state: Option<&str>,
) -> Result<Params, Error> {
    // The state of the round before is not good for the next.
    let next = Object::of(&params.object().without(&["requestState"])).ok_or_else(Error::internal)?;
    let mut next = next.with("inputResponses", &answer_map(answers));
    if let Some(state) = state {
        next = Object::of(&next).ok_or_else(Error::internal)?.with("requestState", &Json::string(state));
    }
    Params::parse(&next, &OWN).map_err(|_| Error::internal())
}

/// `{key: answer, …}`.
pub(super) fn answer_map(answers: &[Answer]) -> Json {
    let mut w = ObjectWriter::new();
    for (key, answer) in answers {
        w.json(key, answer);
    }
    w.finish()
}
