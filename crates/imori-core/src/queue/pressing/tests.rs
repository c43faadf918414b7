use std::sync::Arc;

use crate::confirm::Lsn;
use crate::id::{ConnectionId, DurableQueueId, VhostId};
use crate::limits::{PRESS_BYTES, PRESS_SHARES};
use crate::memory::Gauge;
use crate::message::{Address, AddressView, Head, OriginId, Publication};
use crate::name::Name;
use crate::queue::press::pressed_above;
use crate::queue::{Arrival, Effects, PageDraft, PagePlace, PageWork, Queue, QueueSettings};
use crate::time::Time;

const NOW: Time = Time(1_000_000);
const LATER: Time = Time(9_000_000);
const SHARE: usize = 16_000;

/// Bytes of a message here.
const BODY: usize = 300;

fn publisher(slot: u32) -> ConnectionId {
    ConnectionId { cell: 0, slot, generation: 0 }
}

/// A queue, what it asked for, and who was told to go on.
struct Pressed {
    queue: Queue,
    gauge: Gauge,
    drafts: Vec<PageDraft>,
    relieved: Vec<ConnectionId>,
    last: u64,
}

impl Pressed {
    fn new() -> Pressed {
        let gauge = Gauge::default();
        let settings = QueueSettings { is_durable: true, ..QueueSettings::default() };
        let mut queue = Queue::new(VhostId(0), Name::from("q"), settings, gauge.clone(), NOW);
        queue.make_durable(DurableQueueId(1));
        Pressed { queue, gauge, drafts: Vec::new(), relieved: Vec::new(), last: 0 }
    }

    /// Does what every change of a queue is followed by.
    fn look(&mut self, now: Time) {
        for work in self.queue.page_work(now, SHARE) {
            if let PageWork::Write(drafts) = work {
                self.drafts.extend(drafts);
            }
        }
        self.relieved.extend(self.queue.weigh(SHARE));
        assert_eq!(self.gauge.pressing(), usize::from(self.queue.is_pressing()));
    }

    fn enqueue(&mut self, now: Time) {
        self.last += 1;
        let mut head = Head::new(OriginId::BROKER);
        head.is_persistent = true;
        let address = Arc::new(Address::new(b"", b"q"));
        let address = AddressView::new(&address);
        let arrival = Arrival { address: &address, deaths: None, lsn: Lsn(self.last), now };
        let body = vec![b'x'; BODY];
        self.queue.enqueue(&Publication::new(&head, b"", &body), &arrival, &mut Effects::default());
        self.look(now);
    }

    /// Fills it until its publishers wait, or so many messages came.
    fn fill(&mut self, now: Time, messages: usize) -> bool {
        (0..messages).any(|_| {
            self.enqueue(now);
            self.queue.is_pressing()
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
fn a_queue_presses_while_it_is_far_too_long_and_pages_are_written() {
    let mut pressed = Pressed::new();
    assert!(!pressed.queue.press(publisher(1)), "nobody has to wait for an empty queue");
    assert!(pressed.fill(NOW, 1_000));
    let memory = pressed.queue.ready.memory();
    let bound = SHARE + PRESS_SHARES * SHARE;
    assert!((bound..bound + 2 * BODY + 400).contains(&memory), "{memory} at the begin of a press");
    for slot in [3, 1, 2, 2] {
        assert!(pressed.queue.press(publisher(slot)));
    }
    // The next batch leaves memory with the last page of the one before.
    let first: Vec<PageDraft> = std::mem::take(&mut pressed.drafts);
    let (last, others) = first.split_last().expect("it has begun to write");
    for draft in others {
        pressed.written(draft);
        assert!(pressed.queue.is_pressing() && pressed.drafts.is_empty());
    }
    pressed.written(last);
    assert!(!pressed.queue.is_pressing() && !pressed.drafts.is_empty());
    assert_eq!(pressed.relieved, [3, 1, 2].map(publisher), "in their order, each once");
    assert!(!pressed.queue.press(publisher(1)), "it is short enough");
}

#[test]
fn where_nothing_can_be_written_nobody_waits_for_ever() {
    let mut pressed = Pressed::new();
    assert!(pressed.fill(NOW, 1_000) && pressed.queue.press(publisher(7)));
    for draft in std::mem::take(&mut pressed.drafts) {
        assert!(pressed.relieved.is_empty());
        pressed.failed(draft);
    }
    assert_eq!(pressed.relieved, [publisher(7)]);
    // The alarms of memory and disk see to it until pages are tried again.
    assert!(!pressed.fill(NOW, 1_000) && pressed.drafts.is_empty());
    pressed.enqueue(LATER);
    assert!(!pressed.drafts.is_empty() && pressed.fill(LATER, 1_000), "then they wait again");
}

#[test]
fn pages_that_are_copied_are_pages_that_are_written() {
    for is_written in [true, false] {
        let mut pressed = Pressed::new();
        // Nothing is cut of what is on its way to a page already.
        pressed.last = 0;
        for _ in 0..40 {
            pressed.enqueue(NOW);
        }
        let own: Vec<PageDraft> = std::mem::take(&mut pressed.drafts);
        let copies = pressed.queue.spill(Lsn(u64::MAX - 1), usize::MAX);
        assert!(!copies.is_empty());
        own.iter().for_each(|draft| pressed.written(draft));
        for draft in std::mem::take(&mut pressed.drafts) {
            pressed.written(&draft);
        }
        assert!(pressed.fill(NOW, 1_000), "who publishes is no faster than the checkpointer");
        pressed.queue.press(publisher(5));
        for draft in std::mem::take(&mut pressed.drafts) {
            pressed.failed(draft);
        }
        assert!(pressed.queue.is_pressing() && pressed.relieved.is_empty());
        for copy in copies {
            if is_written { pressed.written(&copy) } else { pressed.failed(copy) }
        }
        for draft in std::mem::take(&mut pressed.drafts) {
            pressed.failed(draft);
        }
        assert_eq!(pressed.relieved, [publisher(5)], "written {is_written}");
    }
}

#[test]
fn a_queue_that_goes_presses_nobody() {
    let mut pressed = Pressed::new();
    assert!(pressed.fill(NOW, 1_000) && pressed.queue.press(publisher(1)));
    assert_eq!(pressed.queue.relieve(), [publisher(1)]);
    assert_eq!((pressed.queue.relieve(), pressed.gauge.pressing()), (Vec::new(), 0));
    assert!(pressed.fill(NOW, 1) && pressed.gauge.pressing() == 1);
    let Pressed { queue, gauge, drafts, .. } = pressed;
    drop((queue, drafts));
    assert_eq!((gauge.pressing(), gauge.bytes()), (0, 0));
}

#[test]
fn purged_is_short() {
    let mut pressed = Pressed::new();
    assert!(pressed.fill(NOW, 1_000) && pressed.queue.press(publisher(1)));
    assert!(pressed.queue.purge(NOW, &mut Effects::default()) > 0);
    pressed.look(NOW);
    assert_eq!(pressed.relieved, [publisher(1)]);
}

#[test]
fn what_is_allowed_above_a_share_is_a_few_shares_or_two_batches() {
    for (share, expected) in [
        (0, 0),
        (16 << 10, 80 << 10),
        (1 << 20, 5 << 20),
        (8 << 20, 40 << 20),
        (64 << 20, (64 << 20) + PRESS_BYTES),
        (usize::MAX, usize::MAX),
    ] {
        assert_eq!(pressed_above(share), expected, "{share}");
    }
}
