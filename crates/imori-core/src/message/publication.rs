//! An incoming message, borrowed from its sender's buffer until it has to be stored.

use std::cell::OnceCell;
use std::sync::Arc;

use bytes::Bytes;

use super::properties::Properties;
use super::stored::Message;
use super::stream_publish::{Receipt, StreamAsks, StreamPublish};
use super::view::MessageView;
use crate::confirm::Lsn;
use crate::id::ConnectionId;
use crate::memory::Gauge;
use crate::name::Name;

/// A message as its publisher hands it over.
///
/// Receivers that can be written to at once read the borrowed bytes. The first receiver that has to wait
/// creates the one stored [`Message`] that all others share.
#[derive(Debug)]
pub struct Publication<'a> {
    view: MessageView<'a>,
    shared_body: Option<&'a Bytes>,
    not_to: Option<ConnectionId>,
    publisher: Option<&'a Name>,
    asks: Option<&'a StreamAsks<'a>>,
    stored: OnceCell<Arc<Message>>,
}

impl<'a> Publication<'a> {
    /// Creates a publication of a message in its sender's buffer.
    pub fn new(properties: &'a Properties, text: &'a [u8], body: &'a [u8]) -> Publication<'a> {
        let view = MessageView { properties, text, body };
        Publication {
            view,
            shared_body: None,
            not_to: None,
            publisher: None,
            asks: None,
            stored: OnceCell::new(),
        }
    }

    /// Creates a publication with a large body in a buffer of its own, which can be kept without a copy.
    pub fn with_shared_body(properties: &'a Properties, text: &'a [u8], body: &'a Bytes) -> Publication<'a> {
        Publication { shared_body: Some(body), ..Publication::new(properties, text, body) }
    }

    /// Creates a publication of a stored message.
    pub fn of_stored(message: &'a Arc<Message>) -> Publication<'a> {
        Publication {
            view: message.view(),
            shared_body: message.shared_body(),
            not_to: None,
            publisher: None,
            asks: None,
            stored: OnceCell::from(Arc::clone(message)),
        }
    }

    /// Hides the publication from the live subscriptions of `connection`.
    pub fn not_to(self, connection: Option<ConnectionId>) -> Publication<'a> {
        Publication { not_to: connection, ..self }
    }

    /// Names the publisher, for queues that drop the messages of their own reader.
    pub fn by(self, publisher: &'a Name) -> Publication<'a> {
        Publication { publisher: Some(publisher), ..self }
    }

    /// Asks something of the streams that get the message.
    pub fn asking(self, asks: &'a StreamAsks<'a>) -> Publication<'a> {
        Publication { asks: Some(asks), ..self }
    }

    /// The subject to which streams answer.
    pub(crate) fn answer_to(&self) -> Option<&'a [u8]> {
        self.asks?.answer_to
    }

    /// What the headers ask of the streams that get the message.
    pub(crate) fn asks(&self) -> Option<&'a StreamPublish<'a>> {
        self.asks?.headers
    }

    /// What a stream's answer tells.
    pub(crate) fn receipt(&self) -> Receipt<'a> {
        self.asks.map(|asks| asks.receipt).unwrap_or_default()
    }

    /// The record up to which the journal has to be durable before readers may see the message, if that is not its own.
    pub(crate) fn through(&self) -> Option<Lsn> {
        self.asks?.through
    }

    /// The publisher's name, if its protocol gives one.
    pub(crate) fn publisher(&self) -> Option<&Name> {
        self.publisher
    }

    /// The connection with live subscriptions that do not get the message.
    pub(crate) fn left_out(&self) -> Option<ConnectionId> {
        self.not_to
    }

    /// The body, if it has a buffer of its own.
    #[inline]
    pub(crate) fn shared_body(&self) -> Option<&Bytes> {
        self.shared_body
    }

    /// The message as a reader sees it.
    pub fn view(&self) -> MessageView<'_> {
        self.view
    }

    /// Like [`Publication::view`], by reference.
    #[inline]
    pub(crate) fn viewed(&self) -> &MessageView<'_> {
        &self.view
    }

    /// The stored message, created on first use.
    pub fn stored(&self, gauge: &Gauge) -> Arc<Message> {
        Arc::clone(self.stored.get_or_init(|| Message::store(&self.view, self.shared_body, gauge)))
    }
}
