//! Questions: what a server asks of a client, as an older client knows it, and the answers back.

use std::borrow::Cow;

use crate::json::{Edit, Json, Object, ObjectWriter};
use crate::lower::content;
use crate::revision::{Feature, Revision};

/// The parameters of a question (`elicitation/create`, `sampling/createMessage`, `roots/list`) as a client of
/// `revision` knows them; `None` if it cannot be asked.
///
/// What the client has declared is another matter, and so is the `elicitationId` of a URL question to a 2025-11-25
/// client, which has to be minted. Answers to a lowered question go through [`answer`].
pub fn question(revision: Revision, method: &str, params: Json) -> Option<Json> {
    match method {
        _ if revision.is_modern() => Some(params),
        "elicitation/create" => elicitation(revision, params),
        "sampling/createMessage" => sampling(revision, params),
        "roots/list" => Some(params),
        _ => None,
    }
}

/// The answer to a lowered question, as the server that asked expects it. `asked` is the question before lowering.
///
/// Only multi-select fields differ: they were asked as text with commas, and the text is split again.
pub fn answer(revision: Revision, method: &str, asked: &Json, answer: Json) -> Json {
    if method != "elicitation/create" || revision.allows(Feature::UrlElicitation) {
        return answer;
    }
    raised(asked, &answer).unwrap_or(answer)
}

fn elicitation(revision: Revision, params: Json) -> Option<Json> {
    if !revision.allows(Feature::Elicitation) {
        return None;
    }
    if revision.allows(Feature::UrlElicitation) {
        return Some(params);
    }
    let mut edit = Edit::of(&params)?;
    if edit.object().str("mode").is_some_and(|mode| mode != "form") {
        return None;
    }
    edit.remove("mode");
    edit.map("requestedSchema", |schema| {
        let mut edit = Edit::of(schema)?;
        edit.remove("$schema");
        edit.map("properties", |properties| {
            let fields = Object::of(properties)?;
            let mut changed = false;
            let mut w = ObjectWriter::with_capacity(properties.len());
            for (index, member) in fields.members().enumerate() {
                let lowered = fields.json_at(index).as_ref().and_then(Object::of).and_then(|f| field(&f));
                changed |= lowered.is_some();
                w.raw(&member.name, lowered.as_ref().map_or(member.value, Json::as_str));
            }
            changed.then(|| w.finish())
        });
        edit.finish()
    });
    Some(edit.finish().unwrap_or(params))
}

/// One field of a form in 2025-06-18: text, number, boolean, or one of `enum` with `enumNames`.
// 2025-11-25 changelog: SEP-1330 (enums), SEP-1034 (defaults).
fn field(field: &Object) -> Option<Json> {
    let kind = field.str("type")?;
    match &*kind {
        "array" => Some(multi_select(field)),
        "string" if field.has("oneOf") => {
            let choices = choices(field.json("oneOf"));
            let mut edit = Edit::new(field.clone());
            edit.remove("oneOf").remove("default");
            set_choices(&mut edit, &choices);
            edit.finish()
        }
        "boolean" => None,
        _ => {
            let mut edit = Edit::new(field.clone());
            edit.remove("default");
            edit.finish()
        }
    }
}

/// A choice of several becomes a choice of one where only one is wanted, and else text whose description says what
/// may stand there.
fn multi_select(field: &Object) -> Json {
    let choices = items(field);
    let mut edit = Edit::new(field.clone());
    edit.set("type", Json::string("string"));
    edit.remove("items").remove("minItems").remove("maxItems").remove("default");
    if field.get("maxItems") == Some("1") {
        set_choices(&mut edit, &choices);
    } else {
        let names: Vec<_> = choices.iter().map(|c| c.title.as_deref().unwrap_or(&c.value)).collect();
        let hint = format!("One or more of these, separated by commas: {}", names.join(", "));
        let described = match field.str("description") {
            Some(description) => format!("{description} ({hint})"),
            None => hint,
        };
        edit.set("description", Json::string(&described));
    }
    edit.finish().unwrap_or_else(|| field.to_json())
}

