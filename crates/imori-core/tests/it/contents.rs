//! A restart gives back what the description of a queue has.

use std::time::Duration;

use imori_core::broker;
use imori_core::confirm::Lsn;
use imori_core::delivery::Outcome;
use imori_core::outbound::{Numbers, SessionId};
use imori_core::policy::QueueKind;
use imori_core::queue::{Contents, KeptMessage, MessageState, QueueSettings};
use imori_core::world::World;
use imori_testkit::{TestMessage, TestWorld};

use crate::durable::{durable, journal};
use crate::restored::{beginning, restored};

const MS: Duration = Duration::from_millis(1);

/// The contents of `q`, of which no page is on disk.
fn contents(world: &TestWorld) -> Contents {
    let (id, now) = (world.queue("q").expect("it is there"), world.now());
    let contents = world.with_queue(id, |queue| queue.contents(now, &mut |_| None));
    contents.flatten().expect("everything is in memory")
}

/// The messages without what a restart gives them anew: numbers, and the mark of a delivery to what was ready.
fn lasting(contents: Contents) -> Vec<KeptMessage> {
    let lasts = |message: KeptMessage| {
        let state = match message.state {
            MessageState::Unsettled => MessageState::Ready,
            state => state,
        };
        let is_redelivered = state == MessageState::Ready;
        KeptMessage { sequence: 0, state, is_redelivered, ..message }
    };
    contents.messages.into_iter().map(lasts).collect()
}

#[test]
fn a_restart_keeps_all_that_the_description_of_a_queue_has() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let window = Some(Duration::from_secs(60));
    let settings = QueueSettings { priority_max: Some(3), dedup_window: window, ..durable() };
    client.declare_with("q", &settings).unwrap();
    let message = |body, priority| TestMessage { body, priority: Some(priority), ..TestMessage::default() };
    for outgoing in [
        TestMessage { id: "first", ..message("a", 1) },
        message("bb", 3),
        TestMessage { delay_ms: 50, id: "later", ..message("ccc", 2) },
        TestMessage { is_transient: true, ..message("dddd", 3) },
        TestMessage { expiration_ms: Some(1_000), ..message("eeeee", 1) },
    ] {
        client.outgoing("", "q", &outgoing);
        world.pass(MS);
    }
    client.consume("q", "c", 1);
    let number = Numbers::One(1);
    broker::annotate(&world, &client.actor(), SessionId(0), number, |_| Some(Box::from(*b"noted"))).unwrap();
    client.settle(number, Outcome::Release { failed: true }).unwrap();
    let before = contents(&world);
    let shown =
        |message: &KeptMessage| (message.record, message.priority, message.failures, message.body_bytes);
    assert_eq!(
        before.messages.iter().map(shown).collect::<Vec<_>>(),
        [(Lsn(3), 3, 1, 2), (Lsn(4), 2, 0, 3), (Lsn(2), 1, 0, 1), (Lsn(5), 1, 0, 5)],
        "the transient message has no record"
    );
    assert_eq!(before.messages[0].state, MessageState::Unsettled);
    assert_eq!(before.messages[0].history.annotations(), Some(&b"noted"[..]));
    assert_eq!(before.messages[3].expiration_ms, Some(1_000));
    assert!(
        matches!(before.messages[1].state, MessageState::Delayed(due) if due == before.messages[1].since)
    );
    assert_eq!(before.ids.iter().map(|id| &*id.id).collect::<Vec<_>>(), [&b"first"[..], b"later"]);
    let after = contents(&restored(&journal(&world), world.now()));
    assert_eq!(after.ids, before.ids);
    assert_eq!(lasting(after), lasting(before));
}

#[test]
fn a_stream_whose_making_was_cut_short_is_made_once() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &QueueSettings { kind: QueueKind::Stream, ..durable() }).unwrap();
    let created = |world: &TestWorld| contents(world).stream.expect("it is a stream").created;
    let (whole, now) = (journal(&world), world.now());
    // The second record tells when the stream was made.
    for (records, is_kept) in [(2, true), (1, false)] {
        let first = restored(&beginning(&whole, records), now.after(MS));
        assert_eq!(created(&first) == created(&world), is_kept, "{records} records");
        let second = restored(&journal(&first), now.after(2 * MS));
        assert_eq!(created(&second), created(&first), "{records} records");
    }
}
