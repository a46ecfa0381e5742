//! Values that can be written in more than one way. What a text means is not looked at here: it may not be filled in yet.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// An address to listen on, such as `8080` or `"localhost:8080"`.
pub(crate) struct Listen(pub(crate) String);

/// A number of bytes, such as `16777216` or `"16MiB"`.
pub(crate) enum Size {
    Bytes(u64),
    Text(String),
}

/// Something that can be switched off with `false` and on with `true`, or has a table of its own.
pub(crate) enum Switch<T> {
    Off,
    On,
    Set(T),
}

/// A directory, or `false` for none.
pub(crate) enum Directory {
    Off,
    Usual,
    At(String),
}

/// A command line: a text, or a list of words.
pub(crate) enum Words {
    Line(String),
    List(Vec<String>),
}

/// A text, or a list of texts.
pub(crate) struct Texts(pub(crate) Vec<String>);

/// Implements `Deserialize` and `JsonSchema` for a type: what is expected, in words and as a schema, and what to make of
/// each kind of value.
macro_rules! written {
    ($type:ident, $expecting:literal, $schema:expr, { $($visit:tt)* }) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                struct Reader;
                impl<'de> Visitor<'de> for Reader {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    $($visit)*
                }
                deserializer.deserialize_any(Reader)
            }
        }

        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

written!(
    Size,
    "a number of bytes, or a string such as \"16MiB\"",
    json_schema!({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}),
    {
        fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
            Ok(Size::Text(text.to_owned()))
        }
        fn visit_i64<E: Error>(self, number: i64) -> Result<Size, E> {
            u64::try_from(number).map(Size::Bytes).map_err(|_| E::custom("must not be negative"))
        }
    }
);

written!(
    Listen,
    "a port, or a host and a port in quotes, such as \"localhost:8080\"",
    json_schema!({"anyOf": [{"type": "integer", "minimum": 0, "maximum": 65535}, {"type": "string"}]}),
    {
        fn visit_str<E: Error>(self, text: &str) -> Result<Listen, E> {
            Ok(Listen(text.to_owned()))
        }
        fn visit_i64<E: Error>(self, port: i64) -> Result<Listen, E> {
            Ok(Listen(port.to_string()))
        }
    }
);

written!(
    Directory,
    "the path of a directory, or false",
    json_schema!({"anyOf": [{"type": "string"}, {"type": "boolean"}]}),
    {
        fn visit_str<E: Error>(self, text: &str) -> Result<Directory, E> {
            Ok(Directory::At(text.to_owned()))
        }
        fn visit_bool<E: Error>(self, on: bool) -> Result<Directory, E> {
            Ok(if on { Directory::Usual } else { Directory::Off })
        }
    }
);

written!(
    Words,
    "a program, as a string or as a list of strings",
    json_schema!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
    {
        fn visit_str<E: Error>(self, text: &str) -> Result<Words, E> {
            Ok(Words::Line(text.to_owned()))
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Words, A::Error> {
            let mut words = Vec::new();
            while let Some(word) = list.next_element()? {
                words.push(word);
            }
            Ok(Words::List(words))
        }
    }
);

written!(
    Texts,
    "a string, or a list of strings",
    json_schema!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
    {
        fn visit_str<E: Error>(self, text: &str) -> Result<Texts, E> {
            Ok(Texts(vec![text.to_owned()]))
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
            let mut texts = Vec::new();
            while let Some(text) = list.next_element()? {
                texts.push(text);
            }
            Ok(Texts(texts))
        }
    }
);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Switch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Switch<T>, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = Switch<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or a table")
            }
            fn visit_bool<E: Error>(self, on: bool) -> Result<Switch<T>, E> {
                Ok(if on { Switch::On } else { Switch::Off })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Switch<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Switch::Set)
            }
        }
        deserializer.deserialize_any(Reader(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Switch<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}_or_switch", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<T>();
        json_schema!({"anyOf": [{"type": "boolean"}, table]})
    }
}
