//! After any commands the journal and the memory agree, and no prefix of the journal loses a message.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use imori_core::broker::{self, Step, queue_restored, renew_seen};
use imori_core::confirm::Lsn;
use imori_core::delivery::{Outcome, RecordRef};
use imori_core::id::{DurableQueueId, QueueId, Reader, VhostId};
use imori_core::message::{Address, Message, MessageView};
use imori_core::name::Name;
use imori_core::outbound::{Numbers, SessionId};
use imori_core::policy::{Policies, PolicySettings};
use imori_core::queue::{Overflow, QueueSettings};
use imori_core::record::{Definition, MessageRecord, RecordKind, decode_settle};
use imori_core::restore::Awakening;
use imori_core::route::{ExchangeKind, Settings};
use imori_core::time::Time;
use imori_core::world::World;
use imori_testkit::{Caller, TestMessage, TestWorld, dying_to};
use proptest::prelude::*;

use crate::durable::{durable, durable_dying_to, journal};
use crate::policies::{policies, set};
use crate::restored::{Journal, asleep, beginning, bodies, held, ready, restored_under};

const MS: Duration = Duration::from_millis(1);

const READABLE: &str = "the core wrote it";

/// The settings of a durable queue in the random world.
fn settings(name: &str) -> QueueSettings {
    let dead = durable_dying_to("", Some("dead"));
    match name {
        "plain" => QueueSettings { dead_letter: dying_to("", Some("round")).dead_letter, ..durable() },
        "round" => QueueSettings { message_ttl: Some(3 * MS), ..durable_dying_to("", Some("plain")) },
        "limited" => QueueSettings { delivery_limit: Some(1), ..durable_dying_to("", Some("failed")) },
        "short" => QueueSettings { length_max: Some(3), ..dead },
        "full" => {
            let overflow = Overflow::RejectPublishDeadLetter;
            QueueSettings { length_max: Some(2), overflow, ..dead }
        }
        "once" => QueueSettings { dedup_window: Some(20 * MS), message_ttl: Some(9 * MS), ..dead },
        "prio" => QueueSettings { priority_max: Some(2), ..dead },
        "mem" => QueueSettings { length_max: Some(1), ..QueueSettings::default() },
        _ => durable(),
    }
}

/// Policies for some of the queues, or none. They limit only queues without incoming dead letters: a crash
/// changes the order of dead letters, and so which of them find room.
fn some_policies(number: u8) -> Policies {
    let dead_letters_to = |queue: &str| PolicySettings {
        dead_letter_exchange: Some(Name::from("")),
        dead_letter_routing_key: Some(Name::from(queue)),
        ..PolicySettings::default()
    };
    match number % 5 {
        0 => policies("^(short|prio)$", PolicySettings { length_max: Some(2), ..dead_letters_to("failed") }),
        1 => policies("^[pf]", PolicySettings { message_ttl: Some(4 * MS), ..dead_letters_to("dead") }),
        2 => policies(
            "^(short|prio)$",
            PolicySettings {
                length_max: Some(1),
                overflow: Some(Overflow::RejectPublish),
                message_ttl: Some(2 * MS),
                ..PolicySettings::default()
            },
        ),
        _ => Policies::default(),
    }
}

const QUEUES: [&str; 9] = ["plain", "round", "limited", "short", "full", "once", "prio", "dead", "failed"];
const IDS: [&str; 4] = ["", "a", "b", "c"];

/// A random world while commands run in it.
struct Random<'w> {
    world: &'w TestWorld,
    client: Caller<'w>,
    reader: Caller<'w>,
    sent: u32,
    has_transient: bool,
}

