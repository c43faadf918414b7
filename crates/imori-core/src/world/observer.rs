//! Observation of single messages on their way, for traces.

use crate::delivery::{Outcome, QueuePosition};
use crate::id::{ConnectionId, VhostId};
use crate::message::MessageView;
use crate::queue::{DeadLetter, Queue};
use crate::time::Time;

/// Published messages, as an observer sees them.
#[derive(Debug)]
pub struct Sent<'a> {
    /// The vhost of their publisher.
    pub vhost: VhostId,
    /// The exchange they were published to.
    pub exchange: &'a [u8],
    /// Their subject.
    pub subject: &'a [u8],
    /// The first message; the others differ only in their bodies.
    pub first: MessageView<'a>,
    /// How many messages they are; at least one.
    pub messages: usize,
}

/// Is told the steps of each message: publish, queue, delivery, outcome.
///
/// The verbs call it only while [`World::observer`](super::World::observer) returns one. Between `publishing` and
/// `published`, and after `dead_lettering`, the calls of `enqueuing` and `delivered` from the same thread are about the
/// messages named there.
pub trait Observer {
    /// A publisher's messages are about to be routed. Returns the time. Nothing is locked.
    fn publishing(&self, sent: &Sent<'_>) -> Time;

    /// The messages for which `publishing` returned `from` have been routed. `receivers` is summed over all messages.
    /// Nothing is locked.
    fn published(&self, from: Time, sent: &Sent<'_>, receivers: usize);

    /// A queue is about to take a message at this position, or to refuse it. The queue is locked.
    fn enqueuing(&self, at: QueuePosition, queue: &Queue);

    /// A connection has a message, from a queue or directly. The queue is locked, the connection is not.
    fn delivered(&self, from: Option<QueuePosition>, to: ConnectionId);

    /// A consumer settles a delivery. Nothing is locked.
    fn settling(&self, at: QueuePosition, by: ConnectionId, outcome: Outcome);

    /// A dead letter is about to be routed. Nothing is locked.
    fn dead_lettering(&self, vhost: VhostId, letter: &DeadLetter);
}
