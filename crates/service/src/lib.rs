//! The one door: whatever answers MCP requests is a `tower::Service<Call, Response = Reply, Error = Infallible>`.
//!
//! A server written with the framework, a connection to a remote server, the union of many, and every policy around
//! any of those are the same kind of thing, so they can be mounted, layered and tested alike. Inside, each call
//! stands alone, as in revision 2026-07-28: a [`Call`] has a method, parameters and a [`Context`]; a [`Reply`] is
//! complete, asks for input, is a task, a subscription, or an error. History (handshakes, sessions) lives at the
//! edges.
//!
//! ```
//! use tidegate_protocol::{Json, Method, Params};
//! use tidegate_service::{Call, Context, ContextParts, Reply};
//! use tower::{Service, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let mut door = service_fn(|call: Call| async move {
//!     Ok::<_, std::convert::Infallible>(match call.method {
//!         Method::ToolsList => Reply::Complete(Json::trusted(r#"{"tools":[]}"#)),
//!         other => Reply::method_not_found(&other),
//!     })
//! });
//! let call = Call::new(Method::ToolsList, Params::empty(), Context::local());
//! assert!(matches!(door.call(call).await, Ok(Reply::Complete(_))));
//! # }
//! ```

pub mod appended;
pub mod batch;
pub mod budget;
mod call;
mod context;
mod correlation;
mod current;
mod decision;
mod door;
pub mod events;
mod extensions;
mod failure;
pub mod fair_queue;
mod filter;
mod held;
pub mod journal;
pub mod layers;
pub mod log_filter;
mod noted_wait;
mod open_session;
mod outbox;
mod own_resources;
mod pause;
mod principal;
mod random;
mod reply;
pub mod schema;
pub mod secrets;
pub mod stats;
mod time;
pub mod trace;
mod unknown;
mod unlisted;
pub mod usage;
pub mod wire_trace;

pub use call::Call;
pub use context::{CallerId, Connected, Context, ContextParts, HOP_LIMIT, ParamHeaders};
pub use correlation::CorrelationId;
pub use current::{Current, Working, with_spans, without_spans};
pub use decision::Decision;
pub use door::{BoxDoor, Door};
pub use extensions::Extensions;
pub use failure::{Tag, tool_failure};
pub use filter::Filter;
pub use held::Held;
pub use journal::{Journal, Stage};
pub use noted_wait::{NotedWait, noted};
pub use open_session::OpenSession;
pub use outbox::{Notice, Outbox};
pub use own_resources::OWN_RESOURCES;
pub use pause::Pause;
pub use principal::{Claims, Identity, Principal};
pub use random::random;
pub use reply::{InputRequired, Question, Reply, Subscription};
pub use time::{epoch_ms, rfc3339_ms};
pub use unknown::{likely_names, nearest_name, unknown_prompt, unknown_tool};
pub use unlisted::UNLISTED;
