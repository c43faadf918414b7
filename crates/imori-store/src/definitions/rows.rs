//! The rows in redb's tables; each value is preceded by a checksum of its table, its key and
//! itself.
//!
//! Redb's checksums cover pages and are verified only on demand. These travel with the value, so
//! that no corruption below redb, and no mix-up of pages, is ever served.

use bytes::Bytes;
use redb::{ReadTransaction, ReadableTable as _, TableDefinition, TableError, WriteTransaction};

use super::damage::{DefinitionsDamage, TABLES, Table};
use super::error::DefinitionsError;
use crate::lsn::Lsn;
use crate::seal::{Seal, StoreId};

/// A row to set or remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Table of the row.
    pub table: Table,
    /// Key of the row.
    pub key: Bytes,
    /// The value; `None` removes the row.
    pub value: Option<Bytes>,
}

/// A key and a value.
pub type Row = (Vec<u8>, Vec<u8>);

/// The version of the tables and their layout, not counting the values.
pub(crate) const VERSION: u32 = 1;

/// The table of the file's own header, with checksums that are independent of the store.
const HEAD: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("head");
const NOBODY: StoreId = StoreId([0; 16]);

const VERSION_KEY: &[u8] = b"version";
const STORE_KEY: &[u8] = b"store";
const APPLIED_KEY: &[u8] = b"applied";
const ROWS_KEY: &[u8] = b"rows";

/// A key in the notes table: rows were lost and have not been replaced yet.
pub(crate) const ROWS_LOST: &[u8] = b"rows lost";

/// A key in the notes table: objects of operators were lost and not recovered by an operator yet.
pub(crate) const OBJECTS_LOST: &[u8] = b"objects lost";

impl Change {
    /// Removes the note that objects of operators are lost; see [`Definitions::lacks_objects`].
    ///
    /// [`Definitions::lacks_objects`]: super::Definitions::lacks_objects
    #[must_use]
    pub fn objects_recovered() -> Change {
        Change { table: Table::Meta, key: Bytes::from_static(OBJECTS_LOST), value: None }
    }
}

/// The header of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) applied: Lsn,
    /// The number of rows in each table, so that missing ones are noticed.
    pub(crate) rows: [u64; TABLES],
}

/// The whole content of a file.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) head: Header,
    pub(crate) tables: Vec<(Table, Vec<Row>)>,
    pub(crate) damage: DefinitionsDamage,
}

impl Default for Content {
    fn default() -> Content {
        let head = Header { applied: Lsn(0), rows: [0; TABLES] };
        Content { head, tables: Vec::new(), damage: DefinitionsDamage::default() }
    }
}

impl Content {
    /// The content of an unreadable file.
    pub(crate) fn nothing_left(why: String) -> Content {
        Content { damage: DefinitionsDamage { all: Some(why), ..Default::default() }, ..Content::default() }
    }

    /// The changes that give an empty file this content, including notes about lost rows and
    /// objects.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let notes =
            [(ROWS_LOST, self.damage.has_lost_rows()), (OBJECTS_LOST, self.damage.has_lost_objects())];
        let note = |key| Change {
            table: Table::Meta,
            key: Bytes::from_static(key),
            value: Some(Bytes::from_static(b"")),
        };
        let mut changes: Vec<Change> =
            notes.into_iter().filter(|(_, is_due)| *is_due).map(|(key, _)| note(key)).collect();
        for (table, rows) in &self.tables {
            changes.extend(rows.iter().map(|(key, value)| Change {
                table: *table,
                key: Bytes::copy_from_slice(key),
                value: Some(Bytes::copy_from_slice(value)),
            }));
        }
        changes
    }
}

/// Reads all tables.
pub(crate) fn content(transaction: &ReadTransaction, store: StoreId) -> Result<Content, DefinitionsError> {
    let head = head(transaction, store)?;
    let mut content = Content { head, ..Content::default() };
    for (table, expected) in Table::ALL.into_iter().zip(content.head.rows) {
        let (rows, damaged) = rows(transaction, table, store)?;
        let found = (rows.len() + damaged.len()) as u64;
        if found < expected {
            content.damage.missing.push((table, expected - found));
        }
        content.damage.rows.extend(damaged.into_iter().map(|key| (table, key)));
        content.tables.push((table, rows));
    }
    Ok(content)
}

