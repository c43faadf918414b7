//! A start counts the messages that it restored, and marks those that may have been delivered.

use imori_core::confirm::Lsn;
use imori_core::delivery::{DeliveryCount, RecordRef};
use imori_core::entries::{GonePage, PageFacts, PagePlace};
use imori_core::id::{DurableQueueId, QueueId, VhostId};
use imori_core::memory::Gauge;
use imori_core::queue::{Queue, QueueSettings};
use imori_core::record::{
    BindingDefinition, BindingTarget, Checkpoint, Definition, ManifestPlace, RecordKind, encode_counts,
};
use imori_core::restore::{Restore, Restored};
use imori_core::route::pattern::Syntax;
use imori_core::route::{Arguments, BindingKey, ExchangeKind, Settings};
use imori_core::world::World;
use imori_testkit::{TestMessage, TestWorld};

use crate::durable::{durable, journal};

/// The vhost of every test.
fn vhost(world: &TestWorld) -> VhostId {
    world.connect(1).actor().vhost
}

fn finish(world: &TestWorld, restore: Restore, has_room: bool) -> (Restored, usize) {
    let (awakenings, restored) = world.with_topology(|topology| {
        restore.finish(topology, &mut |queue| if has_room { world.add_queue(queue) } else { None })
    });
    (restored, awakenings.iter().map(|awakening| awakening.failed.len()).sum())
}

#[test]
fn queues_and_messages_are_counted_whatever_became_of_them() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let limited = QueueSettings { delivery_limit: Some(1), ..durable() };
    for (name, settings) in [("q", &limited), ("empty", &durable()), ("other", &durable())] {
        let queue = client.declare_with(name, settings).unwrap();
        client.bind("amq.direct", name, queue).unwrap();
    }
    for _ in 0..7 {
        client.outgoing("", "q", &TestMessage { body: "m", ..TestMessage::default() });
    }
    for _ in 0..4 {
        client.outgoing("", "other", &TestMessage { body: "m", ..TestMessage::default() });
    }
    for id in ["a", "b"] {
        client.outgoing("", "q", &TestMessage { body: "m", id, delay_ms: 90, ..TestMessage::default() });
    }
    let journal = journal(&world);
    let back = TestWorld::after(&journal, world.now());
    let mut restore = Restore::new(back.gauge().clone(), world.now(), false);
    let of = |kind| journal.iter().filter(move |(_, record, _)| record.kind == kind);
    for (lsn, record, _) in of(RecordKind::Definition) {
        restore.definition(*lsn, &record.payload).unwrap();
    }
    restore.define().unwrap();
    assert_eq!(restore.vhosts().into_iter().collect::<Vec<_>>(), [vhost(&world)]);
    // Three messages failed too often before the restart.
    let queue = DurableQueueId(journal[0].0.0);
    let lsns = of(RecordKind::Message).map(|(lsn, ..)| *lsn).take(3);
    let counts: Vec<DeliveryCount> = lsns
        .map(|lsn| DeliveryCount {
            record_ref: RecordRef { queue, lsn },
            failures: 2,
            is_redelivered: true,
            is_rejected: false,
        })
        .collect();
    restore.count(&encode_counts(&counts)).unwrap();
    for (lsn, record, _) in of(RecordKind::Message) {
        restore.message(*lsn, &record.payload, None).unwrap();
    }
    let (restored, failed) = finish(&back, restore, true);
    assert_eq!(restored, Restored { queues: 3, messages: 13, passed_over: 0 });
    assert_eq!(failed, 3);
}

