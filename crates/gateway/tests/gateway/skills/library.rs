//! A server with skills.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tidegate_edge::Eras;
use tidegate_gateway::ServerSettings;
use tidegate_protocol::{Error, Json};
use tidegate_service::{Call, Door, Reply};
use tokio_util::sync::DropGuard;

use crate::rig::{at, discovery, door, serve};

pub(super) const SKILLS: &str = "io.modelcontextprotocol/skills";

/// A server with skills, which keeps book of what it is asked for.
#[derive(Clone)]
pub(super) struct Library {
    pub(super) scheme: &'static str,
    /// By path.
    pub(super) files: BTreeMap<String, String>,
    /// The folders that are skills and listed.
    pub(super) listed: Vec<String>,
    pub(super) per_page: usize,
    pub(super) directories: bool,
    pub(super) scope: &'static str,
    pub(super) asked: Arc<Mutex<Vec<String>>>,
}

impl Library {
    /// Skills at these paths, each with a template.
    pub(super) fn new(skills: &[&str]) -> Library {
        let mut files = BTreeMap::new();
        for path in skills {
            let name = path.rsplit('/').next().unwrap();
            let manifest =
                format!("---\nname: {name}\ndescription: How to do {name}\n---\nUse templates/a.md\n");
            files.insert(format!("{path}/SKILL.md"), manifest);
            files.insert(format!("{path}/templates/a.md"), format!("template of {path}"));
        }
        let listed = skills.iter().map(|path| path.to_string()).collect();
        let asked = Arc::default();
        let (scheme, scope) = ("skill://", "public");
        Library { scheme, files, listed, per_page: 2, directories: true, scope, asked }
    }

    pub(super) fn frontmatter(&self, path: &str) -> Value {
        let name = path.rsplit('/').next().unwrap();
        json!({"name": name, "description": format!("How to do {name}")})
    }

    pub(super) fn entry(&self, path: &str) -> Value {
        let within = self.files.iter().filter(|(file, _)| file.starts_with(&format!("{path}/")));
        let files = within.map(|(file, text)| {
            json!({"uri": format!("{}{file}", self.scheme), "digest": digest(text), "size": text.len()})
        });
        json!({"uri": format!("{}{path}/SKILL.md", self.scheme), "frontmatter": self.frontmatter(path),
            "resources": files.collect::<Vec<_>>()})
    }

    /// What is directly in a folder.
    pub(super) fn children(&self, folder: &str) -> Option<Vec<Value>> {
        let below = format!("{folder}/");
        let names: BTreeSet<(String, bool)> = self
            .files
            .keys()
            .filter_map(|file| file.strip_prefix(&below))
            .map(|rest| match rest.split_once('/') {
                Some((name, _)) => (name.to_owned(), true),
                None => (rest.to_owned(), false),
            })
            .collect();
        let child = |(name, is_folder): (String, bool)| {
            let kind = if is_folder { "inode/directory" } else { "text/markdown" };
            json!({"uri": format!("{}{below}{name}", self.scheme), "name": name, "mimeType": kind})
        };
        (!names.is_empty()).then(|| names.into_iter().map(child).collect())
    }

    pub(super) fn answer(&self, call: &Call) -> Result<Value, Error> {
        let uri = call.params.str("uri").unwrap_or_default().into_owned();
        self.asked.lock().unwrap().push(format!("{} {uri}", call.method));
        let path = uri.strip_prefix(self.scheme).unwrap_or("\0");
        let unknown = || Error::invalid_params(format!("no such thing: {uri}"));
        let page = |member: &str, all: Vec<Value>, size: usize| {
            let start: usize = call.params.str("cursor").map_or(0, |cursor| cursor.parse().unwrap());
            let end = all.len().min(start + size);
            let mut page = json!({"resultType": "complete", "ttlMs": 60_000, "cacheScope": self.scope, member: all[start..end]});
            if end < all.len() {
                page["nextCursor"] = end.to_string().into();
            }
            page
        };
        Ok(match call.method.as_str() {
            "server/discover" => {
                let mut settings = json!({});
                if self.directories {
                    settings["directoryRead"] = true.into();
                }
                serde_json::from_str(&discovery(
                    json!({"capabilities": {"resources": {}, "tools": {}, "extensions": {SKILLS: settings}},
                    "instructions": "Begin with skill://start/SKILL.md"}),
                ))
                .unwrap()
            }
            "tools/list" => json!({"tools": [{"name": "point", "inputSchema": {"type": "object"}}]}),
            "tools/call" => {
                let link = format!("{}{}", self.scheme, self.files.keys().next().unwrap());
                json!({"resultType": "complete", "content": [{"type": "resource_link", "name": "n", "uri": link}]})
            }
            "resources/templates/list" => json!({"resourceTemplates": []}),
            "resources/list" => {
                let resource = |path: &String| {
                    let about = self.frontmatter(path);
                    json!({"uri": format!("{}{path}/SKILL.md", self.scheme), "name": about["name"], "description": about["description"],
                        "mimeType": "text/markdown", "_meta": {"io.modelcontextprotocol.skills/version": "1"}})
                };
                page("resources", self.listed.iter().map(resource).collect(), 100)
            }
            "resources/read" => {
                let text = self.files.get(path).ok_or_else(|| Error::resource_not_found(&uri))?;
                json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                    "contents": [{"uri": uri, "mimeType": "text/markdown", "text": text}]})
            }
            "skills/list" => {
                page("skills", self.listed.iter().map(|path| self.entry(path)).collect(), self.per_page)
            }
            "skills/get" => {
                let skill = path.strip_suffix("/SKILL.md").filter(|_| self.files.contains_key(path));
                json!({"resultType": "complete", "ttlMs": 1000, "cacheScope": "public", "skill": self.entry(skill.ok_or_else(unknown)?)})
            }
            "resources/directory/read" if self.directories => {
                page("resources", self.children(path).ok_or_else(unknown)?, 1)
            }
            method => return Err(Error::method_not_found(method)),
        })
    }

    pub(super) fn door(&self) -> impl Door {
        let library = self.clone();
        tower::service_fn(move |call: Call| {
            let reply = match library.answer(&call) {
                Ok(result) => Reply::Complete(Json::from(result)),
                Err(error) => Reply::Error(error),
            };
            std::future::ready(Ok::<_, std::convert::Infallible>(reply))
        })
    }

    /// In this process.
    pub(super) fn here(&self, name: &str) -> ServerSettings {
        door(name, self.door())
    }

    /// Over HTTP, for clients of one era only.
    pub(super) async fn there(&self, name: &str, eras: Eras) -> (ServerSettings, DropGuard) {
        let (address, stop) = serve(self.door(), eras, ([127, 0, 0, 1], 0).into()).await;
        (at(name, address), stop)
    }

    pub(super) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

pub(super) fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    format!("sha256:{}", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}
