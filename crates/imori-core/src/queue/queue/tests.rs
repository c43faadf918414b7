use std::collections::BTreeMap;
use std::fmt::Write;

use proptest::prelude::*;

use super::super::settings::DeadLetter;
use super::*;
use crate::id::ReaderId;
use crate::message::{Address, Head, OriginId};

const SECOND: Duration = Duration::from_secs(1);
const UNLIMITED: u32 = u32::MAX;

/// A queue, and readers who take as many as they have credit for.
struct Stage {
    queue: Queue,
    gauge: Gauge,
    now: Time,
    credit: BTreeMap<u32, u32>,
    /// Readers settle what they get.
    settles: bool,
    given: Vec<Given>,
    effects: Effects,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Given {
    reader: u32,
    sequence: u64,
    body: String,
    failures: u32,
    is_redelivered: bool,
}

fn reader(slot: u32) -> Reader {
    let connection = ConnectionId { cell: 0, slot: 0, generation: 0 };
    Reader { connection, id: ReaderId { slot, generation: 0 } }
}

fn dead_lettering() -> QueueSettings {
    let target = DeadLetter { exchange: Name::from("dlx"), routing_key: None };
    QueueSettings { dead_letter: Some(target), ..QueueSettings::default() }
}

fn head() -> Head {
    Head::new(OriginId::BROKER)
}

fn head_with(priority: Option<u8>, expiration_ms: Option<u32>) -> Head {
    let mut head = head();
    (head.priority, head.expiration_ms) = (priority, expiration_ms);
    head
}

impl Stage {
    fn new(settings: QueueSettings) -> Stage {
        let gauge = Gauge::default();
        let now = Time(1_000_000);
        Stage {
            queue: Queue::new(VhostId(0), Name::from("q"), settings, gauge.clone(), now),
            gauge,
            now,
            credit: BTreeMap::new(),
            settles: true,
            given: Vec::new(),
            effects: Effects::default(),
        }
    }

    fn with_reader(settings: QueueSettings, credit: u32) -> Stage {
        let mut stage = Stage::new(settings);
        stage.consume(1, 0, credit);
        stage
    }

    fn consume(&mut self, slot: u32, priority: i32, credit: u32) {
        self.credit.insert(slot, credit);
        self.queue.add_consumer(reader(slot), priority, false, self.now);
        self.deliver();
    }

    fn grant(&mut self, slot: u32, credit: u32) {
        *self.credit.entry(slot).or_default() += credit;
        self.queue.wake(reader(slot));
        self.deliver();
    }

    fn publish(&mut self, body: &str) -> Result<Published, QueueFull> {
        self.publish_with(body, &head(), None)
    }

    fn publish_with(
        &mut self,
        body: &str,
        head: &Head,
        deaths: Option<&Arc<Deaths>>,
    ) -> Result<Published, QueueFull> {
        let Stage { queue, credit, settles, given, effects, .. } = self;
        let address = Arc::new(Address::new(b"", b"q"));
        let arrival = Arrival { address: &AddressView::new(&address), deaths, lsn: Lsn::NONE, now: self.now };
        let publication = Publication::new(head, b"", body.as_bytes());
        queue.publish(&publication, &arrival, &mut taking(credit, *settles, given), effects)
    }

    fn deliver(&mut self) {
        let Stage { queue, credit, settles, given, effects, .. } = self;
        queue.deliver(self.now, &mut taking(credit, *settles, given), effects);
    }

    fn settle(&mut self, sequence: u64, outcome: Outcome) -> bool {
        let was_out = self.queue.settle(sequence, outcome, self.now, &mut self.effects);
        self.deliver();
        was_out
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.after(time);
        self.queue.expire(self.now, &mut self.effects);
    }

    /// The bodies given out since the last call.
    fn bodies(&mut self) -> String {
        let bodies: Vec<String> = self.given.drain(..).map(|given| given.body).collect();
        bodies.join(" ")
    }

