//! The store of definitions as the broker may rely on it: rows, and the number up to which they are applied, change
//! together and are durable when that returns. The real one is tested on the same disk, by itself.

use std::collections::{BTreeMap, VecDeque};

use imori_core::confirm::Lsn;
use imori_core::record::{Definition, Row, Table};

/// The rows, and what is on its way to them.
#[derive(Debug, Default, Clone)]
pub(crate) struct Definitions {
    pub(crate) rows: BTreeMap<(Table, Vec<u8>), Vec<u8>>,
    pub(crate) applied: Lsn,
    /// Definitions that are not applied, by rising number.
    waiting: VecDeque<(Lsn, Vec<u8>)>,
}

impl Definitions {
    /// Takes a definition, whose record is on its way.
    pub(crate) fn note(&mut self, lsn: Lsn, payload: Vec<u8>) {
        self.waiting.push_back((lsn, payload));
    }

    /// Tells whether one is to be applied when the journal is durable up to `synced`.
    pub(crate) fn is_due(&self, synced: Lsn) -> bool {
        self.waiting.front().is_some_and(|(lsn, _)| *lsn <= synced)
    }

    /// Applies those that are durable.
    pub(crate) fn apply(&mut self, synced: Lsn) {
        while let Some((lsn, payload)) = self.waiting.pop_front_if(|(lsn, _)| *lsn <= synced) {
            let rows =
                Definition::decode(&payload).map(|definition| definition.rows(lsn)).unwrap_or_default();
            for row in rows {
                match row {
                    Row::Put { table, key, value } => drop(self.rows.insert((table, key), value)),
                    Row::Gone(gone) => self.rows.retain(|(table, key), _| !gone.takes(*table, key)),
                }
            }
            self.applied = lsn;
        }
    }

    /// The lowest number that is not applied yet.
    pub(crate) fn first_waiting(&self) -> Option<Lsn> {
        self.waiting.front().map(|(lsn, _)| *lsn)
    }

    /// The definitions that the next process finds; those that wait are in the journal.
    pub(crate) fn left(&self) -> Definitions {
        Definitions { waiting: VecDeque::new(), ..self.clone() }
    }
}
