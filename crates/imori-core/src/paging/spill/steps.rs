//! Steps of paging: how much a queue cuts, which messages it copies, and the effect of each answer.

use std::sync::Arc;

use super::*;
use crate::confirm::Level;
use crate::delivery::Outcome;
use crate::delivery::Taken;
use crate::id::{ConnectionId, DurableQueueId, Reader, ReaderId, VhostId};
use crate::memory::Gauge;
use crate::message::{Address, AddressView, OriginId, Properties, Publication};
use crate::name::Name;
use crate::queue::{Arrival, QueueSettings};

pub(crate) const NOW: Time = Time(1_000_000);

pub(crate) const READER: Reader = Reader {
    connection: ConnectionId { cell: 0, slot: 0, generation: 0 },
    id: ReaderId { slot: 0, generation: 0 },
};

/// A share that can be halved often.
const SHARE: usize = 160_000;

pub(crate) fn queue_with(settings: QueueSettings) -> Queue {
    let mut queue = Queue::new(VhostId(0), Name::from("q"), settings, Gauge::default(), NOW);
    queue.make_durable(DurableQueueId(1));
    queue
}

pub(crate) fn queue() -> Queue {
    queue_with(QueueSettings { is_durable: true, priority_max: Some(1), ..QueueSettings::default() })
}

/// Adds a message with this record.
pub(crate) fn enqueue(queue: &mut Queue, lsn: Lsn, priority: u8, len: usize) {
    let mut properties = Properties::new(OriginId::BROKER);
    (properties.is_persistent, properties.priority) = (lsn != Lsn::NONE, Some(priority));
    let body = vec![b'x'; len];
    let address = Arc::new(Address::new(b"", b"q"));
    let address = AddressView::new(&address);
    let arrival = Arrival { address: &address, deaths: None, lsn, now: NOW };
    queue.enqueue(&Publication::new(&properties, b"", &body), &arrival, &mut Effects::default());
}

/// Adds messages with rising records until they occupy `bytes` bytes of memory; returns the bytes of one.
pub(crate) fn fill(queue: &mut Queue, priority: u8, bytes: usize) -> usize {
    let (before, mut lsn) = (queue.ready.memory(), 10_000 * u64::from(priority));
    let mut one = 0;
    while queue.ready.memory() < bytes {
        lsn += 1;
        enqueue(queue, Lsn(lsn), priority, 300);
        if one == 0 {
            one = queue.ready.memory() - before;
        }
    }
    one
}

/// The pages that the queue requests to be written.
pub(crate) fn drafts(work: Vec<PageWork>) -> Vec<PageDraft> {
    work.into_iter()
        .filter_map(|work| if let PageWork::Write(drafts) = work { Some(drafts) } else { None })
        .flatten()
        .collect()
}

pub(crate) fn place(segment: u32) -> PagePlace {
    PagePlace { segment, index: 0 }
}

/// Notes that each draft was written, to a segment of its own.
fn write(queue: &mut Queue, drafts: &[PageDraft]) {
    for (segment, draft) in (0..).zip(drafts) {
        queue.page_written(draft, place(segment));
    }
}

pub(crate) fn lsns(draft: &PageDraft) -> Vec<u64> {
    draft.entries.iter().map(|entry| entry.envelope.lsn.0).collect()
}

/// Delivers and accepts up to `count` messages.
pub(crate) fn consume(queue: &mut Queue, count: usize) -> usize {
    queue.add_consumer(READER, 0, false, NOW);
    queue.wake(READER);
    let (mut left, mut given) = (count, Vec::new());
    let mut offer = |_: Reader, delivery: &crate::delivery::Delivery<'_>| {
        if left == 0 {
            return Taken::Full;
        }
        left -= 1;
        given.push(delivery.sequence);
        Taken::Unsettled
    };
    queue.deliver(NOW, &mut offer, &mut Effects::default());
    for sequence in &given {
        assert!(queue.settle(*sequence, Outcome::Accept, NOW, &mut Effects::default()));
    }
    given.len()
}

#[test]
fn what_is_beyond_the_share_is_cut_to_half_of_it_in_pages_of_a_sixteenth() {
    let mut queue = queue();
    let one = fill(&mut queue, 0, SHARE + 40_000);
    let memory = queue.ready.memory();
    assert!(drafts(queue.page_work(NOW, memory)).is_empty(), "it may have as much");
    let drafts = drafts(queue.page_work(NOW, SHARE));
    let left = queue.ready.memory();
    assert!((SHARE / 2 - 2 * one..SHARE / 2 + 2 * one).contains(&left), "{left} are left");
    let (last, others) = drafts.split_last().expect("something is cut");
    assert!(others.len() > 5 && last.bytes() <= SHARE / 16 + one);
    for draft in others {
        assert!((SHARE / 16..SHARE / 16 + one).contains(&draft.bytes()), "{} in a page", draft.bytes());
    }
    // A quarter of the share stays at the front and the newest messages behind the cut, and nothing is
    // missing.
    let first = lsns(&drafts[0])[0];
    let at_front = (first as usize - 1) * one;
    assert!((SHARE / 4..SHARE / 4 + 2 * one).contains(&at_front), "{at_front} are before it");
    let cut: Vec<u64> = drafts.iter().flat_map(lsns).collect();
    assert!(cut.windows(2).all(|pair| pair[0] + 1 == pair[1]), "they follow each other");
    assert!(queue.page_work(NOW, SHARE).is_empty(), "it waits for the disk");
}

