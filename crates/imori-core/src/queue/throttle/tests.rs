use std::sync::Arc;

use super::super::waiting_publishers::throttled_above;
use crate::confirm::Lsn;
use crate::entries::PagePlace;
use crate::id::{ConnectionId, DurableQueueId, VhostId};
use crate::limits::{THROTTLE_BYTES, THROTTLE_SHARES};
use crate::memory::Gauge;
use crate::message::{Address, AddressView, OriginId, Properties, Publication};
use crate::name::Name;
use crate::paging::{PageDraft, PageWork};
use crate::queue::{Arrival, Effects, Queue, QueueSettings};
use crate::time::Time;

const NOW: Time = Time(1_000_000);
const LATER: Time = Time(9_000_000);
const SHARE: usize = 16_000;

/// Bytes of each message's body.
const BODY: usize = 300;

fn publisher(slot: u32) -> ConnectionId {
    ConnectionId { cell: 0, slot, generation: 0 }
}

/// A queue, the pages that it asked to be written, and the publishers that it released.
struct Throttled {
    queue: Queue,
    gauge: Gauge,
    drafts: Vec<PageDraft>,
    unthrottled: Vec<ConnectionId>,
    last: u64,
}

impl Throttled {
    fn new() -> Throttled {
        let gauge = Gauge::default();
        let settings = QueueSettings { is_durable: true, ..QueueSettings::default() };
        let mut queue = Queue::new(VhostId(0), Name::from("q"), settings, gauge.clone(), NOW);
        queue.make_durable(DurableQueueId(1));
        Throttled { queue, gauge, drafts: Vec::new(), unthrottled: Vec::new(), last: 0 }
    }

    /// Performs the follow-ups of a change of the queue.
    fn look(&mut self, now: Time) {
        for work in self.queue.page_work(now, SHARE) {
            if let PageWork::Write(drafts) = work {
                self.drafts.extend(drafts);
            }
        }
        self.unthrottled.extend(self.queue.weigh(SHARE));
        assert_eq!(self.gauge.throttling(), usize::from(self.queue.is_throttling()));
    }

    fn enqueue(&mut self, now: Time) {
        self.last += 1;
        let mut properties = Properties::new(OriginId::BROKER);
        properties.is_persistent = true;
        let address = Arc::new(Address::new(b"", b"q"));
        let address = AddressView::new(&address);
        let arrival = Arrival { address: &address, deaths: None, lsn: Lsn(self.last), now };
        let body = vec![b'x'; BODY];
        self.queue.enqueue(&Publication::new(&properties, b"", &body), &arrival, &mut Effects::default());
        self.look(now);
    }

    /// Fills the queue until it throttles, or with `messages` messages; returns whether it throttles.
    fn fill(&mut self, now: Time, messages: usize) -> bool {
        (0..messages).any(|_| {
            self.enqueue(now);
            self.queue.is_throttling()
        })
    }

    fn written(&mut self, draft: &PageDraft) {
        self.queue.page_written(draft, PagePlace { segment: 0, index: 0 });
        self.look(NOW);
    }

    fn failed(&mut self, draft: PageDraft) {
        self.queue.page_failed(draft, NOW);
        self.look(NOW);
    }
}

#[test]
fn a_queue_throttles_while_it_is_far_too_long_and_pages_are_written() {
    let mut throttled = Throttled::new();
    assert!(!throttled.queue.throttle(publisher(1)), "nobody has to wait for an empty queue");
    assert!(throttled.fill(NOW, 1_000));
    let memory = throttled.queue.ready.memory();
    let bound = SHARE + THROTTLE_SHARES * SHARE;
    assert!((bound..bound + 2 * BODY + 400).contains(&memory), "{memory} at the begin of a throttle");
    for slot in [3, 1, 2, 2] {
        assert!(throttled.queue.throttle(publisher(slot)));
    }
    // The next batch leaves memory once the last page of the previous one is written.
    let first: Vec<PageDraft> = std::mem::take(&mut throttled.drafts);
    let (last, others) = first.split_last().expect("it has begun to write");
    for draft in others {
        throttled.written(draft);
        assert!(throttled.queue.is_throttling() && throttled.drafts.is_empty());
    }
    throttled.written(last);
    assert!(!throttled.queue.is_throttling() && !throttled.drafts.is_empty());
    assert_eq!(throttled.unthrottled, [3, 1, 2].map(publisher), "in their order, each once");
    assert!(!throttled.queue.throttle(publisher(1)), "it is short enough");
}

