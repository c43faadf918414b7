//! Appends fields to a payload.

use crate::codec::table::{FieldValue, Table};

/// Bytes of a short string at most, as its length is one octet.
pub const SHORT_STR_BYTES_MAX: usize = 255;

/// Appends at most eight bits as one octet.
#[inline]
pub fn push_bits<const LEN: usize>(out: &mut Vec<u8>, bits: [bool; LEN]) {
    const { assert!(LEN <= 8, "they share one octet") };
    out.push(bits.iter().rev().fold(0, |octet, bit| octet << 1 | u8::from(*bit)));
}

/// Appends a short string. Cuts a string beyond [`SHORT_STR_BYTES_MAX`] between two characters, so that its length
/// is right; the caller checks names that must not be cut.
#[inline]
pub fn push_short_str(out: &mut Vec<u8>, text: &str) {
    push_short_bytes(
        out,
        text.get(..text.floor_char_boundary(SHORT_STR_BYTES_MAX)).unwrap_or(text).as_bytes(),
    );
}

/// Appends a short string of any encoding; a longer one than [`SHORT_STR_BYTES_MAX`] is cut.
#[inline]
pub fn push_short_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let bytes = bytes.get(..SHORT_STR_BYTES_MAX).unwrap_or(bytes);
    out.push(bytes.len() as u8);
    out.extend_from_slice(bytes);
}

/// Appends a string of fewer than 4 GiB of any bytes.
#[inline]
pub fn push_long_str(out: &mut Vec<u8>, bytes: &[u8]) {
    push_measured(out, |out| out.extend_from_slice(bytes));
}

/// Appends a table that was read, byte for byte.
#[inline]
pub fn push_table(out: &mut Vec<u8>, table: Table<'_>) {
    push_long_str(out, table.bytes());
}

/// Appends a table whose fields `write` appends, by [`push_field`].
pub fn push_fields(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    push_measured(out, write);
}

/// Appends a field of a table.
pub fn push_field(out: &mut Vec<u8>, name: &[u8], value: FieldValue<'_>) {
    push_short_bytes(out, name);
    push_value(out, value);
}

/// Appends a field of a table whose value is a table; `write` appends its fields.
pub fn push_table_field(out: &mut Vec<u8>, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
    push_short_bytes(out, name);
    push_table_value(out, write);
}

/// Appends a field of a table whose value is an array; `write` appends its values, by [`push_value`].
pub fn push_array_field(out: &mut Vec<u8>, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
    push_short_bytes(out, name);
    push_array_value(out, write);
}

/// Appends a table as the value of an array; `write` appends its fields.
pub fn push_table_value(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'F');
    push_measured(out, write);
}

/// Appends an array as the value of another; `write` appends its values.
pub fn push_array_value(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'A');
    push_measured(out, write);
}

/// Appends the value of a field, its type first.
pub fn push_value(out: &mut Vec<u8>, value: FieldValue<'_>) {
    out.push(value.octet());
    match value {
        FieldValue::Bool(value) => out.push(u8::from(value)),
        FieldValue::I8(number) => out.extend_from_slice(&number.to_be_bytes()),
        FieldValue::U8(number) => out.extend_from_slice(&number.to_be_bytes()),
        FieldValue::I16(number) => out.extend_from_slice(&number.to_be_bytes()),
        FieldValue::U16(number) => out.extend_from_slice(&number.to_be_bytes()),
        FieldValue::I32(number) => out.extend_from_slice(&number.to_be_bytes()),
        FieldValue::U32(number) => out.extend_from_slice(&number.to_be_bytes()),
        FieldValue::I64(number) => out.extend_from_slice(&number.to_be_bytes()),
        FieldValue::F32(number) => out.extend_from_slice(&number.to_be_bytes()),
        FieldValue::F64(number) => out.extend_from_slice(&number.to_be_bytes()),
        FieldValue::Decimal { scale, number } => {
            out.push(scale);
            out.extend_from_slice(&number.to_be_bytes());
        }
        FieldValue::Timestamp(seconds) => out.extend_from_slice(&seconds.to_be_bytes()),
        FieldValue::Text(bytes) | FieldValue::Bytes(bytes) => push_long_str(out, bytes),
        FieldValue::Array(array) => push_long_str(out, array.bytes()),
        FieldValue::Table(table) => push_table(out, table),
        FieldValue::Void => {}
    }
}

/// Appends what `write` appends, its length in front.
#[inline]
fn push_measured(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let len = u32::try_from(out.len() - begin - 4).expect("a message is far shorter");
    if let Some(place) = out.get_mut(begin..begin + 4) {
        place.copy_from_slice(&len.to_be_bytes());
    }
}
