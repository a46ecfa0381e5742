//! Tools that show what a result can hold.

use tidegate::{Content, Cx, ResourceContents, Tool, ToolError};

use crate::media;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("test_simple_text")
            .description("Tests simple text content response")
            .handler(|(), _cx: Cx| async { "This is a simple text response for testing." }),
        Tool::new("test_image_content")
            .description("Tests image content response")
            .handler(|(), _cx: Cx| async { image() }),
        Tool::new("test_audio_content")
            .description("Tests audio content response")
            .handler(|(), _cx: Cx| async { Content::audio(media::WAV, "audio/wav") }),
        Tool::new("test_embedded_resource").description("Tests embedded resource content response").handler(
            |(), _cx: Cx| async {
                embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
            },
        ),
        Tool::new("test_multiple_content_types")
            .description("Tests response with multiple content types (text, image, resource)")
            .handler(|(), _cx: Cx| async {
                vec![
                    Content::text("Multiple content types test:"),
                    image(),
                    embedded(
                        "test://mixed-content-resource",
                        "application/json",
                        r#"{"test":"data","value":123}"#,
                    ),
                ]
            }),
        Tool::new("test_error_handling").description("Tests error response handling").handler(
            |(), _cx: Cx| async {
                Err::<(), _>(ToolError::from("This tool intentionally returns an error for testing"))
            },
        ),
    ]
}

fn image() -> Content {
    Content::image(media::PNG, "image/png")
}

fn embedded(uri: &'static str, mime_type: &'static str, text: &'static str) -> Content {
    Content::resource(ResourceContents::text(uri, text).mime_type(mime_type))
}
