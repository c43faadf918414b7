//! Restarts of the broker: a world restored from a journal, and the contents of its queues.

use std::collections::BTreeMap;

use imori_core::broker::queue_restored;
use imori_core::confirm::Lsn;
use imori_core::delivery::{Delivery, Outcome, Taken};
use imori_core::id::{ConnectionId, Reader, ReaderId, VhostId};
use imori_core::policy::Policies;
use imori_core::queue::Effects;
use imori_core::record::{MessageRecord, NewRecord, RecordKind};
use imori_core::restore::{Awakening, Restore};
use imori_core::time::Time;
use imori_core::world::World;
use imori_testkit::TestWorld;

pub(crate) type Journal = Vec<(Lsn, NewRecord, bool)>;

const READABLE: &str = "the core wrote it";

/// After every due time, and still before never.
const FAR: Time = Time(u64::MAX / 2);

/// More messages than any test sends.
const SEQUENCES: u64 = 2000;

/// A reader for the remaining messages, with a connection that no test uses.
const READER: Reader = Reader {
    connection: ConnectionId { cell: 9, slot: 9, generation: 9 },
    id: ReaderId { slot: 0, generation: 0 },
};

/// The beginning of a journal, without a group that would be cut in two.
pub(crate) fn beginning(journal: &Journal, len: usize) -> Journal {
    let is_one_group = |a: usize, b: usize| match (journal.get(a), journal.get(b)) {
        (Some((first, _, true)), Some((next, _, true))) => next.0 == first.0 + 1,
        _ => false,
    };
    let mut end = len;
    if end > 0 && is_one_group(end - 1, end) {
        while end > 0 && is_one_group(end - 1, end) {
            end -= 1;
        }
    }
    journal[..end].to_vec()
}

/// The world after a restart at `now` with this journal; no queue is woken yet.
pub(crate) fn asleep(journal: &Journal, now: Time) -> (TestWorld, Vec<Awakening>) {
    asleep_under(journal, now, Policies::default())
}

/// The world of [`asleep`], with these policies for its only vhost.
fn asleep_under(journal: &Journal, now: Time, policies: Policies) -> (TestWorld, Vec<Awakening>) {
    let world = TestWorld::after(journal, now);
    let mut restore = Restore::new(world.gauge().clone(), now, false).under([(VhostId(0), policies)]);
    let of = |kind| journal.iter().filter(move |(_, record, _)| record.kind == kind);
    for (lsn, record, _) in of(RecordKind::Definition) {
        restore.definition(*lsn, &record.payload).expect(READABLE);
    }
    restore.define().expect(READABLE);
    of(RecordKind::Settle).for_each(|(_, record, _)| restore.settle(&record.payload).expect(READABLE));
    of(RecordKind::Purge).for_each(|(_, record, _)| restore.purge(&record.payload).expect(READABLE));
    of(RecordKind::Count).for_each(|(_, record, _)| restore.count(&record.payload).expect(READABLE));
    of(RecordKind::Annotations)
        .for_each(|(_, record, _)| restore.annotations(&record.payload).expect(READABLE));
    of(RecordKind::Stream)
        .for_each(|(lsn, record, _)| restore.stream(*lsn, &record.payload).expect(READABLE));
    of(RecordKind::Seen).for_each(|(lsn, record, _)| restore.seen(*lsn, &record.payload).expect(READABLE));
    for (lsn, record, _) in of(RecordKind::Message) {
        assert!(!restore.message(*lsn, &record.payload, None).expect(READABLE), "all of it is taken");
    }
    let (awakenings, restored) =
        world.with_topology(|topology| restore.finish(topology, &mut |queue| world.add_queue(queue)));
    assert_eq!(restored.passed_over, 0);
    (world, awakenings)
}

/// Restores a world and wakes its queues.
pub(crate) fn restored(journal: &Journal, now: Time) -> TestWorld {
    restored_under(journal, now, Policies::default())
}

