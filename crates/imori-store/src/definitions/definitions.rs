//! The store of definitions: vhosts, exchanges, queues and bindings as bytes, in a file of redb.
//!
//! The file is a checkpoint. A definition is a journal record first, and is applied here after its release.
//! So the file may lag behind, by a known number that never falls, and never returns a byte that was not
//! stored.

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

/// Name of a new file that is not complete yet.
const NEW: &str = "definitions.redb.new";

/// Name of the repaired copy, until the damaged file is set aside.
const REPAIRED: &str = "definitions.redb.repaired";

/// The expected content of a store that is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriorContent {
    /// The store is new.
    Nothing,
    /// The store has content, and so had definitions.
    Definitions,
}

/// The findings of an inspection, which changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionsInspection {
    /// The last journal number that is applied.
    pub applied: Lsn,
    /// Number of rows that verify, by table.
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

/// The file, once it can be changed.
enum OpenState {
    Open(Database),
    /// Rows read at an opening for which the disk had no space: redb writes when it opens a file.
    Seen(Vec<(Table, Vec<Row>)>),
}

/// Opens the file to change it.
type Opens = Box<dyn Fn() -> Result<Database, DefinitionsError> + Send>;

impl fmt::Debug for Definitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definitions").field("head", &self.head).field("damage", &self.damage).finish()
    }
}

/// Inspects a file without changing it; `None` if there is no file.
pub fn inspect<D: Disk>(disk: &D, store: StoreId) -> Result<Option<DefinitionsInspection>, DefinitionsError> {
    let names = disk.list()?;
    // What a set-aside was cut off from is not lost.
    let name = [NAME, REPAIRED].into_iter().find(|name| names.iter().any(|there| there == name));
    let Some(name) = name else { return Ok(None) };
    let Content { head, tables, damage } = read_whole(disk, name, store)?;
    let rows = tables.iter().map(|(table, rows)| (*table, rows.len())).collect();
    let queues = tables.into_iter().filter(|(table, _)| *table == Table::Queues).flat_map(|(_, rows)| rows);
    Ok(Some(DefinitionsInspection { applied: head.applied, rows, queues: queues.collect(), damage }))
}

impl Definitions {
    /// Opens the file, or creates it for a new store. A damaged file is set aside unchanged, if the settings
    /// allow, and a copy of the rows that verify goes on.
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
            // What it has is known, and nothing has to be changed yet.
            Err(error) if error.is_out_of_space() && is_there && damage.is_none() => OpenState::Seen(tables),
            Err(error) => return Err(error),
        };
        if let OpenState::Open(database) = &database
            && (!is_there || !damage.is_none())
        {
            // The rows that are gone are not counted any more.
            head = contained("reading it", || rows::head(&database.begin_read()?, store))?;
        }
        Ok(Definitions { database, opens, store, head, damage })
    }

    /// Opens the file again after an error that [is a lack of space](DefinitionsError::is_out_of_space). A
    /// started change is undone, as after the end of a process. Without space for that, the store stays as it
    /// is.
    ///
    /// # Errors
    ///
    /// As [`Definitions::open`].
    pub fn reopened(self) -> Result<Definitions, DefinitionsError> {
        let Definitions { database, opens, store, head, damage } = self;
        // First, as two would change one file.
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

    /// Tells whether lost rows still await [`Definitions::repair`], from this opening or an earlier one.
    ///
    /// # Errors
    ///
    /// [`DefinitionsError`].
    pub fn lacks_rows(&self) -> Result<bool, DefinitionsError> {
        Ok(self.all(Table::Meta)?.iter().any(|(key, _)| key == ROWS_LOST))
    }

    /// Tells whether objects of operators are lost, since this opening or an earlier one, until
    /// [`Change::objects_recovered`] is applied.
    ///
    /// # Errors
    ///
    /// [`DefinitionsError`].
    pub fn lacks_objects(&self) -> Result<bool, DefinitionsError> {
        Ok(self.all(Table::Meta)?.iter().any(|(key, _)| key == OBJECTS_LOST))
    }

    /// Applies these changes in place of lost rows; [`Definitions::lacks_rows`] is false afterwards.
    ///
    /// # Errors
    ///
    /// As [`Definitions::apply`].
    pub fn repair(&mut self, mut changes: Vec<Change>) -> Result<(), DefinitionsError> {
        changes.push(Change { table: Table::Meta, key: Bytes::from_static(ROWS_LOST), value: None });
        self.apply(self.applied(), &changes)
    }

    /// The last journal number that is applied; 0 if none is.
    #[must_use]
    pub fn applied(&self) -> Lsn {
        self.head.applied
    }

    /// The damage that was found at the opening.
    #[must_use]
    pub fn damage(&self) -> &DefinitionsDamage {
        &self.damage
    }

    /// All rows of a table by rising key.
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

    /// Applies these changes and the journal number `through` durably, all or none.
    ///
    /// After an error the content of the device is unknown, so that every later call fails too. After a lack
    /// of space the file can be [opened again](Definitions::reopened).
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

/// Begins a transaction that is durable when its commit returns, at the price of two syncs: pages first, then
/// the root. So an existing root with pages that do not verify is damage, and redb never falls back to an
/// older root.
fn begin(database: &Database) -> Result<WriteTransaction, DefinitionsError> {
    let mut transaction = database.begin_write()?;
    // It commits in two phases, and keeps what redb otherwise has to read all pages for.
    transaction.set_quick_repair(true);
    Ok(transaction)
}

/// Removes incomplete files, and completes the setting aside of a damaged file.
fn clear<D: Disk>(disk: &D) -> Result<(), DefinitionsError> {
    let names = disk.list()?;
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if has(NEW) {
        disk.remove(NEW)?;
    }
    match (has(NAME), has(REPAIRED)) {
        (true, true) => disk.remove(REPAIRED)?,
        // The damaged one was moved away, which is done after the repaired one is whole.
        (false, true) => {
            disk.rename(REPAIRED, NAME)?;
            disk.sync_folder()?;
        }
        (_, false) => {}
    }
    Ok(())
}

/// Creates a file with this content, and syncs the file and its name.
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

/// Reads the rows that verify; an unreadable file counts as empty, unless the settings refuse damage.
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

/// Reads a whole file and checks each page and each row. A failed check is damage.
fn read_whole<D: Disk>(disk: &D, name: &str, store: StoreId) -> Result<Content, DefinitionsError> {
    if disk.open(name)?.size()? == 0 {
        return Err(DefinitionsError::Unreadable("it is empty".to_string()));
    }
    let read = |is_strict: bool| {
        let file = disk.open(name)?;
        let seen = SeenFile::new(file, DEFINITIONS_READS_MAX);
        contained("reading it", || {
            let mut builder = Builder::new();
            // Without a cache each step is a read, so that pages in a circle are noticed.
            let cache_bytes = if is_strict { DEFINITIONS_CACHE_BYTES } else { 0 };
            builder.set_cache_size(cache_bytes).set_check_integrity_on_open(is_strict);
            // Closing it, redb writes to what it opened: where that is damaged it may panic, and if that is while a
            // panic is under way already the process ends. So one that is not known to be well is left open.
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

/// Turns a panic of redb, which a damaged file may cause, into an error. The panic is not printed.
fn contained<T>(
    doing: &str,
    call: impl FnOnce() -> Result<T, DefinitionsError>,
) -> Result<T, DefinitionsError> {
    let contradicts = || DefinitionsError::Unreadable(format!("{doing}, its pages contradict each other"));
    quietly(call).unwrap_or_else(|| Err(contradicts()))
}

#[cfg(test)]
mod tests;
