//! A tool that takes its time: it tells its progress, stops when it is cancelled, and runs as a task for clients
//! that know tasks (the extension of 2026-07-28 and the experimental form of 2025-11-25).

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate::{Cx, Server, TaskSupport, Tool};

#[derive(Deserialize, JsonSchema)]
struct Render {
    /// How many frames.
    #[schemars(range(min = 1, max = 1000))]
    frames: u32,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    tidegate::logging::init(Default::default(), None);
    let render = Tool::new("render")
        .description("Renders a film, frame by frame")
        .task(TaskSupport::Optional)
        .timeout(Duration::from_secs(600))
        .handler(|film: Render, cx: Cx| async move {
            for frame in 1..=film.frames {
                // A cancelled call is dropped at the next await: there is nothing to check here.
                tokio::time::sleep(Duration::from_millis(50)).await;
                cx.progress(f64::from(frame), Some(f64::from(film.frames)), &*format!("frame {frame}"));
            }
            format!("Rendered {} frames", film.frames)
        });
    let server = Server::new("studio", "1.0.0").tool(render).build();
    tidegate::http::serve(server, "127.0.0.1:8765", Default::default()).await
}
