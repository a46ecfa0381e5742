//! Lists: which tools, prompts and resources a server has.

use serde_json::Value;

use super::content::text_of;
use crate::term::clean;
use crate::term::schema;
use crate::term::style::Paint;
use crate::term::table::Table;
use crate::term::wrap::{columns, indented};

/// What stands before everything about an entry but its name.
const INDENT: &str = "    ";

/// All tools as a table: name, parameters (those in brackets are optional), what it does.
pub(crate) fn tools(list: &[Value], width: Option<usize>, paint: Paint) -> String {
    if list.is_empty() {
        return format!("{}\n", paint.dim("(no tools)"));
    }
    let mut table = Table::new(&["NAME", "PARAMETERS", "DESCRIPTION"]);
    for tool in list {
        let description = clean::first_line(&text_of(tool, "description"));
        let what = if description.is_empty() { title(tool) } else { description };
        table.row([clean::name(&text_of(tool, "name")), signature(tool), what]);
    }
    table.show(width, paint)
}

/// The parameters of a tool in a few words: `path [head] [tail]`.
fn signature(tool: &Value) -> String {
    const MOST: usize = 28;
    let mut signature = String::new();
    for (name, required) in parameters(tool) {
        let name = clean::name(name);
        let word = if required { name } else { format!("[{name}]") };
        if !signature.is_empty() && columns(&signature) + 1 + columns(&word) > MOST {
            signature.push_str(" …");
            break;
        }
        if !signature.is_empty() {
            signature.push(' ');
        }
        signature.push_str(&word);
    }
    signature
}

/// The names of a tool's parameters. What must be given comes first; otherwise as the server has them.
fn parameters(tool: &Value) -> Vec<(&str, bool)> {
    let Some(root) = tool.get("inputSchema") else { return Vec::new() };
    let required = schema::required(root, root);
    let names = schema::property_names(root, root).into_iter();
    let mut parameters: Vec<(&str, bool)> = names.map(|name| (name, required.contains(&name))).collect();
    parameters.sort_by_key(|(_, required)| !required);
    parameters
}

/// All prompts, one after the other.
pub(crate) fn prompts(list: &[Value], width: Option<usize>, paint: Paint) -> String {
    entries(list, "(no prompts)", paint, |entry| prompt(entry, width, paint))
}

/// All about a tool but its schemas: its name and title, its description, its parameters, what it says of itself.
pub(crate) fn tool(tool: &Value, width: Option<usize>, paint: Paint) -> String {
    let mut out = heading(tool, paint);
    let description = clean::text(&text_of(tool, "description"));
    if !description.trim().is_empty() {
        out.push_str(&indented(description.trim(), INDENT, width));
        out.push('\n');
    }
    let empty = Value::Null;
    let root = tool.get("inputSchema").unwrap_or(&empty);
    let parameters = parameters(tool).into_iter().filter_map(|(name, required)| {
        let parameter = schema::property(root, root, name)?;
        let kind = schema::describe(parameter, root);
        let described = [parameter, schema::resolve(parameter, root)];
        let described = described.into_iter().find(|schema| schema.get("description").is_some());
        let description = described.map(|schema| text_of(schema, "description")).unwrap_or_default();
        Some((name, mark(&kind, required), description))
    });
    push_parameters(&mut out, parameters, width, paint);
    let hints = hints(tool);
    if !hints.is_empty() {
        let said = indented(&format!("It says that {}.", hints.join(", ")), INDENT, width);
        said.lines().for_each(|line| out.push_str(&format!("{}\n", paint.dim(line))));
    }
    out
}

/// What a tool says about what it does. Nobody checks that.
fn hints(tool: &Value) -> Vec<&'static str> {
    let hint = |name: &str| tool.get("annotations").and_then(|it| it.get(name)).and_then(Value::as_bool);
    let say =
        |name: &str, yes: &'static str, no: &'static str| hint(name).map(|is| if is { yes } else { no });
    let hints = [
        say("readOnlyHint", "it changes nothing", "it changes something"),
        say("destructiveHint", "it may destroy something", "it destroys nothing"),
        say(
            "idempotentHint",
            "calling it twice does no more than once",
            "calling it twice does more than once",
        ),
        say("openWorldHint", "it reaches out to the world", "it stays in its own world"),
    ];
    hints.into_iter().flatten().collect()
}

/// A prompt: its name and title, the first line of its description, its arguments.
pub(crate) fn prompt(prompt: &Value, width: Option<usize>, paint: Paint) -> String {
    let mut out = heading(prompt, paint);
    push_description(&mut out, prompt, width);
    let arguments = prompt.get("arguments").and_then(Value::as_array).into_iter().flatten();
    let arguments = arguments.map(|argument| {
        let required = argument.get("required").and_then(Value::as_bool) == Some(true);
        let name = argument.get("name").and_then(Value::as_str).unwrap_or_default();
        (name, mark("", required), text_of(argument, "description"))
    });
    push_parameters(&mut out, arguments, width, paint);
    out
}

/// All resources as a table.
pub(crate) fn resources(list: &[Value], width: Option<usize>, paint: Paint) -> String {
    table(list, "uri", "(no resources)", width, paint)
}

/// All templates of resources as a table.
pub(crate) fn resource_templates(list: &[Value], width: Option<usize>, paint: Paint) -> String {
    table(list, "uriTemplate", "(no resource templates)", width, paint)
}