struct Choice {
    value: String,
    title: Option<String>,
}

fn set_choices(edit: &mut Edit, choices: &[Choice]) {
    let strings = |of: &dyn Fn(&Choice) -> Json| Json::array(&choices.iter().map(of).collect::<Vec<_>>());
    edit.set("enum", strings(&|c| Json::string(&c.value)));
    if choices.iter().any(|c| c.title.is_some()) {
        edit.set("enumNames", strings(&|c| Json::string(c.title.as_deref().unwrap_or(&c.value))));
    }
}

/// The choices of a multi-select field, with or without titles.
fn items(field: &Object) -> Vec<Choice> {
    let Some(items) = field.object("items") else { return Vec::new() };
    match items.json("enum").and_then(|list| list.elements()) {
        Some(list) => list
            .iter()
            .filter_map(|v| Some(Choice { value: v.to_str()?.into_owned(), title: None }))
            .collect(),
        None => choices(items.json("anyOf").or_else(|| items.json("oneOf"))),
    }
}

/// Choices written as `{const, title}`.
fn choices(list: Option<Json>) -> Vec<Choice> {
    let list = list.and_then(|list| list.elements()).unwrap_or_default();
    list.iter()
        .filter_map(|choice| {
            let choice = Object::of(choice)?;
            Some(Choice {
                value: choice.str("const")?.into_owned(),
                title: choice.str("title").map(Cow::into_owned),
            })
        })
        .collect()
}

/// Splits the answers to multi-select fields; `None` if there are none.
fn raised(asked: &Json, answer: &Json) -> Option<Json> {
    let fields = Object::of(asked)?.object("requestedSchema")?.object("properties")?;
    let mut edit = Edit::of(answer)?;
    edit.map("content", |content| {
        let mut content = Object::of(content)?;
        let mut changed = None;
        for (index, member) in fields.members().enumerate() {
            let Some(field) = fields.json_at(index).as_ref().and_then(Object::of) else { continue };
            if field.str("type").as_deref() != Some("array") {
                continue;
            }
            let Some(text) = content.str(&member.name) else { continue };
            let next = content.with(&member.name, &picked(&field, &text));
            content = Object::of(&next)?;
            changed = Some(next);
        }
        changed
    });
    edit.finish()
}

/// The choices that a text with commas names, by value or title. A choice that has a comma itself is taken whole.
fn picked(field: &Object, text: &str) -> Json {
    let choices = items(field);
    let value_of = |name: &str| {
        let choice = choices.iter().find(|c| c.value == name || c.title.as_deref() == Some(name));
        choice.map(|c| c.value.clone())
    };
    let picked: Vec<_> = match value_of(text.trim()) {
        Some(value) => vec![Json::string(&value)],
        None => text
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            // What is not a choice stays as it is, for the server to refuse.
            .map(|name| Json::string(&value_of(name).unwrap_or_else(|| name.to_owned())))
            .collect(),
    };
    Json::array(&picked)
}

fn sampling(revision: Revision, params: Json) -> Option<Json> {
    let mut edit = Edit::of(&params)?;
    if revision.allows(Feature::SamplingTools) {
        edit.map("messages", |list| list.map_elements(tool_results));
        return Some(edit.finish().unwrap_or(params));
    }
    if edit.object().json("tools").and_then(|tools| tools.elements()).is_some_and(|tools| !tools.is_empty()) {
        return None;
    }
    edit.remove("tools").remove("toolChoice");
    if let Some(messages) = edit.object().json("messages").and_then(|list| list.elements()) {
        let mut lowered = Vec::with_capacity(messages.len());
        for message in &messages {
            split_message(revision, message, &mut lowered)?;
        }
        if lowered != messages {
            edit.set("messages", Json::array(&lowered));
        }
    }
    Some(edit.finish().unwrap_or(params))
}

