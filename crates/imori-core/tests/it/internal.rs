#![expect(clippy::disallowed_types, reason = "a pipe is shared, and a test has no runtime")]

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use imori_core::authorize::{Identity, Renewal};
use imori_core::broker::DeleteOptions;
use imori_core::confirm::Level;
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::id::ConnectionId;
use imori_core::inbound::{self, Accept, Inbound};
use imori_core::internal::{
    Bind, BindTarget, BrokerHeaders, Check, Command, CommandError, Connection, Consume, DeclareQueue, Done,
    Incoming, IncomingMessage, MoveTarget, OutgoingMessage, Pipe, Receiver, Settings, Subscribe,
    SubscriptionEnd, TICKET_BYTES, Verb, tickets,
};
use imori_core::message::{Address, BODY_SHARED_MIN, DEFAULT_EXCHANGE, Property, TOPIC_EXCHANGE, Value};
use imori_core::name::Name;
use imori_core::outbound::{CutReason, Outbound};
use imori_core::queue::QueueSettings;
use imori_core::route::{Arguments, BindingKey, ExchangeKind, Settings as ExchangeSettings, Syntax};
use imori_core::selector::Selector;
use imori_core::time::Time;
use imori_core::turn::{Budget, Next, Peer};
use imori_core::world::{Counter, World};
use imori_testkit::{ROOMY_LIMITS, TestWorld, VHOST};

/// The most bytes of parked messages.
const PARKED_BYTES_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct TestPipe(Mutex<Contents>);

#[derive(Debug, Default)]
struct Contents {
    commands: VecDeque<Command>,
    kept: BTreeMap<u64, Incoming>,
    number: u64,
}

