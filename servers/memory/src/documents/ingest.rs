//! `ingest_document`: a text, a file or a page becomes a document.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_server::{Cx, Tool, ToolError, ToolResult};
use url::Url;

use super::keep::{self, Given};
use super::kind::Kind;
use super::model::{Base, Document, MAX_BYTES, title_of};
use super::{decode, file, html, tenant};
use crate::Recall;
use crate::store::{Code, Fault, Result as Stored};
use crate::tools::{changing, memory, object, of, on, told};

/// A text that was taken in.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub(super) text: String,
    pub(super) kind: Kind,
    /// Which page or file it is, if it is one: the same one replaces its older version.
    pub(super) origin: Option<String>,
    /// Where it came from, for people.
    pub(super) source: String,
    /// What it is called there.
    pub(super) name: Option<String>,
    /// The address that its links are relative to.
    pub(super) base: Option<Url>,
}

impl Taken {
    /// A text that a caller gave.
    pub(super) fn given(text: &str, base: Option<Base>) -> Stored<Taken> {
        let text = decode::tidy("text", text)?;
        let kind = match Kind::of_text(&text) {
            Kind::Plain | Kind::Markdown if base == Some(Base::Codebase) => Kind::Code,
            kind => kind,
        };
        Ok(Taken { text, kind, origin: None, source: "text".to_owned(), name: None, base: None })
    }

    /// HTML as the text that it shows.
    pub(super) fn readable(mut self, field: &str, max: usize) -> Stored<Taken> {
        if self.kind == Kind::Html {
            let page = html::read(&self.text, self.base.as_ref());
            self.text = page.text;
            self.name = page.title.or(self.name);
        }
        keep::check_text(field, &self.text, max)?;
        Ok(self)
    }

    /// What it is called: the title of a page, its first heading, the name of a file, or its first words.
    pub(super) fn title(&self) -> String {
        let heading = match self.kind {
            Kind::Markdown => self.text.lines().find_map(|line| line.trim_start().strip_prefix("# ")),
            _ => None,
        };
        let first = || self.text.lines().find(|line| !line.trim().is_empty());
        let words = |line: &str| title_of(&line.chars().take(100).collect::<String>());
        let named = || self.name.as_deref().and_then(title_of);
        let title = match self.kind {
            Kind::Html => named(),
            _ => heading.and_then(title_of).or_else(named),
        };
        title.or_else(|| first().and_then(words)).unwrap_or_else(|| "Untitled".to_owned())
    }
}

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
    tenant_id: Option<String>,
}

/// Where a document is taken from.
enum From {
    Text(String),
    Url(String),
    File(&'static str, String),
}

impl IngestDocument {
    fn from(&mut self) -> Stored<From> {
        let given = [
            self.text.take().map(From::Text),
            self.url.take().map(From::Url),
            self.file_path.take().map(|path| From::File("file_path", path)),
            self.path.take().map(|path| From::File("path", path)),
        ];
        let mut given = given.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(one), None) => Ok(one),
            _ => Err(Fault::input("text", "give exactly one of \"text\", \"url\" and \"file_path\"")),
        }
    }
}

pub(super) fn tools(recall: &Recall) -> Vec<Tool> {
    let output = object(json!({
        "status": {"type": "string"},
        "outcome": {"enum": ["created", "updated", "unchanged"]},
        "document": of::<Document>(),
    }));
    vec![on(
        recall,
        ingest_document,
        changing(
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

async fn ingest_document(recall: Recall, mut args: IngestDocument, cx: Cx) -> Result<ToolResult, ToolError> {
    tenant::check(cx.principal(), args.tenant_id.as_deref())?;
    let from = args.from()?;
    let given = Given {
        title: args.title.map(|title| title.trim().to_owned()),
        base: args.knowledge_base,
        tags: args.tags,
        metadata: args.metadata,
    };
    given.check()?;
    let options = &recall.options;
    let max = options.max_document_bytes.unwrap_or(MAX_BYTES);
    let taken = match from {
        From::Text(text) => {
            let base = given.base;
            aside(move || {
                keep::check_text("text", &text, max)?;
                Taken::given(&text, base)?.readable("text", max)
            })
            .await?
        }
        From::Url(url) => {
            let page = recall.pages.fetch(url.trim()).await?;
            aside(move || page.readable("url", max)).await?
        }
        From::File(field, path) => {
            let folders = options.folders.clone();
            aside(move || file::read(field, &path, &folders, max)?.readable(field, max)).await?
        }
    };
    let kept = memory(&recall, &cx)
        .change("ingest_document", move |change| keep::ingest(change, given, taken))
        .await;
    let (document, done) = kept?;
    let structured = json!({"status": "success", "outcome": done.as_str(), "document": document});
    told(&structured, structured.clone())
}

/// Does what takes a while without holding up others.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> Stored<T> + Send + 'static) -> Stored<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Fault::new(Code::Outside, "The document could not be read")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_found_for_everything() {
        let titled = |text: &str, name: Option<&str>| {
            let taken = Taken::given(text, None).unwrap();
            Taken { name: name.map(str::to_owned), ..taken }.readable("text", 1_000).unwrap().title()
        };
        assert_eq!(titled("intro\n# The book\n", Some("a.md")), "The book");
        assert_eq!(titled("<html><title>Page</title><h1>Other</h1>", Some("a.html")), "Page");
        assert_eq!(titled("some words", Some("notes.txt")), "notes.txt");
        assert_eq!(titled("\n\n first   line \nsecond", None), "first line");
        assert_eq!(titled("\u{1b}\u{8}", None), "Untitled");
    }
}
