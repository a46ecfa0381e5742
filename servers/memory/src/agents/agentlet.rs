//! [`Agent`]: a system prompt, a schema for its answers, and the tools that it may use.
//!
//! Agents are written as JSON Schema documents whose `description` is the prompt. Three ways of writing them are
//! understood; all become the same.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::check;
use crate::error::{Fault, Result};

/// The version that an agent has if it does not say.
const FIRST: &str = "1.0.0";

/// An agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Agent {
    /// Its short name.
    pub(crate) name: String,
    /// Its name for people.
    pub(crate) title: Option<String>,
    /// The system prompt.
    pub(crate) description: String,
    pub(crate) version: String,
    /// The name that it has in code, if it has one.
    pub(crate) full_name: Option<String>,
    /// What its answers fit.
    pub(crate) schema: Value,
    pub(crate) tools: Vec<Named>,
    /// Resources that it is about, as they were written.
    pub(crate) resources: Vec<Value>,
    /// The model that it wants.
    pub(crate) model: Option<String>,
    /// Words to find it by.
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    /// What else was written about it, which is given back as it was.
    #[serde(default)]
    pub(crate) extra: Map<String, Value>,
}

/// A tool as an agent names it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Named {
    /// The server that has it; `None` if that does not matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mcp_server: Option<String>,
    pub(crate) tool_name: String,
    /// When to use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<String>,
}

/// What an agent is called in messages about it.
const FIELD: &str = "agentlet";

impl Agent {
    /// The agent that a document describes, checked.
    pub(crate) fn read(document: &Value) -> Result<Agent> {
        let agent = Agent::trusted(document)?;
        check::name(&format!("{FIELD}.{}", named_by(document)), &agent.name)?;
        agent.check("agentlet.")?;
        Ok(agent)
    }

    /// The agent that a document describes which was checked before.
    pub(crate) fn trusted(document: &Value) -> Result<Agent> {
        let Value::Object(all) = document else {
            return Err(Fault::input(FIELD, "must be a JSON object"));
        };
        match all.contains_key("result_schema") || all.contains_key("instructions") {
            true => from_instructions(all),
            false => from_schema(all),
        }
    }

    /// Checks everything about the agent. `of` stands before the names of fields.
    pub(crate) fn check(&self, of: &str) -> Result<()> {
        check::name(&format!("{of}name"), &self.name)?;
        check::prompt(&format!("{of}description"), &self.description)?;
        check::schema(&format!("{of}output_schema"), &self.schema)?;
        check::extra(&format!("{of}json_schema_extra"), &self.extra, &self.schema)?;
        check::resources(&format!("{of}resources"), &self.resources)?;
        check::tools(&format!("{of}tools"), &self.tools)?;
        check::version(&format!("{of}version"), &self.version)?;
        check::tags(&format!("{of}tags"), &self.tags)?;
        crate::models::check(&format!("{of}model"), self.model.as_deref())
    }

    /// The agent as a document.
    pub(crate) fn document(&self) -> Value {
        let mut document = self.schema.clone();
        document["title"] = self.title.as_deref().unwrap_or(&self.name).into();
        document["description"] = (&*self.description).into();
        document["version"] = (&*self.version).into();
        document["short_name"] = (&*self.name).into();
        document["fully_qualified_name"] = self.fully_qualified_name().into();
        let mut extra = Value::Object(self.extra.clone());
        extra["tools"] = json!(self.tools);
        extra["resources"] = json!(self.resources);
        if let Some(model) = &self.model {
            extra["model"] = (&**model).into();
        }
        if !self.tags.is_empty() {
            extra["tags"] = json!(self.tags);
        }
        document["json_schema_extra"] = extra;
        document
    }

    pub(crate) fn fully_qualified_name(&self) -> String {
        self.full_name.clone().unwrap_or_else(|| format!("user.agents.{}", self.name))
    }
}

/// A schema with the prompt as its description, and the rest under `json_schema_extra` or `x-percolate`.
fn from_schema(all: &Map<String, Value>) -> Result<Agent> {
    let extra = Value::Object(extra(all)?);
    let title = text(all, "title")?;
    let of_extra = |name: &str| extra[name].as_str().map(str::to_owned);
    let name = match text(all, "short_name")?.or_else(|| of_extra("short_name")).or_else(|| of_extra("name"))
    {
        Some(name) => name,
        None => slug(title.as_deref().unwrap_or_default()),
    };
    Ok(Agent {
        description: text(all, "description")?.unwrap_or_default(),
        version: text(all, "version")?.or_else(|| of_extra("version")).unwrap_or_else(|| FIRST.to_owned()),
        full_name: text(all, "fully_qualified_name")?,
        tools: tools("json_schema_extra.tools", &extra["tools"])?,
        resources: extra["resources"].as_array().cloned().unwrap_or_default(),
        model: of_extra("model"),
        tags: tags("json_schema_extra.tags", &extra["tags"])?,
        extra: unused(extra),
        schema: bare(all),
        name,
        title,
    })
}

/// What stands under `json_schema_extra` and under `x-percolate`.
pub(crate) fn extra(all: &Map<String, Value>) -> Result<Map<String, Value>> {
    let mut extra = Map::new();
    for name in ["x-percolate", "json_schema_extra"] {
        match all.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::Object(members)) => extra.extend(members.clone()),
            Some(_) => return Err(Fault::input(&format!("{FIELD}.{name}"), "must be a JSON object")),
        }
    }
    Ok(extra)
}

