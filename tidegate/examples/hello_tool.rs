//! The smallest useful server: one tool, over stdio, or over HTTP with `--listen 8765`.
//!
//! Run it under a client, or by hand:
//!
//! ```sh
//! cargo run --example hello_tool
//! {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"me","version":"1"}}}
//! {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}}
//! ```

use tidegate::{Run, Server, tool};

/// Greets somebody by name.
#[tool(read_only)]
async fn greet(
    /// Who is greeted.
    name: String,
) -> String {
    format!("Hello, {name}!")
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    Server::new("hello", "1.0.0").tool(greet()).run().await
}
