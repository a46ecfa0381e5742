//! The OpenAPI document is true: everything in it is there, and answers as it says.

use serde_json::{Value, json};

use crate::rig::Gateway;
use crate::{DEMO, note};

/// What a schema asks for is there, and is of the type that it says.
#[track_caller]
fn check(document: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.strip_prefix("#/components/schemas/").unwrap();
        return check(document, &document["components"]["schemas"][name], value, at);
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |name: &&str| match *name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other} is no type"),
    };
    assert!(types.is_empty() || types.iter().any(is), "{at} is {value}, and not {types:?}");
    if let Some(words) = schema["enum"].as_array() {
        assert!(words.contains(value), "{at} is {value}, and not one of {words:?}");
    }
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        assert!(value.get(required).is_some(), "{at} has no {required}: {value}");
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(member) = value.get(name) {
            check(document, schema, member, &format!("{at}.{name}"));
        }
    }
    for item in value.as_array().into_iter().flatten() {
        check(document, &schema["items"], item, &format!("{at}[]"));
    }
}

#[test]
fn everything_in_it_answers_as_it_says() {
    let gateway =
        Gateway::start_exactly(&format!("{DEMO}[servers.off]\nbuiltin = \"demo\"\nenabled = false\n"));
    let operator = gateway.with_token(note(&gateway)["token"].as_str().unwrap());
    let document = operator.send("GET", "/api/openapi.json", &[], "").json();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 12, "{paths:?}");
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().unwrap() {
            let place = path.replace("{name}", "demo");
            let body = match operation["requestBody"].is_object() {
                true => json!({"level": operator.send("GET", &place, &[], "").json()["level"]}).to_string(),
                false => String::new(),
            };
            let content = &operation["responses"]["200"]["content"];
            let (media_type, schema) = content.as_object().unwrap().iter().next().unwrap();
            let at = format!("{method} {path}");
            if media_type == "text/event-stream" {
                let mut stream = operator.open("GET", &place, &[], "");
                stream.until(": following");
                assert_eq!(
                    (stream.status(), stream.answer().header("content-type")),
                    (200, &**media_type),
                    "{at}"
                );
                continue;
            }
            let answer = operator.send(&method.to_ascii_uppercase(), &place, &[], &body);
            assert_eq!(
                (answer.status, answer.header("content-type")),
                (200, &**media_type),
                "{at}: {answer:?}"
            );
            check(&document, &schema["schema"], &answer.json(), &at);
        }
    }
    let unknown = operator.send("GET", "/api/servers/nobody", &[], "");
    let error = &document["components"]["schemas"]["Error"];
    check(&document, error, &unknown.json(), "an error");
}
