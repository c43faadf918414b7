use std::borrow::Cow;
use std::sync::Arc;

use imori_core::delivery::About;
use imori_core::message::{
    Address, AddressParts, AddressView, DeathReason, HeaderReader, Properties, Publication, Span, Value,
};
use imori_core::time::Time;

use super::*;
use crate::client::SESSION;
use crate::codec::decode::{Decoder, Step};
use crate::codec::operation::ServerOp;
use crate::header_block::{SOLE_ORIGINS, header_reader};
use crate::limits::Limits;

const FOREIGN: OriginId = OriginId(200);
const PLAIN_BLOCK: OriginId = SOLE_ORIGINS.origin(PLAIN);
const HEADER_BLOCK: OriginId = SOLE_ORIGINS.origin(HEADERS);

/// A protocol with a fixed set of headers and a `reply-to` of the form `exchange/key`.
struct Foreign;

impl HeaderReader for Foreign {
    fn visit_headers<'t>(&self, _: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {
        let mut text = |name: &'static str, value: &'static str| {
            visit(Cow::Borrowed(name.as_bytes()), Value::text(value.as_bytes()));
        };
        text("plain", "value");
        text("bad:name", "value");
        text("bad-value", "a\r\nb: c");
        visit(Cow::Borrowed(b"number"), Value::Int(-1));
        visit(Cow::Borrowed(b"list"), Value::List(Vec::new()));
    }

    fn reply_address<'t>(&self, message: &MessageView<'t>) -> Option<AddressParts<'t>> {
        let key = message.property(Property::ReplyTo)?;
        let parts = key.split(|byte| *byte == b'/').map(Cow::Borrowed).collect::<Vec<_>>();
        Some((parts.first()?.clone(), parts.get(1)?.clone()))
    }
}

fn readers(origin: OriginId) -> &'static dyn HeaderReader {
    if origin == FOREIGN { &Foreign } else { header_reader(origin) }
}

fn encoder(has_headers: bool) -> DeliveryEncoder {
    DeliveryEncoder::new(has_headers, &Settings { header_readers: readers, ..Settings::default() })
}

fn encoded(has_headers: bool, origin: OriginId, reply: &str, block: &str, deaths: Option<Deaths>) -> String {
    let mut properties = Properties::new(origin);
    properties.set(Property::ReplyTo, Span::new(0, reply.len()).unwrap());
    let text = [reply, block].concat();
    if origin == FOREIGN {
        properties.priority = Some(4);
        properties.expiration_ms = Some(1000);
    }
    let (address, deaths) = (Arc::new(Address::new(b"amq.topic", b"a.b")), deaths.map(Arc::new));
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
    let (mut out, mut encoder) = (Vec::new(), encoder(has_headers));
    assert!(encoder.has_form(&delivery));
    let recipient = Recipient { session: SESSION, label: b"7", number: 1, settles: false };
    encoder.deliver(&mut out, &recipient, &delivery, &mut SharedHeaders::for_receivers(1));
    let step = Decoder::new(Limits::of_client()).server_op(&out);
    let Ok(Step::Op { op: ServerOp::Message(read), consumed }) = step else {
        panic!("no message: {}", out.escape_ascii());
    };
    assert_eq!((read.subject, read.sid, read.payload), (&b"a.b"[..], &b"7"[..], &b"hi"[..]));
    assert_eq!(consumed, out.len());
    String::from_utf8(out).unwrap()
}

#[test]
fn a_run_is_written_as_its_messages_one_by_one_are() {
    let address = Arc::new(Address::new(b"amq.topic", b"a.b"));
    let address = AddressView::new(&address);
    for (origin, text, has_headers) in
        [(PLAIN_BLOCK, "", true), (HEADER_BLOCK, "NATS/1.0\r\na: b\r\n\r\n", true), (FOREIGN, "", false)]
    {
        let properties = Properties::new(origin);
        let bodies = ["1111", "2222", "3333"];
        let publication =
            |body: &'static str| Publication::new(&properties, text.as_bytes(), body.as_bytes());
        let run = bodies.map(publication);
        let about = About { address: &address, deaths: None };
        let recipient = Recipient { session: SESSION, label: b"7", number: 1, settles: false };
        let mut shared = SharedHeaders::for_repetition(1);
        let (mut at_once, mut one_by_one) = (Vec::new(), Vec::new());
        let mut encoder = encoder(has_headers);
        let written = encoder.deliver_run(&mut at_once, recipient, &run, about, &mut shared, usize::MAX);
        for publication in &run {
            let delivery = about.fresh(publication.view());
            encoder.deliver(&mut one_by_one, &recipient, &delivery, &mut shared);
        }
        assert_eq!(written, run.len());
        assert_eq!(at_once.escape_ascii().to_string(), one_by_one.escape_ascii().to_string(), "{text}");
    }
}

#[test]
fn a_client_gets_what_another_sent() {
    let block = "NATS/1.0\r\nA: b\r\n\r\n";
    for (has_headers, origin, reply, block, expected) in [
        (true, PLAIN_BLOCK, "", "", "MSG a.b 7 2\r\nhi\r\n"),
        (false, PLAIN_BLOCK, "r.1", "", "MSG a.b 7 r.1 2\r\nhi\r\n"),
        (true, HEADER_BLOCK, "", block, "HMSG a.b 7 18 20\r\nNATS/1.0\r\nA: b\r\n\r\nhi\r\n"),
        (true, HEADER_BLOCK, "r", block, "HMSG a.b 7 r 18 20\r\nNATS/1.0\r\nA: b\r\n\r\nhi\r\n"),
        (true, HEADER_BLOCK, "r", "abc", "HMSG a.b 7 r 3 5\r\nabchi\r\n"),
        (false, HEADER_BLOCK, "r", block, "MSG a.b 7 r 2\r\nhi\r\n"),
    ] {
        assert_eq!(encoded(has_headers, origin, reply, block, None), expected);
    }
}

