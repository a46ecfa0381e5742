//! Outbound MCP: one client for any server, whichever era it speaks and however it misbehaves.
//!
//! [`Client::connect`] takes a command line, an address, an entry of an `mcpServers` file or a service in this process,
//! finds out which revision of the protocol the server speaks, and keeps working when it crashes, hangs, forgets its
//! session or sends garbage. Every call gets exactly one answer, within its deadline.
//!
//! ```
//! use serde_json::json;
//! use tidegate_client::{Client, ElicitAnswer, Handlers, Target};
//! # use tidegate_server::{Cx, Server, Tool, ToolError};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tidegate_client::AppError> {
//! # let greet = Tool::new("greet").description("Greets").handler(|_: (), _: Cx| async { Ok::<_, ToolError>("Hello!") });
//! # let server = Server::new("here", "1.0").tool(greet).build();
//! // A server in this process; `Client::connect("npx -y some-server")` or a URL work the same.
//! let client = Client::builder(Target::from_door(server))?
//!     .handlers(Handlers::new().on_elicit(false, |question| async move {
//!         println!("{}", question.message);
//!         ElicitAnswer::Accept(question.defaults())
//!     }))
//!     .connect()
//!     .await?;
//! let result = client.call("greet", json!({})).await?;
//! assert_eq!(result.text(), "Hello!");
//! # Ok(())
//! # }
//! ```
//!
//! What a server asks in the middle of a call (elicitation, sampling, roots) is answered by [`Handlers`], in both eras.
//! Without handlers the client can stand in front of the server for others: [`Client::door`] answers modern calls, and
//! the questions become the callers'.
//!
//! Failures are [`AppError`]s: a code of the catalogue, a sentence for people, what to do, and whether trying again can
//! help. What a tool says about its own failure is not one of them: that is a result whose
//! [`is_error`](ToolResult::is_error) is true.

mod app_error;
mod auth;
mod backoff;
mod cache;
mod changes;
mod client;
mod connection;
mod counted;
mod dial;
mod handlers;
mod http;
mod ids;
mod legacy;
mod modern;
mod notices;
#[cfg(feature = "oauth")]
pub mod oauth;
mod prompt;
mod questions;
mod regular_file;
mod require;
mod resource;
mod rounds;
mod server_info;
mod servers_file;
mod settings;
mod status;
mod subscribe;
mod target;
mod task_routes;
mod ticket;
mod time_budget;
mod timer;
mod tool;
mod transport;
mod upstream;
mod upstream_error;
mod wire;

pub use app_error::{AppError, CATALOGUE, CatalogueEntry, ErrorProfile, catalogue_entry, map_mcp_error};
pub use auth::{Authorizer, Challenge};
pub use changes::Audience;
pub use client::{
    BareClientDoor, CallTool, Change, Client, ClientBuilder, ClientDoor, ClientState, InUse, Subscribed,
    ToolResult,
};
pub use handlers::{ElicitAnswer, ElicitKind, Elicitation, Handlers, Root};
pub use ids::IdStrategy;
pub use prompt::{Prompt, PromptArgument, PromptMessage, PromptResult, Role};
pub use regular_file::{read_regular, read_regular_text};
pub use require::ServerCapability;
pub use resource::{ReadResult, Resource, ResourceBody, ResourceContents, ResourceTemplate};
pub use server_info::ServerInfo;
pub use servers_file::{
    Description, Entry, EntrySettings, MissingVariable, ResolvedTarget, ServersFile, ServersFileError,
    fill_in, is_project_file, parse_env_file, parse_env_lines, well_known_files,
};
pub use settings::{ClientSettings, EraChoice, Instances, ParkSettings, SessionSettings, TaskSettings};
pub use target::{Command, ProgramError, Remote, Target, TargetError};
pub use tidegate_service::Filter;
pub use tool::Tool;
pub use transport::Streams;

/// The target of the log lines that say which server a connection or a session was opened to.
const CONNECTED: &str = "tidegate::connected";

/// The parameters of a request for one page of a list.
fn page_params(cursor: Option<String>) -> Result<tidegate_protocol::Params, tidegate_protocol::Error> {
    let Some(cursor) = cursor else { return Ok(tidegate_protocol::Params::empty()) };
    let mut params = tidegate_protocol::json::ObjectWriter::new();
    params.str("cursor", &cursor);
    tidegate_protocol::Params::parse(&params.finish(), &tidegate_protocol::Limits::default())
        .map_err(|_| tidegate_protocol::Error::internal())
}
