//! `tools/call_batch`: several tool calls in one request, for clients that know it.
//!
//! No revision defines it. A server that offers it says so under [`EXTENSION`], among the extensions of 2026-07-28 and
//! among the experimental capabilities before. Each call stands alone: one that fails does not touch the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt;
use futures_util::stream;
use tidegate_protocol::json::{ObjectWriter, write_str};
use tidegate_protocol::{Error, Json, Limits, Method, Object, Params, Symbol, lower};

use crate::call::Call;
use crate::context::Context;
use crate::door::Door;
use crate::reply::Reply;

/// Under which name the method is advertised.
pub const EXTENSION: &str = "dev.tidegate/call-batch";
/// The method.
pub const METHOD: &str = "tools/call_batch";

/// Most calls in one batch.
const MAX_CALLS: usize = 100;
/// How many of them run at once.
const AT_ONCE: usize = 8;
/// How many bytes their results may have together. What comes after that is not run.
const MAX_RESULTS: usize = 16 * 1024 * 1024;

/// The calls of a batch: the elements of `calls`.
pub fn calls(params: &Object) -> Result<Vec<Json>, Error> {
    let calls = params
        .json("calls")
        .and_then(|calls| calls.elements())
        .ok_or_else(|| Error::invalid_params("\"calls\" must be an array of {name, arguments}"))?;
    if calls.is_empty() || calls.len() > MAX_CALLS {
        return Err(Error::invalid_params(format_args!("\"calls\" must have 1 to {MAX_CALLS} entries")));
    }
    Ok(calls)
}

/// Makes the calls of a batch, a few at once. Their results come in the order of the calls.
pub async fn run(door: impl Door, mut context: Context, calls: Vec<Json>) -> Reply {
    let revision = context.revision;
    context.progress_token = None;
    let bytes = Arc::new(AtomicUsize::new(0));
    // A call belongs to its place, whenever it ends.
    let mut results: Vec<(usize, Json)> = stream::iter(calls.into_iter().enumerate())
        .map(|(index, entry)| one(door.clone(), context.clone(), index, entry, bytes.clone()))
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    results.sort_by_key(|(index, _)| *index);
    let results: Vec<Json> = results.into_iter().map(|(_, result)| result).collect();
    let mut members = String::from("\"results\":");
    members.push_str(Json::array(&results).as_str());
    Reply::complete(revision, &members)
}

/// One call of the batch: `{index, name, result}` or `{index, name, error}`.
async fn one(
    door: impl Door,
    context: Context,
    index: usize,
    entry: Json,
    bytes: Arc<AtomicUsize>,
) -> (usize, Json) {
    let revision = context.revision;
    let name = Object::of(&entry).and_then(|entry| entry.text("name")).unwrap_or_default();
    let limits = Limits { max_depth: 127, max_bytes: usize::MAX };
    let too_large = || {
        let what = format!(
            "The results of this batch have more than {MAX_RESULTS} bytes together: call {name} on its own"
        );
        Reply::Error(Error::new(Symbol::TooLarge, what).with_code(-32603))
    };
    let reply = match Params::parse(&entry, &limits) {
        Ok(_) if bytes.load(Ordering::Relaxed) > MAX_RESULTS => too_large(),
        Ok(params) => {
            let Ok(reply) = door.answer(Call::new(Method::ToolsCall, params, context)).await;
            reply
        }
        Err(fault) => Reply::Error(Error::invalid_params(format_args!("calls[{index}]: {fault}"))),
    };
    // What is too large is let go of before the next one comes.
    let reply = match reply {
        Reply::Complete(result)
            if bytes.fetch_add(result.len(), Ordering::Relaxed) + result.len() > MAX_RESULTS =>
        {
            drop(result);
            too_large()
        }
        reply => reply,
    };
    let mut w = ObjectWriter::with_capacity(128);
    w.value("index", &index).with("name", |out| write_str(out, &name));
    let error = match reply {
        Reply::Complete(result) => {
            // The edge lowers what it knows, and it does not know this method.
            w.json("result", &lower::result(&Method::ToolsCall, revision, result));
            return (index, w.finish());
        }
        Reply::Error(error) => error,
        Reply::InputRequired(_) | Reply::Task(_) | Reply::Subscription(_) => Error::new(
            Symbol::InvalidParams,
            format!("{name} asks for input or runs as a task: call it on its own"),
        ),
    };
    w.json("error", &error.to_json(revision));
    (index, w.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn results_that_are_too_large_together_stop_a_batch() {
        let called = Arc::new(AtomicUsize::new(0));
        let counted = called.clone();
        let door = tower::service_fn(move |_: Call| {
            counted.fetch_add(1, Ordering::Relaxed);
            let text = format!(r#"{{"content":"{}"}}"#, "x".repeat(MAX_RESULTS / 3));
            std::future::ready(Ok::<_, std::convert::Infallible>(Reply::Complete(Json::trusted(text))))
        });
        let calls = vec![Json::trusted(r#"{"name":"big"}"#); 50];
        let Reply::Complete(answer) = run(door, Context::local(), calls).await else { panic!() };
        assert!(answer.len() < 2 * MAX_RESULTS, "{}", answer.len());
        assert!(called.load(Ordering::Relaxed) <= 2 + AT_ONCE + 1, "the rest is not run");
        let results = Object::of(&answer).unwrap().json("results").unwrap().elements().unwrap();
        assert_eq!(results.len(), 50, "each has its place");
        assert!(results[49].as_str().contains("call big on its own"), "{}", results[49]);
    }
}
