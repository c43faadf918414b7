//! The tables, and the version of their format, which the file keeps as `user_version`.

use rusqlite::{Connection, OptionalExtension as _};

use crate::sql::{COLLECTIONS, StoreError, VERSION, VERSION_WITHOUT_SUMS};

/// The tables of large values, and which document uses which of them.
const LARGE_TABLES: &str = "
CREATE TABLE IF NOT EXISTS large_values (
    hash TEXT PRIMARY KEY, length INTEGER NOT NULL, bytes BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS large_uses (
    collection TEXT NOT NULL, document TEXT NOT NULL, part TEXT NOT NULL, hash TEXT NOT NULL,
    PRIMARY KEY (collection, document, part)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS large_uses_0 ON large_uses (hash);
";

/// Creates the tables of a new file, adds those that an older one lacks, and refuses a file of another version.
pub(super) fn prepare(connection: &Connection) -> Result<(), StoreError> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let is_new =
        connection.query_row("SELECT 1 FROM sqlite_master LIMIT 1", [], |_| Ok(())).optional()?.is_none();
    match version {
        0 if is_new => {
            connection
                .execute_batch(&format!("BEGIN;{}PRAGMA user_version = {VERSION};COMMIT;", tables()))?;
        }
        // A collection that an older engine of this format did not have.
        VERSION => connection.execute_batch(&tables())?,
        // Documents get their checksums when they are stored again.
        VERSION_WITHOUT_SUMS => {
            connection
                .execute_batch(&format!("BEGIN;{}PRAGMA user_version = {VERSION};COMMIT;", tables()))?;
        }
        // Tables and indexes that the older version did not have are added.
        1 => {
            connection
                .execute_batch(&format!("BEGIN;{}PRAGMA user_version = {VERSION};COMMIT;", tables()))?;
            // Only this makes an existing file one that can shrink.
            connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM")?;
        }
        other => return Err(StoreError::Version(other)),
    }
    Ok(())
}

fn tables() -> String {
    let mut sql = String::from(LARGE_TABLES);
    for collection in COLLECTIONS {
        let name = collection.name;
        let columns: String =
            collection.columns.iter().map(|column| format!("\"{}\", ", column.name)).collect();
        sql += &format!(
            "CREATE TABLE IF NOT EXISTS {name} (id TEXT PRIMARY KEY, {columns}body TEXT NOT NULL) WITHOUT ROWID;\n"
        );
        for (number, index) in collection.indexes.iter().enumerate() {
            let columns: Vec<String> = index.iter().map(|column| format!("\"{column}\"")).collect();
            sql +=
                &format!("CREATE INDEX IF NOT EXISTS {name}_{number} ON {name} ({});\n", columns.join(", "));
        }
    }
    sql
}
