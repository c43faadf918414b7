//! Restores a broker from its disk, by the core's own recovery and in the order of the server.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use imori_core::confirm::Lsn;
use imori_core::delivery::{DedupEntry, RecordRef};
use imori_core::id::QueueId;
use imori_core::record::{
    Definition, MessageRecord, RecordError, Row, Table, decode_dedup_entries, decode_settle,
    encode_dedup_entries,
};
use imori_core::restore::{Awakening, Restore};
use imori_core::time::Time;
use imori_server::{Checkpointer, page_facts};
use imori_store::records::RecordType;
use imori_store::recovery::{Messages, ReadError};
use imori_store::segment::PageRef;

use super::pending_dead_letters::unread_rejections;
use super::restart_bugs::{read_counts, read_ids, read_stream};
use crate::journal::{DeviceFile, OpenedStore};
use crate::machine::{Shared, is_unread, read_message};
use crate::planted::Bug;

/// A row, which some bug may read without the settings of a stream.
fn read_row(bug: Option<Bug>, table: Table, key: &[u8], value: &[u8]) -> Result<Vec<u8>, RecordError> {
    if bug != Some(Bug::StreamSettingsLost) || table != Table::Queues {
        return Ok(value.to_vec());
    }
    let (definition, lsn) = Definition::of_row(table, key, value)?;
    let rows = without_settings(definition).rows(lsn);
    let value =
        rows.into_iter().find_map(|row| if let Row::Put { value, .. } = row { Some(value) } else { None });
    Ok(value.unwrap_or_default())
}

/// A definition of the journal, likewise.
fn read_definition(bug: Option<Bug>, payload: &[u8]) -> Result<Vec<u8>, RecordError> {
    match bug {
        Some(Bug::StreamSettingsLost) => Ok(without_settings(Definition::decode(payload)?).encode()),
        _ => Ok(payload.to_vec()),
    }
}

fn without_settings(mut definition: Definition) -> Definition {
    if let Definition::Queue { settings, .. } | Definition::QueueChanged { settings, .. } = &mut definition {
        settings.stream = None;
    }
    definition
}

/// Gives a new broker the queues of its store; returns the queues to wake.
pub(crate) fn restore(shared: &mut Shared, found: OpenedStore) -> Result<Vec<Awakening>, RecordError> {
    let OpenedStore { recovered, mut messages, checkpoint, pages, was_clean } = found;
    let floor = Lsn(recovered.report.floor.map_or(0, |floor| floor.0));
    let records = &recovered.records;
    let was_clean = was_clean || shared.has(Bug::MarkForgotten);
    let gauge = shared.memory.gauge().clone();
    let mut restore = Restore::new(gauge, shared.clock.get(), was_clean).leaving(shared.paging.leaving);
    let log = shared.log.get_mut();
    if shared.bug != Some(Bug::DefinitionsForgotten) {
        for ((table, key), value) in &log.definitions.rows {
            if *table != Table::Bindings || shared.bug != Some(Bug::BindingsForgotten) {
                let row = read_row(shared.bug, *table, key, value)?;
                restore.row(*table, key.clone(), row);
            }
        }
    }
    let of = |kind: RecordType| {
        let records = records.iter().filter(move |record| record.kind == kind);
        records.map(|record| (Lsn(record.lsn.0), &record.payload))
    };
    for (lsn, payload) in of(RecordType::Definition) {
        restore.definition(lsn, &read_definition(shared.bug, payload)?)?;
        log.note_recovered(lsn, payload);
    }
    restore.define()?;
    let doubtful = match was_clean {
        true => (checkpoint.doubtful_below, checkpoint.doubtful_records_below),
        false => (shared.segments.manifest().next_segment, Lsn(recovered.next.0)),
    };
    restore.checkpoint(checkpoint);
    pages.iter().for_each(|facts| restore.page(page_facts(facts)));
    if shared.has(Bug::DelayedPagesBeforeSettles) {
        read_delayed(shared, &mut restore)?;
    }
    if shared.has(Bug::PagesBeforeSettles) {
        list(shared, &mut restore, floor);
    }
    if !shared.has(Bug::SettlesForgotten) {
        of(RecordType::Settle).try_for_each(|(_, payload)| restore.settle(payload))?;
    }
    if !shared.has(Bug::PurgeUnread) {
        of(RecordType::Purge).try_for_each(|(_, payload)| restore.purge(payload))?;
    }
    of(RecordType::Stream)
        .filter(|(_, payload)| !is_unread(shared.bug, payload))
        .try_for_each(|(lsn, payload)| restore.stream(lsn, &read_stream(shared.bug, payload)?))?;
    of(RecordType::Annotations).try_for_each(|(_, payload)| restore.annotations(payload))?;
    of(RecordType::Count).try_for_each(|(_, payload)| match shared.has(Bug::RejectionUnread) {
        true => restore.count(&unread_rejections(payload)?),
        false => restore.count(&read_counts(shared.bug, payload)?),
    })?;
    if !shared.has(Bug::DedupUnread) {
        of(RecordType::Seen).try_for_each(|(lsn, payload)| {
            let now = shared.has(Bug::DedupAnew).then(|| shared.clock.get());
            let has_numbers = !shared.has(Bug::StreamIdNumberForgotten);
            restore.seen(lsn, &read_ids(shared.bug, &seen_at(payload, now, has_numbers)?)?)
        })?;
    }
    if !shared.has(Bug::DelayedPagesBeforeSettles) {
        read_delayed(shared, &mut restore)?;
    }
    if !shared.has(Bug::PagesUnlisted) && !shared.has(Bug::PagesBeforeSettles) {
        list(shared, &mut restore, floor);
    }
    if [Bug::LastRecordCut, Bug::ReplayBackwards, Bug::LastSwapped].iter().any(|bug| shared.has(*bug)) {
        read_wrongly(shared, &messages, &mut restore)?;
    } else {
        let settled = match shared.has(Bug::SettledIdsForgotten) {
            true => settled(of(RecordType::Settle).map(|(_, payload)| &**payload))?,
            false => BTreeSet::new(),
        };
        let sifted = messages.retain(|record, file| {
            if is_settled(&settled, Lsn(record.lsn.0), record.payload)? {
                return Ok(false);
            }
            let file = file.or_else(|| shared.has(Bug::RewrittenStays).then_some(0));
            restore.message(Lsn(record.lsn.0), &read_message(shared.bug, record.payload)?, file)
        });
        sifted.map_err(|error| match error {
            ReadError::Taker(error) => error,
            ReadError::Disk(error) => unreachable!("the disk reads what it read before: {error}"),
        })?;
    }
    shared.checkpointer = Checkpointer::new(shared.paging.files_max, doubtful, restore.gone_pages());
    let mut topology = shared.topology.borrow_mut();
    let (awakenings, restored) = restore.finish(&mut topology, &mut |queue| {
        let (slot, generation) = shared.queues.insert(|_, _| queue);
        Some(QueueId { slot, generation })
    });
    *shared.table.borrow_mut() = Arc::new(topology.table().clone());
    *shared.staying.borrow_mut() = Some(messages);
    let words = [restored.queues as u64, restored.messages as u64, pages.len() as u64];
    shared.trace.note(&words, || format!("-- {restored:?}, of {} pages", pages.len()));
    Ok(awakenings)
}

