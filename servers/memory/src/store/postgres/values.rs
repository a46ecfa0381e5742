//! Values on their way to PostgreSQL and back.

use std::error::Error;

use ::postgres::types::private::BytesMut;
use ::postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::numeric::Numeric;
use super::{Fault, Result, Row, Value, fault};
use crate::error::Code;

/// The type that a value is sent as. What is `NULL` stands in the query itself, and so has none that matters.
pub(super) fn type_of(value: &Value<'_>) -> Type {
    match value {
        Value::Null | Value::Text(_) => Type::TEXT,
        Value::Int(_) => Type::INT8,
        Value::Real(_) => Type::FLOAT8,
        Value::Blob(_) => Type::BYTEA,
    }
}

/// A letter for the type, to tell prepared statements apart.
pub(super) fn letter(value: &Value<'_>) -> char {
    match value {
        Value::Null => 'n',
        Value::Text(_) => 't',
        Value::Int(_) => 'i',
        Value::Real(_) => 'r',
        Value::Blob(_) => 'b',
    }
}

/// A value on its way.
#[derive(Debug)]
pub(super) struct Param<'a>(&'a Value<'a>);

/// The values of a query.
pub(super) fn params<'a>(values: &'a [Value<'a>]) -> Vec<Param<'a>> {
    values.iter().map(Param).collect()
}

impl Param<'_> {
    pub(super) fn as_dyn(&self) -> &(dyn ToSql + Sync) {
        self
    }
}

impl ToSql for Param<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self.0 {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(n) => n.to_sql(ty, out),
            Value::Real(n) => n.to_sql(ty, out),
            Value::Text(text) => (&**text).to_sql(ty, out),
            Value::Blob(bytes) => (&**bytes).to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::TEXT, Type::INT8, Type::FLOAT8, Type::BYTEA].contains(ty)
    }

    to_sql_checked!();
}

/// A number of whatever type: what a query counts, adds up or compares has another than what is kept.
#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Real(f64),
}

impl<'a> FromSql<'a> for Number {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Number, Box<dyn Error + Sync + Send>> {
        Ok(match *ty {
            Type::INT8 => Number::Int(i64::from_sql(ty, raw)?),
            Type::INT4 => Number::Int(i32::from_sql(ty, raw)?.into()),
            Type::INT2 => Number::Int(i16::from_sql(ty, raw)?.into()),
            Type::BOOL => Number::Int(bool::from_sql(ty, raw)?.into()),
            Type::FLOAT4 => Number::Real(f32::from_sql(ty, raw)?.into()),
            Type::FLOAT8 => Number::Real(f64::from_sql(ty, raw)?),
            _ => {
                let numeric = Numeric::from_sql(ty, raw)?;
                numeric.whole().map_or(Number::Real(numeric.real()), Number::Int)
            }
        })
    }

    fn accepts(ty: &Type) -> bool {
        let known =
            [Type::INT8, Type::INT4, Type::INT2, Type::BOOL, Type::FLOAT4, Type::FLOAT8, Type::NUMERIC];
        known.contains(ty)
    }
}

impl Row for ::postgres::Row {
    fn int(&self, column: usize) -> Result<i64> {
        self.maybe_int(column)?
            .ok_or_else(|| Fault::new(Code::Database, "A number is missing in the database"))
    }

    fn maybe_int(&self, column: usize) -> Result<Option<i64>> {
        match self.try_get::<_, Option<Number>>(column).map_err(|error| fault::of(&error))? {
            Some(Number::Int(n)) => Ok(Some(n)),
            Some(Number::Real(n)) => Err(Fault::new(
                Code::Database,
                format!("{n} stands in the database where a whole number should"),
            )),
            None => Ok(None),
        }
    }

    fn maybe_real(&self, column: usize) -> Result<Option<f64>> {
        let found = self.try_get::<_, Option<Number>>(column).map_err(|error| fault::of(&error))?;
        Ok(found.map(|number| match number {
            Number::Int(n) => n as f64,
            Number::Real(n) => n,
        }))
    }

    fn text(&self, column: usize) -> Result<String> {
        self.try_get(column).map_err(|error| fault::of(&error))
    }

    fn maybe_text(&self, column: usize) -> Result<Option<String>> {
        self.try_get(column).map_err(|error| fault::of(&error))
    }

    fn maybe_blob(&self, column: usize) -> Result<Option<Vec<u8>>> {
        self.try_get(column).map_err(|error| fault::of(&error))
    }
}
