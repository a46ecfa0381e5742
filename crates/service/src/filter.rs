//! [`Filter`]: which changes a subscription is about.

use std::collections::HashSet;

use serde_json::{Map, Value};
use tidegate_protocol::{Error, Json, Object};

use crate::outbox::Notice;

/// Which changes a subscription is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The list of tools.
    pub tools: bool,
    /// The list of prompts.
    pub prompts: bool,
    /// The list of resources.
    pub resources: bool,
    /// These resources.
    pub uris: HashSet<String>,
    /// These tasks.
    pub tasks: HashSet<String>,
}

impl Filter {
    /// Every list.
    pub fn lists() -> Filter {
        Filter { tools: true, prompts: true, resources: true, ..Filter::default() }
    }

    /// One more resource.
    pub fn resource(mut self, uri: impl Into<String>) -> Filter {
        self.uris.insert(uri.into());
        self
    }

    /// Reads the parameters of `subscriptions/listen`.
    pub fn read(params: &Object) -> Result<Filter, Error> {
        let wanted: Map<String, Value> = params
            .json("notifications")
            .and_then(|wanted| wanted.to().ok())
            .ok_or_else(|| Error::invalid_params("\"notifications\" must be an object"))?;
        let on = |name: &str| wanted.get(name).and_then(Value::as_bool).unwrap_or(false);
        let texts = |name: &str| -> HashSet<String> {
            let list = wanted.get(name).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Ok(Filter {
            tools: on("toolsListChanged"),
            prompts: on("promptsListChanged"),
            resources: on("resourcesListChanged"),
            uris: texts("resourceSubscriptions"),
            tasks: texts("taskIds"),
        })
    }

    /// As `subscriptions/listen` writes it.
    pub fn to_json(&self) -> Json {
        let mut all = Map::new();
        for (name, on) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if on {
                all.insert(name.into(), true.into());
            }
        }
        for (name, texts) in [("resourceSubscriptions", &self.uris), ("taskIds", &self.tasks)] {
            if !texts.is_empty() {
                let mut texts: Vec<_> = texts.iter().cloned().collect();
                texts.sort();
                all.insert(name.into(), texts.into());
            }
        }
        Value::Object(all).into()
    }

    /// Whether a change is one of those.
    pub fn wants(&self, notice: &Notice) -> bool {
        match notice {
            Notice::ToolsChanged => self.tools,
            Notice::PromptsChanged => self.prompts,
            Notice::ResourcesChanged => self.resources,
            Notice::ResourceUpdated(uri) => self.uris.contains(&**uri),
            Notice::Task { id, .. } => self.tasks.contains(&**id),
            Notice::Progress(_) | Notice::Log(_) | Notice::Other { .. } | Notice::CloseStream => false,
        }
    }

    /// Everything that may have happened while nobody listened.
    pub fn everything(&self) -> Vec<Notice> {
        let lists = [
            (self.tools, Notice::ToolsChanged),
            (self.prompts, Notice::PromptsChanged),
            (self.resources, Notice::ResourcesChanged),
        ];
        let lists = lists.into_iter().filter(|(on, _)| *on).map(|(_, notice)| notice);
        lists.chain(self.uris.iter().map(|uri| Notice::ResourceUpdated(uri.as_str().into()))).collect()
    }
}
