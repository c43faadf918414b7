//! The store of definitions: vhosts, exchanges, queues and bindings as bytes, in a redb file.
//!
//! The file is a checkpoint. A definition is a journal record first, and is applied here after its
//! release. So the file may lag behind the journal, but it records by how much, never goes back,
//! and never returns a byte that was not stored.

use std::fmt;
use std::io;
use std::mem::ManuallyDrop;

use bytes::Bytes;
use redb::{Builder, Database, ReadableDatabase as _, WriteTransaction};

use super::damage::{DefinitionsDamage, TABLES, Table};
use super::error::{DefinitionsError, NAME};
use super::file::{ChangedFile, SeenFile};
use super::panics::quietly;
use super::rows::{self, Change, Content, Header, OBJECTS_LOST, ROWS_LOST, Row};
use crate::disk::{Disk, DiskFile};
use crate::limits::{DEFINITIONS_CACHE_BYTES, DEFINITIONS_READS_MAX};
use crate::lsn::Lsn;
use crate::seal::StoreId;
use crate::settings::OnDamage;

/// The name of a new file that is not complete yet.
const NEW: &str = "definitions.redb.new";

/// The name of the repaired copy until the damaged file is set aside.
const REPAIRED: &str = "definitions.redb.repaired";

/// Whether the store had content before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriorContent {
    /// The store is new.
    Nothing,
    /// The store has content, so it had definitions too.
    Definitions,
}

/// The findings of a read-only inspection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionsInspection {
    /// The last journal number that was applied.
    pub applied: Lsn,
    /// The number of rows that verify, by table.
    pub rows: Vec<(Table, usize)>,
    /// The rows of the queues.
    pub queues: Vec<Row>,
    /// The damage.
    pub damage: DefinitionsDamage,
}

/// The definitions of a store.
pub struct Definitions {
    database: OpenState,
    opens: Opens,
    store: StoreId,
    head: Header,
    damage: DefinitionsDamage,
}

/// The file, or its content until the file can be opened for writing.
enum OpenState {
    Open(Database),
    /// Rows read when the disk was too full to open the file, which redb writes to.
    Seen(Vec<(Table, Vec<Row>)>),
}

/// Opens the file for writing.
type Opens = Box<dyn Fn() -> Result<Database, DefinitionsError> + Send>;

impl fmt::Debug for Definitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definitions").field("head", &self.head).field("damage", &self.damage).finish()
    }
}

/// Inspects a file without changing it; `None` if there is none.
pub fn inspect<D: Disk>(disk: &D, store: StoreId) -> Result<Option<DefinitionsInspection>, DefinitionsError> {
    let names = disk.list()?;
    // A file that was being set aside when the process ended is not lost.
    let name = [NAME, REPAIRED].into_iter().find(|name| names.iter().any(|there| there == name));
    let Some(name) = name else { return Ok(None) };
    let Content { head, tables, damage } = read_whole(disk, name, store)?;
    let rows = tables.iter().map(|(table, rows)| (*table, rows.len())).collect();
    let queues = tables.into_iter().filter(|(table, _)| *table == Table::Queues).flat_map(|(_, rows)| rows);
    Ok(Some(DefinitionsInspection { applied: head.applied, rows, queues: queues.collect(), damage }))
}

impl Definitions {
    /// Opens the file, or creates it for a new store. If the settings allow, a damaged file is set
    /// aside unchanged and replaced by a copy of the rows that verify.
    pub fn open<D: Disk + Clone>(
        disk: &D,
        store: StoreId,
        was: PriorContent,
        on_damage: OnDamage,
    ) -> Result<Definitions, DefinitionsError> {
        clear(disk)?;
        let is_there = disk.list()?.iter().any(|name| name == NAME);
        let content = match (is_there, was) {
            (true, _) => read_what_verifies(disk, NAME, store, on_damage)?,
            (false, PriorContent::Nothing) => Content::default(),
            (false, PriorContent::Definitions) => Content::nothing_left(format!("`{NAME}` is missing")),
        };
        if !content.damage.is_none() && on_damage == OnDamage::Refuse {
            return Err(DefinitionsError::Damaged(Box::new(content.damage)));
        }
        match is_there {
            false => {
                make(disk, NEW, store, &content)?;
                disk.rename(NEW, NAME)?;
                disk.sync_folder()?;
            }
            true if !content.damage.is_none() => set_aside(disk, store, &content)?,
            true => {}
        }
        let Content { mut head, damage, tables } = content;
        let of_file = disk.clone();
        let opens: Opens = Box::new(move || redb_on(of_file.open(NAME)?));
        let database = match opens() {
            Ok(database) => OpenState::Open(database),
            // Its content is known, and nothing must be changed yet.
            Err(error) if error.is_out_of_space() && is_there && damage.is_none() => OpenState::Seen(tables),
            Err(error) => return Err(error),
        };
        if let OpenState::Open(database) = &database
            && (!is_there || !damage.is_none())
        {
            // The header of the new copy does not count the lost rows.
            head = contained("reading it", || rows::head(&database.begin_read()?, store))?;
        }
        Ok(Definitions { database, opens, store, head, damage })
    }

