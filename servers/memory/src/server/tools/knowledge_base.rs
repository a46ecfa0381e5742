//! `search_knowledge_base`: the pieces of documents and the entities that fit a question best.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::{json_result, object_schema, read_tool, with_handler};
use crate::documents::model::{self, Base};
use crate::documents::read;
use crate::error::{Fault, Result as Stored};
use crate::graph::address::entity_uri;
use crate::graph::entities;
use crate::pages::{self, Hit};
use crate::search::{Query, snippet};
use crate::server::state::ServerState;
use crate::store::{Value as Sql, View};

/// How many results there are if nothing else is said; with `schema`, as Percolate has it.
const USUAL: usize = 5;
const USUAL_WITH_SCHEMA: usize = 10;
/// How many there are at most.
const MOST: usize = 20;
/// Longest question, in characters.
const MAX_QUERY: usize = 2_000;
/// How many hits are looked at, if too few of the first ones are of the right kind: first and last.
const LOOKED_AT: [usize; 2] = [100, 1_000];

#[derive(Deserialize, JsonSchema)]
struct SearchKnowledgeBase {
    /// What to look for: a question or some words.
    query: String,
    /// Your own tenant, if you say it at all.
    #[expect(dead_code, reason = "whose memory it is, is read where all tools are told")]
    tenant_id: Option<String>,
    /// Where to look: general (documents and entities, the default), documents, or codebase (documents that were ingested
    /// as such).
    knowledge_base: Option<Base>,
    /// How many results at most, up to 20; 5 if it is not given.
    #[schemars(range(min = 1, max = 20))]
    limit: Option<usize>,
    /// Only of this kind: resources or documents, entities, or a type of entities.
    schema: Option<String>,
}

/// What is looked for.
#[derive(Clone, PartialEq)]
enum Among {
    Everything,
    Documents,
    Codebase,
    /// Entities, of this type if it is said.
    Entities(Option<String>),
}

impl Among {
    fn of(base: Option<Base>, schema: Option<&str>) -> Among {
        match (schema.map(str::trim).filter(|schema| !schema.is_empty()), base) {
            (None, None | Some(Base::General)) => Among::Everything,
            (None | Some("resources" | "documents"), Some(Base::Codebase)) => Among::Codebase,
            (None | Some("resources" | "documents"), _) => Among::Documents,
            (Some("entities"), _) => Among::Entities(None),
            (Some(entity_type), _) => Among::Entities(Some(entity_type.to_owned())),
        }
    }

    fn kinds(&self) -> &'static [i64] {
        match self {
            Among::Everything => &[pages::DOCUMENT, pages::ENTITY],
            Among::Documents | Among::Codebase => &[pages::DOCUMENT],
            Among::Entities(_) => &[pages::ENTITY],
        }
    }
}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let result = object_schema(json!({
        "content": {"type": "string"}, "score": {"type": "number"}, "source": {"type": "string"},
        "metadata": {"type": "object"},
    }));
    let output = object_schema(json!({
        "status": {"type": "string"},
        "query": {"type": "string"},
        "results": {"type": "array", "items": result},
        "count": {"type": "integer"},
        "hasMore": {"type": "boolean"},
        "search": {"enum": ["lexical", "lexical+vector"]},
    }));
    vec![with_handler(
        state,
        search_knowledge_base,
        read_tool(
            "search_knowledge_base",
            "Search Knowledge Base",
            "Find what the knowledge base says about something: pieces of documents and entities, each with its source. \
             get_document and open_nodes show more of them",
        )
        .output_schema(output),
    )]
}

