//! [`CallId`]: the id of a call in its answer, so that whoever has the answer can ask what happened.

use tidegate_protocol::result_id::Splices;
use tidegate_protocol::{Id, Json, Method, write};
use tidegate_service::CorrelationId;

use crate::edge_settings::EdgeSettings;

/// The id of a call that its caller gets with the answer, however that turns out. Errors have it from the front already.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallId {
    pub(crate) id: CorrelationId,
    /// Whether it is in `_meta` of the result. It is where a server makes the result for this caller. Lists are the same for many, and
    /// what the edge answers itself is no call.
    in_result: bool,
}

impl CallId {
    /// The id of a call; `None` if answers are not to have any.
    pub(crate) fn of(method: &Method, id: CorrelationId, edge: &EdgeSettings) -> Option<CallId> {
        edge.call_ids.then(|| CallId { id, in_result: method.may_ask() || *method == Method::TasksResult })
    }

    /// What is different in the result.
    pub(crate) fn splices(call: Option<CallId>, result: &Json) -> Splices {
        match call {
            Some(CallId { id, in_result: true }) => Splices::naming(result, id.as_str()),
            _ => Splices::default(),
        }
    }

    /// The response with a result.
    pub(crate) fn result(call: Option<CallId>, id: &Id, result: &Json) -> Vec<u8> {
        match call {
            Some(call) if call.in_result => {
                write::spliced_result(id, result, &Splices::naming(result, call.id.as_str()))
            }
            _ => write::result(id, result),
        }
    }
}
