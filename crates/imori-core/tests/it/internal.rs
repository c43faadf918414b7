use imori_core::authorize::Identity;
use imori_core::broker;
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::id::ConnectionId;
use imori_core::internal::{
    BrokerHeaders, Client, Frames, Incoming, IncomingMessage, OutgoingMessage, Published,
};
use imori_core::message::{Address, DEFAULT_EXCHANGE, Property, TOPIC_EXCHANGE};
use imori_core::queue::QueueSettings;
use imori_core::route::{BindingKey, Syntax};
use imori_core::world::{Counter, World};
use imori_testkit::{ROOMY_LIMITS, TestWorld, VHOST};

/// An internal client, and the frames that it has not read yet.
struct Inside<'w> {
    world: &'w TestWorld,
    client: Client,
    connection: ConnectionId,
    frames: Frames,
}

impl<'w> Inside<'w> {
    fn of(world: &'w TestWorld, identity: Identity) -> Inside<'w> {
        let connection = world.open(Client::encoder());
        let client = Client::new(identity, connection, VHOST);
        Inside { world, client, connection, frames: Frames::default() }
    }

    fn new(world: &'w TestWorld) -> Inside<'w> {
        Inside::of(world, Identity::broker())
    }

    /// Everything that has arrived.
    fn read(&mut self) -> Vec<Incoming> {
        let taken = self.world.with_outbound(self.connection, |outbound| {
            let mut taken = Vec::new();
            while let Some((bytes, written)) = outbound.take_unsent() {
                taken.extend_from_slice(&bytes[written..]);
                let len = bytes.len();
                outbound.put_back(bytes, len);
            }
            taken
        });
        // In pieces, as a reader with a small buffer takes them.
        taken.expect("its outbound half is there").chunks(7).for_each(|piece| self.frames.push(piece));
        let world = self.world;
        std::iter::from_fn(|| self.frames.next(world).expect("frames are whole")).collect()
    }

    fn message(&mut self) -> IncomingMessage {
        let mut heard = self.read();
        assert_eq!(heard.len(), 1, "{heard:?}");
        match heard.remove(0) {
            Incoming::Message(message) => message,
            other => unreachable!("{other:?}"),
        }
    }

    fn declare(&self, queue: &str) {
        let settings = QueueSettings::default();
        broker::declare_queue(self.world, &self.client.actor(), queue.as_bytes(), &settings, true)
            .expect("it may be declared");
    }
}

fn world() -> TestWorld {
    TestWorld::reading(|_| &BrokerHeaders)
}

fn to_queue(queue: &str) -> Address {
    Address::new(DEFAULT_EXCHANGE, queue.as_bytes())
}

fn to_topic(subject: &str) -> Address {
    Address::new(TOPIC_EXCHANGE, subject.as_bytes())
}

#[test]
fn an_internal_client_publishes_consumes_with_credit_and_settles() {
    let world = world();
    let (publisher, mut consumer) = (Inside::new(&world), Inside::new(&world));
    publisher.declare("work");
    for body in ["1", "2", "3"] {
        let message = OutgoingMessage::new(body).header(b"kind", b"test");
        let published = publisher.client.publish(&world, &to_queue("work"), &message, None);
        assert_eq!(published, Ok(Published::Taken { receivers: 1 }));
    }
    let (subscription, _) = consumer.client.consume(&world, b"work", 2).unwrap();
    let given = consumer.read();
    let bodies = |given: &[Incoming]| -> Vec<String> {
        let text = |incoming: &Incoming| match incoming {
            Incoming::Message(message) => String::from_utf8(message.body.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        };
        given.iter().map(text).collect()
    };
    assert_eq!(bodies(&given), ["1", "2"], "two is its credit");
    let Some(Incoming::Message(first)) = given.first() else { panic!("{given:?}") };
    assert_eq!((first.subscription, first.settles, first.is_redelivered), (subscription, true, false));
    assert_eq!(first.headers, [(b"kind".to_vec(), b"test".to_vec())]);
    assert_eq!(first.address, to_queue("work"));
    consumer.client.settle(&world, first.number, Outcome::Accept).unwrap();
    assert_eq!(bodies(&consumer.read()), ["3"]);
    assert_eq!(
        consumer.client.settle(&world, first.number, Outcome::Accept),
        Err(BrokerError::NoDelivery(first.number))
    );
    // Its unsettled messages go back to the queue when it ends.
    while !consumer.client.disconnect(&world) {}
    assert_eq!(world.depth("work"), Some((2, 0)));
}

#[test]
fn it_asks_and_answers_through_inboxes() {
    let world = world();
    let (mut requester, mut responder) = (Inside::new(&world), Inside::new(&world));
    let key = BindingKey::new(Syntax::Nats, b"service.*");
    responder.client.subscribe(&world, TOPIC_EXCHANGE, &key, None).unwrap();
    let question = OutgoingMessage::new("?").with(Property::CorrelationId, b"mine");
    let (published, number) = requester.client.ask(&world, &to_topic("service.a"), question).unwrap();
    assert_eq!(published, Published::Taken { receivers: 1 });
    let request = responder.message();
    assert_eq!((&*request.body, request.correlation_id.as_deref()), (&b"?"[..], Some(&b"mine"[..])));
    let answer = || OutgoingMessage::new("!");
    let answered = responder.client.answer(&world, &request, answer());
    assert_eq!(answered, Ok(Published::Taken { receivers: 1 }));
    let heard = requester.message();
    assert_eq!((heard.subscription, &*heard.body), (number, &b"!"[..]));
    assert_eq!(heard.correlation_id.as_deref(), Some(&b"mine"[..]));
    // The request was forgotten: a late answer finds no requester, even if another request was made since.
    requester.client.forget(&world, number);
    requester.client.ask(&world, &to_topic("service.a"), OutgoingMessage::new("?")).unwrap();
    let answered = responder.client.answer(&world, &request, answer());
    assert_eq!(answered, Ok(Published::Taken { receivers: 0 }));
    assert_eq!((requester.read(), world.counted(Counter::ReplyDropped)), (Vec::new(), 1));
}

#[test]
fn requests_that_wait_have_a_limit() {
    let world = world();
    let mut requester = Inside::new(&world);
    let mut ask = || requester.client.ask(&world, &to_topic("nobody"), OutgoingMessage::new("?"));
    for _ in 0..ROOMY_LIMITS.inboxes_max {
        assert!(matches!(ask(), Ok((Published::Taken { receivers: 0 }, _))));
    }
    assert_eq!(ask(), Err(BrokerError::NoInbox));
    requester.client.forget(&world, 1);
    let asked = requester.client.ask(&world, &to_topic("nobody"), OutgoingMessage::new("?"));
    assert!(matches!(asked, Ok((Published::Taken { receivers: 0 }, _))));
}

#[test]
fn rights_are_those_of_its_identity() {
    let world = world();
    let nobody = Identity::nobody();
    let mut inside = Inside::of(&world, nobody);
    let key = BindingKey::new(Syntax::Nats, b"a");
    let message = OutgoingMessage::new("m");
    let refused = |error: BrokerError| matches!(error, BrokerError::Refused(_));
    assert!(refused(inside.client.publish(&world, &to_topic("a"), &message, None).unwrap_err()));
    assert!(refused(inside.client.subscribe(&world, TOPIC_EXCHANGE, &key, None).unwrap_err()));
    assert!(refused(inside.client.ask(&world, &to_topic("a"), message).unwrap_err()));
    assert!(refused(inside.client.settle(&world, 1, Outcome::Accept).unwrap_err()));
}

#[test]
fn its_publishes_wait_for_memory_as_all_do() {
    let world = world();
    let inside = Inside::new(&world);
    let message = OutgoingMessage::new("m");
    world.set_alarmed(true);
    assert_eq!(inside.client.publish(&world, &to_topic("a"), &message, None), Ok(Published::WaitForAlarm));
    world.set_alarmed(false);
    let published = inside.client.publish(&world, &to_topic("a"), &message, Some(7));
    assert_eq!(published, Ok(Published::Taken { receivers: 0 }));
}

#[test]
fn a_confirm_tells_which_publish_it_is_of() {
    let world = world();
    let mut inside = Inside::new(&world);
    for number in [3, 9] {
        inside.client.publish(&world, &to_topic("a"), &OutgoingMessage::new("m"), Some(number)).unwrap();
    }
    assert_eq!(inside.read(), [Incoming::Confirmed(3), Incoming::Confirmed(9)]);
}

#[test]
fn a_queue_that_is_deleted_ends_its_subscription_alone() {
    let world = world();
    let mut inside = Inside::new(&world);
    inside.declare("gone");
    let (subscription, _) = inside.client.consume(&world, b"gone", 1).unwrap();
    world.delete_queue("gone");
    assert_eq!(inside.read(), [Incoming::Cancelled(subscription)]);
    assert!(inside.client.publish(&world, &to_topic("a"), &OutgoingMessage::new("m"), None).is_ok());
}

#[test]
fn headers_beyond_64_kib_are_refused() {
    let world = world();
    let inside = Inside::new(&world);
    let message = OutgoingMessage::new("m").header(b"long", &[b'a'; 65_536]);
    let refused = inside.client.publish(&world, &to_topic("a"), &message, None);
    assert_eq!(refused, Err(BrokerError::HeadersTooLarge));
}