    /// Opens the file again after an error that [is a lack of
    /// space](DefinitionsError::is_out_of_space). A started change is undone, as after the end of a
    /// process. If there is still no space, the store stays read-only.
    ///
    /// # Errors
    ///
    /// As [`Definitions::open`].
    pub fn reopened(self) -> Result<Definitions, DefinitionsError> {
        let Definitions { database, opens, store, head, damage } = self;
        // Close it first, so that the file is never open twice.
        let before = match database {
            OpenState::Open(database) => {
                contained("closing it", || {
                    drop(database);
                    Ok(())
                })?;
                Vec::new()
            }
            OpenState::Seen(tables) => tables,
        };
        match opens() {
            Ok(database) => {
                let head = contained("reading it", || rows::head(&database.begin_read()?, store))?;
                Ok(Definitions { database: OpenState::Open(database), opens, store, head, damage })
            }
            Err(error) if error.is_out_of_space() => {
                Ok(Definitions { database: OpenState::Seen(before), opens, store, head, damage })
            }
            Err(error) => Err(error),
        }
    }

    /// Whether lost rows, from this opening or an earlier one, still await [`Definitions::repair`].
    ///
    /// # Errors
    ///
    /// [`DefinitionsError`].
    pub fn lacks_rows(&self) -> Result<bool, DefinitionsError> {
        Ok(self.all(Table::Meta)?.iter().any(|(key, _)| key == ROWS_LOST))
    }

    /// Whether objects of operators were lost at this opening or an earlier one, until
    /// [`Change::objects_recovered`] is applied.
    ///
    /// # Errors
    ///
    /// [`DefinitionsError`].
    pub fn lacks_objects(&self) -> Result<bool, DefinitionsError> {
        Ok(self.all(Table::Meta)?.iter().any(|(key, _)| key == OBJECTS_LOST))
    }

    /// Applies changes that replace lost rows; [`Definitions::lacks_rows`] is false afterwards.
    ///
    /// # Errors
    ///
    /// As [`Definitions::apply`].
    pub fn repair(&mut self, mut changes: Vec<Change>) -> Result<(), DefinitionsError> {
        changes.push(Change { table: Table::Meta, key: Bytes::from_static(ROWS_LOST), value: None });
        self.apply(self.applied(), &changes)
    }

    /// The last journal number that was applied; 0 if none was.
    #[must_use]
    pub fn applied(&self) -> Lsn {
        self.head.applied
    }

    /// The damage found at the opening.
    #[must_use]
    pub fn damage(&self) -> &DefinitionsDamage {
        &self.damage
    }

    /// All rows of a table in ascending order of key.
    pub fn all(&self, table: Table) -> Result<Vec<Row>, DefinitionsError> {
        let database = match &self.database {
            OpenState::Open(database) => database,
            OpenState::Seen(tables) => {
                let rows = tables.iter().find(|(seen, _)| *seen == table);
                return Ok(rows.map(|(_, rows)| rows.clone()).unwrap_or_default());
            }
        };
        let (rows, damaged) =
            contained("reading it", || rows::rows(&database.begin_read()?, table, self.store))?;
        if damaged.is_empty() {
            return Ok(rows);
        }
        let rows = damaged.into_iter().map(|key| (table, key)).collect();
        Err(DefinitionsError::Damaged(Box::new(DefinitionsDamage { rows, ..DefinitionsDamage::default() })))
    }