/// Reads the header, without which the rest of the file cannot be trusted.
pub(crate) fn head(transaction: &ReadTransaction, store: StoreId) -> Result<Header, DefinitionsError> {
    let table = transaction.open_table(HEAD)?;
    let field = |key: &[u8]| {
        let unreadable = || DefinitionsError::Unreadable("it does not say what it is".to_string());
        let value = table.get(key)?.ok_or_else(unreadable)?;
        let value = opened(NOBODY, "head", key, value.value()).ok_or_else(unreadable)?;
        Ok::<_, DefinitionsError>(value.to_vec())
    };
    let damaged = || DefinitionsError::Unreadable("what it says of itself has a wrong length".to_string());
    let version = u32::from_le_bytes(*field(VERSION_KEY)?.first_chunk().ok_or_else(damaged)?);
    if version != VERSION {
        return Err(DefinitionsError::Version(version));
    }
    if field(STORE_KEY)? != store.0 {
        return Err(DefinitionsError::Foreign);
    }
    let applied = Lsn(u64::from_le_bytes(*field(APPLIED_KEY)?.first_chunk().ok_or_else(damaged)?));
    let counted = field(ROWS_KEY)?;
    let mut rows = [0; TABLES];
    for (count, bytes) in rows.iter_mut().zip(counted.as_chunks::<8>().0) {
        *count = u64::from_le_bytes(*bytes);
    }
    Ok(Header { applied, rows })
}

/// Reads a table: the rows that verify, and the keys of the others.
///
/// Rows behind an unreadable page are read from the other end.
pub(crate) fn rows(
    transaction: &ReadTransaction,
    table: Table,
    store: StoreId,
) -> Result<(Vec<Row>, Vec<Vec<u8>>), DefinitionsError> {
    let opened_table = match transaction.open_table(definition(table)) {
        Err(TableError::TableDoesNotExist(_)) => return Ok((Vec::new(), Vec::new())),
        other => other?,
    };
    let (mut rows, mut damaged, mut keys) = (Vec::new(), Vec::new(), std::collections::BTreeSet::new());
    for is_backwards in [false, true] {
        let mut left = opened_table.iter()?;
        let is_whole = loop {
            let next = if is_backwards { left.next_back() } else { left.next() };
            let (key, value) = match next.transpose() {
                Ok(Some((key, value))) => (key.value().to_vec(), value),
                Ok(None) => break true,
                Err(error) => match DefinitionsError::from(error) {
                    DefinitionsError::Unreadable(_) => break false,
                    error => return Err(error),
                },
            };
            // A cycle of pages is treated as an unreadable page. From the other end, everything was
            // read.
            if !keys.insert(key.clone()) {
                break is_backwards;
            }
            match opened(store, table.name(), &key, value.value()) {
                Some(value) => rows.push((key, value.to_vec())),
                None => damaged.push(key),
            }
        };
        if is_whole {
            break;
        }
    }
    rows.sort_unstable();
    Ok((rows, damaged))
}

/// Applies the changes, updates the row counts, and writes the header.
pub(crate) fn write(
    transaction: &WriteTransaction,
    store: StoreId,
    head: &mut Header,
    changes: &[Change],
) -> Result<(), DefinitionsError> {
    for (table, count) in Table::ALL.into_iter().zip(&mut head.rows) {
        let mut of_table = changes.iter().filter(|change| change.table == table).peekable();
        if of_table.peek().is_none() {
            continue;
        }
        let mut rows = transaction.open_table(definition(table))?;
        for Change { key, value, .. } in of_table {
            let key: &[u8] = key;
            match value {
                Some(value) => {
                    let sealed = sealed(store, table.name(), key, value);
                    *count += u64::from(rows.insert(key, sealed.as_slice())?.is_none());
                }
                None => *count = count.saturating_sub(u64::from(rows.remove(key)?.is_some())),
            }
        }
    }
    let counted: Vec<u8> = head.rows.iter().flat_map(|count| count.to_le_bytes()).collect();
    let mut table = transaction.open_table(HEAD)?;
    for (key, value) in [
        (VERSION_KEY, VERSION.to_le_bytes().as_slice()),
        (STORE_KEY, &store.0),
        (APPLIED_KEY, &head.applied.0.to_le_bytes()),
        (ROWS_KEY, &counted),
    ] {
        table.insert(key, sealed(NOBODY, "head", key, value).as_slice())?;
    }
    Ok(())
}

fn definition(table: Table) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
    TableDefinition::new(table.name())
}

/// A value preceded by its checksum.
fn sealed(store: StoreId, table: &str, key: &[u8], value: &[u8]) -> Vec<u8> {
    let sum = sum(store, table, key, value).to_le_bytes();
    [&sum, value].concat()
}

/// The value, if its checksum matches.
fn opened<'a>(store: StoreId, table: &str, key: &[u8], sealed: &'a [u8]) -> Option<&'a [u8]> {
    let (expected, value) = sealed.split_first_chunk::<4>()?;
    (u32::from_le_bytes(*expected) == sum(store, table, key, value)).then_some(value)
}

fn sum(store: StoreId, table: &str, key: &[u8], value: &[u8]) -> u32 {
    // The lengths keep the end of a key from being taken for the beginning of a value.
    let lens = [table.len() as u64, key.len() as u64].map(u64::to_le_bytes);
    Seal::new(store).sum(&[lens.as_flattened(), table.as_bytes(), key, value])
}
