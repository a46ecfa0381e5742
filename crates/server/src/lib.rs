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

mod complete;
mod cx;
mod discover;
mod dispatch;
mod handle;
mod hub;
mod interact;
mod list;
mod options;
mod prompt;
mod registry;
mod resource;
mod run;
mod server;
mod stats;
mod tasks;
mod text;
mod tool;

pub use complete::{Completing, Completions, IntoCompletions};
pub use cx::Cx;
pub use dispatch::{Answer, Framework};
pub use handle::{ServerHandle, log_periodically};
pub use interact::{Ask, Elicit, Elicited, Root, Sample, Sampled};
pub use options::{CacheHint, Scope, TaskOptions};
pub use prompt::{Argument, IntoPromptResult, Prompt, PromptArgs, PromptResult};
pub use resource::{IntoResourceContents, Resource, ResourceTemplate, Vars};
pub use server::{BuildError, Counted, Server, ServerDoor};
pub use stats::{BreakerState, CacheStats, Health, Stats, Status, Thresholds};
pub use tool::{IntoToolResult, Structured, TaskSupport, Tool, ToolError, ToolResult};

pub use schemars;
pub use tidegate_protocol::content::{
    Annotations, Content, Icon, PromptMessage, ResourceContents, ResourceLink, Role, Theme,
};
pub use tidegate_protocol::seal::Key;
pub use tidegate_protocol::{Capability, Error, Json, Level, Profile, Revision, Symbol};
pub use tidegate_service::layers::Limits;
pub use tidegate_service::{CorrelationId, Principal};
