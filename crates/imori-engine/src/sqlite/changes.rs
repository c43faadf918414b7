//! Changes of documents, each within a savepoint of the current SQL transaction.

use imori_automation::value::{Map, Value};
use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter};

use super::field::value;
use crate::sql::{Change, Collection, Committed, Field, Split, StoreError, Transaction};

/// Applies the changes, all or none.
pub(super) fn apply(connection: &Connection, transaction: &Transaction) -> Result<Committed, StoreError> {
    connection.prepare_cached("SAVEPOINT part")?.execute([])?;
    for change in transaction.changes() {
        match apply_change(connection, change) {
            Ok(true) => {}
            Ok(false) => {
                undo(connection)?;
                return Ok(Committed::Void);
            }
            Err(error) => {
                undo(connection)?;
                return Err(error);
            }
        }
    }
    connection.prepare_cached("RELEASE part")?.execute([])?;
    Ok(Committed::Done)
}

fn undo(connection: &Connection) -> Result<(), StoreError> {
    connection.execute_batch("ROLLBACK TO part; RELEASE part")?;
    Ok(())
}

/// Returns false if the transaction is void.
fn apply_change(connection: &Connection, change: &Change) -> Result<bool, StoreError> {
    match change {
        Change::Put(collection, document) => {
            write(connection, "INSERT OR REPLACE", collection, document)?;
        }
        Change::Keep(collection, document) => {
            write(connection, "INSERT OR IGNORE", collection, document)?;
        }
        Change::Insert(collection, document) => {
            return write(connection, "INSERT OR IGNORE", collection, document);
        }
        Change::Require(collection, id, column, values) => {
            let sql = format!("SELECT \"{column}\" FROM {} WHERE id = ?", collection.name);
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query([id])?;
            let Some(row) = rows.next()? else { return Ok(false) };
            let found = row.get_ref(0)?;
            return Ok(values.iter().any(|wanted| value(Field::of(Some(wanted))) == found));
        }
        Change::Delete(collection, id) => {
            let sql = format!("DELETE FROM {} WHERE id = ?", collection.name);
            if connection.prepare_cached(&sql)?.execute([id])? > 0 {
                forget(connection, collection, id)?;
            }
        }
    }
    Ok(true)
}

/// Writes a document; returns false if it is ignored, because there is one of its id.
fn write(
    connection: &Connection,
    verb: &str,
    collection: &Collection,
    document: &Map,
) -> Result<bool, StoreError> {
    let split = Split::of(document)?;
    let places = vec!["?"; collection.columns.len() + 2].join(", ");
    let columns: String = collection.columns.iter().map(|column| format!("\"{}\", ", column.name)).collect();
    let sql = format!("{verb} INTO {} (id, {columns}body) VALUES ({places})", collection.name);
    let mut values = vec![Field::of(document.get("id"))];
    values.extend(collection.columns.iter().map(|column| column.of(document)));
    values.push(Field::Text(&split.body));
    let is_written = connection.prepare_cached(&sql)?.execute(params_from_iter(values))? == 1;
    if is_written {
        let id = document.get("id").and_then(Value::as_str).unwrap_or_default();
        store_parts(connection, &split, collection, id)?;
    }
    Ok(is_written)
}

/// Stores the parts, and frees those of the document's earlier form that no document uses any more.
fn store_parts(
    connection: &Connection,
    split: &Split,
    collection: &Collection,
    id: &str,
) -> Result<(), StoreError> {
    let before = release(connection, collection, id)?;
    for part in &split.parts {
        let sql = "SELECT 1 FROM large_values WHERE hash = ?";
        let is_there =
            connection.prepare_cached(sql)?.query_row([&part.hash], |_| Ok(())).optional()?.is_some();
        if !is_there {
            connection
                .prepare_cached("INSERT INTO large_values (hash, length, bytes) VALUES (?, ?, ?)")?
                .execute(params![part.hash, part.length(), part.compressed()])?;
        }
        connection
            .prepare_cached("INSERT INTO large_uses (collection, document, part, hash) VALUES (?, ?, ?, ?)")?
            .execute(params![collection.name, id, part.name, part.hash])?;
    }
    free(connection, &before)
}

/// Frees the parts of a document that is deleted.
pub(super) fn forget(connection: &Connection, collection: &Collection, id: &str) -> Result<(), StoreError> {
    let before = release(connection, collection, id)?;
    free(connection, &before)
}

/// Removes the uses of a document; returns the values that it used.
fn release(connection: &Connection, collection: &Collection, id: &str) -> Result<Vec<String>, StoreError> {
    let sql = "DELETE FROM large_uses WHERE collection = ? AND document = ? RETURNING hash";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([collection.name, id], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Deletes those of the values that no document uses.
fn free(connection: &Connection, hashes: &[String]) -> Result<(), StoreError> {
    for hash in hashes {
        let sql = "DELETE FROM large_values WHERE hash = ?1 \
                   AND NOT EXISTS (SELECT 1 FROM large_uses WHERE hash = ?1)";
        connection.prepare_cached(sql)?.execute([hash])?;
    }
    Ok(())
}