/// What is not used of it, and kept all the same.
pub(crate) fn unused(extra: Value) -> Map<String, Value> {
    const USED: [&str; 6] = ["tools", "resources", "model", "tags", "short_name", "version"];
    let members = match extra {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    members.into_iter().filter(|(name, _)| !USED.contains(&name.as_str())).collect()
}

/// Which member an agent has its name from.
fn named_by(document: &Value) -> &'static str {
    let of_extra = |name: &str| {
        ["json_schema_extra", "x-percolate"].iter().any(|extra| document[extra][name].is_string())
    };
    let told = document.get("result_schema").is_some() || document.get("instructions").is_some();
    match () {
        () if told => "name",
        () if document["short_name"].is_string() || of_extra("short_name") => "short_name",
        () if of_extra("name") => "json_schema_extra.name",
        () if document["title"].as_str().is_some_and(|title| !title.trim().is_empty()) => "title",
        () => "short_name",
    }
}

/// `{name, instructions, result_schema, mcp_tools}`.
fn from_instructions(all: &Map<String, Value>) -> Result<Agent> {
    let name = text(all, "name")?.unwrap_or_default();
    let schema = match all.get("result_schema") {
        Some(Value::Object(schema)) => bare(schema),
        Some(_) => return Err(Fault::input("agentlet.result_schema", "must be a JSON Schema")),
        None => return Err(Fault::input("agentlet.result_schema", "is missing")),
    };
    let (instructions, description) = (text(all, "instructions")?, text(all, "description")?);
    const USED: [&str; 10] = [
        "instructions",
        "result_schema",
        "mcp_tools",
        "tools",
        "resources",
        "version",
        "fully_qualified_name",
        "model",
        "tags",
        "short_name",
    ];
    let mut extra: Map<String, Value> = all
        .iter()
        .filter(|(name, _)| !USED.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if instructions.is_none() {
        extra.remove("description");
    }
    let prompt = instructions.or(description);
    let listed = all.get("mcp_tools").or_else(|| all.get("tools")).unwrap_or(&Value::Null);
    Ok(Agent {
        title: None,
        description: prompt.unwrap_or_default(),
        version: text(all, "version")?.unwrap_or_else(|| FIRST.to_owned()),
        full_name: text(all, "fully_qualified_name")?,
        tools: tools("mcp_tools", listed)?,
        resources: all.get("resources").and_then(Value::as_array).cloned().unwrap_or_default(),
        extra,
        model: text(all, "model")?,
        tags: tags("tags", all.get("tags").unwrap_or(&Value::Null))?,
        schema,
        name: slug(&name),
    })
}

/// A name that is one, from a name for people: `My Agent` is `my-agent`.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    let mut before = '-';
    for c in name.trim().chars() {
        let next = if c.is_alphanumeric() { c } else { '-' };
        let begins_word = next.is_uppercase() && before.is_lowercase();
        if (begins_word || next == '-') && before != '-' {
            slug.push('-');
        }
        if next != '-' {
            slug.extend(next.to_lowercase());
        }
        before = next;
    }
    slug.trim_end_matches('-').to_owned()
}

/// The schema without what is not about answers: the prompt, too, which would be said twice.
pub(crate) fn bare(all: &Map<String, Value>) -> Value {
    const ABOUT: [&str; 11] = [
        "title",
        "description",
        "version",
        "short_name",
        "fully_qualified_name",
        "json_schema_extra",
        "x-percolate",
        "name",
        "instructions",
        "result_schema",
        "mcp_tools",
    ];
    let mut schema: Map<String, Value> = all
        .iter()
        .filter(|(name, _)| !ABOUT.contains(&name.as_str()))
        .map(|(n, v)| (n.clone(), v.clone()))
        .collect();
    schema.entry("type").or_insert_with(|| "object".into());
    Value::Object(schema)
}

fn text(all: &Map<String, Value>, name: &str) -> Result<Option<String>> {
    match all.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Fault::input(&format!("{FIELD}.{name}"), "must be a text")),
    }
}

/// Words to find an agent by.
fn tags(field: &str, listed: &Value) -> Result<Vec<String>> {
    match listed {
        Value::Null => Ok(Vec::new()),
        listed => Vec::deserialize(listed).map_err(|_| Fault::input(field, "must be a list of texts")),
    }
}

/// Tools as they may be written: by their names, or with the server that has them.
pub(crate) fn tools(field: &str, listed: &Value) -> Result<Vec<Named>> {
    let items = match listed {
        Value::Null => return Ok(Vec::new()),
        Value::Array(items) => items,
        _ => return Err(Fault::input(field, "must be a list")),
    };
    let mut tools = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let said = |name: &str| item[name].as_str().map(str::to_owned);
        let tool_name =
            item.as_str().map(str::to_owned).or_else(|| said("tool_name")).or_else(|| said("name"));
        let Some(tool_name) = tool_name else {
            let reason = "must be the name of a tool, or {\"mcp_server\", \"tool_name\", \"usage\"}";
            return Err(Fault::input(&format!("{field}[{at}]"), reason));
        };
        let mcp_server = said("mcp_server").or_else(|| said("server"));
        tools.push(Named { mcp_server, tool_name, usage: said("usage") });
    }
    Ok(tools)
}

#[cfg(test)]
mod tests;
