//! Mounts a server that was written with [`rmcp`] in Tidegate, in the same process.
//!
//! [`target`] makes a [`Target`] of any rmcp `ServerHandler`. It can be connected to, put behind a gateway or served to
//! clients of both eras like every other server. Each session gets a clone of the handler and a pair of streams in memory.
//!
//! ```
//! use rmcp::ServerHandler;
//! use rmcp::model::{ServerCapabilities, ServerConfig};
//! use tidegate_client::Client;
//!
//! #[derive(Clone)]
//! struct Old;
//!
//! impl ServerHandler for Old {
//!     fn get_info(&self) -> ServerConfig {
//!         ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tidegate_client::AppError> {
//! let client = Client::connect(tidegate_rmcp::target(Old)).await?;
//! assert!(client.has_capability("tools").await?);
//! client.close().await;
//! # Ok(())
//! # }
//! ```

use rmcp::{ServerHandler, ServiceExt};
use tidegate_client::{Streams, Target};

/// How many bytes may be on their way in each direction.
const BUFFER: usize = 256 * 1024;

/// A server that was written with rmcp, as something to connect to. Sessions are opened within a Tokio runtime.
pub fn target<H>(handler: H) -> Target
where
    H: ServerHandler + Clone + Send + Sync + 'static,
{
    Target::Streams(Streams::new(move || {
        let (ours, theirs) = tokio::io::duplex(BUFFER);
        let handler = handler.clone();
        tokio::spawn(async move {
            match handler.serve(tokio::io::split(theirs)).await {
                Ok(running) => {
                    if let Err(error) = running.waiting().await {
                        tracing::debug!(%error, "an rmcp server ended badly");
                    }
                }
                Err(error) => tracing::debug!(%error, "an rmcp server did not start"),
            }
        });
        Ok(tokio::io::split(ours))
    }))
}
