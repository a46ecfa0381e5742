//! Properties that hold for whatever input: one file per codec.

mod headers;
mod json;
mod lower;
mod message;
mod sse;
mod template;

/// JSON trees, and ways to print them that no printer would choose.
mod trees {
    use proptest::prelude::*;
    use serde_json::{Map, Number, Value};

    /// Any tree, a few levels deep.
    pub(crate) fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|n| Value::Number(n.into())),
            // Quarters, because serde_json does not read every fraction back as it wrote it.
            any::<i32>()
                .prop_map(|n| Number::from_f64(f64::from(n) / 4.0).map_or(Value::Null, Value::Number)),
            any::<String>().prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 48, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                members(inner).prop_map(Value::Object),
            ]
        })
    }

    /// The members of an object: some with ordinary names, some with any.
    pub(crate) fn members(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
        let name = prop_oneof![3 => "[a-e]{1,2}", 1 => any::<String>()];
        prop::collection::vec((name, value), 0..8).prop_map(|all| all.into_iter().collect())
    }

    /// Prints a tree with white space wherever it may stand. `noise` says where, and is read in turn.
    pub(crate) fn print(value: &Value, noise: &mut Noise) -> String {
        let mut out = String::new();
        noise.space(&mut out);
        bare(value, noise, &mut out);
        noise.space(&mut out);
        out
    }

    /// The same without white space at either end.
    pub(crate) fn bare(value: &Value, noise: &mut Noise, out: &mut String) {
        match value {
            Value::Array(items) => {
                out.push('[');
                noise.space(out);
                for (i, item) in items.iter().enumerate() {
                    separate(i, noise, out);
                    bare(item, noise, out);
                    noise.space(out);
                }
                out.push(']');
            }
            Value::Object(members) => {
                out.push('{');
                noise.space(out);
                for (i, (name, item)) in members.iter().enumerate() {
                    separate(i, noise, out);
                    out.push_str(&noise.string(name));
                    noise.space(out);
                    out.push(':');
                    noise.space(out);
                    bare(item, noise, out);
                    noise.space(out);
                }
                out.push('}');
            }
            Value::String(text) => out.push_str(&noise.string(text)),
            other => out.push_str(&other.to_string()),
        }
    }

    fn separate(index: usize, noise: &mut Noise, out: &mut String) {
        if index > 0 {
            out.push(',');
            noise.space(out);
        }
    }

    /// Small decisions, read from a list in turn and forever.
    #[derive(Debug, Clone)]
    pub(crate) struct Noise(Vec<u8>, usize);

    pub(crate) fn noise() -> impl Strategy<Value = Noise> {
        prop::collection::vec(any::<u8>(), 1..40).prop_map(|bytes| Noise(bytes, 0))
    }

    impl Noise {
        pub(crate) fn next(&mut self) -> u8 {
            self.1 += 1;
            self.0[self.1 % self.0.len()]
        }

        pub(crate) fn space(&mut self, out: &mut String) {
            match self.next() {
                b @ 0..=40 => out.push([' ', '\n', '\r', '\t'][usize::from(b % 4)]),
                41..=60 => out.push_str("  \n"),
                _ => {}
            }
        }

        /// A JSON string; sometimes every character is written as an escape.
        pub(crate) fn string(&mut self, text: &str) -> String {
            if self.next() > 30 {
                return Value::String(text.to_owned()).to_string();
            }
            let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
            format!("\"{units}\"")
        }
    }
}
