//! Tools that list, show, change and forget documents.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::{json_result, object_schema, read_tool, schema_of, with_handler, write_tool};
use crate::documents::model::{self, Base, Document};
use crate::documents::read;
use crate::documents::write::{self, DocumentFields, NewVersion};
use crate::error::{Code, Fault};
use crate::graph::model::within;
use crate::server::state::ServerState;
use crate::texts::{SourceText, check_text};

/// How many documents are listed if nothing else is said, and at most.
const LISTED: usize = 20;
const MAX_LISTED: usize = 100;
/// How many characters of a text are shown if nothing else is said, and at most.
const SHOWN: i64 = 20_000;
const MAX_SHOWN: i64 = 100_000;
/// How many versions are told if nothing else is said, and at most.
const VERSIONS: usize = 100;
const MAX_VERSIONS: usize = 1_000;

#[derive(Deserialize, JsonSchema)]
struct ListDocuments {
    /// Only documents in this knowledge base.
    knowledge_base: Option<Base>,
    /// Maximum number of documents, up to 100. Default: 20.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
    /// The nextCursor of the previous list.
    cursor: Option<String>,
}

/// Which document: its id or its address.
#[derive(Deserialize, JsonSchema)]
struct Which {
    /// The id of the document, such as doc-1.
    id: Option<String>,
    /// Instead of id: its URI, such as memory://documents/doc-1.
    uri: Option<String>,
}

