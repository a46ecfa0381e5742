//! The framework people write MCP servers with.
//!
//! A [`Server`] offers [`Tool`]s, [`Resource`]s, [`ResourceTemplate`]s and [`Prompt`]s; [`Server::build`] makes a
//! [`ServerDoor`] of it, which any transport can serve to clients of any revision of the protocol. Handlers are
//! written once: what differs between revisions is the business of the edges.
//!
//! ```
//! use tidegate_server::{Cx, Prompt, PromptArgs, Resource, Server, Tool, schemars};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Hello {
//!     /// Who to greet.
//!     name: String,
//! }
//!
//! let server = Server::new("hello", "1.0.0")
//!     .tool(Tool::new("hello").description("Greets somebody").handler(|args: Hello, _cx: Cx| async move {
//!         format!("Hello, {}!", args.name)
//!     }))
//!     .resource(Resource::text("memo://greeting", "greeting", "Hello, world!"))
//!     .prompt(Prompt::new("greet").handler(|_: PromptArgs, _cx: Cx| async move { Ok("Greet me.") }))
//!     .build();
//! ```

//!
//! # Asking the client
//!
//! A handler asks with [`Cx::elicit`] (a person), [`Cx::sample`] (a model) or [`Cx::roots`], and simply awaits the
//! answer. Behind that, nothing waits: the handler is dropped, the questions go out with a sealed state that holds all
//! answers so far, and when the client calls again the handler runs from its start with the answers at hand. No memory
//! is kept on the server, and any replica can take the retry. Questions awaited together (`tokio::join!`) go out
//! together.
//!
//! This brings one rule: **ask before you act.** What stands before a question runs again in each round; what must be
//! done before asking, and once, goes into [`Cx::run_once`]. Ask from the handler itself rather than from tasks it spawns,
//! which would never end. In a task of the protocol ([`Tool::task`]) nothing is replayed, and the handler does wait.

mod batch;
mod builder;
mod complete;
mod cx;
mod discover;
mod dispatch;
mod handle;
mod hub;
mod interact;
mod list;
mod prompt;
mod registry;
mod resource;
mod run;
mod server;
mod settings;
mod tasks;
mod text;
mod tool;

pub use builder::{BuildError, Server};
pub use complete::{Completing, Completions, IntoCompletions};
pub use cx::Cx;
pub use dispatch::{Answer, Framework};
pub use handle::{ServerHandle, WeakServerHandle, log_periodically, log_statistics};
pub use hub::Watched;
pub use interact::{Ask, Elicit, Elicited, Root, Sample, Sampled};
pub use prompt::{Argument, IntoPromptResult, Prompt, PromptArgs, PromptResult};
pub use resource::{IntoResourceContents, PageRequest, Resource, ResourcePage, ResourceTemplate, Vars};
pub use server::{Counted, ServerDoor};
pub use settings::{CacheHint, Scope, TaskSettings};
pub use tidegate_service::layers::BreakerState;
pub use tidegate_service::stats::{CacheStats, Health, Stats, Status, Thresholds};
pub use tool::{IntoToolResult, Structured, TaskSupport, Tool, ToolError, ToolResult, read_value};

// What the output of the macros refers to, so that their users need no dependency of their own.
#[doc(hidden)]
pub use serde;
#[doc(hidden)]
pub use tool::returned;

pub use schemars;
pub use tidegate_protocol::content::{
    Annotations, Content, Icon, PromptMessage, ResourceContents, ResourceLink, Role, Theme,
};
pub use tidegate_protocol::seal::Key;
pub use tidegate_protocol::{Capability, Error, Json, Level, Profile, Revision, Symbol};
pub use tidegate_service::layers::Limits;
pub use tidegate_service::{CorrelationId, Principal};
