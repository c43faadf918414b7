//! Messages as they are read from clients and written to receivers.

use std::borrow::Cow;
use std::sync::Arc;

use imori_amqp10::codec::composite::Composite;
use imori_amqp10::codec::composites::{self, Header};
use imori_amqp10::codec::condition;
use imori_amqp10::codec::map::MapBuf;
use imori_amqp10::codec::restricted::MessageId;
use imori_amqp10::codec::sections::{Section, Sections};
use imori_amqp10::codec::value::{self, Symbol, Timestamp};
use imori_amqp10::for_tests::{CONTENT, Node, SECTIONS};
use imori_amqp10::limits::ADDED_ANNOTATIONS_BYTES_MAX;
use imori_amqp10::message::{Incoming, annotated, body, message_id, node_address, push_head, read, sequence};
use imori_amqp10::{SOLE_ORIGINS, header_reader};
use imori_core::delivery::{About, Delivery};
use imori_core::message::{
    Address, AddressView, DeathReason, Deaths, HeaderReader, MessageView, OriginId, Properties, Property,
    Span, Value,
};
use imori_core::name::Name;
use imori_core::time::Time;

use crate::header_block::section;

/// Encodes the sections before a bare message, which are not forwarded as received.
fn transport() -> Vec<u8> {
    [section(0x70, 0xc0, 3, b"\x41\x50\x07\x52\x09"), section(0x71, 0xc1, 2, b"\xa3\x01d\x40")].concat()
}

fn annotations() -> Vec<u8> {
    section(0x72, 0xc1, 4, b"\xa3\x01n\x41\xa3\x0ex-opt-jms-dest\x51\x01")
}

fn properties() -> Vec<u8> {
    let fields =
        b"\xa1\x02id\xa0\x05guest\xa1\x02to\xa1\x04kind\xa1\x05reply\xa1\x04corr\xa3\x03t/p\xa3\x04gzip";
    section(0x73, 0xc0, 8, fields)
}

fn application() -> Vec<u8> {
    section(0x74, 0xc1, 4, b"\xa1\x06app-id\xa1\x03app\xa1\x01k\x54\x07")
}

fn incoming(payload: &[u8]) -> Incoming<'_> {
    read(payload, SOLE_ORIGINS, b"guest").unwrap_or_else(|error| panic!("{}", error.text()))
}

fn readers(origin: OriginId) -> &'static dyn HeaderReader {
    if origin == OriginId(99) { &Foreign } else { header_reader(origin) }
}

/// Returns the payload of a delivery of `message`.
fn delivered(message: MessageView<'_>, deaths: Option<&Arc<Deaths>>, failures: u32) -> Vec<u8> {
    let address = Arc::new(Address::new(b"amq.topic", b"a.b"));
    let address = AddressView::new(&address);
    let is_redelivered = failures > 0;
    let address = &address;
    let delivery =
        Delivery { sequence: 1, failures, is_redelivered, ..About { address, deaths }.fresh(message) };
    let mut out = Vec::new();
    let body = body(&delivery, SOLE_ORIGINS, readers);
    push_head(&mut out, &delivery, body.len(), SOLE_ORIGINS, readers);
    out.extend_from_slice(&body);
    out
}

fn view<'a>(incoming: &'a Incoming<'_>) -> MessageView<'a> {
    MessageView { properties: &incoming.properties, text: &incoming.text, body: incoming.body }
}

fn all_sections(payload: &[u8]) -> Vec<Section<'_>> {
    let mut sections = Sections::new(payload);
    std::iter::from_fn(|| sections.next_section().expect("it is right")).collect()
}

