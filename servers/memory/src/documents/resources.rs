//! Resources: each document, for clients that show or watch it.
//!
//! They are not listed one by one, because a server has one list and each tenant its own documents: the template completes
//! ids, and `list_documents` has the addresses.

use tidegate_server::{
    Completing, Cx, ResourceContents, ResourceTemplate, Server, ServerHandle, Symbol, ToolError, Vars,
};

use super::{model, read};
use crate::Recall;
use crate::store::View;
use crate::tools::memory;

/// One document.
const DOCUMENT: &str = "memory://documents/{id}";
/// How many are offered as completions.
const OFFERED: usize = 100;

pub(super) fn add(server: Server, recall: &Recall) -> Server {
    let (reader, names) = (recall.clone(), recall.clone());
    server.resource_template(
        ResourceTemplate::new(DOCUMENT, "document")
            .title("Document")
            .description("The text of a document; list_documents has the addresses")
            .reader(move |vars: Vars, cx: Cx| {
                let memory = memory(&reader, &cx);
                async move {
                    let none = || {
                        let what = format!("There is no document at {}", model::shown(vars.uri()));
                        ToolError::new(Symbol::ResourceNotFound, what)
                    };
                    let key = model::key("id", vars.get("id").unwrap_or_default()).map_err(|_| none())?;
                    let found = memory.view(move |view| {
                        let Some(kept) = read::find(view, key)? else { return Ok(None) };
                        let text = read::text(view, &kept)?;
                        Ok(Some((kept, text)))
                    });
                    let (kept, text) = found.await?.ok_or_else(none)?;
                    let contents = ResourceContents::text("", text).mime_type(kept.document.mime_type);
                    Ok(contents)
                }
            })
            .complete("id", move |typed: Completing, cx: Cx| {
                let memory = memory(&names, &cx);
                async move {
                    let found = memory.view(move |view| ids(view, &typed)).await;
                    found.unwrap_or_default()
                }
            }),
    )
}

/// The ids of documents whose id or title begins so.
pub(super) fn ids(view: &mut View<'_>, typed: &Completing) -> crate::store::Result<Vec<String>> {
    let known = read::list(view, None, None, OFFERED)?.into_iter().map(|kept| kept.document.id);
    let mut found = typed.filter(known);
    for (key, _) in read::titled(view, &typed.value, OFFERED)? {
        let id = model::id(key);
        if !found.contains(&id) {
            found.push(id);
        }
    }
    Ok(found)
}

/// Tells subscribers that a document has changed.
pub(super) fn changed(server: &ServerHandle, uri: &str) {
    server.resource_updated(uri);
}
