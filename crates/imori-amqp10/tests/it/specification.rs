//! Examples and encodings from the specification.

use imori_amqp10::codec::constructor::{ULONG, type_name};
use imori_amqp10::codec::frame::{FrameKind, ProtocolHeader, push_heartbeat};
use imori_amqp10::codec::push::push_value;
use imori_amqp10::codec::value::{Descriptor, Symbol, Value};

#[test]
fn the_composite_value_of_figure_1_4_is_read_and_written() {
    let bytes = b"\x00\xa3\x11example:book:list\xc0\x40\x03\xa1\x15AMQP for & by Dummies\
        \xe0\x25\x02\xa1\x0eRob J. Godfrey\x13Rafael H. Schloming\x40";
    let (value, rest) = Value::decode(bytes).unwrap();
    assert_eq!(rest, b"");
    let Value::Described(book) = value else { panic!("{value:?}") };
    assert_eq!(book.descriptor, Descriptor::Name(Symbol("example:book:list")));
    let Value::List(fields) = book.value() else { panic!("{book:?}") };
    let [Value::String(title), Value::Array(authors), Value::Null] = fields.iter().collect::<Vec<_>>()[..]
    else {
        panic!("{fields:?}")
    };
    assert_eq!(title, "AMQP for & by Dummies");
    let names = ["Rob J. Godfrey", "Rafael H. Schloming"].map(Value::String);
    assert_eq!(authors.iter().collect::<Vec<_>>(), names);
    let mut written = Vec::new();
    push_value(&mut written, value);
    assert_eq!(written, bytes);
}

#[test]
fn every_encoding_of_1_6_is_read() {
    let rows: [(&[u8], Value<'_>); 24] = [
        (b"\x40", Value::Null),
        (b"\x56\x01", Value::Bool(true)),
        (b"\x41", Value::Bool(true)),
        (b"\x42", Value::Bool(false)),
        (b"\x50\xff", Value::Ubyte(255)),
        (b"\x60\x01\x02", Value::Ushort(258)),
        (b"\x70\x00\x00\x01\x00", Value::Uint(256)),
        (b"\x52\x10", Value::Uint(16)),
        (b"\x43", Value::Uint(0)),
        (b"\x80\x00\x00\x00\x00\x00\x00\x01\x00", Value::Ulong(256)),
        (b"\x53\x10", Value::Ulong(16)),
        (b"\x44", Value::Ulong(0)),
        (b"\x51\x80", Value::Byte(-128)),
        (b"\x61\xff\xfe", Value::Short(-2)),
        (b"\x71\xff\xff\xff\x00", Value::Int(-256)),
        (b"\x54\xfe", Value::Int(-2)),
        (b"\x81\xff\xff\xff\xff\xff\xff\xff\x00", Value::Long(-256)),
        (b"\x55\xfe", Value::Long(-2)),
        (b"\x72\x3f\x80\x00\x00", Value::Float(1.0)),
        (b"\x82\x3f\xf0\x00\x00\x00\x00\x00\x00", Value::Double(1.0)),
        (b"\x74\x01\x02\x03\x04", Value::Decimal32([1, 2, 3, 4])),
        (b"\x84\x01\x02\x03\x04\x05\x06\x07\x08", Value::Decimal64([1, 2, 3, 4, 5, 6, 7, 8])),
        (b"\x73\x00\x01\xf6\x00", Value::Char('\u{1f600}')),
        (b"\xb3\x00\x00\x00\x01s", Value::Symbol(Symbol("s"))),
    ];
    for (bytes, value) in rows {
        assert_eq!(Value::decode(bytes), Ok((value, &b""[..])), "{}", bytes.escape_ascii());
        let mut written = Vec::new();
        push_value(&mut written, value);
        assert!(written.len() <= bytes.len(), "the fewest bytes are written");
        assert_eq!(Value::decode(&written), Ok((value, &b""[..])));
    }
    assert_eq!(type_name(ULONG), "ulong");
}

#[test]
fn headers_are_those_of_2_2_and_5_3() {
    assert_eq!(ProtocolHeader::Amqp.bytes(), &[b'A', b'M', b'Q', b'P', 0, 1, 0, 0]);
    assert_eq!(ProtocolHeader::Sasl.bytes(), &[b'A', b'M', b'Q', b'P', 3, 1, 0, 0]);
    assert_eq!((FrameKind::Amqp as u8, FrameKind::Sasl as u8), (0x00, 0x01));
    let mut out = Vec::new();
    push_heartbeat(&mut out);
    assert_eq!(out, [0, 0, 0, 8, 2, 0, 0, 0]);
}
