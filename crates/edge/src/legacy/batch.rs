//! Batches, which only 2025-03-26 has: several messages in one, answered in one.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tidegate_protocol::{Error, Feature, MAX_BATCH, Malformed, Message, Method, Request, Revision, Symbol};
use tidegate_service::Door;

use super::client_session::ClientSession;
use super::drive::{MessageSink, Response, drive};
use crate::edge_settings::EdgeSettings;
use crate::wire;

/// How many requests of one batch run at a time.
const AT_ONCE: usize = 8;

/// A batch that may be answered.
pub(crate) struct Batch(Vec<Result<Message, Malformed>>);

impl Batch {
    /// Takes the messages of a batch from a client that speaks `revision`, or says why there can be no such batch.
    pub(crate) fn of(messages: Vec<Result<Message, Malformed>>, revision: Revision) -> Result<Batch, Error> {
        debug_assert!(messages.len() <= MAX_BATCH, "whoever parses sees to that");
        if !revision.allows(Feature::Batching) {
            let what = format!("Invalid request: revision {revision} has no batches; send one message");
            return Err(Error::new(Symbol::InvalidRequest, what));
        }
        // 2025-03-26 basic/lifecycle: other requests are not possible until it is answered.
        let greets = |entry: &Result<Message, Malformed>| matches!(entry, Ok(Message::Request(request)) if request.method == Method::Initialize);
        if messages.iter().any(greets) {
            let what = "Invalid request: initialize must not be part of a batch; send it alone";
            return Err(Error::new(Symbol::InvalidRequest, what));
        }
        Ok(Batch(messages))
    }
}

/// Answers a batch: the responses, in no particular order. Empty if nothing wanted one.
///
/// Once the responses are larger than a message may be, nothing more is run: each request that is left gets an error.
pub(crate) async fn drive_batch<D: Door>(
    door: D,
    client: Arc<ClientSession>,
    batch: Batch,
    sink: Arc<dyn MessageSink>,
    edge: Arc<EdgeSettings>,
) -> Vec<Vec<u8>> {
    let mut responses = Vec::new();
    let mut requests = Vec::new();
    for entry in batch.0 {
        match entry {
            Ok(Message::Request(request)) => requests.push(request),
            Ok(Message::Notification(notification)) => client.notified(&door, notification),
            Ok(Message::Response(response)) => client.answered(&response.id, Ok(response.result)),
            Ok(Message::Failure(failure)) => {
                if let Some(id) = failure.id {
                    client.answered(&id, Err(failure.error));
                }
            }
            Err(malformed) => {
                responses.push(wire::error(malformed.id.as_ref(), &malformed.error, Some(client.revision)));
            }
        }
    }
    let most = edge.limits.max_bytes;
    let mut bytes = 0;
    let mut waiting = requests.into_iter();
    let mut running = FuturesUnordered::new();
    loop {
        while bytes <= most
            && running.len() < AT_ONCE
            && let Some(request) = waiting.next()
        {
            running.push(drive(door.clone(), client.clone(), request, sink.clone(), edge.clone()));
        }
        let Some(response) = running.next().await else { break };
        // Refusals inside a batch have no status of their own.
        if let Some(Response { message, .. }) = response {
            bytes += message.len();
            responses.push(message);
        }
    }
    responses.extend(waiting.map(|request| not_run(&request, most, client.revision)));
    responses
}

fn not_run(request: &Request, most: usize, revision: Revision) -> Vec<u8> {
    let what = format!(
        "Too large: the answers to this batch have more than {most} bytes together, so this request was not run; \
         send it alone"
    );
    wire::error(Some(&request.id), &Error::new(Symbol::TooLarge, what), Some(revision))
}
