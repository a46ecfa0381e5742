//! Tidegate connects any MCP client to any MCP server. This crate is the framework to write servers with.
//!
//! A server is a value: tools, resources and prompts are added to it, and it speaks all five revisions of the Model
//! Context Protocol over stdio and Streamable HTTP.
//!
//! ```no_run
//! use tidegate::{Cx, Server, Tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greet {
//!     /// Who is greeted.
//!     name: String,
//! }
//!
//! #[tokio::main]
//! async fn main() -> std::io::Result<()> {
//!     let server = Server::new("hello", "1.0.0")
//!         .tool(
//!             Tool::new("greet")
//!                 .description("Greets somebody")
//!                 .handler(|args: Greet, _cx: Cx| async move { format!("Hello, {}!", args.name) }),
//!         )
//!         .build();
//!     tidegate::http::serve(server, "127.0.0.1:8765", Default::default()).await
//! }
//! ```
//!
//! The pieces underneath are crates of their own: [`protocol`] (what is on the wire), [`service`] (the one door that
//! every server, policy and connection is), [`server`] (the framework), [`edge`] (the transports) and `client` (the
//! other side: calling any server; with the feature `client`). The feature `gateway` adds many servers behind one
//! endpoint, and `auth` adds API keys, access tokens and what else it takes to know who calls. The command is a crate of its own, `tidegate-command`.

/// The examples of the guide are compiled like those of this crate.
#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../../docs/framework.md")]
struct FrameworkGuide;

pub mod http;
pub mod logging;
mod run;
pub mod stdio;

#[cfg(feature = "auth")]
pub use tidegate_auth as auth;
#[cfg(feature = "client")]
pub use tidegate_client as client;
pub use tidegate_edge as edge;
#[cfg(feature = "gateway")]
pub use tidegate_gateway as gateway;
pub use tidegate_protocol as protocol;
pub use tidegate_server as server;
pub use tidegate_service as service;

pub use run::Run;
pub use tidegate_edge::{EdgeSettings, Eras};
pub use tidegate_macros::{prompt, resource, tool};
pub use tidegate_protocol::{Capability, Error, Json, Level, Revision, Symbol};
pub use tidegate_server::*;
pub use tidegate_service::{Call, Context, Door, Principal, Reply};

// What the macros' output refers to, so that their users need no dependency of their own.
#[doc(hidden)]
pub use {schemars, serde, serde_json};
