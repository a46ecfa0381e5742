//! The tools that find by meaning and show vectors.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::semantic::{SemanticQuery, search as find};
use super::{json_result, object_schema, read_tool, schema_of, with_handler, write_tool};
use crate::circuits;
use crate::embeddings::embedder::normalised;
use crate::embeddings::{SemanticIndex, vectors};
use crate::error::{Code, Fault};
use crate::graph::{entities, model};
use crate::pages;
use crate::server::state::ServerState;
use crate::store::Memory;

/// How long to wait for a vector that somebody wants to see.
const WITHIN: Duration = Duration::from_secs(30);
/// Longest question, in characters.
const MAX_QUERY: usize = 10_000;
/// Most results.
const MAX_RESULTS: usize = 100;

#[derive(Deserialize, JsonSchema)]
struct SemanticSearch {
    /// What to look for, in your own words.
    query: String,
    /// The maximum number of results, 1 to 100; default 10.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
    /// The minimum similarity, 0 to 1. With an embedding model: of the meaning, default 0.6; with hybrid_search, results
    /// that match by words are returned as well. Without a model: the share of matching words, default 0.
    #[serde(alias = "minSimilarity")]
    #[schemars(range(min = 0.0, max = 1.0))]
    min_similarity: Option<f64>,
    /// Only entities of these types.
    #[serde(alias = "entityTypes")]
    entity_types: Option<Vec<String>>,
    /// Whether to match words as well as meaning; default true.
    #[serde(alias = "hybridSearch")]
    hybrid_search: Option<bool>,
    /// The weight of meaning against words with hybrid_search, 0 to 1; default 0.6.
    #[serde(alias = "semanticWeight")]
    #[schemars(range(min = 0.0, max = 1.0))]
    semantic_weight: Option<f64>,
}

#[derive(Deserialize, JsonSchema)]
struct EntityNameArgs {
    /// The name of the entity.
    #[serde(alias = "entityName")]
    entity_name: Option<String>,
}

impl EntityNameArgs {
    fn name(self) -> Result<String, Fault> {
        self.entity_name.ok_or_else(|| Fault::input("entity_name", "is required"))
    }
}

#[derive(Deserialize, JsonSchema)]
struct NoArguments {}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let result = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"}, "entity": schema_of::<crate::graph::model::Entity>(), "similarity": {"type": "number"}, "snippet": {"type": "string"},
        },
        "required": ["id", "entity", "similarity"],
    });
    let vector = json!({
        "entityName": {"type": "string"}, "embedding": {"type": "array", "items": {"type": "number"}},
        "model": {"type": "string"},
    });
    let mut found = object_schema(json!({
        "results": {"type": "array", "items": result}, "count": {"type": "integer"},
        "searchType": {"type": "string", "enum": ["semantic", "hybrid", "lexical"]},
    }));
    found["properties"]["note"] = json!({"type": "string"});
    let loose = || json!({"type": "object"});
    vec![
        with_handler(state, semantic_search, read_tool(
            "semantic_search",
            "Semantic Search",
            "Search for entities by meaning and by words. Without an embedding model it searches by words only, and says so",
        )
        .output_schema(found)),
        with_handler(state, get_entity_embedding, read_tool(
            "get_entity_embedding",
            "Get Entity Embedding",
            "Get the embedding vector of an entity",
        )
        .output_schema(object_schema(vector.clone()))),
        with_handler(state, force_generate_embedding, write_tool(
            "force_generate_embedding",
            "Generate Embedding",
            "Generate the embedding vector of an entity now instead of in the background",
        )
        .idempotent()
        .output_schema(object_schema(vector))),
        with_handler(state, debug_embedding_config, read_tool(
            "debug_embedding_config",
            "Embedding Configuration",
            "Show which embedding model is used, where vectors are compared, and whether the embedding service and the providers \
             of models are available",
        )
        .output_schema(loose())),
        with_handler(state, diagnose_vector_search, read_tool(
            "diagnose_vector_search",
            "Diagnose Vector Search",
            "Show how many texts wait for a vector, and whether vectors are compared in memory or by pgvector",
        )
        .output_schema(loose())),
    ]
}

async fn semantic_search(state: ServerState, args: SemanticSearch, cx: Cx) -> Result<ToolResult, ToolError> {
    let query = args.query.trim().to_owned();
    if query.is_empty() {
        return Err(Fault::input("query", "must not be blank").into());
    }
    let length = query.chars().count();
    if length > MAX_QUERY {
        let why = format!("must have at most {MAX_QUERY} characters, and has {length}");
        return Err(Fault::input("query", why).into());
    }
    let limit = args.limit.unwrap_or(10);
    if !(1..=MAX_RESULTS).contains(&limit) {
        return Err(Fault::input("limit", format!("must be 1 to {MAX_RESULTS}, not {limit}")).into());
    }
    model::share("min_similarity", args.min_similarity)?;
    model::share("semantic_weight", args.semantic_weight)?;
    let types = args.entity_types.filter(|types| !types.is_empty());
    model::entries("entity_types", types.as_deref().unwrap_or_default())?;
    let wanted = SemanticQuery {
        query,
        limit,
        min_similarity: args.min_similarity,
        types,
        hybrid: args.hybrid_search.unwrap_or(true),
        weight: args.semantic_weight.unwrap_or(0.6),
    };
    let found = find(&state, &state.memory(&cx), wanted).await?;
    let mut structured =
        json!({"results": found.results, "count": found.results.len(), "searchType": found.by.as_str()});
    if let Some(note) = found.note {
        structured["note"] = json!(note);
    }
    json_result(structured)
}