impl<'w> Random<'w> {
    fn new(world: &'w TestWorld, has_transient: bool) -> Random<'w> {
        let (client, reader) = (world.connect(1), world.connect(2));
        let random = Random { world, client, reader, sent: 0, has_transient };
        let settings = Settings { is_durable: true, ..Settings::default() };
        let kind = ExchangeKind::Fanout;
        broker::declare_exchange(world, &random.client.actor(), b"all", kind, settings).expect("it is new");
        QUEUES.iter().chain(&["mem"]).for_each(|name| random.declare(name));
        random
    }

    fn declare(&self, name: &str) {
        let queue = self.client.declare_with(name, &settings(name)).expect("it is as it was");
        if ["plain", "short", "once", "mem"].contains(&name) {
            self.client.bind("all", "", queue).expect("both are there");
        }
    }

    /// Runs one command, chosen by four numbers.
    fn act(&mut self, (verb, a, b, c): (u8, u8, u8, u8)) {
        let (world, client, reader) = (self.world, self.client, self.reader);
        let pick = usize::from(a) % QUEUES.len();
        let name = QUEUES[pick];
        match verb % 17 {
            0..=3 => self.send("", name, b, c),
            4 | 5 => self.send("all", "", b, c),
            6 => self.send("", "mem", b, c),
            7 => drop(reader.try_consume(name, "c", u32::from(b % 4), false)),
            8 | 9 => {
                let outcome = match c % 4 {
                    0 => Outcome::Accept,
                    1 => Outcome::Reject,
                    more => Outcome::Release { failed: more == 2 },
                };
                let number = u64::from(b % 40);
                let numbers = if a.is_multiple_of(3) { Numbers::UpTo(number) } else { Numbers::One(number) };
                drop(reader.settle(numbers, outcome));
            }
            10 | 11 => drop(world.pass(u32::from(a % 6) * MS)),
            12 => self.commit(b, c),
            13 => {
                let id = IDS[usize::from(b) % IDS.len()];
                drop(broker::cancel_delayed(world, &client.actor(), name.as_bytes(), id.as_bytes()));
            }
            14 if b.is_multiple_of(4) => {
                broker::delete_queue(world, &client.actor(), name.as_bytes()).expect("it is there");
                self.declare(name);
            }
            14 => {
                let journal = journal(world);
                let floor = journal.get(usize::from(b) * 4).map_or(Lsn(0), |(lsn, ..)| *lsn);
                renew_seen(world, world.queue("once").expect("it is there"), floor);
            }
            16 => set(world, some_policies(a)),
            _ => {
                reader.disconnect();
                self.reader = world.connect(2);
            }
        }
        self.reader.read_all();
    }

    fn outgoing(&self, b: u8, c: u8) -> TestMessage<'static> {
        let is_transient = self.has_transient && c.is_multiple_of(8);
        let of_record = Some(u32::from(c % 5) * 4).filter(|ms| *ms > 0 && !self.has_transient);
        let expiration_ms = if is_transient { Some(1) } else { of_record };
        TestMessage {
            body: "",
            id: IDS[usize::from(b) % IDS.len()],
            delay_ms: if b.is_multiple_of(3) && !is_transient { u32::from(c % 16) } else { 0 },
            expiration_ms,
            priority: Some(b % 4),
            is_transient,
        }
    }

    fn send(&mut self, exchange: &str, subject: &str, b: u8, c: u8) {
        self.sent += 1;
        let body = format!("m{}", self.sent);
        drop(self.client.try_mail(exchange, subject, &TestMessage { body: &body, ..self.outgoing(b, c) }));
    }

    fn commit(&mut self, b: u8, c: u8) {
        let mut steps = Vec::new();
        for (exchange, subject) in [("", "once"), ("all", ""), ("", QUEUES[usize::from(c) % QUEUES.len()])] {
            self.sent += 1;
            let (outgoing, body) = (self.outgoing(b, c), format!("m{}", self.sent));
            let properties = outgoing.properties();
            let view =
                MessageView { properties: &properties, text: outgoing.id.as_bytes(), body: body.as_bytes() };
            let message = Message::store(&view, None, self.world.gauge());
            steps.push(Step::Publish {
                address: Address::new(exchange.as_bytes(), subject.as_bytes()),
                copies: Vec::new(),
                message,
            });
        }
        // The reader's own transaction also settles a delivery, if there is one with this number.
        let numbers = Numbers::One(u64::from(b % 40));
        let settle =
            Step::Settle { session: SessionId(0), numbers, outcome: Outcome::Accept, annotations: None };
        let with_settle = [&steps[..], &[settle]].concat();
        if broker::commit(self.world, &self.reader.actor(), &with_settle).is_err() {
            drop(broker::commit(self.world, &self.reader.actor(), &steps));
        }
    }
}

/// Releases unsettled deliveries as a crash would: they count as failed if failures are limited, because
/// their outcome is unknown.
fn put_back(world: &TestWorld, reader: Caller<'_>) {
    let ids = QUEUES.iter().filter(|name| **name != "limited").filter_map(|name| world.queue(name));
    let ids: Vec<QueueId> = ids.collect();
    for id in &ids {
        world.with_queue(*id, |queue| {
            let readers: Vec<Reader> = queue.consumers().collect();
            for reader in readers {
                queue.remove_consumer(reader, Time(0));
            }
        });
    }
    for id in ids {
        let out = world.with_queue(id, |queue| queue.unsettled_len());
        let failed = if out == Some(0) { Vec::new() } else { (1..2000).collect() };
        queue_restored(world, &Awakening { id, failed });
    }
    reader.disconnect();
    // A queue that ends with the broker does not come back.
    broker::delete_queue(world, &reader.actor(), b"mem").expect("nobody deleted it");
}

