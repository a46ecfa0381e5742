//! [`Params`]: the parameters of a request or notification.

use std::sync::{Arc, LazyLock};

use crate::json::{Fault, Json, Limits, Object};

/// The parameters of a request or notification, and its `_meta`, split one level deep. Cloning is a reference count.
#[derive(Debug, Clone)]
pub struct Params(Option<Arc<Split>>);

#[derive(Debug)]
struct Split {
    object: Object,
    meta: Option<Object>,
}

impl Params {
    /// No parameters.
    pub fn empty() -> Params {
        Params(None)
    }

    pub(crate) fn new(object: Object, meta: Option<Object>) -> Params {
        Params(Some(Arc::new(Split { object, meta })))
    }

    /// Splits a parameters object. Duplicate keys in it or in its `_meta` are refused.
    pub fn parse(json: &Json, limits: &Limits) -> Result<Params, Fault> {
        let object = Object::parse(json.text().clone(), limits)?;
        let meta = match object.json("_meta") {
            Some(meta) => Some(Object::parse(meta.into_text(), limits)?),
            None => None,
        };
        Ok(Params::new(object, meta))
    }

    /// The same parameters with one member, which is not `_meta`, set to something else. All other bytes stay as they are.
    ///
    /// ```
    /// use tidegate_protocol::{Json, Limits, Params};
    ///
    /// let params = Json::trusted(r#"{"name":"notes_add","_meta":{"k":1},"arguments":{"n":1.0}}"#);
    /// let params = Params::parse(&params, &Limits::default())?.with("name", &Json::string("add"));
    /// assert_eq!(params.as_str(), r#"{"name":"add","_meta":{"k":1},"arguments":{"n":1.0}}"#);
    /// assert_eq!(params.meta().unwrap().get("k"), Some("1"));
    /// # Ok::<(), tidegate_protocol::json::Fault>(())
    /// ```
    pub fn with(&self, name: &str, value: &Json) -> Params {
        debug_assert_ne!(name, "_meta");
        if let Some((object, meta)) = self.object().respelled(name, value, self.meta()) {
            return Params::new(object, meta);
        }
        // What was well formed stays so.
        let limits = Limits { max_depth: usize::MAX, max_bytes: usize::MAX };
        Params::parse(&self.object().with(name, value), &limits).unwrap_or_else(|_| self.clone())
    }

    /// The `_meta` member.
    pub fn meta(&self) -> Option<&Object> {
        self.0.as_ref()?.meta.as_ref()
    }

    /// The object itself.
    pub fn object(&self) -> &Object {
        static EMPTY: LazyLock<Object> = LazyLock::new(Object::empty);
        match &self.0 {
            Some(split) => &split.object,
            None => &EMPTY,
        }
    }
}

impl std::ops::Deref for Params {
    type Target = Object;

    fn deref(&self) -> &Object {
        self.object()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Incoming, Message};

    #[test]
    fn parameters_with_another_member_are_as_if_read_anew() {
        let limits = Limits::default();
        for text in [
            r#"{"name":"a","_meta":{"x":{"y":1},"z":"q"},"arguments":{"n":1.0}}"#,
            r#" {"_meta": { "x" : 1 } , "arguments":{},"name" : "a"}"#,
            r#"{"name":"a"}"#,
            r#"{"arguments":{"k":[1,2]}}"#,
        ] {
            let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{text}}}"#);
            let Ok(Incoming::One(Message::Request(request))) = Incoming::parse(request.into(), &limits)
            else {
                panic!("{text}");
            };
            let alone = Params::parse(&Json::trusted(text), &limits).unwrap();
            for params in [&request.params, &alone] {
                for value in ["\"\"", "\"longer than before\"", "\"b\""] {
                    let changed = params.with("name", &Json::trusted(value));
                    let anew = Params::parse(&Json::trusted(changed.as_str().to_owned()), &limits).unwrap();
                    assert_eq!(changed.get("name"), Some(value), "{text}");
                    for member in ["name", "_meta", "arguments"] {
                        assert_eq!(changed.get(member), anew.get(member), "{text}");
                    }
                    let meta = |params: &Params| {
                        params.meta().map(|meta| {
                            (
                                meta.as_str().to_owned(),
                                meta.get("x").map(str::to_owned),
                                meta.get("z").map(str::to_owned),
                            )
                        })
                    };
                    assert_eq!(meta(&changed), meta(&anew), "{text}");
                }
            }
        }
    }
}
