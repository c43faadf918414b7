//! Headers and bodies as other protocols read them.

use std::borrow::Cow;

use imori_amqp10::for_tests::{CONTENT, SECTIONS};
use imori_amqp10::{SOLE_ORIGINS, reader_of_form};
use imori_core::message::{MessageView, Properties, Property, Span, Value};

/// Encodes a section that is a list or a map; `values` are encoded already.
pub(crate) fn section(code: u8, octet: u8, count: u8, values: &[u8]) -> Vec<u8> {
    [&[0x00, 0x53, code, octet, values.len() as u8 + 1, count][..], values].concat()
}

fn headers(text: &[u8]) -> Vec<(String, Value<'_>)> {
    let mut headers = Vec::new();
    reader_of_form(CONTENT).visit_headers(text, &mut |name, value| {
        headers.push((String::from_utf8_lossy(&name).into_owned(), value));
    });
    headers
}

#[test]
fn application_properties_are_headers_with_their_types() {
    let application = b"\xa1\x01a\xa1\x01t\xa1\x01b\x41\xa1\x01c\x55\xff\xa1\x01d\x53\x07\xa1\x01e\x72\x3f\x00\x00\x00\
        \xa1\x01f\x83\x00\x00\x00\x00\x00\x00\x00\x09\xa1\x01g\xa0\x02\x00\xff\xa1\x01h\x40\xa1\x01i\x73\x00\x00\x00\x7a";
    let expected = [
        ("a", Value::text(b"t")),
        ("b", Value::Bool(true)),
        ("c", Value::Int(-1)),
        ("d", Value::Uint(7)),
        ("e", Value::Float(0.5)),
        ("f", Value::Timestamp(9)),
        ("g", Value::Binary(Cow::Borrowed(b"\0\xff"))),
        ("h", Value::Null),
        ("i", Value::text(b"z")),
    ];
    let block = section(0x74, 0xc1, 18, application);
    assert_eq!(headers(&block), expected.clone().map(|(name, value)| (name.to_owned(), value)));
    let one = |name: &str| reader_of_form(CONTENT).header(&block, name.as_bytes());
    for (name, value) in expected {
        assert_eq!(one(name), Some(value), "{name}");
    }
    assert_eq!(one("j"), None);
}

#[test]
fn groups_are_headers_as_jms_names_them() {
    let properties =
        section(0x73, 0xc0, 13, b"\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\xa1\x01g\x52\x05\xa1\x01r");
    let block = [&properties[..], b"\x00\x53\x75\xa0\x09"].concat();
    let expected = [
        ("JMSXGroupID", Value::text(b"g")),
        ("JMSXGroupSeq", Value::Int(5)),
        ("JMS_AMQP_REPLY_TO_GROUP_ID", Value::text(b"r")),
    ];
    assert_eq!(headers(&block), expected.clone().map(|(name, value)| (name.to_owned(), value)));
    for (name, value) in expected {
        assert_eq!(reader_of_form(CONTENT).header(&block, name.as_bytes()), Some(value), "{name}");
    }
}

#[test]
fn a_number_in_a_group_has_the_sign_of_jms() {
    let fields = b"\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\xa1\x01g\x70\xff\xff\xff\xfe";
    let block = section(0x73, 0xc0, 12, fields);
    assert_eq!(headers(&block)[1], ("JMSXGroupSeq".to_owned(), Value::Int(-2)));
    assert_eq!(reader_of_form(CONTENT).header(&block, b"JMSXGroupSeq"), Some(Value::Int(-2)));
}

// SECURITY AUTH-08.
#[test]
fn a_history_of_deaths_that_a_client_tells_crosses_to_nobody() {
    let application = b"\xa1\x07x-death\xa1\x01f\xa1\x14x-first-death-reason\xa1\x01f\xa1\x01k\x41";
    assert_eq!(headers(&section(0x74, 0xc1, 6, application)), [("k".to_owned(), Value::Bool(true))]);
}

