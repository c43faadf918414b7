//! The outbound half: encodes deliveries, confirms and the end of a connection.

use imori_core::delivery::Delivery;
use imori_core::name::Name;
use imori_core::outbound::{
    AfterCancel, Confirmed, CutReason, Encoder, EncoderKind, Recipient, SessionId, SharedHeaders,
};

use super::frame::{Kind, push, push_body};

/// Encodes for a connection. A reader's label is its tag; a session's number is its channel.
#[derive(Debug)]
pub(super) struct ToyEncoder(pub(super) EncoderKind);

impl Encoder for ToyEncoder {
    fn deliver(
        &mut self,
        out: &mut Vec<u8>,
        recipient: &Recipient<'_>,
        delivery: &Delivery<'_>,
        shared: &mut SharedHeaders,
    ) {
        let (body, subject) = (delivery.message.body, delivery.address.subject());
        push(out, recipient.session, Kind::Deliver, |out| {
            out.extend_from_slice(recipient.label);
            out.extend_from_slice(&recipient.number.to_be_bytes());
            out.push(u8::from(delivery.is_redelivered));
            // Equal for all receivers, so it is encoded once.
            shared.append(self.0, out, |out| {
                out.extend_from_slice(&(body.len() as u32).to_be_bytes());
                out.extend_from_slice(&(subject.len() as u16).to_be_bytes());
                out.extend_from_slice(subject);
            });
        });
        push_body(out, recipient.session, body);
    }

    fn confirmed(&mut self, out: &mut Vec<u8>, confirmed: Confirmed) {
        push(out, confirmed.session, Kind::Confirm, |out| {
            out.extend_from_slice(&confirmed.last.to_be_bytes());
            let is_multiple = confirmed.first < confirmed.last;
            out.extend([u8::from(is_multiple), u8::from(confirmed.is_refused)]);
        });
    }

    fn cancelled(&mut self, out: &mut Vec<u8>, _: &[u8], queue: &Name) -> AfterCancel {
        self.cut(out, &CutReason::QueueDeleted { queue: queue.clone() });
        AfterCancel::End
    }

    fn cut(&mut self, out: &mut Vec<u8>, reason: &CutReason) {
        push(out, SessionId::FIRST, Kind::Refuse, |out| out.extend_from_slice(reason.to_string().as_bytes()));
    }
}
