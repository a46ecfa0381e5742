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
            report.add(Level::Broken, &about, "has no name, so clients cannot call it", "give it a name");
            continue;
        };
        let about = format!("tool {name}");
        if !seen.insert(name) {
            let what = "is listed more than once, and only one of them can be called";
            report.add(Level::Broken, &about, what, "give each tool a unique name");
        }
        check_name(report, &about, name);
        if text(tool, "description").is_none_or(|text| text.trim().is_empty()) {
            report.add(Level::Warning, &about, "has no description", "write one: models choose tools by it");
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
                "has no inputSchema, so many clients reject the whole list",
                r#"add "inputSchema": {"type": "object"}"#,
            ),
        }
        if let Some(output) = tool.get("outputSchema") {
            check_schema(report, &about, "output", output);
            // Until 2025-11-25 server/tools; since then any type may come out.
            if era == Era::Legacy && output.get("type").and_then(Value::as_str) != Some("object") {
                let what =
                    "the output schema is not of type object, so clients reject the tool or the whole list";
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
        let what = format!("{} tools are more than model APIs accept at once (OpenAI: {MOST})", tools.len());
        report.add(Level::Warning, "", what, "offer fewer, or use mode = \"search\" in the gateway");
    }
}

fn check_name(report: &mut Report, about: &str, name: &str) {
    if name.chars().count() > LONGEST {
        let what = format!("the name is longer than {LONGEST} characters, which model APIs reject");
        report.add(Level::Warning, about, what, "shorten it; clients also put the server's name in front");
    }
    let strange: String =
        name.chars().filter(|c| !(c.is_ascii_alphanumeric() || "_-".contains(*c))).collect();
    if !strange.is_empty() {
        report.add(
            Level::Warning,
            about,
            format!("the name contains {strange:?}, which model APIs reject"),
            "use only A-Z, a-z, 0-9, _ and -",
        );
    }
}

/// What only the schema of arguments must be like.
fn check_input(report: &mut Report, about: &str, input: &Value) {
    if input.get("type").and_then(Value::as_str) != Some("object") {
        report.add(
            Level::Broken,
            about,
            "the input schema is not of type object, so many clients reject the whole list",
            r#"add "type": "object" at the top level"#,
        );
    }
    let composed = ["oneOf", "anyOf", "allOf"].into_iter().filter(|key| input.get(*key).is_some());
    for key in composed {
        report.add(
            Level::Warning,
            about,
            format!("the input schema has {key} at the top level, which some model APIs reject"),
            "move it into a property",
        );
    }
    check_parameters(report, about, &schema::property_names(input, input));
    if let Err(fault) = HeaderParams::from_schema(input) {
        report.add(
            Level::Broken,
            about,
            format!("x-mcp-header is invalid ({fault}), so modern clients ignore the tool over HTTP"),
            "correct or remove it",
        );
    }
}

/// How many names of parameters are shown.
const SHOWN: usize = 3;

/// The names of parameters. However many are odd, that is one finding.
fn check_parameters(report: &mut Report, about: &str, names: &[&str]) {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let is_odd = |name: &&&str| name.is_empty() || name.len() > LONGEST || !name.chars().all(fits);
    let odd: Vec<&&str> = names.iter().filter(is_odd).collect();
    if odd.is_empty() {
        return;
    }
    let shortened = |name: &&&str| format!("{:?}", name.chars().take(LONGEST).collect::<String>());
    let mut shown = odd.iter().take(SHOWN).map(shortened).collect::<Vec<_>>().join(", ");
    if odd.len() > SHOWN {
        shown.push_str(", ...");
    }
    let what = match odd.len() {
        1 => format!("1 parameter has a name that some model APIs reject: {shown}"),
        count => format!("{count} parameters have names that some model APIs reject: {shown}"),
    };
    report.add(Level::Warning, about, what, "use at most 64 of A-Z, a-z, 0-9, _, . and -");
}

