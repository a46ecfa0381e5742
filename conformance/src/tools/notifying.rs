//! Tools that say something before they answer, that make the server say something to its subscribers, or that let
//! go of the stream on which they would say it.

use std::time::Duration;

use tidegate::{Cx, Tool};
use tokio::time::sleep;

/// How long the tools work between two messages.
const STEP: Duration = Duration::from_millis(50);

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("test_tool_with_logging")
            .description("Tests tool that emits log messages during execution")
            .handler(|(), cx: Cx| async move {
                cx.info("Tool execution started");
                sleep(STEP).await;
                cx.info("Tool processing data");
                sleep(STEP).await;
                cx.info("Tool execution completed");
                "Tool with logging executed successfully"
            }),
        Tool::new("test_tool_with_progress")
            .description("Tests tool that reports progress notifications")
            .handler(|(), cx: Cx| async move {
                for done in [0.0, 50.0, 100.0] {
                    cx.progress(done, 100.0, &*format!("Completed step {done} of 100"));
                    if done < 100.0 {
                        sleep(STEP).await;
                    }
                }
                "Tool with progress executed successfully"
            }),
        Tool::new("test_logging_tool")
            .description("Emits one log message, for clients that want such")
            .handler(|(), cx: Cx| async move {
                cx.info("Diagnostic trace logging activated");
                "Logging evaluated"
            }),
        Tool::new("test_reconnection")
            .description("Tests SSE stream disconnection and client reconnection (SEP-1699)")
            .handler(|(), cx: Cx| async move {
                cx.close_stream();
                sleep(2 * STEP).await;
                "Reconnection test completed successfully. If you received this, the client properly reconnected \
                 after stream closure."
            }),
        Tool::new("test_trigger_tool_change")
            .description("Tells subscribers that the list of tools has changed")
            .handler(|(), cx: Cx| async move {
                cx.server().tools_changed();
                "Mutation triggered"
            }),
        Tool::new("test_trigger_prompt_change")
            .description("Tells subscribers that the list of prompts has changed")
            .handler(|(), cx: Cx| async move {
                cx.server().prompts_changed();
                "Mutation triggered"
            }),
    ]
}
