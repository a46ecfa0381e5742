//! What is on the wire: MCP messages, revisions, errors, header rules and shallow JSON.
//!
//! This crate knows every revision of the Model Context Protocol and does no I/O: no sockets, no clock, no
//! randomness. Whatever it needs of those is passed in. Everything above it (services, servers, transports)
//! speaks in the types defined here.
//!
//! ```
//! use tidegate_protocol::{Incoming, Limits, Message};
//!
//! let line = r#"{"jsonrpc":"2.0","id":0,"method":"tools/list"}"#;
//! let Ok(Incoming::One(Message::Request(request))) = Incoming::parse(line.into(), &Limits::default()) else {
//!     panic!("a request");
//! };
//! assert_eq!(request.id.as_json(), "0");
//! assert_eq!(request.method.as_str(), "tools/list");
//! ```

mod capabilities;
pub mod content;
mod envelope;
mod error;
pub mod headers;
mod id;
pub mod json;
mod level;
pub mod lines;
pub mod lower;
mod message;
pub mod meta;
mod method;
pub mod param_headers;
mod params;
pub mod result_id;
mod revision;
pub mod seal;
pub mod sse;
pub mod template;
pub mod text;
pub mod write;

pub use capabilities::{Capability, ClientCapabilities, tasks_extension};
pub use error::{Blame, Error, Profile, Symbol};
pub use id::{Id, LONGEST_ID};
pub use json::{Json, Limits, Object};
pub use level::Level;
pub use message::{Failure, Incoming, MAX_BATCH, Malformed, Message, Notification, Request, Response};
pub use meta::Meta;
pub use method::Method;
pub use params::Params;
pub use revision::{Era, Feature, Revision};
