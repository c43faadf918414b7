//! Steps of a queue with delayed messages on disk: how much goes there, and the effect of each answer.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::super::draft::PageWork;
use super::*;
use crate::delivery::{Delivery, DeliveryCount, RecordRef, Taken};
use crate::entries::{PageFacts, PagePlace, Ranges};
use crate::id::{ConnectionId, DurableQueueId, Reader, ReaderId, VhostId};
use crate::memory::Gauge;
use crate::message::{Address, AddressView, OriginId, Properties, Publication};
use crate::name::Name;
use crate::queue::{Arrival, QueueSettings, dead_lettering};

const NOW: Time = Time(1_000_000);

/// When all messages are due.
const DUE: Time = Time(1_000_000 + 60_000_000);

/// A share that can be halved often.
const SHARE: usize = 1 << 20;

const READER: Reader = Reader {
    connection: ConnectionId { cell: 0, slot: 0, generation: 0 },
    id: ReaderId { slot: 0, generation: 0 },
};

/// A queue with delayed messages that have these records, and the bytes that one message occupies.
fn queue_with(settings: QueueSettings, lsns: impl IntoIterator<Item = u64>) -> (Queue, usize) {
    let mut queue = Queue::new(VhostId(0), Name::from("q"), settings, Gauge::default(), NOW);
    queue.make_durable(DurableQueueId(1));
    for lsn in lsns {
        let mut properties = Properties::new(OriginId::BROKER);
        (properties.is_persistent, properties.delay_ms) = (true, NonZeroU32::new(60_000));
        let address = Arc::new(Address::new(b"", b"q"));
        let address = AddressView::new(&address);
        let arrival = Arrival { address: &address, deaths: None, lsn: Lsn(lsn), now: NOW };
        queue.enqueue(&Publication::new(&properties, b"", &[b'x'; 300]), &arrival, &mut Effects::default());
    }
    let one = queue.delayed_memory() / queue.delayed_len().max(1);
    (queue, one)
}

fn queue(lsns: impl IntoIterator<Item = u64>) -> (Queue, usize) {
    queue_with(QueueSettings { is_durable: true, ..QueueSettings::default() }, lsns)
}

fn drafts(work: Vec<PageWork>) -> Vec<PageDraft> {
    let drafts = work
        .into_iter()
        .filter_map(|work| if let PageWork::Write(drafts) = work { Some(drafts) } else { None });
    drafts.flatten().collect()
}

fn reads(work: Vec<PageWork>) -> Vec<PageId> {
    let reads =
        work.into_iter().filter_map(|work| if let PageWork::Read(pages) = work { Some(pages) } else { None });
    reads.flatten().map(|(id, _)| id).collect()
}

fn place(segment: u32) -> PagePlace {
    PagePlace { segment, index: 0 }
}

/// Notes that each draft was written, to a segment of its own.
fn write(queue: &mut Queue, drafts: &[PageDraft]) {
    for (segment, draft) in (0..).zip(drafts) {
        queue.page_written(draft, place(segment));
    }
}

/// Delivers all due messages; returns for each its failures, and whether it was delivered before.
fn given(queue: &mut Queue, now: Time, effects: &mut Effects) -> Vec<(u32, bool)> {
    queue.add_consumer(READER, 0, false, NOW);
    queue.wake(READER);
    let mut given = Vec::new();
    let mut offer = |_: Reader, delivery: &Delivery<'_>| {
        given.push((delivery.failures, delivery.is_redelivered));
        Taken::Settled
    };
    queue.deliver(now, &mut offer, effects);
    given
}

/// A queue with its delayed messages in one page, and the entries of that page.
fn on_disk(settings: QueueSettings, lsns: impl IntoIterator<Item = u64>) -> (Queue, PageId, Vec<Entry>) {
    let (mut queue, _) = queue_with(settings, lsns);
    let copies = queue.spill_delayed(Lsn(u64::MAX - 1), usize::MAX);
    queue.copying += copies.len();
    write(&mut queue, &copies);
    let [draft] = <[PageDraft; 1]>::try_from(copies).expect("it is one");
    // All messages leave memory.
    let places: Vec<DuePlace> =
        queue.delayed.iter().flat_map(|all| all.in_memory()).map(|(at, _)| at).collect();
    queue.with_delayed(|delayed, _| places.iter().for_each(|at| drop(delayed.shelve(*at, draft.id))));
    (queue, draft.id, draft.entries)
}