async fn search_knowledge_base(
    state: ServerState,
    args: SearchKnowledgeBase,
    cx: Cx,
) -> Result<ToolResult, ToolError> {
    let query = args.query.trim().to_owned();
    check_query("query", &query)?;
    let usual = if args.schema.is_some() { USUAL_WITH_SCHEMA } else { USUAL };
    let limit = args.limit.unwrap_or(usual);
    if !(1..=MOST).contains(&limit) {
        return Err(Fault::input("limit", format!("must be between 1 and {MOST}")).into());
    }
    let among = Among::of(args.knowledge_base, args.schema.as_deref());
    let memory = state.memory(&cx);
    let (mut results, mut by_meaning, mut has_more) = (Vec::new(), false, false);
    for looked_at in LOOKED_AT {
        let found = state.search.find(&memory, &query, among.kinds(), looked_at).await?;
        by_meaning = found.by_meaning;
        let (all, among, query) = (found.hits.len(), among.clone(), query.clone());
        // One more than wanted, to see whether there are more.
        results = memory.view(move |view| shown(view, found.hits, &among, &query, limit + 1)).await?;
        has_more = results.len() > limit || (results.len() == limit && all == looked_at);
        if results.len() >= limit || all < looked_at {
            break;
        }
    }
    results.truncate(limit);
    let structured = json!({
        "status": "success",
        "query": args.query,
        "count": results.len(),
        "hasMore": has_more,
        "search": if by_meaning { "lexical+vector" } else { "lexical" },
        "results": results,
    });
    json_result(structured)
}

/// A question that can be one.
pub(super) fn check_query(field: &str, query: &str) -> Stored<()> {
    let length = query.chars().count();
    match length {
        0 => Err(Fault::input(field, "must not be empty")),
        length if length > MAX_QUERY => {
            Err(Fault::input(field, format!("must have at most {MAX_QUERY} characters, and has {length}")))
        }
        _ => Ok(()),
    }
}

/// The first hits that are among what is looked for, as they are told.
fn shown(
    view: &mut View<'_>,
    hits: Vec<Hit>,
    among: &Among,
    query: &str,
    limit: usize,
) -> Stored<Vec<Value>> {
    let question = Query::new(query);
    let mut results = Vec::new();
    let mut seen = Vec::new();
    for hit in hits {
        if results.len() == limit {
            break;
        }
        let result = match hit.kind {
            pages::DOCUMENT => document(view, &hit, among, &question)?,
            // An entity is shown once, with the page that fits best.
            pages::ENTITY if !seen.contains(&hit.owner) => {
                seen.push(hit.owner);
                entity(view, &hit, among, &question)?
            }
            _ => None,
        };
        results.extend(result);
    }
    Ok(results)
}

fn document(view: &mut View<'_>, hit: &Hit, among: &Among, question: &Query) -> Stored<Option<Value>> {
    let Some(piece) = read::piece(view, hit.page)? else { return Ok(None) };
    if *among == Among::Codebase && piece.base != Base::Codebase.as_str() {
        return Ok(None);
    }
    Ok(Some(json!({
        "content": snippet(&piece.content, question),
        "score": hit.score,
        "source": model::uri(piece.key),
        "metadata": {
            "type": "document",
            "id": model::id(piece.key),
            "title": piece.title,
            "knowledgeBase": piece.base,
            "from": piece.source,
            "chunk": piece.place + 1,
            "heading": piece.heading,
            "lines": [piece.first_line, piece.last_line],
        },
    })))
}

fn entity(view: &mut View<'_>, hit: &Hit, among: &Among, question: &Query) -> Stored<Option<Value>> {
    let Some(kept) = entities::keyed(view, hit.owner)? else { return Ok(None) };
    if let Among::Entities(Some(wanted)) = among
        && !kept.entity_type.eq_ignore_ascii_case(wanted)
    {
        return Ok(None);
    }
    let known = view.all(
        "SELECT content FROM observations WHERE tenant = ?1 AND entity = ?2 AND page = ?3 AND gone IS NULL ORDER BY id",
        &[Sql::Int(kept.key), Sql::Int(hit.page)],
        |row| row.text(0),
    )?;
    let content = match known.is_empty() {
        true => format!("{} ({})", kept.name, kept.entity_type),
        false => format!("{} ({}): {}", kept.name, kept.entity_type, snippet(&known.join("\n"), question)),
    };
    Ok(Some(json!({
        "content": content,
        "score": hit.score,
        "source": entity_uri(&kept.name),
        "metadata": {
            "type": "entity",
            "id": format!("{}:{}", kept.entity_type, kept.name),
            "title": kept.name,
            "entityType": kept.entity_type,
        },
    })))
}
