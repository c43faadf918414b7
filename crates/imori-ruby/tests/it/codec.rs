//! Values, as bytes that cross the boundary to C.

use imori_ruby::for_tests::{decode, encode};
use imori_ruby::{VALUE_DEPTH_MAX, Value};

#[test]
fn decode_reads_what_encode_wrote() {
    let value = Value::Hash(vec![
        (
            Value::Symbol(b"a".to_vec()),
            Value::Array(vec![Value::Nil, Value::Boolean(true), Value::Boolean(false)]),
        ),
        (Value::string([0, 255]), Value::Array(vec![Value::Integer(i64::MIN), Value::Float(1.5)])),
    ]);
    let mut bytes = Vec::new();
    encode(&value, &mut bytes, &mut |_| Ok((0, 0))).expect("the value is shallow");
    assert_eq!(decode(&mut bytes.as_slice(), &|_| None), Some(value));
    for cut in 0..bytes.len() {
        assert_eq!(decode(&mut &bytes[..cut], &|_| None), None, "cut after {cut} bytes");
    }
}

#[test]
fn value_of_one_level_too_many_is_refused() {
    let mut value = Value::Nil;
    for _ in 0..VALUE_DEPTH_MAX {
        value = Value::Array(vec![value]);
    }
    assert!(encode(&value, &mut Vec::new(), &mut |_| Ok((0, 0))).is_ok());
    value = Value::Array(vec![value]);
    assert!(encode(&value, &mut Vec::new(), &mut |_| Ok((0, 0))).is_err());
}