fn table(list: &[Value], uri: &str, none: &str, width: Option<usize>, paint: Paint) -> String {
    if list.is_empty() {
        return format!("{}\n", paint.dim(none));
    }
    let mut table = Table::new(&["URI", "TYPE", "NAME"]);
    for resource in list {
        let title = title(resource);
        let description = clean::first_line(&text_of(resource, "description"));
        let name = if title.is_empty() { text_of(resource, "name") } else { title };
        let what = if description.is_empty() { name } else { format!("{name}: {description}") };
        table.row([text_of(resource, uri), text_of(resource, "mimeType"), what]);
    }
    table.show(width, paint)
}

fn entries(list: &[Value], none: &str, paint: Paint, show: impl Fn(&Value) -> String) -> String {
    if list.is_empty() {
        return format!("{}\n", paint.dim(none));
    }
    list.iter().map(show).collect::<Vec<_>>().join("\n")
}

/// The title, which older revisions keep among the annotations.
fn title(entry: &Value) -> String {
    let own = text_of(entry, "title");
    if own.is_empty() {
        entry.get("annotations").map(|it| text_of(it, "title")).unwrap_or_default()
    } else {
        own
    }
}

fn heading(entry: &Value, paint: Paint) -> String {
    let name = clean::name(&text_of(entry, "name"));
    let title = clean::name(&title(entry));
    if title.is_empty() || title == name {
        format!("{}\n", paint.name(name))
    } else {
        format!("{}  {title}\n", paint.name(name))
    }
}

fn push_description(out: &mut String, entry: &Value, width: Option<usize>) {
    let description = clean::first_line(&text_of(entry, "description"));
    if !description.is_empty() {
        out.push_str(&indented(&description, INDENT, width));
        out.push('\n');
    }
}

/// `integer, required`.
fn mark(kind: &str, required: bool) -> String {
    match (kind.is_empty(), required) {
        (_, false) => kind.to_owned(),
        (true, true) => "required".to_owned(),
        (false, true) => format!("{kind}, required"),
    }
}

fn push_parameters<'a>(
    out: &mut String,
    parameters: impl Iterator<Item = (&'a str, String, String)>,
    width: Option<usize>,
    paint: Paint,
) {
    let mut table = Table::new(&["", "", ""]);
    for (name, kind, description) in parameters {
        table.row([&clean::name(name), &kind, &clean::first_line(&description)]);
    }
    let inner = width.map(|width| width.saturating_sub(INDENT.len()));
    for line in table.show(inner, paint).lines() {
        out.push_str(&format!("{INDENT}{line}\n"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn term_tools() {
        let list = [
            json!({"name": "add", "title": "Addition", "description": "Adds.\nAt length.",
                "annotations": {"readOnlyHint": true}, "inputSchema": {
                "type": "object",
                "properties": {
                    "a": {"type": "integer", "description": "The first"},
                    "how": {"$ref": "#/$defs/how"},
                    "z": {"type": "array", "items": {"type": "number"}, "description": "More\u{1b}[2J of\nthem"},
                },
                "required": ["a", "z"],
                "$defs": {"how": {"type": "string", "enum": ["fast", "slow"], "description": "How"}},
            }}),
            json!({"name": "bare", "annotations": {"title": "bare"}}),
        ];
        assert_eq!(
            tools(&list, None, Paint::plain()),
            "NAME  PARAMETERS  DESCRIPTION\n\
             add   a z [how]   Adds.\n\
             bare              bare\n"
        );
        assert_eq!(
            tool(&list[0], None, Paint::plain()),
            "add  Addition\n\
             \x20   Adds.\n\
             \x20   At length.\n\
             \x20   a    integer, required   The first\n\
             \x20   z    number[], required  More of\n\
             \x20   how  fast|slow           How\n\
             \x20   It says that it changes nothing.\n"
        );
        assert_eq!(tools(&[], None, Paint::plain()), "(no tools)\n");
        let narrow = tool(&list[0], Some(48), Paint::plain());
        assert!(narrow.lines().all(|line| line.len() <= 48), "{narrow}");
    }

    #[test]
    fn term_prompts() {
        let greet = json!({"name": "greet", "description": "Greets", "arguments": [
            {"name": "who", "required": true, "description": "Who"}, {"name": "how"}]});
        assert_eq!(
            prompts(&[greet], None, Paint::plain()),
            "greet\n    Greets\n    who  required  Who\n    how\n"
        );
        assert_eq!(prompts(&[], None, Paint::plain()), "(no prompts)\n");
    }

    #[test]
    fn term_resources() {
        let list = [
            json!({"uri": "file:///a", "name": "a", "mimeType": "text/plain", "description": "The a\nmore"}),
            json!({"uri": "file:///bb", "name": "b", "title": "Bee"}),
        ];
        assert_eq!(
            resources(&list, None, Paint::plain()),
            "URI         TYPE        NAME\n\
             file:///a   text/plain  a: The a\n\
             file:///bb              Bee\n"
        );
        let template = json!({"uriTemplate": "file:///{x}", "name": "x"});
        assert_eq!(
            resource_templates(&[template], None, Paint::plain()),
            "URI          TYPE  NAME\nfile:///{x}        x\n"
        );
        assert_eq!(resources(&[], None, Paint::plain()), "(no resources)\n");
    }
}
