//! Compares the queues with their shadow: the queues that a restart would make of the disk as it is now.
//!
//! The shadow is made by the recovery of a restart, from a copy of the disk as a kill or a power cut would
//! leave it. It has a clock, a disk and a memory gauge of its own, so that it changes nothing in the run.
//! Only a moment at which nothing moves can be compared: all threads are idle, and every record is durable.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use imori_core::confirm::{Level, Lsn};
use imori_core::delivery::DedupEntry;
use imori_core::entries::{Entry, PageSource};
use imori_core::queue::{Contents, KeptMessage, MessageState, QueueSettings};
use imori_core::record::{RecordError, decode_journal_entry, decode_page_entry};
use imori_core::stream::{AckPolicy, ConsumerContents, Position, StreamContents};
use imori_core::time::Time;
use imori_store::disk::sim_disk::{self, SimDisk};
use imori_store::segment::PageRef;

use crate::broker_end::Phase;
use crate::journal::{Device, Store};
use crate::machine::{STORE_THREADS, Shared, Status, Wait};
use crate::property::Property;
use crate::random::Random;
use crate::store::restore;
use crate::trace::Trace;
use crate::workload::Workload;

/// The time between the end and the restart. A message that falls due at the very time of a restart cannot have been
/// delivered, so the restart comes later.
const AWAY: Duration = Duration::from_micros(1);

/// A queue as it was described.
#[derive(Debug)]
struct Described {
    name: String,
    settings: QueueSettings,
    /// `None` if a page cannot be read, or is still being written.
    contents: Option<Contents>,
}

/// Queues by the ids that outlive the broker.
type Queues = BTreeMap<u64, Described>;

/// Whether nothing moves: the broker serves, no thread has work, and everything appended is durable.
pub(crate) fn is_quiet(shared: &Shared) -> bool {
    let is_idle = |thread: usize| match thread.checked_sub(shared.cells.len()) {
        None => !shared.cell(thread).has_work(shared),
        Some(of_store) => {
            let waits = shared.threads.thread(of_store).waits.get();
            // In all other waits the thread is in the middle of a job.
            matches!(waits, Wait::Round | Wait::Writing | Wait::Reading) && !shared.is_store_due(of_store)
        }
    };
    let mut threads = 0..shared.cells.len() + STORE_THREADS;
    shared.phase.get() == Phase::Serving
        && shared.log.borrow().is_settled()
        && threads.all(|thread| shared.status(thread).get() == Status::Idle && is_idle(thread))
}

/// Checks that a restart would give back each durable queue as it is. `random` chooses what a power cut leaves.
pub(crate) fn check_shadow(shared: &Shared, workload: &Workload, random: &Random) {
    let shadow = match shadow(shared, workload, random) {
        Ok(shadow) => shadow,
        Err(error) => return shared.violate(Property::Recovery, || error),
    };
    let now = shadow.clock.get();
    let (live, mut found) = (describe(shared, &shadow, now), describe(&shadow, &shadow, now));
    for (id, queue) in live {
        let name = queue.name.clone();
        let Some(shadow) = found.remove(&id) else {
            return shared.violate(Property::Replica, || format!("a restart would lose the queue `{name}`"));
        };
        if let Some(difference) = difference(queue, shadow, now) {
            return shared.violate(Property::Replica, || {
                format!("a restart would not give back `{name}` as it is: {difference}")
            });
        }
    }
    if let Some(queue) = found.into_values().next() {
        shared.violate(Property::Replica, || {
            format!("a restart would give back the queue `{}`, which is gone", queue.name)
        });
    }
}

/// The broker that a restart would make of the disk as it is, after a kill or a power cut: everything is durable, so both
/// leave the same.
fn shadow(shared: &Shared, workload: &Workload, random: &Random) -> Result<Shared, String> {
    let (state, definitions) = {
        let log = shared.log.borrow();
        (log.device.disk.state(), log.definitions.left())
    };
    let left = match random.chance(1, 2) {
        true => state,
        false => state.crash(&mut sim_disk::Random(random.next())),
    };
    let device = Device::new(SimDisk::new(left), shared.bug);
    let (store, found) =
        Store::open(device, shared.boot.get(), workload.file_blocks, definitions, shared.bug)?;
    // Nothing of what follows is random, and nothing of it belongs into the trace of the run.
    let (random, trace) = (Random::new(0), Trace::new(None));
    let mut shadow = Shared::new(workload, random, trace, shared.bug, shared.settings, store);
    shadow.clock.set(shared.clock.get().after(AWAY));
    restore(&mut shadow, found).map_err(|error| format!("a record cannot be read: {error}"))?;
    Ok(shadow)
}

