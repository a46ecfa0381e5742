//! Tools that take the graph out and bring it in.

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
use crate::store::Fault;
use crate::{devflow, jsonl};

/// How long a text may be that is brought in, in bytes.
const MAX_IMPORT: usize = 64 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Either of them.
#[derive(Deserialize, JsonSchema)]
struct Import {
    /// The lines of a file of server-memory: {"type":"entity",…} or {"type":"relation",…}.
    jsonl: Option<String>,
    /// Instead of `jsonl`: a SQLite file of DevFlow (devflow.db), in base64.
    devflow: Option<String>,
}

impl Import {
    fn graph(self) -> Result<Graph, Fault> {
        let short = |field: &str, text: &str| match text.len() > MAX_IMPORT {
            true => {
                Err(Fault::input(field, format!("must have at most {MAX_IMPORT} bytes; bring it in parts")))
            }
            false => Ok(()),
        };
        match (self.jsonl, self.devflow) {
            (Some(text), None) => {
                short("jsonl", &text)?;
                jsonl::read(&text)
            }
            (None, Some(text)) => {
                short("devflow", &text)?;
                let file = BASE64_STANDARD.decode(text.trim());
                devflow::read(file.map_err(|_| Fault::input("devflow", "is not base64"))?)
            }
            _ => Err(Fault::input("jsonl", "give either \"jsonl\" or \"devflow\"")),
        }
    }
}

pub(super) fn tools(recall: &Recall) -> Vec<Tool> {
    let counts = json!({"entities": {"type": "integer"}, "relations": {"type": "integer"}});
    vec![
        on(recall, export, reading(
            "export_graph",
            "Export Graph",
            "Get the knowledge graph as the lines of a server-memory file (JSONL)",
        )
        .output_schema(object(json!({
            "jsonl": {"type": "string"}, "entities": {"type": "integer"}, "relations": {"type": "integer"},
        })))
        ),
        on(recall, import, changing(
            "import_graph",
            "Import Graph",
            "Add a server-memory file (JSONL) or a DevFlow file (SQLite) to the knowledge graph. Observations that are new are \
             added; nothing is lost",
        )
        .idempotent()
        .output_schema(object(counts))
        ),
    ]
}

async fn export(recall: Recall, _: Nothing, cx: Cx) -> Result<ToolResult, ToolError> {
    let graph = memory(&recall, &cx).view(read::whole).await?;
    let (entities, relations) = (graph.entities.len(), graph.relations.len());
    let jsonl = jsonl::write(graph)?;
    let structured = json!({"jsonl": jsonl, "entities": entities, "relations": relations});
    Ok(ToolResult::text(jsonl).structured(Json::from(structured)))
}

async fn import(recall: Recall, args: Import, cx: Cx) -> Result<ToolResult, ToolError> {
    let read = tokio::task::spawn_blocking(move || args.graph()).await;
    let graph = read.map_err(ToolError::from_error)??;
    // The graph as a whole has changed; who watches single entities looks again then.
    let (made, connected) = change(&recall, &cx, "import_graph", Vec::new(), move |change| {
        let mut made = 0;
        for entity in graph.entities {
            // A file may say more of what is known: that is added.
            let known = entities::find(change, &entity.name)?;
            match known {
                Some(known) => _ = entities::observe(change, &known, entity.observations, false)?,
                None => made += entities::create(change, vec![entity])?.len(),
            }
        }
        Ok((made, relations::create(change, graph.relations)?.len()))
    })
    .await?;
    let counts = json!({"entities": made, "relations": connected});
    told(&counts, counts.clone())
}
