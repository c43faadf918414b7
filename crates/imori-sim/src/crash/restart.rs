//! From what is on the disk to a broker that goes on, by the core's own recovery.

use imori_core::confirm::Lsn;
use imori_core::record::{NewRecord, RecordError, RecordKind, Table};
use imori_core::restore::{Awakening, Restore};
use imori_store::record::{Record, RecordType};

use crate::planted::Bug;
use crate::shared::Shared;

/// Gives a new broker the queues that its journal has; gives those that are to be woken.
pub(crate) fn restore(shared: &Shared, mut records: Vec<Record>) -> Result<Vec<Awakening>, RecordError> {
    if shared.has(Bug::LastRecordCut) {
        records.pop();
    }
    if shared.has(Bug::ReplayBackwards) {
        records.reverse();
    }
    let was_clean = shared.has(Bug::MarkForgotten);
    let mut restore = Restore::new(shared.memory.gauge().clone(), shared.clock.get(), was_clean);
    let mut log = shared.log.borrow_mut();
    if !shared.has(Bug::DefinitionsForgotten) {
        for ((table, key), value) in &log.definitions.rows {
            if *table != Table::Bindings || !shared.has(Bug::BindingsForgotten) {
                restore.row(*table, key.clone(), value.clone());
            }
        }
    }
    let applied = log.definitions.applied;
    let of = |kind: RecordType| {
        let records = records.iter().filter(move |record| record.kind == kind);
        records.map(|record| (Lsn(record.lsn.0), &record.payload))
    };
    for (lsn, payload) in of(RecordType::Definition).filter(|(lsn, _)| *lsn > applied) {
        restore.definition(lsn, payload)?;
    }
    restore.define()?;
    if !shared.has(Bug::SettlesForgotten) {
        of(RecordType::Settle).try_for_each(|(_, payload)| restore.settle(payload))?;
    }
    of(RecordType::Count).try_for_each(|(_, payload)| restore.count(payload))?;
    of(RecordType::Seen).try_for_each(|(lsn, payload)| restore.seen(lsn, payload))?;
    of(RecordType::Message).try_for_each(|(lsn, payload)| restore.message(lsn, payload))?;
    for record in &records {
        if let Some(kind) = kind(record.kind) {
            log.note_recovered(Lsn(record.lsn.0), &NewRecord::new(kind, record.payload.to_vec()));
        }
    }
    drop(log);
    let mut topology = shared.topology.borrow_mut();
    let (awakenings, restored) = restore.finish(&mut topology, &mut |queue| {
        let (slot, generation) = shared.queues.insert(|_, _| queue);
        Some(imori_core::id::QueueId { slot, generation })
    });
    *shared.table.borrow_mut() = std::sync::Arc::new(topology.table().clone());
    shared.trace.note(&[restored.queues as u64, restored.messages as u64], || format!("-- {restored:?}"));
    Ok(awakenings)
}

fn kind(kind: RecordType) -> Option<RecordKind> {
    match kind {
        RecordType::Message => Some(RecordKind::Message),
        RecordType::Settle => Some(RecordKind::Settle),
        RecordType::Count => Some(RecordKind::Count),
        RecordType::Seen => Some(RecordKind::Seen),
        RecordType::Definition => Some(RecordKind::Definition),
        _ => None,
    }
}