/// Describes the queues whose messages are on disk.
fn describe(shared: &Shared, shadow: &Shared, now: Time) -> Queues {
    let mut queues = BTreeMap::new();
    shared.queues.each(|_, queue| {
        let Some(durability) = queue.durability().filter(|durability| durability.level > Level::Memory)
        else {
            return;
        };
        let contents = queue.contents(now, &mut |source| read(shared, shadow, source));
        let (name, settings) = (queue.name().to_string(), queue.settings().clone());
        queues.insert(durability.id.0, Described { name, settings, contents });
    });
    queues
}

/// Reads a page of a queue. A segment is read from the shadow's disk, which is a copy: a read of the run's own segments
/// would change what they keep in memory.
fn read(shared: &Shared, shadow: &Shared, source: &PageSource) -> Option<Vec<Entry>> {
    let gauge = shadow.memory.gauge();
    match source {
        PageSource::Segment(place) => {
            let page = shadow.segments.read(PageRef::new(place.segment, place.index)).ok()?;
            let decode = |entry: &imori_store::segment::PageEntry| {
                decode_page_entry(Lsn(entry.lsn.0), &entry.payload, gauge).ok()
            };
            page.entries.iter().map(decode).collect()
        }
        PageSource::Journal(read) => {
            let (staying, mut entries) = (shared.staying.borrow(), Vec::new());
            let lsns = read.lsns.iter().map(|lsn| imori_store::lsn::Lsn(lsn.0));
            let done = staying.as_ref()?.read_records(lsns, |record| {
                entries.push(decode_journal_entry(Lsn(record.lsn.0), record.payload, gauge)?);
                Ok::<(), RecordError>(())
            });
            done.ok().map(|()| entries)
        }
    }
}

/// The first difference between a queue after a restart, as it must be, and as it is.
fn difference(live: Described, shadow: Described, now: Time) -> Option<String> {
    if (&live.name, &live.settings) != (&shadow.name, &shadow.settings) {
        return Some(format!("{:?} are its settings, and not {:?}", shadow.settings, live.settings));
    }
    let Contents { messages, ids, stream } = live.contents?;
    let Some(shadow) = shadow.contents else { return Some(String::from("a page could not be read")) };
    let settings = live.settings;
    let is_stream = stream.is_some();
    let expected: Vec<KeptMessage> =
        messages.into_iter().map(|message| restarted(message, &settings, is_stream, now)).collect();
    let found: Vec<KeptMessage> =
        shadow.messages.into_iter().map(|message| waiting(message, is_stream, now)).collect();
    first_difference(&by_record(&expected), &by_record(&found))
        .or_else(|| swapped(&expected, &found).filter(|_| !is_stream))
        .or_else(|| first_difference(&by_id(ids), &by_id(shadow.ids)))
        .or_else(|| stream_difference(stream?, shadow.stream?))
}

/// A message as it must be after a kill and a restart.
///
/// A delivery is not recorded, so a message that may have been delivered is ready and counts as redelivered. In a queue
/// with a delivery limit an unsettled delivery counts as failed, which is recorded when it is made.
fn restarted(message: KeptMessage, settings: &QueueSettings, is_stream: bool, now: Time) -> KeptMessage {
    let counts = settings.delivery_limit.is_some() && message.state == MessageState::Unsettled;
    let message = waiting(message, is_stream, now);
    let may_be_delivered = message.state == MessageState::Ready && !is_stream;
    KeptMessage {
        failures: message.failures.saturating_add(u32::from(counts)),
        is_redelivered: message.is_redelivered || may_be_delivered,
        ..message
    }
}

/// A message without what a restart changes: it is ready or delayed, and only a stream keeps its number.
///
/// A message that is due counts as ready, whether or not its queue has noticed. Messages that failed too often are
/// unsettled until the restart is over.
fn waiting(message: KeptMessage, is_stream: bool, now: Time) -> KeptMessage {
    let state = match message.state {
        MessageState::Delayed(due) if due > now => message.state,
        _ => MessageState::Ready,
    };
    KeptMessage { state, sequence: if is_stream { message.sequence } else { 0 }, ..message }
}