/// What finds by meaning, or what to do so that there is something.
fn semantic(state: &ServerState) -> Result<&SemanticIndex, Fault> {
    state.search.semantic().ok_or_else(|| {
        Fault::new(
            Code::InvalidInput,
            "No embedding model is configured: run `tidegate model`, or configure an OpenAI-compatible /embeddings \
             endpoint in [memory.embeddings]",
        )
    })
}

async fn get_entity_embedding(
    state: ServerState,
    args: EntityNameArgs,
    cx: Cx,
) -> Result<ToolResult, ToolError> {
    embedding(state, args, cx, false).await
}

async fn force_generate_embedding(
    state: ServerState,
    args: EntityNameArgs,
    cx: Cx,
) -> Result<ToolResult, ToolError> {
    embedding(state, args, cx, true).await
}

async fn embedding(
    state: ServerState,
    args: EntityNameArgs,
    cx: Cx,
    anew: bool,
) -> Result<ToolResult, ToolError> {
    let entity_name = args.name()?;
    let semantic = semantic(&state)?;
    let memory = state.memory(&cx);
    let (name, by, text_of) = (entity_name.clone(), semantic.model().clone(), semantic.text_of());
    let (kept, texts) = memory
        .view(move |view| {
            let entity = entities::find(view, &name)?.ok_or_else(|| Fault::no_entity(&name))?;
            let kept = vectors::of(view, &by, pages::ENTITY, entity.key)?;
            Ok((kept, vectors::texts_of(view, text_of, pages::ENTITY, entity.key)?))
        })
        .await?;
    let vectors = match kept.len() == texts.len() && !anew {
        true => kept,
        false => {
            let vectors = semantic.make(texts, WITHIN).await?;
            let made: Vec<Vec<f32>> = vectors.iter().map(|made| made.vector.clone()).collect();
            if anew {
                let by = semantic.model().clone();
                memory.maintain(move |change| vectors::save(change, &by, &vectors)).await?;
            }
            made
        }
    };
    // An entity of which much is known has several pages: its vector is between theirs.
    let dimensions = vectors.first().map_or(0, Vec::len);
    let mut sum = vec![0.0; dimensions];
    for vector in vectors.iter().filter(|vector| vector.len() == dimensions) {
        sum.iter_mut().zip(vector).for_each(|(sum, number)| *sum += number);
    }
    let structured =
        json!({"entityName": entity_name, "embedding": normalised(sum), "model": &**semantic.model()});
    json_result(structured)
}

/// Which model is used, and where vectors are compared: in the database (`pgvector`) or in this process (`memory`).
async fn config(state: &ServerState, memory: &Memory) -> Result<Value, Fault> {
    let mut seen = embeddings(state, memory).await?;
    let providers = state.settings.models.circuits();
    if !providers.is_empty() {
        seen["models"] = providers
            .into_iter()
            .map(|(name, circuit)| json!({"provider": name, "circuit": circuit}))
            .collect();
    }
    Ok(seen)
}

/// The part of that about embeddings.
async fn embeddings(state: &ServerState, memory: &Memory) -> Result<Value, Fault> {
    let Some(semantic) = state.search.semantic() else {
        return Ok(json!({"configured": false, "searchType": "lexical"}));
    };
    let is_ready = semantic.is_in_database(memory).await?;
    let mut seen = json!({
        "configured": true, "model": &**semantic.model(), "local": semantic.embedder().is_local(),
        "vectorIndex": if is_ready { "pgvector" } else { "memory" },
    });
    if let Some(circuit) = semantic.embedder().circuit() {
        seen["circuit"] = circuits::shown(circuit);
    }
    Ok(seen)
}

async fn debug_embedding_config(state: ServerState, _: NoArguments, cx: Cx) -> Result<ToolResult, ToolError> {
    let seen = config(&state, &state.memory(&cx)).await?;
    json_result(seen)
}

async fn diagnose_vector_search(state: ServerState, _: NoArguments, cx: Cx) -> Result<ToolResult, ToolError> {
    let memory = state.memory(&cx);
    let mut seen = config(&state, &memory).await?;
    if let Some(semantic) = state.search.semantic() {
        seen["pending"] = json!(semantic.pending(&memory).await?);
        let (count, bytes) = semantic.loaded(&memory);
        seen["loaded"] = json!({"vectors": count, "bytes": bytes});
        if let Some(state) = semantic.tables(&memory).await? {
            seen["pgvector"] = json!({
                "version": state.version, "vectors": state.vectors, "hnsw": state.indexed, "complete": state.complete,
            });
        }
        if let Some(fault) = semantic.failed() {
            seen["failure"] = json!(fault.message);
        }
    }
    json_result(seen)
}
