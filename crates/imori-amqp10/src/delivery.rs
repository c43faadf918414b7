//! Encodes everything that the broker sends unasked: transfers, dispositions, flows, and the ends
//! of links and connections.

use imori_core::delivery::Delivery;
use imori_core::message::{HeaderReaders, Origins};
use imori_core::name::Name;
use imori_core::outbound::{
    AfterCancel, Confirmed, CutReason, Drained, Encoder, FramePart, Recipient, SharedHeaders,
};

use crate::codec::composite::Composite;
use crate::codec::composites::{Accepted, Close, Detach, Disposition, Flow, Transfer};
use crate::codec::condition;
use crate::codec::frame::{FrameKind, HEADER_BYTES, push_frame};
use crate::codec::restricted::Role;
use crate::message;
use crate::protocol_error::ProtocolError;
use crate::session::channel_of;
use crate::settings::Settings;

/// Encodes the deliveries of a connection.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryEncoder {
    frame_bytes_max: usize,
    session_window: u32,
    origins: Origins,
    header_readers: HeaderReaders,
}

/// The announced outgoing window: as large as possible, so that only the client's window limits.
pub(crate) const OUTGOING_WINDOW: u32 = i32::MAX as u32;

/// Maximum length of a transfer frame without its payload, in bytes.
const TRANSFER_BYTES_MAX: usize = 64;

/// Returns the label of a consumer: its channel and handle.
pub(crate) fn label(channel: u16, handle: u32) -> Box<[u8]> {
    [&channel.to_be_bytes()[..], &handle.to_be_bytes()].concat().into_boxed_slice()
}

/// Returns channel and handle from a label.
pub(crate) fn of_label(label: &[u8]) -> (u16, u32) {
    match *label {
        [channel1, channel2, handle1, handle2, handle3, handle4] => (
            u16::from_be_bytes([channel1, channel2]),
            u32::from_be_bytes([handle1, handle2, handle3, handle4]),
        ),
        _ => (0, 0),
    }
}

/// Returns the delivery id of a delivery number; the core counts from 1.
fn delivery_id(number: u64) -> u32 {
    number.wrapping_sub(1) as u32
}

impl DeliveryEncoder {
    /// Creates an encoder for a client that accepts frames of up to `frame_bytes_max` bytes.
    pub fn new(frame_bytes_max: u32, settings: &Settings) -> DeliveryEncoder {
        DeliveryEncoder {
            frame_bytes_max: frame_bytes_max as usize,
            session_window: settings.session_window,
            origins: settings.origins,
            header_readers: settings.header_readers,
        }
    }

    /// Splits a message into several frames. Its single frame starts at `begin`; from `payload` on,
    /// `out` holds the head of the message, and no body yet.
    #[cold]
    fn split(
        &self,
        out: &mut Vec<u8>,
        (begin, payload): (usize, usize),
        body: &[u8],
        transfer: &Transfer<'_>,
        channel: u16,
    ) {
        let head = out.split_off(payload);
        out.truncate(begin);
        let mut transfer = Transfer { more: true, ..*transfer };
        let (mut head, mut body) = (&head[..], body);
        while !head.is_empty() || !body.is_empty() {
            push_frame(out, FrameKind::Amqp, channel, |out| {
                let before = out.len();
                transfer.encode(out);
                let room = (self.frame_bytes_max + before).saturating_sub(out.len() + HEADER_BYTES);
                if head.len() + body.len() <= room {
                    out.truncate(before);
                    transfer.more = false;
                    transfer.encode(out);
                }
                let (part, behind) = head.split_at_checked(room).unwrap_or((head, &[]));
                out.extend_from_slice(part);
                head = behind;
                let (part, behind) = body.split_at_checked(room - part.len()).unwrap_or((body, &[]));
                out.extend_from_slice(part);
                body = behind;
            });
            // AMQP 1.0, 2.7.5: later transfers need only the handle.
            transfer = Transfer { handle: transfer.handle, more: true, ..Transfer::default() };
        }
    }
}

