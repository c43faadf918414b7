//! Messages, answers and ends that are sent to an internal client.

use std::sync::Arc;

use bytes::Bytes;

use super::command::{CommandError, Done};
use crate::authorize::Refusal;
use crate::delivery::Delivery;
use crate::message::{Address, Deaths, HeaderReaders, MessageView, OriginId, Properties, Property, Value};
use crate::name::Name;
use crate::outbound::CutReason;

/// A message for an internal client, with all that the broker knows about it.
#[derive(Debug, Clone)]
pub struct IncomingMessage {
    /// The subscription, call or get that it is for.
    pub receiver: Receiver,
    /// The delivery number that settles it.
    pub number: u64,
    /// Whether the client must settle the delivery.
    pub settles: bool,
    /// Whether the message was delivered before.
    pub is_redelivered: bool,
    /// The number of failed deliveries.
    pub failures: u32,
    /// The address it was published to.
    pub address: Address,
    /// The deaths of a dead letter.
    pub deaths: Option<Arc<Deaths>>,
    /// The properties that are not text: persistence, priority, expiration, delay and timestamp.
    pub properties: Properties,
    /// The body, shared with the publisher or the queue where it has a buffer of its own.
    pub body: Bytes,
    text: Box<[u8]>,
    readers: HeaderReaders,
}

/// The part of an internal client that receives a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Receiver {
    /// The subscription or consumer with this number.
    Subscription(u64),
    /// The call that the command with this number made; the message is its reply.
    Call(u64),
    /// A get, which receives one message.
    Get {
        /// The number of the [`Verb::Get`](super::Verb::Get) command.
        command: u64,
        /// The number of ready messages that are left.
        left: u64,
    },
}

/// An item sent to an internal client.
#[derive(Debug)]
pub enum Incoming {
    /// A message for a subscription, a consumer, a call or a get.
    Message(Box<IncomingMessage>),
    /// The answer to a command.
    Answer {
        /// The number that the client gave the command.
        command: u64,
        /// The result.
        outcome: Result<Done, CommandError>,
    },
    /// The broker ended a subscription.
    Ended {
        /// The number of the command that started it.
        subscription: u64,
        /// Why the broker ended it.
        reason: SubscriptionEnd,
    },
    /// The broker ended the client.
    Cut(CutReason),
}

/// Why a subscription ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubscriptionEnd {
    /// Its queue was deleted.
    QueueDeleted(Name),
    /// The user's rights changed and no longer allow it.
    Revoked(Refusal),
    /// The broker ended the client.
    Cut(CutReason),
    /// The client or the broker has ended.
    Ended,
}

impl std::fmt::Display for SubscriptionEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SubscriptionEnd::QueueDeleted(queue) => {
                write!(f, "queue `{queue}` was deleted; declare it and consume again")
            }
            SubscriptionEnd::Revoked(refusal) => write!(f, "{refusal}"),
            SubscriptionEnd::Cut(reason) => write!(f, "{reason}"),
            SubscriptionEnd::Ended => f.write_str("the client has ended; make another one"),
        }
    }
}

impl IncomingMessage {
    /// Copies a delivery; shares the body if possible.
    pub(super) fn of(
        receiver: Receiver,
        (number, settles): (u64, bool),
        delivery: &Delivery<'_>,
        readers: HeaderReaders,
    ) -> IncomingMessage {
        let view = &delivery.message;
        let body = match readers(view.properties.origin).body(view) {
            std::borrow::Cow::Owned(body) => Bytes::from(body),
            std::borrow::Cow::Borrowed(body) => match delivery.shared_body {
                Some(shared) => shared.clone(),
                None => Bytes::copy_from_slice(body),
            },
        };
        IncomingMessage {
            receiver,
            number,
            settles,
            is_redelivered: delivery.is_redelivered,
            failures: delivery.failures,
            address: Address::new(delivery.address.exchange(), delivery.address.subject()),
            deaths: delivery.died().cloned(),
            properties: *view.properties,
            body,
            text: view.text.into(),
            readers,
        }
    }

    /// The value of a text property.
    #[must_use]
    pub fn property(&self, property: Property) -> Option<&[u8]> {
        self.properties.property(property, &self.text)
    }

    /// The first user header with this name.
    #[must_use]
    pub fn header(&self, name: &[u8]) -> Option<Value<'_>> {
        (self.readers)(self.properties.origin).header(&self.text, name)
    }

    /// The user headers with their types, in order.
    #[must_use]
    pub fn headers(&self) -> Vec<(Vec<u8>, Value<'static>)> {
        let mut headers = Vec::new();
        (self.readers)(self.properties.origin).visit_headers(&self.text, &mut |name, value| {
            headers.push((name.into_owned(), value.into_owned()));
        });
        headers
    }

    /// The address for a reply; `None` if the sender wants none, or gave an address outside this broker.
    #[must_use]
    pub fn reply_to(&self) -> Option<Address> {
        let reply = (self.readers)(self.properties.origin).reply_address(&self.view());
        reply.map(|(exchange, subject)| Address::new(&exchange, &subject))
    }

    /// The sending time that the sender claims, in milliseconds since the UNIX epoch.
    #[must_use]
    pub fn timestamp_ms(&self) -> Option<i64> {
        (self.readers)(self.properties.origin).timestamp_ms(&self.view())
    }

    /// The protocol that the message was published with.
    #[must_use]
    pub fn origin(&self) -> OriginId {
        self.properties.origin
    }

    /// Bytes that the message counts toward the client's outbound limits.
    pub(super) fn weight(&self) -> usize {
        size_of::<IncomingMessage>() + self.text.len() + self.body.len()
    }

    fn view(&self) -> MessageView<'_> {
        MessageView { properties: &self.properties, text: &self.text, body: &self.body }
    }
}