/// What every schema must be like.
fn check_schema(report: &mut Report, about: &str, which: &str, schema: &Value) {
    if let Some(address) = network_reference(schema, 0) {
        report.add(
            Level::Warning,
            about,
            format!("the {which} schema refers to {address}, which clients never fetch"),
            "copy the definition to $defs and refer to that",
        );
        return;
    }
    if let Err(fault) = tidegate_service::schema::Schema::compile(schema) {
        let reason: String = fault.reason.chars().take(200).collect();
        let what = match fault.place.as_str() {
            // It may be valid, and only too much.
            "" => format!("the {which} schema cannot be used: {reason}"),
            place => format!("the {which} schema is not valid JSON Schema at {place}: {reason}"),
        };
        let fix = "correct or simplify the schema: clients and models cannot use the tool otherwise";
        report.add(Level::Broken, about, what, fix);
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
            (json!({"description": "d", "inputSchema": good}), "✗ tool 1: has no name"),
            (
                json!({"name": "a b", "description": "d", "inputSchema": good}),
                "! tool a b: the name contains \" \"",
            ),
            (json!({"name": long, "description": "d", "inputSchema": good}), "longer than 64"),
            (json!({"name": "a", "inputSchema": good}), "! tool a: has no description"),
            (json!({"name": "a", "description": "d"}), "✗ tool a: has no inputSchema"),
            (
                json!({"name": "a", "description": "d", "inputSchema": {}}),
                "✗ tool a: the input schema is not of type",
            ),
            (
                json!({"name": "a", "description": "d", "inputSchema": {"type": "object", "properties": 5}}),
                "✗ tool a: the input schema is not valid JSON Schema at /properties",
            ),
            (
                json!({"name": "a", "description": "d", "inputSchema": {"type": "object", "properties":
                    {"p": {"$ref": "https://example.com/s.json"}}}}),
                "! tool a: the input schema refers to https://example.com/s.json",
            ),
            (
                json!({"name": "a", "description": "d", "inputSchema": {"type": "object", "anyOf": []}}),
                "has anyOf at the top level",
            ),
            (
                json!({"name": "a", "description": "d", "inputSchema": {"type": "object", "properties": {"ä": {}}}}),
                "! tool a: 1 parameter has a name that some model APIs reject: \"ä\"",
            ),
            (
                json!({"name": "a", "description": "d", "inputSchema": {"type": "object", "properties":
                    {"p": {"type": "string", "x-mcp-header": "not a token"}}}}),
                "✗ tool a: x-mcp-header is invalid",
            ),
            (
                json!({"name": "a", "description": "d", "inputSchema": good, "outputSchema": {"type": "array"}}),
                "✗ tool a: the output schema is not of type object",
            ),
            (
                json!({"name": "a", "description": "d", "inputSchema": {"type": "object"}}),
                "! tool a: the input schema has no properties: smolagents cannot load any tool",
            ),
            (odd(json!(true)), "! tool a: the schema of a parameter is true or false (a): AutoGen, CrewAI"),
            (odd(json!({"type": "array", "items": true})), "(a[]): AutoGen and CrewAI cannot load any tool"),
            (
                odd(json!({"type": ["string", "null"]})),
                "a list of types (a): AutoGen, DSPy and Semantic Kernel cannot load",
            ),
            (
                odd(json!({"type": "array", "items": {"type": ["string", "null"]}})),
                "list of types inside (a[]): AutoGen cannot load",
            ),
            (odd(json!({"description": "d"})), "a parameter has no type (a): AutoGen cannot load"),
            (
                odd(json!({"type": "integer", "format": "uint"})),
                "an uncommon format (a): AutoGen cannot load",
            ),
            (odd(json!({"$ref": "#"})), "contains itself: AutoGen, CrewAI, DSPy and smolagents cannot load"),
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

    #[test]
    fn what_contains_itself_is_not_said_to_become_portable() {
        let tree = json!({"type": "object", "properties": {"inner": {"$ref": "#"}}});
        let mut report = Report::default();
        check(
            &mut report,
            Era::Modern,
            &[json!({"name": "t", "description": "d", "inputSchema": tree.clone()})],
        );
        let shown = report.show(None, Paint::plain());
        assert!(shown.contains("contains itself") && !shown.contains("portable"), "{shown}");
        let portable = tidegate_service::schema::portable(&tree);
        assert_eq!(tidegate_service::schema::obstacles(&portable).len(), 1, "it still does: {portable}");
    }

    /// Each of these once cost as much as all before it, and the whole took minutes.
    #[test]
    fn many_faults_are_counted_and_not_all_shown() {
        let many: serde_json::Map<_, _> =
            (0..60_000).map(|n| (format!("ä {n}"), json!({"type": "string"}))).collect();
        let large = json!({"name": "large", "description": "d", "inputSchema": {"type": "object", "properties": many}});
        let odd = |n: usize| {
            let bad = json!({"type": "object", "properties": {format!("p {n}"): {"type": "string"}}});
            json!({"name": format!("t{n}"), "inputSchema": bad})
        };
        let tools: Vec<Value> = std::iter::once(large).chain((0..2_000).map(odd)).collect();
        let mut report = Report::default();
        check(&mut report, Era::Modern, &tools);
        let shown = report.show(None, Paint::plain());
        assert!(
            shown.contains("60000 parameters have names that some model APIs reject: \"ä 0\", "),
            "{shown}"
        );
        assert!(
            shown.contains("tool large: the input schema cannot be used: the schema has more than"),
            "{shown}"
        );
        assert!(
            shown.contains(" more findings\n") && shown.lines().count() < 500,
            "{}",
            shown.lines().count()
        );
        assert!(shown.contains("tool t4 and 1995 more: has no description"), "{shown}");
    }
}
