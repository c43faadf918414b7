//! Bounds of paging: the work that a queue requests exactly at its limits, and late answers.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::steps::{NOW, READER, consume, cut_all, drafts, enqueue, fill, lsns, on_disk, place, queue};
use super::*;
use crate::delivery::{Outcome, RecordRef, Taken};
use crate::id::DurableQueueId;
use crate::message::{Address, AddressView, OriginId, Properties, Publication};
use crate::queue::{Arrival, Published, QueueSettings, dead_lettering, throttled_above};

/// Adds delayed messages until they occupy `bytes` bytes of memory.
fn fill_delayed(queue: &mut Queue, bytes: usize) {
    let mut lsn = 1_000_000;
    while queue.delayed_memory() < bytes {
        lsn += 1;
        let mut properties = Properties::new(OriginId::BROKER);
        (properties.is_persistent, properties.delay_ms) = (true, NonZeroU32::new(60_000));
        let address = Arc::new(Address::new(b"", b"q"));
        let address = AddressView::new(&address);
        let arrival = Arrival { address: &address, deaths: None, lsn: Lsn(lsn), now: NOW };
        let body = [b'x'; 300];
        queue.enqueue(&Publication::new(&properties, b"", &body), &arrival, &mut Effects::default());
    }
}

#[test]
fn a_queue_keeps_in_memory_as_much_as_it_may_and_not_a_byte_more() {
    for (ready, delayed) in [(50_000, 0), (0, 50_000), (50_000, 1), (50_000, 50_000)] {
        let with_both = || {
            let mut queue = queue();
            fill(&mut queue, 0, ready);
            fill_delayed(&mut queue, delayed);
            queue
        };
        let memory = with_both().ready.memory() + with_both().delayed_memory();
        for (share, is_written) in [(memory, false), (memory - 1, true)] {
            let is_asked = !drafts(with_both().page_work(NOW, share)).is_empty();
            // A small number of delayed messages stays, however many messages are ready.
            let expected = is_written && (ready, delayed) != (50_000, 1);
            assert_eq!(is_asked, expected, "{ready} ready, {delayed} delayed, {share} of {memory}");
        }
        let share = with_both().ready.memory();
        let is_cut = |queue: &mut Queue, share| {
            drafts(queue.page_work(NOW, share)).iter().any(|draft| draft.dues.is_empty())
        };
        if ready > 0 {
            assert!(!is_cut(&mut with_both(), share), "what is ready may be as much");
            assert!(is_cut(&mut with_both(), share - 1), "and no more");
        }
    }
}

#[test]
fn what_is_little_is_not_cut_off_what_has_to_stay() {
    for (behind, is_cut) in [(1, false), (4, false), (60, true)] {
        let mut queue = queue();
        fill(&mut queue, 0, 60_000);
        // A page between the messages at the front, which stay, and the newest ones.
        let id = queue.pages.begin(0, true, 1);
        queue.pages.written(id, place(1), true);
        let (start, last) = (0, u64::MAX);
        let part =
            PagePart { id, first: None, len: 1, start, last, memory: 1_000, body_bytes: 0, is_asked: true };
        queue.ready.restore(0, Part::Page(part));
        (0..behind).for_each(|more| enqueue(&mut queue, Lsn(500_000 + more), 0, 300));
        let share = queue.ready.memory() - 1;
        assert_eq!(!drafts(queue.page_work(NOW, share)).is_empty(), is_cut, "{behind} behind the page");
    }
}

#[test]
fn a_page_ends_with_the_message_that_fills_it() {
    for (page_bytes_of, expected) in
        [(0, vec![1; 6]), (1, vec![1; 6]), (2, vec![2; 3]), (3, vec![3, 3]), (9, vec![6])]
    {
        for (less, is_same) in [(0, true), (1, true)] {
            let mut queue = queue();
            (1..=6).for_each(|lsn| enqueue(&mut queue, Lsn(lsn), 0, 100));
            let one = queue.ready.memory() / 6;
            let Queue { ready, pages, .. } = &mut queue;
            let (mut drafts, mut dropped) = (Vec::new(), Vec::new());
            let page_bytes = (page_bytes_of * one).saturating_sub(less).max(1);
            ready.cut((0, 0, usize::MAX, 0), |priority, run| {
                let (drafts, dropped) = (&mut drafts, &mut dropped);
                Cutter { pages, priority, page_bytes, is_whole: false, drafts, dropped }.cut(run, |_| true)
            });
            let lens: Vec<usize> = drafts.iter().map(|draft| draft.entries.len()).collect();
            assert_eq!(lens == expected, is_same, "{lens:?} in pages of {page_bytes}, {one} each");
            queue.gauge.sub(6 * Entry::CHARGE);
        }
    }
}