/// A sampling message before 2025-11-25: one block, no `_meta`. Several blocks become several messages of one role;
/// `None` if a block is the use or the result of a tool.
fn split_message(revision: Revision, message: &Json, out: &mut Vec<Json>) -> Option<()> {
    let mut edit = Edit::of(message)?;
    edit.remove("_meta");
    let content = edit.object().json("content")?;
    let blocks = content.elements().unwrap_or_else(|| vec![content.clone()]);
    for block in &blocks {
        if matches!(Object::of(block)?.str("type").as_deref(), Some("tool_use" | "tool_result")) {
            return None;
        }
        let lowered = content::block(revision, block).unwrap_or_else(|| block.clone());
        let mut one = Edit::new(edit.object().clone());
        one.remove("_meta");
        if lowered != content {
            one.set("content", lowered);
        }
        out.push(one.finish().unwrap_or_else(|| message.clone()));
    }
    Some(())
}

/// In 2025-11-25 the structured content of a tool's result is an object.
fn tool_results(message: &Json) -> Option<Json> {
    let lower = |block: &Json| {
        let mut edit = Edit::of(block)?;
        if edit.object().str("type")? == "tool_result" {
            content::tool_result(Revision::V2025_11_25, &mut edit);
        }
        edit.finish()
    };
    let mut edit = Edit::of(message)?;
    edit.map("content", |content| match content.elements() {
        Some(_) => content.map_elements(lower),
        None => lower(content),
    });
    edit.finish()
}

#[cfg(test)]
mod tests {
    use super::super::tests::ALL_LEGACY;
    use super::*;

    /// A question, lowered to each legacy revision, oldest first; `-` where it cannot be asked.
    fn asked(method: &str, params: &str) -> [String; 4] {
        ALL_LEGACY.map(|revision| {
            let lowered = question(revision, method, Json::trusted(params.to_owned()));
            lowered.map_or("-".to_owned(), |json| json.as_str().to_owned())
        })
    }

