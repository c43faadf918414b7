//! Encodes deliveries as MESSAGE frames.
//!
//! A message from a STOMP client keeps the header lines of its sender. For a message from another
//! protocol, the encoder writes its properties and those user headers that STOMP can express.

use imori_core::delivery::Delivery;
use imori_core::message::{DEFAULT_EXCHANGE, Deaths, HeaderReaders, MessageView, OFFSET, Origins, Property};
use imori_core::name::Name;
use imori_core::outbound::{AfterCancel, CutReason, Drained, Encoder, EncoderKind, Recipient, SharedHeaders};
use memchr::memchr;

use crate::address::push_destination;
use crate::codec::command::Command;
use crate::codec::escape::Escaping;
use crate::codec::number::{Counter, push_u64};
use crate::codec::version::Version;
use crate::header_block::{BlockForm, Form, PROPERTIES, headers, is_property, lines_of};
use crate::protocol_error::{ACCESS_REFUSED, ProtocolError, push_error};
use crate::settings::Settings;

/// Length of a session name in bytes.
pub(crate) const SESSION_BYTES: usize = 12;

/// Encodes the deliveries of a connection.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryEncoder {
    version: Version,
    kind: EncoderKind,
    escaping: Escaping,
    keeps_open_after_error: bool,
    origins: Origins,
    header_readers: HeaderReaders,
    /// Decimal digits of the latest delivery number.
    counter: Counter,
}

impl DeliveryEncoder {
    /// Creates an encoder for `version`.
    pub fn new(version: Version, settings: &Settings) -> Self {
        let Settings { keeps_open_after_error, origins, encoder_kinds, header_readers, .. } = *settings;
        let kind = encoder_kinds.kind(match version {
            Version::V10 => 0,
            Version::V11 => 1,
            Version::V12 => 2,
        });
        let escaping = Escaping::of(Command::Message, version);
        let counter = Counter::default();
        Self { version, kind, escaping, keeps_open_after_error, origins, header_readers, counter }
    }

    /// Writes the headers after the delivery number, which are equal for all receivers of this
    /// version.
    #[inline]
    fn push_shared(&self, out: &mut Vec<u8>, delivery: &Delivery<'_>) {
        let message = &delivery.message;
        // Covers most of the frame, so that `out` rarely grows again.
        out.reserve(message.text.len() + message.body.len() + 128);
        out.extend_from_slice(if delivery.is_redelivered {
            b"\nredelivered:true\ndestination:"
        } else {
            b"\nredelivered:false\ndestination:"
        });
        let address = delivery.address;
        push_destination(self.escaping, out, address.exchange(), address.subject());
        out.push(b'\n');
        if let Some(offset) = delivery.offset() {
            // Of repeated headers the first counts.
            push_number_header(out, OFFSET, offset.unsigned_abs());
        }
        match delivery.died() {
            None if message.properties.origin == self.origins.origin(BlockForm::Plain as u8) => {
                out.extend_from_slice(message.text);
            }
            None => self.push_lines(out, message, false),
            Some(deaths) => {
                self.push_lines(out, message, true);
                self.push_deaths(out, deaths);
            }
        }
        out.extend_from_slice(b"content-length:");
        push_u64(out, message.body.len() as u64);
        out.extend_from_slice(b"\n\n");
    }
}

/// The reach of an ACK: one delivery, or it and all earlier ones of its subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AckSpan {
    One,
    UpTo,
}

impl AckSpan {
    /// Returns the byte between session and number in a `message-id`.
    ///
    /// It encodes the span in the id, so an ACK needs no lookup of its subscription and works after
    /// UNSUBSCRIBE.
    fn separator(self) -> u8 {
        match self {
            Self::One => b'-',
            Self::UpTo => b'.',
        }
    }
}