    /// Durably applies these changes and the LSN `through`, all or none.
    ///
    /// After an error the content on the device is unknown, so every later call fails too. After a
    /// lack of space the file can be [opened again](Definitions::reopened).
    pub fn apply(&mut self, through: Lsn, changes: &[Change]) -> Result<(), DefinitionsError> {
        let OpenState::Open(database) = &self.database else {
            return Err(DefinitionsError::Disk(io::ErrorKind::StorageFull.into()));
        };
        let store = self.store;
        let mut head = self.head.clone();
        head.applied = head.applied.max(through);
        let applied = contained("writing it", || {
            let transaction = begin(database)?;
            rows::write(&transaction, store, &mut head, changes)?;
            transaction.commit()?;
            Ok(())
        });
        match applied {
            Ok(()) => self.head = head,
            Err(DefinitionsError::Unreadable(why)) => {
                return Err(DefinitionsError::Disk(io::Error::other(why)));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Begins a transaction that is durable when its commit returns, at the price of two syncs: first
/// the pages, then the root. If pages below the root do not verify, that is damage: redb never
/// falls back to an older root.
fn begin(database: &Database) -> Result<WriteTransaction, DefinitionsError> {
    let mut transaction = database.begin_write()?;
    // Commits in two phases, and stores what redb otherwise reads all pages for when opening.
    transaction.set_quick_repair(true);
    Ok(transaction)
}

/// Removes incomplete files, and completes an interrupted set-aside of a damaged file.
fn clear<D: Disk>(disk: &D) -> Result<(), DefinitionsError> {
    let names = disk.list()?;
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if has(NEW) {
        disk.remove(NEW)?;
    }
    match (has(NAME), has(REPAIRED)) {
        (true, true) => disk.remove(REPAIRED)?,
        // The damaged file is moved away only once the repaired one is complete.
        (false, true) => {
            disk.rename(REPAIRED, NAME)?;
            disk.sync_folder()?;
        }
        (_, false) => {}
    }
    Ok(())
}

/// Creates a file with this content, and syncs both file and name.
fn make<D: Disk>(disk: &D, name: &str, store: StoreId, content: &Content) -> Result<(), DefinitionsError> {
    let database = redb_on(disk.create(name)?)?;
    contained("making it", || {
        let transaction = begin(&database)?;
        let mut head = Header { rows: [0; TABLES], ..content.head.clone() };
        rows::write(&transaction, store, &mut head, &content.changes())?;
        transaction.commit()?;
        database.close()?;
        Ok(())
    })?;
    disk.sync_folder()?;
    Ok(())
}

fn set_aside<D: Disk>(disk: &D, store: StoreId, content: &Content) -> Result<(), DefinitionsError> {
    make(disk, REPAIRED, store, content)?;
    let names = disk.list()?;
    let mut aside = format!("{NAME}.damaged");
    let mut number = 1;
    while names.contains(&aside) {
        number += 1;
        aside = format!("{NAME}.damaged-{number}");
    }
    disk.rename(NAME, &aside)?;
    disk.rename(REPAIRED, NAME)?;
    disk.sync_folder()?;
    Ok(())
}

/// Reads the rows that verify. An unreadable file counts as empty, unless the settings refuse
/// damage.
fn read_what_verifies<D: Disk>(
    disk: &D,
    name: &str,
    store: StoreId,
    on_damage: OnDamage,
) -> Result<Content, DefinitionsError> {
    match read_whole(disk, name, store) {
        Err(DefinitionsError::Unreadable(why)) if on_damage == OnDamage::Quarantine => {
            Ok(Content::nothing_left(format!("nothing can be read from `{NAME}`, {why}")))
        }
        other => other,
    }
}

/// Reads a whole file and checks each page and each row. A failed check is damage, not an error.
fn read_whole<D: Disk>(disk: &D, name: &str, store: StoreId) -> Result<Content, DefinitionsError> {
    if disk.open(name)?.size()? == 0 {
        return Err(DefinitionsError::Unreadable("it is empty".to_string()));
    }
    let read = |is_strict: bool| {
        let file = disk.open(name)?;
        let seen = SeenFile::new(file, DEFINITIONS_READS_MAX);
        contained("reading it", || {
            let mut builder = Builder::new();
            // Without a cache each step is a read, so that a cycle of pages is noticed.
            let cache_bytes = if is_strict { DEFINITIONS_CACHE_BYTES } else { 0 };
            builder.set_cache_size(cache_bytes).set_check_integrity_on_open(is_strict);
            // When redb closes a database, it writes to it. On a damaged file that may panic, and a
            // second panic during unwinding aborts the process. So a database not known to be sound
            // is leaked.
            let database = ManuallyDrop::new(builder.create_with_backend(seen)?);
            let content = rows::content(&database.begin_read()?, store)?;
            if is_strict {
                drop(ManuallyDrop::into_inner(database));
            }
            Ok(content)
        })
    };
    match read(true) {
        Err(DefinitionsError::Unreadable(why)) => {
            let mut content = read(false)?;
            content.damage.pages = Some(why);
            Ok(content)
        }
        other => other,
    }
}

fn redb_on<F: DiskFile>(file: F) -> Result<Database, DefinitionsError> {
    contained("opening it", || {
        let mut builder = Builder::new();
        Ok(builder.set_cache_size(DEFINITIONS_CACHE_BYTES).create_with_backend(ChangedFile(file))?)
    })
}

/// Turns a panic of redb, which a damaged file may cause, into an error without printing it.
fn contained<T>(
    doing: &str,
    call: impl FnOnce() -> Result<T, DefinitionsError>,
) -> Result<T, DefinitionsError> {
    let contradicts = || DefinitionsError::Unreadable(format!("{doing}, its pages contradict each other"));
    quietly(call).unwrap_or_else(|| Err(contradicts()))
}

#[cfg(test)]
mod tests;
