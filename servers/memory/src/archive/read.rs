//! [`Reader`]: what can be kept of the lines of a file of `server-memory`, and what is wrong with the rest.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::{Fault, Result};
use crate::graph::model::{self, Entity, Graph, MAX_PROPERTIES, Properties, Relation};

/// How many problems are told.
const TOLD: usize = 20;
/// The type of an entity whose own cannot be kept.
const UNKNOWN: &str = "unknown";

/// Something in a file that cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// The number of its line, from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
}

/// Reads the lines of a file one after the other.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// Whether anything that is wrong refuses the whole file.
    strict: bool,
    line: usize,
    /// How much was left out: lines, observations, and what else cannot be kept.
    pub(crate) skipped: usize,
    /// The first things that were left out.
    pub(crate) problems: Vec<Problem>,
}

impl Reader {
    pub(crate) fn new(strict: bool) -> Reader {
        Reader { strict, ..Reader::default() }
    }

    /// Reads the lines of a text.
    pub(crate) fn all(&mut self, text: &str) -> Result<Graph> {
        let mut graph = Graph::default();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            self.take(at + 1, line.as_bytes(), &mut graph)?;
        }
        Ok(graph)
    }

    /// Adds what a line says, as far as it can be kept.
    pub(crate) fn take(&mut self, number: usize, line: &[u8], to: &mut Graph) -> Result<()> {
        self.line = number;
        if std::str::from_utf8(line).is_err() {
            return self.wrong("is not valid UTF-8");
        }
        let mut members = match serde_json::from_slice(line) {
            Ok(Value::Object(members)) => members,
            Ok(_) => {
                return self
                    .wrong("is not a JSON object, {\"type\":\"entity\",…} or {\"type\":\"relation\",…}");
            }
            Err(error) if error.is_eof() => return self.wrong("is incomplete JSON"),
            Err(_) => return self.wrong("is not valid JSON"),
        };
        match members.remove("type").as_ref().and_then(Value::as_str) {
            Some("entity") => self.entity(members, to),
            Some("relation") => self.relation(members, to),
            _ => self.wrong(
                "is neither an entity nor a relation: its \"type\" must be \"entity\" or \"relation\"",
            ),
        }
    }

    fn entity(&mut self, mut members: Map<String, Value>, to: &mut Graph) -> Result<()> {
        let name = match named(&mut members, "name") {
            Ok(name) => name,
            Err(why) => return self.wrong(why),
        };
        let entity_type = match named(&mut members, "entityType") {
            Ok(entity_type) => entity_type,
            Err(why) => {
                self.wrong(format!("{why}; imported as {UNKNOWN:?}"))?;
                UNKNOWN.to_owned()
            }
        };
        let mut observations = Vec::new();
        match members.remove("observations") {
            None | Some(Value::Null) => {}
            Some(Value::Array(list)) => {
                for (at, one) in list.into_iter().enumerate() {
                    let field = format!("observations[{at}]");
                    let Value::String(text) = one else {
                        self.wrong(format!("{field}: must be a string"))?;
                        continue;
                    };
                    match model::observation(&field, &text) {
                        Ok(()) => observations.push(text),
                        Err(fault) => self.wrong(fault.message)?,
                    }
                }
            }
            Some(_) => self.wrong("observations: must be an array of strings")?,
        }
        let properties = self.properties(&mut members)?;
        to.entities.push(Entity { name, entity_type, observations, properties });
        Ok(())
    }

    fn properties(&mut self, members: &mut Map<String, Value>) -> Result<Properties> {
        let mut properties = Properties::new();
        match members.remove("properties") {
            None | Some(Value::Null) => {}
            Some(Value::Object(given)) => {
                for (key, value) in given {
                    match model::property("properties", &key, &value) {
                        Ok(()) if properties.len() == MAX_PROPERTIES => {
                            self.wrong(format!("properties: must have at most {MAX_PROPERTIES} properties"))?;
                            break;
                        }
                        Ok(()) => drop(properties.insert(key, value)),
                        Err(fault) => self.wrong(fault.message)?,
                    }
                }
            }
            Some(_) => self.wrong("properties: must be an object")?,
        }
        Ok(properties)
    }

    fn relation(&mut self, mut members: Map<String, Value>, to: &mut Graph) -> Result<()> {
        let mut ends = Vec::with_capacity(3);
        for field in ["from", "to", "relationType"] {
            match named(&mut members, field) {
                Ok(name) => ends.push(name),
                Err(why) => return self.wrong(why),
            }
        }
        let Ok([from, target, relation_type]) = <[String; 3]>::try_from(ends) else { return Ok(()) };
        let strength = self.share(&mut members, "strength")?;
        let confidence = self.share(&mut members, "confidence")?;
        let metadata = match members.remove("metadata") {
            None | Some(Value::Null) => None,
            Some(Value::Object(members)) => match model::metadata("metadata", Some(&members)) {
                Ok(()) => Some(members),
                Err(fault) => {
                    self.wrong(fault.message)?;
                    None
                }
            },
            Some(_) => {
                self.wrong("metadata: must be an object")?;
                None
            }
        };
        to.relations.push(Relation { from, to: target, relation_type, strength, confidence, metadata });
        Ok(())
    }

    /// A number between 0 and 1, if there is one.
    fn share(&mut self, members: &mut Map<String, Value>, field: &str) -> Result<Option<f64>> {
        let given = match members.remove(field) {
            None | Some(Value::Null) => return Ok(None),
            Some(given) => given,
        };
        let number = given.as_f64().filter(|number| model::share(field, Some(*number)).is_ok());
        if number.is_none() {
            self.wrong(format!("{field}: must be a number between 0 and 1"))?;
        }
        Ok(number)
    }

    /// Something cannot be kept.
    fn wrong(&mut self, why: impl Into<String>) -> Result<()> {
        let (line, problem) = (self.line, why.into());
        if self.strict {
            return Err(Fault::input(&format!("jsonl, line {line}"), problem));
        }
        self.skipped += 1;
        if self.problems.len() < TOLD {
            self.problems.push(Problem { line, problem });
        }
        Ok(())
    }
}

