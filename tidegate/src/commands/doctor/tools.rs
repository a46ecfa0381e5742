//! Faults of tools: names, descriptions, schemas.

use std::collections::HashSet;

use serde_json::Value;
use tidegate::protocol::Era;
use tidegate::protocol::param_headers::HeaderParams;

use super::frameworks;
use super::report::{Level, Report};
use crate::term::schema;

/// The longest name that the APIs of models take.
const LONGEST: usize = 64;
/// How many tools the APIs of models take.
const MOST: usize = 128;

/// Looks for faults in all tools.
pub(super) fn check(report: &mut Report, era: Era, tools: &[Value]) {
    let mut seen = HashSet::new();
    for (at, tool) in tools.iter().enumerate() {
        let Some(name) = text(tool, "name") else {
            let about = format!("tool {}", at + 1);
            report.add(Level::Broken, &about, "it has no name, so nobody can call it", "give it a name");
            continue;
        };
        let about = format!("tool {name}");
        if !seen.insert(name) {
            let what = "it is listed more than once, and only one of them can be called";
            report.add(Level::Broken, &about, what, "give each tool a name of its own");
        }
        check_name(report, &about, name);
        if text(tool, "description").is_none_or(|text| text.trim().is_empty()) {
            report.add(
                Level::Warning,
                &about,
                "it has no description",
                "write one: models choose tools by it",
            );
        }
        match tool.get("inputSchema") {
            Some(input) => {
                check_schema(report, &about, "input", input);
                check_input(report, &about, input);
                frameworks::check(report, &about, input);
            }
            None => report.add(
                Level::Broken,
                &about,
                "it has no inputSchema, for which many clients refuse the whole list",
                r#"add "inputSchema": {"type": "object"}"#,
            ),
        }
        if let Some(output) = tool.get("outputSchema") {
            check_schema(report, &about, "output", output);
            // Until 2025-11-25 server/tools; since then any type may come out.
            if era == Era::Legacy && output.get("type").and_then(Value::as_str) != Some("object") {
                let what =
                    "its output schema is not of type object, for which clients refuse the tool or the list";
                report.add(
                    Level::Broken,
                    &about,
                    what,
                    r#"wrap the result: {"type": "object", "properties": ...}"#,
                );
            }
        }
    }
    if tools.len() > MOST {
        let what =
            format!("{} tools are more than the APIs of models take at once (OpenAI: {MOST})", tools.len());
        report.add(Level::Warning, "", what, "offer fewer, or let the client choose");
    }
}

fn check_name(report: &mut Report, about: &str, name: &str) {
    if name.chars().count() > LONGEST {
        let what = format!("its name is longer than {LONGEST} characters, which the APIs of models refuse");
        report.add(Level::Warning, about, what, "shorten it; clients also put the server's name before it");
    }
    let strange: String =
        name.chars().filter(|c| !(c.is_ascii_alphanumeric() || "_-".contains(*c))).collect();
    if !strange.is_empty() {
        report.add(
            Level::Warning,
            about,
            format!("its name has {strange:?}, which the APIs of models refuse"),
            "use letters of A-Z and a-z, digits, _ and - only",
        );
    }
}

/// What only the schema of arguments must be like.
fn check_input(report: &mut Report, about: &str, input: &Value) {
    if input.get("type").and_then(Value::as_str) != Some("object") {
        report.add(
            Level::Broken,
            about,
            "its input schema is not of type object, for which many clients refuse the whole list",
            r#"put "type": "object" at its top"#,
        );
    }
    let composed = ["oneOf", "anyOf", "allOf"].into_iter().filter(|key| input.get(*key).is_some());
    for key in composed {
        report.add(
            Level::Warning,
            about,
            format!("its input schema has {key} at the top, which some APIs of models refuse"),
            "move it into a property",
        );
    }
    for name in schema::property_names(input, input) {
        let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if name.is_empty() || name.len() > LONGEST || !name.chars().all(fits) {
            report.add(
                Level::Warning,
                about,
                format!("its parameter {name:?} has a name that some APIs of models refuse"),
                "use at most 64 letters of A-Z and a-z, digits, _, . and -",
            );
        }
    }
    if let Err(fault) = HeaderParams::from_schema(input) {
        report.add(
            Level::Broken,
            about,
            format!(
                "its x-mcp-header is wrong ({fault}), so that modern clients leave the tool out over HTTP"
            ),
            "correct the mark, or remove it",
        );
    }
}

/// What every schema must be like.
fn check_schema(report: &mut Report, about: &str, which: &str, schema: &Value) {
    if let Some(address) = network_reference(schema, 0) {
        report.add(
            Level::Warning,
            about,
            format!("its {which} schema refers to {address}, which is never fetched"),
            "put what is there under $defs and refer to that",
        );
        return;
    }
    if let Err(fault) = tidegate_service::schema::Schema::compile(schema) {
        let at = if fault.place.is_empty() { String::new() } else { format!(" at {}", fault.place) };
        let fault: String = fault.reason.chars().take(200).collect();
        report.add(
            Level::Broken,
            about,
            format!("its {which} schema is not valid JSON Schema{at}: {fault}"),
            "correct the schema; models and clients cannot use the tool otherwise",
        );
    }
}

