//! [`Tool`]: a tool as its server describes it.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use tidegate_protocol::param_headers::HeaderParams;
use tidegate_protocol::{Error, Json, Object, Symbol};
use tidegate_service::schema::{Fit, Schema, Unusable, ValidationError};

/// A tool of a server: its definition as it came, and what was read from it.
pub struct Tool {
    name: String,
    definition: Json,
    read_only: bool,
    idempotent: bool,
    /// Whether a legacy server lets it run as a task, or insists.
    pub(crate) task: TaskSupport,
    /// The parameters that are mirrored into headers, or what is wrong with their marks.
    pub(crate) headers: Result<HeaderParams, String>,
    output: OnceLock<Option<Result<Arc<Schema>, Unusable>>>,
}

/// What `execution.taskSupport` says (2025-11-25 basic/utilities/tasks, Tool-Level Negotiation).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TaskSupport {
    #[default]
    Forbidden,
    Optional,
    Required,
}

impl Tool {
    /// Reads a definition; `None` if it has no name.
    pub(crate) fn read(definition: Json) -> Option<Tool> {
        let object = Object::of(&definition)?;
        let name = object.str("name")?.into_owned();
        let hints = object.object("annotations");
        let hint = |name: &str| hints.as_ref().and_then(|h| h.get(name)) == Some("true");
        let (read_only, idempotent) = (hint("readOnlyHint"), hint("idempotentHint"));
        let execution = object.object("execution");
        let task = match execution.as_ref().and_then(|e| e.str("taskSupport")).as_deref() {
            Some("required") => TaskSupport::Required,
            Some("optional") => TaskSupport::Optional,
            _ => TaskSupport::Forbidden,
        };
        let marked =
            |schema: &Json| memchr::memmem::find(schema.as_str().as_bytes(), b"x-mcp-header").is_some();
        let headers = match object.json("inputSchema").filter(marked).map(|schema| schema.to::<Value>()) {
            Some(Ok(schema)) => HeaderParams::from_schema(&schema),
            _ => Ok(HeaderParams::default()),
        };
        // A buffer of its own: a tool outlives the page it came on.
        let definition = Json::trusted(bytestring::ByteString::from(definition.as_str()));
        Some(Tool { name, definition, read_only, idempotent, task, headers, output: OnceLock::new() })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its definition as it came from the server.
    pub fn definition(&self) -> &Json {
        &self.definition
    }

    fn text(&self, member: &str) -> Option<String> {
        Object::of(&self.definition)?.str(member).map(|text| text.into_owned())
    }

    /// Its title for people, if it has one.
    pub fn title(&self) -> Option<String> {
        self.text("title")
    }

    /// What it says it does.
    pub fn description(&self) -> Option<String> {
        self.text("description")
    }

    /// The schema of its arguments.
    pub fn input_schema(&self) -> Value {
        self.schema("inputSchema").unwrap_or_else(|| serde_json::json!({"type": "object"}))
    }

    /// The schema of its structured results, if it has one.
    pub fn output_schema(&self) -> Option<Value> {
        self.schema("outputSchema")
    }

    fn schema(&self, member: &str) -> Option<Value> {
        Object::of(&self.definition)?.json(member)?.to().ok()
    }

    /// Whether it says that calling it changes nothing.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Whether it says that calling it twice does what calling it once does.
    pub fn is_idempotent(&self) -> bool {
        self.idempotent || self.read_only
    }

    /// Checks a result against the tool's output schema. Schemas are never fetched: a `$ref` to an address elsewhere is
    /// an error that says so.
    pub async fn check_output(&self, result: &Json) -> Result<(), Error> {
        let schema = self.output.get_or_init(|| {
            let schema = self.output_schema()?;
            Some(Schema::compile(&schema).map(Arc::new))
        });
        let refuse = |what: String| Err(Error::new(Symbol::ToolExecution, what));
        let schema = match schema {
            None => return Ok(()),
            Some(Ok(schema)) => schema,
            Some(Err(fault)) => {
                return refuse(format!("The output schema of tool {:?} cannot be used: {fault}", self.name));
            }
        };
        let result = Object::of(result).ok_or_else(Error::internal)?;
        if result.get("isError") == Some("true") {
            return Ok(());
        }
        let Some(structured) = result.json("structuredContent").and_then(|json| json.to::<Value>().ok())
        else {
            return refuse(format!(
                "Tool {:?} has an output schema but returned no structured content",
                self.name
            ));
        };
        let first = |errors: &mut dyn Iterator<Item = ValidationError<'_>>| {
            errors.next().map(|fault| match fault.instance_path().as_str() {
                "" => format!("the result: {fault}"),
                at => format!("{at}: {fault}"),
            })
        };
        // A server wrote the schema, and the result: others must not wait for what the two make of each other.
        let fault = match schema.check_apart(structured, first).await {
            Ok((_, Fit::Fits)) => return Ok(()),
            Ok((_, Fit::Problems(fault))) => fault.unwrap_or_default(),
            Ok((_, Fit::Misfits)) => "the result: it is too large for saying where".to_owned(),
            Err(error) => return refuse(format!("The result of tool {:?} is {error}", self.name)),
        };
        refuse(format!("The result of tool {:?} does not fit its output schema: {fault}", self.name))
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tool({})", self.definition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(text: &'static str) -> Tool {
        Tool::read(Json::trusted(text)).unwrap()
    }

    #[tokio::test]
    async fn results_are_checked() {
        let tool = tool(
            r#"{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}"#,
        );
        let check = async |text: &'static str| {
            tool.check_output(&Json::trusted(text)).await.map_err(|e| e.message().to_owned())
        };
        assert_eq!(check(r#"{"content":[],"structuredContent":{"n":1}}"#).await, Ok(()));
        assert_eq!(check(r#"{"content":[],"isError":true}"#).await, Ok(()));
        assert!(check(r#"{"content":[]}"#).await.unwrap_err().contains("no structured content"));
        assert!(check(r#"{"structuredContent":{"n":"x"}}"#).await.unwrap_err().contains("/n"));
    }

    #[tokio::test]
    async fn a_reference_to_the_network_is_never_fetched() {
        let tool = tool(r#"{"name":"t","outputSchema":{"$ref":"http://127.0.0.1:1/schema.json"}}"#);
        let error = tool.check_output(&Json::trusted(r#"{"structuredContent":1}"#)).await.unwrap_err();
        assert!(error.message().contains("cannot be used"), "{error}");
    }

    #[test]
    fn hints() {
        assert!(tool(r#"{"name":"t","annotations":{"readOnlyHint":true}}"#).is_idempotent());
        assert!(!tool(r#"{"name":"t"}"#).is_idempotent());
        assert!(Tool::read(Json::trusted(r#"{"title":"x"}"#)).is_none());
    }
}
