//! The frames of `golden.txt`, which another codec has written, are read and written by this one.

use std::collections::BTreeSet;

use imori_amqp091::codec::frame::{
    FRAME_BYTES, Frame, FrameType, Step, decode, push_body, push_content_header, push_frame, push_heartbeat,
};
use imori_amqp091::codec::methods::Method;
use imori_amqp091::codec::properties::{BasicProperties, ContentHeader, TextProperty};
use imori_amqp091::codec::push::{
    push_array_field, push_array_value, push_field, push_table_field, push_table_value, push_value,
};
use imori_amqp091::codec::table::{Array, FieldValue, Table};
use imori_amqp091::limits::FRAME_BYTES_MAX;

use crate::spec::table;

const GOLDEN: &str = include_str!("golden.txt");

/// A row of the file.
struct Row {
    channel: u16,
    /// What the other codec has read.
    fields: &'static str,
    /// What it has written.
    bytes: Vec<u8>,
}

/// The rows whose first frame is of this type; there are `count`.
fn rows(kind: FrameType, count: usize) -> Vec<Row> {
    let lines = GOLDEN.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut rows: Vec<Row> = lines.map(row).collect();
    rows.retain(|row| row.bytes[0] == kind as u8);
    assert_eq!(rows.len(), count);
    rows
}

fn row(line: &'static str) -> Row {
    let (channel, rest) = line.split_once(' ').unwrap();
    let (fields, bytes) = rest.rsplit_once(" = ").unwrap();
    Row { channel: channel.parse().unwrap(), fields, bytes: unhex(bytes) }
}

/// Bytes from hexadecimal digits, and from `62*400`.
fn unhex(text: &str) -> Vec<u8> {
    let octet = |digits: &str| u8::from_str_radix(digits, 16).unwrap();
    let word = |word: &str| match word.split_once('*') {
        Some((digits, count)) => vec![octet(digits); count.parse().unwrap()],
        None => (0..word.len()).step_by(2).map(|at| octet(&word[at..at + 2])).collect(),
    };
    text.split(' ').flat_map(word).collect()
}

/// The frames of a row, all of them on its channel.
fn frames(row: &Row) -> Vec<Frame<'_>> {
    let mut rest = &row.bytes[..];
    let mut frames = Vec::new();
    while !rest.is_empty() {
        match decode(rest, FRAME_BYTES_MAX as usize - FRAME_BYTES) {
            Ok(Step::Frame(frame)) => {
                assert_eq!(frame.channel, row.channel, "{}", row.fields);
                rest = &rest[frame.len()..];
                frames.push(frame);
            }
            other => panic!("{other:?} in {}", row.fields),
        }
    }
    frames
}

fn frame(row: &Row) -> Frame<'_> {
    let [frame] = frames(row)[..] else { panic!("{} is one frame", row.fields) };
    frame
}

fn assert_written(row: &Row, written: &[u8]) {
    assert!(written == row.bytes, "{}: {}", row.fields, written.escape_ascii());
}

#[test]
fn methods_are_those_of_another_codec() {
    let mut ids = BTreeSet::new();
    for row in rows(FrameType::Method, 164) {
        let method = Method::decode(frame(&row).payload).unwrap();
        ids.insert(method.id());
        assert_eq!(format!("{method:?}"), row.fields);
        let mut written = Vec::new();
        push_frame(&mut written, FrameType::Method, row.channel, |out| {
            let id = method.id();
            out.extend([id.class.to_be_bytes(), id.method.to_be_bytes()].concat());
            method.push_fields(out);
        });
        assert_written(&row, &written);
    }
    assert_eq!(ids.len(), table().len());
}

#[test]
fn contents_are_those_of_another_codec() {
    for row in rows(FrameType::Header, 101) {
        let header = ContentHeader::decode(frame(&row).payload).unwrap();
        let properties = BasicProperties::read(header.properties).unwrap();
        assert_eq!(shown(header.body_len, &properties), row.fields);

        let mut headers = Vec::new();
        properties.headers.iter().for_each(|table| push_again(&mut headers, *table));
        let headers = properties.headers.map(|_| Table::new(&headers).unwrap());
        let mut written_properties = Vec::new();
        BasicProperties { headers, ..properties }.push(&mut written_properties);
        let mut written = Vec::new();
        push_content_header(&mut written, row.channel, header.body_len as usize, &written_properties);
        assert_written(&row, &written);
    }
}

/// A content header with the properties that it has.
fn shown(body_len: u64, properties: &BasicProperties<'_>) -> String {
    let text = |text: Option<TextProperty<'_>>| {
        text.map(|text| format!("{:?}", str::from_utf8(text.bytes).unwrap()))
    };
    let number = |number: Option<u8>| number.map(|number| number.to_string());
    let fields = [
        ("body_len", Some(body_len.to_string())),
        ("content_type", text(properties.content_type)),
        ("content_encoding", text(properties.content_encoding)),
        ("headers", properties.headers.map(|table| format!("{table:?}"))),
        ("delivery_mode", number(properties.delivery_mode)),
        ("priority", number(properties.priority)),
        ("correlation_id", text(properties.correlation_id)),
        ("reply_to", text(properties.reply_to)),
        ("expiration", text(properties.expiration)),
        ("message_id", text(properties.message_id)),
        ("timestamp", properties.timestamp.map(|seconds| seconds.to_string())),
        ("kind", text(properties.kind)),
        ("user_id", text(properties.user_id)),
        ("app_id", text(properties.app_id)),
        ("cluster_id", text(properties.cluster_id)),
    ];
    let fields = fields.into_iter().filter_map(|(name, value)| Some(format!("{name}: {}", value?)));
    format!("ContentHeader {{ {} }}", fields.collect::<Vec<_>>().join(", "))
}

/// Appends a table's fields one by one, whatever is in them.
fn push_again(out: &mut Vec<u8>, table: Table<'_>) {
    for (name, value) in table.iter() {
        match value {
            FieldValue::Table(table) => push_table_field(out, name, |out| push_again(out, table)),
            FieldValue::Array(array) => push_array_field(out, name, |out| push_values_again(out, array)),
            value => push_field(out, name, value),
        }
    }
}

fn push_values_again(out: &mut Vec<u8>, array: Array<'_>) {
    for value in array.iter() {
        match value {
            FieldValue::Table(table) => push_table_value(out, |out| push_again(out, table)),
            FieldValue::Array(array) => push_array_value(out, |out| push_values_again(out, array)),
            value => push_value(out, value),
        }
    }
}

#[test]
fn bodies_are_split_as_by_another_codec() {
    for row in rows(FrameType::Body, 11) {
        let [_, payload_bytes_max, body] = row.fields.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("{}", row.fields)
        };
        let body = unhex(body);
        let payloads: Vec<&[u8]> = frames(&row).iter().map(|frame| frame.payload).collect();
        assert!(payloads.concat() == body, "{}", row.fields);
        let mut written = Vec::new();
        push_body(&mut written, row.channel, &body, payload_bytes_max.parse().unwrap());
        assert_written(&row, &written);
    }
}

#[test]
fn a_heartbeat_is_that_of_another_codec() {
    for row in rows(FrameType::Heartbeat, 1) {
        assert_eq!((row.fields, frame(&row).payload), ("Heartbeat", &b""[..]));
        let mut written = Vec::new();
        push_heartbeat(&mut written);
        assert_written(&row, &written);
    }
}