#[test]
fn the_bare_message_is_the_same_bytes_whatever_its_body() {
    let bodies: [(&[u8], u8, &[u8]); 12] = [
        (b"\x00\x53\x75\xa0\x04data", CONTENT, b"data"),
        (b"\x00\x53\x75\xb0\x00\x00\x00\x04data", CONTENT, b"data"),
        (b"\x00\xa3\x10amqp:data:binary\xa0\x04data", CONTENT, b"data"),
        (b"\x00\x53\x75\xa0\x00", CONTENT, b""),
        (b"\x00\x53\x77\xa1\x04text", CONTENT, b"text"),
        (b"\x00\x53\x77\xa0\x05bytes", CONTENT, b"bytes"),
        (b"\x00\x53\x77\xc1\x05\x02\xa1\x01k\x41", SECTIONS, b"\x00\x53\x77\xc1\x05\x02\xa1\x01k\x41"),
        (b"\x00\x53\x76\xc0\x02\x01\x40", SECTIONS, b"\x00\x53\x76\xc0\x02\x01\x40"),
        (
            b"\x00\x53\x75\xa0\x01a\x00\x53\x75\xa0\x01b",
            SECTIONS,
            b"\x00\x53\x75\xa0\x01a\x00\x53\x75\xa0\x01b",
        ),
        (
            b"\x00\x53\x75\xa0\x01a\x00\x53\x78\xc1\x01\x00",
            SECTIONS,
            b"\x00\x53\x75\xa0\x01a\x00\x53\x78\xc1\x01\x00",
        ),
        (b"\x00\x53\x77\x40", SECTIONS, b"\x00\x53\x77\x40"),
        (b"", SECTIONS, b""),
    ];
    for (body, form, expected) in bodies {
        let fronts = [
            Vec::new(),
            annotations(),
            [annotations(), properties()].concat(),
            [properties(), application()].concat(),
        ];
        for front in &fronts {
            for transport in [Vec::new(), transport()] {
                let kept = [front, body].concat();
                let payload = [&transport[..], &kept].concat();
                let incoming = incoming(&payload);
                assert_eq!(
                    SOLE_ORIGINS.form(incoming.properties.origin),
                    Some(form),
                    "{}",
                    body.escape_ascii()
                );
                assert_eq!(incoming.body, expected);
                assert!(matches!(incoming.text, Cow::Borrowed(_)), "nothing is copied");
                let out = delivered(view(&incoming), None, 0);
                assert!(out.ends_with(&kept), "{} in {}", kept.escape_ascii(), out.escape_ascii());
                let Some(Section::Header(header)) = all_sections(&out).first().copied() else {
                    panic!("{out:?}")
                };
                let is_long = !transport.is_empty();
                let expected = Header {
                    durable: is_long,
                    priority: if is_long { 7 } else { 4 },
                    ttl: is_long.then_some(9),
                    first_acquirer: Some(true),
                    delivery_count: 0,
                };
                assert_eq!(header, expected);
                let mut written = Vec::new();
                header.encode(&mut written);
                assert_eq!(out.len(), written.len() + kept.len(), "delivery annotations end here");
            }
        }
    }
}

#[test]
fn properties_are_found_in_the_block() {
    let payload =
        [transport(), annotations(), properties(), application(), b"\x00\x53\x75\xa0\x01x".to_vec()].concat();
    let incoming = incoming(&payload);
    let message = view(&incoming);
    let texts = [
        (Property::MessageId, "id"),
        (Property::UserId, "guest"),
        (Property::Type, "kind"),
        (Property::ReplyTo, "reply"),
        (Property::CorrelationId, "corr"),
        (Property::ContentType, "t/p"),
        (Property::ContentEncoding, "gzip"),
        (Property::AppId, "app"),
    ];
    for (property, text) in texts {
        assert_eq!(message.property(property), Some(text.as_bytes()), "{property:?}");
    }
    assert_eq!((incoming.to, incoming.jms_destination), (Some("to"), Some(1)));
    let properties = &incoming.properties;
    assert_eq!(
        (properties.is_persistent, properties.priority, properties.expiration_ms),
        (true, Some(7), Some(9))
    );
}

