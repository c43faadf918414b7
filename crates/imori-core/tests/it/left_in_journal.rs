//! A start takes some messages into memory, leaves others in the journal, and forgets deleted definitions.

use std::num::NonZeroU32;
use std::sync::Arc;

use imori_core::confirm::Lsn;
use imori_core::delivery::{DeliveryCount, RecordRef};
use imori_core::id::{DurableQueueId, QueueId};
use imori_core::message::{Address, AddressView, DeathReason, Deaths, OriginId, Properties, Publication};
use imori_core::name::Name;
use imori_core::record::{Definition, encode_counts, encode_message};
use imori_core::restore::{Leaving, Restore};
use imori_core::route::{ExchangeKind, Settings};
use imori_core::time::Time;
use imori_core::world::World;
use imori_testkit::{TestWorld, VHOST};

use crate::durable::durable;

const QUEUE: DurableQueueId = DurableQueueId(1);

/// The history of a message that a start finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Delayed,
    /// The message was delayed, waited and then died.
    DeadLetter,
    /// The message died without having been delayed.
    DeadAtOnce,
    /// The message has a delivery count.
    Counted,
    /// The message's queue is deleted.
    OfNobody,
}

fn record(kind: Kind, body: &[u8]) -> Vec<u8> {
    let mut properties = Properties::new(OriginId::BROKER);
    properties.is_persistent = true;
    properties.delay_ms =
        NonZeroU32::new(60_000).filter(|_| matches!(kind, Kind::Delayed | Kind::DeadLetter));
    let address = Arc::new(Address::new(b"", b"q"));
    let deaths = Deaths::default().and(&Name::from("before"), DeathReason::Expired, &address, Time(7));
    let deaths = Some(&deaths).filter(|_| matches!(kind, Kind::DeadLetter | Kind::DeadAtOnce));
    let queue = if kind == Kind::OfNobody { DurableQueueId(9) } else { QUEUE };
    let publication = Publication::new(&properties, b"", body);
    encode_message(&publication.view(), &AddressView::new(&address), deaths, &[queue], Time(1_000_000))
}

/// A restoration with one queue, which leaves messages in the journal after `after_bytes` bytes.
fn restore(world: &TestWorld, after_bytes: usize) -> Restore {
    let leaving = Leaving { after_bytes, page_bytes: 1_000 };
    let mut restore = Restore::new(world.gauge().clone(), world.now(), true).leaving(leaving);
    let queue = Definition::Queue { vhost: VHOST, name: Name::from("q"), settings: durable() };
    restore.definition(Lsn(QUEUE.0), &queue.encode()).expect("it was written");
    restore
}

#[test]
fn what_is_plain_stays_in_the_journal_once_enough_is_in_memory() {
    use Kind::{Counted, DeadAtOnce, DeadLetter, Delayed, OfNobody, Plain};
    for (kind, file, is_left) in [
        (Plain, Some(0), true),
        (Plain, Some(7), true),
        (Plain, None, false),
        (Delayed, Some(0), false),
        (DeadLetter, Some(0), true),
        (DeadAtOnce, Some(0), true),
        (Counted, Some(0), false),
        (OfNobody, Some(0), false),
    ] {
        let world = TestWorld::new();
        let mut restore = restore(&world, 0);
        restore.define().unwrap();
        let lsn = Lsn(20);
        if kind == Counted {
            let record_ref = RecordRef { queue: QUEUE, lsn };
            restore
                .count(&encode_counts(&[DeliveryCount {
                    record_ref,
                    failures: 1,
                    is_redelivered: true,
                    is_rejected: false,
                }]))
                .unwrap();
        }
        assert_eq!(restore.message(lsn, &record(kind, b"m"), file), Ok(is_left), "{kind:?} in {file:?}");
        assert_eq!(world.charged() > 0, !is_left && kind != OfNobody, "{kind:?} in {file:?}");
        let (_, restored) =
            world.with_topology(|topology| restore.finish(topology, &mut |queue| world.add_queue(queue)));
        assert_eq!(restored.messages, usize::from(kind != OfNobody), "{kind:?} in {file:?}");
    }
}

#[test]
fn as_much_is_taken_into_memory_as_was_said() {
    let payload = record(Kind::Plain, &[b'x'; 1_000]);
    // Number of messages that a start takes into memory.
    let taken = |after_bytes: usize| {
        let world = TestWorld::new();
        let mut restore = restore(&world, after_bytes);
        restore.define().unwrap();
        let is_left = |lsn: u64| restore.message(Lsn(lsn), &payload, Some(0)).expect("it was written");
        (20..30).map(is_left).filter(|is_left| !is_left).count()
    };
    assert_eq!(taken(0), 0);
    assert_eq!(taken(1), 1);
    // A message takes the bytes of its body and some more.
    for count in 2..8 {
        let len = taken(1_000 * count);
        assert!(len <= count && len + 1 >= count, "{len} of {count}");
    }
    assert_eq!(taken(usize::MAX), 10);
}

#[test]
fn a_queue_that_is_gone_takes_no_exchange_with_it_whatever_that_is_called() {
    for is_gone in [false, true] {
        let world = TestWorld::new();
        let mut restore = restore(&world, usize::MAX);
        // Behind the number of its vhost, its row looks like that of the queue.
        let name = Name::new(&[0, 0, 0, 1, b'x']);
        let settings = Settings { is_durable: true, ..Settings::default() };
        let exchange =
            Definition::Exchange { vhost: VHOST, name: name.clone(), kind: ExchangeKind::Fanout, settings };
        restore.definition(Lsn(2), &exchange.encode()).unwrap();
        if is_gone {
            restore.definition(Lsn(3), &Definition::QueueGone { queue: QUEUE }.encode()).unwrap();
        }
        restore.define().unwrap();
        let (_, restored) = world.with_topology(|topology| {
            let restored = restore.finish(topology, &mut |_| Some(QueueId { slot: 0, generation: 0 }));
            assert!(topology.table().exchange(VHOST, name.as_bytes()).is_some(), "queue gone: {is_gone}");
            restored
        });
        assert_eq!((restored.queues, restored.passed_over), (usize::from(!is_gone), 0));
    }
}