/// The messages in queues, judged by the records alone.
fn told(journal: &Journal) -> BTreeSet<RecordRef> {
    let mut record_refs = BTreeSet::new();
    let mut queues = BTreeSet::new();
    for (lsn, record, _) in journal {
        match record.kind {
            RecordKind::Message => {
                let queues = MessageRecord::decode(&record.payload).expect(READABLE).queues;
                record_refs.extend(queues.into_iter().map(|queue| RecordRef { queue, lsn: *lsn }));
            }
            RecordKind::Definition => match Definition::decode(&record.payload).expect(READABLE) {
                Definition::Queue { .. } => drop(queues.insert(DurableQueueId(lsn.0))),
                Definition::QueueGone { queue } => drop(queues.remove(&queue)),
                _ => {}
            },
            _ => {}
        }
    }
    for (lsn, record, _) in journal.iter().filter(|(_, record, _)| record.kind == RecordKind::Settle) {
        decode_settle(&record.payload, &mut |record_ref| {
            assert!(record_ref.lsn < *lsn, "{record_ref:?} is settled at {lsn:?}");
            record_refs.remove(&record_ref);
        })
        .expect(READABLE);
    }
    record_refs.retain(|record_ref| queues.contains(&record_ref.queue));
    record_refs
}

fn check_part(part: &Journal, lasting: &BTreeMap<String, Lsn>) {
    let mut expected: Vec<Lsn> = told(part).iter().map(|record_ref| record_ref.lsn).collect();
    let bodies = bodies(part);
    let (back, _) = asleep(part, Time(0));
    let mut found: Vec<Lsn> = QUEUES.iter().flat_map(|name| held(&back, name)).collect();
    let there: BTreeSet<&String> = found.iter().filter_map(|lsn| bodies.get(lsn)).collect();
    let end = part.last().map_or(Lsn::NONE, |(lsn, ..)| *lsn);
    for (body, first) in lasting {
        assert!(*first > end || there.contains(body), "{body} is lost at {end:?}");
    }
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "up to {end:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn after_anything_the_records_alone_give_what_memory_had(
        acts in proptest::collection::vec(any::<(u8, u8, u8, u8)>(), 1..120),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 6),
        later_ms in prop_oneof![Just(0), 1u32..25],
    ) {
        let world = TestWorld::new();
        // Messages without a record take places in memory that they do not have after a crash, and hold up
        // expired messages behind them. So with such messages no time passes after the crash, and nothing
        // else expires.
        let mut random = Random::new(&world, later_ms == 0);
        acts.into_iter().for_each(|act| random.act(act));
        let (whole, crash) = (journal(&world), world.appended());

        let policies = world.with_topology(|topology| topology.table().policies(VhostId(0)));
        let back = restored_under(&whole, world.now(), policies);
        put_back(&world, random.reader);
        for id in IDS.iter().skip(1) {
            let known = |world: &TestWorld| {
                let (queue, now) = (world.queue("once").unwrap(), world.now());
                let lsn = world.with_queue(queue, |queue| queue.dedup()?.find(id.as_bytes(), now)).flatten();
                lsn.filter(|lsn| *lsn != Lsn::NONE)
            };
            prop_assert_eq!(known(&world), known(&back), "{} in the window", id);
        }
        // Messages with the same deadline expire at the same time.
        let (later, again) = (world.now().after(later_ms * MS), back.now().after(later_ms * MS));
        world.pass(later_ms * MS);
        back.pass(later_ms * MS);
        prop_assert_eq!(later, again);
        for name in QUEUES {
            // Messages that died in the crash or later have different records in the two worlds.
            let split = |world: &TestWorld| {
                let (old, new): (Vec<_>, Vec<_>) = ready(world, name).into_iter().partition(|(lsn, _)| *lsn <= crash);
                let mut new: Vec<String> = new.into_iter().map(|(_, text)| text).collect();
                new.sort();
                (old, new)
            };
            prop_assert_eq!(split(&world), split(&back), "in {}", name);
        }

        // Messages that are there in the end were there all the time, from their first records on.
        let bodies = bodies(&whole);
        let in_the_end: BTreeSet<&String> = told(&whole).iter().filter_map(|record_ref| bodies.get(&record_ref.lsn)).collect();
        let mut lasting = BTreeMap::new();
        for (lsn, body) in bodies.iter().rev().filter(|(_, body)| in_the_end.contains(body)) {
            lasting.insert(body.clone(), *lsn);
        }
        check_part(&whole, &lasting);
        for cut in cuts {
            check_part(&beginning(&whole, cut.index(whole.len() + 1)), &lasting);
        }
    }
}