#[test]
fn definitions_that_cannot_be_applied_are_passed_over_and_counted() {
    let world = TestWorld::new();
    let (here, gone) = (vhost(&world), VhostId(77));
    let queue = |vhost, name: &str| Definition::Queue { vhost, name: name.into(), settings: durable() };
    let exchange = |vhost, name: &str| Definition::Exchange {
        vhost,
        name: name.into(),
        kind: ExchangeKind::Direct,
        settings: Settings::default(),
    };
    let bound = |vhost, target, exchange: &str| {
        let (key, arguments) = (BindingKey::new(Syntax::Amqp, b"key"), Arguments::NONE);
        Definition::Binding(BindingDefinition { vhost, exchange: exchange.into(), key, arguments, target })
    };
    let binding = |queue, exchange| bound(here, BindingTarget::Queue(DurableQueueId(queue)), exchange);
    let chain = |vhost, to: &str, from| bound(vhost, BindingTarget::Exchange(to.into()), from);
    for (definitions, has_room, queues, passed_over) in [
        (vec![], true, 0, 0),
        (vec![queue(here, "q"), exchange(here, "x"), binding(1, "x")], true, 1, 0),
        (vec![queue(here, "q"), queue(here, "r")], true, 2, 0),
        (vec![queue(here, "q"), queue(here, "r")], false, 0, 2),
        (vec![queue(gone, "q"), queue(gone, "r"), queue(here, "s")], true, 1, 2),
        (vec![exchange(gone, "x"), exchange(gone, "y")], true, 0, 2),
        (vec![queue(here, "q"), binding(1, "x"), binding(1, "y"), binding(9, "amq.direct")], true, 1, 3),
        (vec![exchange(here, "x"), chain(here, "x", "amq.topic"), chain(here, "amq.topic", "x")], true, 0, 0),
        (
            vec![exchange(here, "x"), chain(here, "x", "y"), chain(here, "y", "x"), chain(here, "x", "")],
            true,
            0,
            3,
        ),
        (vec![exchange(here, "x"), chain(gone, "amq.topic", "amq.direct")], true, 0, 1),
    ] {
        let back = TestWorld::new();
        let mut restore = Restore::new(Gauge::default(), back.now(), true);
        for (lsn, definition) in (1..).zip(&definitions) {
            restore.definition(Lsn(lsn), &definition.encode()).unwrap();
        }
        restore.define().unwrap();
        let expected: Vec<VhostId> = {
            let mut all: Vec<VhostId> = definitions
                .iter()
                .filter_map(|definition| match definition {
                    Definition::Queue { vhost, .. } | Definition::Exchange { vhost, .. } => Some(*vhost),
                    _ => None,
                })
                .collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        assert_eq!(restore.vhosts().into_iter().collect::<Vec<_>>(), expected);
        let (restored, _) = finish(&back, restore, has_room);
        assert_eq!(restored, Restored { queues, messages: 0, passed_over }, "{definitions:?}");
    }
}

#[test]
fn a_definition_that_is_gone_takes_no_other_with_it() {
    let world = TestWorld::new();
    let client = world.connect(1);
    for name in ["first", "second"] {
        let queue = client.declare_with(name, &durable()).unwrap();
        client.bind("amq.direct", name, queue).unwrap();
        client.bind("amq.fanout", name, queue).unwrap();
    }
    imori_core::broker::delete_queue(&world, &client.actor(), b"first").unwrap();
    let back = crate::restored::restored(&journal(&world), world.now());
    assert_eq!((back.depth("first"), back.depth("second")), (None, Some((0, 0))));
    assert_eq!((back.bindings("amq.direct"), back.bindings("amq.fanout")), (1, 1));
}

/// A queue with a page in each of two segments, and a page of a queue that does not exist.
fn with_pages() -> (Queue, Vec<GonePage>) {
    let mut restore = Restore::new(Gauge::default(), TestWorld::new().now(), true);
    let world = TestWorld::new();
    let definition = Definition::Queue { vhost: vhost(&world), name: "q".into(), settings: durable() };
    restore.definition(Lsn(1), &definition.encode()).expect("the core wrote it");
    restore.define().expect("the core wrote it");
    restore.checkpoint(Checkpoint {
        next_segment: 9,
        manifest: ManifestPlace::default(),
        doubtful_below: 0,
        doubtful_records_below: Lsn::NONE,
        settled: Vec::new(),
    });
    for segment in 4..7u32 {
        let lsn = Lsn(u64::from(segment) * 10);
        let place = PagePlace { segment, index: 0 };
        let queue = DurableQueueId(if segment == 6 { 99 } else { 1 });
        let (first_position, last_position) = (lsn.0, lsn.0);
        restore.page(PageFacts {
            queue,
            priority: 0,
            place,
            count: 1,
            first: lsn,
            last: lsn,
            first_position,
            last_position,
        });
    }
    let gone = restore.gone_pages();
    let mut queues = Vec::new();
    world.with_topology(|topology| {
        restore.finish(topology, &mut |queue| {
            queues.push(queue);
            Some(QueueId { slot: 0, generation: 0 })
        })
    });
    (queues.pop().expect("it is durable"), gone)
}

#[test]
fn a_page_whose_queue_is_gone_is_given_up() {
    let (queue, gone) = with_pages();
    assert_eq!((queue.ready_len(), queue.pages_len()), (2, 2));
    assert_eq!(gone, [GonePage { place: PagePlace { segment: 6, index: 0 }, is_durable: true }]);
}

#[test]
fn a_delayed_message_was_given_out_before_only_if_it_was_due_before() {
    use std::time::Duration;

    let ms = Duration::from_millis(1);
    for (delay_ms, away_ms, expected) in [(90, 10, "c:m;"), (90, 90, "c:m;"), (5, 90, "c!:m;")] {
        let world = TestWorld::new();
        let client = world.connect(1);
        client.declare_with("q", &durable()).unwrap();
        client.outgoing("", "q", &TestMessage { body: "m", delay_ms, ..TestMessage::default() });
        let back = crate::restored::restored(&journal(&world), world.now().after(away_ms * ms));
        let client = back.connect(1);
        back.pass(90 * ms);
        client.consume("q", "c", 0);
        assert_eq!(client.read_all(), expected, "delayed by {delay_ms}, away for {away_ms}");
    }
}

#[test]
fn a_record_that_cannot_be_read_is_told_in_words() {
    let definition = Definition::Queue { vhost: VhostId(0), name: "q".into(), settings: durable() }.encode();
    let mut restore = Restore::new(Gauge::default(), TestWorld::new().now(), true);
    let mut told = |payload: &[u8]| restore.definition(Lsn(1), payload).unwrap_err().to_string();
    assert_eq!(told(&definition[..5]), "the record ends too early");
    let newer = [&[9], &definition[1..]].concat();
    assert_eq!(told(&newer), "the record has version `9`; open it with the release that wrote it");
    let unknown = [&definition[..1], &[99], &definition[2..]].concat();
    assert!(told(&unknown).ends_with("means nothing here"), "{}", told(&unknown));
}

#[test]
fn each_message_of_a_run_has_a_record_of_its_own() {
    use imori_core::broker::{self, Repetition};
    use imori_core::message::{Address, Publication};

    let world = TestWorld::new();
    let client = world.connect(1);
    for name in ["p", "q"] {
        let queue = client.declare_with(name, &durable()).unwrap();
        client.bind("amq.fanout", "", queue).unwrap();
    }
    let properties = TestMessage::default().properties();
    let run = [b"1", b"2", b"3"].map(|body| Publication::new(&properties, b"", body));
    let (address, mut repetition) = (Address::new(b"amq.fanout", b""), Repetition::default());
    broker::publish_again(&world, &client.actor(), &address, &run, &mut repetition).unwrap();
    client.consume("p", "c", 9);
    assert_eq!(client.read_all(), "c:1;c:2;c:3;");
    client.settle(imori_core::outbound::Numbers::One(2), imori_core::delivery::Outcome::Accept).unwrap();
    let back = crate::restored::restored(&journal(&world), world.now());
    let left = |name| -> Vec<String> {
        crate::restored::ready(&back, name).into_iter().map(|(_, text)| text[..1].to_string()).collect()
    };
    assert_eq!(
        (left("p"), left("q")),
        (vec!["1".into(), "3".into()], vec!["1".into(), "2".into(), "3".into()])
    );
}

#[test]
fn what_was_there_before_a_crash_stays_marked_over_a_clean_end() {
    use imori_core::delivery::Taken;
    use imori_core::id::{ConnectionId, Reader, ReaderId};
    use imori_core::queue::Effects;
    use imori_core::world::World;

    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &durable()).unwrap();
    for body in ["before", "after"] {
        client.outgoing("", "q", &TestMessage { body, ..TestMessage::default() });
    }
    let journal = journal(&world);
    let of = |kind| journal.iter().filter(move |(_, record, _)| record.kind == kind);
    let lsns: Vec<Lsn> = of(RecordKind::Message).map(|(lsn, ..)| *lsn).collect();
    for (was_clean, doubtful_records_below, expected) in [
        (true, Lsn::NONE, [false, false]),
        (true, lsns[1], [true, false]),
        (true, Lsn(lsns[1].0 + 1), [true, true]),
        (false, Lsn::NONE, [true, true]),
    ] {
        let back = TestWorld::after(&journal, world.now());
        let mut restore = Restore::new(back.gauge().clone(), back.now(), was_clean);
        for (lsn, record, _) in of(RecordKind::Definition) {
            restore.definition(*lsn, &record.payload).expect("the core wrote it");
        }
        restore.define().expect("the core wrote it");
        restore.checkpoint(Checkpoint { doubtful_records_below, ..Checkpoint::default() });
        for (lsn, record, _) in of(RecordKind::Message) {
            restore.message(*lsn, &record.payload, None).expect("the core wrote it");
        }
        back.with_topology(|topology| restore.finish(topology, &mut |queue| back.add_queue(queue)));
        let (connection, id) =
            (ConnectionId { cell: 9, slot: 9, generation: 9 }, ReaderId { slot: 0, generation: 0 });
        let mut marks = Vec::new();
        back.with_queue(back.queue("q").expect("it is durable"), |queue| {
            queue.add_consumer(Reader { connection, id }, 0, false, back.now());
            let mut take = |_, delivery: &imori_core::delivery::Delivery<'_>| {
                marks.push(delivery.is_redelivered);
                Taken::Settled
            };
            queue.deliver(back.now(), &mut take, &mut Effects::default());
        });
        assert_eq!(marks, expected, "clean {was_clean}, below {doubtful_records_below:?}");
    }
}
