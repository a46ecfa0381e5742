//! `x-mcp-header`: tool arguments that are mirrored into `Mcp-Param-*` headers.
//!
//! A tool marks parameters in its input schema. [`HeaderParams`] reads the marks once, when the tool is defined;
//! each call is then checked against it (server) or gets its headers from it (client).

mod schema;

use serde_json::Value;

use crate::error::{Error, Symbol};
use crate::headers::{decode_value, encode_value, malformed, mismatch, missing, quoted};

/// The parameters of one tool that are mirrored into headers.
///
/// ```
/// use serde_json::json;
/// use tidegate_protocol::param_headers::HeaderParams;
///
/// let params = HeaderParams::from_schema(&json!({
///     "type": "object",
///     "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "query": {"type": "string"}},
/// }))?;
/// let arguments = json!({"region": "us-west1", "query": "SELECT 1"});
/// assert_eq!(params.headers_for(Some(&arguments)), [("mcp-param-region".into(), "us-west1".into())]);
///
/// let header = |value: &'static [u8]| move |name: &str| (name == "mcp-param-region").then_some(value);
/// assert!(params.check(Some(&arguments), header(b"us-west1")).is_ok());
/// assert!(params.check(Some(&arguments), header(b"eu-north1")).is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderParams(Vec<HeaderParam>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct HeaderParam {
    /// The header's full name in lower case.
    header: String,
    /// The `properties` keys that lead to the value.
    path: Vec<String>,
}

/// The largest integer that survives a double (2026-07-28 streamable-http, Schema Extension).
const MAX_SAFE: i64 = (1 << 53) - 1;

impl HeaderParams {
    /// Reads the marks of a tool's input schema. Anything the specification forbids is an error that names the
    /// property; such a tool must not be offered over HTTP.
    // 2026-07-28 streamable-http, Schema Extension.
    pub fn from_schema(schema: &Value) -> Result<HeaderParams, String> {
        let mut found = Vec::new();
        if let Value::Object(root) = schema {
            if root.contains_key(schema::MARK) {
                return Err(
                    "x-mcp-header stands at the root of the schema: only properties can be mirrored".into()
                );
            }
            schema::walk(root, &mut Vec::new(), &mut found)?;
        }
        Ok(HeaderParams(found))
    }

    /// Whether no parameter is mirrored.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The full names of the headers, in lower case.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|p| p.header.as_str())
    }

    /// Checks that the headers of a call say what its arguments say. `header` is asked for the full name in lower
    /// case, such as `mcp-param-region`.
    // 2026-07-28 streamable-http, Server Behavior for Custom Headers.
    pub fn check<'h>(
        &self,
        arguments: Option<&Value>,
        header: impl Fn(&str) -> Option<&'h [u8]>,
    ) -> Result<(), Error> {
        self.0.iter().try_for_each(|param| param.check(param.value_in(arguments), header(&param.header)))
    }

    /// The headers that a client sends with these arguments. Values that cannot be mirrored (objects, fractions:
    /// the server will refuse them) are left out.
    pub fn headers_for(&self, arguments: Option<&Value>) -> Vec<(String, String)> {
        let value = |p: &HeaderParam| {
            Some(match p.value_in(arguments)? {
                Value::String(text) => encode_value(text).into_owned(),
                Value::Bool(flag) => flag.to_string(),
                Value::Number(number) => integer(number)?.to_string(),
                _ => return None,
            })
        };
        self.0.iter().filter_map(|p| Some((p.header.clone(), value(p)?))).collect()
    }
}

impl HeaderParam {
    /// The value at the exact path; an explicit `null` counts as none.
    fn value_in<'a>(&self, arguments: Option<&'a Value>) -> Option<&'a Value> {
        self.path.iter().try_fold(arguments?, |value, key| value.get(key)).filter(|value| !value.is_null())
    }

    fn check(&self, body: Option<&Value>, header: Option<&[u8]>) -> Result<(), Error> {
        let name = self.header.as_str();
        let (body, raw) = match (body, header) {
            (None, None) => return Ok(()),
            (Some(_), None) => return Err(missing(name)),
            (body, Some(raw)) => (body, raw),
        };
        let value = decode_value(raw).map_err(|fault| malformed(name, fault))?;
        let agree = match body {
            None => {
                return Err(
                    self.fault(format_args!("is {}, but the arguments have no value", quoted(&value)))
                );
            }
            Some(Value::String(text)) => *text == value,
            Some(Value::Bool(flag)) => value == if *flag { "true" } else { "false" },
            Some(Value::Number(number)) => match integer(number) {
                Some(number) => decimal(&value) == Some(number),
                None => return Err(self.fault(format_args!("mirrors {number}, which is no safe integer"))),
            },
            Some(Value::Array(_)) => return Err(self.fault(format_args!("cannot mirror an array"))),
            Some(_) => return Err(self.fault(format_args!("cannot mirror an object"))),
        };
        match body {
            _ if agree => Ok(()),
            Some(Value::String(text)) => Err(mismatch(name, &value, text)),
            _ => Err(mismatch(name, &value, &body.map(Value::to_string).unwrap_or_default())),
        }
    }

    fn fault(&self, what: std::fmt::Arguments<'_>) -> Error {
        let (header, path) = (&self.header, self.path.join("."));
        Error::new(Symbol::HeaderMismatch, format!("Header mismatch: {header} (argument {path}) {what}"))
    }
}

