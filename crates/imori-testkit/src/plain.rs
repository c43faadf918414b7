//! Trivial header reader and encoder, for tests of the core alone.

use std::borrow::Cow;

use imori_core::delivery::Delivery;
use imori_core::message::{HeaderReader, Value};
use imori_core::name::Name;
use imori_core::outbound::{
    AfterCancel, CutReason, Drained, Encoder, EncoderKind, EncoderKinds, FramePart, Recipient, SharedHeaders,
};

/// Reads headers from `name=value` lines.
#[derive(Debug)]
pub struct Lines;

impl HeaderReader for Lines {
    fn visit_headers<'t>(&self, text: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {
        for line in text.split(|byte| *byte == b'\n') {
            if let Some(middle) = line.iter().position(|byte| *byte == b'=') {
                visit(Cow::Borrowed(&line[..middle]), Value::text(&line[middle + 1..]));
            }
        }
    }

    fn is_typed(&self) -> bool {
        false
    }
}

const KIND: EncoderKind = EncoderKinds::of_protocol(1).kind(0);

/// Encodes a delivery as `label:body;`, with `!` after the label of a redelivered message and
/// deaths after the body.
#[derive(Debug)]
pub struct Plain;

impl Encoder for Plain {
    fn deliver(
        &mut self,
        out: &mut Vec<u8>,
        recipient: &Recipient<'_>,
        delivery: &Delivery<'_>,
        shared: &mut SharedHeaders,
    ) {
        out.extend_from_slice(recipient.label);
        if delivery.is_redelivered {
            out.push(b'!');
        }
        shared.append(KIND, out, |out| out.push(b':'));
        out.extend_from_slice(delivery.message.body);
        for death in delivery.deaths.iter().flat_map(|deaths| deaths.iter()) {
            let text = format!("({} {} {})", death.queue, death.reason.as_str(), death.count);
            out.extend_from_slice(text.as_bytes());
        }
        out.push(b';');
    }

    fn next_frame(&self, written: &[u8]) -> FramePart {
        let bytes = written.iter().position(|byte| *byte == b';').map_or(written.len(), |at| at + 1);
        FramePart { bytes, is_counted: !written.starts_with(b"drained") }
    }

    fn drained(&mut self, out: &mut Vec<u8>, drained: &Drained<'_>) {
        let Drained { label, used, .. } = drained;
        out.extend_from_slice(format!("drained {} {used};", String::from_utf8_lossy(label)).as_bytes());
    }

    fn cancelled(&mut self, out: &mut Vec<u8>, label: &[u8], queue: &Name) -> AfterCancel {
        out.extend_from_slice(format!("{} lost {queue};", String::from_utf8_lossy(label)).as_bytes());
        AfterCancel::GoOn
    }

    fn cut(&mut self, out: &mut Vec<u8>, _: &CutReason) {
        out.extend_from_slice(b"cut;");
    }
}
