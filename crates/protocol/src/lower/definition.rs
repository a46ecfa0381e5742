//! Definitions: tools, resources, templates and prompts in lists, and what a server says about itself.

use crate::capabilities::tasks_extension;
use crate::json::{Edit, Json, Object};
use crate::lower::content::annotations;
use crate::revision::{Feature, Revision};

/// A tool of `tools/list`.
pub(super) fn tool(revision: Revision, tool: &Json) -> Option<Json> {
    let mut edit = Edit::of(tool)?;
    edit.map("inputSchema", tool_schema);
    match edit.object().object("outputSchema") {
        // Before 2026-07-28 the root had to be an object.
        Some(schema) if revision.allows(Feature::StructuredContent) && is_object_schema(&schema) => {
            edit.map("outputSchema", tool_schema);
        }
        _ => _ = edit.remove("outputSchema"),
    }
    if !revision.allows(Feature::CoreTasks) {
        edit.remove("execution");
    }
    common(revision, &mut edit);
    if !revision.allows(Feature::ToolAnnotations) {
        edit.remove("annotations");
        title_as_description(revision, &mut edit);
    } else if !revision.allows(Feature::Titles) {
        // 2025-03-26 has a title among the annotations.
        if let Some(title) = edit.object().json("title") {
            let annotations = edit.object().object("annotations").unwrap_or_else(Object::empty);
            if !annotations.has("title") {
                edit.set("annotations", annotations.with("title", &title));
            }
            edit.remove("title");
        }
    }
    edit.finish()
}

/// A resource of `resources/list`, or a template of `resources/templates/list`.
pub(super) fn resource(revision: Revision, resource: &Json) -> Option<Json> {
    let mut edit = Edit::of(resource)?;
    edit.map("annotations", |value| annotations(revision, value));
    common(revision, &mut edit);
    title_as_description(revision, &mut edit);
    edit.finish()
}

/// A prompt of `prompts/list`.
pub(super) fn prompt(revision: Revision, prompt: &Json) -> Option<Json> {
    let mut edit = Edit::of(prompt)?;
    edit.map("arguments", |list| {
        list.map_elements(|argument| {
            let mut edit = Edit::of(argument)?;
            title_as_description(revision, &mut edit);
            edit.finish()
        })
    });
    common(revision, &mut edit);
    title_as_description(revision, &mut edit);
    edit.finish()
}

/// What all definitions have in common.
fn common(revision: Revision, edit: &mut Edit) {
    if !revision.allows(Feature::Icons) {
        edit.remove("icons");
    }
    if !revision.allows(Feature::DefinitionMeta) {
        edit.remove("_meta");
    }
}

/// A title that cannot be said becomes the description where there is none.
fn title_as_description(revision: Revision, edit: &mut Edit) {
    if revision.allows(Feature::Titles) {
        return;
    }
    if let (Some(title), false) = (edit.object().json("title"), edit.object().has("description")) {
        edit.set("description", title);
    }
    edit.remove("title");
}

fn is_object_schema(schema: &Object) -> bool {
    schema.str("type").is_some_and(|kind| kind == "object")
}

