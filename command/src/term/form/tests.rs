use std::collections::VecDeque;
use std::io;

use serde_json::{Value, json};

use super::field::Form;
use super::*;
use crate::term::style::Paint;

/// Somebody with prepared answers, and everything that was said to them.
struct Script {
    lines: VecDeque<String>,
    heard: String,
}

impl Script {
    fn new(lines: &[&str]) -> Script {
        Script { lines: lines.iter().map(|line| (*line).to_owned()).collect(), heard: String::new() }
    }
}

impl Ask for Script {
    fn say(&mut self, text: &str) -> io::Result<()> {
        self.heard.push_str(text);
        self.heard.push('\n');
        Ok(())
    }

    fn line(&mut self, prompt: &str) -> io::Result<Option<String>> {
        self.heard.push_str(prompt);
        let line = self.lines.pop_front();
        self.heard.push_str(line.as_deref().unwrap_or("^D"));
        self.heard.push('\n');
        Ok(line)
    }
}

/// Fills in a form with these properties, all required, and checks that every line was used.
fn fill_in(properties: Value, lines: &[&str]) -> (Value, String) {
    let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    run(&schema.to_string(), lines)
}

fn run(schema: &str, lines: &[&str]) -> (Value, String) {
    let mut script = Script::new(lines);
    let answer = fill(&mut script, "demo", "Who are you?", schema, Paint::plain()).unwrap();
    assert!(script.lines.is_empty(), "{:?} not asked for after\n{}", script.lines, script.heard);
    (answer.to_json(), script.heard)
}

#[test]
fn term_form_as_a_whole() {
    let schema = r#"{"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "title": "Your name", "description": "As on the door", "minLength": 2},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"], "default": "g"}}}"#;
    let (answer, heard) = run(schema, &["", "", "A", "Ada", "", "", "y"]);
    assert_eq!(answer, json!({"action": "accept", "content": {"name": "Ada", "colour": "g"}}));
    assert_eq!(
        heard,
        r#"
The server "demo" asks:
  | Who are you?
Answer? [Y]es, [n]o, [c]ancel: 
Your name (at least 2 characters)
  As on the door
  > 
  This field is required (Ctrl-D cancels).
  > A
  That is too short: it must have at least 2 characters.
  > Ada
age (a whole number from 0 to 150, optional)
  > 
colour (optional)
  1. Red
  2. Green
  [Green] > 

This goes to "demo":
  Your name  Ada
  age        (omitted)
  colour     Green
Send? [Y]es, [e]dit, [n]o, [c]ancel: y
"#
    );
}

#[test]
fn term_form_can_be_refused_at_any_time() {
    let schema = r#"{"properties": {"a": {"type": "string"}, "b": {"type": "string"}}}"#;
    for (lines, action) in [
        (&["n"][..], "decline"),
        (&["No"], "decline"),
        (&["c"], "cancel"),
        (&["?", "c"], "cancel"),
        (&["y", "x", "y", "n"], "decline"),
        (&["y", "x", "y", "c"], "cancel"),
    ] {
        assert_eq!(run(schema, lines).0, json!({"action": action}), "{lines:?}");
    }
    for ended in [&[][..], &["y"], &["y", "x"], &["y", "x", "y"]] {
        let mut script = Script::new(ended);
        let answer = fill(&mut script, "demo", "?", schema, Paint::plain()).unwrap();
        assert_eq!(answer, Answer::bare(Action::Cancel), "{ended:?}");
    }
}

#[test]
fn term_form_can_be_edited() {
    let (answer, heard) = fill_in(
        json!({"a": {"type": "string"}, "b": {"type": "string"}}),
        &["y", "one", "two", "e", "", "2", ""],
    );
    assert_eq!(answer, json!({"action": "accept", "content": {"a": "one", "b": "2"}}));
    assert!(heard.contains("  [one] > \n"), "{heard}");
}

#[test]
fn term_form_without_fields_is_a_question() {
    for schema in ["{}", r#"{"type": "object", "properties": {}}"#] {
        let (answer, heard) = run(schema, &["", "y"]);
        assert_eq!(answer, json!({"action": "accept", "content": {}}));
        assert!(heard.contains("Confirm? "), "{heard}");
    }
    let (answer, heard) = run("5", &[]);
    assert_eq!(answer, json!({"action": "cancel"}));
    assert!(heard.contains("This cannot be answered"), "{heard}");
}