/// Builds the part before the number that every MESSAGE of a subscription starts with.
///
/// `id` is the value of `subscription` as the client wrote it.
pub(crate) fn label(id: Option<&[u8]>, session: &[u8], span: AckSpan) -> Box<[u8]> {
    let mut label = b"MESSAGE\n".to_vec();
    if let Some(id) = id {
        label.extend_from_slice(b"subscription:");
        label.extend_from_slice(id);
        label.push(b'\n');
    }
    label.extend_from_slice(b"message-id:");
    label.extend_from_slice(session);
    label.push(span.separator());
    label.into_boxed_slice()
}

/// Returns the `message-id` of a delivery, which is also its `ack`.
pub(crate) fn message_id(session: &[u8], number: u64, span: AckSpan) -> Vec<u8> {
    [session, &[span.separator()], number.to_string().as_bytes()].concat()
}

/// Parses a `message-id` or `ack` of this session into the delivery number and the span of an ACK.
pub(crate) fn parse_message_id(id: &[u8], session: &[u8]) -> Option<(u64, AckSpan)> {
    let (separator, digits) = id.strip_prefix(session)?.split_first()?;
    let span = [AckSpan::One, AckSpan::UpTo].into_iter().find(|span| span.separator() == *separator)?;
    Some((crate::codec::number::parse_u64(digits)?, span))
}

impl Encoder for DeliveryEncoder {
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
        Some(b"\0")
    }

    #[inline]
    fn renumber(&mut self, headers: &mut [u8], recipient: &Recipient<'_>) -> bool {
        let (number, start) = (self.counter.digits(recipient.number), recipient.label.len());
        let end = start + number.len();
        // Patch in place only if the digits end where the line ends, that is, the length is
        // unchanged. An `ack` header repeats the number, so such headers are written anew.
        if recipient.settles || headers.get(end) != Some(&b'\n') {
            return false;
        }
        headers.get_mut(start..end).map(|place| place.copy_from_slice(number)).is_some()
    }

    // ActiveMQ ends a browse with this frame.
    fn drained(&mut self, out: &mut Vec<u8>, drained: &Drained<'_>) {
        out.extend_from_slice(drained.label);
        out.extend_from_slice(b"0\nbrowser:end\ndestination:");
        push_destination(self.escaping, out, DEFAULT_EXCHANGE, drained.queue.as_bytes());
        out.extend_from_slice(b"\ncontent-length:0\n\n\0");
    }

    fn cancelled(&mut self, out: &mut Vec<u8>, label: &[u8], queue: &Name) -> AfterCancel {
        let reason = CutReason::QueueDeleted { queue: queue.clone() };
        let error = ProtocolError::new("Server cancelled subscription", reason);
        let lines = label.strip_prefix(b"MESSAGE\n").unwrap_or_default();
        let lines_end = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        push_error(out, self.version, &error, None, lines.get(..lines_end).unwrap_or_default());
        if self.keeps_open_after_error { AfterCancel::GoOn } else { AfterCancel::End }
    }

    fn cut(&mut self, out: &mut Vec<u8>, reason: &CutReason) {
        let message = match reason {
            CutReason::TooSlow { .. } | CutReason::Stalled { .. } => "Connection too slow",
            CutReason::Unfinished { .. } => "Message not finished",
            CutReason::QueueDeleted { .. } => "Server cancelled subscription",
            CutReason::ClosedByOperator { .. } => "Connection closed",
            CutReason::Revoked { .. } | CutReason::TokenExpired { .. } => ACCESS_REFUSED,
            CutReason::ShuttingDown => "Server shutting down",
            CutReason::Fault => "Internal error",
        };
        push_error(out, self.version, &ProtocolError::last(message, reason), None, b"");
    }
}

impl DeliveryEncoder {
    #[inline]
    fn push_message(
        &mut self,
        out: &mut Vec<u8>,
        recipient: &Recipient<'_>,
        delivery: &Delivery<'_>,
        shared: &mut SharedHeaders,
    ) {
        let label = recipient.label;
        let number = self.counter.digits(recipient.number);
        out.extend_from_slice(label);
        out.extend_from_slice(number);
        if recipient.settles && self.version == Version::V12 {
            // Same value as `message-id`, because many clients send that back instead.
            let id_start = label.len().saturating_sub(SESSION_BYTES + 1);
            out.extend_from_slice(b"\nack:");
            out.extend_from_slice(label.get(id_start..).unwrap_or_default());
            out.extend_from_slice(number);
        }
        shared.append(self.kind, out, |out| self.push_shared(out, delivery));
        out.extend_from_slice(delivery.message.body);
        out.push(b'\0');
    }

