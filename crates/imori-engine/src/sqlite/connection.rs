//! A connection to a file, and the statements that it runs.

use std::borrow::Cow;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params_from_iter};

use super::changes::{apply, forget};
use super::schema::prepare;
use crate::limits::{
    FREE_PAGES_KEPT, PAGE_CACHE_KIB, STATEMENTS_MAX, VACUUM_PAGES, WAL_BYTES_KEPT, WAL_PAGES,
    WRITER_CACHE_KIB,
};
use crate::sql::{
    Collection, Committed, Each, Field, LastCommit, Row, StoreConnection, StoreError, Transaction,
};

/// A connection to the file of a store.
#[derive(Debug)]
pub struct Sqlite(Connection);

impl Sqlite {
    /// The connection that writes. The file is made if it is missing.
    ///
    /// # Errors
    /// The file cannot be opened, or is of another format.
    pub fn writing(path: &Path) -> Result<Sqlite, StoreError> {
        let connection = Connection::open(path)?;
        // A new file has to be told before its first page is written.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // A commit is confirmed to its source, so that each has to be synced.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "wal_autocheckpoint", WAL_PAGES)?;
        connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
        connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
        // Else the journal of each savepoint is a file.
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        prepare(&connection)?;
        Ok(Sqlite(connection))
    }

    /// A connection that reads.
    ///
    /// # Errors
    /// There is no such file, or it cannot be opened.
    pub fn reading(path: &Path) -> Result<Sqlite, StoreError> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.pragma_update(None, "cache_size", -PAGE_CACHE_KIB)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        Ok(Sqlite(connection))
    }

    /// Whether there is a table of this name.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn has_table(&self, name: &str) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?";
        Ok(self.0.query_row(sql, [name], |_| Ok(())).optional()?.is_some())
    }

    /// A number that SQLite keeps, such as `page_count`.
    pub fn pragma(&self, name: &str) -> Result<u64, StoreError> {
        let mut statement = self.0.prepare_cached(&format!("PRAGMA {name}"))?;
        let value: i64 = statement.query_row([], |row| row.get(0))?;
        Ok(u64::try_from(value).unwrap_or_default())
    }
}

impl StoreConnection for Sqlite {
    fn query(&self, sql: &str, fields: &[Field<'_>], each: &mut Each<'_>) -> Result<(), StoreError> {
        let mut statement = self.0.prepare_cached(sql)?;
        let mut rows = statement.query(params_from_iter(fields))?;
        while let Some(row) = rows.next()? {
            if each(row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn begin(&self) -> Result<(), StoreError> {
        Ok(self.0.execute_batch("BEGIN IMMEDIATE")?)
    }

    fn begin_reading(&self) -> Result<(), StoreError> {
        Ok(self.0.execute_batch("BEGIN")?)
    }

    fn commit(&self) -> Result<(), StoreError> {
        let committed = self.0.execute_batch("COMMIT");
        if committed.is_err() {
            // A failed commit leaves the transaction open.
            self.roll_back();
        }
        Ok(committed?)
    }

    fn roll_back(&self) {
        // Without an open transaction there is nothing to undo.
        let _ = self.0.execute_batch("ROLLBACK");
    }

    fn apply(&self, transaction: &Transaction) -> Result<Committed, StoreError> {
        apply(&self.0, transaction)
    }

    fn delete(&self, collection: &Collection, id: &str) -> Result<(), StoreError> {
        let sql = format!("DELETE FROM {} WHERE id = ?", collection.name);
        self.0.prepare_cached(&sql)?.execute([id])?;
        forget(&self.0, collection, id)
    }

    /// Bytes of the pages in use.
    fn used_bytes(&self) -> Result<u64, StoreError> {
        let used = self.pragma("page_count")?.saturating_sub(self.pragma("freelist_count")?);
        Ok(used.saturating_mul(self.pragma("page_size")?))
    }

    /// Gives some free pages back; returns whether more are left than are kept.
    fn give_back(&self) -> Result<bool, StoreError> {
        let free = self.pragma("freelist_count")?;
        if free <= FREE_PAGES_KEPT {
            return Ok(false);
        }
        let sql = format!("PRAGMA incremental_vacuum({VACUUM_PAGES})");
        let mut statement = self.0.prepare_cached(&sql)?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        // A file that cannot shrink is left as it is.
        let left = self.pragma("freelist_count")?;
        Ok(left > FREE_PAGES_KEPT && left < free)
    }

    fn damage(&self) -> Result<Option<String>, StoreError> {
        let sound: String = self.0.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        Ok((sound != "ok").then_some(sound))
    }

    /// A file is not lost, so that nobody asks.
    fn reconnect(&self) -> Result<LastCommit, StoreError> {
        Err(StoreError::Closed)
    }
}

impl Row for rusqlite::Row<'_> {
    fn text(&self, column: usize) -> Result<Option<Cow<'_, str>>, StoreError> {
        let text = self.get_ref(column)?.as_str_or_null().map_err(rusqlite::Error::from)?;
        Ok(text.map(Cow::Borrowed))
    }

    fn number(&self, column: usize) -> Result<i64, StoreError> {
        let number = self.get_ref(column)?.as_i64_or_null().map_err(rusqlite::Error::from)?;
        Ok(number.unwrap_or_default())
    }

    fn bytes(&self, column: usize) -> Result<&[u8], StoreError> {
        Ok(self.get_ref(column)?.as_bytes().map_err(rusqlite::Error::from)?)
    }
}
