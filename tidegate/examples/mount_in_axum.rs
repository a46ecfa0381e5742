//! An existing axum application that also serves MCP, with a health page from the framework's own figures.

use axum::routing::get;
use axum::{Json, Router};
use tidegate::{Server, http, tool};

/// Tells the length of a text.
#[tool(read_only, idempotent)]
async fn measure(
    /// The text to measure.
    text: String,
) -> String {
    format!("{} characters", text.chars().count())
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    tidegate::logging::init(Default::default(), None);
    let server = Server::new("ruler", "1.0.0").tool(measure()).build();
    let handle = server.handle();
    let app = Router::new()
        .route("/", get(|| async { "The application's own page" }))
        .route("/health", get(move || async move { Json(handle.health().to_json()) }))
        .merge(http::router(server, http::Settings::default().path("/tools/mcp")));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8765").await?;
    axum::serve(listener, app).await
}
