//! The smallest useful server: one tool, over stdio.
//!
//! Run it under a client, or by hand:
//!
//! ```sh
//! cargo run --example hello_tool
//! {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"me","version":"1"}}}
//! {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}}
//! ```

use tidegate::{Server, tool};

/// Greets somebody by name.
#[tool(read_only)]
async fn greet(
    /// Who is greeted.
    name: String,
) -> String {
    format!("Hello, {name}!")
}

#[tokio::main]
async fn main() {
    tidegate::logging::init(Default::default(), None);
    let server = Server::new("hello", "1.0.0").tool(greet()).build();
    tidegate::stdio::serve(server, Default::default()).await;
}
