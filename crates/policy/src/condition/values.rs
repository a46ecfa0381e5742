//! What conditions are about, as values of CEL.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use cel::Value;
use cel::objects::{Key, Map};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use tidegate_protocol::Json;
use tidegate_service::{Claims, Principal};

/// What the endpoint is called that has no name.
pub(super) const DEFAULT_ENDPOINT: &str = "default";

pub(super) fn text(text: &str) -> Value {
    Value::String(Arc::new(text.to_owned()))
}

fn texts(all: &[Arc<str>]) -> Value {
    Value::List(Arc::new(all.iter().map(|one| text(one)).collect()))
}

fn map<const N: usize>(members: [(&str, Value); N]) -> Value {
    let members = members.into_iter().map(|(name, value)| (Key::String(Arc::new(name.to_owned())), value));
    Value::Map(Map { map: Arc::new(members.collect()) })
}

/// Whoever is not known is an empty text: neither a subject nor a tenant ever is.
pub(super) fn principal(principal: &Principal) -> Value {
    let said = |one: &Option<Arc<str>>| text(one.as_deref().unwrap_or_default());
    map([
        ("issuer", said(&principal.issuer)),
        ("subject", said(&principal.subject)),
        ("tenant", said(&principal.tenant)),
    ])
}

pub(super) fn claims(claims: Option<&Claims>) -> Value {
    let none = Claims::default();
    let claims = claims.unwrap_or(&none);
    map([
        ("roles", texts(&claims.roles)),
        ("scopes", texts(claims.scopes.as_deref().unwrap_or_default())),
        ("client", text(claims.client.as_deref().unwrap_or_default())),
        ("actors", texts(&claims.actors)),
    ])
}

/// Arguments of a call.
pub(super) struct Arguments {
    pub(super) value: Value,
    /// How many elements the longest list or map in them has.
    pub(super) largest: usize,
    pub(super) bytes: usize,
}

/// Reads arguments. The error is why that cannot be done; whoever wants to be let in by them is not.
pub(super) fn arguments(given: Option<&Json>) -> Result<Arguments, String> {
    let Some(given) = given else { return Ok(Arguments { value: map([]), largest: 0, bytes: 0 }) };
    if given.len() > LARGEST_ARGUMENTS {
        return Err(format!(
            "the arguments have more than {LARGEST_ARGUMENTS} bytes, too many to be decided about"
        ));
    }
    let mut largest = 0;
    let mut reader = serde_json::Deserializer::from_str(given.as_str());
    let read = Reader { largest: &mut largest }.deserialize(&mut reader);
    let value = read.map_err(|error| match error.to_string() {
        why if why.starts_with(TWICE) => why.split(" at line").next().unwrap_or(TWICE).to_owned(),
        _ => "the arguments cannot be read".to_owned(),
    })?;
    Ok(Arguments { value, largest, bytes: given.len() })
}

/// The largest arguments that a condition looks at: reading them is part of the decision, and others wait for it.
const LARGEST_ARGUMENTS: usize = 256 * 1024;

const TWICE: &str = "the arguments have a member twice";

/// Reads a value of JSON. A member that is there twice is an error: what a condition has looked at may not be what the server
/// looks at.
struct Reader<'a> {
    largest: &'a mut usize,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::UInt(value), Value::Int))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(text(value))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(Reader { largest: self.largest })? {
            values.push(value);
        }
        *self.largest = (*self.largest).max(values.len());
        Ok(Value::List(Arc::new(values)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut values = HashMap::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(Reader { largest: self.largest })?;
            if values.insert(Key::String(Arc::new(name)), value).is_some() {
                return Err(A::Error::custom(TWICE));
            }
        }
        *self.largest = (*self.largest).max(values.len());
        Ok(Value::Map(Map { map: Arc::new(values) }))
    }
}