/// Restores a world like [`restored`], with these policies for its only vhost.
pub(crate) fn restored_under(journal: &Journal, now: Time, policies: Policies) -> TestWorld {
    let (world, awakenings) = asleep_under(journal, now, policies);
    awakenings.iter().for_each(|awakening| queue_restored(&world, awakening));
    world
}

/// The messages that a queue delivers now, each with its record, its failures and its deaths.
pub(crate) fn ready(world: &TestWorld, name: &str) -> Vec<(Lsn, String)> {
    let Some(id) = world.queue(name) else { return Vec::new() };
    let (now, bodies) = (world.now(), bodies(&world.journal.borrow()));
    let drained = world.with_queue(id, |queue| {
        queue.add_consumer(READER, 0, false, now);
        let mut all = Vec::new();
        loop {
            let (mut given, mut effects) = (None, Effects::default());
            queue.wake(READER);
            let mut take_one = |_, delivery: &Delivery<'_>| match given {
                None => {
                    given = Some((body(delivery), shown(delivery)));
                    Taken::Settled
                }
                Some(_) => Taken::Full,
            };
            queue.deliver(now, &mut take_one, &mut effects);
            let is_given = |lsn| given.as_ref().is_some_and(|(body, _)| bodies.get(&lsn) == Some(body));
            let left = effects.dead().iter().filter_map(|dead| dead.record_ref);
            let left = left.chain(effects.settled.iter().copied());
            let (of_given, over): (Vec<Lsn>, Vec<Lsn>) =
                left.map(|record_ref| record_ref.lsn).partition(|lsn| is_given(*lsn));
            // These messages had expired behind others that had not.
            all.extend(over.into_iter().map(|lsn| (lsn, "over".to_string())));
            let Some((_, text)) = given else { break };
            all.extend(of_given.into_iter().map(|lsn| (lsn, text.clone())));
        }
        queue.remove_consumer(READER, now);
        all
    });
    drained.unwrap_or_default()
}

/// The records of all messages in a queue, whether ready, delayed, unsettled or expired.
pub(crate) fn held(world: &TestWorld, name: &str) -> Vec<Lsn> {
    let Some(id) = world.queue(name) else { return Vec::new() };
    let lsns = world.with_queue(id, |queue| {
        let mut effects = Effects::default();
        for sequence in 1..SEQUENCES {
            queue.settle(sequence, Outcome::Accept, Time(0), &mut effects);
        }
        queue.add_consumer(READER, 0, false, Time(0));
        for now in [Time(0), FAR] {
            queue.deliver(now, &mut |_, _| Taken::Settled, &mut effects);
        }
        let died = effects.dead().iter().filter_map(|dead| dead.record_ref);
        let mut lsns: Vec<Lsn> =
            effects.settled.iter().copied().chain(died).map(|record_ref| record_ref.lsn).collect();
        lsns.sort_unstable();
        lsns
    });
    lsns.unwrap_or_default()
}

/// The bodies of the messages with records.
pub(crate) fn bodies(journal: &Journal) -> BTreeMap<Lsn, String> {
    let messages = journal.iter().filter(|(_, record, _)| record.kind == RecordKind::Message);
    let body = |payload| {
        String::from_utf8(MessageRecord::decode(payload).expect(READABLE).body.to_vec())
            .expect("bodies are text")
    };
    messages.map(|(lsn, record, _)| (*lsn, body(&record.payload))).collect()
}

fn body(delivery: &Delivery<'_>) -> String {
    String::from_utf8(delivery.message.body.to_vec()).expect("bodies are text")
}

fn shown(delivery: &Delivery<'_>) -> String {
    let mut text = body(delivery);
    text += &format!(" to {} failed {}", delivery.address.keep().subject, delivery.failures);
    for death in delivery.deaths.iter().flat_map(|deaths| deaths.iter()) {
        let (reason, at) = (death.reason.as_str(), death.time.0);
        text += &format!(", {reason} in {} {} times from {at}", death.queue, death.count);
    }
    text
}
