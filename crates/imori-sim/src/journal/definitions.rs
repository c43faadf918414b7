//! A model of the definitions store: rows, and the number up to which they are applied, change
//! together and are durable at once. The real store is tested on the same disk, by itself.

use std::collections::{BTreeMap, VecDeque};

use imori_core::confirm::Lsn;
use imori_core::record::{Definition, Row, Table};
use imori_store::records::RecordType;
use imori_store::recovery::Recovered;

/// The value of each row, by its table and key.
pub(crate) type Rows = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

/// The rows, and the definitions that are not applied yet.
#[derive(Debug, Default, Clone)]
pub(crate) struct Definitions {
    pub(crate) rows: Rows,
    pub(crate) applied: Lsn,
    /// Definitions that are not applied yet, by rising number.
    waiting: VecDeque<(Lsn, Vec<u8>)>,
}

impl Definitions {
    /// Adds a definition whose record is on its way to the disk.
    pub(crate) fn note(&mut self, lsn: Lsn, payload: Vec<u8>) {
        self.waiting.push_back((lsn, payload));
    }

    /// Whether a definition can be applied when the journal is durable up to `synced`.
    pub(crate) fn is_due(&self, synced: Lsn) -> bool {
        self.waiting.front().is_some_and(|(lsn, _)| *lsn <= synced)
    }

    /// Applies the definitions that are durable.
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

    /// The rows, with the definitions that only the journal has.
    pub(crate) fn with(&self, recovered: &Recovered) -> Result<Rows, String> {
        let mut rows = self.rows.clone();
        for record in recovered.records.iter().filter(|record| record.kind == RecordType::Definition) {
            let lsn = Lsn(record.lsn.0);
            if lsn <= self.applied {
                continue;
            }
            let read = Definition::decode(&record.payload);
            for row in read.map_err(|error| format!("record {lsn:?} cannot be read: {error}"))?.rows(lsn) {
                match row {
                    Row::Put { table, key, value } => drop(rows.insert((table, key), value)),
                    Row::Gone(gone) => rows.retain(|(table, key), _| !gone.takes(*table, key)),
                }
            }
        }
        Ok(rows)
    }

    /// The definitions that the next process finds; those not applied are in the journal.
    pub(crate) fn left(&self) -> Definitions {
        Definitions { waiting: VecDeque::new(), ..self.clone() }
    }
}