#[test]
fn of_a_lower_priority_less_stays_at_the_front() {
    let mut queue = queue();
    enqueue(&mut queue, Lsn(1), 1, 300);
    let one = fill(&mut queue, 0, 2 * SHARE);
    let first = lsns(&drafts(queue.page_work(NOW, SHARE))[0])[0] as usize;
    let at_front = (first - 1) * one;
    assert!((SHARE / 64..SHARE / 64 + 2 * one).contains(&at_front), "{at_front} are before it");
}

#[test]
fn what_could_not_be_written_is_tried_again_a_second_later() {
    let mut queue = queue();
    fill(&mut queue, 0, 2 * SHARE);
    let (len, memory) = (queue.ready_len(), queue.ready.memory());
    for round in 0..3 {
        let now = NOW.after(RETRY_AFTER * round);
        let asked = drafts(queue.page_work(now, SHARE));
        assert!(asked.len() > 5, "round {round}");
        asked.into_iter().for_each(|draft| queue.page_failed(draft, now));
        assert_eq!((queue.ready_len(), queue.ready.memory()), (len, memory), "all of it is in memory");
        assert_eq!((queue.pages_len(), queue.floor().is_some()), (0, true));
        let shortly = now.after(RETRY_AFTER - Duration::from_millis(1));
        assert!(queue.page_work(shortly, SHARE).is_empty(), "not at once");
    }
    // Once these are written, others can be cut.
    let asked = drafts(queue.page_work(NOW.after(RETRY_AFTER * 3), SHARE));
    write(&mut queue, &asked);
    fill(&mut queue, 1, 2 * SHARE);
    assert!(!drafts(queue.page_work(NOW.after(RETRY_AFTER * 3), SHARE)).is_empty());
}

#[test]
fn old_records_are_copied_once_and_needed_no_more_when_that_is_written() {
    let mut queue = queue();
    let far = 1 << 30;
    [1, 2, 3, far, far + 1].into_iter().for_each(|lsn| enqueue(&mut queue, Lsn(lsn), 0, 100));
    assert!(queue.floor().is_some_and(|floor| floor <= Lsn(1)));
    let copies = queue.spill(Lsn(3), usize::MAX);
    assert_eq!(copies.iter().map(lsns).collect::<Vec<_>>(), [[1, 2, 3]]);
    assert!(copies[0].is_durable && copies[0].is_copy);
    assert!(queue.spill(Lsn(3), usize::MAX).is_empty(), "they are on their way");
    write(&mut queue, &copies);
    assert!(queue.floor().is_some_and(|floor| floor > Lsn(3) && floor <= Lsn(far)));
    assert_eq!((queue.ready_len(), queue.pages_len()), (5, 1), "they are in memory too");
    assert!(queue.spill(Lsn(3), usize::MAX).is_empty(), "they are copied");
    assert_eq!(queue.spill(Lsn(far + 1), usize::MAX).iter().map(lsns).collect::<Vec<_>>(), [[far, far + 1]]);
}

#[test]
fn a_copy_that_could_not_be_written_is_made_again() {
    let mut queue = queue();
    (1..=3).for_each(|lsn| enqueue(&mut queue, Lsn(lsn), 0, 100));
    for _ in 0..3 {
        let copies = queue.spill(Lsn(9), usize::MAX);
        assert_eq!(copies.iter().map(lsns).collect::<Vec<_>>(), [[1, 2, 3]]);
        copies.into_iter().for_each(|draft| queue.page_failed(draft, NOW));
        assert_eq!((queue.ready_len(), queue.floor().is_some()), (3, true));
    }
    let copies = queue.spill(Lsn(9), usize::MAX);
    write(&mut queue, &copies);
    assert_eq!((queue.pages_len(), queue.floor()), (1, None));
}

