//! Tools that take the graph out and bring it in, alone or with everything else and its history.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tidegate_server::{Cx, Json, Tool, ToolError, ToolResult};

use super::{change, changing, memory, object, on, reading, told};
use crate::Recall;
use crate::graph::model::Graph;
use crate::graph::{entities, read, relations};
use crate::jsonl::whole;
use crate::store::{Change, Fault};
use crate::{devflow, documents, jsonl};

/// How long a text may be that is brought in, in bytes.
const MAX_IMPORT: usize = 64 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
struct Export {
    /// Everything with its history instead: every version of entities, relations, documents and agents, and the changes
    /// that made them. import_graph brings it into an empty memory.
    history: Option<bool>,
}

/// Either of them.
#[derive(Deserialize, JsonSchema)]
struct Import {
    /// The lines of a file of server-memory: {"type":"entity",…} or {"type":"relation",…}. Or those of export_graph with
    /// history, for an empty memory.
    jsonl: Option<String>,
    /// Instead of `jsonl`: a SQLite file of DevFlow (devflow.db), in base64.
    devflow: Option<String>,
}

/// What is brought in.
enum Brought {
    Graph(Graph),
    Whole(whole::File),
}

impl Import {
    fn read(self) -> Result<Brought, Fault> {
        let short = |field: &str, text: &str| match text.len() > MAX_IMPORT {
            true => {
                Err(Fault::input(field, format!("must have at most {MAX_IMPORT} bytes; bring it in parts")))
            }
            false => Ok(()),
        };
        match (self.jsonl, self.devflow) {
            (Some(text), None) => {
                short("jsonl", &text)?;
                // Some editors put a mark of the byte order in front.
                let text = text.trim_start_matches('\u{feff}');
                match whole::is(text) {
                    true => whole::read(text).map(Brought::Whole),
                    false => jsonl::read(text).map(Brought::Graph),
                }
            }
            (None, Some(text)) => {
                short("devflow", &text)?;
                let file = BASE64_STANDARD.decode(text.trim());
                let file = file.map_err(|_| Fault::input("devflow", "is not base64"))?;
                devflow::read(file).map(Brought::Graph)
            }
            _ => Err(Fault::input("jsonl", "give either \"jsonl\" or \"devflow\"")),
        }
    }
}

pub(super) fn tools(recall: &Recall) -> Vec<Tool> {
    let counted = |members: &[&str]| {
        let integer = |name: &&str| ((*name).to_owned(), json!({"type": "integer"}));
        members.iter().map(integer).collect::<serde_json::Map<_, _>>()
    };
    let with_history = |mut schema: serde_json::Value| {
        for (name, of) in counted(&["changes", "documents", "agents"]) {
            schema["properties"][name] = of;
        }
        schema
    };
    let counts = object(counted(&["entities", "relations"]).into());
    let mut lines = counted(&["entities", "relations"]);
    lines.insert("jsonl".to_owned(), json!({"type": "string"}));
    vec![
        on(recall, export, reading(
            "export_graph",
            "Export Graph",
            "Get the knowledge graph as the lines of a server-memory file (JSONL), or everything with its history",
        )
        .output_schema(with_history(object(lines.into())))
        ),
        on(recall, import, changing(
            "import_graph",
            "Import Graph",
            "Add a server-memory file (JSONL) or a DevFlow file (SQLite) to the knowledge graph. Observations that are new are \
             added; nothing is lost. Or bring a file of export_graph with history into an empty memory",
        )
        .idempotent()
        .output_schema(with_history(counts))
        ),
    ]
}

async fn export(recall: Recall, args: Export, cx: Cx) -> Result<ToolResult, ToolError> {
    let memory = memory(&recall, &cx);
    let (jsonl, mut structured) = match args.history.unwrap_or_default() {
        true => {
            let (jsonl, counts) = memory.view(|view| whole::write(view, MAX_IMPORT)).await?;
            (jsonl, told_of(&counts))
        }
        false => {
            let graph = memory.view(read::whole).await?;
            let counts = json!({"entities": graph.entities.len(), "relations": graph.relations.len()});
            (jsonl::write(graph)?, counts)
        }
    };
    structured["jsonl"] = (&*jsonl).into();
    Ok(ToolResult::text(jsonl).structured(Json::from(structured)))
}

fn told_of(counts: &whole::Counts) -> serde_json::Value {
    json!({
        "entities": counts.entities, "relations": counts.relations, "documents": counts.documents,
        "agents": counts.agents, "changes": counts.changes,
    })
}

async fn import(recall: Recall, args: Import, cx: Cx) -> Result<ToolResult, ToolError> {
    let read = tokio::task::spawn_blocking(move || args.read()).await;
    let max_document = recall.options.max_document_bytes.unwrap_or(documents::MAX_BYTES);
    let brought = read.map_err(ToolError::from_error)??;
    let counts = change(&recall, &cx, "import_graph", move |change| match brought {
        Brought::Graph(graph) => add(change, graph),
        Brought::Whole(file) => whole::bring(change, file, max_document).map(|counts| told_of(&counts)),
    })
    .await?;
    told(&counts, counts.clone())
}

/// Adds what is not known yet.
fn add(change: &mut Change<'_>, graph: Graph) -> Result<serde_json::Value, Fault> {
    let mut made = 0;
    for entity in graph.entities {
        // A file may say more of what is known: that is added.
        let known = entities::find(change, &entity.name)?;
        match known {
            Some(known) => _ = entities::observe(change, &known, entity.observations, false)?,
            None => made += entities::create(change, vec![entity])?.len(),
        }
    }
    let connected = relations::create(change, graph.relations)?.len();
    Ok(json!({"entities": made, "relations": connected}))
}
