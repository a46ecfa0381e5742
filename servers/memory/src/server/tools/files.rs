//! Tools that take the graph out and bring it in, alone or with everything else and its history.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_server::{Cx, Json, Tool, ToolError, ToolResult};

use super::{change, json_result, object_schema, read_tool, schema_of, with_handler, write_tool};
use crate::archive::devflow;
use crate::archive::file::add;
use crate::archive::history::{self, Numbered};
use crate::archive::page::{ExportCursor, export_page};
use crate::archive::read::{Problem, Reader};
use crate::error::Fault;
use crate::graph::model::Graph;
use crate::server::state::ServerState;

/// How long a text may be that is brought in, in bytes.
const MAX_IMPORT: usize = 64 * 1024 * 1024;
/// About how many bytes of lines one part has. An answer has them twice, as text and as data.
const PART: usize = 4 * 1024 * 1024;
/// How many bytes of lines an answer can have that has no parts.
const WHOLE: usize = 7 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
struct Export {
    /// Export everything with its history instead: all versions of entities, relations, documents and agents, and the
    /// changes that made them. import_graph can import it into an empty memory.
    history: Option<bool>,
    /// The `nextCursor` of the previous page. An export with history has a single page.
    cursor: Option<String>,
}

/// Either of them.
#[derive(Deserialize, JsonSchema)]
struct Import {
    /// The lines of a server-memory file: {"type":"entity",…} or {"type":"relation",…}. Or an export with history, for an
    /// empty memory.
    jsonl: Option<String>,
    /// Instead of `jsonl`: a DevFlow SQLite file (devflow.db) in base64.
    devflow: Option<String>,
    /// Reject a server-memory file that contains an error instead of skipping the invalid parts.
    strict: Option<bool>,
}

/// What is brought in.
enum ImportedFile {
    Graph(Graph, Reader),
    Whole(Vec<Numbered>),
}

impl Import {
    fn read(self) -> Result<ImportedFile, Fault> {
        let short = |field: &str, text: &str| match text.len() > MAX_IMPORT {
            true => {
                Err(Fault::input(field, format!("must have at most {MAX_IMPORT} bytes; import it in parts")))
            }
            false => Ok(()),
        };
        match (self.jsonl, self.devflow) {
            (Some(text), None) => {
                short("jsonl", &text)?;
                // Some editors put a mark of the byte order in front.
                let text = text.trim_start_matches('\u{feff}');
                match history::is(text) {
                    true => history::read(text).map(ImportedFile::Whole),
                    false => {
                        let mut reader = Reader::new(self.strict.unwrap_or_default());
                        let graph = reader.all(text)?;
                        graph.fits_one_call("jsonl")?;
                        Ok(ImportedFile::Graph(graph, reader))
                    }
                }
            }
            (None, Some(text)) => {
                short("devflow", &text)?;
                let file = BASE64_STANDARD.decode(text.trim());
                let file = file.map_err(|_| Fault::input("devflow", "is not valid base64"))?;
                let graph = devflow::read(file)?;
                graph.fits_one_call("devflow")?;
                Ok(ImportedFile::Graph(graph, Reader::default()))
            }
            _ => Err(Fault::input("jsonl", "pass either \"jsonl\" or \"devflow\"")),
        }
    }
}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let counts = |members: &[&str], more: Value| {
        let mut schema = object_schema(
            members.iter().map(|name| ((*name).to_owned(), json!({"type": "integer"}))).collect(),
        );
        for name in ["changes", "properties", "documents", "agents"] {
            schema["properties"][name] = json!({"type": "integer"});
        }
        for (name, of) in more.as_object().into_iter().flatten() {
            schema["properties"][name] = of.clone();
        }
        schema
    };
    let text = json!({"type": "string"});
    let mut exported = counts(&["entities", "relations"], json!({"nextCursor": text}));
    exported["properties"]["jsonl"] = text;
    exported["required"] = json!(["entities", "relations", "jsonl"]);
    let problems = json!({"problems": {"type": "array", "items": schema_of::<Problem>()}});
    vec![
        with_handler(state, export, read_tool(
            "export_graph",
            "Export Graph",
            "Export the knowledge graph as a server-memory file (JSONL), in pages if it is large, or everything with its \
             history",
        )
        .output_schema(exported)
        ),
        with_handler(state, import, write_tool(
            "import_graph",
            "Import Graph",
            "Import a server-memory file (JSONL) or a DevFlow file (SQLite) into the knowledge graph. Adds what is new and \
             reports what it skipped. An export with history can be imported into an empty memory",
        )
        .idempotent()
        .output_schema(counts(&["entities", "observations", "relations", "skipped"], problems))
        ),
    ]
}

async fn export(state: ServerState, args: Export, cx: Cx) -> Result<ToolResult, ToolError> {
    let memory = state.memory(&cx);
    if args.history.unwrap_or_default() {
        if args.cursor.is_some() {
            return Err(Fault::input("cursor", "cannot be combined with \"history\"").into());
        }
        let (jsonl, counts) = memory.view(|view| history::write(view, WHOLE)).await?;
        let mut structured = counts.to_json(true);
        structured["jsonl"] = (&*jsonl).into();
        return Ok(ToolResult::text(jsonl).structured(Json::from(structured)));
    }
    let from = args.cursor.as_deref().map_or(Ok(ExportCursor::FIRST), ExportCursor::parse)?;
    let part = memory.view(move |view| export_page(view, from, PART, true)).await?;
    let mut structured =
        json!({"entities": part.entities, "relations": part.relations, "jsonl": &*part.text});
    if part.properties > 0 {
        structured["properties"] = part.properties.into();
    }
    let mut result = ToolResult::text(part.text);
    if let Some(next) = part.next {
        let next = next.cursor();
        // Whoever sees the text only must not take it for everything.
        result = result.content(format!("There is more: call export_graph again with the cursor {next:?}."));
        structured["nextCursor"] = next.into();
    }
    Ok(result.structured(Json::from(structured)))
}

async fn import(state: ServerState, args: Import, cx: Cx) -> Result<ToolResult, ToolError> {
    let read = tokio::task::spawn_blocking(move || args.read()).await;
    let max_document = state.settings.max_document_bytes();
    let brought = read.map_err(ToolError::from_error)??;
    let counts = change(&state, &cx, "import_graph", move |change| match brought {
        ImportedFile::Graph(graph, reader) => {
            let mut told = add(change, graph)?.to_json(false);
            told["skipped"] = reader.skipped.into();
            if !reader.problems.is_empty() {
                told["problems"] = json!(reader.problems);
            }
            Ok(told)
        }
        ImportedFile::Whole(lines) => {
            let mut told = history::import(change, lines.into_iter().map(Ok), max_document)?.to_json(true);
            told["skipped"] = 0.into();
            Ok(told)
        }
    })
    .await?;
    json_result(counts)
}
