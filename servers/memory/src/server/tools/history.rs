//! Tools that look back.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::read::{Which, part, sliced};
use super::{
    entities as entity_list, json_result, object_schema, read_tool, relations as relation_list, schema_of,
    with_handler,
};
use crate::error::Fault;
use crate::graph::decay::{self, Decay};
use crate::graph::model::within;
use crate::graph::slice::{self, SliceRequest};
use crate::graph::{history, read};
use crate::server::state::ServerState;

/// How many versions are told unless somebody says how many, and at most.
const USUAL: usize = 100;
const MOST: usize = 1_000;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EntityHistory {
    /// The name of the entity, even if it was deleted or renamed.
    entity_name: String,
    /// The maximum number of versions, the latest ones: 1 to 1000; default 100.
    limit: Option<i64>,
    /// Only versions before this one.
    #[serde(alias = "before_version")]
    before_version: Option<i64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RelationHistory {
    /// Which relation.
    #[serde(flatten)]
    which: Which,
    /// The maximum number of versions, the latest ones: 1 to 1000; default 100.
    limit: Option<i64>,
    /// Only versions before this one.
    #[serde(alias = "before_version")]
    before_version: Option<i64>,
}

#[derive(Deserialize, JsonSchema)]
struct AtTime {
    /// The time, in milliseconds since 1970.
    timestamp: i64,
    /// Return a page of at most this many entities and relations, 1 to 1000.
    limit: Option<i64>,
    /// The `nextCursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct DecayedGraph {
    /// The reference time, in milliseconds since 1970; default now.
    #[serde(alias = "referenceTime")]
    reference_time: Option<i64>,
    /// How fast confidence decays: 1 is normal, 2 is twice as fast.
    #[serde(alias = "decayFactor")]
    decay_factor: Option<f64>,
    /// After how many days half of the confidence is left; default 30.
    #[serde(alias = "halfLifeDays")]
    half_life_days: Option<f64>,
    /// The lowest confidence, 0 to 1; default 0.1.
    #[serde(alias = "minConfidence")]
    min_confidence: Option<f64>,
    /// Return a page of at most this many entities and relations, 1 to 1000.
    limit: Option<i64>,
    /// The `nextCursor` of the previous page.
    cursor: Option<String>,
}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let graph = || {
        let mut schema = object_schema(json!({"entities": entity_list(), "relations": relation_list()}));
        schema["properties"]["nextCursor"] = json!({"type": "string"});
        schema
    };
    vec![
        {
            let output = object_schema(json!({
                "entityName": {"type": "string"},
                "history": {"type": "array", "items": schema_of::<history::EntityVersion>()},
                "totalVersions": {"type": "integer"},
                "truncated": {"type": "boolean"},
            }));
            with_handler(state, entity_history, read_tool(
                "get_entity_history",
                "Get Entity History",
                "Get all versions of an entity, oldest first: its observations and properties, when, and who changed it",
            )
            .output_schema(output))
        },
        {
            let output = object_schema(json!({
                "from": {"type": "string"}, "to": {"type": "string"}, "relationType": {"type": "string"},
                "history": {"type": "array", "items": schema_of::<history::RelationVersion>()},
                "totalVersions": {"type": "integer"},
                "truncated": {"type": "boolean"},
            }));
            with_handler(
                state,
                relation_history,
                read_tool(
                    "get_relation_history",
                    "Get Relation History",
                    "Get all versions of a relation, oldest first",
                )
                .output_schema(output),
            )
        },
        {
            let output = object_schema(json!({"timestamp": {"type": "integer"}, "graph": graph()}));
            with_handler(
                state,
                graph_at_time,
                read_tool(
                    "get_graph_at_time",
                    "Get Graph At Time",
                    "Get the knowledge graph as it was at a point in time",
                )
                .output_schema(output),
            )
        },
        with_handler(
            state,
            decayed_graph,
            read_tool(
                "get_decayed_graph",
                "Get Decayed Graph",
                "Get the knowledge graph with the confidence of each relation reduced by its age",
            )
            .output_schema(graph()),
        ),
    ]
}

/// The version before which to look.
fn before(given: Option<i64>) -> Result<Option<usize>, Fault> {
    let number = |given| usize::try_from(given).ok().filter(|number| *number > 0);
    let checked = |given| number(given).ok_or_else(|| Fault::input("beforeVersion", "must be 1 or more"));
    given.map(checked).transpose()
}

async fn entity_history(state: ServerState, args: EntityHistory, cx: Cx) -> Result<ToolResult, ToolError> {
    let limit = within("limit", args.limit, USUAL, MOST)?;
    let before = before(args.before_version)?;
    let name = args.entity_name.clone();
    let found = state.memory(&cx).view(move |view| history::of_entity(view, &name, limit, before)).await?;
    let truncated = found.versions.len() < found.total;
    let structured = json!({
        "entityName": args.entity_name, "history": found.versions, "totalVersions": found.total,
        "truncated": truncated,
    });
    json_result(structured)
}

async fn relation_history(
    state: ServerState,
    args: RelationHistory,
    cx: Cx,
) -> Result<ToolResult, ToolError> {
    let limit = within("limit", args.limit, USUAL, MOST)?;
    let before = before(args.before_version)?;
    let which = args.which;
    let (from, to, kind) = (which.from.clone(), which.to.clone(), which.relation_type.clone());
    let (versions, total) = state
        .memory(&cx)
        .view(move |view| history::of_relation(view, &from, &to, &kind, limit, before))
        .await?;
    let structured = json!({
        "from": which.from, "to": which.to, "relationType": which.relation_type,
        "history": versions, "totalVersions": total, "truncated": versions.len() < total,
    });
    json_result(structured)
}

async fn graph_at_time(state: ServerState, args: AtTime, cx: Cx) -> Result<ToolResult, ToolError> {
    let (memory, time) = (state.memory(&cx), args.timestamp);
    let graph = match part(args.limit, args.cursor)? {
        None => json!(memory.view(move |view| read::at(view, Some(time))).await?),
        Some(part) => {
            let part = SliceRequest { at: Some(time), ..part };
            sliced(memory.view(move |view| slice::slice(view, &part)).await?)
        }
    };
    let structured = json!({"timestamp": args.timestamp, "graph": graph});
    json_result(structured)
}

async fn decayed_graph(state: ServerState, args: DecayedGraph, cx: Cx) -> Result<ToolResult, ToolError> {
    let mut decay = Decay::usual(args.reference_time.unwrap_or(tidegate_service::epoch_ms() as i64));
    if let Some(days) = args.half_life_days {
        decay.half_life_days = days;
    }
    if let Some(factor) = args.decay_factor {
        if !(factor.is_finite() && factor > 0.0) {
            return Err(Fault::input("decay_factor", "must be more than 0").into());
        }
        decay.half_life_days /= factor;
    }
    if let Some(floor) = args.min_confidence {
        decay.floor = floor;
    }
    decay.check()?;
    let memory = state.memory(&cx);
    let graph = match part(args.limit, args.cursor)? {
        None => json!(memory.view(move |view| decay::graph(view, decay)).await?),
        Some(part) => {
            let part = SliceRequest { decay: Some(decay), ..part };
            sliced(memory.view(move |view| slice::slice(view, &part)).await?)
        }
    };
    json_result(graph)
}
