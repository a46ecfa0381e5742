//! Answers: finding them in what a model says, and whether they fit.

use std::sync::Arc;

use serde_json::Value;
use tidegate_service::schema::{Fit, Schema, ValidationError};

/// How many places are tried where an object may begin.
const TRIED: usize = 100;
/// How many problems are told, and how long each may be.
const TOLD: usize = 5;
const LENGTH: usize = 200;

/// What answers of an agent must fit.
pub(crate) struct AnswerSchema(Arc<Schema>);

impl AnswerSchema {
    /// The shape that a schema gives.
    pub(crate) fn new(schema: &Value) -> Result<AnswerSchema, String> {
        Schema::compile(schema)
            .map(|schema| AnswerSchema(Arc::new(schema)))
            .map_err(|error| error.to_string())
    }

    /// The value, or what is wrong with it.
    pub(crate) async fn check(&self, value: Value) -> Result<Value, Vec<String>> {
        // Somebody wrote the schema, a model wrote the value: nobody else is to wait for the two.
        match self.0.check_apart(value, described).await {
            Ok((value, Fit::Fits)) => Ok(value),
            Ok((_, Fit::Problems(problems))) => Err(problems),
            Ok((_, Fit::Misfits)) => Err(vec!["it is too large".to_owned()]),
            Err(error) => Err(vec![format!("it is {error}")]),
        }
    }

    /// The answer in a text: the first object that fits, or what is wrong with the first that there is.
    pub(crate) async fn in_text(&self, text: &str) -> Result<Value, Vec<String>> {
        let mut wrong = None;
        for found in objects(text).into_iter().flat_map(unwrapped) {
            match self.check(found).await {
                Ok(found) => return Ok(found),
                Err(problems) => wrong.get_or_insert(problems),
            };
        }
        Err(wrong.unwrap_or_else(|| vec!["there is no JSON object in it".to_owned()]))
    }
}

fn described(errors: &mut dyn Iterator<Item = ValidationError<'_>>) -> Vec<String> {
    let one = |error: ValidationError<'_>| match place(error.instance_path().as_str()) {
        place if place.is_empty() => short(error.to_string()),
        place => format!("{place}: {}", short(error.to_string())),
    };
    errors.take(TOLD).map(one).collect()
}

/// The object, and what is in it if that is an answer with nothing around it but its name.
fn unwrapped(found: Value) -> Vec<Value> {
    let inner =
        found.as_object().filter(|members| members.len() == 1).and_then(|members| members.get("answer"));
    match inner.filter(|inner| inner.is_object()).cloned() {
        Some(inner) => vec![found, inner],
        None => vec![found],
    }
}

/// `/a/0/b` as people write it: `a[0].b`.
pub(crate) fn place(pointer: &str) -> String {
    let mut place = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            place.push_str(&format!("[{part}]"));
        } else {
            if !place.is_empty() {
                place.push('.');
            }
            place.push_str(&part);
        }
    }
    place
}

/// The text, cut where it gets long.
pub(crate) fn short(text: String) -> String {
    match text.char_indices().nth(LENGTH) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// The JSON objects in a text, whatever is around them: thoughts, sentences, fences.
pub(crate) fn objects(text: &str) -> Vec<Value> {
    // What a model thought before it spoke is no answer.
    let text = text.rsplit_once("</think>").map_or(text, |(_, after)| after);
    let (mut found, mut at) = (Vec::new(), 0);
    for _ in 0..TRIED {
        let Some(next) = text[at..].find('{') else { break };
        at += next;
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                at += values.byte_offset();
                found.push(value);
            }
            _ => at += 1,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn answers_are_found_in_prose() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
        let shape = AnswerSchema::new(&schema).unwrap();
        for text in [
            "{\"a\": 1}",
            "Sure! {not json} Here it is:\n```json\n{\"a\": 1}\n```\nAnything else?",
            "<think>{\"a\": 2}?</think>{\"a\": 1}",
            "{\"b\": 2} {\"a\": 1}",
            "\u{feff}{\"a\": 1}",
        ] {
            assert_eq!(shape.in_text(text).await, Ok(json!({"a": 1})), "{text}");
        }
        assert_eq!(shape.in_text("nothing").await, Err(vec!["there is no JSON object in it".to_owned()]));
        let wrong = shape.in_text("{\"a\": \"x\"}").await.unwrap_err();
        assert!(wrong[0].starts_with("a: "), "{wrong:?}");
        assert!(objects(&"{\"a\":".repeat(100_000)).is_empty());
    }

    #[test]
    fn places_read_well() {
        assert_eq!(place("/a/0/b~1c"), "a[0].b/c");
        assert_eq!(place(""), "");
    }
}
