//! Values that are nested too deep, and lengths and counts that lie.

use imori_amqp10::codec::constructor::*;
use imori_amqp10::codec::error::ValueError;
use imori_amqp10::codec::value::Value;
use imori_amqp10::limits::{EMPTY_ELEMENTS_MAX, NESTING_MAX};

/// Encodes lists nested `levels` deep.
fn nested(levels: usize) -> Vec<u8> {
    let mut bytes = vec![LIST_0];
    for _ in 1..levels {
        let len = bytes.len() as u32 + 4;
        bytes = [&[LIST_32][..], &len.to_be_bytes(), &[0, 0, 0, 1], &bytes].concat();
    }
    bytes
}

fn error(bytes: &[u8]) -> ValueError {
    Value::decode(bytes).expect_err("it is wrong")
}

// SECURITY LIM-09.
#[test]
fn deep_values_are_refused_and_the_stack_stays_flat() {
    // The innermost list is empty, so it needs no entry on the stack.
    assert!(Value::decode(&nested(NESTING_MAX + 1)).is_ok());
    assert_eq!(error(&nested(NESTING_MAX + 2)), ValueError::TooDeep);
    assert_eq!(error(&nested(10_000)), ValueError::TooDeep);
    let described = |levels: usize| [[DESCRIBED, ULONG_0].repeat(levels), vec![NULL]].concat();
    assert!(Value::decode(&described(NESTING_MAX)).is_ok());
    assert_eq!(error(&described(NESTING_MAX + 1)), ValueError::TooDeep);
    assert_eq!(error(&described(10_000)), ValueError::TooDeep);
    // A descriptor cannot be a described value itself.
    assert_eq!(error(&[[DESCRIBED].repeat(10_000), vec![ULONG_0, NULL]].concat()), ValueError::Descriptor);
    // Lists and descriptors count together.
    let both = |levels: usize| {
        let mut bytes = vec![NULL];
        for _ in 0..levels {
            let len = bytes.len() as u8 + 1;
            bytes = [&[DESCRIBED, ULONG_0, LIST_8, len, 1][..], &bytes].concat();
        }
        bytes
    };
    assert!(Value::decode(&both(NESTING_MAX / 2)).is_ok());
    assert_eq!(error(&both(NESTING_MAX / 2 + 1)), ValueError::TooDeep);
}

#[test]
fn elements_without_bytes_are_few() {
    let array =
        |count: u32, octet: u8| [&[ARRAY_32, 0, 0, 0, 5][..], &count.to_be_bytes(), &[octet]].concat();
    for octet in [NULL, TRUE, UINT_0, ULONG_0, LIST_0] {
        let bytes = array(EMPTY_ELEMENTS_MAX, octet);
        let Ok((Value::Array(array_value), [])) = Value::decode(&bytes) else { panic!("{octet}") };
        assert_eq!(array_value.iter().count(), EMPTY_ELEMENTS_MAX as usize);
        assert_eq!(error(&array(EMPTY_ELEMENTS_MAX + 1, octet)), ValueError::TooManyEmpty);
        assert_eq!(error(&array(u32::MAX, octet)), ValueError::TooManyEmpty);
    }
    // Arrays in an array share the limit.
    let half = [&[0, 0, 0, 5][..], &(EMPTY_ELEMENTS_MAX / 2).to_be_bytes(), &[NULL]].concat();
    let halves =
        |count: u8| [&[ARRAY_8, count * 9 + 2, count, ARRAY_32][..], &half.repeat(count.into())].concat();
    assert!(Value::decode(&halves(2)).is_ok());
    assert_eq!(error(&halves(3)), ValueError::TooManyEmpty);
    assert_eq!(error(&array(u32::MAX, UBYTE)), ValueError::TooShort);
    assert_eq!(error(&array(u32::MAX, STRING_8)), ValueError::TooShort);
}

#[test]
fn lengths_and_counts_that_lie_are_refused() {
    let rows: [(&[u8], ValueError); 22] = [
        (b"", ValueError::TooShort),
        (&[LIST_8], ValueError::TooShort),
        (&[LIST_8, 0], ValueError::TooShort),
        (&[LIST_8, 0, 0], ValueError::TooShort),
        (&[LIST_8, 2, 0, NULL], ValueError::TooLong),
        (&[LIST_8, 1, 1, NULL], ValueError::TooShort),
        (&[LIST_8, 2, 1, UBYTE, 1], ValueError::TooShort),
        (&[LIST_8, 2, 2, NULL], ValueError::TooShort),
        (&[LIST_8, 9, 1, NULL], ValueError::TooShort),
        (&[LIST_8, 5, 1, LIST_8, 3, 1, NULL], ValueError::TooShort),
        (&[LIST_32, 255, 255, 255, 255, 255, 255, 255, 255], ValueError::TooShort),
        (&[MAP_8, 2, 1, NULL], ValueError::OddMap),
        (&[ARRAY_8, 1, 1], ValueError::TooShort),
        (&[ARRAY_8, 3, 2, UBYTE, 1], ValueError::TooShort),
        (&[ARRAY_8, 4, 1, UBYTE, 1, 2], ValueError::TooLong),
        (&[ARRAY_8, 2, 1, 0x3f], ValueError::UnknownConstructor { octet: 0x3f }),
        (&[BINARY_8, 3, 1, 2], ValueError::TooShort),
        (&[STRING_8, 1, 0xff], ValueError::NotUtf8),
        (&[SYMBOL_8, 2, 0xc3, 0xbc], ValueError::NotAscii),
        (&[BOOLEAN, 2], ValueError::NotBoolean),
        (&[CHAR, 0, 0, 0xd8, 0], ValueError::NotChar),
        (&[DESCRIBED, STRING_8, 1, b'a', NULL], ValueError::Descriptor),
    ];
    for (bytes, expected) in rows {
        assert_eq!(error(bytes), expected, "{bytes:02x?}");
    }
}

#[test]
fn no_octet_but_those_of_types_begins_a_value() {
    for octet in 0..=255 {
        let bytes = [&[octet][..], &[0; 40]].concat();
        let is_unknown = Value::decode(&bytes) == Err(ValueError::UnknownConstructor { octet });
        assert_eq!(is_unknown, type_name(octet) == "none", "{octet:#04x}");
    }
}
