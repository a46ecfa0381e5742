//! JSON Schemas, compiled.
//!
//! In one place, because what compiles them is large: every crate that called it by itself would hold a copy.

use jsonschema::{ValidationError, Validator};
use serde_json::Value;

/// Compiles a schema. References are resolved inside it only: nothing is ever fetched.
///
/// ```
/// let schema = serde_json::json!({"type": "string", "maxLength": 3});
/// let compiled = tidegate_service::schema::compile(&schema)?;
/// assert!(compiled.is_valid(&"abc".into()) && !compiled.is_valid(&"abcd".into()));
/// # Ok::<(), jsonschema::ValidationError<'static>>(())
/// ```
pub fn compile(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    build(schema, None)
}

/// The same, with formats (`email`, `date`, …) as part of what is checked.
pub fn compile_with_formats(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    build(schema, Some(true))
}

#[inline(never)]
fn build(schema: &Value, formats: Option<bool>) -> Result<Validator, ValidationError<'static>> {
    let options = jsonschema::options().offline();
    match formats {
        Some(checked) => options.should_validate_formats(checked).build(schema),
        None => options.build(schema),
    }
}
