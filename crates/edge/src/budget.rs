//! What may begin when the process holds as much as it may: whatever lets something else end.

use tidegate_protocol::{Error, Method, Request};
use tidegate_service::Principal;
use tidegate_service::budget::Budget;

/// Whether a request may begin. Answers to questions and the end of things always may, so that nothing that waits for
/// them is kept waiting.
pub(crate) fn admit(request: &Request, principal: &Principal) -> Result<(), Error> {
    Budget::of_process()
        .admit_for(principal)
        .or_else(|error| if ends_something(request) { Ok(()) } else { Err(error) })
}

fn ends_something(request: &Request) -> bool {
    let answers = ["inputResponses", "requestState"].iter().any(|member| request.params.has(member));
    answers || matches!(request.method, Method::Ping | Method::TasksUpdate | Method::TasksCancel)
}
