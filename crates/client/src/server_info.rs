//! [`ServerInfo`]: what a server says about itself.

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Era, Feature, Json, Object, Revision, meta, tasks_extension};

/// What a server said about itself when it was first spoken to.
#[derive(Debug, Clone)]
pub struct ServerInfo {
    /// The revision that is spoken with it.
    pub revision: Revision,
    /// The revisions that it says it supports; only the spoken one for a legacy server.
    pub supported: Vec<String>,
    /// Its capabilities as they came.
    pub capabilities: Json,
    /// Its name and version as they came.
    pub info: Option<Json>,
    /// What it says a model should know.
    pub instructions: Option<String>,
    /// How it is reached: `stdio`, `http`, `sse` or `local`.
    pub transport: &'static str,
}

impl ServerInfo {
    /// Which era is spoken.
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// Whether the server declared a capability, by its path: `tools`, `resources.subscribe`.
    pub fn has_capability(&self, path: &str) -> bool {
        let mut here = self.capabilities.clone();
        for name in path.split('.') {
            match Object::of(&here).and_then(|object| object.json(name)) {
                Some(inner) => here = inner,
                None => return false,
            }
        }
        !matches!(here.as_str(), "false" | "null")
    }

    /// The server's name, as far as it has told one.
    pub fn name(&self) -> Option<String> {
        self.said("name")
    }

    /// The server's version, as far as it has told one.
    pub fn version(&self) -> Option<String> {
        self.said("version")
    }

    fn said(&self, member: &str) -> Option<String> {
        Object::of(self.info.as_ref()?)?.str(member).map(|text| text.into_owned())
    }

    /// From the result of `server/discover`.
    pub(crate) fn discovered(result: &Object, revision: Revision, transport: &'static str) -> ServerInfo {
        let supported = result.json("supportedVersions").and_then(|v| v.to().ok()).unwrap_or_default();
        ServerInfo {
            revision,
            supported,
            capabilities: detached(result.json("capabilities")).unwrap_or_else(Json::empty_object),
            info: result.object("_meta").and_then(|m| detached(m.json(meta::SERVER_INFO))),
            instructions: result.str("instructions").map(|text| text.into_owned()),
            transport,
        }
    }

    /// From the result of `initialize`.
    pub(crate) fn initialized(result: &Object, revision: Revision, transport: &'static str) -> ServerInfo {
        ServerInfo {
            revision,
            supported: vec![revision.as_str().to_owned()],
            capabilities: detached(result.json("capabilities")).unwrap_or_else(Json::empty_object),
            info: detached(result.json("serverInfo")),
            instructions: result.str("instructions").map(|text| text.into_owned()),
            transport,
        }
    }

    /// Whether a legacy server lets tools be called as tasks.
    pub(crate) fn offers_tasks(&self) -> bool {
        self.revision.allows(Feature::CoreTasks) && self.has_capability("tasks.requests.tools.call")
    }

    /// The result of `server/discover` that stands for this legacy server behind Tidegate, which speaks every revision,
    /// as a caller of `revision` gets it.
    pub(crate) fn to_discovery(&self, revision: Revision) -> Json {
        let mut w = ObjectWriter::with_capacity(512);
        let versions: Vec<_> = Revision::ALL.iter().rev().map(|r| r.as_str()).collect();
        w.str("resultType", "complete").value("supportedVersions", &versions);
        w.json("capabilities", &self.capabilities_for(revision));
        if let Some(info) = &self.info {
            let mut tag = ObjectWriter::new();
            tag.json(meta::SERVER_INFO, info);
            w.json("_meta", &tag.finish());
        }
        if let Some(instructions) = &self.instructions {
            w.str("instructions", instructions);
        }
        w.raw("ttlMs", "0").str("cacheScope", "private");
        w.finish()
    }

    /// Capabilities with tasks in the words of the caller: an extension today, part of the core in 2025-11-25.
    fn capabilities_for(&self, revision: Revision) -> Json {
        let Some(all) = Object::of(&self.capabilities) else { return self.capabilities.clone() };
        match revision.is_modern() {
            true => with_extension(&all, self.offers_tasks()),
            false if self.offers_tasks() => all.with("tasks", &Json::trusted(CORE_TASKS)),
            false => all.without(&["tasks"]),
        }
    }
}

/// What is offered to callers of 2025-11-25 that want tasks: the edge knows how to list them.
pub(crate) const CORE_TASKS: &str = r#"{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#;

/// Capabilities without the tasks of 2025-11-25, and with those of today if there are any.
fn with_extension(all: &Object, tasks: bool) -> Json {
    let rest = all.without(&["tasks"]);
    match Object::of(&rest) {
        Some(rest) if tasks => {
            let extensions = rest.object("extensions").unwrap_or_else(Object::empty);
            rest.with("extensions", &extensions.with(tasks_extension(), &Json::empty_object()))
        }
        _ => rest,
    }
}

/// A copy with a buffer of its own: this outlives the message they came in.
fn detached(json: Option<Json>) -> Option<Json> {
    json.map(|json| Json::trusted(bytestring::ByteString::from(json.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_by_path() {
        let result = Json::trusted(
            r#"{"capabilities":{"tools":{"listChanged":false,"echo":{"name":"echo"}},"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"1"}}"#,
        );
        let server_info =
            ServerInfo::initialized(&Object::of(&result).unwrap(), Revision::V2025_11_25, "stdio");
        for (path, has) in [
            ("tools", true),
            ("tools.listChanged", false),
            ("resources.subscribe", true),
            ("resources.listChanged", false),
            ("prompts", false),
        ] {
            assert_eq!(server_info.has_capability(path), has, "{path}");
        }
        assert_eq!(server_info.name().as_deref(), Some("s"));
    }

    #[test]
    fn tasks_in_the_words_of_the_caller() {
        let offered = |capabilities: &str, spoken, asked| {
            let result = Json::trusted(format!(r#"{{"capabilities":{capabilities}}}"#));
            let server_info = ServerInfo::initialized(&Object::of(&result).unwrap(), spoken, "stdio");
            server_info.capabilities_for(asked).as_str().to_owned()
        };
        let (old, new) = (Revision::V2025_11_25, Revision::LATEST_MODERN);
        let tasks = r#"{"tools": {},"tasks":{"requests":{"tools":{"call":{}}}}}"#;
        let today = r#"{"tools": {},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
        assert_eq!(offered(tasks, old, new), today);
        assert!(offered(tasks, old, old).contains(CORE_TASKS));
        // Whoever lets nothing be called as a task, or speaks a revision without tasks, has none.
        assert_eq!(offered(r#"{"tasks":{"list":{}}}"#, old, new), "{}");
        assert_eq!(offered(r#"{"tasks":{"list":{}}}"#, old, old), "{}");
        assert_eq!(offered(tasks, Revision::V2025_06_18, new), r#"{"tools": {}}"#);
    }
}
