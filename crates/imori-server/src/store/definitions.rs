//! The thread that brings definitions from the journal to their own store, once they are durable.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};

use imori_core::confirm::Lsn;
use imori_core::record::{Definition, Row, Table};
use imori_store::definitions::{Change, Definitions, DefinitionsError};
use tracing::warn;

use super::failure::Failure;
use crate::limits::{DEFINITION_ROWS_PATIENCE, DEFINITIONS_AGAIN};
use crate::slots::unpoisoned;

/// The thread, and what waits for it.
pub(super) struct DefinitionsThread {
    inbox: Arc<Inbox>,
    thread: Mutex<Option<JoinHandle<bool>>>,
}

#[derive(Debug, Default)]
struct Inbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Payloads of definitions by rising number, and their bytes.
    waiting: VecDeque<(Lsn, Vec<u8>)>,
    waiting_bytes: usize,
    /// Rows that an operator changes, which no record of the journal has, and who waits for them.
    direct: VecDeque<Direct>,
    /// The journal is durable up to here.
    released: Lsn,
    is_ending: bool,
}

/// Changes of rows, and where it is told that they are durable.
#[derive(Debug)]
struct Direct {
    changes: Vec<Change>,
    done: SyncSender<()>,
}

/// Changes rows that belong to no record of the journal: vhosts and what an operator sets.
#[derive(Debug, Clone)]
pub(crate) struct DefinitionRows(Arc<Inbox>);

impl DefinitionRows {
    /// Makes changes durable, all or none, and waits for that; false where the broker has come to its end, or the
    /// disk has no room for them.
    pub(crate) fn change(&self, changes: Vec<Change>) -> bool {
        let (done, is_done) = sync_channel(1);
        let mut state = self.0.lock();
        if state.is_ending {
            return false;
        }
        state.direct.push_back(Direct { changes, done });
        drop(state);
        self.0.changed.notify_one();
        is_done.recv_timeout(DEFINITION_ROWS_PATIENCE).is_ok()
    }
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        unpoisoned(self.state.lock())
    }
}

impl DefinitionsThread {
    /// Starts the thread. `keys` are those of all rows that there are.
    pub(super) fn start(
        definitions: Definitions,
        keys: BTreeSet<(Table, Vec<u8>)>,
        failure: Arc<Failure>,
    ) -> io::Result<DefinitionsThread> {
        let inbox = Arc::new(Inbox::default());
        let of_thread = Arc::clone(&inbox);
        let run = move || run(&of_thread, definitions, keys, &failure);
        let thread = Builder::new().name(String::from("definitions")).spawn(run)?;
        Ok(DefinitionsThread { inbox, thread: Mutex::new(Some(thread)) })
    }

    /// Gives the handle that changes rows directly.
    pub(super) fn rows(&self) -> DefinitionRows {
        DefinitionRows(Arc::clone(&self.inbox))
    }

    /// Takes a definition, whose record is on its way. They come by rising number, as the caller that changes the
    /// topology has it locked meanwhile.
    pub(super) fn note(&self, lsn: Lsn, payload: Vec<u8>) {
        let mut state = self.inbox.lock();
        state.waiting_bytes += payload.len();
        state.waiting.push_back((lsn, payload));
        let is_due = lsn <= state.released;
        drop(state);
        if is_due {
            self.inbox.changed.notify_one();
        }
    }

    /// The first that is not applied yet.
    pub(super) fn first(&self) -> Option<Lsn> {
        self.inbox.lock().waiting.front().map(|(lsn, _)| *lsn)
    }

    /// Bytes of what is not applied yet.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.inbox.lock().waiting_bytes
    }

    /// The journal is durable up to here.
    pub(super) fn release(&self, through: Lsn) {
        let mut state = self.inbox.lock();
        state.released = through;
        let is_due = state.waiting.front().is_some_and(|(lsn, _)| *lsn <= through);
        drop(state);
        if is_due {
            self.inbox.changed.notify_one();
        }
    }

    /// Applies what is durable and ends the thread; tells whether all went well.
    pub(super) fn close(&self, released: Lsn) -> bool {
        {
            let mut state = self.inbox.lock();
            state.released = released;
            state.is_ending = true;
        }
        self.inbox.changed.notify_one();
        let thread = unpoisoned(self.thread.lock()).take();
        thread.is_none_or(|thread| thread.join().unwrap_or(false))
    }
}

