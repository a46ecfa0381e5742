//! Resources: each document, for clients that show or watch it.

use tidegate_server::{
    Completing, Cx, PageRequest, Resource, ResourceContents, ResourcePage, ResourceTemplate, Server, Symbol,
    ToolError, Vars,
};

use super::{OFFERED, moment, number_after, with_tenant};
use crate::documents::model::{self, Document};
use crate::documents::read;
use crate::server::state::ServerState;
use crate::server::tenant;
use crate::store::View;
use crate::texts::abbreviated;
use crate::uri::qualified;

/// One document.
const DOCUMENT: &str = "memory://documents/{id}";

pub(crate) fn add(server: Server, state: &ServerState) -> Server {
    let listed = state.clone();
    with_tenant(server, state, DOCUMENT, document).resource_source(move |request: PageRequest, cx: Cx| {
        let (memory, chosen) = (listed.admitted_memory(&cx), tenant::chosen(&cx));
        async move {
            let memory = memory?;
            let (before, limit) = (number_after(&request)?, request.limit);
            let mut found = memory.view(move |view| read::list(view, None, before, limit + 1)).await?;
            let more = found.len() > limit;
            found.truncate(limit);
            let page = ResourcePage::new(found.iter().map(|kept| entry(&kept.document, chosen.as_deref())));
            Ok(match found.last().filter(|_| more) {
                Some(last) => page.next(last.key.to_string()),
                None => page,
            })
        }
    })
}

fn document(state: &ServerState, at: &str) -> ResourceTemplate {
    let (reader, names) = (state.clone(), state.clone());
    ResourceTemplate::new(at, "document")
        .title("Document")
        .description("The text of a document")
        .reader(move |vars: Vars, cx: Cx| {
            let memory = reader.admitted_memory(&cx);
            async move {
                let memory = memory?;
                let none = |why: &str| {
                    let what = format!("There is no document at {}{why}", abbreviated(vars.uri()));
                    ToolError::new(Symbol::ResourceNotFound, what)
                };
                let key = model::key("id", vars.get("id").unwrap_or_default())
                    .map_err(|fault| none(&format!(": {}", fault.message)))?;
                let found = memory.view(move |view| {
                    let Some(kept) = read::find(view, key)? else { return Ok(None) };
                    let text = read::text(view, &kept)?;
                    Ok(Some((kept, text)))
                });
                let Some((kept, text)) = found.await? else {
                    memory.exists().await?;
                    return Err(none(""));
                };
                let contents = ResourceContents::text("", text).mime_type(kept.document.mime_type);
                Ok(contents)
            }
        })
        .complete("id", move |typed: Completing, cx: Cx| {
            let memory = names.admitted_memory(&cx);
            async move {
                let Ok(memory) = memory else { return Vec::new() };
                let found = memory.view(move |view| ids(view, &typed)).await;
                found.unwrap_or_default()
            }
        })
}

/// A document as it is listed.
fn entry(document: &Document, chosen: Option<&str>) -> Resource {
    let from = match document.source.as_str() {
        "text" => String::new(),
        source => format!(", from {}", abbreviated(source)),
    };
    Resource::new(qualified(&document.uri, chosen), document.id.clone())
        .title(document.title.clone())
        .description(format!("A document in the knowledge base {}{from}", document.knowledge_base))
        .mime_type(document.mime_type.clone())
        .size(document.bytes.max(0) as u64)
        .last_modified(moment(document.updated_at))
}

/// The ids of documents whose id begins so: the newest, if nothing is typed yet that tells them apart.
pub(crate) fn numbers(view: &mut View<'_>, typed: &str) -> crate::error::Result<Vec<String>> {
    if "doc-".starts_with(typed) {
        let newest = read::list(view, None, None, OFFERED)?;
        return Ok(newest.into_iter().map(|kept| kept.document.id).collect());
    }
    let digits = typed.strip_prefix("doc-").unwrap_or_default();
    Ok(read::by_number_prefix(view, digits, OFFERED)?.into_iter().map(model::id).collect())
}

/// The ids of documents whose id or title begins so: the newest, if nothing is typed yet.
pub(crate) fn ids(view: &mut View<'_>, typed: &Completing) -> crate::error::Result<Vec<String>> {
    let mut found = numbers(view, &typed.value)?;
    for (key, _) in read::by_title_prefix(view, &typed.value, OFFERED)? {
        let id = model::id(key);
        if !found.contains(&id) {
            found.push(id);
        }
    }
    found.truncate(OFFERED);
    Ok(found)
}