/// Before 2026-07-28 each entry of `properties` had to be an object: `true` and `false` are spelled out.
fn tool_schema(schema: &Json) -> Option<Json> {
    let mut edit = Edit::of(schema)?;
    edit.map("properties", |properties| {
        let split = Object::of(properties)?;
        let mut changed = None;
        for member in split.members() {
            let spelled = match member.value {
                "true" => Json::trusted("{}"),
                "false" => Json::trusted(r#"{"not":{}}"#),
                _ => continue,
            };
            let current = changed.as_ref().and_then(Object::of);
            changed = Some(current.as_ref().unwrap_or(&split).with(&member.name, &spelled));
        }
        changed
    });
    edit.finish()
}

/// The capabilities in the result of `initialize`.
pub(super) fn capabilities(revision: Revision, all: &Json) -> Option<Json> {
    let mut edit = Edit::of(all)?;
    if !revision.allows(Feature::CompletionsCapability) {
        edit.remove("completions");
    }
    if !revision.allows(Feature::CoreTasks) {
        edit.remove("tasks");
    }
    // `extensions` came with 2026-07-28, but capabilities were never a closed set, and MCP Apps are negotiated this
    // way with 2025-11-25 clients. Tasks have a form of their own there.
    if revision < Revision::V2025_11_25 {
        edit.remove("extensions");
    } else if let Some(some) = edit.object().object("extensions").filter(|some| some.has(tasks_extension())) {
        match some.len() {
            1 => edit.remove("extensions"),
            _ => edit.set("extensions", some.without(&[tasks_extension()])),
        };
    }
    edit.finish()
}

/// Name and version of a server, and what else it says about itself.
pub(super) fn implementation(revision: Revision, info: &Json) -> Option<Json> {
    let mut edit = Edit::of(info)?;
    if !revision.allows(Feature::Titles) {
        edit.remove("title");
    }
    if !revision.allows(Feature::Icons) {
        edit.remove("icons").remove("websiteUrl").remove("description");
    }
    edit.finish()
}

#[cfg(test)]
mod tests {
    use super::super::tests::ALL_LEGACY;
    use super::*;
    use crate::lower::result;
    use crate::method::Method;

    /// One definition in a list, lowered to each legacy revision, oldest first.
    fn definitions(method: Method, list: &str, item: &str) -> [String; 4] {
        ALL_LEGACY.map(|revision| {
            let got = result(&method, revision, Json::trusted(format!(r#"{{"{list}":[{item}]}}"#)));
            let got = got.as_str();
            let start = format!(r#"{{"{list}":["#);
            got.strip_prefix(&start).and_then(|s| s.strip_suffix("]}")).expect(got).to_owned()
        })
    }

    fn tools(item: &str) -> [String; 4] {
        definitions(Method::ToolsList, "tools", item)
    }

    #[test]
    fn tools_by_revision() {
        let item = r#"{"name":"t","title":"T","description":"d","icons":[],"inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint": true},"execution":{"taskSupport":"optional"},"_meta":{"a":1},"x": 1.0}"#;
        assert_eq!(
            tools(item),
            [
                r#"{"name":"t","description":"d","inputSchema":{"type":"object"},"x": 1.0}"#,
                r#"{"name":"t","description":"d","inputSchema":{"type":"object"},"annotations":{"readOnlyHint": true,"title":"T"},"x": 1.0}"#,
                r#"{"name":"t","title":"T","description":"d","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint": true},"_meta":{"a":1},"x": 1.0}"#,
                item,
            ]
        );
    }

    #[test]
    fn titles_find_another_place() {
        let schema = r#""inputSchema":{"type":"object"}"#;
        let item = format!(r#"{{"name":"t","title":"T",{schema}}}"#);
        let [a, b, c, _] = tools(&item);
        assert_eq!(a, format!(r#"{{"name":"t",{schema},"description":"T"}}"#));
        assert_eq!(b, format!(r#"{{"name":"t",{schema},"annotations":{{"title":"T"}}}}"#));
        assert_eq!(c, item);
        let item = format!(r#"{{"name":"t","title":"T",{schema},"annotations":{{"title":"A"}}}}"#);
        let [a, b, ..] = tools(&item);
        assert_eq!(a, format!(r#"{{"name":"t",{schema},"description":"T"}}"#));
        assert_eq!(b, format!(r#"{{"name":"t",{schema},"annotations":{{"title":"A"}}}}"#));
    }

    #[test]
    fn schemas_that_older_revisions_cannot_hold() {
        let with = |output: &str| format!(r#"{{"name":"t","inputSchema":{{"type":"object"}}{output}}}"#);
        let plain = with("");
        for output in [r#"{"type":"array"}"#, r#"{"anyOf":[]}"#, r#"{"type":["object","null"]}"#, "true"] {
            let item = with(&format!(r#","outputSchema":{output}"#));
            assert_eq!(tools(&item), [&*plain; 4], "{output}");
        }
        let item = |a: &str, b: &str| {
            format!(
                r#"{{"name":"t","inputSchema":{{"type":"object","properties":{{"a":{a},"b":{b},"c":{{}}}}}}}}"#
            )
        };
        let spelled = item("{}", r#"{"not":{}}"#);
        assert_eq!(tools(&item("true", "false")), [&*spelled; 4]);
    }

    #[test]
    fn resources_and_templates() {
        let item = r#"{"uri":"x:1","name":"n","title":"T","size":3,"icons":[],"annotations":{"lastModified":"2025"},"_meta":{}}"#;
        for (method, list) in
            [(Method::ResourcesList, "resources"), (Method::ResourcesTemplatesList, "resourceTemplates")]
        {
            let [a, b, c, d] = definitions(method, list, item);
            let old = r#"{"uri":"x:1","name":"n","size":3,"annotations":{},"description":"T"}"#;
            assert_eq!([a, b], [old; 2]);
            assert_eq!(c, item.replace(r#""icons":[],"#, ""));
            assert_eq!(d, item);
        }
    }

    #[test]
    fn prompts() {
        let item = r#"{"name":"p","title":"P","description":"d","arguments":[{"name":"a","title":"A"},{"name":"b"}],"icons":[]}"#;
        let [a, b, c, d] = definitions(Method::PromptsList, "prompts", item);
        let old =
            r#"{"name":"p","description":"d","arguments":[{"name":"a","description":"A"},{"name":"b"}]}"#;
        assert_eq!([a, b], [old; 2]);
        assert_eq!(c, item.replace(r#","icons":[]"#, ""));
        assert_eq!(d, item);
    }

    #[test]
    fn initialize_results() {
        let text = r#"{"protocolVersion":"v","capabilities":{"tools":{},"completions":{},"tasks":{"list":{}},"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{}}},"serverInfo":{"name":"s","version":"1","title":"S","icons":[],"websiteUrl":"u","description":"d"}}"#;
        let got = ALL_LEGACY.map(|r| result(&Method::Initialize, r, Json::trusted(text)).as_str().to_owned());
        assert_eq!(
            got,
            [
                r#"{"protocolVersion":"v","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#,
                r#"{"protocolVersion":"v","capabilities":{"tools":{},"completions":{}},"serverInfo":{"name":"s","version":"1"}}"#,
                r#"{"protocolVersion":"v","capabilities":{"tools":{},"completions":{}},"serverInfo":{"name":"s","version":"1","title":"S"}}"#,
                r#"{"protocolVersion":"v","capabilities":{"tools":{},"completions":{},"tasks":{"list":{}},"extensions":{"io.modelcontextprotocol/ui":{}}},"serverInfo":{"name":"s","version":"1","title":"S","icons":[],"websiteUrl":"u","description":"d"}}"#,
            ]
        );
    }
}
