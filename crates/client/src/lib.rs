//! Outbound MCP: one client for any server, whichever era it speaks and however it misbehaves.

mod allowance;
mod app_error;
mod auth;
mod backoff;
mod cache;
mod changes;
mod child;
mod client;
mod dial;
mod facts;
mod handlers;
mod http;
mod ids;
mod inbox;
mod legacy;
mod modern;
#[cfg(feature = "oauth")]
pub mod oauth;
mod options;
mod peer;
mod rounds;
mod servers_file;
mod status;
mod subscribe;
mod target;
mod ticket;
mod tool;
mod upstream;
mod upstream_error;
mod wire;

pub use app_error::{AppError, CATALOGUE, CatalogueEntry, ErrorProfile, catalogue_entry, map_mcp_error};
pub use auth::{Authorizer, Challenge};
pub use changes::Filter;
pub use client::{CallTool, Change, Client, ClientBuilder, ClientDoor, ClientState, Subscribed, ToolResult};
pub use facts::ServerFacts;
pub use handlers::{ElicitAnswer, ElicitKind, Elicitation, Handlers, Root};
pub use ids::IdStrategy;
pub use options::{EraChoice, Instances, LaneOptions, Options, ParkOptions};
pub use servers_file::{Entry, Found, ServersFile, ServersFileError, well_known_files};
pub use target::{Command, Remote, Target, TargetError};
pub use tool::Tool;

/// The parameters of a request for one page of a list.
fn page_params(cursor: Option<String>) -> Result<tidegate_protocol::Params, tidegate_protocol::Error> {
    let Some(cursor) = cursor else { return Ok(tidegate_protocol::Params::empty()) };
    let mut params = tidegate_protocol::json::ObjectWriter::new();
    params.str("cursor", &cursor);
    tidegate_protocol::Params::parse(&params.finish(), &tidegate_protocol::Limits::default())
        .map_err(|_| tidegate_protocol::Error::internal())
}
