//! What a knowledge graph consists of, and what may be in it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::store::{Code, Fault, Result};

/// Longest name of an entity, and of a type.
pub(crate) const MAX_NAME: usize = 200;
/// Longest observation, in characters.
pub(crate) const MAX_OBSERVATION: usize = 5_000;
/// Longest metadata of a relation, in bytes of JSON.
pub(crate) const MAX_METADATA: usize = 16_384;
/// Most entries of one call.
pub(crate) const MAX_ENTRIES: usize = 10_000;

/// Something that is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entity {
    /// Its name, which is how others refer to it.
    pub name: String,
    /// What kind of thing it is: person, project, decision, …
    pub entity_type: String,
    /// What is known about it.
    #[serde(default)]
    pub observations: Vec<String>,
}

/// How two entities are connected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Relation {
    /// The entity that it starts from.
    pub from: String,
    /// The entity that it leads to.
    pub to: String,
    /// What it is, in active voice: works_at, depends_on, …
    pub relation_type: String,
    /// How strong it is, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub strength: Option<f64>,
    /// How sure it is, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: Option<f64>,
    /// Anything else about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// Entities and the relations between them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Graph {
    /// The entities.
    pub entities: Vec<Entity>,
    /// The relations.
    pub relations: Vec<Relation>,
}

/// A name, or a type, that can be one.
pub(crate) fn name(field: &str, text: &str) -> Result<()> {
    let wrong = |reason: String| Err(Fault::new(Code::InvalidEntityName, format!("{field}: {reason}")));
    if text.trim().is_empty() {
        return wrong("must not be empty".to_owned());
    }
    let length = text.chars().count();
    if length > MAX_NAME {
        return wrong(format!("must have at most {MAX_NAME} characters, and has {length}"));
    }
    if text.chars().any(char::is_control) {
        return wrong("must not have control characters or line breaks".to_owned());
    }
    Ok(())
}

/// An observation that can be one.
pub(crate) fn observation(field: &str, text: &str) -> Result<()> {
    let length = text.chars().count();
    match length {
        0 => Err(Fault::input(field, "must not be empty")),
        length if length > MAX_OBSERVATION => Err(Fault::input(
            field,
            format!("must have at most {MAX_OBSERVATION} characters, and has {length}; split it"),
        )),
        _ if text.contains('\0') => Err(Fault::nul(field)),
        _ => Ok(()),
    }
}

/// A number between 0 and 1.
pub(crate) fn share(field: &str, number: Option<f64>) -> Result<()> {
    match number {
        Some(number) if !(0.0..=1.0).contains(&number) => {
            Err(Fault::input(field, format!("must be between 0 and 1, not {number}")))
        }
        _ => Ok(()),
    }
}

/// Metadata that is not too long.
pub(crate) fn metadata(field: &str, members: Option<&Map<String, Value>>) -> Result<()> {
    let length = members.map_or(0, |members| Value::from(members.clone()).to_string().len());
    match length > MAX_METADATA {
        true => Err(Fault::input(
            field,
            format!("must have at most {MAX_METADATA} bytes as JSON, and has {length}"),
        )),
        false => Ok(()),
    }
}

/// How many are wanted: what is usual if nothing is said, and not more than `most`.
pub(crate) fn within(field: &str, given: Option<i64>, usual: usize, most: usize) -> Result<usize> {
    match given {
        None => Ok(usual),
        Some(number) if (1..=most as i64).contains(&number) => Ok(number as usize),
        Some(number) => Err(Fault::input(field, format!("must be between 1 and {most}, not {number}"))),
    }
}

/// The number in a cursor, which is one that was given out before.
pub(crate) fn cursor(given: &str) -> Result<i64> {
    given.parse().map_err(|_| Fault::input("cursor", "is not one that this tool gave"))
}

/// A list that is not too long.
pub(crate) fn entries<T>(field: &str, list: &[T]) -> Result<()> {
    match list.len() > MAX_ENTRIES {
        true => Err(Fault::input(
            field,
            format!("must have at most {MAX_ENTRIES} entries, and has {}", list.len()),
        )),
        false => Ok(()),
    }
}

impl Entity {
    pub(crate) fn check(&self, at: usize) -> Result<()> {
        name(&format!("entities[{at}].name"), &self.name)?;
        name(&format!("entities[{at}].entityType"), &self.entity_type)?;
        entries(&format!("entities[{at}].observations"), &self.observations)?;
        for (n, text) in self.observations.iter().enumerate() {
            observation(&format!("entities[{at}].observations[{n}]"), text)?;
        }
        Ok(())
    }
}

impl Relation {
    pub(crate) fn check(&self, field: &str) -> Result<()> {
        name(&format!("{field}.from"), &self.from)?;
        name(&format!("{field}.to"), &self.to)?;
        name(&format!("{field}.relationType"), &self.relation_type)?;
        share(&format!("{field}.strength"), self.strength)?;
        share(&format!("{field}.confidence"), self.confidence)?;
        metadata(&format!("{field}.metadata"), self.metadata.as_ref())
    }
}