    /// Writes the headers of a message that cannot reuse its header block unchanged.
    ///
    /// Omits `expiration` for a dead letter, as it no longer expires.
    #[cold]
    fn push_lines(&self, out: &mut Vec<u8>, message: &MessageView<'_>, is_dead: bool) {
        let Some(form) = self.origins.form(message.properties.origin).and_then(Form::of) else {
            self.push_foreign(out, message, is_dead);
            return;
        };
        // A 1.2 client can read 1.1 and 1.2 lines unchanged. The exception is a carriage return at
        // a line end, which many clients would take for part of the value.
        let lines = lines_of(message.text);
        if form == Form::Escaped && self.version == Version::V12 && !is_dead && memchr(b'\r', lines).is_none()
        {
            out.extend_from_slice(lines);
            return;
        }
        for (name, value) in headers(message.text, form) {
            if !(is_dead && *name == *b"expiration") {
                self.push_header(out, &name, &value);
            }
        }
    }

    /// Writes a header, or omits it if this version cannot express it (SECURITY XPI-01, XPI-04):
    /// all versions but 1.0 demand UTF-8. Returns whether it was written.
    fn push_header(&self, out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> bool {
        let len = out.len();
        let is_utf8 = |text: &[u8]| text.is_ascii() || std::str::from_utf8(text).is_ok();
        let has_form = self.version == Version::V10 || is_utf8(name) && is_utf8(value);
        let is_written = has_form && self.escaping.push_name(out, name) && {
            out.push(b':');
            self.escaping.push_value(out, value)
        };
        if is_written {
            out.push(b'\n');
        } else {
            out.truncate(len);
        }
        is_written
    }

    /// Writes properties and user headers of a message from another protocol.
    #[cold]
    fn push_foreign(&self, out: &mut Vec<u8>, message: &MessageView<'_>, is_dead: bool) {
        let reader = (self.header_readers)(message.properties.origin);
        for (property, name) in PROPERTIES {
            if property == Property::ReplyTo {
                if let Some((exchange, key)) = reader.reply_address(message) {
                    self.push_reply_to(out, &exchange, &key);
                }
            } else if let Some(value) = message.property(property) {
                self.push_header(out, name.as_bytes(), value);
            }
        }
        self.push_numbers(out, message, is_dead);
        reader.visit_headers(message.text, &mut |name, value| {
            // SECURITY XPI-01: another protocol's header must not forge one that STOMP gives a
            // meaning.
            if !is_taken(&name) {
                self.push_header(out, &name, &value.to_text());
            }
        });
    }

    /// Writes `reply-to` as a destination that a SEND can use.
    fn push_reply_to(&self, out: &mut Vec<u8>, exchange: &[u8], key: &[u8]) {
        if exchange == DEFAULT_EXCHANGE {
            self.push_header(out, b"reply-to", &[b"/reply-queue/", key].concat());
            return;
        }
        out.extend_from_slice(b"reply-to:");
        push_destination(self.escaping, out, exchange, key);
        out.push(b'\n');
    }

    /// Writes the properties that are not text.
    fn push_numbers(&self, out: &mut Vec<u8>, message: &MessageView<'_>, is_dead: bool) {
        let properties = message.properties;
        if properties.is_persistent {
            out.extend_from_slice(b"persistent:true\n");
        }
        for (name, number) in [
            ("priority", properties.priority.map(u64::from)),
            ("expiration", properties.expiration_ms.filter(|_| !is_dead).map(u64::from)),
            ("timestamp", properties.timestamp),
        ] {
            if let Some(number) = number {
                push_number_header(out, name, number);
            }
        }
    }

    /// Writes the history of a dead letter: its first and latest death and the total count.
    #[cold]
    fn push_deaths(&self, out: &mut Vec<u8>, deaths: &Deaths) {
        if let Some(first) = deaths.first() {
            self.push_header(out, b"x-first-death-queue", first.queue.as_bytes());
            self.push_header(out, b"x-first-death-reason", first.reason.as_str().as_bytes());
            self.push_header(out, b"x-first-death-exchange", first.address.exchange.as_bytes());
        }
        if let Some(last) = deaths.iter().next() {
            self.push_header(out, b"x-death-queue", last.queue.as_bytes());
            self.push_header(out, b"x-death-reason", last.reason.as_str().as_bytes());
            let count = deaths.iter().fold(0_u64, |count, death| count.saturating_add(death.count));
            push_number_header(out, "x-death-count", count);
        }
    }
}

fn push_number_header(out: &mut Vec<u8>, name: &str, number: u64) {
    out.extend_from_slice(name.as_bytes());
    out.push(b':');
    push_u64(out, number);
    out.push(b'\n');
}

/// Headers that control how a MESSAGE is read or answered, and headers that only clients send.
const OWN_HEADERS: [&str; 8] = [
    "destination",
    "message-id",
    "subscription",
    "redelivered",
    "ack",
    "content-length",
    "receipt",
    "transaction",
];

/// Whether the name is reserved, that is, not a user header.
fn is_taken(name: &[u8]) -> bool {
    is_property(name) || OWN_HEADERS.iter().any(|own| own.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use std::borrow::Cow;

    use imori_core::delivery::About;
    use imori_core::message::{
        Address, AddressParts, AddressView, DeathReason, HeaderReader, OriginId, Properties, Publication,
        Value,
    };
    use imori_core::time::Time;

    use super::*;
    use crate::client::SESSION as SESSION_ID;
    use crate::header_block::SOLE_ORIGINS;

    const SESSION: &[u8] = b"abcdefghijkl";
    const PLAIN: OriginId = SOLE_ORIGINS.origin(BlockForm::Plain as u8);
    const V10_BLOCK: OriginId = SOLE_ORIGINS.origin(BlockForm::V10 as u8);
    const V11_BLOCK: OriginId = SOLE_ORIGINS.origin(BlockForm::V11 as u8);
    const V12_BLOCK: OriginId = SOLE_ORIGINS.origin(BlockForm::V12 as u8);

    fn encoded(version: Version, origin: OriginId, text: &str, deaths: Option<Deaths>) -> String {
        let properties = Properties::new(origin);
        let address = Arc::new(Address::new(b"", b"q"));
        let deaths = deaths.map(Arc::new);
        let message = MessageView { properties: &properties, text: text.as_bytes(), body: b"hi" };
        let delivery = Delivery {
            message,
            shared_body: None,
            address: &AddressView::new(&address),
            deaths: deaths.as_ref(),
            sequence: 0,
            failures: 0,
            is_redelivered: false,
            is_last: true,
            is_of_stream: false,
        };
        let mut out = Vec::new();
        let recipient = Recipient { session: SESSION_ID, label: b"label", number: 7, settles: false };
        let mut encoder = DeliveryEncoder::new(version, &Settings::default());
        encoder.deliver(&mut out, &recipient, &delivery, &mut SharedHeaders::for_receivers(1));
        let text = String::from_utf8(out).unwrap();
        text.strip_prefix("label7\nredelivered:false\ndestination:").unwrap().to_string()
    }

    #[test]
    fn headers_of_any_version_reach_any_other() {
        use Version::{V10, V11, V12};
        for (origin, text, version, expected) in [
            (PLAIN, "a:b\n", V10, "a:b\n"),
            (PLAIN, "a:b\n", V12, "a:b\n"),
            (V10_BLOCK, "a: b:c\\d\n", V10, "a:b:c\\d\n"),
            (V10_BLOCK, "a: b:c\\d\r\n", V11, "a:b\\cc\\\\d\n"),
            (V10_BLOCK, "a: b:c\\d\n", V12, "a:b\\cc\\\\d\n"),
            (V11_BLOCK, "a\\cb:c\\nd\n", V10, ""),
            (V11_BLOCK, "a:b\\cc\n", V10, "a:b:c\n"),
            (V12_BLOCK, "a:b\\rc\nd:e\r\n", V11, "d:e\n"),
            (V12_BLOCK, "a:b\\rc\nd:e\r\n", V12, "a:b\\rc\nd:e\n"),
            (V11_BLOCK, "a\\cb:c\\nd\r\n", V12, "a\\cb:c\\nd\n"),
            (V10_BLOCK, "a:b\r\n", V10, "a:b\n"),
            (V12_BLOCK, "correlation-id:b\\cc\n\0b:c", V12, "correlation-id:b\\cc\n"),
            (V12_BLOCK, "correlation-id:b\\cc\n\0b:c", V10, "correlation-id:b:c\n"),
            (OriginId::BROKER, "", V12, ""),
        ] {
            let expected = format!("/queue/q\n{expected}content-length:2\n\nhi\0");
            assert_eq!(encoded(version, origin, text, None), expected, "{origin:?} {text:?} to {version}");
        }
    }

    #[test]
    fn a_run_is_written_as_its_messages_one_by_one_are() {
        let address = Arc::new(Address::new(b"amq.topic", b"a.b"));
        let address = AddressView::new(&address);
        let properties = Properties::new(PLAIN);
        let bodies: Vec<String> = (0..120).map(|number| format!("{number:04}")).collect();
        let publication = |body| Publication::new(&properties, b"a:b\n", body);
        let run: Vec<_> = bodies.iter().map(|body| publication(body.as_bytes())).collect();
        let about = About { address: &address, deaths: None };
        for (label_id, first, settles) in
            [("7", 1, false), ("\n", 8, false), ("7", 95, true), ("x", 980, false)]
        {
            let encoder = || DeliveryEncoder::new(Version::V12, &Settings::default());
            let (label, mut shared) =
                (label(Some(label_id.as_bytes()), SESSION, AckSpan::One), SharedHeaders::for_repetition(1));
            let mut recipient = Recipient { session: SESSION_ID, label: &label, number: first, settles };
            let (mut at_once, mut one_by_one) = (Vec::new(), Vec::new());
            let written =
                encoder().deliver_run(&mut at_once, recipient, &run, about, &mut shared, usize::MAX);
            let mut encoder = encoder();
            for publication in &run {
                let delivery = about.fresh(publication.view());
                encoder.deliver(&mut one_by_one, &recipient, &delivery, &mut shared);
                recipient.number += 1;
            }
            assert_eq!(written, run.len());
            assert_eq!(at_once, one_by_one, "from {first}");
        }
    }

    /// SECURITY XPI-04.
    #[test]
    fn header_that_is_not_utf_8_reaches_clients_of_1_0_only() {
        for (version, expected) in
            [(Version::V10, "a:\\xff\\nb:c\\n"), (Version::V11, "b:c\\n"), (Version::V12, "b:c\\n")]
        {
            let encoder = DeliveryEncoder::new(version, &Settings::default());
            let mut out = Vec::new();
            for (name, value) in headers(b"a:\xff\nb:c\n", Form::Trimmed) {
                encoder.push_header(&mut out, &name, &value);
            }
            assert_eq!(out.escape_ascii().to_string(), expected, "{version}");
        }
    }

    /// A protocol whose header text holds the exchange and key of the reply address, separated by
    /// `|`.
    struct Foreign;

    impl HeaderReader for Foreign {
        fn visit_headers<'t>(&self, _: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {
            for (name, value) in [
                ("plain", "value"),
                ("co:lon", "a:b"),
                ("end", "a\nb\r\n\nc"),
                ("nul\0", "x"),
                ("content-length", "1"),
                ("subscription", "other"),
                ("reply-to", "/queue/forged"),
                ("persistent", "true"),
            ] {
                visit(Cow::Borrowed(name.as_bytes()), Value::text(value.as_bytes()));
            }
            visit(Cow::Borrowed(b"number"), Value::Uint(7));
        }

        fn reply_address<'t>(&self, message: &MessageView<'t>) -> Option<AddressParts<'t>> {
            let (exchange, key) = message.text.split_at_checked(memchr(b'|', message.text)?)?;
            Some((Cow::Borrowed(exchange), Cow::Borrowed(key.get(1..)?)))
        }
    }

    /// SECURITY XPI-01: headers of another protocol can neither change the framing nor forge
    /// STOMP's own headers.
    #[test]
    fn headers_of_another_protocol_become_lines() {
        for (version, text, expected) in [
            (Version::V12, "", "priority:4\nplain:value\nco\\clon:a\\cb\nend:a\\nb\\r\\n\\nc\nnumber:7\n"),
            (Version::V11, "", "priority:4\nplain:value\nco\\clon:a\\cb\nnumber:7\n"),
            (
                Version::V10,
                "amq.topic|_INBOX.a/b",
                "reply-to:/topic/_INBOX.a%2Fb\npriority:4\nplain:value\nnumber:7\n",
            ),
            (
                Version::V10,
                "|imori.inbox.A",
                "reply-to:/reply-queue/imori.inbox.A\npriority:4\nplain:value\nnumber:7\n",
            ),
        ] {
            let mut properties = Properties::new(OriginId(200));
            properties.priority = Some(4);
            let message = MessageView { properties: &properties, text: text.as_bytes(), body: b"" };
            let mut out = Vec::new();
            let settings = Settings { header_readers: |_| &Foreign, ..Settings::default() };
            DeliveryEncoder::new(version, &settings).push_lines(&mut out, &message, false);
            assert_eq!(str::from_utf8(&out).unwrap(), expected, "{version} {text}");
        }
    }

    #[test]
    fn dead_letter_tells_its_first_and_latest_death() {
        let address = Arc::new(Address::new(b"amq.topic", b"a.b"));
        let deaths = Deaths::default().and(&Name::from("first"), DeathReason::Expired, &address, Time(1));
        let deaths = deaths.and(&Name::from("la:st"), DeathReason::Rejected, &address, Time(2));
        let text = "expiration:5\na:b\n";
        let frame = encoded(Version::V12, PLAIN, text, Some(deaths));
        let expected = "/queue/q\na:b\nx-first-death-queue:first\nx-first-death-reason:expired\n\
             x-first-death-exchange:amq.topic\nx-death-queue:la\\cst\nx-death-reason:rejected\n\
             x-death-count:2\ncontent-length:2\n\nhi\0";
        assert_eq!(frame, expected);
    }

    #[test]
    fn only_ids_of_this_session_are_read() {
        for (id, expected) in [
            ("abcdefghijkl-12", Some((12, AckSpan::One))),
            ("abcdefghijkl.12", Some((12, AckSpan::UpTo))),
            ("abcdefghijkl-", None),
            ("abcdefghijkl-+1", None),
            ("abcdefghijkl-18446744073709551616", None),
            ("abcdefghijkl12", None),
            ("abcdefghijkm-12", None),
            ("12", None),
            ("", None),
        ] {
            assert_eq!(parse_message_id(id.as_bytes(), SESSION), expected, "{id}");
        }
    }

    #[test]
    fn cancelled_subscription_is_named() {
        let mut out = Vec::new();
        let label = label(Some(b"7"), SESSION, AckSpan::One);
        let mut encoder = DeliveryEncoder::new(Version::V12, &Settings::default());
        assert_eq!(encoder.cancelled(&mut out, &label, &Name::from("q")), AfterCancel::End);
        let expected = "ERROR\nmessage:Server cancelled subscription\nsubscription:7\n\
             version:1.0,1.1,1.2\ncontent-type:text/plain\ncontent-length:52\n\n\
             queue `q` was deleted; subscribe again to declare it\0";
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}
