//! The values of columns as SQLite knows them.

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};

use crate::sql::Field;

impl ToSql for Field<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(value(*self)))
    }
}

/// The value as SQLite knows it.
pub(super) fn value(field: Field<'_>) -> ValueRef<'_> {
    match field {
        Field::Null => ValueRef::Null,
        Field::Int(number) => ValueRef::Integer(number),
        Field::Real(number) => ValueRef::Real(number),
        Field::Text(text) => ValueRef::Text(text.as_bytes()),
        Field::Bytes(bytes) => ValueRef::Blob(bytes),
    }
}
