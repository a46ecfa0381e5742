//! What tools return, and how it is written.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_protocol::Json;
use tidegate_protocol::content::Content;
use tidegate_protocol::json::ObjectWriter;

use super::error::ToolError;
use super::schema;

/// The result of a tool, in full.
///
/// Most handlers return something simpler: see [`IntoToolResult`].
#[derive(Debug, Clone, Default)]
pub struct ToolResult {
    pub(crate) content: Vec<Content>,
    pub(crate) structured: Option<Json>,
    pub(crate) is_error: bool,
    pub(crate) meta: Option<Map<String, Value>>,
}

impl ToolResult {
    /// An empty result.
    pub fn new() -> ToolResult {
        ToolResult::default()
    }

    /// A result that is one text.
    pub fn text(text: impl Into<Content>) -> ToolResult {
        ToolResult::new().content(text)
    }

    /// A failure that is one text. Returning a [`ToolError`] says more.
    pub fn error(text: impl Into<Content>) -> ToolResult {
        ToolResult { is_error: true, ..ToolResult::text(text) }
    }

    /// One more piece of content.
    pub fn content(mut self, content: impl Into<Content>) -> ToolResult {
        self.content.push(content.into());
        self
    }

    /// The structured content. Unlike [`Structured`], this adds no text.
    pub fn structured(mut self, value: impl Into<Json>) -> ToolResult {
        self.structured = Some(value.into());
        self
    }

    /// Marks the result as a failure.
    pub fn with_error(mut self, is_error: bool) -> ToolResult {
        self.is_error = is_error;
        self
    }

    /// One member of `_meta`.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> ToolResult {
        self.meta.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// The result object. `server_info` is the text of `_meta`'s entry about the server, for modern callers only.
    pub(crate) fn write(&self, server_info: Option<&str>) -> Json {
        let size: usize =
            self.content.iter().map(|content| 64 + content.as_text().map_or(128, str::len)).sum();
        let structured = self.structured.as_ref().map_or(0, Json::len);
        let mut w = ObjectWriter::with_capacity(size + structured + server_info.map_or(0, str::len) + 96);
        if server_info.is_some() {
            w.raw("resultType", "\"complete\"");
        }
        w.with("content", |out| {
            out.push(b'[');
            for (i, content) in self.content.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                content.write(out);
            }
            out.push(b']');
        });
        if let Some(structured) = &self.structured {
            w.json("structuredContent", structured);
        }
        if self.is_error {
            w.raw("isError", "true");
        }
        write_meta(&mut w, self.meta.as_ref(), server_info);
        w.finish()
    }
}

/// Writes `_meta` with the author's members and the server's own entry, if there is anything to write.
pub(crate) fn write_meta(w: &mut ObjectWriter, own: Option<&Map<String, Value>>, server_info: Option<&str>) {
    if own.is_none() && server_info.is_none() {
        return;
    }
    w.with("_meta", |out| {
        out.push(b'{');
        if let Some(own) = own {
            for (key, value) in own {
                if out.last() != Some(&b'{') {
                    out.push(b',');
                }
                tidegate_protocol::json::write_str(out, key);
                out.push(b':');
                out.extend_from_slice(value.to_string().as_bytes());
            }
        }
        if let Some(info) = server_info {
            if out.last() != Some(&b'{') {
                out.push(b',');
            }
            out.extend_from_slice(info.as_bytes());
        }
        out.push(b'}');
    });
}

/// What a handler may return: text, content, nothing, structured values, or a `Result` of those.
pub trait IntoToolResult {
    /// The schema of the structured content, for types that always have some.
    fn output_schema() -> Option<Value> {
        None
    }

    /// The result.
    fn into_tool_result(self) -> Result<ToolResult, ToolError>;
}

impl IntoToolResult for ToolResult {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(self)
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(self))
    }
}

impl IntoToolResult for &'static str {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(self))
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::new())
    }
}

impl IntoToolResult for Content {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::new().content(self))
    }
}

impl IntoToolResult for Vec<Content> {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult { content: self, ..ToolResult::new() })
    }
}

impl<T: IntoToolResult, E: Into<ToolError>> IntoToolResult for Result<T, E> {
    fn output_schema() -> Option<Value> {
        T::output_schema()
    }

    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        self.map_err(Into::into)?.into_tool_result()
    }
}

/// A value that is told twice: as structured content, described by the tool's output schema, and as text for clients
/// that read only text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Structured<T>(pub T);

impl<T: Serialize + JsonSchema> IntoToolResult for Structured<T> {
    fn output_schema() -> Option<Value> {
        Some(schema::output_of::<T>())
    }

    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        let json = Json::of(&self.0).map_err(|error| {
            tracing::error!(%error, "a tool's result cannot be written as JSON");
            ToolError::protocol(tidegate_protocol::Error::internal())
        })?;
        Ok(ToolResult::text(json.as_str()).structured(json))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_in_both_eras() {
        let result = ToolResult::text("hi").structured(serde_json::json!({"a": 1})).meta("x/y", 1);
        assert_eq!(
            result.write(None).as_str(),
            r#"{"content":[{"type":"text","text":"hi"}],"structuredContent":{"a":1},"_meta":{"x/y":1}}"#
        );
        assert_eq!(
            ToolResult::error("no").write(Some(r#""s":{}"#)).as_str(),
            r#"{"resultType":"complete","content":[{"type":"text","text":"no"}],"isError":true,"_meta":{"s":{}}}"#
        );
        assert_eq!(ToolResult::new().write(None).as_str(), r#"{"content":[]}"#);
    }
}
