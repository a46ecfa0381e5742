//! Tools that look back.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::read::Which;
use super::{entities as entity_list, memory, object, of, on, reading, relations as relation_list, told};
use crate::Recall;
use crate::graph::decay::{self, Decay};
use crate::graph::{history, read};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EntityHistory {
    /// The name of the entity. It may have been deleted.
    entity_name: String,
}

#[derive(Deserialize, JsonSchema)]
struct AtTime {
    /// The moment, in milliseconds since 1970.
    timestamp: i64,
}

#[derive(Deserialize, JsonSchema)]
struct DecayedGraph {
    /// The moment to look from, in milliseconds since 1970. Now, if it is not given.
    reference_time: Option<i64>,
    /// How much faster than usual confidence fades: 1 is usual, 2 is twice as fast.
    decay_factor: Option<f64>,
    /// After how many days half of the confidence is left.
    half_life_days: Option<f64>,
    /// What is always left, 0 to 1.
    min_confidence: Option<f64>,
}

pub(super) fn tools(recall: &Recall) -> Vec<Tool> {
    let graph = || object(json!({"entities": entity_list(), "relations": relation_list()}));
    vec![
        {            let output = object(json!({
                "entityName": {"type": "string"},
                "history": {"type": "array", "items": of::<history::EntityVersion>()},
                "totalVersions": {"type": "integer"},
            }));
            on(recall, entity_history, reading(
                "get_entity_history",
                "Get Entity History",
                "Get every version of an entity, oldest first",
            )
            .output_schema(output))
        },
        {            let output = object(json!({
                "from": {"type": "string"}, "to": {"type": "string"}, "relationType": {"type": "string"},
                "history": {"type": "array", "items": of::<history::RelationVersion>()},
                "totalVersions": {"type": "integer"},
            }));
            on(recall, relation_history, reading(
                "get_relation_history",
                "Get Relation History",
                "Get every version of a relation, oldest first",
            )
            .output_schema(output))
        },
        {            let output = object(json!({"timestamp": {"type": "integer"}, "graph": graph()}));
            on(recall, graph_at_time, reading("get_graph_at_time", "Get Graph At Time", "Get the knowledge graph as it was at a moment")
                .output_schema(output))
        },
        on(recall, decayed_graph, reading(
                "get_decayed_graph",
                "Get Decayed Graph",
                "Get the knowledge graph with the confidence that is left of each relation, the longer ago it was said",
            )
            .output_schema(graph())),
    ]
}

async fn entity_history(recall: Recall, args: EntityHistory, cx: Cx) -> Result<ToolResult, ToolError> {
    let name = args.entity_name.clone();
    let versions = memory(&recall, &cx).view(move |view| history::of_entity(view, &name)).await?;
    let structured =
        json!({"entityName": args.entity_name, "history": versions, "totalVersions": versions.len()});
    told(&structured, structured.clone())
}

async fn relation_history(recall: Recall, args: Which, cx: Cx) -> Result<ToolResult, ToolError> {
    let (from, to, kind) = (args.from.clone(), args.to.clone(), args.relation_type.clone());
    let versions =
        memory(&recall, &cx).view(move |view| history::of_relation(view, &from, &to, &kind)).await?;
    let structured = json!({
        "from": args.from, "to": args.to, "relationType": args.relation_type,
        "history": versions, "totalVersions": versions.len(),
    });
    told(&structured, structured.clone())
}

async fn graph_at_time(recall: Recall, args: AtTime, cx: Cx) -> Result<ToolResult, ToolError> {
    let graph = memory(&recall, &cx).view(move |view| read::at(view, Some(args.timestamp))).await?;
    let structured = json!({"timestamp": args.timestamp, "graph": graph});
    told(&structured, structured.clone())
}

async fn decayed_graph(recall: Recall, args: DecayedGraph, cx: Cx) -> Result<ToolResult, ToolError> {
    let mut decay = Decay::usual(args.reference_time.unwrap_or(tidegate_service::epoch_ms() as i64));
    if let Some(days) = args.half_life_days {
        decay.half_life_days = days;
    }
    if let Some(factor) = args.decay_factor {
        if !(factor.is_finite() && factor > 0.0) {
            return Err(crate::store::Fault::input("decay_factor", "must be more than 0").into());
        }
        decay.half_life_days /= factor;
    }
    if let Some(floor) = args.min_confidence {
        decay.floor = floor;
    }
    let graph = memory(&recall, &cx).view(move |view| decay::graph(view, decay)).await?;
    told(&graph, json!(graph))
}
