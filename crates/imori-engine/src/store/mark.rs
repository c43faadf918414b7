//! The mark of a store, read before the store is used.

use std::ops::ControlFlow;

use imori_automation::value::Value;

use super::location::Location;
use super::parts::Parts;
use super::query::document;
use crate::postgres::{Postgres, Role};
use crate::sql::{Field, MARK_ID, MARKS, StoreConnection, StoreError};
use crate::sqlite::Sqlite;

/// What is found where a store should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreState {
    /// No store.
    Absent,
    /// A store without a mark.
    Unmarked,
    /// A store with this mark.
    Marked(String),
}

/// Looks for a store and its mark, and changes nothing.
///
/// # Errors
/// The store cannot be read.
pub fn found(location: &Location) -> Result<StoreState, StoreError> {
    let store: Box<dyn StoreConnection> = match location {
        Location::File(path) if !path.exists() => return Ok(StoreState::Absent),
        Location::File(path) => {
            let store = Sqlite::reading(path)?;
            if !store.has_table(MARKS.name)? {
                return Ok(StoreState::Unmarked);
            }
            Box::new(store)
        }
        Location::Server(address) => {
            let store = Postgres::new(address, Role::Reader)?;
            if !store.has_store()? || !store.has_table(MARKS.name)? {
                return Ok(StoreState::Unmarked);
            }
            Box::new(store)
        }
    };
    let mut mark = None;
    let sql = format!("SELECT body FROM {} WHERE id = $1", MARKS.name);
    store.query(&sql, &[Field::Text(MARK_ID)], &mut |row| {
        let document = document(&*store, row.bytes(0)?, &Parts::All)?;
        mark = document.get("mark").and_then(Value::as_str).map(str::to_owned);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(mark.map_or(StoreState::Unmarked, StoreState::Marked))
}
