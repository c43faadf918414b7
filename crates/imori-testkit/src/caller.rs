//! A connection whose client calls the broker's verbs directly and receives deliveries as plain
//! text.

use std::num::NonZeroU32;

use imori_core::broker::{
    self, Actor, ConsumeOptions, PublishReport, SubscribeOptions, resume_publishers, wake_consumers,
};
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::id::{ConnectionId, QueueId, ReaderId};
use imori_core::message::{OriginId, Properties, Property, Publication, Span};
use imori_core::name::Name;
use imori_core::outbound::{Credit, Grant, HeldAnswers, Numbers, Outbound, SessionId};
use imori_core::queue::{DeadLetterTarget, QueueSettings};
use imori_core::route::{Arguments, BindingKey, ExchangeKind, Settings, Syntax};
use imori_core::stream::CursorOptions;
use imori_core::world::World;

use crate::plain::Plain;
use crate::world::{LIMITS, TestWorld, VHOST};

/// A message to publish; its header text is just its id.
#[derive(Debug, Default, Clone, Copy)]
pub struct TestMessage<'a> {
    /// The body.
    pub body: &'a str,
    /// The publisher's id of the message; empty for none.
    pub id: &'a str,
    /// Milliseconds until the message may be delivered; 0 for at once.
    pub delay_ms: u32,
    /// Milliseconds until the message expires.
    pub expiration_ms: Option<u32>,
    /// The priority.
    pub priority: Option<u8>,
    /// Whether the message is lost when the broker ends.
    pub is_transient: bool,
}

impl TestMessage<'_> {
    /// The properties to publish the message with.
    pub fn properties(&self) -> Properties {
        let mut properties = Properties::new(OriginId::BROKER);
        properties.is_persistent = !self.is_transient;
        properties.delay_ms = NonZeroU32::new(self.delay_ms);
        properties.expiration_ms = self.expiration_ms;
        properties.priority = self.priority;
        properties.set(Property::MessageId, Span::new(0, self.id.len()).expect("it is short"));
        properties
    }
}

/// A connection and the session in which its client calls verbs.
#[derive(Clone, Copy)]
pub struct Caller<'w> {
    /// The world to which the client is connected.
    pub world: &'w TestWorld,
    /// The client's connection.
    pub id: ConnectionId,
    /// The session used by every verb.
    pub session: SessionId,
}

impl TestWorld {
    /// Connects a caller in a new slot.
    pub fn connect(&self, slot: u32) -> Caller<'_> {
        self.connect_again(slot, 0)
    }

    /// Connects a caller in a slot that was used before.
    pub fn connect_again(&self, slot: u32, generation: u32) -> Caller<'_> {
        let id = ConnectionId { cell: 0, slot, generation };
        self.open_at(id, Box::new(Plain), LIMITS);
        Caller { world: self, id, session: SessionId::FIRST }
    }
}

