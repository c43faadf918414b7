//! Encodes deliveries as MSG and HMSG.
//!
//! A header block of another NATS client is forwarded unchanged. A message from another protocol
//! gets a new block. A client that did not ask for headers gets none.

use imori_core::delivery::Delivery;
use imori_core::message::{Deaths, HeaderReaders, MessageView, OriginId, Origins, Property};
use imori_core::name::Name;
use imori_core::outbound::{AfterCancel, CutReason, Encoder, EncoderKind, Recipient, SharedHeaders};

use crate::address::{is_expressible, subject};
use crate::codec::encode::push_error;
use crate::codec::headers::{BLOCK_END, Headers, VERSION_LINE, push_header};
use crate::codec::number::push_u64;
use crate::header_block::{HEADERS, PLAIN, TEXT_PROPERTIES, block, is_of_deaths};
use crate::settings::Settings;

/// Encodes the deliveries of a connection. The label of a reader is its sid.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryEncoder {
    has_headers: bool,
    kind: EncoderKind,
    origins: Origins,
    header_readers: HeaderReaders,
    payload_bytes_max: usize,
}

/// Maximum bytes written per byte of a foreign header; an eight-byte number may have 300 digits.
/// Messages within this estimate need not be rendered to check their size.
const RENDERED_BYTES_PER_BYTE: usize = 64;

/// Maximum bytes of a header block besides the message's headers: deaths, numeric properties and
/// the version line.
const RENDERED_BYTES_BESIDE: usize = 8 * 1024;

/// The header block of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// No block: MSG.
    Plain,
    /// The sender's block, unchanged.
    Verbatim,
    /// A new block, written from the message.
    Rendered,
}

impl DeliveryEncoder {
    /// Creates an encoder for a client that does or does not read header blocks.
    pub fn new(has_headers: bool, settings: &Settings) -> Self {
        let Settings { origins, encoder_kinds, header_readers, limits, .. } = *settings;
        Self {
            has_headers,
            kind: encoder_kinds.kind(u8::from(has_headers)),
            origins,
            header_readers,
            payload_bytes_max: limits.payload_bytes_max,
        }
    }

    #[inline]
    fn form(&self, delivery: &Delivery<'_>) -> Form {
        match self.origins.form(delivery.message.properties.origin) {
            _ if !self.has_headers => Form::Plain,
            Some(PLAIN) if delivery.died().is_none() => Form::Plain,
            Some(HEADERS) if delivery.died().is_none() => Form::Verbatim,
            _ => Form::Rendered,
        }
    }

    #[inline]
    fn is_native(&self, origin: OriginId) -> bool {
        self.origins.form(origin).is_some()
    }

    /// Writes the part between sid and body, which is equal for all receivers of this kind.
    #[inline]
    fn push_shared(&self, out: &mut Vec<u8>, delivery: &Delivery<'_>, form: Form) {
        let message = &delivery.message;
        if self.is_native(message.properties.origin) {
            if let Some(reply) = message.property(Property::ReplyTo) {
                out.extend_from_slice(reply);
                out.push(b' ');
            }
        } else {
            self.push_foreign_reply(out, message);
        }
        match form {
            Form::Plain => push_sizes(out, None, message.body.len()),
            Form::Verbatim => push_sizes(out, Some(block(message)), message.body.len()),
            Form::Rendered => push_sizes(out, Some(&self.rendered(delivery)), message.body.len()),
        }
    }
}

impl DeliveryEncoder {
    #[inline]
    fn push_message(
        &self,
        out: &mut Vec<u8>,
        recipient: &Recipient<'_>,
        delivery: &Delivery<'_>,
        shared: &mut SharedHeaders,
    ) {
        let form = self.form(delivery);
        out.extend_from_slice(if form == Form::Plain { &b"MSG "[..] } else { b"HMSG " });
        out.extend_from_slice(delivery.address.subject());
        out.push(b' ');
        out.extend_from_slice(recipient.label);
        out.push(b' ');
        shared.append(self.kind, out, |out| self.push_shared(out, delivery, form));
        out.extend_from_slice(delivery.message.body);
        out.extend_from_slice(b"\r\n");
    }

    fn fits_decoded(&self, delivery: &Delivery<'_>) -> bool {
        match delivery.decoded_body(self.origins, self.header_readers) {
            None => self.fits(delivery),
            Some(body) => self.fits(&delivery.with_body(&body)),
        }
    }

    /// Whether headers and body fit into `max_payload` of INFO, for which clients allocate their
    /// buffers.
    fn fits(&self, delivery: &Delivery<'_>) -> bool {
        let Some(room) = self.payload_bytes_max.checked_sub(delivery.message.body.len()) else {
            return false;
        };
        match self.form(delivery) {
            Form::Plain => true,
            Form::Verbatim => block(&delivery.message).len() <= room,
            Form::Rendered => {
                let text = delivery.message.text.len();
                text * RENDERED_BYTES_PER_BYTE + RENDERED_BYTES_BESIDE <= room
                    || self.rendered(delivery).len() <= room
            }
        }
    }
}

impl Encoder for DeliveryEncoder {
    fn is_choosy(&self) -> bool {
        true
    }

    /// SECURITY XPI-01: a subject of another protocol could contain a line end.
    #[inline]
    fn has_form(&self, delivery: &Delivery<'_>) -> bool {
        let is_checked = self.is_native(delivery.message.properties.origin) && delivery.died().is_none();
        is_checked || is_expressible(delivery.address.subject()) && self.fits_decoded(delivery)
    }