#[test]
fn no_more_is_copied_at_once_than_is_asked_for() {
    let mut queue = queue();
    (1..=20).for_each(|lsn| enqueue(&mut queue, Lsn(lsn), 0, 1_000));
    let mut seen = Vec::new();
    for expected in [5, 5, 5, 5, 0] {
        let copies = queue.spill(Lsn(99), 5_000);
        let bytes: usize = copies.iter().map(PageDraft::bytes).sum();
        let count: usize = copies.iter().map(|draft| draft.entries.len()).sum();
        assert!(count <= expected && (count == 0) == (expected == 0), "{count} of {bytes} bytes");
        seen.extend(copies.iter().flat_map(lsns));
        if expected == 0 || seen.len() == 20 {
            break;
        }
        assert!(bytes >= 5_000, "{bytes}");
    }
    seen.extend(queue.spill(Lsn(99), usize::MAX).iter().flat_map(lsns));
    assert_eq!(seen, (1..=20).collect::<Vec<_>>());
}

#[test]
fn copies_are_pages_of_their_goal() {
    let mut queue = queue();
    (1..=7).for_each(|lsn| enqueue(&mut queue, Lsn(lsn), 0, PAGE_BYTES_GOAL / 3));
    (11..=12).for_each(|lsn| enqueue(&mut queue, Lsn(lsn), 1, 10));
    let copies = queue.spill(Lsn(99), usize::MAX);
    let shown: Vec<_> = copies.iter().map(|draft| (draft.priority, lsns(draft))).collect();
    let expected = [(1, vec![11, 12]), (0, vec![1, 2, 3]), (0, vec![4, 5, 6]), (0, vec![7])];
    assert_eq!(shown, expected);
}

#[test]
fn a_queue_without_records_copies_nothing() {
    for (level, expected) in [(Level::Memory, 0), (Level::Os, 1), (Level::Disk, 1)] {
        let mut queue =
            queue_with(QueueSettings { is_durable: true, level: Some(level), ..QueueSettings::default() });
        (1..=3).for_each(|lsn| enqueue(&mut queue, Lsn(lsn), 0, 100));
        assert_eq!(queue.keeps_records(), expected > 0, "{level}");
        assert_eq!(queue.floor().is_some(), expected > 0, "{level}");
        assert_eq!(queue.spill(Lsn(9), usize::MAX).len(), expected, "{level}");
        let mut of_none = queue_with(QueueSettings { level: Some(level), ..QueueSettings::default() });
        enqueue(&mut of_none, Lsn::NONE, 0, 100);
        assert!(of_none.spill(Lsn(9), usize::MAX).is_empty() && of_none.floor().is_none(), "{level}");
    }
}

/// Cuts everything in memory of one priority; entries of one kind make one page.
pub(crate) fn cut_all(queue: &mut Queue) -> Vec<PageDraft> {
    let keeps = queue.keeps_records();
    let Queue { ready, pages, gauge, .. } = queue;
    let (mut drafts, mut dropped) = (Vec::new(), Vec::new());
    ready.cut((0, 0, usize::MAX, 0), |priority, run| {
        let (drafts, dropped) = (&mut drafts, &mut dropped);
        let mut cutter = Cutter { pages, priority, page_bytes: usize::MAX, is_whole: false, drafts, dropped };
        cutter.cut(run, |entry| keeps && entry.envelope.lsn != Lsn::NONE)
    });
    gauge.sub(drafts.iter().map(|draft| draft.entries.len()).sum::<usize>() * Entry::CHARGE);
    queue.writing += drafts.len();
    drafts
}

/// A queue with all of its messages in one page on disk, and the entries of that page.
pub(crate) fn on_disk(settings: QueueSettings) -> (Queue, PageId, Vec<Entry>) {
    let mut queue = queue_with(settings);
    (1..=10).for_each(|lsn| enqueue(&mut queue, Lsn(lsn), 0, 100));
    let drafts = cut_all(&mut queue);
    let [draft] = <[PageDraft; 1]>::try_from(drafts)
        .unwrap_or_else(|drafts| panic!("{} pages are not one", drafts.len()));
    queue.page_written(&draft, place(7));
    (queue, draft.id, draft.entries)
}

#[test]
fn what_cannot_be_read_waits_on_disk_for_the_next_start() {
    let (mut queue, id, _) = on_disk(one_page());
    assert_eq!((queue.ready_len(), queue.page_unreadable(id, &PageSource::Segment(place(7)))), (10, 10));
    assert_eq!(
        (queue.ready_len(), queue.pages_len(), queue.page_unreadable(id, &PageSource::Segment(place(7)))),
        (0, 1, 0)
    );
    assert!(queue.tally().gone.is_empty(), "it stays");
    // Messages behind it are not held up.
    enqueue(&mut queue, Lsn(50), 0, 10);
    assert_eq!(consume(&mut queue, 9), 1);
}

/// Settings of a queue with one page for everything that is cut.
fn one_page() -> QueueSettings {
    QueueSettings { is_durable: true, ..QueueSettings::default() }
}

