//! [`Object`]: JSON that means the same to everybody who reads it.
//!
//! Of two members with one name some readers take the first and some the last, which is how a token can say one thing to who checks
//! it and another to who uses it. Here that is no JSON at all, at any depth. `serde_json` bounds the depth.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// An object whose members all have names of their own, and so have those of the objects in it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object(pub(crate) Map<String, Value>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object, D::Error> {
        match Strict::deserialize(deserializer)?.0 {
            Value::Object(members) => Ok(Object(members)),
            _ => Err(D::Error::custom("not an object")),
        }
    }
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Strict, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((name, Strict(value))) = members.next_entry::<String, Strict>()? {
            if all.insert(name, value).is_some() {
                return Err(A::Error::custom("two members have the same name"));
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_members_of_one_name_are_refused_at_any_depth_and_in_any_spelling() {
        for good in
            [r#"{}"#, r#"{"a":1,"b":[{"a":1},{"a":2}],"c":{"a":null}}"#, r#"{"a":1.5,"b":-3,"c":true}"#]
        {
            let Object(read) = serde_json::from_str(good).unwrap();
            assert_eq!(Value::Object(read), serde_json::from_str::<Value>(good).unwrap());
        }
        for bad in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"x":{"a":1,"a":2}}"#,
            r#"{"x":[[{"a":1,"a":2}]]}"#,
            "[]",
            "1",
            r#"{"a":1} "#.trim_end_matches("} "),
            r#"{"a":1}{}"#,
            r#"{"a":1e999}"#,
        ] {
            assert!(serde_json::from_str::<Object>(bad).is_err(), "{bad}");
        }
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
        assert!(serde_json::from_str::<Object>(&deep).is_err());
    }
}
