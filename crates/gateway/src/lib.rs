//! Many MCP servers behind one endpoint.
//!
//! A [`Gateway`] is a door like any other: it can be served by an edge, layered, mounted in another gateway and tested
//! without a socket. Behind it stand the servers of a configuration, each a client of its own, whichever era it speaks.
//! What they list is merged; what is called is sent where it belongs, with its bytes untouched.
//!
//! ```
//! use tidegate_gateway::Gateway;
//! use tidegate_protocol::{Method, Params};
//! use tidegate_service::{Call, Context, Door, Reply};
//! # use tidegate_server::{Cx, Server, Tool, ToolError};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! # let greet = Tool::new("greet").description("Greets").handler(|_: (), _: Cx| async { Ok::<_, ToolError>("Hello!") });
//! # let server = Server::new("here", "1.0").tool(greet).build();
//! // A server in this process; `connect` takes a command or an address, `settings` a whole configuration.
//! let gateway = Gateway::builder().mount("here", server).start().unwrap();
//!
//! let call = Call::new(Method::ToolsList, Params::empty(), Context::local());
//! let Ok(Reply::Complete(tools)) = gateway.answer(call).await else { panic!() };
//! assert!(tools.as_str().contains("\"here_greet\""));
//! gateway.close().await;
//! # }
//! ```

mod allowed;
mod batch;
mod build;
mod caller_resources;
mod catalog;
mod checked;
mod complete;
mod discover;
mod disk_cache;
mod endpoints;
mod extensions;
mod gateway;
mod kind;
mod link_owners;
mod links;
mod list_request;
mod listen;
mod loops;
mod merged_list;
mod mount;
mod names;
mod operations;
mod pins;
mod questions;
mod request_state;
mod router;
mod sealing;
mod search;
mod shown;
mod snapshot;
mod status;
mod supervisor;
mod tasks;
mod unlisted;
mod uris;
mod view;

pub use disk_cache::kept_tools;
pub use gateway::{Dial, Gateway, GatewayBuilder};
pub use operations::OperationError;
pub use pins::{Lock, LockError, Pin};
pub use status::{Health, LIFECYCLE, ServerStatus};
pub use tidegate_client::InUse;
pub use tidegate_config::{EndpointSettings, ServerSettings, Settings, Source};
pub use tidegate_limits::{LimitLeft, QueueStatus, Scope as LimitScope};
pub use view::{Offer, OfferKind, ViewKey, Visibility};
