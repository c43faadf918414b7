//! The encoder of an internal client: keeps deliveries in the client's pipe and writes tickets for them.

use std::sync::Arc;

use super::incoming::{Incoming, IncomingMessage, Receiver, SubscriptionEnd};
use super::pipe::{Pipe, push_ticket, weight};
use crate::delivery::{About, Delivery};
use crate::message::{HeaderReaders, Publication};
use crate::name::Name;
use crate::outbound::{AfterCancel, CutReason, Encoder, Recipient, SharedHeaders};

/// Bytes that anything but a message counts toward the client's outbound limits.
pub(super) const ANSWER_BYTES: usize = 64;

/// The kinds of labels; a label names the receiver of a delivery.
mod kind {
    pub(super) const SUBSCRIPTION: u8 = 1;
    pub(super) const CALL: u8 = 2;
    pub(super) const GET: u8 = 3;
}

/// Keeps deliveries in an internal client's pipe.
#[derive(Debug)]
pub struct InternalEncoder<P> {
    pipe: Arc<P>,
    readers: HeaderReaders,
}

impl<P: Pipe> InternalEncoder<P> {
    /// Creates the encoder of the client with this pipe.
    pub fn new(pipe: Arc<P>, readers: HeaderReaders) -> InternalEncoder<P> {
        InternalEncoder { pipe, readers }
    }

    fn keep(&mut self, out: &mut Vec<u8>, recipient: &Recipient<'_>, delivery: &Delivery<'_>) -> usize {
        let Some(receiver) = read_label(recipient.label) else { return 0 };
        let settling = (recipient.number, recipient.settles);
        let message = IncomingMessage::of(receiver, settling, delivery, self.readers);
        let bytes = message.weight();
        push_ticket(out, self.pipe.keep(Incoming::Message(Box::new(message))), bytes);
        bytes
    }
}

impl<P: Pipe> Encoder for InternalEncoder<P> {
    fn weight(&self) -> Option<fn(&[u8]) -> usize> {
        Some(weight)
    }

    fn deliver(
        &mut self,
        out: &mut Vec<u8>,
        recipient: &Recipient<'_>,
        delivery: &Delivery<'_>,
        _: &mut SharedHeaders,
    ) {
        self.keep(out, recipient, delivery);
    }

    fn deliver_run(
        &mut self,
        out: &mut Vec<u8>,
        mut recipient: Recipient<'_>,
        run: &[Publication<'_>],
        about: About<'_>,
        _: &mut SharedHeaders,
        room: usize,
    ) -> usize {
        let mut bytes = 0;
        for (delivered, publication) in run.iter().enumerate() {
            if bytes >= room {
                return delivered;
            }
            bytes += self.keep(out, &recipient, &about.first(publication));
            recipient.number += 1;
        }
        run.len()
    }

    fn cancelled(&mut self, out: &mut Vec<u8>, label: &[u8], queue: &Name) -> AfterCancel {
        if let Some(Receiver::Subscription(subscription)) = read_label(label) {
            let reason = SubscriptionEnd::QueueDeleted(queue.clone());
            push_ticket(out, self.pipe.keep(Incoming::Ended { subscription, reason }), ANSWER_BYTES);
        }
        AfterCancel::GoOn
    }

    fn cut(&mut self, out: &mut Vec<u8>, reason: &CutReason) {
        push_ticket(out, self.pipe.keep(Incoming::Cut(reason.clone())), ANSWER_BYTES);
    }
}

/// Encodes a receiver as the label of its deliveries.
pub(super) fn label(receiver: Receiver) -> Box<[u8]> {
    let (kind, number, left) = match receiver {
        Receiver::Subscription(number) => (kind::SUBSCRIPTION, number, None),
        Receiver::Call(number) => (kind::CALL, number, None),
        Receiver::Get { command, left } => (kind::GET, command, Some(left)),
    };
    let mut label = vec![kind];
    label.extend_from_slice(&number.to_le_bytes());
    left.into_iter().for_each(|left| label.extend_from_slice(&left.to_le_bytes()));
    label.into_boxed_slice()
}

/// Decodes a label; `None` if [`label`] did not encode it.
pub(super) fn read_label(label: &[u8]) -> Option<Receiver> {
    let (kind, rest) = label.split_first()?;
    let (number, rest) = rest.split_first_chunk()?;
    let number = u64::from_le_bytes(*number);
    Some(match *kind {
        kind::SUBSCRIPTION => Receiver::Subscription(number),
        kind::CALL => Receiver::Call(number),
        kind::GET => Receiver::Get { command: number, left: u64::from_le_bytes(*rest.first_chunk()?) },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_they_were_written() {
        for receiver in
            [Receiver::Subscription(1), Receiver::Call(u64::MAX), Receiver::Get { command: 3, left: 9 }]
        {
            assert_eq!(read_label(&label(receiver)), Some(receiver));
        }
        assert_eq!(read_label(b""), None);
        assert_eq!(read_label(&[9; 9]), None);
    }
}
