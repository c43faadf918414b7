//! What the broker reads in a message's properties.

use std::borrow::Cow;

use imori_amqp091::codec::properties::{BasicProperties, TextProperty};
use imori_amqp091::codec::push::push_field;
use imori_amqp091::codec::table::{FieldValue, Table};
use imori_amqp091::for_tests::{BASIC, Requests, read, value};
use imori_amqp091::limits::{HEADERS_MAX, PROPERTIES_BYTES_MAX};
use imori_amqp091::{SOLE_ORIGINS, header_reader};
use imori_core::message::{OriginId, Property, Value};

const GROUP_ID: &[u8] = b"JMSXGroupID";
const GROUP_SEQUENCE: &[u8] = b"JMSXGroupSeq";

const ORIGIN: OriginId = SOLE_ORIGINS.origin(BASIC);

fn block(basic: &BasicProperties<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    basic.push(&mut out);
    out
}

#[test]
fn the_broker_reads_what_it_needs() {
    let mut headers = Vec::new();
    push_field(&mut headers, b"a", FieldValue::I32(5));
    let text = |bytes: &'static [u8]| Some(TextProperty::new(bytes));
    let basic = BasicProperties {
        content_type: text(b"text/plain"),
        headers: Some(Table::new(&headers).unwrap()),
        delivery_mode: Some(2),
        priority: Some(9),
        correlation_id: text(b"77"),
        expiration: text(b"4294967295"),
        timestamp: Some(1_700_000_000),
        user_id: text(b"guest"),
        app_id: text(b""),
        ..BasicProperties::default()
    };
    let block = block(&basic);
    let (properties, requests) = read(&block, ORIGIN, b"guest").unwrap();
    assert_eq!(requests, Requests::default());
    assert!(properties.is_persistent);
    assert_eq!((properties.priority, properties.expiration_ms), (Some(9), Some(u32::MAX)));
    assert_eq!(properties.timestamp, Some(1_700_000_000));
    for (property, expected) in [
        (Property::ContentType, Some(&b"text/plain"[..])),
        (Property::CorrelationId, Some(b"77")),
        (Property::UserId, Some(b"guest")),
        (Property::AppId, None),
        (Property::ReplyTo, None),
    ] {
        assert_eq!(properties.property(property, &block), expected, "{property:?}");
    }
    let mut seen = Vec::new();
    header_reader(ORIGIN).visit_headers(&block, &mut |name, value| seen.push((name.into_owned(), value)));
    assert_eq!(seen, [(b"a".to_vec(), Value::Int(5))]);
}

#[test]
fn the_last_message_of_a_group_is_known_by_its_number() {
    let group = (GROUP_ID, FieldValue::Text(b"g"));
    for (fields, expected) in [
        (&[group, (GROUP_SEQUENCE, FieldValue::I32(-1))][..], true),
        (&[(GROUP_SEQUENCE, FieldValue::I64(-1)), group, (GROUP_SEQUENCE, FieldValue::I64(1))], true),
        (&[group, (GROUP_SEQUENCE, FieldValue::Text(b"-1"))], true),
        (&[group, (GROUP_SEQUENCE, FieldValue::I32(1)), (GROUP_SEQUENCE, FieldValue::I32(-1))], false),
        (&[group], false),
        (&[(GROUP_SEQUENCE, FieldValue::I32(-1))], false),
    ] {
        let mut headers = Vec::new();
        fields.iter().for_each(|(name, field)| push_field(&mut headers, name, *field));
        let table = Some(Table::new(&headers).unwrap());
        let block = block(&BasicProperties { headers: table, ..BasicProperties::default() });
        let (properties, _) = read(&block, ORIGIN, b"guest").unwrap();
        assert_eq!(properties.has(Property::GroupEnd), expected, "{fields:?}");
    }
}

