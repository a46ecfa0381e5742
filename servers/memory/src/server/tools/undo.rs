//! Tools about changes: which there were, taking one back, and what is different between two moments.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::{json_result, object_schema, read_tool, schema_of, with_handler, write_tool};
use crate::changes::{self, ChangeCounts, ChangeRecord};
use crate::error::Fault;
use crate::graph::changes::last_of;
use crate::graph::diff::{self, Difference};
use crate::graph::model::{self, within};
use crate::server::state::ServerState;
use crate::undo;

#[derive(Deserialize, JsonSchema)]
struct Undo {
    /// The number of the change (list_changes); default the latest one that is not undone.
    change: Option<i64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ListChanges {
    /// The maximum number, 1 to 200; default 20.
    limit: Option<i64>,
    /// The `nextCursor` of the previous page.
    cursor: Option<String>,
    /// Only changes to this entity and its relations.
    #[serde(alias = "entity_name")]
    entity_name: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct DiffGraph {
    /// The earlier time, in milliseconds since 1970.
    from: i64,
    /// The later time; default now.
    to: Option<i64>,
    /// The maximum number of entities and of relations, 1 to 1000; default 200.
    limit: Option<i64>,
}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let mut changes =
        object_schema(json!({"changes": {"type": "array", "items": schema_of::<ChangeRecord>()}}));
    changes["properties"]["nextCursor"] = json!({"type": "string"});
    let undone = object_schema(json!({
        "undone": schema_of::<ChangeRecord>(), "restored": schema_of::<ChangeCounts>(), "removed": schema_of::<ChangeCounts>(),
    }));
    let mut different = schema_of::<Difference>();
    for moment in ["from", "to"] {
        different["properties"][moment] = json!({"type": "integer"});
    }
    vec![
        with_handler(
            state,
            undo,
            write_tool(
                "undo",
                "Undo",
                "Undo a change to the knowledge graph, a document or an agent: restore what it removed and remove what it \
                 added. An undo can be undone",
            )
            .destructive(true)
            .output_schema(undone),
        ),
        with_handler(
            state,
            list_changes,
            read_tool(
                "list_changes",
                "List Changes",
                "List changes, newest first: when, by whom, with which tool, what they were about and how much they changed",
            )
            .output_schema(changes),
        ),
        with_handler(
            state,
            diff_graph,
            read_tool(
                "diff_graph",
                "Diff Graph",
                "Compare the knowledge graph at two points in time: what was added, removed and changed",
            )
            .output_schema(different),
        ),
    ]
}

async fn undo(state: ServerState, args: Undo, cx: Cx) -> Result<ToolResult, ToolError> {
    let done = state.memory(&cx).change("undo", move |change| undo::undo(change, args.change)).await?;
    let structured = json!({"undone": done.change, "restored": done.restored, "removed": done.removed});
    json_result(structured)
}

async fn list_changes(state: ServerState, args: ListChanges, cx: Cx) -> Result<ToolResult, ToolError> {
    let limit = within("limit", args.limit, 20, 200)?;
    let before = args.cursor.as_deref().map(model::cursor).transpose()?;
    let mut found = state
        .memory(&cx)
        .view(move |view| match &args.entity_name {
            Some(name) => last_of(view, name, limit + 1, before),
            None => changes::last(view, limit + 1, before),
        })
        .await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let mut structured = json!({"changes": found});
    if let Some(last) = found.last().filter(|_| more) {
        structured["nextCursor"] = Value::from(last.id.to_string());
    }
    json_result(structured)
}

async fn diff_graph(state: ServerState, args: DiffGraph, cx: Cx) -> Result<ToolResult, ToolError> {
    let limit = within("limit", args.limit, 200, 1_000)?;
    let to = args.to.unwrap_or(tidegate_service::epoch_ms() as i64);
    if args.from > to {
        return Err(Fault::input("from", format!("must not be later than \"to\" ({to})")).into());
    }
    let found = state.memory(&cx).view(move |view| diff::between(view, args.from, to, limit)).await?;
    let mut structured = json!(found);
    structured["from"] = args.from.into();
    structured["to"] = to.into();
    json_result(structured)
}
