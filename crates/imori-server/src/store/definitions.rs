//! The thread that moves definitions from the journal to their own store once they are durable.

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

/// Handle to the thread and to its inbox.
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
    /// Encoded definitions in order of LSN.
    waiting: VecDeque<(Lsn, Vec<u8>)>,
    waiting_bytes: usize,
    /// Rows changed by an operator, which have no record in the journal.
    direct: VecDeque<Direct>,
    /// The journal is durable through this LSN.
    released: Lsn,
    is_ending: bool,
}

/// A change of rows, and the channel that reports it durable.
#[derive(Debug)]
struct Direct {
    changes: Vec<Change>,
    done: SyncSender<()>,
}

/// Changes rows that have no record in the journal: vhosts, and objects set by an operator.
#[derive(Debug, Clone)]
pub(crate) struct DefinitionRows(Arc<Inbox>);

impl DefinitionRows {
    /// Applies all changes or none and waits until they are durable. Returns false if the broker is ending or the
    /// disk has no room.
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
    /// Starts the thread. `keys` are the keys of all stored rows.
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

    /// Returns the handle that changes rows directly.
    pub(super) fn rows(&self) -> DefinitionRows {
        DefinitionRows(Arc::clone(&self.inbox))
    }

    /// Queues a definition whose record is on its way to the journal. Callers hold the topology lock, so LSNs arrive
    /// in order.
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

    /// LSN of the oldest definition that is not applied yet.
    pub(super) fn first(&self) -> Option<Lsn> {
        self.inbox.lock().waiting.front().map(|(lsn, _)| *lsn)
    }

    /// Bytes of definitions that are not applied yet.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.inbox.lock().waiting_bytes
    }

    /// Lets the thread apply definitions through this LSN, now that the journal is durable that far.
    pub(super) fn release(&self, through: Lsn) {
        let mut state = self.inbox.lock();
        state.released = through;
        let is_due = state.waiting.front().is_some_and(|(lsn, _)| *lsn <= through);
        drop(state);
        if is_due {
            self.inbox.changed.notify_one();
        }
    }

    /// Applies the durable definitions and ends the thread; whether that succeeded.
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

/// Applies definitions until told to end; returns false if some could not be applied.
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
            // This process encoded the payload, so it decodes.
            let rows =
                Definition::decode(payload).map(|definition| definition.rows(*lsn)).unwrap_or_default();
            rows.into_iter().for_each(|row| push_changes(&mut changes, &mut keys, row));
        }
        match apply(inbox, definitions, (through, &changes), failure) {
            Ok(Some(applied)) => definitions = applied,
            // The journal still has them, for the next start.
            Ok(None) => return false,
            Err(error) => {
                // The journal still has them, but a disk that failed once cannot be trusted.
                failure.tell("definitions", &io::Error::other(error));
                return false;
            }
        }
        // The requester may have timed out.
        direct.iter().for_each(|direct| _ = direct.done.try_send(()));
        let mut state = inbox.lock();
        let applied: usize = state.waiting.drain(..due.len()).map(|(_, payload)| payload.len()).sum();
        state.waiting_bytes -= applied;
    }
}

/// Makes changes durable, retrying while the disk is full. Returns `None` if told to end first.
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
        // Reopening rolls the unfinished change back, as after a crash.
        definitions = definitions.reopened()?;
    }
}

/// Changes that can be applied now.
struct Due {
    /// Durable definitions.
    records: Vec<(Lsn, Vec<u8>)>,
    direct: Vec<Direct>,
    /// LSN of the last of them.
    through: Lsn,
    is_ending: bool,
}

/// Waits until there is something to apply, or until told to end.
fn next(inbox: &Inbox) -> Due {
    let mut state = inbox.lock();
    loop {
        let released = state.released;
        let records: Vec<_> = state.waiting.iter().take_while(|(lsn, _)| *lsn <= released).cloned().collect();
        if !records.is_empty() || !state.direct.is_empty() || state.is_ending {
            // Without a record, the applied LSN does not advance.
            let through = records.last().map_or(Lsn::NONE, |(lsn, _)| *lsn);
            let direct = state.direct.drain(..).collect();
            return Due { records, direct, through, is_ending: state.is_ending };
        }
        state = unpoisoned(inbox.changed.wait(state));
    }
}

/// Maps a table of the core to the store's.
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
