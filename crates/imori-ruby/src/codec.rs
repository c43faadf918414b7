//! Values as bytes, for the way between Rust and shim.c.
//!
//! A value is a tag and what follows it: `n` nil, `t` true, `f` false, `i` an i64, `d` a f64, `s` and `y` a count and
//! the bytes of a string or symbol, `a` a count and the items, `h` a count and the pairs, `H` the class index (u32) and
//! id (u64) of a handle, `o` a count and the name of the class of any other object. Numbers are native-endian, counts
//! are u32. Both ends are in this process, so that there is no version.

use crate::{
    limits::VALUE_DEPTH_MAX,
    value::{Error, Handle, Value},
};

/// Gives the class index and the id of a handle.
type Number<'a> = &'a mut dyn FnMut(&Handle) -> Result<(u32, u64), Error>;

/// Appends `value`.
pub fn encode(value: &Value, out: &mut Vec<u8>, number: Number<'_>) -> Result<(), Error> {
    encode_at(value, out, number, 0)
}

fn encode_at(value: &Value, out: &mut Vec<u8>, number: Number<'_>, depth: usize) -> Result<(), Error> {
    if depth > VALUE_DEPTH_MAX {
        return Err(Error::new("ArgumentError", format!("value is over {VALUE_DEPTH_MAX} levels deep")));
    }
    match value {
        Value::Nil => out.push(b'n'),
        Value::Boolean(true) => out.push(b't'),
        Value::Boolean(false) => out.push(b'f'),
        Value::Integer(number) => {
            out.push(b'i');
            out.extend(number.to_ne_bytes());
        }
        Value::Float(number) => {
            out.push(b'd');
            out.extend(number.to_ne_bytes());
        }
        Value::String(bytes) => {
            encode_count(b's', bytes.len(), out)?;
            out.extend_from_slice(bytes);
        }
        Value::Symbol(name) => {
            encode_count(b'y', name.len(), out)?;
            out.extend_from_slice(name);
        }
        Value::Array(items) => {
            encode_count(b'a', items.len(), out)?;
            for item in items {
                encode_at(item, out, number, depth + 1)?;
            }
        }
        Value::Hash(pairs) => {
            encode_count(b'h', pairs.len(), out)?;
            for (key, value) in pairs {
                encode_at(key, out, number, depth + 1)?;
                encode_at(value, out, number, depth + 1)?;
            }
        }
        Value::Handle(handle) => {
            let (class, id) = number(handle)?;
            out.push(b'H');
            out.extend(class.to_ne_bytes());
            out.extend(id.to_ne_bytes());
        }
        Value::Object(class) => {
            return Err(Error::new(
                "TypeError",
                format!("an object of class `{class}` cannot be passed back to Ruby"),
            ));
        }
    }
    Ok(())
}

fn encode_count(tag: u8, count: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    let count = u32::try_from(count).map_err(|_| Error::new("ArgumentError", "value is over 4 GiB large"))?;
    out.push(tag);
    out.extend(count.to_ne_bytes());
    Ok(())
}

/// Reads the value that the bytes begin with, and moves `bytes` behind it. `handle` finds a handle by its id.
///
/// Returns `None` for bytes that shim.c does not write.
pub fn decode(bytes: &mut &[u8], handle: &dyn Fn(u64) -> Option<Handle>) -> Option<Value> {
    let tag = take::<1>(bytes)?[0];
    Some(match tag {
        b'n' => Value::Nil,
        b't' => Value::Boolean(true),
        b'f' => Value::Boolean(false),
        b'i' => Value::Integer(i64::from_ne_bytes(take(bytes)?)),
        b'd' => Value::Float(f64::from_ne_bytes(take(bytes)?)),
        b's' => Value::String(take_text(bytes)?.to_vec()),
        b'y' => Value::Symbol(take_text(bytes)?.to_vec()),
        b'o' => Value::Object(String::from_utf8_lossy(take_text(bytes)?).into_owned()),
        b'a' => {
            let count = u32::from_ne_bytes(take(bytes)?);
            Value::Array((0..count).map(|_| decode(bytes, handle)).collect::<Option<_>>()?)
        }
        b'h' => {
            let count = u32::from_ne_bytes(take(bytes)?);
            let pair = |_| Some((decode(bytes, handle)?, decode(bytes, handle)?));
            Value::Hash((0..count).map(pair).collect::<Option<_>>()?)
        }
        b'H' => {
            take::<4>(bytes)?;
            Value::Handle(handle(u64::from_ne_bytes(take(bytes)?))?)
        }
        _ => return None,
    })
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let count = u32::from_ne_bytes(take(bytes)?) as usize;
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}