    #[inline]
    fn deliver(
        &mut self,
        out: &mut Vec<u8>,
        recipient: &Recipient<'_>,
        delivery: &Delivery<'_>,
        shared: &mut SharedHeaders,
    ) {
        match delivery.decoded_body(self.origins, self.header_readers) {
            None => self.push_message(out, recipient, delivery, shared),
            Some(body) => self.push_message(out, recipient, &delivery.with_body(&body), shared),
        }
    }

    #[inline]
    fn run_end(&self, _body_len: usize) -> Option<&'static [u8]> {
        Some(b"\r\n")
    }

    /// Deliveries have no number in NATS.
    #[inline]
    fn renumber(&mut self, _: &mut [u8], _: &Recipient<'_>) -> bool {
        true
    }

    /// NATS clients do not read queues.
    fn cancelled(&mut self, _: &mut Vec<u8>, _: &[u8], _: &Name) -> AfterCancel {
        AfterCancel::GoOn
    }

    /// Clients reconnect after a silent close, but some do not after an error they do not know. So
    /// only errors that the client itself caused are sent.
    fn cut(&mut self, out: &mut Vec<u8>, reason: &CutReason) {
        match reason {
            CutReason::TooSlow { .. } | CutReason::Stalled { .. } => push_error(out, "Slow Consumer"),
            CutReason::Unfinished { .. } => push_error(out, "Stale Connection"),
            CutReason::Revoked { .. } => push_error(out, "User Authentication Revoked"),
            CutReason::TokenExpired { .. } => push_error(out, "User Authentication Expired"),
            CutReason::QueueDeleted { .. }
            | CutReason::ClosedByOperator { .. }
            | CutReason::ShuttingDown
            | CutReason::Fault => {}
        }
    }
}

/// The header block of a stored message from a NATS client.
pub(crate) fn stored_block<'t>(message: &MessageView<'t>) -> &'t [u8] {
    block(message)
}

/// The header block of a message of another protocol.
pub(crate) fn render(message: &MessageView<'_>, readers: HeaderReaders) -> Vec<u8> {
    let mut out = VERSION_LINE.to_vec();
    push_properties(&mut out, message, false);
    let reader = readers(message.properties.origin);
    reader.visit_headers(message.text, &mut |name, value| {
        push_header(&mut out, &name, &value.to_text());
    });
    out.extend_from_slice(BLOCK_END);
    out
}

/// Ends the control line and appends the header block, if any.
#[inline]
fn push_sizes(out: &mut Vec<u8>, block: Option<&[u8]>, body_len: usize) {
    let Some(block) = block else {
        push_u64(out, body_len as u64);
        out.extend_from_slice(b"\r\n");
        return;
    };
    push_u64(out, block.len() as u64);
    out.push(b' ');
    push_u64(out, (block.len() + body_len) as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(block);
}

impl DeliveryEncoder {
    #[cold]
    fn push_foreign_reply(&self, out: &mut Vec<u8>, message: &MessageView<'_>) {
        let address = (self.header_readers)(message.properties.origin).reply_address(message);
        if let Some(reply) = address.and_then(|(exchange, key)| subject(&exchange, &key)) {
            out.extend_from_slice(&reply);
            out.push(b' ');
        }
    }

    /// Builds a header block from a message in another form and from its deaths.
    #[cold]
    fn rendered(&self, delivery: &Delivery<'_>) -> Vec<u8> {
        let message = &delivery.message;
        let mut out = VERSION_LINE.to_vec();
        if self.origins.form(message.properties.origin) == Some(HEADERS) {
            for (name, value) in Headers::new(block(message)) {
                // A dead letter does not expire again.
                if name != b"expiration" && !is_of_deaths(name) {
                    push_header(&mut out, name, value);
                }
            }
        } else if !self.is_native(message.properties.origin) {
            push_properties(&mut out, message, delivery.died().is_some());
            let reader = (self.header_readers)(message.properties.origin);
            reader.visit_headers(message.text, &mut |name, value| {
                push_header(&mut out, &name, &value.to_text());
            });
        }
        if let Some(deaths) = delivery.died() {
            push_deaths(&mut out, deaths);
        }
        out.extend_from_slice(BLOCK_END);
        out
    }
}

fn push_properties(out: &mut Vec<u8>, message: &MessageView<'_>, is_dead: bool) {
    for (property, name) in TEXT_PROPERTIES {
        if let Some(value) = message.property(property) {
            push_header(out, name.as_bytes(), value);
        }
    }
    let properties = message.properties;
    for (name, number) in [
        ("priority", properties.priority.map(u64::from)),
        ("expiration", properties.expiration_ms.filter(|_| !is_dead).map(u64::from)),
        ("timestamp", properties.timestamp),
    ] {
        if let Some(number) = number {
            push_header(out, name.as_bytes(), number.to_string().as_bytes());
        }
    }
}

/// Writes the history of a dead letter: its first and latest death and the total count.
fn push_deaths(out: &mut Vec<u8>, deaths: &Deaths) {
    if let Some(first) = deaths.first() {
        push_header(out, b"x-first-death-queue", first.queue.as_bytes());
        push_header(out, b"x-first-death-reason", first.reason.as_str().as_bytes());
        push_header(out, b"x-first-death-exchange", first.address.exchange.as_bytes());
    }
    if let Some(last) = deaths.iter().next() {
        push_header(out, b"x-death-queue", last.queue.as_bytes());
        push_header(out, b"x-death-reason", last.reason.as_str().as_bytes());
        let count = deaths.iter().fold(0_u64, |count, death| count.saturating_add(death.count));
        push_header(out, b"x-death-count", count.to_string().as_bytes());
    }
}

#[cfg(test)]
mod tests;
