//! [`ServerFacts`]: what a server says about itself.

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Era, Json, Object, Revision, meta};

/// What a server said about itself when it was first spoken to.
#[derive(Debug, Clone)]
pub struct ServerFacts {
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

impl ServerFacts {
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
    pub(crate) fn discovered(result: &Object, revision: Revision, transport: &'static str) -> ServerFacts {
        let supported = result.json("supportedVersions").and_then(|v| v.to().ok()).unwrap_or_default();
        ServerFacts {
            revision,
            supported,
            capabilities: detached(result.json("capabilities")).unwrap_or_else(Json::empty_object),
            info: result.object("_meta").and_then(|m| detached(m.json(meta::SERVER_INFO))),
            instructions: result.str("instructions").map(|text| text.into_owned()),
            transport,
        }
    }

    /// From the result of `initialize`.
    pub(crate) fn initialized(result: &Object, revision: Revision, transport: &'static str) -> ServerFacts {
        ServerFacts {
            revision,
            supported: vec![revision.as_str().to_owned()],
            capabilities: detached(result.json("capabilities")).unwrap_or_else(Json::empty_object),
            info: detached(result.json("serverInfo")),
            instructions: result.str("instructions").map(|text| text.into_owned()),
            transport,
        }
    }

    /// The result of `server/discover` that stands for this server behind Tidegate, which speaks every revision.
    pub(crate) fn to_discovery(&self) -> Json {
        let mut w = ObjectWriter::with_capacity(512);
        let versions: Vec<_> = Revision::ALL.iter().rev().map(|r| r.as_str()).collect();
        w.str("resultType", "complete").value("supportedVersions", &versions);
        w.json("capabilities", &self.capabilities_for_callers());
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

    /// Capabilities without the tasks of 2025-11-25, which work differently today.
    fn capabilities_for_callers(&self) -> Json {
        match Object::of(&self.capabilities) {
            Some(all) if self.revision.era() == Era::Legacy => all.without(&["tasks"]),
            _ => self.capabilities.clone(),
        }
    }
}

/// A copy with a buffer of its own: facts outlive the message they came in.
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
        let facts = ServerFacts::initialized(&Object::of(&result).unwrap(), Revision::V2025_11_25, "stdio");
        for (path, has) in [
            ("tools", true),
            ("tools.listChanged", false),
            ("resources.subscribe", true),
            ("resources.listChanged", false),
            ("prompts", false),
        ] {
            assert_eq!(facts.has_capability(path), has, "{path}");
        }
        assert_eq!(facts.name().as_deref(), Some("s"));
    }
}