#[test]
fn publishers_wait_while_copies_are_written_and_no_longer() {
    for is_well in [true, false] {
        let mut queue = queue();
        fill(&mut queue, 0, 60_000);
        let share = 1_000;
        assert!(queue.ready.memory() > throttled_above(share));
        queue.weigh(share);
        assert!(!queue.is_throttling(), "nothing is on its way to the disk");
        let copies = queue.spill(Lsn(u64::MAX - 1), usize::MAX);
        assert!(!copies.is_empty());
        queue.weigh(share);
        assert!(queue.is_throttling());
        for (segment, draft) in (0..).zip(copies) {
            match is_well {
                true => queue.page_written(&draft, place(segment)),
                false => queue.page_failed(draft, NOW),
            }
        }
        queue.weigh(share);
        assert!(!queue.is_throttling(), "written well: {is_well}");
    }
}

#[test]
fn what_was_dropped_while_it_was_written_takes_no_record_with_it() {
    // A purge overtakes a write, of persistent messages or not; the record of an unsettled message is still
    // needed.
    for lsn in [Lsn::NONE, Lsn(90)] {
        for is_well in [true, false] {
            let mut queue = queue();
            enqueue(&mut queue, Lsn(5), 0, 10);
            let sequence = take_one(&mut queue);
            (0..3).for_each(|more| {
                enqueue(&mut queue, if lsn == Lsn::NONE { lsn } else { Lsn(lsn.0 + more) }, 0, 10);
            });
            let drafts = cut_all(&mut queue);
            assert_eq!(drafts.iter().map(|draft| draft.entries.len()).sum::<usize>(), 3);
            assert_eq!(queue.purge(NOW, &mut Effects::default()), 3);
            for draft in drafts {
                match is_well {
                    true => queue.page_written(&draft, place(3)),
                    false => queue.page_failed(draft, NOW),
                }
            }
            assert_eq!((queue.floor(), queue.pages_len()), (Some(Lsn(5)), 0), "{lsn:?}, written {is_well}");
            assert!(queue.settle(sequence, Outcome::Accept, NOW, &mut Effects::default()));
            assert_eq!(queue.floor(), None, "{lsn:?}, written {is_well}");
        }
    }
}

/// Delivers the first message; returns its sequence number.
fn take_one(queue: &mut Queue) -> u64 {
    queue.add_consumer(READER, 0, false, NOW);
    queue.wake(READER);
    let mut given = None;
    let mut offer = |_, delivery: &crate::delivery::Delivery<'_>| match given {
        None => {
            given = Some(delivery.sequence);
            Taken::Unsettled
        }
        Some(_) => Taken::Full,
    };
    queue.deliver(NOW, &mut offer, &mut Effects::default());
    given.expect("there is one")
}

#[test]
fn what_is_too_much_goes_when_it_was_read_where_the_oldest_go() {
    for (overflow, dead, ready) in [
        (Overflow::DropHead, &[1, 2, 3][..], 10),
        (Overflow::RejectPublish, &[], 13),
        (Overflow::RejectPublishDeadLetter, &[], 13),
    ] {
        let settings = QueueSettings { is_durable: true, length_max: Some(10), overflow, ..dead_lettering() };
        let (mut queue, id, entries) = on_disk(settings);
        // Messages from before the limit: those at the front have to be read to be dropped.
        for lsn in 50..53 {
            let entry = Entry { position: lsn << 8, page: None, ..entries[0].clone() };
            let mut run = Run::default();
            run.push_back(entry);
            queue.gauge.add(Entry::CHARGE);
            queue.ready.restore(0, Part::Memory(run));
        }
        let mut effects = Effects::default();
        assert_eq!(queue.page_read(id, entries, NOW, &mut effects), 0);
        let dead_lettered: Vec<u64> = effects
            .dead()
            .iter()
            .filter_map(|dead| dead.record_ref)
            .map(|record_ref| record_ref.lsn.0)
            .collect();
        assert_eq!((&*dead_lettered, queue.ready_len()), (dead, ready), "{overflow:?}");
    }
}