    /// The bodies buried since the last call, each with the reason of its last death.
    fn buried(&mut self) -> String {
        let buried: Vec<String> = self.effects.dead.drain(..).map(|dead| shown(&dead)).collect();
        buried.join(" ")
    }
}

fn shown(dead: &Dead) -> String {
    let reason = dead.deaths.iter().next().map_or("?", |death| death.reason.as_str());
    format!("{}:{reason}", String::from_utf8_lossy(dead.message.view().body))
}

fn taking<'s>(
    credit: &'s mut BTreeMap<u32, u32>,
    settles: bool,
    given: &'s mut Vec<Given>,
) -> impl FnMut(Reader, &Delivery<'_>, u64) -> Taken + 's {
    move |reader, delivery, sequence| {
        match credit.get_mut(&reader.id.slot) {
            None => return Taken::Gone,
            Some(0) => return Taken::Full,
            Some(left) => *left -= 1,
        }
        given.push(Given {
            reader: reader.id.slot,
            sequence,
            body: String::from_utf8_lossy(delivery.message.body).into_owned(),
            failures: delivery.failures,
            is_redelivered: delivery.is_redelivered,
        });
        if settles { Taken::Unsettled } else { Taken::Settled }
    }
}

#[test]
fn every_state_of_a_message_takes_every_input() {
    let release = |failed| Some(Outcome::Release { failed });
    let inputs = [
        ("consumer has credit", None),
        ("accept", Some(Outcome::Accept)),
        ("release", release(false)),
        ("release, failed", release(true)),
        ("reject", Some(Outcome::Reject)),
        ("time to live ends", None),
        ("another, at the limit", None),
        ("purge", None),
    ];
    let mut table = String::new();
    for state in ["ready", "unsettled", "failed once"] {
        for (input, outcome) in inputs {
            let mut stage = Stage::new(QueueSettings {
                message_ttl: Some(SECOND),
                length_max: Some(1),
                delivery_limit: Some(1),
                ..dead_lettering()
            });
            stage.publish("a").unwrap();
            if state != "ready" {
                stage.consume(1, 0, 1);
            }
            if state == "failed once" {
                stage.settle(1, Outcome::Release { failed: true });
                stage.grant(1, 1);
            }
            match (input, outcome) {
                (_, Some(outcome)) => {
                    stage.settle(1, outcome);
                }
                ("consumer has credit", _) if state == "ready" => stage.consume(1, 0, 1),
                ("consumer has credit", _) => stage.grant(1, 1),
                ("time to live ends", _) => stage.pass(SECOND),
                ("purge", _) => {
                    stage.queue.purge();
                }
                _ => {
                    stage.publish("b").unwrap();
                }
            }
            let (ready, unsettled) = (stage.queue.ready_len(), stage.queue.unsettled_len());
            let buried = stage.buried();
            writeln!(table, "{state:11} | {input:21} | {ready} ready, {unsettled} unsettled {buried}")
                .unwrap();
        }
    }
    let table: Vec<&str> = table.lines().map(str::trim_end).collect();
    assert_eq!(
        table,
        [
            "ready       | consumer has credit   | 0 ready, 1 unsettled",
            "ready       | accept                | 1 ready, 0 unsettled",
            "ready       | release               | 1 ready, 0 unsettled",
            "ready       | release, failed       | 1 ready, 0 unsettled",
            "ready       | reject                | 1 ready, 0 unsettled",
            "ready       | time to live ends     | 0 ready, 0 unsettled a:expired",
            "ready       | another, at the limit | 1 ready, 0 unsettled a:maxlen",
            "ready       | purge                 | 0 ready, 0 unsettled",
            "unsettled   | consumer has credit   | 0 ready, 1 unsettled",
            "unsettled   | accept                | 0 ready, 0 unsettled",
            "unsettled   | release               | 1 ready, 0 unsettled",
            "unsettled   | release, failed       | 1 ready, 0 unsettled",
            "unsettled   | reject                | 0 ready, 0 unsettled a:rejected",
            "unsettled   | time to live ends     | 0 ready, 1 unsettled",
            "unsettled   | another, at the limit | 1 ready, 1 unsettled",
            "unsettled   | purge                 | 0 ready, 1 unsettled",
            "failed once | consumer has credit   | 0 ready, 1 unsettled",
            "failed once | accept                | 0 ready, 0 unsettled",
            "failed once | release               | 1 ready, 0 unsettled",
            "failed once | release, failed       | 0 ready, 0 unsettled a:delivery_limit",
            "failed once | reject                | 0 ready, 0 unsettled a:rejected",
            "failed once | time to live ends     | 0 ready, 1 unsettled",
            "failed once | another, at the limit | 1 ready, 1 unsettled",
            "failed once | purge                 | 0 ready, 1 unsettled",
        ]
    );
}

#[test]
fn consumers_take_turns_and_the_higher_priority_is_served_first() {
    // Consumers as (priority, credit), and who gets each of six messages.
    for (consumers, expected) in [
        (&[(0, UNLIMITED), (0, UNLIMITED)][..], "1 2 1 2 1 2"),
        (&[(0, UNLIMITED), (5, UNLIMITED)], "2 2 2 2 2 2"),
        (&[(0, UNLIMITED), (5, 2)], "2 2 1 1 1 1"),
        (&[(0, 1), (0, UNLIMITED), (0, 2)], "1 2 3 2 3 2"),
        (&[(-1, UNLIMITED), (i32::MAX, 1), (i32::MIN, UNLIMITED)], "2 1 1 1 1 1"),
        (&[(0, 1), (0, 2)], "1 2 2"),
    ] {
        let mut stage = Stage::new(QueueSettings::default());
        for (slot, (priority, credit)) in (1..).zip(consumers) {
            stage.consume(slot, *priority, *credit);
        }
        for _ in 0..6 {
            stage.publish("m").unwrap();
        }
        let readers: Vec<String> = stage.given.iter().map(|given| given.reader.to_string()).collect();
        assert_eq!(readers.join(" "), expected, "{consumers:?}");
    }
}

#[test]
fn a_consumer_that_was_full_is_served_again_once_woken() {
    let mut stage = Stage::with_reader(QueueSettings::default(), 1);
    for body in ["a", "b", "c"] {
        stage.publish(body).unwrap();
    }
    assert_eq!(stage.bodies(), "a");
    stage.grant(1, 1);
    assert_eq!(stage.bodies(), "b");
    stage.queue.wake(reader(7));
    stage.grant(1, 5);
    assert_eq!(stage.bodies(), "c");
    assert_eq!(stage.publish("d"), Ok(Published::Delivered));
}

#[test]
fn a_consumer_that_is_gone_is_not_asked_twice() {
    let mut stage = Stage::with_reader(QueueSettings::default(), 1);
    stage.credit.clear();
    for body in ["a", "b"] {
        assert_eq!(stage.publish(body), Ok(Published::Waiting));
    }
    assert!(!stage.queue.remove_consumer(reader(1), stage.now));
    stage.consume(2, 0, UNLIMITED);
    assert_eq!(stage.bodies(), "a b");
}

#[test]
fn released_messages_come_back_to_their_places() {
    for (released, expected) in
        [(&[1, 2][..], "a b c d"), (&[2, 1], "a b c d"), (&[2], "b c d"), (&[], "c d")]
    {
        let mut stage = Stage::with_reader(QueueSettings::default(), 2);
        for body in ["a", "b", "c", "d"] {
            stage.publish(body).unwrap();
        }
        stage.given.clear();
        for sequence in released {
            assert!(stage.settle(*sequence, Outcome::Release { failed: false }));
        }
        stage.grant(1, UNLIMITED);
        for given in &stage.given {
            assert_eq!(given.is_redelivered, given.sequence <= 2, "{given:?}");
            assert_eq!(given.failures, 0);
        }
        assert_eq!(stage.bodies(), expected, "{released:?}");
    }
}

#[test]
fn a_delivery_is_settled_once() {
    let mut stage = Stage::with_reader(QueueSettings::default(), UNLIMITED);
    stage.publish("a").unwrap();
    for (sequence, expected) in [(0, false), (u64::MAX, false), (1, true), (1, false)] {
        assert_eq!(stage.settle(sequence, Outcome::Accept), expected, "{sequence}");
    }
}

#[test]
fn failures_are_counted_up_to_the_delivery_limit() {
    for (limit, failures, deliveries, buried) in [
        (None, 5, 6, ""),
        (Some(0), 1, 1, "a:delivery_limit"),
        (Some(2), 2, 3, ""),
        (Some(2), 3, 3, "a:delivery_limit"),
        (Some(u32::MAX), 5, 6, ""),
    ] {
        let mut stage =
            Stage::with_reader(QueueSettings { delivery_limit: limit, ..dead_lettering() }, UNLIMITED);
        stage.publish("a").unwrap();
        for _ in 0..failures {
            stage.settle(1, Outcome::Release { failed: true });
        }
        let counts: Vec<u32> = stage.given.iter().map(|given| given.failures).collect();
        assert_eq!(counts, (0..deliveries).collect::<Vec<u32>>(), "{limit:?}");
        assert_eq!(stage.buried(), buried, "{limit:?}");
    }
}

#[test]
fn a_message_expires_by_the_shorter_of_both_times() {
    let hour = 3_600_000;
    for (queue_ms, message_ms, lives_ms) in [
        (None, None, None),
        (Some(10), None, Some(10)),
        (None, Some(20), Some(20)),
        (Some(10), Some(20), Some(10)),
        (Some(30), Some(20), Some(20)),
        (Some(0), None, Some(0)),
        (None, Some(u32::MAX), Some(u64::from(u32::MAX))),
        (Some(hour), Some(0), Some(0)),
        // SECURITY LIM-16: what is too long is for ever.
        (Some(u64::MAX), None, None),
    ] {
        let ttl = queue_ms.map(Duration::from_millis);
        let mut stage = Stage::new(QueueSettings { message_ttl: ttl, ..dead_lettering() });
        stage.publish_with("a", &head_with(None, message_ms), None).unwrap();
        let expected = lives_ms.map(|ms| stage.now.after(Duration::from_millis(ms)));
        assert_eq!(stage.queue.new_wake_up(), expected, "{queue_ms:?} {message_ms:?}");
        let Some(lives_ms) = lives_ms else { continue };
        if let Some(before) = lives_ms.checked_sub(1) {
            stage.pass(Duration::from_millis(before));
            assert_eq!(stage.buried(), "", "{queue_ms:?} {message_ms:?}");
            stage.pass(Duration::from_millis(1));
        } else {
            stage.pass(Duration::ZERO);
        }
        assert_eq!(stage.buried(), "a:expired", "{queue_ms:?} {message_ms:?}");
    }
}

#[test]
fn an_expired_message_is_not_given_out() {
    let mut stage = Stage::new(dead_lettering());
    stage.publish_with("a", &head_with(None, Some(5)), None).unwrap();
    stage.publish("b").unwrap();
    stage.now = stage.now.after(SECOND);
    stage.consume(1, 0, UNLIMITED);
    assert_eq!(stage.bodies(), "b");
    assert_eq!(stage.buried(), "a:expired");
}

#[test]
fn a_message_that_expires_at_once_is_still_given_to_who_waits() {
    let mut stage = Stage::with_reader(dead_lettering(), UNLIMITED);
    stage.publish_with("a", &head_with(None, Some(0)), None).unwrap();
    assert_eq!(stage.bodies(), "a");
}

#[test]
fn each_priority_expires_by_itself() {
    let mut stage = Stage::new(QueueSettings { priority_max: Some(3), ..dead_lettering() });
    for (body, priority, expiration_ms) in [("high", 3, None), ("mid", 2, Some(20)), ("low", 0, Some(10))] {
        let head = head_with(Some(priority), expiration_ms);
        stage.publish_with(body, &head, None).unwrap();
    }
    assert_eq!(stage.queue.new_wake_up(), Some(stage.now.after(Duration::from_millis(10))));
    stage.pass(Duration::from_millis(10));
    assert_eq!(stage.buried(), "low:expired");
    stage.pass(Duration::from_millis(10));
    assert_eq!(stage.buried(), "mid:expired");
    assert_eq!(stage.queue.ready_len(), 1);
}

#[test]
fn a_dead_letter_does_not_expire_by_its_publishers_time_again() {
    let mut stage = Stage::new(dead_lettering());
    let deaths = Arc::new(Deaths::default());
    let head = head_with(None, Some(10));
    stage.publish_with("a", &head, Some(&deaths)).unwrap();
    assert_eq!(stage.queue.new_wake_up(), None);
    stage.pass(SECOND);
    assert_eq!(stage.queue.ready_len(), 1);
}

#[test]
fn a_wake_up_is_asked_for_once() {
    let mut stage = Stage::new(QueueSettings::default());
    let ms = |ms| Duration::from_millis(ms);
    let start = stage.now;
    let publish = |stage: &mut Stage, expiration_ms| {
        stage.publish_with("m", &head_with(None, Some(expiration_ms)), None).unwrap();
        stage.queue.new_wake_up()
    };
    assert_eq!(publish(&mut stage, 100), Some(start.after(ms(100))));
    assert_eq!(publish(&mut stage, 200), None, "it stands behind");
    stage.consume(1, 0, 1);
    assert_eq!(stage.queue.new_wake_up(), None, "an earlier one is on its way");
    stage.consume(1, 0, 1);
    assert_eq!(publish(&mut stage, 50), Some(start.after(ms(50))));
    // The earlier one comes.
    stage.pass(ms(50));
    stage.queue.woken(stage.now);
    assert_eq!(publish(&mut stage, 150), Some(start.after(ms(200))));
    // The one asked for first comes too, and nothing is due: no other is needed.
    stage.pass(ms(50));
    stage.queue.woken(stage.now);
    assert_eq!(stage.queue.new_wake_up(), None, "the wake-up at 200 ms is on its way");
}

#[test]
fn the_more_urgent_goes_first_and_the_least_urgent_is_dropped_first() {
    // Priorities of the queue and of messages a, b, c ...; in what order they are given out.
    for (priority_max, priorities, given) in [
        (None, &[Some(1), Some(9), None][..], "a b c"),
        (Some(0), &[Some(1), Some(9), None], "a b c"),
        (Some(9), &[Some(1), Some(9), None], "b a c"),
        (Some(5), &[Some(5), Some(255), Some(6), Some(0)], "a b c d"),
        (Some(255), &[Some(254), Some(255), Some(254), None], "b a c d"),
    ] {
        let mut stage = Stage::new(QueueSettings { priority_max, ..QueueSettings::default() });
        for (body, priority) in ["a", "b", "c", "d"].into_iter().zip(priorities) {
            stage.publish_with(body, &head_with(*priority, None), None).unwrap();
        }
        stage.consume(1, 0, UNLIMITED);
        assert_eq!(stage.bodies(), given, "{priority_max:?} {priorities:?}");
    }
    let mut stage =
        Stage::new(QueueSettings { priority_max: Some(1), length_max: Some(2), ..dead_lettering() });
    for (body, priority) in [("a", 1), ("b", 0), ("c", 1), ("d", 1)] {
        stage.publish_with(body, &head_with(Some(priority), None), None).unwrap();
    }
    assert_eq!(stage.buried(), "b:maxlen a:maxlen");
}

#[test]
fn length_limits_hold_with_each_overflow_policy() {
    use Overflow::{DropHead, RejectPublish, RejectPublishDeadLetter};
    // Limits, policy, bodies published; what is kept, buried and how often a publish was refused.
    for (length_max, bytes_max, overflow, bodies, kept, buried, refused) in [
        (Some(2), None, DropHead, "a b c", "b c", "a:maxlen", 0),
        (Some(2), None, RejectPublish, "a b c", "a b", "", 1),
        (Some(2), None, RejectPublishDeadLetter, "a b c", "a b", "c:maxlen", 1),
        (Some(0), None, DropHead, "a b", "", "a:maxlen b:maxlen", 0),
        (Some(0), None, RejectPublish, "a", "", "", 1),
        (None, Some(4), DropHead, "aa bb c", "bb c", "aa:maxlen", 0),
        (None, Some(4), DropHead, "a b cccc", "cccc", "a:maxlen b:maxlen", 0),
        (None, Some(4), DropHead, "a ccccc", "", "a:maxlen ccccc:maxlen", 0),
        (None, Some(4), RejectPublish, "aaa bb c", "aaa c", "", 1),
        (Some(1), Some(100), RejectPublishDeadLetter, "a b", "a", "b:maxlen", 1),
        (Some(u64::MAX), Some(u64::MAX), RejectPublish, "a b", "a b", "", 0),
    ] {
        let settings =
            QueueSettings { length_max, length_bytes_max: bytes_max, overflow, ..dead_lettering() };
        let mut stage = Stage::new(settings);
        let results: Vec<_> = bodies.split(' ').map(|body| stage.publish(body)).collect();
        let row = format!("{length_max:?} {bytes_max:?} {overflow:?} {bodies}");
        assert_eq!(results.iter().filter(|result| result.is_err()).count(), refused, "{row}");
        assert_eq!(stage.buried(), buried, "{row}");
        stage.consume(1, 0, UNLIMITED);
        assert_eq!(stage.bodies(), kept, "{row}");
    }
}

#[test]
fn a_full_queue_hands_over_to_who_waits() {
    for overflow in [Overflow::DropHead, Overflow::RejectPublish, Overflow::RejectPublishDeadLetter] {
        let settings = QueueSettings { length_max: Some(0), overflow, ..dead_lettering() };
        let mut stage = Stage::with_reader(settings, UNLIMITED);
        assert_eq!(stage.publish("a"), Ok(Published::Delivered));
        assert_eq!((stage.bodies(), stage.buried()), ("a".to_owned(), String::new()));
    }
}

#[test]
fn a_death_is_written_into_the_history() {
    let key = Name::from("failed");
    let target = DeadLetter { exchange: Name::from("dlx"), routing_key: Some(key.clone()) };
    for (routing_key, expected) in [(None, "q"), (Some(key), "failed")] {
        let dead_letter = Some(DeadLetter { routing_key, ..target.clone() });
        let mut stage = Stage::with_reader(QueueSettings { dead_letter, ..QueueSettings::default() }, 1);
        let address = Arc::new(Address::new(b"x", b"y"));
        let before = Deaths::default().and(&Name::from("other"), DeathReason::Expired, &address, Time(7));
        stage.publish_with("a", &head(), Some(&Arc::new(before))).unwrap();
        stage.settle(1, Outcome::Reject);
        let dead = stage.effects.dead.pop().unwrap();
        assert_eq!(
            (dead.exchange.to_string(), dead.routing_key.to_string()),
            ("dlx".into(), expected.into())
        );
        let deaths: Vec<_> = dead
            .deaths
            .iter()
            .map(|death| (death.queue.to_string(), death.reason, death.count, death.time))
            .collect();
        assert_eq!(
            deaths,
            [
                ("q".to_owned(), DeathReason::Rejected, 1, stage.now),
                ("other".to_owned(), DeathReason::Expired, 1, Time(7)),
            ]
        );
        assert_eq!(dead.deaths.first().unwrap().address.subject, Name::from("y"));
    }
}

#[test]
fn without_a_dead_letter_exchange_what_dies_is_gone() {
    let mut stage = Stage::with_reader(QueueSettings::default(), 1);
    stage.publish("a").unwrap();
    assert!(stage.settle(1, Outcome::Reject));
    assert_eq!(stage.buried(), "");
    assert_eq!(stage.gauge.bytes(), 0);
}

#[test]
fn a_queue_is_idle_without_consumers_and_declarations() {
    let mut stage = Stage::new(QueueSettings { expires: Some(SECOND), ..QueueSettings::default() });
    let deadline = stage.now.after(SECOND);
    assert_eq!(stage.queue.new_wake_up(), Some(deadline));
    assert!(!stage.queue.is_idle_too_long(stage.now));
    assert!(stage.queue.is_idle_too_long(deadline));
    stage.now = deadline;
    stage.queue.touch(stage.now);
    assert!(!stage.queue.is_idle_too_long(stage.now));
    stage.consume(1, 0, 1);
    stage.pass(2 * SECOND);
    assert!(!stage.queue.is_idle_too_long(stage.now), "it is read");
    stage.queue.woken(stage.now);
    assert_eq!(stage.queue.new_wake_up(), None);
    stage.queue.remove_consumer(reader(1), stage.now);
    assert_eq!(stage.queue.new_wake_up(), Some(stage.now.after(SECOND)));
}

#[test]
fn an_exclusive_consumer_is_alone() {
    let mut queue = Stage::new(QueueSettings::default()).queue;
    let now = Time(0);
    assert_eq!(queue.admit_consumer(true), Ok(()));
    queue.add_consumer(reader(1), 0, true, now);
    assert_eq!(queue.admit_consumer(false), Err(ConsumeRefusal::Exclusive));
    assert_eq!(queue.admit_consumer(true), Err(ConsumeRefusal::Exclusive));
    queue.remove_consumer(reader(1), now);
    assert_eq!(queue.admit_consumer(false), Ok(()));
    queue.add_consumer(reader(2), 0, false, now);
    assert_eq!(queue.admit_consumer(true), Err(ConsumeRefusal::InUse));
    assert_eq!(queue.admit_consumer(false), Ok(()));
}

#[test]
fn a_queue_that_is_about_to_go_takes_no_consumer() {
    let mut queue = Stage::new(QueueSettings::default()).queue;
    queue.retire();
    assert_eq!(queue.admit_consumer(false), Err(ConsumeRefusal::Retired));
    assert_eq!(queue.admit_consumer(true), Err(ConsumeRefusal::Retired));
}

#[test]
fn an_auto_delete_queue_goes_with_its_last_consumer() {
    let mut stage = Stage::new(QueueSettings { is_auto_delete: true, ..QueueSettings::default() });
    assert!(!stage.queue.remove_consumer(reader(1), stage.now), "it never had one");
    stage.consume(1, 0, 1);
    stage.consume(2, 0, 1);
    assert!(!stage.queue.remove_consumer(reader(1), stage.now));
    assert!(!stage.queue.remove_consumer(reader(1), stage.now), "it is gone already");
    assert!(stage.queue.remove_consumer(reader(2), stage.now));
}

#[test]
fn ten_thousand_consumers_of_as_many_priorities_come_and_go() {
    let mut stage = Stage::new(QueueSettings::default());
    let priorities = 0..10_000;
    for slot in priorities.clone() {
        stage.consume(slot, slot as i32, 1);
    }
    for slot in priorities.clone().rev() {
        stage.publish("m").unwrap();
        assert_eq!(stage.given.pop().map(|given| given.reader), Some(slot));
    }
    assert_eq!(stage.publish("m"), Ok(Published::Waiting));
    for slot in priorities {
        stage.queue.remove_consumer(reader(slot), stage.now);
    }
    assert_eq!(stage.queue.consumers_len(), 0);
}

#[test]
fn a_purge_leaves_what_is_not_settled() {
    let mut stage = Stage::with_reader(dead_lettering(), 1);
    for body in ["a", "b", "c"] {
        stage.publish(body).unwrap();
    }
    assert_eq!(stage.queue.purge(), 2);
    assert_eq!((stage.queue.ready_len(), stage.queue.unsettled_len()), (0, 1));
    stage.settle(1, Outcome::Release { failed: false });
    assert_eq!(stage.queue.purge(), 1);
    assert_eq!(stage.buried(), "");
    assert_eq!(stage.gauge.bytes(), 0);
}

#[test]
fn an_unsettled_burst_does_not_keep_its_memory() {
    let mut stage = Stage::with_reader(QueueSettings::default(), UNLIMITED);
    for _ in 0..10_000 {
        stage.publish("m").unwrap();
    }
    assert!(stage.queue.unsettled.capacity() >= 10_000);
    for sequence in 1..=10_000 {
        stage.settle(sequence, Outcome::Accept);
    }
    let left = stage.queue.unsettled.capacity();
    assert!(left < 1000, "room for {left} deliveries is kept for none");
}

/// A hash table from which much was removed tells a smaller capacity than it has.
#[test]
fn room_is_charged_for_nobody_when_nothing_is_unsettled() {
    for count in 57..=112_u64 {
        let mut stage = Stage::with_reader(QueueSettings::default(), UNLIMITED);
        for newest in 1..=count * 2 {
            stage.publish("m").unwrap();
            if let Some(settled) = newest.checked_sub(count) {
                stage.settle(settled, Outcome::Accept);
            }
        }
        for sequence in 1..=count * 2 {
            stage.settle(sequence, Outcome::Accept);
        }
        assert_eq!(stage.gauge.bytes(), 0, "after {count} at a time");
    }
}

#[test]
fn a_long_queue_gives_its_memory_back() {
    let mut stage = Stage::new(QueueSettings::default());
    stage.settles = false;
    for _ in 0..1000 {
        stage.publish("m").unwrap();
    }
    stage.consume(1, 0, UNLIMITED);
    assert_eq!(stage.queue.ready_len(), 0);
    let left = stage.queue.ready.capacity();
    assert!(left <= 64, "room for {left} messages is kept for none");
}

#[test]
fn everything_is_charged_until_it_is_gone() {
    for settles in [true, false] {
        let mut stage = Stage::new(dead_lettering());
        stage.settles = settles;
        for _ in 0..300 {
            stage.publish("m").unwrap();
        }
        let message = stage.gauge.bytes() / 300 - Entry::CHARGE;
        assert_eq!(stage.gauge.bytes(), 300 * (message + Entry::CHARGE));
        stage.consume(1, 0, 200);
        let kept = if settles { 300 } else { 100 };
        let room = stage.queue.room_charged * ROOM_CHARGE;
        assert_eq!(room > 0, settles);
        assert_eq!(stage.gauge.bytes(), kept * (message + Entry::CHARGE) + room);
        let gauge = stage.gauge.clone();
        drop(stage);
        assert_eq!(gauge.bytes(), 0);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Publish { priority: u8, expiration_ms: Option<u32> },
    Grant(u32),
    Settle { index: usize, outcome: Outcome },
    Pass(u64),
    Purge,
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        Just(Outcome::Accept),
        Just(Outcome::Reject),
        any::<bool>().prop_map(|failed| Outcome::Release { failed }),
    ];
    prop_oneof![
        6 => (0..4_u8, proptest::option::of(0..50_u32))
            .prop_map(|(priority, expiration_ms)| Step::Publish { priority, expiration_ms }),
        3 => (1..4_u32).prop_map(Step::Grant),
        4 => (any::<prop::sample::Index>(), outcome)
            .prop_map(|(index, outcome)| Step::Settle { index: index.index(1 << 16), outcome }),
        2 => (0..30_u64).prop_map(Step::Pass),
        1 => Just(Step::Purge),
    ]
}

/// The same queue, written without a thought for cost.
#[derive(Default)]
struct Model {
    ready: Vec<Modelled>,
    unsettled: Vec<Modelled>,
    gone: Vec<String>,
    given: Vec<Given>,
    credit: u32,
    /// The reader was asked in vain and got no credit since.
    is_full: bool,
    next: u64,
}

#[derive(Debug, Clone)]
struct Modelled {
    sequence: u64,
    priority: u8,
    deadline: Option<Time>,
    failures: u32,
    is_redelivered: bool,
}

const MODEL_PRIORITY_MAX: u8 = 2;
const MODEL_LENGTH_MAX: usize = 8;
const MODEL_DELIVERY_LIMIT: u32 = 2;

impl Model {
    fn bury(&mut self, message: &Modelled, reason: DeathReason) {
        self.gone.push(format!("{}:{}", message.sequence, reason.as_str()));
    }

    fn sort(&mut self) {
        self.ready.sort_by_key(|message| (u8::MAX - message.priority, message.sequence));
    }

    /// Takes out the expired messages that stand first in their priority.
    fn expire(&mut self, now: Time) {
        for priority in (0..=MODEL_PRIORITY_MAX).rev() {
            while let Some(index) = self.ready.iter().position(|message| message.priority == priority)
                && self.ready[index].deadline.is_some_and(|deadline| deadline <= now)
            {
                let message = self.ready.remove(index);
                self.bury(&message, DeathReason::Expired);
            }
        }
    }

    fn deliver(&mut self, now: Time) {
        self.expire(now);
        while !self.is_full && !self.ready.is_empty() {
            let message = self.ready.remove(0);
            if message.deadline.is_some_and(|deadline| deadline <= now) {
                self.bury(&message, DeathReason::Expired);
            } else if let Some(message) = self.offer(message) {
                self.ready.insert(0, message);
            }
        }
    }

    /// Gives a message out, or back where there is no credit.
    fn offer(&mut self, message: Modelled) -> Option<Modelled> {
        if self.credit == 0 {
            self.is_full = true;
            return Some(message);
        }
        self.credit -= 1;
        self.given.push(Given {
            reader: 1,
            sequence: message.sequence,
            body: message.sequence.to_string(),
            failures: message.failures,
            is_redelivered: message.is_redelivered,
        });
        self.unsettled.push(message);
        None
    }

    fn publish(&mut self, priority: u8, expiration_ms: Option<u32>, now: Time) {
        self.next += 1;
        let deadline = expiration_ms.map(|ms| now.after(Duration::from_millis(u64::from(ms))));
        let message = Modelled {
            sequence: self.next,
            priority: priority.min(MODEL_PRIORITY_MAX),
            deadline,
            failures: 0,
            is_redelivered: false,
        };
        // Whoever waits gets it, however short it lives.
        let hands_over = self.ready.is_empty() && !self.is_full;
        let Some(message) = (if hands_over { self.offer(message) } else { Some(message) }) else {
            return;
        };
        self.ready.push(message);
        self.sort();
        // What was released can be beyond the limit too.
        while self.ready.len() > MODEL_LENGTH_MAX {
            let least = self.ready.iter().map(|message| message.priority).min().unwrap();
            let index = self.ready.iter().position(|message| message.priority == least).unwrap();
            let message = self.ready.remove(index);
            self.bury(&message, DeathReason::Overflow);
        }
    }

    fn settle(&mut self, sequence: u64, outcome: Outcome) {
        let Some(index) = self.unsettled.iter().position(|message| message.sequence == sequence) else {
            return;
        };
        let mut message = self.unsettled.remove(index);
        match outcome {
            Outcome::Accept => {}
            Outcome::Reject => self.bury(&message, DeathReason::Rejected),
            Outcome::Release { failed } => {
                message.failures += u32::from(failed);
                message.is_redelivered = true;
                if message.failures > MODEL_DELIVERY_LIMIT {
                    self.bury(&message, DeathReason::DeliveryLimit);
                } else {
                    self.ready.push(message);
                    self.sort();
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn a_queue_does_what_its_model_does(steps in prop::collection::vec(step(), 1..80)) {
        let mut stage = Stage::with_reader(
            QueueSettings {
                priority_max: Some(MODEL_PRIORITY_MAX),
                length_max: Some(MODEL_LENGTH_MAX as u64),
                delivery_limit: Some(MODEL_DELIVERY_LIMIT),
                ..dead_lettering()
            },
            0,
        );
        let mut model = Model::default();
        for step in steps {
            match step.clone() {
                Step::Publish { priority, expiration_ms } => {
                    model.publish(priority, expiration_ms, stage.now);
                    let head = head_with(Some(priority), expiration_ms);
                    stage.publish_with(&model.next.to_string(), &head, None).unwrap();
                }
                Step::Grant(credit) => {
                    model.credit += credit;
                    model.is_full = false;
                    model.deliver(stage.now);
                    stage.grant(1, credit);
                }
                Step::Settle { index, outcome } => {
                    let sequence = index as u64 % (model.next + 2);
                    model.settle(sequence, outcome);
                    model.deliver(stage.now);
                    stage.settle(sequence, outcome);
                }
                Step::Pass(ms) => {
                    stage.pass(Duration::from_millis(ms));
                    model.expire(stage.now);
                }
                Step::Purge => {
                    prop_assert_eq!(stage.queue.purge(), model.ready.len());
                    model.ready.clear();
                }
            }
            prop_assert_eq!(&stage.given, &model.given, "{:?}", step);
            let buried: Vec<String> = stage.effects.dead.iter().map(shown).collect();
            prop_assert_eq!(&buried, &model.gone, "{:?}", step);
            prop_assert_eq!(stage.queue.ready_len(), model.ready.len());
            prop_assert_eq!(stage.queue.unsettled_len(), model.unsettled.len());
            prop_assert_eq!(stage.credit[&1], model.credit);
            let bytes: usize = model.ready.iter().map(|message| message.sequence.to_string().len()).sum();
            prop_assert_eq!(stage.queue.ready.body_bytes(), bytes as u64);
        }
        let gauge = stage.gauge.clone();
        drop(stage);
        prop_assert_eq!(gauge.bytes(), 0);
    }
}

/// The room for unsettled deliveries grows in powers of two; of a burst only as much is kept as what is left needs.
#[test]
fn the_room_of_a_burst_is_given_back_and_that_of_a_few_is_kept() {
    for (burst, left, is_kept) in [(40, 1, true), (1_000, 300, true), (1_000, 20, false), (5_000, 1, false)] {
        let mut stage = Stage::with_reader(QueueSettings::default(), UNLIMITED);
        for _ in 0..burst {
            stage.publish("m").expect("there is room");
        }
        assert_eq!(stage.queue.unsettled_len(), burst);
        let (room, charged) = (stage.queue.unsettled.capacity(), stage.gauge.bytes());
        let sequences: Vec<u64> = stage.given.iter().map(|given| given.sequence).collect();
        for sequence in &sequences[left..] {
            assert!(stage.settle(*sequence, Outcome::Accept));
        }
        let kept = stage.queue.unsettled.capacity();
        assert_eq!(kept >= room / 2, is_kept, "{kept} of {room}");
        assert!(kept >= left && (is_kept || kept < 16 * left.max(8)), "{kept} for {left}");
        assert!(is_kept || stage.gauge.bytes() < charged / 8, "{} of {charged}", stage.gauge.bytes());
    }
}