/// A name, or a type, that can be one; or else why it cannot.
fn named(members: &mut Map<String, Value>, field: &str) -> Result<String, String> {
    match members.remove(field) {
        Some(Value::String(name)) => match model::name(field, &name) {
            Ok(()) => Ok(name),
            Err(fault) => Err(fault.message),
        },
        Some(_) => Err(format!("{field}: must be a string")),
        None => Err(format!("{field}: is required")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_kept_is_kept() {
        let mut reader = Reader::default();
        let long = "x".repeat(5_001);
        let lines = [
            format!(
                r#"{{"type":"entity","name":"Ann","entityType":"","observations":["tea","",5,"{long}"]}}"#
            ),
            r#"{"type":"entity","name":"a\tb","entityType":"t","observations":[]}"#.to_owned(),
            String::new(),
            "nonsense".to_owned(),
            r#"{"type":"relation","from":"Ann","to":"Bob","relationType":"knows","strength":7}"#.to_owned(),
            r#"{"type":"relation","from":"Ann","relationType":"knows"}"#.to_owned(),
            r#"{"type":"entity","name":"cut"#.to_owned(),
            "[1]".to_owned(),
            r#"{"type":"other"}"#.to_owned(),
        ];
        let graph = reader.all(&lines.join("\n")).unwrap();
        let ann = Entity {
            name: "Ann".to_owned(),
            entity_type: "unknown".to_owned(),
            observations: vec!["tea".to_owned()],
            ..Entity::default()
        };
        assert_eq!(graph.entities, [ann]);
        assert_eq!(graph.relations.len(), 1);
        let told: Vec<String> =
            reader.problems.iter().map(|one| format!("{}: {}", one.line, one.problem)).collect();
        assert_eq!(reader.skipped, told.len());
        let begins = [
            "1: entityType: must not be empty",
            "1: observations[1]: must not be empty",
            "1: observations[2]: must be a string",
            "1: observations[3]: must have at most 5000 characters",
            "2: name: must not contain control characters",
            "4: is not valid JSON",
            "5: strength: must be a number between 0 and 1",
            "6: to: is required",
            "7: is incomplete JSON",
            "8: is not a JSON object",
            "9: is neither an entity nor a relation",
        ];
        assert_eq!(told.len(), begins.len(), "{told:?}");
        for (told, begins) in told.iter().zip(begins) {
            assert!(told.starts_with(begins), "{told}, not {begins}");
        }
    }

    #[test]
    fn a_strict_reader_names_the_line() {
        for (text, line) in [
            ("{\"type\":\"entity\",\"name\":\"a\",\"entityType\":\"t\"}\nnonsense", "line 2"),
            ("\n\n{\"type\":\"other\"}", "line 3"),
            ("{\"type\":\"entity\",\"name\":\"\",\"entityType\":\"t\",\"observations\":[]}", "line 1"),
        ] {
            let fault = Reader::new(true).all(text).unwrap_err();
            assert!(fault.message.contains(line), "{fault}");
            assert!(!fault.message.contains("column"), "{fault}");
        }
    }

    #[test]
    fn only_the_first_problems_are_told() {
        let mut reader = Reader::default();
        reader.all(&"nonsense\n".repeat(50)).unwrap();
        assert_eq!((reader.skipped, reader.problems.len()), (50, TOLD));
    }
}