impl TestPipe {
    fn with<R>(&self, f: impl FnOnce(&mut Contents) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Pipe for TestPipe {
    fn take_command(&self) -> Option<Command> {
        self.with(|contents| contents.commands.pop_front())
    }

    fn keep(&self, incoming: Incoming) -> u64 {
        self.with(|contents| {
            contents.number += 1;
            contents.kept.insert(contents.number, incoming);
            contents.number
        })
    }
}

/// An internal client with its connection.
pub(crate) struct Inside<'w> {
    world: &'w TestWorld,
    pipe: Arc<TestPipe>,
    pub(crate) id: ConnectionId,
    connection: RefCell<Connection<TestPipe>>,
    number: RefCell<u64>,
}

impl<'w> Inside<'w> {
    fn of(world: &'w TestWorld, identity: Identity) -> Inside<'w> {
        let pipe = Arc::new(TestPipe::default());
        let settings = Arc::new(Settings {
            pipe: Arc::clone(&pipe),
            identity,
            vhost: VHOST,
            name: String::from("test"),
            header_readers: world.header_readers(),
            parked_bytes_max: PARKED_BYTES_MAX,
        });
        let id = world.open(Connection::encoder(&settings));
        let peer = Peer::plain(0, true, String::new());
        let connection = RefCell::new(Connection::new(settings, id, peer, Time(0)));
        Inside { world, pipe, id, connection, number: RefCell::new(0) }
    }

    pub(crate) fn new(world: &'w TestWorld) -> Inside<'w> {
        Inside::of(world, Identity::broker())
    }

    /// Runs a command; returns its number and what follows.
    pub(crate) fn run(&self, verb: Verb) -> (u64, Next) {
        let number = *self.number.borrow() + 1;
        *self.number.borrow_mut() = number;
        self.pipe.with(|contents| contents.commands.push_back(Command { number, verb }));
        let mut connection = self.connection.borrow_mut();
        let received = connection.receive(self.world, &mut (), b"\0", None, &mut Budget::default());
        (number, received.next)
    }

    /// Everything that has arrived.
    fn read(&self) -> Vec<Incoming> {
        let taken = self.world.with_outbound(self.id, |outbound| {
            let mut taken = Vec::new();
            while let Some((bytes, written)) = outbound.take_unsent() {
                taken.extend_from_slice(&bytes[written..]);
                let len = bytes.len();
                outbound.put_back(bytes, len);
            }
            taken
        });
        let taken = taken.expect("its outbound half is there");
        assert_eq!(taken.len() % TICKET_BYTES, 0, "tickets are whole");
        let kept = |number| self.pipe.with(|contents| contents.kept.remove(&number)).expect("it is kept");
        tickets(&taken).map(kept).collect()
    }

    /// The answer to the last command, which is all that has arrived.
    fn answer(&self) -> Result<Done, CommandError> {
        let mut heard = self.read();
        assert_eq!(heard.len(), 1, "{heard:?}");
        match heard.remove(0) {
            Incoming::Answer { command, outcome } if command == *self.number.borrow() => outcome,
            other => unreachable!("{other:?}"),
        }
    }

    fn ask(&self, verb: Verb) -> Result<Done, CommandError> {
        self.run(verb);
        self.answer()
    }

    pub(crate) fn publish(&self, to: &Address, message: OutgoingMessage) -> Next {
        self.run(Verb::Publish { to: to.clone(), message }).1
    }

    /// The numbers of receivers of the publishes that were answered.
    pub(crate) fn published(&self) -> Vec<usize> {
        let count = |incoming: Incoming| match incoming {
            Incoming::Answer { outcome: Ok(Done::Published { receivers, .. }), .. } => receivers,
            other => unreachable!("{other:?}"),
        };
        self.read().into_iter().map(count).collect()
    }

    pub(crate) fn alarm_ended(&self) {
        let _ = self.connection.borrow_mut().intake_mut().alarm_ended();
        self.replay();
    }

    pub(crate) fn unthrottled(&self) {
        let _ = self.connection.borrow_mut().intake_mut().unthrottled();
        self.replay();
    }

    /// Runs the parked commands that need not wait any longer.
    fn replay(&self) {
        let _ = self.connection.borrow_mut().receive(self.world, &mut (), b"", None, &mut Budget::default());
    }

    fn messages(&self) -> Vec<IncomingMessage> {
        let message = |incoming: Incoming| match incoming {
            Incoming::Message(message) => Some(*message),
            Incoming::Answer { outcome: Ok(_), .. } => None,
            other => unreachable!("{other:?}"),
        };
        self.read().into_iter().filter_map(message).collect()
    }

    fn bodies(&self) -> Vec<String> {
        let text = |message: IncomingMessage| String::from_utf8_lossy(&message.body).into_owned();
        self.messages().into_iter().map(text).collect()
    }

    fn declare(&self, queue: &str) {
        let declared = self.ask(declare(queue, QueueSettings::default()));
        assert!(matches!(declared, Ok(Done::Declared { is_new: true, .. })), "{declared:?}");
    }

    fn disconnect(&self) {
        while !inbound::disconnect(&mut *self.connection.borrow_mut(), self.world) {}
    }
}

fn declare(queue: &str, settings: QueueSettings) -> Verb {
    Verb::DeclareQueue(Box::new(DeclareQueue { name: Name::from(queue), settings, is_exclusive: false }))
}

fn consume(queue: &str, credit: u32) -> Consume {
    Consume {
        queue: Name::from(queue),
        credit,
        settles: true,
        priority: 0,
        is_exclusive: false,
        selector: None,
        is_browser: false,
    }
}

fn subscribe(pattern: &str) -> Verb {
    let (exchange, key) = (Name::new(TOPIC_EXCHANGE), BindingKey::new(Syntax::Nats, pattern.as_bytes()));
    Verb::Subscribe(Box::new(Subscribe { exchange, key, group: None, selector: None }))
}

fn world() -> TestWorld {
    TestWorld::reading(|_| &BrokerHeaders)
}

pub(crate) fn to_queue(queue: &str) -> Address {
    Address::new(DEFAULT_EXCHANGE, queue.as_bytes())
}

fn to_topic(subject: &str) -> Address {
    Address::new(TOPIC_EXCHANGE, subject.as_bytes())
}

fn call(subject: &str, message: OutgoingMessage) -> Verb {
    Verb::Call { to: to_topic(subject), message }
}

#[test]
fn an_internal_client_publishes_consumes_with_credit_and_settles() {
    let world = world();
    let (publisher, consumer) = (Inside::new(&world), Inside::new(&world));
    publisher.declare("work");
    for body in ["1", "2", "3", "4"] {
        publisher.publish(&to_queue("work"), OutgoingMessage::new(body));
    }
    assert_eq!(publisher.published(), [1, 1, 1, 1]);
    let (subscription, _) = consumer.run(Verb::Consume(Box::new(consume("work", 2))));
    let heard = consumer.read();
    let [
        Incoming::Answer { command, outcome: Ok(Done::Done) },
        Incoming::Message(first),
        Incoming::Message(second),
    ] = heard.as_slice()
    else {
        panic!("the answer comes first, and two messages are its credit: {heard:?}")
    };
    assert_eq!((*command, first.receiver), (subscription, Receiver::Subscription(subscription)));
    assert!(first.settles && !first.is_redelivered);
    assert_eq!((&*first.body, &*second.body), (&b"1"[..], &b"2"[..]));
    assert_eq!(first.address, to_queue("work"));
    let numbers = vec![first.number, second.number];
    consumer.run(Verb::Settle { numbers: numbers.clone(), outcome: Outcome::Accept });
    assert_eq!(consumer.bodies(), ["3", "4"]);
    let again = consumer.ask(Verb::Settle { numbers: numbers.clone(), outcome: Outcome::Accept });
    assert_eq!(again.unwrap_err(), BrokerError::NoDelivery(numbers[0]).into());
    // Its unsettled messages go back to the queue when it ends.
    consumer.disconnect();
    assert_eq!(world.depth("work"), Some((2, 0)));
}

#[test]
fn everything_that_a_message_has_arrives() {
    let world = world();
    let (publisher, reader) = (Inside::new(&world), Inside::new(&world));
    reader.run(subscribe("all.>"));
    let mut message = OutgoingMessage::new("body")
        .persistent(true)
        .typed_header(b"number", Value::Int(-7))
        .header(b"text", b"t");
    let texts = [
        Property::ContentType,
        Property::ContentEncoding,
        Property::CorrelationId,
        Property::ReplyTo,
        Property::MessageId,
        Property::Type,
        Property::AppId,
        Property::GroupId,
    ];
    for property in texts {
        message = message.with(property, format!("{property:?}").as_bytes());
    }
    message = message.with(Property::UserId, b"imori");
    message.properties.priority = Some(4);
    message.properties.expiration_ms = Some(60_000);
    message.properties.timestamp = Some(1_700_000_000);
    publisher.publish(&to_topic("all.here"), message);
    let messages = reader.messages();
    let [message] = messages.as_slice() else { panic!("{messages:?}") };
    for property in texts {
        assert_eq!(message.property(property), Some(format!("{property:?}").as_bytes()));
    }
    assert_eq!(message.property(Property::UserId), Some(&b"imori"[..]));
    let properties = &message.properties;
    assert_eq!((properties.priority, properties.expiration_ms), (Some(4), Some(60_000)));
    assert_eq!((properties.is_persistent, message.timestamp_ms()), (true, Some(1_700_000_000_000)));
    assert_eq!(message.header(b"number"), Some(Value::Int(-7)));
    assert_eq!(message.headers().len(), 2);
    assert_eq!(message.reply_to(), Some(to_queue("ReplyTo")));
    assert_eq!(
        (&message.address, message.failures, &*message.body),
        (&to_topic("all.here"), 0, &b"body"[..])
    );
    assert!(message.deaths.is_none() && !message.settles);
}

#[test]
fn a_dead_letter_comes_with_its_deaths_and_failures() {
    let world = world();
    let client = Inside::new(&world);
    client.declare("dead");
    let settings = QueueSettings {
        dead_letter: Some(imori_core::queue::DeadLetterTarget {
            exchange: Name::from(""),
            routing_key: Some(Name::from("dead")),
        }),
        ..QueueSettings::default()
    };
    client.ask(declare("work", settings)).unwrap();
    client.publish(&to_queue("work"), OutgoingMessage::new("m"));
    client.read();
    client.run(Verb::Get { queue: Name::from("work"), settles: true });
    let [message] = client.messages().try_into().unwrap();
    assert!(matches!(message.receiver, Receiver::Get { left: 0, .. }));
    client
        .ask(Verb::Settle { numbers: vec![message.number], outcome: Outcome::Release { failed: true } })
        .unwrap();
    client.run(Verb::Get { queue: Name::from("work"), settles: true });
    let [message] = client.messages().try_into().unwrap();
    assert_eq!((message.failures, message.is_redelivered), (1, true));
    client.ask(Verb::Settle { numbers: vec![message.number], outcome: Outcome::Reject }).unwrap();
    client.run(Verb::Get { queue: Name::from("dead"), settles: false });
    let [message] = client.messages().try_into().unwrap();
    let deaths = message.deaths.expect("it died");
    assert_eq!(deaths.iter().map(|death| death.queue.to_string()).collect::<Vec<_>>(), ["work"]);
    assert!(matches!(client.ask(Verb::Get { queue: Name::from("dead"), settles: true }), Ok(Done::Empty)));
}

#[test]
fn a_body_that_is_shared_is_not_copied() {
    let world = world();
    let (publisher, reader) = (Inside::new(&world), Inside::new(&world));
    publisher.declare("q");
    reader.run(subscribe("t"));
    reader.read();
    for len in [1, BODY_SHARED_MIN] {
        let body = Bytes::from(vec![7; len]);
        publisher.publish(&to_topic("t"), OutgoingMessage::new(body.clone()));
        let [live] = reader.messages().try_into().unwrap();
        assert_eq!(live.body.as_ptr(), body.as_ptr(), "{len} bytes to a subscription");
        publisher.publish(&to_queue("q"), OutgoingMessage::new(body.clone()));
        reader.run(Verb::Get { queue: Name::from("q"), settles: false });
        let [stored] = reader.messages().try_into().unwrap();
        assert_eq!(stored.body, body);
        // A short body is copied once, into the memory of the message that waits.
        assert_eq!(stored.body.as_ptr() == body.as_ptr(), len >= BODY_SHARED_MIN, "{len} bytes from a queue");
    }
}

#[test]
fn what_waits_for_it_counts_as_many_bytes_as_the_messages_have() {
    let world = world();
    let (publisher, reader) = (Inside::new(&world), Inside::new(&world));
    reader.run(subscribe("t"));
    reader.read();
    let long = Bytes::from(vec![7; 100_000]);
    for sent in 1..=5 {
        publisher.publish(&to_topic("t"), OutgoingMessage::new(long.clone()));
        let unsent = world.with_outbound(reader.id, |outbound| outbound.unsent()).unwrap();
        assert!((sent * 100_000..sent * 101_000).contains(&unsent), "{unsent} after {sent}");
    }
    assert!(world.gauge().bytes() > 400_000);
    assert_eq!(reader.messages().len(), 5);
    let left = world.with_outbound(reader.id, |outbound| {
        let _ = outbound.written();
        outbound.unsent()
    });
    assert_eq!(left, Some(0));
    // It is cut as any other reader that is too slow.
    let too_slow = CutReason::TooSlow { unsent_max: ROOMY_LIMITS.unsent_bytes_max };
    for _ in 0..ROOMY_LIMITS.unsent_bytes_max / 100_000 + 2 {
        publisher.publish(&to_topic("t"), OutgoingMessage::new(long.clone()));
    }
    assert_eq!(
        world.with_outbound(reader.id, |outbound| outbound.ended().cloned()),
        Some(Some(too_slow.clone()))
    );
    assert!(matches!(reader.read().pop(), Some(Incoming::Cut(reason)) if reason == too_slow));
}

#[test]
fn it_calls_and_replies_through_inboxes() {
    let world = world();
    let (requester, responder) = (Inside::new(&world), Inside::new(&world));
    responder.run(subscribe("service.*"));
    responder.read();
    let question = OutgoingMessage::new("?").with(Property::CorrelationId, b"mine");
    let (number, _) = requester.run(call("service.a", question));
    let [request] = responder.messages().try_into().unwrap();
    assert_eq!(request.property(Property::CorrelationId), Some(&b"mine"[..]));
    let to = request.reply_to().expect("a call wants a reply");
    responder.publish(&to, OutgoingMessage::new("!"));
    assert_eq!(responder.published(), [1]);
    let [reply] = requester.messages().try_into().unwrap();
    assert_eq!((reply.receiver, &*reply.body), (Receiver::Call(number), &b"!"[..]));
    // A late reply finds no requester, even if it calls again meanwhile.
    requester.run(Verb::Forget { call: number });
    requester.run(call("service.a", OutgoingMessage::new("?")));
    responder.read();
    responder.publish(&to, OutgoingMessage::new("!"));
    assert_eq!(responder.published(), [0]);
    assert_eq!((requester.read().len(), world.counted(Counter::ReplyDropped)), (0, 1));
    assert_eq!(
        requester.ask(call("nobody", OutgoingMessage::new("?"))).unwrap_err(),
        CommandError::NoResponder
    );
}

#[test]
fn calls_that_wait_have_a_limit() {
    let world = world();
    let (requester, responder) = (Inside::new(&world), Inside::new(&world));
    responder.run(subscribe("slow"));
    let question = || call("slow", OutgoingMessage::new("?"));
    let (first, _) = requester.run(question());
    for _ in 1..ROOMY_LIMITS.inboxes_max {
        requester.run(question());
    }
    assert_eq!(requester.ask(question()).unwrap_err(), CommandError::TooManyCalls);
    requester.run(Verb::Forget { call: first });
    requester.run(question());
    assert!(requester.read().is_empty(), "there is a place again");
}

#[test]
fn rights_are_those_of_its_identity() {
    let world = world();
    let inside = Inside::of(&world, Identity::nobody());
    let message = || OutgoingMessage::new("m");
    for verb in [
        Verb::Publish { to: to_topic("a"), message: message() },
        Verb::Call { to: to_topic("a"), message: message() },
        subscribe("a"),
        Verb::Settle { numbers: vec![1], outcome: Outcome::Accept },
        declare("q", QueueSettings::default()),
        Verb::LookUpQueue { queue: Name::from("q") },
        Verb::Check(Check::Consume(Name::from("q"))),
    ] {
        let refused = inside.ask(verb);
        assert!(matches!(refused, Err(CommandError::Broker(BrokerError::Refused(_)))), "{refused:?}");
    }
    let check = Verb::Check(Check::Publish(to_topic("a")));
    assert!(matches!(inside.ask(check), Ok(Done::Allowed(false))));
    let named = message().with(Property::UserId, b"root");
    let client = Inside::new(&world);
    let refused = client.ask(Verb::Publish { to: to_topic("a"), message: named });
    assert_eq!(refused.unwrap_err(), CommandError::OtherUser);
}

#[test]
fn its_publishes_wait_for_memory_and_other_commands_pass_them() {
    let world = world();
    let client = Inside::new(&world);
    client.declare("q");
    world.set_alarmed(true);
    client.publish(&to_queue("q"), OutgoingMessage::new("1"));
    let (given_up, _) = client.run(call("q", OutgoingMessage::new("call")));
    client.publish(&to_queue("q"), OutgoingMessage::new("2"));
    assert!(client.read().is_empty(), "they wait");
    let looked = client.ask(Verb::LookUpQueue { queue: Name::from("q") });
    assert!(matches!(looked, Ok(Done::Queue(found)) if found.ready == 0), "{looked:?}");
    client.run(Verb::Forget { call: given_up });
    // With too much of it parked, no further command is read.
    let next = client.publish(&to_queue("q"), OutgoingMessage::new(vec![7; PARKED_BYTES_MAX]));
    assert_eq!(next, Next::Parked);
    world.set_alarmed(false);
    client.alarm_ended();
    assert_eq!(client.published(), [1, 1, 1], "the call was given up");
}

#[test]
fn a_parked_call_that_is_given_up_holds_no_memory() {
    let world = world();
    let client = Inside::new(&world);
    client.declare("q");
    world.set_alarmed(true);
    let before = world.charged();
    let (given_up, _) = client.run(call("q", OutgoingMessage::new(vec![7; 2_000])));
    assert!(world.charged() > before + 2_000);
    client.run(Verb::Forget { call: given_up });
    assert!(world.charged() < before + 100, "{}", world.charged() - before);
}

#[test]
fn a_settle_of_a_delivery_that_is_none_settles_the_others_durably() {
    let world = world();
    world.hold_disk();
    let client = Inside::new(&world);
    let settings = QueueSettings { is_durable: true, ..QueueSettings::default() };
    client.run(declare("safe", settings));
    client.publish(&to_queue("safe"), OutgoingMessage::new("m").persistent(true));
    client.run(Verb::Get { queue: Name::from("safe"), settles: true });
    world.sync_disk();
    let number = client.messages().remove(0).number;
    client.run(Verb::Settle { numbers: vec![number, 99], outcome: Outcome::Accept });
    assert!(client.read().is_empty(), "the refusal waits for what was settled");
    world.sync_disk();
    let refused = client.read().remove(0);
    let no_delivery = CommandError::Broker(BrokerError::NoDelivery(99));
    assert!(
        matches!(&refused, Incoming::Answer { outcome: Err(error), .. } if *error == no_delivery),
        "{refused:?}"
    );
}

#[test]
fn an_answer_tells_its_command_and_level() {
    let world = world();
    let inside = Inside::new(&world);
    let (first, _) = inside.run(Verb::Publish { to: to_topic("a"), message: OutgoingMessage::new("m") });
    let heard = inside.read();
    assert!(
        matches!(heard.as_slice(), [Incoming::Answer {
            command,
            outcome: Ok(Done::Published { receivers: 0, level: Level::Memory })
        }] if *command == first),
        "{heard:?}"
    );
}

#[test]
fn a_durable_publish_is_answered_when_its_record_is_durable() {
    let world = world();
    world.hold_disk();
    let client = Inside::new(&world);
    let settings = QueueSettings { is_durable: true, ..QueueSettings::default() };
    client.run(declare("safe", settings));
    assert!(client.read().is_empty(), "the declaration waits for the journal");
    client.publish(&to_queue("safe"), OutgoingMessage::new("m").persistent(true));
    assert!(client.read().is_empty(), "and so does the publish");
    world.sync_disk();
    let heard = client.read();
    let [
        Incoming::Answer { outcome: Ok(Done::Declared { .. }), .. },
        Incoming::Answer { outcome: Ok(Done::Published { receivers: 1, level: Level::Disk }), .. },
    ] = heard.as_slice()
    else {
        panic!("{heard:?}")
    };
}

#[test]
fn a_queue_that_is_deleted_ends_its_subscription_alone() {
    let world = world();
    let inside = Inside::new(&world);
    inside.declare("gone");
    let (number, _) = inside.run(Verb::Consume(Box::new(consume("gone", 1))));
    inside.read();
    world.delete_queue("gone");
    let heard = inside.read();
    let [Incoming::Ended { subscription, reason: SubscriptionEnd::QueueDeleted(queue) }] = heard.as_slice()
    else {
        panic!("{heard:?}")
    };
    assert_eq!((*subscription, queue), (number, &Name::from("gone")));
    inside.publish(&to_topic("a"), OutgoingMessage::new("m"));
    assert_eq!(inside.published(), [0]);
}

#[test]
fn a_subscription_ends_with_the_right_to_it() {
    let world = world();
    let inside = Inside::new(&world);
    let (number, _) = inside.run(subscribe("a"));
    inside.read();
    let identity = Identity { user: Name::from("imori"), rights: Identity::nobody().rights };
    let renewal = Renewal { user: Name::from("imori"), identity: Some(identity) };
    let has_ended = inbound::renew(&mut *inside.connection.borrow_mut(), &world, &renewal);
    let heard = inside.read();
    // Without the right to the vhost the client ends too.
    assert!(has_ended, "{heard:?}");
    assert!(matches!(heard.as_slice(), [.., Incoming::Cut(CutReason::Revoked { .. })]), "{heard:?} {number}");
}

#[test]
fn a_cancelled_subscription_gets_nothing() {
    let world = world();
    let inside = Inside::new(&world);
    let (number, _) = inside.run(subscribe("a"));
    inside.read();
    inside.run(Verb::Cancel { subscription: number });
    inside.read();
    inside.publish(&to_topic("a"), OutgoingMessage::new("m"));
    assert_eq!(inside.published(), [0]);
}

#[test]
fn a_consumer_that_does_not_settle_has_the_credit_that_its_receiver_grants() {
    let world = world();
    let inside = Inside::new(&world);
    inside.declare("q");
    for body in ["1", "2", "3"] {
        inside.publish(&to_queue("q"), OutgoingMessage::new(body));
    }
    inside.read();
    let (number, _) = inside.run(Verb::Consume(Box::new(Consume { settles: false, ..consume("q", 2) })));
    assert_eq!(inside.bodies(), ["1", "2"]);
    inside.run(Verb::Grant { subscription: number, taken: 1, credit: 2 });
    assert_eq!(inside.bodies(), ["3"]);
    assert_eq!(world.depth("q"), Some((0, 0)));
}

#[test]
fn readers_have_selectors_priorities_exclusiveness_and_may_browse() {
    let world = world();
    let (one, two) = (Inside::new(&world), Inside::new(&world));
    one.declare("q");
    let red = || Some(Selector::parse("colour = 'red'").unwrap());
    for (body, colour) in [("1", "blue"), ("2", "red")] {
        one.publish(&to_queue("q"), OutgoingMessage::new(body).header(b"colour", colour.as_bytes()));
    }
    one.read();
    two.run(Verb::Consume(Box::new(Consume { is_browser: true, ..consume("q", 9) })));
    assert_eq!(two.bodies(), ["1", "2"]);
    assert_eq!(world.depth("q"), Some((2, 0)), "a browser takes nothing");
    one.run(Verb::Consume(Box::new(Consume { selector: red(), priority: 3, ..consume("q", 9) })));
    assert_eq!(one.bodies(), ["2"]);
    let refused = two.ask(Verb::Consume(Box::new(Consume { is_exclusive: true, ..consume("q", 9) })));
    assert_eq!(refused.unwrap_err(), BrokerError::ConsumedExclusively(Name::from("q")).into());
}

#[test]
fn queues_exchanges_and_bindings_are_declared_and_deleted() {
    let world = world();
    let client = Inside::new(&world);
    let name = |name: &str| Name::from(name);
    let made = client.ask(Verb::DeclareQueue(Box::new(DeclareQueue {
        name: name(""),
        settings: QueueSettings::default(),
        is_exclusive: true,
    })));
    let Ok(Done::Declared { name: own, is_new: true, .. }) = made else { panic!("{made:?}") };
    assert!(own.to_string().starts_with("amq.gen-"), "{own}");
    let other = Inside::new(&world);
    let locked = other.ask(Verb::LookUpQueue { queue: own.clone() });
    assert_eq!(locked.unwrap_err(), BrokerError::Locked(own.clone()).into());
    let exchange = Verb::DeclareExchange {
        exchange: name("x"),
        kind: ExchangeKind::Fanout,
        settings: ExchangeSettings::default(),
    };
    client.ask(exchange).unwrap();
    let found = client.ask(Verb::LookUpExchange { exchange: name("x") });
    assert!(matches!(found, Ok(Done::Exchange(ExchangeKind::Fanout, _))), "{found:?}");
    let bind = |target: BindTarget| {
        let (source, key) = (name("x"), BindingKey::new(Syntax::Amqp, b""));
        Box::new(Bind { source, key, arguments: Arguments::NONE, target })
    };
    client.ask(Verb::Bind(bind(BindTarget::Queue(own.clone())))).unwrap();
    client.publish(&Address::new(b"x", b""), OutgoingMessage::new("m"));
    assert_eq!(client.published(), [1]);
    let purged = client.ask(Verb::Purge { queue: own.clone() });
    assert!(matches!(purged, Ok(Done::Dropped(1))), "{purged:?}");
    let used = client.ask(Verb::DeleteExchange { exchange: name("x"), if_unused: true });
    assert_eq!(used.unwrap_err(), BrokerError::InUse(name("x")).into());
    client.ask(Verb::Unbind(bind(BindTarget::Queue(own.clone())))).unwrap();
    client.ask(Verb::DeleteExchange { exchange: name("x"), if_unused: true }).unwrap();
    let deleted = client.ask(Verb::DeleteQueue { queue: own.clone(), options: DeleteOptions::default() });
    assert!(matches!(deleted, Ok(Done::Dropped(0))), "{deleted:?}");
    assert_eq!(client.ask(Verb::Purge { queue: own.clone() }).unwrap_err(), BrokerError::NoQueue(own).into());
    // An exclusive queue goes with its client.
    client.run(Verb::DeclareQueue(Box::new(DeclareQueue {
        name: name("mine"),
        settings: QueueSettings::default(),
        is_exclusive: true,
    })));
    client.disconnect();
    assert_eq!(world.depth("mine"), None);
}

#[test]
fn an_operator_looks_at_takes_and_moves_messages() {
    let world = world();
    let client = Inside::new(&world);
    client.declare("from");
    client.declare("to");
    for body in ["1", "2", "3"] {
        client.publish(&to_queue("from"), OutgoingMessage::new(body));
    }
    client.read();
    let from = || Name::from("from");
    let peeked = client.ask(Verb::Peek { queue: from(), skip: 1, count: 9 });
    assert!(matches!(&peeked, Ok(Done::Peeked(_, found)) if found.parts.len() == 1), "{peeked:?}");
    let target = MoveTarget::Address { exchange: Name::from(""), routing_key: Some(Name::from("to")) };
    let moved = client.ask(Verb::Move { from: from(), target, skip: 0, count: 2 });
    assert!(matches!(&moved, Ok(Done::Moved(batch)) if batch.targets.len() == 2), "{moved:?}");
    assert_eq!((world.depth("from"), world.depth("to")), (Some((1, 0)), Some((2, 0))));
    let taken = client.ask(Verb::Take { queue: from(), count: 9, bytes_max: 99, outcome: Outcome::Accept });
    assert!(matches!(&taken, Ok(Done::Taken(report)) if report.messages.len() == 1), "{taken:?}");
    assert_eq!(world.depth("from"), Some((0, 0)));
}

#[test]
fn headers_beyond_64_kib_are_refused() {
    let world = world();
    let inside = Inside::new(&world);
    let message = OutgoingMessage::new("m").header(b"long", &[b'a'; 65_536]);
    let refused = inside.ask(Verb::Publish { to: to_topic("a"), message });
    assert_eq!(refused.unwrap_err(), BrokerError::HeadersTooLarge.into());
}

#[test]
fn what_the_pipe_keeps_is_all_taken() {
    let world = world();
    let client = Inside::new(&world);
    client.declare("q");
    client.publish(&to_queue("q"), OutgoingMessage::new("m"));
    client.read();
    assert!(client.pipe.with(|contents| contents.kept.is_empty()));
    world.with_outbound(client.id, Outbound::finish);
}
