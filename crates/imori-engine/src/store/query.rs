//! A query: conditions, order and part of the result.

use std::ops::ControlFlow;

use imori_automation::value::{Map, Value};

use super::large::join;
use super::parts::Parts;
use crate::sql::{Collection, Field, StoreConnection, StoreError, unsealed};

/// What the documents of a result have in common.
#[derive(Debug, Clone)]
pub enum Condition {
    /// The column has this value.
    Equal(&'static str, Value),
    /// The column has one of these values.
    OneOf(&'static str, Vec<Value>),
    /// The column is greater.
    After(&'static str, Value),
    /// The column is smaller.
    Before(&'static str, Value),
    /// The text begins with this one.
    StartsWith(&'static str, String),
    /// The column has no value.
    Absent(&'static str),
}

/// The order of a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    /// The column.
    pub(crate) column: &'static str,
    /// Whether the greatest value comes first.
    pub(crate) is_descending: bool,
}

/// A query of one collection.
#[derive(Debug, Clone)]
pub struct Query {
    /// The collection.
    pub(crate) collection: &'static Collection,
    /// Conditions; all hold.
    pub(crate) conditions: Vec<Condition>,
    /// Columns by which the result is sorted; the id decides at last.
    pub(crate) order: Vec<Order>,
    /// The number of documents to return at most.
    pub(crate) limit: usize,
    /// The number of documents to leave out first.
    pub(crate) offset: usize,
    /// The parts to read, where they are large.
    pub(crate) parts: Parts,
}

/// A part of a result.
#[derive(Debug, Default)]
pub struct Rows {
    /// The documents.
    pub documents: Vec<Map>,
    /// The number of documents that meet the conditions.
    pub total: usize,
}

impl Query {
    /// All documents of a collection, by id, up to `limit`.
    pub fn all(collection: &'static Collection, limit: usize) -> Query {
        Query { collection, conditions: Vec::new(), order: Vec::new(), limit, offset: 0, parts: Parts::All }
    }

    /// Adds a condition.
    #[must_use]
    pub fn with(mut self, condition: Condition) -> Query {
        self.conditions.push(condition);
        self
    }

    /// Adds a column to the order.
    #[must_use]
    pub fn by(mut self, column: &'static str, is_descending: bool) -> Query {
        self.order.push(Order { column, is_descending });
        self
    }

    /// Reads these parts alone, where they are large.
    #[must_use]
    pub fn reading(mut self, parts: Parts) -> Query {
        self.parts = parts;
        self
    }

    pub(super) fn run(&self, connection: &dyn StoreConnection) -> Result<Rows, StoreError> {
        let name = self.collection.name;
        let (conditions, fields) = self.conditions();
        let mut order: Vec<String> = self
            .order
            .iter()
            .map(|order| format!("\"{}\"{}", order.column, direction(order.is_descending)))
            .collect();
        let is_descending = self.order.first().is_some_and(|order| order.is_descending);
        order.push(format!("id{}", if is_descending { " DESC" } else { "" }));
        let sql = format!(
            "SELECT body FROM {name}{conditions} ORDER BY {} LIMIT {} OFFSET {}",
            order.join(", "),
            self.limit,
            self.offset
        );
        let mut documents = Vec::new();
        connection.query(&sql, &fields, &mut |row| {
            documents.push(document(connection, row.bytes(0)?, &self.parts)?);
            Ok(ControlFlow::Continue(()))
        })?;
        let mut total = documents.len();
        let is_whole = self.offset == 0 && documents.len() < self.limit;
        if !is_whole {
            let sql = format!("SELECT COUNT(*) FROM {name}{conditions}");
            connection.query(&sql, &fields, &mut |row| {
                total = usize::try_from(row.number(0)?).unwrap_or_default();
                Ok(ControlFlow::Break(()))
            })?;
        }
        Ok(Rows { documents, total })
    }

    fn conditions(&self) -> (String, Vec<Field<'_>>) {
        let mut fields = Vec::new();
        let mut parts = Vec::new();
        for condition in &self.conditions {
            let first = fields.len() + 1;
            parts.push(match condition {
                Condition::Equal(column, value) => {
                    fields.push(Field::of(Some(value)));
                    format!("\"{column}\" = ${first}")
                }
                // `IN ()` is no SQL everywhere.
                Condition::OneOf(_, list) if list.is_empty() => String::from("1 = 0"),
                Condition::OneOf(column, list) => {
                    fields.extend(list.iter().map(|value| Field::of(Some(value))));
                    let places: Vec<String> =
                        (first..first + list.len()).map(|place| format!("${place}")).collect();
                    format!("\"{column}\" IN ({})", places.join(", "))
                }
                Condition::After(column, value) => {
                    fields.push(Field::of(Some(value)));
                    format!("\"{column}\" > ${first}")
                }
                Condition::Before(column, value) => {
                    fields.push(Field::of(Some(value)));
                    format!("\"{column}\" < ${first}")
                }
                Condition::StartsWith(column, prefix) if prefix.is_empty() => {
                    format!("\"{column}\" IS NOT NULL")
                }
                Condition::StartsWith(column, prefix) => {
                    fields.push(Field::Text(prefix));
                    format!("substr(\"{column}\", 1, length(${first})) = ${first}")
                }
                Condition::Absent(column) => format!("\"{column}\" IS NULL"),
            });
        }
        match parts.is_empty() {
            true => (String::new(), fields),
            false => (format!(" WHERE {}", parts.join(" AND ")), fields),
        }
    }
}

/// The direction of a column; rows without a value come first, or last in the other direction.
fn direction(is_descending: bool) -> &'static str {
    if is_descending { " DESC NULLS LAST" } else { " NULLS FIRST" }
}

/// Reads a stored document with these of its large parts.
pub(super) fn document(
    connection: &dyn StoreConnection,
    body: &[u8],
    parts: &Parts,
) -> Result<Map, StoreError> {
    let mut document = unsealed(body)?;
    join(connection, &mut document, parts)?;
    Ok(document)
}
