//! Resources: fixed text and bytes, one that changes by itself, and a template.

use std::time::Duration;

use tidegate::{Cx, Resource, ResourceContents, ResourceTemplate, Server, ServerHandle, Vars};

use crate::media;

const WATCHED: &str = "test://watched-resource";
const WATCHED_CHANGES_EVERY: Duration = Duration::from_secs(3);

pub(crate) fn add(server: Server) -> Server {
    server
        .resource(
            Resource::text(
                "test://static-text",
                "static-text",
                "This is the content of the static text resource.",
            )
            .title("Static Text Resource")
            .description("A static text resource for testing")
            .mime_type("text/plain"),
        )
        .resource(
            Resource::new("test://static-binary", "static-binary")
                .title("Static Binary Resource")
                .description("A static binary resource (image) for testing")
                .mime_type("image/png")
                .fixed(ResourceContents::blob_base64("test://static-binary", media::PNG)),
        )
        .resource(
            Resource::text(WATCHED, "watched-resource", "Watched resource content")
                .title("Watched Resource")
                .description("A resource that auto-updates every 3 seconds")
                .mime_type("text/plain"),
        )
        .resource_template(
            ResourceTemplate::new("test://template/{id}/data", "template")
                .title("Resource Template")
                .description("A resource template with parameter substitution")
                .mime_type("application/json")
                .reader(|vars: Vars, _cx: Cx| async move {
                    let id = vars.get("id");
                    let data = serde_json::json!({
                        "id": id, "templateTest": true, "data": format!("Data for ID: {}", id.unwrap_or_default()),
                    });
                    Ok(data.to_string())
                }),
        )
}

/// Tells subscribers again and again that the watched resource has changed.
pub(crate) async fn keep_updating(server: ServerHandle) {
    loop {
        tokio::time::sleep(WATCHED_CHANGES_EVERY).await;
        server.resource_updated(WATCHED);
    }
}