#[test]
fn an_identifier_that_is_a_number_has_a_text_and_stays_a_number() {
    let uuid = [&[0x98][..], &(0..16).collect::<Vec<u8>>()].concat();
    let properties = section(0x73, 0xc0, 6, &[&b"\x53\x2a\x40\x40\x40\x40"[..], &uuid].concat());
    let payload = [&properties[..], b"\x00\x53\x77\xa1\x01x"].concat();
    let incoming = incoming(&payload);
    let message = view(&incoming);
    assert_eq!(message.property(Property::MessageId), Some(&b"42"[..]));
    let text = b"urn:uuid:00010203-0405-0607-0809-0a0b0c0d0e0f";
    assert_eq!(message.property(Property::CorrelationId), Some(&text[..]));
    assert!(delivered(message, None, 0).ends_with(&payload));
    // A UUID that returns through another protocol is a UUID again.
    let expected = MessageId::Uuid([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(message_id(text), expected);
    for other in [
        "urn:uuid:0001",
        "00010203-0405-0607-0809-0a0b0c0d0e0f",
        "urn:uuid:00010203-0405-0607-0809-0a0b0c0d0e0g",
    ] {
        assert_eq!(message_id(other.as_bytes()), MessageId::String(other));
    }
    assert_eq!(message_id(b"\xff"), MessageId::Binary(b"\xff"));
}

#[test]
fn times_are_told_to_the_broker() {
    let times = b"\x40\x40\x40\x40\x40\x40\x40\x40\x83\x00\x00\x00\x00\x00\x00\x27\x10\x83\x00\x00\x00\x00\x00\x00\x0f\xa0";
    let delay = section(0x72, 0xc1, 2, b"\xa3\x14x-opt-delivery-delay\x55\x07");
    let time = section(0x72, 0xc1, 2, b"\xa3\x13x-opt-delivery-time\x83\x00\x00\x00\x00\x00\x00\x00\x63");
    let delayed = [delay, section(0x73, 0xc0, 10, times)].concat();
    let delayed = incoming(&delayed);
    assert_eq!((delayed.delay_ms, delayed.deliver_at_ms), (Some(7), None));
    assert_eq!((delayed.expires_at_ms, delayed.properties.timestamp), (Some(10_000), Some(4)));
    assert_eq!(header_reader(delayed.properties.origin).timestamp_ms(&view(&delayed)), Some(4000));
    let timed = incoming(&time);
    assert_eq!((timed.delay_ms, timed.deliver_at_ms), (None, Some(99)));
}

#[test]
fn a_payload_that_is_no_message_is_refused() {
    let many: Vec<u8> = [&b"\xa1\x01k\x40"[..]].concat().repeat(1025);
    let many =
        [&b"\x00\x53\x74\xd1"[..], &(many.len() as u32 + 4).to_be_bytes(), &2050_u32.to_be_bytes(), &many]
            .concat();
    let long = [
        &b"\x00\x53\x73\xd0"[..],
        &70_009_u32.to_be_bytes(),
        &1_u32.to_be_bytes(),
        b"\xb1",
        &70_000_u32.to_be_bytes(),
        &[b'x'; 70_000],
    ]
    .concat();
    let rows: [(&[u8], Symbol<'_>, &str); 12] = [
        (b"x", condition::DECODE_ERROR, "a value without a descriptor stands where a described list should"),
        (
            b"\x00\x53\x01\xa0\x00",
            condition::DECODE_ERROR,
            "the descriptor is not one of a section of a message; see the specification",
        ),
        (
            b"\x00\x53\x75\xa0\x00\x00\x53\x74\xc1\x01\x00",
            condition::DECODE_ERROR,
            "the sections of a message are not in their order",
        ),
        (
            b"\x00\x53\x77\x40\x00\x53\x77\x40",
            condition::DECODE_ERROR,
            "the sections of a message are not in their order",
        ),
        (
            b"\x00\x53\x75\xa0\x00\x00\x53\x77\x40",
            condition::DECODE_ERROR,
            "the sections of a message are not in their order",
        ),
        (
            b"\x00\x53\x73\x45\x00\x53\x73\x45",
            condition::DECODE_ERROR,
            "the sections of a message are not in their order",
        ),
        (
            b"\x00\x53\x75\xa1\x01x",
            condition::DECODE_ERROR,
            "the value of a section of a message is of another type; send `binary`",
        ),
        (b"\x00\x53\x77\xa1\x01\xff", condition::DECODE_ERROR, "a string is not UTF-8"),
        (
            b"\x00\x53\x74\xc1\x05\x02\xa3\x01k\x40",
            condition::DECODE_ERROR,
            "the value of a section of a message is of another type; send `map of strings`",
        ),
        (
            b"\x00\x53\x73\xc0\x09\x02\x40\xa0\x05other",
            condition::UNAUTHORIZED_ACCESS,
            "the user-id of the message is `other` and the user `guest`",
        ),
        (&many, condition::RESOURCE_LIMIT_EXCEEDED, "1025 application properties are more than the 1024"),
        (
            &long,
            condition::RESOURCE_LIMIT_EXCEEDED,
            "the sections in front of the body have 70017 bytes and may have 65535",
        ),
    ];
    for (payload, condition, text) in rows {
        let error = read(payload, SOLE_ORIGINS, b"guest").unwrap_err();
        assert_eq!(error.condition(), condition, "{}", error.text());
        assert!(error.text().starts_with(text), "{}", error.text());
    }
}

#[test]
fn the_last_message_of_a_group_is_known_by_its_number() {
    for (group, sequence, expected) in [
        (&b"\xa1\x01g"[..], &b"\x70\xff\xff\xff\xff"[..], true),
        (b"\xa1\x01g", b"\x70\xff\xff\xff\xfe", false),
        (b"\xa1\x01g", b"\x52\x01", false),
        (b"\xa1\x01g", b"\x40", false),
        (b"\x40", b"\x70\xff\xff\xff\xff", false),
    ] {
        let fields = [&[0x40; 10][..], group, sequence].concat();
        let payload = [&section(0x73, 0xc0, 12, &fields)[..], b"\x00\x53\x75\xa0\x00"].concat();
        let incoming = incoming(&payload);
        assert_eq!(incoming.properties.has(Property::GroupEnd), expected, "{group:?} {sequence:?}");
        assert!(!expected || view(&incoming).property(Property::GroupEnd) == Some(b"g"));
    }
}

#[test]
fn a_number_in_a_group_is_read_with_a_sign_or_without() {
    for (value, expected) in [
        (Value::text(b"3"), Some(3)),
        (Value::text(b"-1"), Some(u32::MAX)),
        (Value::text(b"4294967295"), Some(u32::MAX)),
        (Value::text(b"4294967296"), None),
        (Value::text(b"-2147483649"), None),
        (Value::text(b"x"), None),
        (Value::Int(-2), Some(u32::MAX - 1)),
        (Value::Uint(5), Some(5)),
        (Value::Bool(true), None),
    ] {
        assert_eq!(sequence(&value), expected, "{value:?}");
    }
}

/// A protocol with headers of every type.
struct Foreign;

impl HeaderReader for Foreign {
    fn visit_headers<'t>(&self, _: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {
        let headers = [
            (&b"text"[..], Value::text(b"t")),
            (b"text", Value::text(b"second")),
            (b"int", Value::Int(-5)),
            (b"uint", Value::Uint(5)),
            (b"large", Value::Uint(u64::MAX)),
            (b"float", Value::Float(0.5)),
            (b"time", Value::Timestamp(7)),
            (b"null", Value::Null),
            (b"bool", Value::Bool(true)),
            (b"bytes", Value::text(b"\xff")),
            (b"list", Value::List(vec![Value::Int(1), Value::text(b"a")])),
            (b"\xff", Value::Int(1)),
            (b"JMSXGroupID", Value::text(b"group")),
            (b"JMSXGroupSeq", Value::text(b"3")),
        ];
        headers.into_iter().for_each(|(name, value)| visit(Cow::Borrowed(name), value));
    }
}

#[test]
fn a_message_of_another_protocol_is_written_anew() {
    let text = "text/plainidreplyüapp".as_bytes();
    let mut properties = Properties::new(OriginId(99));
    properties.set(Property::ContentType, Span::new(0, 10).unwrap());
    properties.set(Property::MessageId, Span::new(10, 2).unwrap());
    properties.set(Property::ReplyTo, Span::new(12, 7).unwrap());
    properties.set(Property::AppId, Span::new(19, 3).unwrap());
    // A symbol must be ASCII, so this property is omitted.
    properties.set(Property::ContentEncoding, Span::new(17, 2).unwrap());
    properties.is_persistent = true;
    properties.timestamp = Some(5);
    let body = vec![b'b'; 300];
    let message = MessageView { properties: &properties, text, body: &body };
    let out = delivered(message, None, 2);
    let sections = all_sections(&out);
    let [
        Section::Header(header),
        Section::MessageAnnotations(annotations),
        Section::Properties(properties),
        Section::ApplicationProperties(application),
        Section::Data(data),
    ] = sections[..]
    else {
        panic!("{sections:?}")
    };
    let expected = Header { durable: true, priority: 4, ttl: None, first_acquirer: None, delivery_count: 2 };
    assert_eq!(header, expected);
    assert_eq!(annotations.find("x-exchange"), Some(value::Value::String("amq.topic")));
    assert_eq!(annotations.find("x-routing-key"), Some(value::Value::String("a.b")));
    let expected = composites::Properties {
        message_id: Some(MessageId::String("id")),
        reply_to: Some("/queues/reply%C3%BC"),
        content_type: Some(Symbol("text/plain")),
        creation_time: Some(Timestamp(5000)),
        group_id: Some("group"),
        group_sequence: Some(3),
        ..composites::Properties::default()
    };
    assert_eq!(properties, expected);
    let expected = [
        ("text", value::Value::String("t")),
        ("int", value::Value::Long(-5)),
        ("uint", value::Value::Long(5)),
        ("large", value::Value::Ulong(u64::MAX)),
        ("float", value::Value::Double(0.5)),
        ("time", value::Value::Timestamp(Timestamp(7))),
        ("null", value::Value::Null),
        ("bool", value::Value::Bool(true)),
        ("bytes", value::Value::Binary(b"\xff")),
        ("list", value::Value::String(r#"[1,"a"]"#)),
        ("app-id", value::Value::String("app")),
    ];
    let expected = expected.map(|(name, value)| (value::Value::String(name), value));
    assert_eq!(application.iter().collect::<Vec<_>>(), expected);
    assert_eq!(data, body);
}

#[test]
fn a_dead_letter_tells_its_history_in_annotations() {
    let forged = section(0x72, 0xc1, 4, b"\xa3\x01n\x41\xa3\x0cx-opt-deaths\xa1\x06forged");
    let payload = [&forged[..], &properties(), b"\x00\x53\x77\xa1\x01x"].concat();
    let mut incoming = incoming(&payload);
    incoming.properties.expiration_ms = Some(1);
    let address = Arc::new(Address::new(b"x", b"k"));
    let deaths = Deaths::default().and(&Name::from("q"), DeathReason::Expired, &address, Time(7_000_000));
    let deaths = Arc::new(deaths);
    let out = delivered(view(&incoming), Some(&deaths), 0);
    assert!(out.ends_with(&payload[forged.len()..]), "the bare message is not touched");
    let sections = all_sections(&out);
    let [Section::Header(header), Section::MessageAnnotations(annotations), ..] = sections[..] else {
        panic!("{sections:?}")
    };
    assert_eq!(header.ttl, None);
    assert_eq!(annotations.find("n"), Some(value::Value::Bool(true)));
    assert_eq!(annotations.find("x-first-death-queue"), Some(value::Value::String("q")));
    assert_eq!(annotations.find("x-last-death-exchange"), Some(value::Value::String("x")));
    let Some(value::Value::Array(list)) = annotations.find("x-opt-deaths") else { panic!("{annotations:?}") };
    let Some(value::Value::Map(death)) = list.iter().next() else { panic!("{list:?}") };
    assert_eq!(death.find("reason"), Some(value::Value::Symbol(Symbol("expired"))));
    assert_eq!(death.find("count"), Some(value::Value::Ulong(1)));
    assert_eq!(death.find("first-time"), Some(value::Value::Timestamp(Timestamp(7000))));
    let Some(value::Value::Array(keys)) = death.find("routing-keys") else { panic!("{death:?}") };
    assert_eq!(keys.iter().collect::<Vec<_>>(), [value::Value::String("k")]);
}

#[test]
fn an_address_is_read_as_the_node_that_it_was_written_for() {
    for (exchange, subject, expected) in [
        (&b""[..], &b"q"[..], Some("/queues/q")),
        (b"", b"a/b c%", Some("/queues/a%2Fb%20c%25")),
        (b"amq.topic", b"a.*", Some("/exchanges/amq.topic/a.%2A")),
        (b"", b"", None),
    ] {
        let address = node_address(exchange, subject);
        assert_eq!(address.as_deref(), expected);
        if let Some(address) = address {
            let node = Node::parse(&address, false).unwrap();
            assert_eq!(node.address(), (exchange, subject));
        }
    }
}

#[test]
fn receivers_add_annotations_to_those_of_a_message() {
    let own = section(0x72, 0xc1, 4, b"\xa3\x05x-own\x41\xa3\x05x-old\xa1\x06before");
    let payload = [own, application()].concat();
    let incoming = incoming(&payload);
    let more = MapBuf::new()
        .with("x-old", value::Value::String("after"))
        .with("x-opt-deaths", value::Value::String("forged"))
        .with("x-new", value::Value::Ulong(1));
    let noted = annotated(None, more.map()).expect("it is short");
    let again = MapBuf::new().with("x-new", value::Value::Ulong(2));
    let noted = annotated(Some(&noted), again.map()).expect("it is short");
    let address = Arc::new(Address::new(b"", b"q"));
    let noted = Deaths::default().with_annotations(Some(noted));
    let died = noted.and(&Name::from("q"), DeathReason::Rejected, &address, Time(7_000_000));
    for (history, deaths) in [(noted, 0), (died, 1)] {
        let out = delivered(view(&incoming), Some(&Arc::new(history)), 0);
        let [_, Section::MessageAnnotations(annotations), ..] = all_sections(&out)[..] else {
            panic!("{out:?}")
        };
        for (name, expected) in [
            ("x-own", value::Value::Bool(true)),
            ("x-old", value::Value::String("after")),
            ("x-new", value::Value::Ulong(2)),
        ] {
            assert_eq!(annotations.find(name), Some(expected));
        }
        let told = match annotations.find("x-opt-deaths") {
            Some(value::Value::Array(list)) => list.len(),
            _ => 0,
        };
        assert_eq!((told, annotations.len()), (deaths, if deaths > 0 { 10 } else { 3 }));
        assert!(
            out.ends_with(&payload[payload.len() - application().len()..]),
            "the bare message is as it was"
        );
    }
    let long = "x".repeat(ADDED_ANNOTATIONS_BYTES_MAX);
    let over = MapBuf::new().with("x-long", value::Value::String(&long));
    assert!(annotated(None, over.map()).is_none(), "SECURITY LIM-10");
}