/// The first reference to somewhere else.
fn network_reference(schema: &Value, depth: usize) -> Option<&str> {
    const DEEPEST: usize = 100;
    if depth > DEEPEST {
        return None;
    }
    match schema {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str);
            let own = own.filter(|to| to.starts_with("http://") || to.starts_with("https://"));
            own.or_else(|| members.values().find_map(|inner| network_reference(inner, depth + 1)))
        }
        Value::Array(items) => items.iter().find_map(|inner| network_reference(inner, depth + 1)),
        _ => None,
    }
}

fn text<'a>(tool: &'a Value, member: &str) -> Option<&'a str> {
    tool.get(member).and_then(Value::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::term::style::Paint;

    #[test]
    fn every_fault_is_found() {
        let good = json!({"type": "object", "properties": {}});
        let odd = |a: Value| json!({"name": "a", "description": "d", "inputSchema": {"type": "object", "properties": {"a": a}}});
        let long = "x".repeat(65);
        for (tool, part) in [
            (json!({"name": "ok", "description": "d", "inputSchema": good}), ""),
            (json!({"description": "d", "inputSchema": good}), "✗ tool 1: it has no name"),
            (
                json!({"name": "a b", "description": "d", "inputSchema": good}),
                "! tool a b: its name has \" \"",
            ),
            (json!({"name": long, "description": "d", "inputSchema": good}), "longer than 64"),
            (json!({"name": "a", "inputSchema": good}), "! tool a: it has no description"),
            (json!({"name": "a", "description": "d"}), "✗ tool a: it has no inputSchema"),
            (
                json!({"name": "a", "description": "d", "inputSchema": {}}),
                "✗ tool a: its input schema is not of type",
            ),
            (
                json!({"name": "a", "description": "d", "inputSchema": {"type": "object", "properties": 5}}),
                "✗ tool a: its input schema is not valid JSON Schema at /properties",
            ),
            (
                json!({"name": "a", "description": "d", "inputSchema": {"type": "object", "properties":
                    {"p": {"$ref": "https://example.com/s.json"}}}}),
                "! tool a: its input schema refers to https://example.com/s.json",
            ),
            (
                json!({"name": "a", "description": "d", "inputSchema": {"type": "object", "anyOf": []}}),
                "has anyOf at the top",
            ),
            (
                json!({"name": "a", "description": "d", "inputSchema": {"type": "object", "properties": {"ä": {}}}}),
                "! tool a: its parameter \"ä\"",
            ),
            (
                json!({"name": "a", "description": "d", "inputSchema": {"type": "object", "properties":
                    {"p": {"type": "string", "x-mcp-header": "not a token"}}}}),
                "✗ tool a: its x-mcp-header is wrong",
            ),
            (
                json!({"name": "a", "description": "d", "inputSchema": good, "outputSchema": {"type": "array"}}),
                "✗ tool a: its output schema is not of type object",
            ),
            (
                json!({"name": "a", "description": "d", "inputSchema": {"type": "object"}}),
                "! tool a: its input schema has no properties, for which smolagents loses all tools",
            ),
            (
                odd(json!(true)),
                "! tool a: true or false stands for the schema of a parameter (a), for which AutoGen, CrewAI",
            ),
            (
                odd(json!({"type": "array", "items": true})),
                "(a[]), for which AutoGen and CrewAI lose all tools",
            ),
            (
                odd(json!({"type": ["string", "null"]})),
                "a list of types (a), for which AutoGen, DSPy and Semantic Kernel lose",
            ),
            (
                odd(json!({"type": "array", "items": {"type": ["string", "null"]}})),
                "list of types inside (a[]), for which AutoGen loses",
            ),
            (odd(json!({"description": "d"})), "a parameter has no type (a), for which AutoGen loses"),
            (
                odd(json!({"type": "integer", "format": "uint"})),
                "format that few clients know (a), for which AutoGen",
            ),
            (
                odd(json!({"$ref": "#"})),
                "contains itself, for which AutoGen, CrewAI, DSPy and smolagents lose",
            ),
        ] {
            let mut report = Report { name: "s".to_owned(), ..Report::default() };
            check(&mut report, Era::Legacy, std::slice::from_ref(&tool));
            let shown = report.show(None, Paint::plain());
            assert!(shown.contains(part), "{tool}:\n{shown}");
            assert_eq!(part.is_empty(), report.findings.is_empty(), "{tool}:\n{shown}");
        }
        let twice = [json!({"name": "a", "description": "d", "inputSchema": good}), json!({"name": "a"})];
        let mut report = Report::default();
        check(&mut report, Era::Modern, &twice);
        assert!(report.show(None, Paint::plain()).contains("more than once"));
    }
}
