//! `server/discover`: what the server is and can do. The legacy edge makes `initialize` of it.

use serde_json::{Map, Value, json};
use tidegate_protocol::content::Icon;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Feature, Json, Revision, meta, tasks_extension};
use tidegate_service::{Call, OWN_RESOURCES, Reply, UNLISTED};

use crate::batch;
use crate::server::Core;

/// Who the server is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Info {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) website_url: Option<String>,
    pub(crate) icons: Vec<Icon>,
    pub(crate) instructions: Option<String>,
    /// The entry of each modern result's `_meta`, written once.
    entry: String,
}

impl Info {
    pub(crate) fn new(name: String, version: String) -> Info {
        Info { name, version, ..Info::default() }
    }

    /// Writes what is written once.
    pub(crate) fn settle(&mut self) {
        let mut short = ObjectWriter::new();
        short.str("name", &self.name).str("version", &self.version);
        self.entry = format!("{}:{}", Json::string(meta::SERVER_INFO), short.finish());
    }

    /// `"io.modelcontextprotocol/serverInfo":{…}` with name and version, for every result.
    pub(crate) fn meta_entry(&self) -> &str {
        &self.entry
    }

    fn full(&self) -> Json {
        let mut w = ObjectWriter::new();
        w.str("name", &self.name).str("version", &self.version);
        for (member, value) in
            [("title", &self.title), ("description", &self.description), ("websiteUrl", &self.website_url)]
        {
            if let Some(value) = value {
                w.str(member, value);
            }
        }
        if !self.icons.is_empty() {
            w.value("icons", &self.icons);
        }
        w.finish()
    }
}

/// Answers in every revision, because the legacy edge asks on behalf of its clients.
pub(crate) fn discover(core: &Core, call: &Call) -> Reply {
    let revision = call.context.revision;
    // All of them: which are spoken is the edge's business, and an edge that speaks fewer says so.
    let versions = Revision::ALL.map(Revision::as_str);
    let mut w = ObjectWriter::with_capacity(512);
    if revision.is_modern() {
        w.str("resultType", "complete");
    }
    w.value("supportedVersions", &versions).json("capabilities", &capabilities(core, revision));
    if let Some(instructions) = &core.info.instructions {
        w.str("instructions", instructions);
    }
    if revision.is_modern() {
        core.settings.cache.write_members(&mut w);
    }
    let mut meta = ObjectWriter::new();
    meta.json(meta::SERVER_INFO, &core.info.full());
    w.json("_meta", &meta.finish());
    Reply::Complete(w.finish())
}

/// What is on offer, in the words of `revision`.
fn capabilities(core: &Core, revision: Revision) -> Json {
    let registry = core.registry.load();
    let has = registry.kinds;
    let mut all = Map::new();
    if has.tools {
        let mut tools = json!({"listChanged": true});
        if core.settings.tools_in_capabilities {
            for tool in registry.tools().filter(|tool| tool.listed && tool.is_public()) {
                tools[&tool.name] = tool.definition(revision).to().unwrap_or_default();
            }
        }
        all.insert("tools".into(), tools);
    }
    if has.prompts {
        all.insert("prompts".into(), json!({"listChanged": true}));
    }
    if has.resources {
        all.insert("resources".into(), json!({"subscribe": true, "listChanged": true}));
    }
    if has.completions && revision.allows(Feature::CompletionsCapability) {
        all.insert("completions".into(), json!({}));
    }
    all.insert("logging".into(), json!({}));
    if has.tasks && revision.allows(Feature::CoreTasks) {
        all.insert("tasks".into(), json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}));
    }
    let batch = core.settings.call_batch && has.tools;
    let mut experimental = Map::new();
    if batch && !revision.allows(Feature::Extensions) {
        experimental.insert(batch::EXTENSION.into(), json!({}));
    }
    if registry.tools().any(|tool| !tool.listed) {
        experimental.insert(UNLISTED.into(), json!({}));
    }
    if !registry.sources.is_empty() {
        experimental.insert(OWN_RESOURCES.into(), json!({}));
    }
    if !experimental.is_empty() {
        all.insert("experimental".into(), Value::Object(experimental));
    }
    if revision.allows(Feature::Extensions) {
        let mut extensions = core.extensions.clone();
        if batch {
            extensions.insert(batch::EXTENSION.into(), json!({}));
        }
        if has.tasks {
            extensions.insert(tasks_extension().into(), json!({}));
        }
        if !extensions.is_empty() {
            all.insert("extensions".into(), Value::Object(extensions));
        }
    }
    Json::from(Value::Object(all))
}