#[test]
fn what_is_due_last_leaves_memory_in_pages_of_a_sixteenth_of_the_share() {
    let (mut queue, one) = queue(1..=4_000);
    assert!(queue.delayed_memory() > SHARE);
    let drafts = drafts(queue.page_work(NOW, SHARE));
    let left = queue.delayed_memory();
    // As much stays as is read ahead.
    assert!((SHARE / 8..SHARE / 8 + 2 * one).contains(&left), "{left} are left");
    let (last, others) = drafts.split_last().expect("something is written");
    assert!(others.len() > 5 && last.bytes() < SHARE / 16 + one, "{} pages", drafts.len());
    for draft in others {
        assert!((SHARE / 16..SHARE / 16 + one).contains(&draft.bytes()), "{} in a page", draft.bytes());
    }
    let lsns = drafts.iter().flat_map(|draft| &draft.entries).map(|entry| entry.envelope.lsn.0);
    assert!(lsns.eq((left / one) as u64 + 1..=4_000), "the first stay");
}

#[test]
fn what_stays_in_memory_is_not_read_again() {
    for stay in [3, 10] {
        let (mut queue, one) = queue(1..=200);
        // Exactly this many messages are as much as is read ahead.
        let work = queue.page_work(NOW, 8 * stay * one);
        assert!(work.iter().all(|work| matches!(work, PageWork::Write(_))), "{work:?}");
        assert_eq!(queue.delayed_memory(), stay * one);
        write(&mut queue, &drafts(work));
        assert!(reads(queue.page_work(NOW, 8 * stay * one)).is_empty(), "{stay} stay");
        assert!(!reads(queue.page_work(NOW, 8 * stay * one + 8)).is_empty(), "one byte more is ahead");
    }
}

#[test]
fn what_is_copied_leaves_memory_without_being_written_again() {
    let (mut queue, one) = queue(1..=4_000);
    let copies = queue.spill(Lsn(5_000), usize::MAX);
    assert_eq!(copies.iter().map(|draft| draft.entries.len()).sum::<usize>(), 4_000);
    // They stay until they are written.
    assert!(drafts(queue.page_work(NOW, SHARE)).is_empty() && queue.delayed_memory() == 4_000 * one);
    write(&mut queue, &copies);
    assert!(drafts(queue.page_work(NOW, SHARE)).is_empty());
    assert!(queue.delayed_memory() < SHARE / 8 + 2 * one, "{} are left", queue.delayed_memory());
    assert_eq!((queue.delayed_len(), queue.floor()), (4_000, None));
}

#[test]
fn no_more_is_copied_at_once_than_is_asked_for() {
    for (bytes_of, expected) in [(0, 0), (1, 1), (5, 5), (20, 20), (99, 20)] {
        let (mut queue, one) = queue(1..=20);
        let copies = queue.spill(Lsn(99), bytes_of * one);
        let count: usize = copies.iter().map(|draft| draft.entries.len()).sum();
        assert_eq!(count, expected, "{bytes_of} of {one} bytes");
    }
}

#[test]
fn pages_are_read_before_they_are_due() {
    let settings = QueueSettings { is_durable: true, ..QueueSettings::default() };
    let (mut queue, id, _) = on_disk(settings, 1..=5);
    assert_eq!(reads(queue.page_work(NOW, SHARE)), [id]);
    assert!(reads(queue.page_work(NOW, SHARE)).is_empty(), "it is being read");
}