#[test]
fn a_header_is_found_by_its_name() {
    let mut headers = Vec::new();
    for (name, field) in [
        (&b"x-death"[..], FieldValue::I32(1)),
        (b"a", FieldValue::Text(b"b")),
        (b"a", FieldValue::Bool(true)),
        (b"c", FieldValue::F64(1.5)),
    ] {
        push_field(&mut headers, name, field);
    }
    let table = Some(Table::new(&headers).unwrap());
    let text = Some(TextProperty::new(b"text"));
    let reader = header_reader(ORIGIN);
    for basic in [
        BasicProperties { headers: table, ..BasicProperties::default() },
        BasicProperties {
            headers: table,
            content_type: text,
            correlation_id: text,
            ..BasicProperties::default()
        },
        BasicProperties {
            headers: table,
            content_encoding: text,
            app_id: text,
            ..BasicProperties::default()
        },
    ] {
        let block = block(&basic);
        for (name, expected) in [
            (&b"a"[..], Some(Value::text(b"b"))),
            (b"c", Some(Value::Float(1.5))),
            (b"d", None),
            (b"x-death", None),
        ] {
            assert_eq!(reader.header(&block, name), expected, "{}", name.escape_ascii());
        }
    }
    let bare = block(&BasicProperties { app_id: text, ..BasicProperties::default() });
    assert_eq!(reader.header(&bare, b"a"), None);
    for cut in 0..bare.len() {
        assert_eq!(reader.header(&bare[..cut], b"a"), None, "it does not panic");
    }
}

#[test]
fn what_no_message_may_say_is_refused() {
    let text = |bytes: &'static [u8]| Some(TextProperty::new(bytes));
    for (basic, expected) in [
        (
            BasicProperties { expiration: text(b"-1"), ..Default::default() },
            "invalid expiration '-1': {value_negative,-1}",
        ),
        (
            BasicProperties { expiration: text(b""), ..Default::default() },
            "invalid expiration '': no_integer",
        ),
        (
            BasicProperties { expiration: text(b"4294967296"), ..Default::default() },
            "invalid expiration '4294967296': {value_too_large,4294967296}",
        ),
        (
            BasicProperties { expiration: text(b"5x"), ..Default::default() },
            "invalid expiration '5x': {leftover_string,\"x\"}",
        ),
        (
            BasicProperties { expiration: text(b"\xff"), ..Default::default() },
            "invalid expiration '\\xff': no_integer",
        ),
        (BasicProperties { user_id: text(b"eve"), ..Default::default() }, "user_id property set to 'eve'"),
    ] {
        let refused = read(&block(&basic), ORIGIN, b"guest").unwrap_err().text();
        assert!(refused.starts_with(&format!("PRECONDITION_FAILED - {expected}")), "{refused}");
    }
    let mut many = Vec::new();
    (0..=HEADERS_MAX).for_each(|_| push_field(&mut many, b"n", FieldValue::Void));
    let headers = Some(Table::new(&many).unwrap());
    let refused =
        read(&block(&BasicProperties { headers, ..Default::default() }), ORIGIN, b"guest").unwrap_err();
    assert!(refused.text().contains("129 headers are more than the 128"), "{}", refused.text());
    let mut long = Vec::new();
    push_field(&mut long, b"n", FieldValue::Text(&vec![b'x'; PROPERTIES_BYTES_MAX]));
    let headers = Some(Table::new(&long).unwrap());
    let refused =
        read(&block(&BasicProperties { headers, ..Default::default() }), ORIGIN, b"guest").unwrap_err();
    assert!(refused.text().contains("is larger than max size 65535"), "{}", refused.text());
}

#[test]
fn values_keep_their_types_for_others() {
    let array = Table::new(b"\x00A\x00\x00\x00\x05b\xffu\x00\x07").unwrap();
    let table = Table::new(b"\x00F\x00\x00\x00\x06\x01kD\x02\x00\x00\x01\x00").ok();
    assert_eq!(table, None, "the decimal goes past its table");
    for (field, expected) in [
        (FieldValue::Bool(true), Value::Bool(true)),
        (FieldValue::I64(i64::MIN), Value::Int(i64::MIN)),
        (FieldValue::U32(u32::MAX), Value::Uint(u32::MAX.into())),
        (FieldValue::F32(0.5), Value::Float(0.5)),
        (FieldValue::Decimal { scale: 2, number: 725 }, Value::Float(7.25)),
        (FieldValue::Timestamp(2), Value::Timestamp(2000)),
        (FieldValue::Timestamp(u64::MAX), Value::Timestamp(i64::MAX)),
        (FieldValue::Bytes(b"\0"), Value::Binary(Cow::Borrowed(b"\0"))),
        (FieldValue::Void, Value::Null),
        (array.find("").unwrap(), Value::List(vec![Value::Int(-1), Value::Uint(7)])),
    ] {
        assert_eq!(value(field), expected, "{field:?}");
    }
}
