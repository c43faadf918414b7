//! Definitions of queues are lost, but not the messages in them.

use imori_core::broker;
use imori_core::confirm::Lsn;
use imori_core::entries::{PageFacts, PagePlace};
use imori_core::id::DurableQueueId;
use imori_core::record::{Definition, RecordKind};
use imori_core::restore::Restore;
use imori_core::world::World;
use imori_testkit::{TestMessage, TestWorld, VHOST};

use crate::durable::{durable, journal};
use crate::restored::Journal;

const READABLE: &str = "the core wrote it";

/// The names of the queues after a start, the number of messages in each, and the queues declared anew. Only
/// the definitions of `known` queues are there.
fn back(
    journal: &Journal,
    known: &[&str],
    pages: &[PageFacts],
    is_lossy: bool,
) -> (Vec<(String, usize)>, Vec<u64>) {
    let world = TestWorld::after(journal, imori_core::time::Time(0));
    let mut restore = Restore::new(world.gauge().clone(), world.now(), false);
    if is_lossy {
        restore = restore.lacking_queues(VHOST);
    }
    let of = |kind| journal.iter().filter(move |(_, record, _)| record.kind == kind);
    for (lsn, record, _) in of(RecordKind::Definition) {
        let is_known = match Definition::decode(&record.payload).expect(READABLE) {
            Definition::Queue { name, .. } => known.iter().any(|known| known.as_bytes() == name.as_bytes()),
            _ => true,
        };
        if is_known {
            restore.definition(*lsn, &record.payload).expect(READABLE);
        }
    }
    restore.define().expect(READABLE);
    pages.iter().for_each(|facts| restore.page(*facts));
    of(RecordKind::Settle).for_each(|(_, record, _)| restore.settle(&record.payload).expect(READABLE));
    for (lsn, record, _) in of(RecordKind::Message) {
        restore.message(*lsn, &record.payload, None).expect(READABLE);
    }
    let made: Vec<(Lsn, Definition)> = restore.made_anew().to_vec();
    let (mut found, mut ids) = (Vec::new(), Vec::new());
    world.with_topology(|topology| {
        restore.finish(topology, &mut |queue| {
            found.push((queue.name().to_string(), queue.ready_len()));
            world.add_queue(queue)
        })
    });
    for (lsn, definition) in made {
        // The recorded definition makes the same queue again at the next start.
        assert!(matches!(&definition, Definition::Queue { settings, .. } if settings.is_durable));
        ids.push(lsn.0);
    }
    found.sort();
    (found, ids)
}

fn queues(all: &[(&str, usize)]) -> Vec<(String, usize)> {
    all.iter().map(|(name, len)| (String::from(*name), *len)).collect()
}

#[test]
fn messages_of_queues_that_nobody_declares_come_back_under_a_number() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let mut numbers = Vec::new();
    for name in ["a", "gone", "done", "empty"] {
        let id = client.declare_with(name, &durable()).unwrap();
        let durability = world.with_queue(id, |queue| queue.durability()).flatten();
        numbers.push(durability.expect("it is durable").id.0);
        for body in ["1", "2"].into_iter().filter(|_| name != "empty") {
            client.outgoing("", name, &TestMessage { body, ..TestMessage::default() });
        }
    }
    client.consume("done", "c", 9);
    (1..=2).for_each(|number| client.accept(number));
    broker::delete_queue(&world, &client.actor(), b"gone").unwrap();
    let (journal, number) = (journal(&world), numbers[0]);

    let all = queues(&[("a", 2), ("done", 0), ("empty", 0)]);
    assert_eq!(back(&journal, &["a", "gone", "done", "empty"], &[], true), (all, vec![]), "nothing is lost");
    let lost = format!("lost-{number}");
    assert_eq!(back(&journal, &[], &[], true), (queues(&[(&lost, 2)]), vec![number]));
    assert_eq!(back(&journal, &["done"], &[], true), (queues(&[("done", 0), (&lost, 2)]), vec![number]));
    assert_eq!(back(&journal, &[], &[], false), (vec![], vec![]), "no definition was lost");

    // The name is taken.
    client.declare_with(&lost, &durable()).unwrap();
    let journal = self::journal(&world);
    let expected = queues(&[(&lost, 0), (&format!("{lost}-2"), 2)]);
    assert_eq!(back(&journal, &[&lost], &[], true), (expected, vec![number]));

    // The pages belong to other queues: they are needed, unless the checkpoint says that they are settled.
    let page = |queue, count| PageFacts {
        queue: DurableQueueId(queue),
        priority: 0,
        place: PagePlace { segment: queue as u32, index: 0 },
        count,
        first: Lsn(900),
        last: Lsn(902),
        first_position: 900,
        last_position: 902,
    };
    let pages = [page(77, 3), page(numbers[1], 3), page(78, 0)];
    let expected = queues(&[("done", 0), (&lost, 2), ("lost-77", 3)]);
    let (found, made) = back(&journal, &["done"], &pages, true);
    assert_eq!((found, made), (expected, vec![77, number]));
}

#[test]
fn a_queue_is_known_by_name_before_its_messages_come() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let ids = ["there", "gone"].map(|name| {
        let id = client.declare_with(name, &durable()).unwrap();
        world.with_queue(id, |queue| queue.durability()).flatten().expect("it is durable").id
    });
    broker::delete_queue(&world, &client.actor(), b"gone").unwrap();
    let mut restore = Restore::new(world.gauge().clone(), world.now(), false);
    for (lsn, record, _) in
        journal(&world).iter().filter(|(_, record, _)| record.kind == RecordKind::Definition)
    {
        restore.definition(*lsn, &record.payload).expect(READABLE);
    }
    restore.define().expect(READABLE);
    let names = ids.map(|id| restore.queue_name(id).map(ToString::to_string));
    assert_eq!(names, [Some(String::from("there")), None]);
}
