//! The encoder of an internal client, with frames that never leave the process.
//!
//! A frame is its length as `u32`, a byte for its kind, and its fields. A message is encoded as in
//! its journal record.

use crate::delivery::Delivery;
use crate::name::Name;
use crate::outbound::{AfterCancel, CutReason, Encoder, Recipient, SharedHeaders};
use crate::record::push_message;
use crate::time::Time;

/// The kinds of frames.
pub(super) mod kind {
    /// A message: subscription `u64`, number `u64`, whether to settle it `u8`, redelivered `u8`,
    /// failures `u32`, record.
    pub(crate) const DELIVERY: u8 = 1;
    /// The end of a subscription: number `u64`, name of the queue.
    pub(crate) const CANCELLED: u8 = 2;
    /// The end of the connection: the reason as text.
    pub(crate) const CUT: u8 = 3;
    /// A confirmed publish: its number `u64`.
    pub(crate) const CONFIRMED: u8 = 4;
}

/// Writes the frames that [`Incoming`](super::Incoming) represents.
#[derive(Debug)]
pub struct InternalEncoder;

impl Encoder for InternalEncoder {
    fn deliver(
        &mut self,
        out: &mut Vec<u8>,
        recipient: &Recipient<'_>,
        delivery: &Delivery<'_>,
        _: &mut SharedHeaders,
    ) {
        push_frame(out, kind::DELIVERY, |out| {
            out.extend_from_slice(recipient.label);
            out.extend_from_slice(&recipient.number.to_le_bytes());
            out.push(u8::from(recipient.settles));
            out.push(u8::from(delivery.is_redelivered));
            out.extend_from_slice(&delivery.failures.to_le_bytes());
            let deaths = delivery.deaths.map(|deaths| &**deaths);
            push_message(out, &delivery.message, delivery.address, deaths, &[], Time(0));
        });
    }

    fn cancelled(&mut self, out: &mut Vec<u8>, label: &[u8], queue: &Name) -> AfterCancel {
        push_frame(out, kind::CANCELLED, |out| {
            out.extend_from_slice(label);
            out.extend_from_slice(queue.as_bytes());
        });
        AfterCancel::GoOn
    }

    fn cut(&mut self, out: &mut Vec<u8>, reason: &CutReason) {
        push_frame(out, kind::CUT, |out| out.extend_from_slice(reason.to_string().as_bytes()));
    }
}

/// Writes the frame that confirms a publish.
pub(super) fn push_confirmed(out: &mut Vec<u8>, number: u64) {
    push_frame(out, kind::CONFIRMED, |out| out.extend_from_slice(&number.to_le_bytes()));
}

fn push_frame(out: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.push(kind);
    write(out);
    let len = u32::try_from(out.len() - start - 4).expect("a message is shorter than 4 GiB");
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&len.to_le_bytes());
    }
}