/// Reads pages of delayed messages as a whole.
fn read_delayed(shared: &Shared, restore: &mut Restore) -> Result<(), RecordError> {
    if shared.has(Bug::DelayedPagesUnread) || shared.has(Bug::StreamPagesUnread) {
        return Ok(());
    }
    for place in restore.delayed_pages() {
        if let Ok(page) = shared.segments.read(PageRef::new(place.segment, place.index)) {
            let entries = page.entries.iter().map(|entry| (Lsn(entry.lsn.0), &*entry.payload));
            restore.delayed_page(place, entries)?;
        }
    }
    Ok(())
}

/// The settled messages, by queue and record.
fn settled<'a>(payloads: impl Iterator<Item = &'a [u8]>) -> Result<BTreeSet<RecordRef>, RecordError> {
    let mut settled = BTreeSet::new();
    for payload in payloads {
        decode_settle(payload, &mut |record_ref| {
            settled.insert(record_ref);
        })?;
    }
    Ok(settled)
}

/// Whether every queue of a message has settled it.
fn is_settled(settled: &BTreeSet<RecordRef>, lsn: Lsn, payload: &[u8]) -> Result<bool, RecordError> {
    if settled.is_empty() {
        return Ok(false);
    }
    let queues = MessageRecord::decode(payload)?.queues;
    Ok(queues.iter().all(|queue| settled.contains(&RecordRef { queue: *queue, lsn })))
}

/// The record of ids, with another time or without numbers if a planted bug says so.
fn seen_at(payload: &[u8], at: Option<Time>, has_numbers: bool) -> Result<Vec<u8>, RecordError> {
    let (mut all, mut of) = (Vec::new(), None);
    decode_dedup_entries(payload, &mut |queue, seen| {
        of = Some(queue);
        let sequence = if has_numbers { seen.sequence } else { 0 };
        all.push(DedupEntry { time: at.unwrap_or(seen.time), sequence, ..seen });
    })?;
    Ok(of.map_or_else(|| payload.to_vec(), |queue| encode_dedup_entries(queue, &all)))
}

/// Reads messages into memory, and restores them as a planted bug would.
fn read_wrongly(
    shared: &Shared,
    messages: &Messages<DeviceFile>,
    restore: &mut Restore,
) -> Result<(), RecordError> {
    let mut read = Vec::new();
    let all = messages.each(|record| {
        read.push((Lsn(record.lsn.0), record.payload.to_vec()));
        Ok::<(), Infallible>(())
    });
    all.expect("the disk reads what it read before");
    match shared.bug {
        Some(Bug::LastRecordCut) => drop(read.pop()),
        Some(Bug::LastSwapped) if read.len() > 1 => {
            let end = read.len();
            read.swap(end - 2, end - 1);
        }
        Some(Bug::ReplayBackwards) => read.reverse(),
        _ => {}
    }
    read.iter().try_for_each(|(lsn, payload)| restore.message(*lsn, payload, None).map(drop))
}

/// Reads the record numbers of those pages whose records the journal may hold too.
fn list(shared: &Shared, restore: &mut Restore, floor: Lsn) {
    for place in restore.pages_to_list(floor) {
        if let Ok(listed) = shared.segments.read_lsns(PageRef::new(place.segment, place.index)) {
            let lsns: Vec<Lsn> = listed.entries.iter().map(|lsn| Lsn(lsn.0)).collect();
            restore.page_list(place, &lsns);
        }
    }
}