#[test]
fn where_nothing_can_be_written_nobody_waits_for_ever() {
    let mut throttled = Throttled::new();
    assert!(throttled.fill(NOW, 1_000) && throttled.queue.throttle(publisher(7)));
    for draft in std::mem::take(&mut throttled.drafts) {
        assert!(throttled.unthrottled.is_empty());
        throttled.failed(draft);
    }
    assert_eq!(throttled.unthrottled, [publisher(7)]);
    // The alarms of memory and disk hold publishers back until pages are tried again.
    assert!(!throttled.fill(NOW, 1_000) && throttled.drafts.is_empty());
    throttled.enqueue(LATER);
    assert!(!throttled.drafts.is_empty() && throttled.fill(LATER, 1_000), "then they wait again");
}

#[test]
fn pages_that_are_copied_are_pages_that_are_written() {
    for is_written in [true, false] {
        let mut throttled = Throttled::new();
        // Entries that are on their way to a page are not cut again.
        throttled.last = 0;
        for _ in 0..40 {
            throttled.enqueue(NOW);
        }
        let own: Vec<PageDraft> = std::mem::take(&mut throttled.drafts);
        let copies = throttled.queue.spill(Lsn(u64::MAX - 1), usize::MAX);
        assert!(!copies.is_empty());
        own.iter().for_each(|draft| throttled.written(draft));
        for draft in std::mem::take(&mut throttled.drafts) {
            throttled.written(&draft);
        }
        assert!(throttled.fill(NOW, 1_000), "who publishes is no faster than the checkpointer");
        throttled.queue.throttle(publisher(5));
        for draft in std::mem::take(&mut throttled.drafts) {
            throttled.failed(draft);
        }
        assert!(throttled.queue.is_throttling() && throttled.unthrottled.is_empty());
        for copy in copies {
            if is_written { throttled.written(&copy) } else { throttled.failed(copy) }
        }
        for draft in std::mem::take(&mut throttled.drafts) {
            throttled.failed(draft);
        }
        assert_eq!(throttled.unthrottled, [publisher(5)], "written {is_written}");
    }
}

#[test]
fn a_queue_that_goes_throttles_nobody() {
    let mut throttled = Throttled::new();
    assert!(throttled.fill(NOW, 1_000) && throttled.queue.throttle(publisher(1)));
    assert_eq!(throttled.queue.unthrottle(), [publisher(1)]);
    assert_eq!((throttled.queue.unthrottle(), throttled.gauge.throttling()), (Vec::new(), 0));
    assert!(throttled.fill(NOW, 1) && throttled.gauge.throttling() == 1);
    let Throttled { queue, gauge, drafts, .. } = throttled;
    drop((queue, drafts));
    assert_eq!((gauge.throttling(), gauge.bytes()), (0, 0));
}

#[test]
fn purged_is_short() {
    let mut throttled = Throttled::new();
    assert!(throttled.fill(NOW, 1_000) && throttled.queue.throttle(publisher(1)));
    assert!(throttled.queue.purge(NOW, &mut Effects::default()) > 0);
    throttled.look(NOW);
    assert_eq!(throttled.unthrottled, [publisher(1)]);
}

#[test]
fn what_is_allowed_above_a_share_is_a_few_shares_or_two_batches() {
    for (share, expected) in [
        (0, 0),
        (16 << 10, 80 << 10),
        (1 << 20, 5 << 20),
        (8 << 20, 40 << 20),
        (64 << 20, (64 << 20) + THROTTLE_BYTES),
        (usize::MAX, usize::MAX),
    ] {
        assert_eq!(throttled_above(share), expected, "{share}");
    }
}
