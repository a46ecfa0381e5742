//! A tool that returns a type of its own: clients get it as structured content with an output schema, and models as text.
//!
//! ```sh
//! cargo run --example structured_result
//! cargo run --example structured_result -- --listen 8765
//! ```

use tidegate::{Run, Server, ToolError, schemars::JsonSchema, tool};

/// When the water is high.
#[derive(serde::Serialize, JsonSchema)]
struct Tides {
    harbour: String,
    high_waters: Vec<HighWater>,
}

#[derive(serde::Serialize, JsonSchema)]
struct HighWater {
    /// Local time, HH:MM
    time: String,
    /// Metres above chart datum
    height: f64,
}

/// Tells when the water is high in a harbour.
#[tool(read_only)]
async fn tides(
    /// The harbour, such as Dover
    harbour: String,
) -> Result<Tides, ToolError> {
    if harbour.is_empty() {
        return Err("name a harbour, such as Dover".into());
    }
    let at = |time: &str, height| HighWater { time: time.to_owned(), height };
    Ok(Tides { harbour, high_waters: vec![at("04:12", 6.3), at("16:35", 6.1)] })
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    Server::new("tides", "1.0.0").tool(tides()).run().await
}
