//! Rows of the server.

use std::borrow::Cow;
use std::error::Error;

use tokio_postgres::types::{FromSql, Type};

use super::fault::reason;
use super::field::decode;
use crate::sql::{Row, StoreError};

impl Row for tokio_postgres::Row {
    fn text(&self, column: usize) -> Result<Option<Cow<'_, str>>, StoreError> {
        Ok(value::<Option<&str>>(self, column)?.map(decode))
    }

    fn number(&self, column: usize) -> Result<i64, StoreError> {
        Ok(value::<Option<Number>>(self, column)?.map_or(0, |number| number.0))
    }

    fn bytes(&self, column: usize) -> Result<&[u8], StoreError> {
        Ok(value::<Raw<'_>>(self, column)?.0)
    }
}

fn value<'a, T: FromSql<'a>>(row: &'a tokio_postgres::Row, column: usize) -> Result<T, StoreError> {
    row.try_get(column).map_err(|error| StoreError::Sql(reason(&error)))
}

/// A whole number of any size.
struct Number(i64);

impl FromSql<'_> for Number {
    fn from_sql(kind: &Type, raw: &[u8]) -> Result<Number, Box<dyn Error + Sync + Send>> {
        match *kind {
            Type::INT4 => i32::from_sql(kind, raw).map(|number| Number(number.into())),
            _ => i64::from_sql(kind, raw).map(Number),
        }
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::INT4 | Type::INT8)
    }
}

/// The bytes of a text or of bytes.
struct Raw<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Raw<'a>, Box<dyn Error + Sync + Send>> {
        Ok(Raw(raw))
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::TEXT | Type::BYTEA)
    }
}
