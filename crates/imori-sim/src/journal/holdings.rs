//! Which message records some queue still needs: below the lowest, the journal may forget.

use std::collections::{BTreeMap, BTreeSet};

use imori_core::confirm::Lsn;
use imori_core::id::DurableQueueId;
use imori_core::record::{Definition, MessageRecord, NewRecord, RecordKind, decode_settle};

/// Queues by the record of the message that they hold.
#[derive(Debug, Default)]
pub(crate) struct Holdings(BTreeMap<Lsn, BTreeSet<DurableQueueId>>);

impl Holdings {
    /// Takes in a record.
    pub(crate) fn note(&mut self, lsn: Lsn, record: &NewRecord) {
        match record.kind {
            RecordKind::Message => {
                let queues = MessageRecord::decode(&record.payload).map(|message| message.queues);
                self.0.insert(lsn, queues.unwrap_or_default().into_iter().collect());
            }
            RecordKind::Settle => {
                // What this broker wrote it can read.
                let _ = decode_settle(&record.payload, &mut |holding| {
                    if let Some(queues) = self.0.get_mut(&holding.lsn) {
                        queues.remove(&holding.queue);
                    }
                });
                self.0.retain(|_, queues| !queues.is_empty());
            }
            RecordKind::Definition => {
                if let Ok(Definition::QueueGone { queue }) = Definition::decode(&record.payload) {
                    for queues in self.0.values_mut() {
                        queues.remove(&queue);
                    }
                    self.0.retain(|_, queues| !queues.is_empty());
                }
            }
            RecordKind::Count | RecordKind::Seen => {}
        }
    }

    /// The lowest record that is needed.
    pub(crate) fn first(&self) -> Option<Lsn> {
        self.0.keys().next().copied()
    }
}
