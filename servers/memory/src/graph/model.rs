//! What a knowledge graph consists of, and what may be in it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Code, Fault, Result};

/// Longest name of an entity, and of a type.
pub(crate) const MAX_NAME: usize = 200;
/// Longest observation, in characters.
pub(crate) const MAX_OBSERVATION: usize = 5_000;
/// Most properties of an entity.
pub(crate) const MAX_PROPERTIES: usize = 64;
/// Longest metadata of a relation, in bytes of JSON.
pub(crate) const MAX_METADATA: usize = 16_384;
/// Most entries of one call.
pub(crate) const MAX_ENTRIES: usize = 10_000;

/// Facts about an entity by key. The values are strings, numbers and booleans.
pub type Properties = Map<String, Value>;

/// Something that is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entity {
    /// The unique name of the entity.
    pub name: String,
    /// The type of the entity: person, project, decision, …
    pub entity_type: String,
    /// What is known about it, one statement each.
    #[serde(default)]
    pub observations: Vec<String>,
    /// Facts by key, such as {"email": "ann@example.com"}: strings, numbers or booleans.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub properties: Properties,
}

/// How two entities are connected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Relation {
    /// The name of the entity where it starts.
    pub from: String,
    /// The name of the entity where it ends.
    pub to: String,
    /// The type of the relation, in active voice: works_at, depends_on, …
    pub relation_type: String,
    /// How strong it is, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub strength: Option<f64>,
    /// How certain it is, 0 to 1.
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
        return wrong("must not contain control characters or line breaks".to_owned());
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

/// Properties that can be kept. A `null` says that there is none.
pub(crate) fn properties(field: &str, given: &Properties) -> Result<()> {
    if given.len() > MAX_PROPERTIES {
        let many = format!("must have at most {MAX_PROPERTIES} properties, and has {}", given.len());
        return Err(Fault::input(field, many));
    }
    for (key, value) in given {
        property(field, key, value)?;
    }
    Ok(())
}

/// One property that can be kept.
pub(crate) fn property(field: &str, key: &str, value: &Value) -> Result<()> {
    if key.trim().is_empty() || key.chars().count() > MAX_NAME || key.chars().any(char::is_control) {
        let shown: String = key.chars().take(40).collect();
        let reason = format!("the key {shown:?} must have 1 to {MAX_NAME} characters on one line");
        return Err(Fault::input(field, reason));
    }
    let place = || format!("{field}.{key}");
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(text) if text.contains('\0') => Err(Fault::nul(&place())),
        Value::String(text) => match text.chars().count() {
            length if length > MAX_OBSERVATION => {
                let reason = format!("must have at most {MAX_OBSERVATION} characters, and has {length}");
                Err(Fault::input(&place(), reason))
            }
            _ => Ok(()),
        },
        _ => Err(Fault::input(&place(), "must be a string, a number, true, false or null")),
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
    given.parse().map_err(|_| Fault::input("cursor", "is not a cursor that this tool returned"))
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

/// Most properties in one change, so that taking it back does not hold up everybody else.
pub(crate) const MAX_PROPERTIES_AT_ONCE: usize = 10_000;

/// Checks how many properties a call sets in all.
pub(crate) fn all_properties(field: &str, count: usize) -> Result<()> {
    match count > MAX_PROPERTIES_AT_ONCE {
        true => Err(Fault::input(
            field,
            format!(
                "must have at most {MAX_PROPERTIES_AT_ONCE} properties in all, and has {count}: use several calls"
            ),
        )),
        false => Ok(()),
    }
}

impl Graph {
    /// Refuses what is more than one call may bring, so that taking it back does not hold up everybody else.
    pub(crate) fn fits_one_call(&self, field: &str) -> Result<()> {
        let properties = self.entities.iter().map(|entity| entity.properties.len()).sum();
        for (what, count, most) in [
            ("entities", self.entities.len(), MAX_ENTRIES),
            ("relations", self.relations.len(), MAX_ENTRIES),
            ("properties", properties, MAX_PROPERTIES_AT_ONCE),
        ] {
            if count > most {
                let reason = format!(
                    "must have at most {most} {what} in one call, and has {count}; import it in parts, or use `tidegate \
                     memory import FILE`"
                );
                return Err(Fault::input(field, reason));
            }
        }
        Ok(())
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
        properties(&format!("entities[{at}].properties"), &self.properties)
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