/// SECURITY XPI-01: headers of another protocol cannot change the framing.
#[test]
fn headers_of_another_protocol_become_a_block() {
    for (has_headers, reply, expected) in [
        (
            true,
            "amq.topic/r",
            "HMSG a.b 7 r 79 81\r\nNATS/1.0\r\npriority: 4\r\nexpiration: 1000\r\nplain: value\r\nnumber: -1\r\nlist: []\r\n\r\nhi\r\n",
        ),
        (false, "/q q", "MSG a.b 7 imori.queue.q%20q 2\r\nhi\r\n"),
        (false, "amq.topic/a\r\nb", "MSG a.b 7 2\r\nhi\r\n"),
        (false, "elsewhere/x", "MSG a.b 7 2\r\nhi\r\n"),
    ] {
        assert_eq!(encoded(has_headers, FOREIGN, reply, "", None), expected);
    }
}

#[test]
fn a_dead_letter_says_where_it_died() {
    let deaths = || {
        let address = Arc::new(Address::new(b"x", b"k"));
        Deaths::default().and(&Name::from("q"), DeathReason::Expired, &address, Time(0))
    };
    let block = "NATS/1.0\r\nA: b\r\nexpiration: 5\r\nx-death-count: 9\r\n\r\n";
    let died = "x-first-death-queue: q\r\nx-first-death-reason: expired\r\nx-first-death-exchange: x\r\n\
                x-death-queue: q\r\nx-death-reason: expired\r\nx-death-count: 1\r\n";
    for (origin, reply, block, expected) in [
        (PLAIN_BLOCK, "r", "", format!("NATS/1.0\r\n{died}\r\n")),
        (HEADER_BLOCK, "r", block, format!("NATS/1.0\r\nA: b\r\n{died}\r\n")),
    ] {
        let line = format!("HMSG a.b 7 r {} {}\r\n", expected.len(), expected.len() + 2);
        assert_eq!(encoded(true, origin, reply, block, Some(deaths())), format!("{line}{expected}hi\r\n"));
    }
}

#[test]
fn what_has_no_form_is_known() {
    let encoder = encoder(true);
    for (origin, subject, expected) in [
        (FOREIGN, &b"a.b"[..], true),
        (FOREIGN, b"a b", false),
        (FOREIGN, b"a\r\nMSG b 1 0", false),
        (FOREIGN, b"a..b", false),
        (FOREIGN, b"", false),
        (FOREIGN, "ü".as_bytes(), true),
        (FOREIGN, b"\xff", false),
        (PLAIN_BLOCK, b"\xff", true),
        // Not checked: a NATS client cannot send a subject that another could not receive.
        (PLAIN_BLOCK, b"a\0", true),
    ] {
        let (properties, address) = (Properties::new(origin), Arc::new(Address::new(b"amq.topic", subject)));
        let message = MessageView { properties: &properties, text: b"", body: b"" };
        let delivery = Delivery {
            message,
            shared_body: None,
            address: &AddressView::new(&address),
            deaths: None,
            sequence: 0,
            failures: 0,
            is_redelivered: false,
            is_last: true,
            is_of_stream: false,
        };
        assert_eq!(encoder.has_form(&delivery), expected, "{}", subject.escape_ascii());
    }
}

#[test]
fn only_a_slow_consumer_is_told_why_it_is_cut() {
    let mut encoder = encoder(true);
    for (reason, expected) in [
        (CutReason::TooSlow { unsent_max: 1 }, "-ERR 'Slow Consumer'\r\n"),
        (CutReason::Unfinished { seconds: 1 }, "-ERR 'Stale Connection'\r\n"),
        (CutReason::ClosedByOperator { reason: "x".into() }, ""),
        (CutReason::ShuttingDown, ""),
        (CutReason::Fault, ""),
    ] {
        let mut out = Vec::new();
        encoder.cut(&mut out, &reason);
        assert_eq!(str::from_utf8(&out).unwrap(), expected);
    }
}

/// Whether a delivery with `body_len` bytes of body fits, if `max_payload` is 1,000.
fn fits(has_headers: bool, origin: OriginId, body_len: usize, deaths: Option<Deaths>) -> bool {
    let limits = Limits { payload_bytes_max: 1000, ..Limits::default() };
    let settings = Settings { header_readers: readers, limits, ..Settings::default() };
    let (properties, body) = (Properties::new(origin), vec![b'x'; body_len]);
    let (address, deaths) = (Arc::new(Address::new(b"amq.topic", b"a.b")), deaths.map(Arc::new));
    let delivery = Delivery {
        message: MessageView { properties: &properties, text: b"", body: &body },
        shared_body: None,
        address: &AddressView::new(&address),
        deaths: deaths.as_ref(),
        sequence: 0,
        failures: 0,
        is_redelivered: false,
        is_last: true,
        is_of_stream: false,
    };
    DeliveryEncoder::new(has_headers, &settings).has_form(&delivery)
}

#[test]
fn delivery_over_max_payload_has_no_form() {
    // The version line, three headers and the empty line.
    let block = b"NATS/1.0\r\nplain: value\r\nnumber: -1\r\nlist: []\r\n\r\n".len();
    for (has_headers, body_len, expected) in [
        (false, 1000, true),
        (false, 1001, false),
        (true, 1000 - block, true),
        (true, 1001 - block, false),
        (true, 100_000, false),
    ] {
        assert_eq!(fits(has_headers, FOREIGN, body_len, None), expected, "{has_headers} {body_len}");
    }
    // The sender of a NATS message was already held to the limit.
    assert!(fits(true, PLAIN_BLOCK, 1000, None));
}