/// A number of the body as an integer, `42.0` included; `None` for fractions and beyond the safe range.
fn integer(number: &serde_json::Number) -> Option<i64> {
    let value = match number.as_i64() {
        Some(value) => value,
        None => number.as_f64().filter(|f| f.fract() == 0.0 && f.abs() <= MAX_SAFE as f64)? as i64,
    };
    (-MAX_SAFE..=MAX_SAFE).contains(&value).then_some(value)
}

/// A number of a header as an integer: digits, and zeros after the point.
// 2026-07-28 streamable-http, Server Validation: `42.0` and `42` are equal. Not through a double, which would round
// a long fraction away.
fn decimal(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let well_formed = !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && !fraction.is_empty()
        && fraction.bytes().all(|b| b == b'0');
    if well_formed { whole.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn properties(properties: Value) -> Result<HeaderParams, String> {
        HeaderParams::from_schema(&json!({"type": "object", "properties": properties}))
    }

    fn three() -> HeaderParams {
        properties(json!({
            "s": {"type": "string", "x-mcp-header": "S"},
            "o": {"type": "object", "properties": {"i": {"type": "integer", "x-mcp-header": "I"}}},
            "b": {"type": "boolean", "x-mcp-header": "B"},
        }))
        .unwrap()
    }

    /// Headers as `[s, i, b]`, `-` for absent.
    fn outcome(arguments: Value, headers: [&str; 3]) -> Result<(), String> {
        let header = |name: &str| {
            let at =
                ["mcp-param-s", "mcp-param-i", "mcp-param-b"].iter().position(|n| *n == name).expect(name);
            (headers[at] != "-").then_some(headers[at].as_bytes())
        };
        three().check(Some(&arguments), header).map_err(|e| {
            assert_eq!(e.symbol(), Symbol::HeaderMismatch);
            e.message().to_owned()
        })
    }

    #[test]
    fn calls_that_agree() {
        for (arguments, headers) in [
            (json!({}), ["-", "-", "-"]),
            (json!({"s": null, "o": {"i": null}, "b": null}), ["-", "-", "-"]),
            (json!({"s": "x", "o": {"i": 42}, "b": true}), ["x", "42", "true"]),
            (json!({"s": "Hello", "o": {}}), ["=?base64?SGVsbG8=?=", "-", "-"]),
            (json!({"s": "=?base64?SGVsbG8="}), ["=?base64?SGVsbG8=", "-", "-"]),
            (json!({"s": ""}), ["", "-", "-"]),
            (json!({"o": {"i": 42}}), ["-", "42.0", "-"]),
            (json!({"o": {"i": 42.0}}), ["-", "42", "-"]),
            (json!({"o": {"i": -7}, "b": false}), ["-", "-7", "false"]),
            (json!({"o": {"i": 9007199254740991i64}}), ["-", "9007199254740991", "-"]),
            (json!({"o": "not an object"}), ["-", "-", "-"]),
        ] {
            assert_eq!(outcome(arguments.clone(), headers), Ok(()), "{arguments} {headers:?}");
        }
    }

    #[test]
    fn calls_that_do_not() {
        for (arguments, headers, sentence) in [
            (json!({"s": "x"}), ["-", "-", "-"], "the mcp-param-s header is missing"),
            (
                json!({"s": "x"}),
                ["y", "-", "-"],
                "mcp-param-s header value 'y' does not match body value 'x'",
            ),
            (
                json!({"s": "Hello"}),
                ["=?base64?SGVsbG8?=", "-", "-"],
                "cannot be read: its Base64 text is malformed",
            ),
            (json!({}), ["x", "-", "-"], "mcp-param-s (argument s) is 'x', but the arguments have no value"),
            (
                json!({"o": {"i": null}}),
                ["-", "1", "-"],
                "(argument o.i) is '1', but the arguments have no value",
            ),
            (json!({"o": {"i": 42}}), ["-", "43", "-"], "header value '43' does not match body value '42'"),
            (json!({"o": {"i": 42}}), ["-", "42.5", "-"], "does not match"),
            (json!({"o": {"i": 42}}), ["-", "4_2", "-"], "does not match"),
            (json!({"o": {"i": 42}}), ["-", "+42", "-"], "does not match"),
            (json!({"o": {"i": 1.5}}), ["-", "1.5", "-"], "mirrors 1.5, which is no safe integer"),
            (json!({"o": {"i": 9007199254740992i64}}), ["-", "9007199254740992", "-"], "no safe integer"),
            (json!({"o": {"i": 9007199254740991i64}}), ["-", "9007199254740991.4", "-"], "does not match"),
            (json!({"b": true}), ["-", "-", "True"], "header value 'True' does not match body value 'true'"),
            (json!({"s": ["x"]}), ["x", "-", "-"], "cannot mirror an array"),
            (json!({"s": {}}), ["-", "-", "-"], "the mcp-param-s header is missing"),
        ] {
            let error = outcome(arguments.clone(), headers).unwrap_err();
            assert!(error.contains(sentence), "{arguments} {headers:?}: {error:?} lacks {sentence:?}");
        }
    }

    #[test]
    fn headers_of_a_client() {
        let headers = |arguments: Value| -> Vec<String> {
            let mut headers = three().headers_for(Some(&arguments));
            headers.sort_unstable();
            headers.into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
        };
        assert_eq!(
            headers(json!({"s": " é", "o": {"i": 42.0}, "b": false})),
            ["mcp-param-b: false", "mcp-param-i: 42", "mcp-param-s: =?base64?IMOp?="]
        );
        assert_eq!(headers(json!({"s": null, "o": {"i": 0.5}, "b": []})), [""; 0]);
        assert!(three().headers_for(None).is_empty());
    }
}