#[test]
fn what_is_known_of_deliveries_holds_for_what_was_delayed() {
    // Known failures of the second message, and the limit; the deliveries, and the dead letters.
    for (failures, limit, expected, dead) in [
        (0, None, &[(0, false), (0, true), (0, false)][..], &[][..]),
        (2, None, &[(0, false), (2, true), (0, false)], &[]),
        (1, Some(2), &[(0, false), (1, true), (0, false)], &[]),
        (2, Some(2), &[(0, false), (2, true), (0, false)], &[]),
        (3, Some(2), &[(0, false), (0, false)], &[2]),
    ] {
        let settings = QueueSettings { is_durable: true, delivery_limit: limit, ..dead_lettering() };
        let (mut queue, id, entries) = on_disk(settings, 1..=3);
        let record_ref = RecordRef { queue: DurableQueueId(1), lsn: Lsn(2) };
        queue.restore_counts(
            [DeliveryCount { record_ref, failures, is_redelivered: true, is_rejected: false }].into_iter(),
        );
        let mut effects = Effects::default();
        assert_eq!(queue.page_read(id, entries, NOW, &mut effects), 0);
        let given = given(&mut queue, DUE, &mut effects);
        assert_eq!(given, expected, "{failures} of {limit:?}");
        let dead_lettered: Vec<u64> = effects
            .dead()
            .iter()
            .filter_map(|dead| dead.record_ref)
            .map(|record_ref| record_ref.lsn.0)
            .collect();
        assert_eq!(dead_lettered, dead, "{failures} of {limit:?}");
        assert_eq!(queue.pages_len(), 0, "nobody needs it");
    }
}

#[test]
fn what_was_given_out_before_it_was_written_is_known_to_be_so() {
    for is_redelivered in [false, true] {
        let settings = QueueSettings { is_durable: true, ..QueueSettings::default() };
        let (mut queue, id, mut entries) = on_disk(settings, 1..=2);
        entries[0].envelope.is_redelivered = is_redelivered;
        let record_ref = RecordRef { queue: DurableQueueId(1), lsn: Lsn(1) };
        queue.restore_counts(
            [DeliveryCount { record_ref, failures: 0, is_redelivered: false, is_rejected: false }]
                .into_iter(),
        );
        assert_eq!(queue.page_read(id, entries, NOW, &mut Effects::default()), 0);
        assert_eq!(given(&mut queue, DUE, &mut Effects::default()), [(0, is_redelivered), (0, false)]);
    }
}

#[test]
fn what_is_lost_of_a_page_is_told_and_the_page_goes_with_the_others() {
    for (there, lost) in [(3, 0), (2, 1), (0, 3)] {
        let settings = QueueSettings { is_durable: true, ..QueueSettings::default() };
        let (mut queue, id, mut entries) = on_disk(settings, 1..=3);
        entries.truncate(there);
        assert_eq!(queue.page_read(id, entries, NOW, &mut Effects::default()), lost);
        assert_eq!((queue.delayed_len(), queue.pages_len()), (there, usize::from(there > 0)));
        assert_eq!(given(&mut queue, DUE, &mut Effects::default()).len(), there);
        assert_eq!((queue.pages_len(), queue.tally().gone.len()), (0, 1), "{there} are there");
    }
}

#[test]
fn what_was_not_due_when_the_broker_ended_was_given_to_nobody() {
    let before = |due: Time| Time(due.0 - 1);
    // Whether deliveries before the restart are in doubt, and when the broker came back.
    for (is_doubtful, now, expected) in [
        (false, before(DUE), false),
        (false, Time(DUE.0 + 1), false),
        (true, before(DUE), false),
        (true, DUE, false),
        (true, Time(DUE.0 + 1), true),
    ] {
        let settings = QueueSettings { is_durable: true, ..QueueSettings::default() };
        let (_, _, entries) = on_disk(settings.clone(), 1..=2);
        let (mut queue, _) = queue_with(settings, []);
        let found = entries.iter().map(|entry| FoundDelayed {
            lsn: entry.envelope.lsn,
            due: DUE,
            sequence: entry.envelope.sequence,
            body_bytes: entry.body_bytes(),
            name: None,
        });
        let found: Vec<FoundDelayed> = found.collect();
        let facts = PageFacts {
            queue: DurableQueueId(1),
            priority: 0,
            place: place(0),
            count: 2,
            first: Lsn(1),
            last: Lsn(2),
            first_position: u64::MAX,
            last_position: u64::MAX,
        };
        let page = FoundPage { facts, live: 2, settled: Ranges::default(), is_doubtful };
        queue.restore_delayed(page, found, now);
        let [id] = *reads(queue.page_work(now, SHARE)) else { panic!("it is read") };
        assert_eq!(queue.page_read(id, entries, now, &mut Effects::default()), 0);
        let later = Time(DUE.0 + 2);
        assert_eq!(
            given(&mut queue, later, &mut Effects::default()),
            [(0, expected); 2],
            "{is_doubtful} at {now:?}"
        );
    }
}