#[test]
fn an_address_for_replies_is_that_of_a_node() {
    for (kind, address, expected) in [
        (None, "q", Some(("", "q"))),
        (Some(0), "q", Some(("", "q"))),
        (Some(1), "a.b", Some(("amq.topic", "a.b"))),
        (Some(3), "a.b", Some(("amq.topic", "a.b"))),
        (None, "/queues/a%2Fb", Some(("", "a/b"))),
        (None, "/exchanges/x/k", Some(("x", "k"))),
        (None, "/queues/%", None),
        (None, "", None),
    ] {
        let mut text = match kind {
            Some(kind) => section(0x72, 0xc1, 2, &[&b"\xa3\x12x-opt-jms-reply-to\x51"[..], &[kind]].concat()),
            None => Vec::new(),
        };
        let head = [
            0x00,
            0x53,
            0x73,
            0xc0,
            address.len() as u8 + 7,
            5,
            0x40,
            0x40,
            0x40,
            0x40,
            0xa1,
            address.len() as u8,
        ];
        text.extend_from_slice(&head);
        let start = text.len();
        text.extend_from_slice(address.as_bytes());
        let mut properties = Properties::new(SOLE_ORIGINS.origin(CONTENT));
        properties.set(Property::ReplyTo, Span::new(start, address.len()).unwrap());
        let message = MessageView { properties: &properties, text: &text, body: b"" };
        let found = reader_of_form(CONTENT).reply_address(&message);
        let expected = expected.map(|(exchange, subject)| {
            (Cow::Borrowed(exchange.as_bytes()), Cow::Borrowed(subject.as_bytes()))
        });
        assert_eq!(found, expected, "{address}");
    }
}

#[test]
fn a_body_is_what_other_protocols_can_read() {
    let rows: [(&[u8], &str); 15] = [
        (b"", ""),
        (b"\x00\x53\x75\xa0\x01a\x00\x53\x75\xa0\x00\x00\x53\x75\xa0\x01b", "ab"),
        (b"\x00\x53\x75\xa0\x01a\x00\x53\x78\xc1\x01\x00", "a"),
        (b"\x00\x53\x77\xa1\x04text\x00\x53\x78\xc1\x01\x00", "text"),
        (b"\x00\x53\x77\xa3\x01s", "s"),
        (b"\x00\x53\x77\x40", ""),
        (b"\x00\x53\x77\x41", "true"),
        (b"\x00\x53\x77\x54\xfe", "-2"),
        (b"\x00\x53\x77\xc1\x08\x04\xa1\x01k\x41\x54\x01\x40", r#"{"k":true,"1":null}"#),
        (b"\x00\x53\x77\xc0\x06\x02\xa1\x01a\x50\x07", r#"["a",7]"#),
        (b"\x00\x53\x77\x45", "[]"),
        (b"\x00\x53\x77\xe0\x04\x02\x50\x01\x02", "[1,2]"),
        (b"\x00\x53\x77\x00\xa3\x01d\xc0\x02\x01\x40", "[null]"),
        (b"\x00\x53\x76\xc0\x03\x01\x50\x01\x00\x53\x76\x45\x00\x53\x76\xc0\x03\x01\x50\x02", "[1,2]"),
        (
            b"\x00\x53\x77\x98\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f",
            "00010203-0405-0607-0809-0a0b0c0d0e0f",
        ),
    ];
    let properties = Properties::new(SOLE_ORIGINS.origin(SECTIONS));
    for (body, expected) in rows {
        let message = MessageView { properties: &properties, text: b"", body };
        let shown = reader_of_form(SECTIONS).body(&message);
        assert_eq!(String::from_utf8_lossy(&shown), expected, "{}", body.escape_ascii());
        let content = reader_of_form(CONTENT).body(&message);
        assert_eq!(&*content, body, "a content is what it is");
    }
}