impl Which {
    fn key(&self) -> Result<i64, Fault> {
        match (&self.id, &self.uri) {
            (Some(id), None) => model::key("id", id),
            (None, Some(uri)) => model::key("uri", uri),
            (Some(id), Some(uri)) if model::key("id", id)? == model::key("uri", uri)? => model::key("id", id),
            _ => Err(Fault::input("id", "give either \"id\" or \"uri\"")),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct GetDocument {
    #[serde(flatten)]
    which: Which,
    /// The character to start at.
    #[schemars(range(min = 0))]
    offset: Option<i64>,
    /// Maximum number of characters, up to 100000. Default: 20000.
    #[schemars(range(min = 1, max = 100_000))]
    limit: Option<i64>,
    /// An older version, also of a document that was deleted.
    #[schemars(range(min = 1))]
    version: Option<i64>,
}

#[derive(Deserialize, JsonSchema)]
struct DocumentHistory {
    #[serde(flatten)]
    which: Which,
    /// Maximum number of versions, counted from the last, up to 1000. Default: 100.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<i64>,
    /// Only versions before this one, to look further back.
    #[schemars(range(min = 1))]
    before_version: Option<i64>,
}

#[derive(Deserialize, JsonSchema)]
struct UpdateDocument {
    #[serde(flatten)]
    which: Which,
    /// A new title.
    title: Option<String>,
    /// The new list of tags.
    tags: Option<Vec<String>>,
    /// Metadata fields to add or replace.
    metadata: Option<Map<String, Value>>,
    /// The new text.
    text: Option<String>,
    /// The knowledge base to move it to.
    knowledge_base: Option<Base>,
}

#[derive(Deserialize, JsonSchema)]
struct DeleteDocument {
    #[serde(flatten)]
    which: Which,
}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let document = schema_of::<Document>;
    let mut list = object_schema(json!({
        "documents": {"type": "array", "items": document()}, "count": {"type": "integer"},
    }));
    list["properties"]["nextCursor"] = json!({"type": "string"});
    let mut shown = document();
    shown["properties"]["text"] = json!({"type": "string"});
    shown["properties"]["offset"] = json!({"type": "integer"});
    shown["properties"]["nextOffset"] = json!({"type": "integer"});
    vec![
        with_handler(
            state,
            list_documents,
            read_tool(
                "list_documents",
                "List Documents",
                "List the documents of the knowledge base, newest first",
            )
            .output_schema(list),
        ),
        with_handler(
            state,
            get_document,
            read_tool(
                "get_document",
                "Get Document",
                "Get a document with its text or a part of it, in the current or an older version",
            )
            .output_schema(shown),
        ),
        with_handler(
            state,
            get_document_history,
            read_tool(
                "get_document_history",
                "Get Document History",
                "Get the versions of a document without their texts, oldest first. Also works for a deleted document",
            )
            .output_schema(object_schema(json!({
                "id": {"type": "string"},
                "history": {"type": "array", "items": schema_of::<read::Version>()},
                "totalVersions": {"type": "integer"},
                "truncated": {"type": "boolean"},
            }))),
        ),
        with_handler(
            state,
            update_document,
            write_tool(
                "update_document",
                "Update Document",
                "Change the title, tags, metadata or text of a document. The old version is kept",
            )
            .idempotent()
            .output_schema(object_schema(json!({
                "status": {"type": "string"},
                "outcome": {"enum": ["updated", "unchanged"]},
                "document": document(),
            }))),
        ),
        with_handler(
            state,
            delete_document,
            write_tool(
                "delete_document",
                "Delete Document",
                "Delete a document. Its versions can still be read",
            )
            .destructive(true)
            .idempotent()
            .output_schema(object_schema(json!({
                "success": {"type": "boolean"}, "message": {"type": "string"}, "id": {"type": "string"},
            }))),
        ),
    ]
}

async fn list_documents(state: ServerState, args: ListDocuments, cx: Cx) -> Result<ToolResult, ToolError> {
    let limit = args.limit.unwrap_or(LISTED);
    if !(1..=MAX_LISTED).contains(&limit) {
        return Err(Fault::input("limit", format!("must be between 1 and {MAX_LISTED}")).into());
    }
    let before = args.cursor.as_deref().map(|cursor| {
        let wrong = || Fault::input("cursor", "must be the nextCursor of the previous list");
        cursor.strip_prefix("before-").and_then(|key| key.parse().ok()).ok_or_else(wrong)
    });
    let before: Option<i64> = before.transpose()?;
    // One more than wanted, to see whether there are more.
    let mut found =
        state.memory(&cx).view(move |view| read::list(view, args.knowledge_base, before, limit + 1)).await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let documents: Vec<_> = found.iter().map(|kept| &kept.document).collect();
    let mut structured = json!({"documents": documents, "count": documents.len()});
    if let Some(last) = found.last().filter(|_| more) {
        structured["nextCursor"] = json!(format!("before-{}", last.key));
    }
    json_result(structured)
}

async fn get_document(state: ServerState, args: GetDocument, cx: Cx) -> Result<ToolResult, ToolError> {
    let key = args.which.key()?;
    let (offset, limit) = (args.offset.unwrap_or(0), args.limit.unwrap_or(SHOWN));
    if offset < 0 {
        return Err(Fault::input("offset", "must not be negative").into());
    }
    if !(1..=MAX_SHOWN).contains(&limit) {
        return Err(Fault::input("limit", format!("must be between 1 and {MAX_SHOWN}")).into());
    }
    let version = args.version;
    let (document, text) = state
        .memory(&cx)
        .view(move |view| {
            let kept = match version {
                None => match read::find(view, key)? {
                    Some(kept) => kept,
                    None => return Err(gone(read::last(view, key)?, key)),
                },
                Some(version) => read::version(view, key, version)?.ok_or_else(|| {
                    let what = format!("There is no version {version} of a document {:?}", model::id(key));
                    Fault::new(Code::NotFound, what)
                })?,
            };
            let text = read::text_range(view, &kept, offset, limit)?;
            Ok((kept.document, text))
        })
        .await?;
    let end = offset.saturating_add(limit);
    let mut structured = json!(document);
    structured["offset"] = json!(offset);
    if end < document.characters {
        structured["nextOffset"] = json!(end);
    }
    structured["text"] = json!(text);
    json_result(structured)
}

async fn get_document_history(
    state: ServerState,
    args: DocumentHistory,
    cx: Cx,
) -> Result<ToolResult, ToolError> {
    let key = args.which.key()?;
    let limit = within("limit", args.limit, VERSIONS, MAX_VERSIONS)?;
    let before = args.before_version;
    let (history, total) =
        state.memory(&cx).view(move |view| read::history(view, key, limit, before)).await?;
    if total == 0 {
        return Err(model::none(key).into());
    }
    let structured = json!({
        "id": model::id(key), "totalVersions": total, "truncated": (history.len() as i64) < total,
        "history": history,
    });
    json_result(structured)
}

/// What to say of a document that is not there, and maybe was.
fn gone(last: Option<read::DocumentRow>, key: i64) -> Fault {
    match last {
        Some(kept) if kept.gone.is_some() => {
            let version = kept.document.version;
            let what =
                format!("The document {:?} was deleted; \"version\": {version} is its last", model::id(key));
            Fault::new(Code::NotFound, what)
        }
        _ => model::none(key),
    }
}

async fn update_document(state: ServerState, args: UpdateDocument, cx: Cx) -> Result<ToolResult, ToolError> {
    let key = args.which.key()?;
    let given = DocumentFields {
        title: args.title.map(|title| title.trim().to_owned()),
        base: args.knowledge_base,
        tags: args.tags,
        metadata: args.metadata,
    };
    given.check()?;
    let max = state.settings.max_document_bytes();
    let text = match args.text {
        Some(text) => {
            check_text("text", &text, max)?;
            Some(SourceText::from_text(&text, given.base == Some(Base::Codebase))?.readable("text", max)?)
        }
        None => None,
    };
    let work = move |change: &mut crate::store::Change<'_>| {
        let kept = read::require(change, key)?;
        let old = write::as_it_is(&kept);
        let mut metadata = old.metadata.clone();
        metadata.extend(given.metadata.unwrap_or_default());
        model::metadata(&metadata)?;
        let wanted = NewVersion {
            title: given.title.unwrap_or(old.title.clone()),
            base: given.base.unwrap_or(old.base),
            tags: given.tags.unwrap_or(old.tags.clone()),
            metadata,
            kind: text.as_ref().map_or(old.kind, |text| text.kind),
            text: text.map(|text| text.text),
            ..old
        };
        write::replace(change, kept, wanted)
    };
    let (document, done) = state.memory(&cx).change("update_document", work).await?;
    let structured = json!({"status": "success", "outcome": done.as_str(), "document": document});
    json_result(structured)
}

async fn delete_document(state: ServerState, args: DeleteDocument, cx: Cx) -> Result<ToolResult, ToolError> {
    let key = args.which.key()?;
    let document =
        state.memory(&cx).change("delete_document", move |change| write::delete(change, key)).await?;
    let message = format!("Document {:?} deleted; its versions can still be read", document.title);
    let structured = json!({"success": true, "message": message, "id": document.id});
    json_result(structured)
}