#[test]
fn a_checkpoint_counts_what_may_fail_only_where_failures_have_a_limit() {
    for (delivery_limit, expected) in [(None, &[][..]), (Some(3), &[(1, 1)])] {
        let settings = QueueSettings { is_durable: true, delivery_limit, ..QueueSettings::default() };
        let (mut queue, id, entries) = on_disk(settings);
        assert_eq!(queue.page_read(id, entries, NOW, &mut Effects::default()), 0);
        let sequence = take_one(&mut queue);
        let counted = |queue: &mut Queue| -> Vec<(u64, u32)> {
            queue.tally().counts.iter().map(|count| (count.record_ref.lsn.0, count.failures)).collect()
        };
        assert_eq!(counted(&mut queue), expected, "{delivery_limit:?}");
        // A released message is known to have been delivered, failed or not.
        let release = Outcome::Release { failed: false };
        assert!(queue.settle(sequence, release, NOW, &mut Effects::default()));
        assert_eq!(counted(&mut queue), [(1, 0)], "{delivery_limit:?}");
        assert_eq!(consume(&mut queue, 99), 10);
        assert!(counted(&mut queue).is_empty());
    }
}

#[test]
fn what_leaves_while_it_is_copied_is_in_that_page_no_more() {
    let mut queue = queue();
    (1..=4).for_each(|lsn| enqueue(&mut queue, Lsn(lsn), 0, 100));
    let copies = queue.spill(Lsn(9), usize::MAX);
    assert_eq!(copies.iter().map(lsns).collect::<Vec<_>>(), [[1, 2, 3, 4]]);
    assert_eq!((consume(&mut queue, 2), queue.floor()), (2, Some(Lsn(3))));
    copies.iter().for_each(|draft| queue.page_written(draft, place(1)));
    let tally = queue.tally();
    let settled: Vec<_> =
        tally.settled.iter().map(|(at, all)| (*at, all.iter().collect::<Vec<_>>())).collect();
    assert_eq!((settled, tally.floor), (vec![(place(1), vec![(1, 2)])], None));
}

#[test]
fn what_is_cut_is_at_least_as_much_as_was_said() {
    for (less, is_cut) in [(1, true), (0, true), (-1, false)] {
        let mut queue = queue();
        (1..=3).for_each(|lsn| enqueue(&mut queue, Lsn(lsn), 0, 100));
        let least = queue.ready.memory().saturating_add_signed(-less);
        let mut was_cut = false;
        queue.ready.cut((0, 0, usize::MAX, least), |_, run| {
            was_cut = true;
            (Vec::new(), run)
        });
        assert_eq!(was_cut, is_cut, "{less} less than there is");
        assert_eq!(queue.ready_len(), 3);
    }
}

#[test]
fn what_waits_is_known_wherever_it_is_and_nothing_of_it_when_it_left() {
    let (mut queue, id, entries) = on_disk(QueueSettings { is_durable: true, ..QueueSettings::default() });
    let shown = |queue: &Queue| (queue.ready_len(), queue.ready.len_in_memory(), queue.ready.body_bytes());
    assert_eq!((shown(&queue), queue.ready.memory()), ((10, 0, 1_000), 0));
    let memory: usize = entries.iter().map(Entry::memory).sum();
    assert_eq!(queue.page_read(id, entries, NOW, &mut Effects::default()), 0);
    assert_eq!((shown(&queue), queue.ready.memory()), ((10, 10, 1_000), memory));
    assert_eq!(consume(&mut queue, 4), 4);
    assert_eq!((shown(&queue), queue.ready.memory()), ((6, 6, 600), memory / 10 * 6));
    assert_eq!(consume(&mut queue, 9), 6);
    assert_eq!((shown(&queue), queue.ready.memory()), ((0, 0, 0), 0));
}