/// Applies definitions until it is told to end; false where they could not be.
fn run(
    inbox: &Inbox,
    mut definitions: Definitions,
    mut keys: BTreeSet<(Table, Vec<u8>)>,
    failure: &Failure,
) -> bool {
    loop {
        let Due { records: due, direct, through, is_ending } = next(inbox);
        if due.is_empty() && direct.is_empty() {
            return is_ending;
        }
        let mut changes: Vec<Change> = direct.iter().flat_map(|direct| direct.changes.clone()).collect();
        for (lsn, payload) in &due {
            // What this process wrote it can read.
            let rows =
                Definition::decode(payload).map(|definition| definition.rows(*lsn)).unwrap_or_default();
            rows.into_iter().for_each(|row| push_changes(&mut changes, &mut keys, row));
        }
        match apply(inbox, definitions, (through, &changes), failure) {
            Ok(Some(applied)) => definitions = applied,
            // They are in the journal, for the next start.
            Ok(None) => return false,
            Err(error) => {
                // They are safe in the journal; but nobody knows what a disk that failed once does next.
                failure.tell("definitions", &io::Error::other(error));
                return false;
            }
        }
        // Whoever asked may have given up.
        direct.iter().for_each(|direct| _ = direct.done.try_send(()));
        let mut state = inbox.lock();
        let applied: usize = state.waiting.drain(..due.len()).map(|(_, payload)| payload.len()).sum();
        state.waiting_bytes -= applied;
    }
}

/// Makes changes durable; where the disk has no room for them it tries until it has. Nothing if it is to end first.
fn apply(
    inbox: &Inbox,
    mut definitions: Definitions,
    (through, changes): (Lsn, &[Change]),
    failure: &Failure,
) -> Result<Option<Definitions>, DefinitionsError> {
    let mut is_told = false;
    loop {
        let error = match definitions.apply(imori_store::lsn::Lsn(through.0), changes) {
            Ok(()) => return Ok(Some(definitions)),
            Err(error) => error,
        };
        if !error.is_out_of_space() {
            return Err(error);
        }
        if !std::mem::replace(&mut is_told, true) {
            warn!(%error, "definitions stay in the journal until there is space for them");
        }
        let state = inbox.lock();
        let goes_on = |state: &mut State| !state.is_ending && !failure.has_failed();
        let waited = inbox.changed.wait_timeout_while(state, DEFINITIONS_AGAIN, goes_on);
        let (state, waited) = unpoisoned(waited);
        if !waited.timed_out() {
            return Ok(None);
        }
        drop(state);
        // What was begun is undone by that, as after the end of a process.
        definitions = definitions.reopened()?;
    }
}

/// Changes that can be applied.
struct Due {
    /// Definitions that are durable.
    records: Vec<(Lsn, Vec<u8>)>,
    direct: Vec<Direct>,
    /// The number of the last definition.
    through: Lsn,
    is_ending: bool,
}

/// Waits for something to apply; nothing where it is to end.
fn next(inbox: &Inbox) -> Due {
    let mut state = inbox.lock();
    loop {
        let released = state.released;
        let records: Vec<_> = state.waiting.iter().take_while(|(lsn, _)| *lsn <= released).cloned().collect();
        if !records.is_empty() || !state.direct.is_empty() || state.is_ending {
            // Without a record nothing is known to be applied beyond what was.
            let through = records.last().map_or(Lsn::NONE, |(lsn, _)| *lsn);
            let direct = state.direct.drain(..).collect();
            return Due { records, direct, through, is_ending: state.is_ending };
        }
        state = unpoisoned(inbox.changed.wait(state));
    }
}

/// The store's word for a table.
pub(super) fn of_store(table: Table) -> imori_store::definitions::Table {
    match table {
        Table::Queues => imori_store::definitions::Table::Queues,
        Table::Exchanges => imori_store::definitions::Table::Exchanges,
        Table::Bindings => imori_store::definitions::Table::Bindings,
    }
}

fn push_changes(changes: &mut Vec<Change>, keys: &mut BTreeSet<(Table, Vec<u8>)>, row: Row) {
    match row {
        Row::Put { table, key, value } => {
            keys.insert((table, key.clone()));
            changes.push(Change { table: of_store(table), key: key.into(), value: Some(value.into()) });
        }
        Row::Gone(gone) => {
            for place in gone.among(keys) {
                keys.remove(&place);
                changes.push(Change { table: of_store(place.0), key: place.1.into(), value: None });
            }
        }
    }
}
