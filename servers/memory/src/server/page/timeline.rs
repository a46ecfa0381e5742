//! The resource that says when the memory changed, for everything that shows it through time.

use serde::Serialize;
use tidegate_server::{Cx, Resource, Server};

use crate::error::Result;
use crate::server::state::ServerState;
use crate::store::View;

/// When the memory changed.
pub(crate) const TIMELINE: &str = "memory://timeline";
/// How many moments are told at most. Changes that lie close together are told as one.
const MOMENTS: usize = 240;

/// When the memory changed.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Timeline {
    /// How many changes there were.
    changes: i64,
    /// The first change, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<i64>,
    /// The last change, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<i64>,
    /// When something happened, oldest first.
    moments: Vec<Moment>,
}

/// Changes that lie close together.
#[derive(Debug, PartialEq, Serialize)]
struct Moment {
    /// The last of them, in milliseconds.
    at: i64,
    /// How many they are.
    changes: i64,
}

/// Adds the resource.
pub(crate) fn add(server: Server, state: &ServerState) -> Server {
    let state = state.clone();
    server.resource(
        Resource::new(TIMELINE, "timeline")
            .title("Timeline")
            .description("When the memory changed: the first and the last time, and how often in between")
            .mime_type("application/json")
            .reader(move |cx: Cx| {
                let memory = state.admitted_memory(&cx);
                async move {
                    let memory = memory?;
                    let timeline = memory.view(read).await?;
                    serde_json::to_string(&timeline).map_err(tidegate_server::ToolError::from_error)
                }
            }),
    )
}

fn read(view: &mut View<'_>) -> Result<Timeline> {
    // As many changes in each part as in any other: where much happened in little time, the moments lie close.
    let sql = format!(
        "SELECT MIN(at), MAX(at), COUNT(*) FROM
             (SELECT at, NTILE({MOMENTS}) OVER (ORDER BY at, id) AS part FROM changes WHERE tenant = ?1) AS parts
         GROUP BY part ORDER BY part"
    );
    let parts =
        view.all(&sql, &[], |row| Ok((row.int(0)?, Moment { at: row.int(1)?, changes: row.int(2)? })))?;
    let mut timeline = Timeline { first: parts.first().map(|(first, _)| *first), ..Timeline::default() };
    for (_, part) in parts {
        timeline.changes += part.changes;
        timeline.last = Some(part.at);
        match timeline.moments.last_mut().filter(|last| last.at == part.at) {
            Some(last) => last.changes += part.changes,
            None => timeline.moments.push(part),
        }
    }
    Ok(timeline)
}