impl Encoder for DeliveryEncoder {
    #[inline]
    fn deliver(
        &mut self,
        out: &mut Vec<u8>,
        recipient: &Recipient<'_>,
        delivery: &Delivery<'_>,
        _shared: &mut SharedHeaders,
    ) {
        let (channel, handle) = of_label(recipient.label);
        let tag = recipient.number.to_be_bytes();
        let transfer = Transfer {
            handle,
            delivery_id: Some(delivery_id(recipient.number)),
            delivery_tag: Some(&tag),
            message_format: Some(0),
            settled: Some(!recipient.settles),
            ..Transfer::default()
        };
        let begin = out.len();
        let mut payload = begin;
        let body = message::body(delivery, self.origins, self.header_readers);
        let mut is_split = false;
        out.reserve(TRANSFER_BYTES_MAX + delivery.message.text.len() + body.len().min(self.frame_bytes_max));
        push_frame(out, FrameKind::Amqp, channel, |out| {
            transfer.encode(out);
            payload = out.len();
            message::push_head(out, delivery, body.len(), self.origins, self.header_readers);
            is_split = out.len() + body.len() > begin + self.frame_bytes_max;
            if !is_split {
                out.extend_from_slice(&body);
            }
        });
        if is_split {
            self.split(out, (begin, payload), &body, &transfer, channel);
        }
    }

    fn next_frame(&self, written: &[u8]) -> FramePart {
        let len = written.first_chunk::<4>().map_or(written.len(), |len| u32::from_be_bytes(*len) as usize);
        // This encoder always writes the numeric descriptor, so transfers can be recognized by it.
        let is_counted = written
            .get(HEADER_BYTES..)
            .is_some_and(|body| body.starts_with(&[0, 0x53, <Transfer<'_> as Composite<'_>>::CODE as u8]));
        FramePart { bytes: len, is_counted }
    }

    fn drained(&mut self, out: &mut Vec<u8>, drained: &Drained<'_>) {
        let Drained { label, used, frames, .. } = *drained;
        let (channel, handle) = of_label(label);
        let flow = Flow {
            next_incoming_id: Some(frames.awaited),
            incoming_window: self.session_window,
            next_outgoing_id: frames.next,
            outgoing_window: OUTGOING_WINDOW,
            handle: Some(handle),
            delivery_count: Some(used),
            link_credit: Some(0),
            available: Some(0),
            drain: true,
            ..Flow::default()
        };
        push_frame(out, FrameKind::Amqp, channel, |out| flow.encode(out));
    }

    fn confirmed(&mut self, out: &mut Vec<u8>, confirmed: Confirmed) {
        let Confirmed { session, first, last, .. } = confirmed;
        let disposition = Disposition {
            role: Role::Receiver,
            first: first as u32,
            last: (first < last).then_some(last as u32),
            settled: true,
            state: Some(Accepted {}.into()),
            batchable: false,
        };
        push_frame(out, FrameKind::Amqp, channel_of(session), |out| disposition.encode(out));
    }

    fn cancelled(&mut self, out: &mut Vec<u8>, label: &[u8], queue: &Name) -> AfterCancel {
        let (channel, handle) = of_label(label);
        let text = CutReason::QueueDeleted { queue: queue.clone() };
        let error = ProtocolError::new(condition::RESOURCE_DELETED, text);
        push_frame(out, FrameKind::Amqp, channel, |out| {
            Detach { handle, closed: true, error: Some(error.error()) }.encode(out);
        });
        AfterCancel::GoOn
    }

    fn taken_over(&mut self, out: &mut Vec<u8>, label: &[u8]) {
        let (channel, handle) = of_label(label);
        let error = ProtocolError::stolen();
        push_frame(out, FrameKind::Amqp, channel, |out| {
            Detach { handle, closed: true, error: Some(error.error()) }.encode(out);
        });
    }

    fn cut(&mut self, out: &mut Vec<u8>, reason: &CutReason) {
        let condition = match reason {
            CutReason::TooSlow { .. } | CutReason::Stalled { .. } | CutReason::Unfinished { .. } => {
                condition::RESOURCE_LIMIT_EXCEEDED
            }
            CutReason::QueueDeleted { .. }
            | CutReason::ClosedByOperator { .. }
            | CutReason::Revoked { .. }
            | CutReason::ShuttingDown => condition::CONNECTION_FORCED,
            // As in RabbitMQ.
            CutReason::TokenExpired { .. } => condition::UNAUTHORIZED_ACCESS,
            CutReason::Fault => condition::INTERNAL_ERROR,
        };
        let error = ProtocolError::new(condition, reason);
        push_frame(out, FrameKind::Amqp, 0, |out| Close { error: Some(error.error()) }.encode(out));
    }
}
