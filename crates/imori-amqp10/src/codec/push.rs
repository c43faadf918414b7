//! Writes values, each in its shortest encoding.

use crate::codec::constructor::*;
use crate::codec::value::{Array, Described, Descriptor, List, Map, Symbol, Value};

/// Largest length of the short form of a list or map: the count and the values.
const SMALL_BYTES_MAX: usize = 255;

/// Appends a value.
pub fn push_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Null => out.push(NULL),
        Value::Bool(value) => out.push(if value { TRUE } else { FALSE }),
        Value::Ubyte(number) => out.extend_from_slice(&[UBYTE, number]),
        Value::Ushort(number) => push_fixed(out, USHORT, number.to_be_bytes()),
        Value::Uint(number) => push_uint(out, number),
        Value::Ulong(number) => push_ulong(out, number),
        Value::Byte(number) => push_fixed(out, BYTE, number.to_be_bytes()),
        Value::Short(number) => push_fixed(out, SHORT, number.to_be_bytes()),
        Value::Int(number) => match i8::try_from(number) {
            Ok(small) => push_fixed(out, SMALL_INT, small.to_be_bytes()),
            Err(_) => push_fixed(out, INT, number.to_be_bytes()),
        },
        Value::Long(number) => match i8::try_from(number) {
            Ok(small) => push_fixed(out, SMALL_LONG, small.to_be_bytes()),
            Err(_) => push_fixed(out, LONG, number.to_be_bytes()),
        },
        Value::Float(number) => push_fixed(out, FLOAT, number.to_be_bytes()),
        Value::Double(number) => push_fixed(out, DOUBLE, number.to_be_bytes()),
        Value::Decimal32(bytes) => push_fixed(out, DECIMAL_32, bytes),
        Value::Decimal64(bytes) => push_fixed(out, DECIMAL_64, bytes),
        Value::Decimal128(bytes) => push_fixed(out, DECIMAL_128, bytes),
        Value::Char(char) => push_fixed(out, CHAR, u32::from(char).to_be_bytes()),
        Value::Timestamp(time) => push_fixed(out, TIMESTAMP, time.0.to_be_bytes()),
        Value::Uuid(bytes) => push_fixed(out, UUID, bytes),
        Value::Binary(bytes) => push_variable(out, BINARY_8, bytes),
        Value::String(text) => push_variable(out, STRING_8, text.as_bytes()),
        Value::Symbol(symbol) => push_symbol(out, symbol),
        Value::List(list) => push_list_of(out, list),
        Value::Map(map) => push_map_of(out, map),
        Value::Array(array) => push_array_of(out, array),
        Value::Described(described) => push_described(out, described),
    }
}

/// Appends a `uint`.
#[inline]
pub fn push_uint(out: &mut Vec<u8>, number: u32) {
    match u8::try_from(number) {
        Ok(0) => out.push(UINT_0),
        Ok(small) => out.extend_from_slice(&[SMALL_UINT, small]),
        Err(_) => push_fixed(out, UINT, number.to_be_bytes()),
    }
}

/// Appends a `ulong`.
#[inline]
pub fn push_ulong(out: &mut Vec<u8>, number: u64) {
    match u8::try_from(number) {
        Ok(0) => out.push(ULONG_0),
        Ok(small) => out.extend_from_slice(&[SMALL_ULONG, small]),
        Err(_) => push_fixed(out, ULONG, number.to_be_bytes()),
    }
}

/// Appends a `symbol`.
#[inline]
pub fn push_symbol(out: &mut Vec<u8>, symbol: Symbol<'_>) {
    push_variable(out, SYMBOL_8, symbol.0.as_bytes());
}

/// Appends the constructor of a described value and its descriptor; the caller appends the value.
#[inline]
pub fn push_descriptor(out: &mut Vec<u8>, descriptor: Descriptor<'_>) {
    out.push(DESCRIBED);
    match descriptor {
        Descriptor::Code(code) => push_ulong(out, code),
        Descriptor::Name(name) => push_symbol(out, name),
    }
}

/// Appends a value with a descriptor.
pub fn push_described(out: &mut Vec<u8>, described: Described<'_>) {
    push_descriptor(out, described.descriptor);
    let (octet, bytes) = described.parts();
    out.push(octet);
    out.extend_from_slice(bytes);
}

/// Appends a list; its encoded values are copied.
pub fn push_list_of(out: &mut Vec<u8>, list: List<'_>) {
    if list.is_empty() {
        return out.push(LIST_0);
    }
    push_compound(out, LIST_8, list.len(), list.bytes());
}

/// Appends a map; its encoded pairs are copied.
pub fn push_map_of(out: &mut Vec<u8>, map: Map<'_>) {
    push_compound(out, MAP_8, map.len() * 2, map.bytes());
}