#[test]
fn what_is_lost_of_a_page_is_told_and_holds_nothing_up() {
    for (there, lost) in [(10, 0), (7, 3), (0, 10)] {
        let (mut queue, id, mut entries) = on_disk(one_page());
        entries.truncate(there);
        let mut effects = Effects::default();
        assert_eq!(queue.page_read(id, entries, NOW, &mut effects), lost);
        assert_eq!(queue.ready_len(), there);
        assert_eq!(consume(&mut queue, 99), there);
        assert_eq!((queue.pages_len(), queue.tally().gone.len()), (0, 1), "nobody needs the page");
    }
}

#[test]
fn what_is_in_a_page_already_leaves_memory_without_being_written_again() {
    let (mut queue, id, entries) = on_disk(one_page());
    assert_eq!(queue.page_read(id, entries, NOW, &mut Effects::default()), 0);
    let memory = queue.ready.memory();
    // The last page of the cut may continue behind it, and stays.
    assert!(cut_all(&mut queue).is_empty() && queue.ready.memory() == memory);
    enqueue(&mut queue, Lsn(50), 0, 10);
    let again = cut_all(&mut queue);
    assert_eq!(again.iter().map(lsns).collect::<Vec<_>>(), [[50]]);
    assert_eq!((queue.ready_len(), queue.ready.memory(), queue.pages_len()), (11, 0, 2));
    let asked = queue.ready.ask(1, &mut queue.pages);
    assert_eq!(asked, [(id, PageSource::Segment(place(7)))], "it is read again");
}

#[test]
fn what_a_failed_copy_was_of_is_written_when_it_leaves_memory() {
    let mut queue = queue();
    (1..=3).for_each(|lsn| enqueue(&mut queue, Lsn(lsn), 0, 100));
    queue.spill(Lsn(9), usize::MAX).into_iter().for_each(|draft| queue.page_failed(draft, NOW));
    let drafts = cut_all(&mut queue);
    assert_eq!(drafts.iter().map(lsns).collect::<Vec<_>>(), [[1, 2, 3]]);
    assert!(drafts[0].is_durable && !drafts[0].is_copy);
    write(&mut queue, &drafts);
    assert_eq!((queue.pages_len(), queue.floor()), (1, None), "the failed one is forgotten");
}

#[test]
fn pages_that_are_not_needed_are_told_once() {
    let (mut queue, id, entries) = on_disk(one_page());
    assert!(queue.tally().settled.is_empty(), "nothing of it is settled");
    assert_eq!(queue.page_read(id, entries, NOW, &mut Effects::default()), 0);
    assert_eq!(consume(&mut queue, 4), 4);
    let told: Vec<_> =
        queue.tally().settled.iter().map(|(at, all)| (*at, all.iter().collect::<Vec<_>>())).collect();
    assert_eq!(told, [(place(7), vec![(1, 4)])]);
    assert_eq!(consume(&mut queue, 99), 6);
    let spared = |work: &[PageWork]| matches!(work, [PageWork::Spared(1)]);
    assert!(spared(&queue.page_work(NOW, SHARE)) && queue.page_work(NOW, SHARE).is_empty());
    assert_eq!(queue.tally().gone, [GonePage { place: place(7), is_durable: true }]);
    assert!(queue.tally().gone.is_empty());
}

#[test]
fn pages_of_this_run_alone_go_at_once() {
    let mut queue = queue();
    (1..=10).for_each(|_| enqueue(&mut queue, Lsn::NONE, 0, 100));
    let drafts = cut_all(&mut queue);
    assert!(drafts.len() == 1 && !drafts[0].is_durable());
    write(&mut queue, &drafts);
    let [draft] = <[PageDraft; 1]>::try_from(drafts).expect("it is one");
    assert_eq!(queue.page_read(draft.id, draft.entries, NOW, &mut Effects::default()), 0);
    assert_eq!(consume(&mut queue, 99), 10);
    let work = queue.page_work(NOW, SHARE);
    let gone = GonePage { place: place(0), is_durable: false };
    assert!(matches!(&work[..], [PageWork::Gone(pages)] if *pages == [gone]), "{work:?}");
    assert!(queue.page_work(NOW, SHARE).is_empty() && queue.tally().gone.is_empty());
}

#[test]
fn a_deleted_queue_gives_up_every_page_that_is_on_disk() {
    let (mut queue, ..) = on_disk(one_page());
    (20..=22).for_each(|lsn| enqueue(&mut queue, Lsn(lsn), 0, 100));
    let waiting = queue.spill(Lsn(99), usize::MAX);
    assert_eq!(waiting.len(), 1, "one more is on its way and has no place");
    assert_eq!(queue.take_pages(), [GonePage { place: place(7), is_durable: true }]);
    assert!(queue.take_pages().is_empty() && queue.pages_len() == 0);
}
