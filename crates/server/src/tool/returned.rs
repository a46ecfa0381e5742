//! What `#[tool]` makes of the value of a function: a result of a tool stays what it is, and anything else that can be written
//! and described is structured content.
//!
//! Which of them it is, the compiler decides by looking for a method on `&&&Tag<T>`: first for what is implemented for
//! `&&Tag<T>`, then for `&Tag<T>`, then for `Tag<T>`. A blanket implementation of [`IntoToolResult`] would also be one for `String`
//! and `Result`, which mean something else.

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::Serialize;

use super::error::ToolError;
use super::result::{IntoToolResult, Structured};

/// Stands for the type of a value.
pub struct Tag<T>(PhantomData<fn() -> T>);

/// The tag of this value.
pub fn tag<T>(_: &T) -> Tag<T> {
    Tag(PhantomData)
}

/// A result of a tool.
pub trait AsItIs {
    #[allow(missing_docs)]
    fn kind(&self) -> ToolResultKind {
        ToolResultKind
    }
}

impl<T: IntoToolResult> AsItIs for &&Tag<T> {}

/// A value that can be described, or a failure.
pub trait StructuredOrFailure {
    #[allow(missing_docs)]
    fn kind(&self) -> ResultKind {
        ResultKind
    }
}

impl<T: Serialize + JsonSchema, E: Into<ToolError>> StructuredOrFailure for &Tag<Result<T, E>> {}

/// A value that can be described.
pub trait StructuredValue {
    #[allow(missing_docs)]
    fn kind(&self) -> ValueKind {
        ValueKind
    }
}

impl<T: Serialize + JsonSchema> StructuredValue for Tag<T> {}

#[allow(missing_docs)]
pub struct ToolResultKind;

#[allow(missing_docs)]
impl ToolResultKind {
    pub fn convert<T>(self, value: T) -> T {
        value
    }
}

#[allow(missing_docs)]
pub struct ResultKind;

#[allow(missing_docs)]
impl ResultKind {
    pub fn convert<T, E>(self, value: Result<T, E>) -> Result<Structured<T>, E> {
        value.map(Structured)
    }
}

#[allow(missing_docs)]
pub struct ValueKind;

#[allow(missing_docs)]
impl ValueKind {
    pub fn convert<T>(self, value: T) -> Structured<T> {
        Structured(value)
    }
}