fn by_record(messages: &[KeptMessage]) -> BTreeMap<Lsn, &KeptMessage> {
    messages.iter().map(|message| (message.record, message)).collect()
}

fn by_id(ids: Vec<DedupEntry>) -> BTreeMap<Vec<u8>, DedupEntry> {
    ids.into_iter().map(|entry| (entry.id.to_vec(), entry)).collect()
}

/// Two messages of a priority that a restart would give back in the wrong order.
///
/// Cells overtake each other between the journal and a queue, and a restart may undo that: so only messages whose records
/// have the order of the queue keep it. A delayed message has no place until it is due.
fn swapped(expected: &[KeptMessage], found: &[KeptMessage]) -> Option<String> {
    let places: BTreeMap<Lsn, usize> =
        found.iter().enumerate().map(|(at, found)| (found.record, at)).collect();
    let place = |message: &KeptMessage| places.get(&message.record).copied().unwrap_or(0);
    let mut before: Vec<&KeptMessage> = Vec::new();
    for message in expected.iter().filter(|message| !message.was_delayed) {
        let is_overtaken = |other: &&&KeptMessage| {
            other.priority == message.priority
                && other.record < message.record
                && place(other) > place(message)
        };
        if let Some(other) = before.iter().find(is_overtaken) {
            let (first, second) = (other.record, message.record);
            return Some(format!("the message with record {first:?} would come after that with {second:?}"));
        }
        before.push(message);
    }
    None
}

fn stream_difference(mut live: StreamContents, mut found: StreamContents) -> Option<String> {
    let (consumers, of_shadow) = (std::mem::take(&mut live.consumers), std::mem::take(&mut found.consumers));
    if let Some(difference) = first_difference(&live.index, &found.index) {
        return Some(difference);
    }
    if live != found {
        return Some(format!("{found:?} and not {live:?}"));
    }
    for (name, live) in &consumers {
        let Some(found) = of_shadow.get(name) else {
            return Some(format!("consumer `{name}` would be missing"));
        };
        if let Some(difference) = consumer_difference(live, found) {
            return Some(format!("consumer `{name}` {difference}: {found:?} and not {live:?}"));
        }
    }
    let more = of_shadow.keys().find(|name| !consumers.contains_key(*name));
    more.map(|name| format!("consumer `{name}` would be there, which is gone"))
}

/// What a restart would change in a consumer of a stream.
///
/// Deliveries are recorded by checkpoints alone, acknowledgements at once. So a consumer that changed since its last
/// record is somewhere behind: it would deliver again what it has delivered since, except what was acknowledged. When
/// deliveries are due again, and the order in which they were returned, is not recorded at all.
fn consumer_difference(live: &ConsumerContents, found: &ConsumerContents) -> Option<&'static str> {
    if (live.created, &live.settings) != (found.created, &found.settings) {
        return Some("would have other settings");
    }
    if live.is_recorded {
        return (live != found).then_some("would be in another place");
    }
    let is_behind =
        |live: Position, found: Position| found.consumer <= live.consumer && found.stream <= live.stream;
    if !is_behind(live.delivered, found.delivered) || !is_behind(live.floor, found.floor) {
        return Some("would be ahead");
    }
    let is_right = match live.settings.acks {
        // Nothing records that a message was delivered that need not be acknowledged.
        AckPolicy::None => live.needed.is_subset(&found.needed),
        AckPolicy::All | AckPolicy::Explicit => live.needed == found.needed,
    };
    let is_delivered_more = found.pending.iter().any(|(sequence, _, deliveries)| {
        live.pending.iter().any(|(own, _, known)| own == sequence && known < deliveries)
    });
    match () {
        () if !is_right => Some("would want other messages"),
        () if is_delivered_more => Some("would have delivered more often"),
        () => None,
    }
}

/// The first difference between two maps.
fn first_difference<K: Ord + Debug, V: PartialEq + Debug>(
    expected: &BTreeMap<K, V>,
    found: &BTreeMap<K, V>,
) -> Option<String> {
    let wrong = expected.iter().find(|(key, value)| found.get(key) != Some(value));
    if let Some((key, value)) = wrong {
        return Some(match found.get(key) {
            Some(found) => format!("{found:?} and not {value:?}"),
            None => format!("{key:?} would be missing: {value:?}"),
        });
    }
    let more = found.iter().find(|(key, _)| !expected.contains_key(key));
    more.map(|(key, value)| format!("{key:?} would be there, which is gone: {value:?}"))
}
