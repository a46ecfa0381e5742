//! `ingest_document`: a text, a file or a page becomes a document.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::{json_result, object_schema, schema_of, with_handler, write_tool};
use crate::documents::model::{Base, Document};
use crate::documents::write::{self, DocumentFields};
use crate::error::{Code, Fault, Result as Stored};
use crate::server::state::ServerState;
use crate::texts::{SourceText, check_text, file};

#[derive(Deserialize, JsonSchema)]
struct IngestDocument {
    /// The text itself. Give exactly one of text, url and file_path.
    text: Option<String>,
    /// The address of a public page to fetch.
    url: Option<String>,
    /// A file on the server's machine, below a folder that it may read.
    file_path: Option<String>,
    /// Instead of file_path.
    path: Option<String>,
    /// Its title. If it is not given, that of the page, its first heading or its first words.
    title: Option<String>,
    /// Which shelf it stands on; documents, if it is not given.
    knowledge_base: Option<Base>,
    /// Words to find it by.
    tags: Option<Vec<String>>,
    /// Anything else about it.
    metadata: Option<Map<String, Value>>,
    /// Your own tenant, if you say it at all.
    #[expect(dead_code, reason = "whose memory it is, is read where all tools are told")]
    tenant_id: Option<String>,
}

/// Where a document is taken from.
enum Origin {
    Text(String),
    Url(String),
    File(&'static str, String),
}

impl IngestDocument {
    fn from(&mut self) -> Stored<Origin> {
        let given = [
            self.text.take().map(Origin::Text),
            self.url.take().map(Origin::Url),
            self.file_path.take().map(|path| Origin::File("file_path", path)),
            self.path.take().map(|path| Origin::File("path", path)),
        ];
        let mut given = given.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(one), None) => Ok(one),
            _ => Err(Fault::input("text", "give exactly one of \"text\", \"url\" and \"file_path\"")),
        }
    }
}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let output = object_schema(json!({
        "status": {"type": "string"},
        "outcome": {"enum": ["created", "updated", "unchanged"]},
        "document": schema_of::<Document>(),
    }));
    vec![with_handler(
        state,
        ingest_document,
        write_tool(
            "ingest_document",
            "Ingest Document",
            "Keep a text, a public web page or a file in the knowledge base, so that search_knowledge_base finds it. The \
             same page or file again becomes a new version of the same document; older versions stay",
        )
        .idempotent()
        .open_world(true)
        .output_schema(output),
    )]
}

async fn ingest_document(
    state: ServerState,
    mut args: IngestDocument,
    cx: Cx,
) -> Result<ToolResult, ToolError> {
    let from = args.from()?;
    let given = DocumentFields {
        title: args.title.map(|title| title.trim().to_owned()),
        base: args.knowledge_base,
        tags: args.tags,
        metadata: args.metadata,
    };
    given.check()?;
    let settings = &state.settings;
    let max = settings.max_document_bytes();
    let taken = match from {
        Origin::Text(text) => {
            let is_code = given.base == Some(Base::Codebase);
            aside(move || {
                check_text("text", &text, max)?;
                SourceText::from_text(&text, is_code)?.readable("text", max)
            })
            .await?
        }
        Origin::Url(url) => {
            let page = state.fetcher.fetch(url.trim()).await?;
            aside(move || page.readable("url", max)).await?
        }
        Origin::File(field, path) => {
            let folders = settings.folders.clone();
            aside(move || file::read(field, &path, &folders, max)?.readable(field, max)).await?
        }
    };
    let kept =
        state.memory(&cx).change("ingest_document", move |change| write::ingest(change, given, taken)).await;
    let (document, done) = kept?;
    let structured = json!({"status": "success", "outcome": done.as_str(), "document": document});
    json_result(structured)
}

/// Does what takes a while without holding up others.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> Stored<T> + Send + 'static) -> Stored<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Fault::new(Code::Outside, "The document could not be read")))
}