    /// A form with one field, and the field as 2025-06-18 gets it.
    fn lowered_field(field: &str) -> String {
        let form = |field: &str| {
            format!(r#"{{"message":"m","requestedSchema":{{"type":"object","properties":{{"f":{field}}}}}}}"#)
        };
        let text = form(field);
        let [a, b, got, new] = asked("elicitation/create", &text);
        assert_eq!([&*a, &*b, &*new], ["-", "-", &text]);
        let (start, end) = form("|").split_once('|').map(|(s, e)| (s.to_owned(), e.to_owned())).unwrap();
        got.strip_prefix(&start).and_then(|s| s.strip_suffix(&end)).expect(&got).to_owned()
    }

    #[test]
    fn fields_of_forms() {
        for (field, want) in [
            (r#"{"type":"string","minLength": 1}"#, r#"{"type":"string","minLength": 1}"#),
            (r#"{"type":"string","default":"x"}"#, r#"{"type":"string"}"#),
            (r#"{"type":"number","default":1.50,"maximum":2}"#, r#"{"type":"number","maximum":2}"#),
            (r#"{"type":"boolean","default":true}"#, r#"{"type":"boolean","default":true}"#),
            (r#"{"type":"string","enum":["a"],"default":"a"}"#, r#"{"type":"string","enum":["a"]}"#),
            (
                r#"{"type":"string","title":"C","oneOf":[{"const":"r","title":"Red"},{"const":"g"}],"default":"r"}"#,
                r#"{"type":"string","title":"C","enum":["r","g"],"enumNames":["Red","g"]}"#,
            ),
            (
                r#"{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1,"default":["a"]}"#,
                r#"{"type":"string","description":"One or more of these, separated by commas: a, b"}"#,
            ),
            (
                r#"{"type":"array","description":"Pick","items":{"anyOf":[{"const":"r","title":"Red"}]},"maxItems":2}"#,
                r#"{"type":"string","description":"Pick (One or more of these, separated by commas: Red)"}"#,
            ),
            (
                r#"{"type":"array","items":{"anyOf":[{"const":"r","title":"Red"}]},"maxItems":1}"#,
                r#"{"type":"string","enum":["r"],"enumNames":["Red"]}"#,
            ),
        ] {
            assert_eq!(lowered_field(field), want);
        }
    }

    #[test]
    fn modes() {
        let form = r#"{"mode":"form","message":"m","_meta":{"k":1}}"#;
        assert_eq!(asked("elicitation/create", form), ["-", "-", r#"{"message":"m","_meta":{"k":1}}"#, form]);
        let url = r#"{"mode":"url","message":"m","url":"https://x"}"#;
        assert_eq!(asked("elicitation/create", url), ["-", "-", "-", url]);
        assert_eq!(asked("roots/list", "{}"), ["{}"; 4]);
        assert_eq!(asked("vendor/ask", "{}"), ["-"; 4]);
        let modern = question(Revision::LATEST_MODERN, "vendor/ask", Json::empty_object());
        assert_eq!(modern, Some(Json::empty_object()));
    }

    #[test]
    fn answers_to_multi_selects_are_split_again() {
        let asked = Json::trusted(
            r#"{"requestedSchema":{"properties":{"s":{"type":"string"},"m":{"type":"array","items":{"anyOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"},{"const":"b","title":"Blue, dark"}]}}}}}"#,
        );
        let given = |content: &str| format!(r#"{{"action":"accept","content":{content}}}"#);
        for (content, want) in [
            (r#"{"s":"a, b","m":"Red, g ,"}"#, r#"{"s":"a, b","m":["r","g"]}"#),
            (r#"{"m":"Blue, dark"}"#, r#"{"m":["b"]}"#),
            (r#"{"m":"pink"}"#, r#"{"m":["pink"]}"#),
            (r#"{"m":""}"#, r#"{"m":[]}"#),
            (r#"{"s": "x"}"#, r#"{"s": "x"}"#),
            (r#"{"m":["r"]}"#, r#"{"m":["r"]}"#),
        ] {
            let raw = Json::trusted(given(content));
            let got = answer(Revision::V2025_06_18, "elicitation/create", &asked, raw.clone());
            assert_eq!(got.as_str(), given(want));
            assert_eq!(answer(Revision::V2025_11_25, "elicitation/create", &asked, raw.clone()), raw);
        }
        let declined = Json::trusted(r#"{"action":"decline"}"#);
        assert_eq!(answer(Revision::V2025_06_18, "elicitation/create", &asked, declined.clone()), declined);
    }

    #[test]
    fn sampling_requests() {
        let text = r#"{"type":"text","text":"t"}"#;
        let with = |messages: &str, rest: &str| format!(r#"{{"messages":[{messages}],"maxTokens":1{rest}}}"#);
        let user = |content: &str| format!(r#"{{"role":"user","content":{content}}}"#);
        let plain = with(&user(text), "");
        let audio = with(&user(r#"{"type":"audio","data":"AAAA","mimeType":"audio/wav"}"#), "");
        assert_eq!(asked("sampling/createMessage", &plain), [&*plain; 4]);
        let tools = with(&user(text), r#","tools":[{"name":"t"}],"toolChoice":{}"#);
        assert_eq!(asked("sampling/createMessage", &tools), ["-", "-", "-", &tools]);
        let none = with(&user(text), r#","tools":[],"toolChoice":{}"#);
        assert_eq!(asked("sampling/createMessage", &none), [&*plain, &plain, &plain, &none]);
        let two = with(&user(&format!("[{text},{text}]")), "");
        let split = with(&format!("{0},{0}", user(text)), "");
        assert_eq!(asked("sampling/createMessage", &two), [&*split, &split, &split, &two]);
        let used = with(&user(r#"[{"type":"tool_use","id":"1","name":"t","input":{}}]"#), "");
        assert_eq!(asked("sampling/createMessage", &used), ["-", "-", "-", &used]);
        let [old, rest @ ..] = asked("sampling/createMessage", &audio);
        assert!(old.contains("Audio of type audio/wav, 3 bytes"), "{old}");
        assert_eq!(rest, [&*audio; 3]);
        let result =
            |inner: &str| with(&user(&format!(r#"[{{"type":"tool_result","toolUseId":"1",{inner}}}]"#)), "");
        let [.., new] = asked("sampling/createMessage", &result(r#""content":[],"structuredContent":7"#));
        assert_eq!(new, result(r#""content":[{"type":"text","text":"7"}]"#));
    }
}