/// Appends an array; its encoded elements are copied.
pub fn push_array_of(out: &mut Vec<u8>, array: Array<'_>) {
    push_compound(out, ARRAY_8, array.len(), array.bytes());
}

/// Appends an array of symbols.
pub fn push_symbols(out: &mut Vec<u8>, symbols: &[Symbol<'_>]) {
    push_texts(out, SYMBOL_8, symbols.iter().map(|symbol| symbol.0));
}

/// Appends an array of strings.
pub fn push_strings<'a>(out: &mut Vec<u8>, texts: impl Iterator<Item = &'a str> + Clone) {
    push_texts(out, STRING_8, texts);
}

/// Appends an array of maps.
pub fn push_maps<'a>(out: &mut Vec<u8>, maps: impl Iterator<Item = Map<'a>>) {
    let (mut count, mut elements) = (0, vec![MAP_32]);
    for map in maps {
        count += 1;
        elements.extend_from_slice(&(map.bytes().len() as u32 + 4).to_be_bytes());
        elements.extend_from_slice(&(map.len() as u32 * 2).to_be_bytes());
        elements.extend_from_slice(map.bytes());
    }
    push_compound(out, ARRAY_8, count, &elements);
}

fn push_texts<'a>(out: &mut Vec<u8>, small: u8, texts: impl Iterator<Item = &'a str> + Clone) {
    let is_small = texts.clone().all(|text| text.len() <= SMALL_BYTES_MAX);
    let mut elements = vec![if is_small { small } else { small | 0x10 }];
    let mut count = 0;
    for text in texts {
        count += 1;
        let len = (text.len() as u32).to_be_bytes();
        elements.extend_from_slice(if is_small { len.get(3..).unwrap_or_default() } else { &len });
        elements.extend_from_slice(text.as_bytes());
    }
    push_compound(out, ARRAY_8, count, &elements);
}

#[inline]
pub(crate) fn push_fixed<const LEN: usize>(out: &mut Vec<u8>, octet: u8, bytes: [u8; LEN]) {
    out.push(octet);
    out.extend_from_slice(&bytes);
}

/// Appends `bytes` with the short form of a constructor, or the long one if they need it.
#[inline]
pub(crate) fn push_variable(out: &mut Vec<u8>, small: u8, bytes: &[u8]) {
    match u8::try_from(bytes.len()) {
        Ok(len) => out.extend_from_slice(&[small, len]),
        Err(_) => push_fixed(out, small | 0x10, (bytes.len() as u32).to_be_bytes()),
    }
    out.extend_from_slice(bytes);
}

/// Appends constructor and length of a `binary`; the caller appends `len` bytes.
#[inline]
pub fn push_binary_head(out: &mut Vec<u8>, len: usize) {
    match u8::try_from(len) {
        Ok(len) => out.extend_from_slice(&[BINARY_8, len]),
        Err(_) => push_fixed(out, BINARY_32, (len as u32).to_be_bytes()),
    }
}

/// Appends length, count and values with the short form of a constructor, or the long one if
/// needed.
pub(crate) fn push_compound(out: &mut Vec<u8>, small: u8, count: usize, bytes: &[u8]) {
    match (u8::try_from(bytes.len() + 1), u8::try_from(count)) {
        (Ok(len), Ok(count)) => out.extend_from_slice(&[small, len, count]),
        _ => {
            push_fixed(out, small | 0x10, (bytes.len() as u32 + 4).to_be_bytes());
            out.extend_from_slice(&(count as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(bytes);
}

/// A list or map whose values are appended one by one.
#[derive(Debug)]
pub struct Compound {
    small: u8,
    begin: usize,
}

impl Compound {
    /// Reserves room for constructor, length and count.
    #[inline]
    pub fn begin(out: &mut Vec<u8>, small: u8) -> Compound {
        out.extend_from_slice(&[small, 0, 0]);
        Compound { small, begin: out.len() }
    }

    /// Fills in length and count; for a map, `count` includes keys and values.
    #[inline]
    pub fn end(self, out: &mut Vec<u8>, count: u32) {
        let len = out.len() - self.begin;
        match (u8::try_from(len + 1), u8::try_from(count)) {
            (Ok(len), Ok(count)) => {
                if let Some(place) = out.get_mut(self.begin - 2..self.begin) {
                    place.copy_from_slice(&[len, count]);
                }
            }
            _ => self.widen(out, len, count),
        }
    }

    #[cold]
    fn widen(self, out: &mut Vec<u8>, len: usize, count: u32) {
        let values = out.split_off(self.begin);
        out.truncate(self.begin - 3);
        push_fixed(out, self.small | 0x10, (len as u32 + 4).to_be_bytes());
        out.extend_from_slice(&count.to_be_bytes());
        out.extend_from_slice(&values);
    }
}
