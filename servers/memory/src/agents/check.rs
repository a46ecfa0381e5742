//! What an agent may look like: names, prompts, schemas.

use serde_json::{Map, Value};
use tidegate_service::schema::Schema;

use super::agentlet::Named;
use super::owner::{MARK, MARKED};
use crate::error::{Fault, Result};
use crate::models::answer;

/// Longest name of an agent, and of a user.
const MAX_NAME: usize = 64;
/// Longest system prompt, in characters.
const MAX_PROMPT: usize = 20_000;
/// Most bytes of a schema, and how deep it may be.
const MAX_SCHEMA: usize = 64 * 1024;
const MAX_DEPTH: usize = 32;
/// Most tools of one agent, and most resources.
const MAX_TOOLS: usize = 64;
const MAX_RESOURCES: usize = 64;
/// Most tags of one agent, and the longest, in characters.
const MAX_TAGS: usize = 50;
const MAX_TAG: usize = 100;

/// A name: letters, digits and hyphens.
pub(crate) fn name(field: &str, name: &str) -> Result<()> {
    let wrong = |reason: String| Err(Fault::input(field, reason));
    if name.is_empty() {
        return wrong("must not be empty".to_owned());
    }
    let length = name.chars().count();
    if length > MAX_NAME {
        return wrong(format!("must have at most {MAX_NAME} characters, but has {length}"));
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return wrong("must consist of letters, digits and hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        return wrong("must begin and end with a letter or a digit".to_owned());
    }
    Ok(())
}

/// Whether this is a name as code has it: words with dots between.
pub(crate) fn full_name(name: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let word = |word: &str| !word.is_empty() && word.chars().all(fits);
    name.contains('.') && name.split('.').all(word)
}

/// The name of a user, as it stands in an address.
pub(crate) fn user(field: &str, name: &str) -> Result<()> {
    let fits = |c: char| c.is_alphanumeric() || "-_.@+:|".contains(c);
    let length = name.chars().count();
    match length {
        0 => Err(Fault::input(field, "must not be empty")),
        length if length > 200 => {
            Err(Fault::input(field, format!("must have at most 200 characters, but has {length}")))
        }
        _ if !name.chars().all(fits) => {
            Err(Fault::input(field, "must consist of letters, digits and any of - _ . @ + : |"))
        }
        _ => Ok(()),
    }
}

/// Somebody as they stand in an address: a user, or one who is told from others of the same name.
pub(crate) fn owner(field: &str, name: &str) -> Result<()> {
    match name.rsplit_once(MARK) {
        // A name of which nothing is left that fits is empty.
        Some((name, mark)) if mark.len() == MARKED && mark.bytes().all(|b| b.is_ascii_alphanumeric()) => {
            if name.is_empty() {
                Ok(())
            } else {
                user(field, name)
            }
        }
        _ => user(field, name),
    }
}

/// A system prompt.
pub(crate) fn prompt(field: &str, text: &str) -> Result<()> {
    let length = text.chars().count();
    if text.trim().is_empty() {
        return Err(Fault::input(field, "must not be empty: it is the system prompt of the agent"));
    }
    if length > MAX_PROMPT {
        return Err(Fault::input(
            field,
            format!("must have at most {MAX_PROMPT} characters, but has {length}"),
        ));
    }
    Ok(())
}

/// The version of an agent: numbers with dots between, and perhaps something after them.
pub(crate) fn version(field: &str, text: &str) -> Result<()> {
    let numbers = text.split(['-', '+']).next().unwrap_or_default();
    let number = |part: &str| !part.is_empty() && part.len() <= 9 && part.bytes().all(|b| b.is_ascii_digit());
    match text.len() <= 64 && numbers.split('.').count() <= 4 && numbers.split('.').all(number) {
        true => Ok(()),
        false => {
            Err(Fault::input(field, format!("must be like 1.0.0, not {:?}", answer::short(text.to_owned()))))
        }
    }
}

/// The tags of an agent.
pub(crate) fn tags(field: &str, tags: &[String]) -> Result<()> {
    if tags.len() > MAX_TAGS {
        return Err(Fault::input(field, format!("must be at most {MAX_TAGS} tags, but are {}", tags.len())));
    }
    let wrong = |tag: &String| {
        tag.trim().is_empty() || tag.chars().count() > MAX_TAG || tag.chars().any(char::is_control)
    };
    match tags.iter().position(wrong) {
        Some(at) => {
            let reason = format!("must have 1 to {MAX_TAG} characters on one line");
            Err(Fault::input(&format!("{field}[{at}]"), reason))
        }
        None => Ok(()),
    }
}

/// The tools of an agent.
pub(crate) fn tools(field: &str, tools: &[Named]) -> Result<()> {
    if tools.len() > MAX_TOOLS {
        let reason = format!("must have at most {MAX_TOOLS} entries, but has {}", tools.len());
        return Err(Fault::input(field, reason));
    }
    for (at, tool) in tools.iter().enumerate() {
        let texts = [Some(&tool.tool_name), tool.mcp_server.as_ref()];
        let wrong =
            |text: &String| text.trim().is_empty() || text.len() > 256 || text.chars().any(char::is_control);
        if texts.into_iter().flatten().any(wrong) {
            return Err(Fault::input(&format!("{field}[{at}]"), "must be the name of a tool"));
        }
        if tool.usage.as_ref().is_some_and(|usage| usage.len() > 2_000) {
            return Err(Fault::input(&format!("{field}[{at}].usage"), "must have at most 2000 characters"));
        }
    }
    Ok(())
}

/// What else is written about an agent. Fields that are named there must be fields of its answers, or of itself.
pub(crate) fn extra(field: &str, extra: &Map<String, Value>, schema: &Value) -> Result<()> {
    const ITSELF: [&str; 5] = ["name", "short_name", "title", "description", "fully_qualified_name"];
    const LISTS: [&str; 3] = ["embedding_fields", "indexed_fields", "indexed_columns"];
    let bytes = serde_json::to_string(extra).map_or(0, |text| text.len());
    if bytes > MAX_SCHEMA {
        return Err(Fault::input(field, format!("must have at most {MAX_SCHEMA} bytes, but has {bytes}")));
    }
    let there = |place: String, name: &Value| match name.as_str() {
        None => Err(Fault::input(&place, "must be the name of a field")),
        Some(name) if schema["properties"].get(name).is_some() || ITSELF.contains(&name) => Ok(()),
        Some(name) => {
            let name = answer::short(name.to_owned());
            Err(Fault::input(&place, format!("names {name:?}, which is not one of the properties")))
        }
    };
    for list in LISTS {
        match extra.get(list) {
            None | Some(Value::Null) => {}
            Some(Value::Array(names)) => {
                for (at, name) in names.iter().enumerate() {
                    there(format!("{field}.{list}[{at}]"), name)?;
                }
            }
            Some(_) => return Err(Fault::input(&format!("{field}.{list}"), "must be a list of fields")),
        }
    }
    match extra.get("key_field") {
        None | Some(Value::Null) => Ok(()),
        Some(name) => there(format!("{field}.key_field"), name),
    }
}

/// The resources of an agent.
pub(crate) fn resources(field: &str, resources: &[Value]) -> Result<()> {
    if resources.len() > MAX_RESOURCES {
        let reason = format!("must have at most {MAX_RESOURCES} entries, but has {}", resources.len());
        return Err(Fault::input(field, reason));
    }
    let uri = |one: &Value| {
        let text = one.as_str().or_else(|| one["uri"].as_str()).or_else(|| one["resource_uri"].as_str());
        text.is_some_and(|uri| !uri.is_empty() && uri.len() <= 2_000)
    };
    match resources.iter().position(|one| !uri(one) || one.to_string().len() > 4_000) {
        None => Ok(()),
        Some(at) => {
            let reason = "must be the address of a resource, or {\"uri\", \"description\"}";
            Err(Fault::input(&format!("{field}[{at}]"), reason))
        }
    }
}

/// A schema for answers: a JSON Schema of an object.
pub(crate) fn schema(field: &str, schema: &Value) -> Result<()> {
    let Value::Object(root) = schema else {
        return Err(Fault::input(field, "must be a JSON Schema: an object"));
    };
    let bytes = schema.to_string().len();
    if bytes > MAX_SCHEMA {
        return Err(Fault::input(field, format!("must have at most {MAX_SCHEMA} bytes, but has {bytes}")));
    }
    if depth(schema) > MAX_DEPTH {
        return Err(Fault::input(field, format!("must not be more than {MAX_DEPTH} levels deep")));
    }
    if root.get("type").is_some_and(|kind| kind != "object") {
        let reason = "must be \"object\": answers have members".to_owned();
        return Err(Fault::input(&format!("{field}.type"), reason));
    }
    Schema::compile(schema).map(drop).map_err(|error| {
        let place = answer::place(&error.place);
        let place = if place.is_empty() { field.to_owned() } else { format!("{field}.{place}") };
        Fault::input(&place, format!("cannot be used as a JSON Schema: {}", answer::short(error.reason)))
    })?;
    required(field, root)
}

/// What is required must be there, where the schema says itself which properties there are.
fn required(field: &str, root: &Map<String, Value>) -> Result<()> {
    const ELSEWHERE: [&str; 6] = ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "patternProperties"];
    let (Some(Value::Object(properties)), Some(Value::Array(required))) =
        (root.get("properties"), root.get("required"))
    else {
        return Ok(());
    };
    if ELSEWHERE.iter().any(|keyword| root.contains_key(*keyword)) {
        return Ok(());
    }
    let unknown = |name: &Value| name.as_str().is_some_and(|name| !properties.contains_key(name));
    match required.iter().position(unknown) {
        None => Ok(()),
        Some(at) => {
            let name = answer::short(required[at].as_str().unwrap_or_default().to_owned());
            let reason = format!("names {name:?}, which is not one of the properties");
            Err(Fault::input(&format!("{field}.required[{at}]"), reason))
        }
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_that_are_none_are_refused_by_place() {
        let refused = |value: Value| schema("s", &value).unwrap_err().message;
        assert!(refused(json!(true)).starts_with("s: must be"));
        assert!(refused(json!({"type": "array"})).starts_with("s.type: "));
        let deep = refused(json!({"properties": {"a": {"items": {"type": "strin"}}}}));
        assert!(deep.starts_with("s.properties.a.items.type: cannot be used as a JSON Schema"), "{deep}");
        let far = refused(json!({"properties": {"a": {"$ref": "https://example.com/x.json"}}}));
        assert!(far.starts_with("s"), "{far}");
        assert!(refused(json!({"x": "y".repeat(70_000)})).contains("bytes"));
        let mut nested = json!({});
        for _ in 0..40 {
            nested = json!({"properties": {"a": nested}});
        }
        assert!(refused(nested).contains("deep"));
        assert!(schema("s", &json!({"properties": {"a": {"type": "string"}}})).is_ok());
    }

    #[test]
    fn names_and_versions() {
        for good in ["a", "my-agent-2", "A1"] {
            assert!(name("n", good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "a b", "a/b", "ä", &"x".repeat(65)] {
            assert!(name("n", bad).is_err(), "{bad}");
        }
        for (text, good) in
            [("1.0.0", true), ("2", true), ("1.0.0-beta", true), ("", false), ("one", false), ("1..0", false)]
        {
            assert_eq!(version("v", text).is_ok(), good, "{text}");
        }
    }
}