#[test]
fn term_form_fields() {
    for (field, lines, value) in [
        (json!({"type": "string"}), &["a b "][..], json!("a b ")),
        (json!({"type": "string"}), &["\"\""], json!("")),
        (json!({"type": "string", "default": "d"}), &[""], json!("d")),
        // A default of the wrong kind is none.
        (json!({"type": "string", "default": 5}), &["", "x"], json!("x")),
        (json!({"type": "string", "maxLength": 2}), &["äöü", "äö"], json!("äö")),
        (json!({"type": "string", "pattern": "^[a-z]+$"}), &["A1", "a"], json!("a")),
        (json!({"type": "string", "pattern": "["}), &["left to the server"], json!("left to the server")),
        (json!({"type": "string", "format": "email"}), &["me", "me@example.com"], json!("me@example.com")),
        (
            json!({"type": "string", "format": "uri"}),
            &["example", "https://example.com"],
            json!("https://example.com"),
        ),
        (json!({"type": "string", "format": "date"}), &["2026-02-30", "2026-02-28"], json!("2026-02-28")),
        (
            json!({"type": "string", "format": "date-time"}),
            &["now", "2026-02-28T10:00:00Z"],
            json!("2026-02-28T10:00:00Z"),
        ),
        (json!({"type": "string", "format": "unheard-of"}), &["x"], json!("x")),
        (json!({"type": "integer"}), &["x", "1.5", " 7 "], json!(7)),
        (json!({"type": "integer", "minimum": 1, "maximum": 3}), &["0", "4", "3"], json!(3)),
        (json!({"type": "integer", "default": 5}), &[""], json!(5)),
        (json!({"type": "number"}), &["inf", "NaN", "1.5"], json!(1.5)),
        (json!({"type": "number"}), &["2"], json!(2)),
        (json!({"type": "boolean"}), &["maybe", "Y"], json!(true)),
        (json!({"type": "boolean", "default": true}), &["no"], json!(false)),
        (json!({"type": "boolean", "default": false}), &[""], json!(false)),
        (json!({"type": "string", "enum": ["a", "b"]}), &["3", "0", "c", "2"], json!("b")),
        (json!({"type": "string", "enum": ["a", "b"]}), &["B"], json!("b")),
        (json!({"type": "string", "enum": ["a"], "default": "z"}), &["", "a"], json!("a")),
        (json!({"type": "string", "enum": ["2", "1"]}), &["3", "1"], json!("1")),
        (
            json!({"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g"}]}),
            &["red"],
            json!("r"),
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}}),
            &["1, c,1"],
            json!(["a", "c"]),
        ),
        (json!({"type": "array", "items": {"enum": ["a", "b", "c"]}}), &["1 3"], json!(["a", "c"])),
        (json!({"type": "array", "items": {"enum": ["a", "b", "c"]}}), &[""], json!([])),
        (json!({"type": "array", "items": {"enum": ["a", "b"]}, "default": ["b"]}), &[""], json!(["b"])),
        (json!({"type": "array", "items": {"enum": ["a", "b"]}, "default": ["b"]}), &["none"], json!([])),
        (
            json!({"type": "array", "minItems": 1, "maxItems": 1,
                "items": {"anyOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}}),
            &["", "1,2", "Green"],
            json!(["g"]),
        ),
        (json!({"type": "object"}), &["{", "{\"a\": 1}"], json!({"a": 1})),
    ] {
        let mut all = vec!["y"];
        all.extend(lines);
        all.push("y");
        let (answer, heard) = fill_in(json!({"x": field}), &all);
        assert_eq!(answer["content"]["x"], value, "{field}\n{heard}");
    }
}

#[test]
fn term_form_keeps_the_order_of_the_server() {
    let form = Form::parse(r#"{"properties": {"z": {}, "a": {}, "m": {}}}"#).unwrap();
    let names: Vec<&str> = form.fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["z", "a", "m"]);
}

#[test]
fn term_form_shows_nothing_harmful() {
    let evil = "\u{1b}[2Jx\u{9b}1A\r\u{202e}";
    let schema = json!({"required": [evil], "properties": {
        evil: {"type": "string", "enum": [evil], "enumNames": [evil], "title": evil, "description": evil, "default": evil},
        "t": {"type": "string", "title": evil, "pattern": evil, "format": evil, "default": evil},
    }});
    let mut script = Script::new(&["y", "1", "zzz", ""]);
    fill(&mut script, evil, &format!("{evil}\n{evil}"), &schema.to_string(), Paint::plain()).unwrap();
    visit(&mut script, evil, evil, &format!("https://example.com/{evil}"), Paint::plain()).unwrap();
    let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!script.heard.contains(harmful), "{:?}", script.heard);
    assert!(script.heard.contains("\n  | x\n  | x\n"), "{}", script.heard);
}

#[test]
fn term_visits() {
    let go = |address: &str, lines: &[&str]| {
        let mut script = Script::new(lines);
        let answer = visit(&mut script, "demo", "Sign in", address, Paint::plain()).unwrap();
        (answer.to_json(), script.heard)
    };
    let (answer, heard) = go("https://example.com/login?x=1", &["", "y", ""]);
    assert_eq!(answer, json!({"action": "accept"}));
    for part in [
        "The server \"demo\" wants you to visit a page:\n  | Sign in\n",
        "  URL:  https://example.com/login?x=1\n  Host: example.com\n",
        "Go there? [y]es, [n]o, [c]ancel: \nPlease enter one of the letters in brackets.\n",
        "Press Enter when you are done there",
    ] {
        assert!(heard.contains(part), "{part}: {heard}");
    }
    assert!(!heard.contains("Careful"), "{heard}");
    for (lines, action) in [
        (&["n"][..], "decline"),
        (&["c"], "cancel"),
        (&[], "cancel"),
        (&["y", "c"], "cancel"),
        (&["y"], "cancel"),
    ] {
        assert_eq!(go("https://example.com", lines).0["action"], action, "{lines:?}");
    }
    for (address, part) in [
        (
            "https://google.com@evil.example/",
            "Host: evil.example\n  Careful: the part before the @ is not the host.",
        ),
        ("https://аpple.com/", "Host: xn--"),
        ("https://аpple.com/", "Careful: the host has characters that can look like others."),
        ("http://example.com/", "Careful: the connection is not encrypted (http)."),
        ("https://192.0.2.1/", "Careful: the host is an IP address."),
    ] {
        let (_, heard) = go(address, &["n"]);
        assert!(heard.contains(part), "{address}: {heard}");
    }
    assert!(!go("http://localhost:3000/", &["n"]).1.contains("Careful"));
    for address in ["file:///etc/passwd", "javascript:alert(1)", "", "example.com"] {
        let (answer, heard) = go(address, &[]);
        assert_eq!(answer["action"], "decline", "{address}");
        assert!(heard.contains("Refused: "), "{heard}");
    }
}