impl<'w> Caller<'w> {
    /// The actor to pass to verbs.
    pub fn actor(&self) -> Actor<'w> {
        Actor { identity: &self.world.identity, connection: self.id, vhost: VHOST }
    }

    /// Opens another session of the connection and returns a caller that uses it.
    pub fn open_session(&self, id: u16) -> Result<Caller<'w>, BrokerError> {
        let session = SessionId(id);
        broker::open_session(self.world, &self.actor(), session)?;
        Ok(Caller { session, ..*self })
    }

    /// Ends the session, dropping its held answers; returns the number of steps that took.
    pub fn end_session(self) -> usize {
        let is_all = || broker::end_session(self.world, &self.actor(), self.session, HeldAnswers::Drop);
        1 + std::iter::repeat_with(is_all).take_while(|is_all| !is_all).count()
    }

    /// Declares a queue with default settings.
    pub fn declare(&self, name: &str) -> QueueId {
        self.declare_with(name, &QueueSettings::default()).expect("the queue is new or plain")
    }

    /// Declares a queue with these settings.
    pub fn declare_with(&self, name: &str, settings: &QueueSettings) -> Result<QueueId, BrokerError> {
        broker::declare_queue(self.world, &self.actor(), name.as_bytes(), settings, true)
            .map(|declared| declared.id)
    }

    /// Binds a queue to an exchange; the key has AMQP's syntax.
    pub fn bind(&self, exchange: &str, key: &str, queue: QueueId) -> Result<(), BrokerError> {
        let key = BindingKey::new(Syntax::Amqp, key.as_bytes());
        let (actor, arguments) = (self.actor(), Arguments::NONE);
        broker::bind_queue(self.world, &actor, exchange.as_bytes(), &key, &arguments, queue).map(drop)
    }

    /// Declares a durable exchange.
    pub fn exchange(&self, name: &str, kind: ExchangeKind) {
        let settings = Settings { is_durable: true, ..Settings::default() };
        let declared = broker::declare_exchange(self.world, &self.actor(), name.as_bytes(), kind, settings);
        declared.expect("it is new, or there as it is");
    }

    /// Publishes a message without headers.
    pub fn publish(&self, exchange: &str, subject: &str, body: &str) -> PublishReport {
        self.try_publish(exchange, subject, "", body).expect("the exchange is there")
    }

    /// Publishes a message with this header text.
    pub fn try_publish(
        &self,
        exchange: &str,
        subject: &str,
        text: &str,
        body: &str,
    ) -> Result<PublishReport, BrokerError> {
        let properties = Properties::new(OriginId::BROKER);
        let publication = Publication::new(&properties, text.as_bytes(), body.as_bytes());
        broker::publish(self.world, &self.actor(), exchange.as_bytes(), subject.as_bytes(), &publication)
    }

    /// Publishes `outgoing`, which is persistent unless it is marked transient.
    pub fn outgoing(&self, exchange: &str, subject: &str, outgoing: &TestMessage<'_>) -> PublishReport {
        self.try_mail(exchange, subject, outgoing).expect("the exchange is there")
    }

    /// Publishes like [`Caller::outgoing`], but returns errors.
    pub fn try_mail(
        &self,
        exchange: &str,
        subject: &str,
        outgoing: &TestMessage<'_>,
    ) -> Result<PublishReport, BrokerError> {
        let properties = outgoing.properties();
        let publication = Publication::new(&properties, outgoing.id.as_bytes(), outgoing.body.as_bytes());
        broker::publish(self.world, &self.actor(), exchange.as_bytes(), subject.as_bytes(), &publication)
    }

    /// Publishes to a queue through the default exchange.
    pub fn send(&self, queue: &str, body: &str) -> PublishReport {
        self.publish("", queue, body)
    }

    /// Subscribes to the topic exchange.
    pub fn subscribe(&self, pattern: &str, label: &str) -> ReaderId {
        self.try_subscribe("amq.topic", pattern, label, None).expect("the pattern is one")
    }

    /// Subscribes to the topic exchange as a member of a group.
    pub fn join(&self, group: &str, pattern: &str, label: &str) -> ReaderId {
        self.try_subscribe("amq.topic", pattern, label, Some(group)).expect("the pattern is one")
    }

    /// Subscribes to an exchange, alone or as a member of a group.
    pub fn try_subscribe(
        &self,
        exchange: &str,
        pattern: &str,
        label: &str,
        group: Option<&str>,
    ) -> Result<ReaderId, BrokerError> {
        let key = BindingKey::new(Syntax::Amqp, pattern.as_bytes());
        let options = SubscribeOptions {
            session: self.session,
            label: label.as_bytes().into(),
            group: group.map(Name::from),
            selector: None,
        };
        broker::subscribe(self.world, &self.actor(), exchange.as_bytes(), &key, options)
    }

    /// Consumes with a window of `credit`; without settling if `credit` is zero.
    pub fn consume(&self, queue: &str, label: &str, credit: u32) -> ReaderId {
        self.try_consume(queue, label, credit, false).expect("the queue is there")
    }

    /// Consumes and settles with granted credit, initially none.
    pub fn consume_granted(&self, queue: &str, label: &str) -> ReaderId {
        self.consume_by_grants(queue, label, true)
    }

    /// Declares a temporary queue as a reply address; returns its name and its reader, which
    /// consumes with granted credit and settles nothing.
    pub fn reply_queue(&self, label: &str) -> (String, ReaderId) {
        let secret = self.world.secret();
        let add = |outbound: &mut Outbound| outbound.add_reply_queue(VHOST, secret);
        let address = self.world.with_outbound(self.id, add).flatten().expect("there may be another");
        let name = address.to_queue_name();
        let settings = QueueSettings { exclusive_to: Some(self.id), ..QueueSettings::default() };
        broker::declare_unnamed_queue(self.world, &self.actor(), &name, &settings).expect("it is new");
        let name = String::from_utf8(name).expect("it is text");
        let reader = self.consume_by_grants(&name, label, false);
        (name, reader)
    }

    /// Consumes with granted credit, initially none.
    pub fn consume_by_grants(&self, queue: &str, label: &str, settles: bool) -> ReaderId {
        let id = broker::find_queue(self.world, &self.actor(), queue.as_bytes()).expect("the queue is there");
        let options = ConsumeOptions {
            session: self.session,
            label: label.as_bytes().into(),
            settles,
            credit: Credit::ungranted(),
            priority: 0,
            is_exclusive: false,
            selector: None,
            drops_unwanted: false,
            is_browser: false,
            name: None,
            cursor: CursorOptions::default(),
        };
        let added = broker::consume(self.world, &self.actor(), id, queue.as_bytes(), options, |_, _| ());
        added.expect("it may consume")
    }

    /// Grants a consumer credit, counted from its first `used` deliveries.
    pub fn grant(&self, reader: ReaderId, (used, credit): (u32, u32), drains: bool) {
        broker::grant(self.world, &self.actor(), reader, &Grant { used, credit, drains });
    }

    /// Consumes like [`Caller::consume`], but returns errors.
    pub fn try_consume(
        &self,
        queue: &str,
        label: &str,
        credit: u32,
        is_exclusive: bool,
    ) -> Result<ReaderId, BrokerError> {
        let id = broker::find_queue(self.world, &self.actor(), queue.as_bytes())?;
        let options = ConsumeOptions {
            session: self.session,
            label: label.as_bytes().into(),
            settles: credit > 0,
            credit: if credit > 0 { Credit::window(credit) } else { Credit::Unlimited },
            priority: 0,
            is_exclusive,
            selector: None,
            drops_unwanted: false,
            is_browser: false,
            name: None,
            cursor: CursorOptions::default(),
        };
        broker::consume(self.world, &self.actor(), id, queue.as_bytes(), options, |_, _| ())
    }

    /// Settles deliveries and returns their number.
    pub fn settle(&self, numbers: Numbers, outcome: Outcome) -> Result<usize, BrokerError> {
        let mut settled = 0;
        loop {
            let report = broker::settle(self.world, &self.actor(), self.session, numbers, outcome)?;
            settled += report.settled;
            if !report.has_more {
                return Ok(settled);
            }
        }
    }

    /// Accepts one delivery, which must exist.
    pub fn accept(&self, number: u64) {
        assert_eq!(self.settle(Numbers::One(number), Outcome::Accept), Ok(1));
    }

    /// Cancels a reader.
    pub fn cancel(&self, reader: ReaderId) {
        broker::cancel(self.world, &self.actor(), reader);
    }

    /// Opens an inbox and returns its address on the default exchange.
    pub fn inbox(&self, label: &str) -> String {
        let secret = self.world.secret();
        let make = || (label.as_bytes().into(), secret);
        let inbox = self
            .world
            .with_outbound(self.id, |outbound| outbound.inbox(self.session, label.as_bytes(), make));
        String::from_utf8(inbox.flatten().expect("there may be another").to_key()).expect("it is text")
    }

    /// Disconnects and drops the outbound half.
    pub fn disconnect(self) {
        while !broker::disconnect(self.world, &self.actor()) {}
        self.world.forget(self.id);
    }

    /// Reads all unsent output, which lets waiting readers and publishers continue.
    pub fn read(&self) -> String {
        let mut text = Vec::new();
        let (wakes, publishers) = self
            .world
            .with_outbound(self.id, |outbound| {
                while let Some((bytes, written)) = outbound.take_unsent() {
                    text.extend_from_slice(&bytes[written..]);
                    let len = bytes.len();
                    outbound.put_back(bytes, len);
                }
                outbound.written()
            })
            .unwrap_or_default();
        wake_consumers(self.world, self.id, &wakes);
        resume_publishers(self.world, &publishers);
        String::from_utf8(text).expect("bodies are text")
    }

    /// Reads until there is no more output.
    pub fn read_all(&self) -> String {
        let mut text = String::new();
        loop {
            match self.read() {
                more if more.is_empty() => return text,
                more => text += &more,
            }
        }
    }
}

/// Settings of a queue with this dead-letter target.
pub fn dying_to(exchange: &str, routing_key: Option<&str>) -> QueueSettings {
    let dead_letter =
        DeadLetterTarget { exchange: Name::from(exchange), routing_key: routing_key.map(Name::from) };
    QueueSettings { dead_letter: Some(dead_letter), ..QueueSettings::default() }
}