#[test]
fn what_comes_while_older_ones_are_on_disk_waits_behind_them() {
    let (mut queue, id, entries) = on_disk(QueueSettings { is_durable: true, ..QueueSettings::default() });
    queue.add_consumer(READER, 0, false, NOW);
    queue.wake(READER);
    let (properties, address) = (Properties::new(OriginId::BROKER), Arc::new(Address::new(b"", b"q")));
    let arrival = Arrival { address: &AddressView::new(&address), deaths: None, lsn: Lsn::NONE, now: NOW };
    let mut given = Vec::new();
    let mut offer = |_, delivery: &crate::delivery::Delivery<'_>| {
        given.push(delivery.message.body.len());
        Taken::Settled
    };
    let mut effects = Effects::default();
    let published =
        queue.publish(&Publication::new(&properties, b"", b"new"), &arrival, &mut offer, &mut effects);
    assert_eq!(published, Ok(Published::Waiting));
    assert_eq!(queue.page_read(id, entries, NOW, &mut effects), 0);
    queue.deliver(NOW, &mut offer, &mut effects);
    assert_eq!(given, [vec![100; 10], vec![3]].concat());
}

#[test]
fn what_was_known_of_deliveries_is_forgotten_when_newer_is_known() {
    let settings = QueueSettings { is_durable: true, delivery_limit: Some(9), ..QueueSettings::default() };
    let (mut queue, id, entries) = on_disk(settings);
    let record_ref = |lsn| RecordRef { queue: DurableQueueId(1), lsn: Lsn(lsn) };
    let known = |(lsn, failures)| DeliveryCount {
        record_ref: record_ref(lsn),
        failures,
        is_redelivered: true,
        is_rejected: false,
    };
    queue.restore_counts([(1, 3), (2, 5), (3, 7)].map(known).into_iter());
    assert_eq!(queue.page_read(id, entries, NOW, &mut Effects::default()), 0);
    let sequence = take_one(&mut queue);
    assert_eq!(queue.counts.len(), 2, "it was given out once more");
    let mut effects = Effects::default();
    assert!(queue.settle(sequence, Outcome::Release { failed: true }, NOW, &mut effects));
    assert_eq!(effects.counted, [known((1, 4))]);
    assert_eq!(queue.purge(NOW, &mut Effects::default()), 10);
    assert!(queue.counts.is_empty(), "they are gone");
}

#[test]
fn a_checkpoint_keeps_annotations_of_what_is_on_disk() {
    let settings = QueueSettings { is_durable: true, ..QueueSettings::default() };
    let add = |before: Option<&[u8]>| Some([before.unwrap_or_default(), b"+"].concat().into());
    let (mut queue, id, entries) = on_disk(settings.clone());
    assert_eq!(queue.page_read(id, entries, NOW, &mut Effects::default()), 0);
    let mut expected = None;
    for text in [&b"+"[..], b"++"] {
        let sequence = take_one(&mut queue);
        expected = queue.annotate(sequence, add);
        assert_eq!(expected.as_ref().map(|message| &*message.annotations), Some(text));
        assert_eq!(queue.tally().annotations.as_slice(), expected.as_slice(), "while it is out");
        let release = Outcome::Release { failed: false };
        assert!(queue.settle(sequence, release, NOW, &mut Effects::default()));
        assert_eq!(queue.tally().annotations.as_slice(), expected.as_slice(), "once it is back");
    }
    let counts = queue.tally().counts;
    // After a restart the page is as it was written, without annotations.
    let (mut back, id, entries) = on_disk(settings);
    back.restore_counts(counts.into_iter());
    back.restore_annotations(expected.clone().into_iter());
    assert_eq!(back.tally().annotations.as_slice(), expected.as_slice(), "nobody has read it yet");
    assert_eq!(back.page_read(id, entries, NOW, &mut Effects::default()), 0);
    assert_eq!(back.tally().annotations.as_slice(), expected.as_slice(), "in memory again");
    let sequence = take_one(&mut back);
    assert_eq!(back.annotations(sequence), Some(&b"++"[..]));
    assert!(back.settle(sequence, Outcome::Accept, NOW, &mut Effects::default()));
    assert!(back.tally().annotations.is_empty(), "it is gone");
}
