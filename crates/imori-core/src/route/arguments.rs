//! Arguments of a binding: named values that a headers exchange compares with a message's headers.
//!
//! The encoded form serves as identity and as the record of a binding: two lists are equal if their
//! bytes are. A value is a type byte followed by big-endian numbers or length-prefixed data.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::limits::{ARGUMENTS_BYTES_MAX, ARGUMENTS_DEPTH_MAX};
use crate::message::Value;
use crate::name::Name;

/// Arguments of a binding, sorted by name. A headers exchange matches messages by them.
#[derive(Debug, Default, Clone)]
pub struct Arguments {
    /// `None` for an empty list, so that the usual binding costs nothing.
    list: Option<Arc<ArgumentList>>,
}

#[derive(Debug)]
struct ArgumentList {
    entries: Vec<(Name, Value<'static>)>,
    /// The encoded entries. Equality compares these bytes, so that even NaN equals itself.
    identity: Vec<u8>,
}

impl Arguments {
    /// No arguments.
    pub const NONE: Arguments = Arguments { list: None };

    /// Builds arguments from names and values; the first of a repeated name counts.
    pub fn new(entries: impl IntoIterator<Item = (Name, Value<'static>)>) -> Arguments {
        let mut entries: Vec<_> = entries.into_iter().collect();
        if entries.is_empty() {
            return Arguments::default();
        }
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        entries.dedup_by(|(later, _), (earlier, _)| later == earlier);
        let mut identity = Vec::new();
        for (name, value) in &entries {
            push_bytes(&mut identity, name.as_bytes());
            push_value(&mut identity, value);
        }
        Arguments { list: Some(Arc::new(ArgumentList { entries, identity })) }
    }

    /// The names and values, sorted by name.
    pub fn entries(&self) -> &[(Name, Value<'static>)] {
        self.list.as_ref().map(|list| list.entries.as_slice()).unwrap_or_default()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.list.is_none()
    }

    /// Decodes the bytes of [`Arguments::as_bytes`]; `None` if they are malformed.
    pub fn from_bytes(bytes: &[u8]) -> Option<Arguments> {
        let (mut rest, mut entries) = (bytes, Vec::new());
        while !rest.is_empty() {
            let name = Name::new(take_bytes(&mut rest)?);
            entries.push((name, take_value(&mut rest, ARGUMENTS_DEPTH_MAX)?));
        }
        Some(Arguments::new(entries))
    }

    /// Checks size and nesting depth, which are limited because a store keeps the arguments.
    ///
    /// # Errors
    /// [`ArgumentsError`].
    pub fn check(&self) -> Result<(), ArgumentsError> {
        let bytes = self.as_bytes().len();
        if bytes > ARGUMENTS_BYTES_MAX {
            return Err(ArgumentsError::TooLong { bytes });
        }
        let is_flat = |(_, value): &(Name, Value<'_>)| depth(value) <= ARGUMENTS_DEPTH_MAX;
        if self.entries().iter().all(is_flat) { Ok(()) } else { Err(ArgumentsError::TooDeep) }
    }

    /// The encoded form, empty for an empty list. Equal arguments have equal bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.list.as_ref().map(|list| list.identity.as_slice()).unwrap_or_default()
    }
}

impl PartialEq for Arguments {
    fn eq(&self, other: &Arguments) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Arguments {}

impl Hash for Arguments {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

/// The limit that the arguments of a binding exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentsError {
    /// The encoded arguments exceed [`ARGUMENTS_BYTES_MAX`] bytes.
    TooLong {
        /// Their length.
        bytes: usize,
    },
    /// Lists and maps are nested more than [`ARGUMENTS_DEPTH_MAX`] deep.
    TooDeep,
}

impl fmt::Display for ArgumentsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgumentsError::TooLong { bytes } => write!(
                f,
                "the arguments of the binding have `{bytes}` bytes and may have `{ARGUMENTS_BYTES_MAX}`; use fewer or shorter ones"
            ),
            ArgumentsError::TooDeep => write!(
                f,
                "an argument of the binding nests lists and maps more than `{ARGUMENTS_DEPTH_MAX}` deep; use a flatter one"
            ),
        }
    }
}

impl std::error::Error for ArgumentsError {}

/// Nesting depth of lists and maps; 0 for a plain value.
pub(crate) fn depth(value: &Value<'_>) -> usize {
    match value {
        Value::List(values) => 1 + values.iter().map(depth).max().unwrap_or(0),
        Value::Map(entries) => 1 + entries.iter().map(|(_, value)| depth(value)).max().unwrap_or(0),
        _ => 0,
    }
}

pub(crate) fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
    out.extend_from_slice(bytes);
}

pub(crate) fn push_value(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Null => out.push(0),
        Value::Bool(value) => out.extend_from_slice(&[1, u8::from(*value)]),
        Value::Int(value) => {
            out.push(2);
            out.extend_from_slice(&value.to_be_bytes());
        }
        Value::Uint(value) => {
            out.push(3);
            out.extend_from_slice(&value.to_be_bytes());
        }
        Value::Float(value) => {
            out.push(4);
            out.extend_from_slice(&value.to_bits().to_be_bytes());
        }
        Value::Timestamp(value) => {
            out.push(5);
            out.extend_from_slice(&value.to_be_bytes());
        }
        Value::Text(bytes) => {
            out.push(6);
            push_bytes(out, bytes);
        }
        Value::Binary(bytes) => {
            out.push(7);
            push_bytes(out, bytes);
        }
        Value::List(values) => {
            out.push(8);
            out.extend_from_slice(&(values.len() as u64).to_be_bytes());
            values.iter().for_each(|value| push_value(out, value));
        }
        Value::Map(entries) => {
            out.push(9);
            out.extend_from_slice(&(entries.len() as u64).to_be_bytes());
            for (name, value) in entries {
                push_bytes(out, name);
                push_value(out, value);
            }
        }
    }
}

fn take_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (array, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*array)
}

fn take_len(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(u64::from_be_bytes(take_array(rest)?)).ok()
}

pub(crate) fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = take_len(rest)?;
    let (bytes, behind) = rest.split_at_checked(len)?;
    *rest = behind;
    Some(bytes)
}

pub(crate) fn take_value(rest: &mut &[u8], depth_left: usize) -> Option<Value<'static>> {
    let [kind] = take_array(rest)?;
    let deeper = || depth_left.checked_sub(1);
    let owned = |bytes: &[u8]| Cow::Owned(bytes.to_vec());
    Some(match kind {
        0 => Value::Null,
        1 => Value::Bool(take_array(rest)? != [0]),
        2 => Value::Int(i64::from_be_bytes(take_array(rest)?)),
        3 => Value::Uint(u64::from_be_bytes(take_array(rest)?)),
        4 => Value::Float(f64::from_bits(u64::from_be_bytes(take_array(rest)?))),
        5 => Value::Timestamp(i64::from_be_bytes(take_array(rest)?)),
        6 => Value::Text(owned(take_bytes(rest)?)),
        7 => Value::Binary(owned(take_bytes(rest)?)),
        8 => {
            let mut values = Vec::new();
            for _ in 0..take_len(rest)? {
                values.push(take_value(rest, deeper()?)?);
            }
            Value::List(values)
        }
        9 => {
            let mut entries = Vec::new();
            for _ in 0..take_len(rest)? {
                let name = owned(take_bytes(rest)?);
                entries.push((name, take_value(rest, deeper()?)?));
            }
            Value::Map(entries)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arguments_are_equal_whatever_their_order() {
        let one = ("a".into(), Value::Int(1));
        let two = ("b".into(), Value::Float(f64::NAN));
        let rising = Arguments::new([one.clone(), two.clone()]);
        assert_eq!(rising, Arguments::new([two.clone(), one.clone()]));
        assert_ne!(rising, Arguments::new([one]));
        assert_ne!(Arguments::default(), Arguments::new([two]));
        assert_eq!(Arguments::default(), Arguments::new([]));
    }

    fn nested(depth: usize) -> Value<'static> {
        (0..depth).fold(Value::Null, |value, level| match level % 2 {
            0 => Value::List(vec![value]),
            _ => Value::Map(vec![(Cow::Borrowed(b"k"), value)]),
        })
    }

    #[test]
    fn arguments_have_an_end() {
        let deep = |depth| Arguments::new([(Name::from("a"), nested(depth))]);
        let long = |len: usize| Arguments::new([(Name::from("a"), Value::Text(Cow::Owned(vec![0; len])))]);
        // Name and text each have an 8-byte length; the name is one byte, the type another.
        let besides = 18;
        for (arguments, expected) in [
            (Arguments::NONE, Ok(())),
            (deep(ARGUMENTS_DEPTH_MAX), Ok(())),
            (deep(ARGUMENTS_DEPTH_MAX + 1), Err(ArgumentsError::TooDeep)),
            (long(ARGUMENTS_BYTES_MAX - besides), Ok(())),
            (
                long(ARGUMENTS_BYTES_MAX - besides + 1),
                Err(ArgumentsError::TooLong { bytes: ARGUMENTS_BYTES_MAX + 1 }),
            ),
        ] {
            assert_eq!(arguments.check(), expected);
            let is_read = Arguments::from_bytes(arguments.as_bytes()).as_ref() == Some(&arguments);
            assert_eq!(is_read, expected != Err(ArgumentsError::TooDeep));
        }
    }

    fn value() -> impl Strategy<Value = Value<'static>> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..6).prop_map(Cow::Owned);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            any::<u64>().prop_map(Value::Uint),
            any::<u64>().prop_map(|bits| Value::Float(f64::from_bits(bits))),
            any::<i64>().prop_map(Value::Timestamp),
            bytes().prop_map(Value::Text),
            bytes().prop_map(Value::Binary),
        ];
        leaf.prop_recursive(3, 12, 4, move |inner| {
            let entry = (bytes(), inner.clone());
            prop_oneof![
                proptest::collection::vec(inner, 0..4).prop_map(Value::List),
                proptest::collection::vec(entry, 0..4).prop_map(Value::Map),
            ]
        })
    }

    proptest! {
        #[test]
        fn reading_the_bytes_gives_the_arguments_and_no_prefix_does(
            entries in proptest::collection::vec(("[a-c]{0,2}", value()), 0..4),
        ) {
            let entries = entries.into_iter().map(|(name, value)| (Name::from(name.as_str()), value));
            let arguments = Arguments::new(entries);
            let bytes = arguments.as_bytes();
            prop_assert_eq!(Arguments::from_bytes(bytes), Some(arguments.clone()));
            for len in 0..bytes.len() {
                prop_assert!(Arguments::from_bytes(&bytes[..len]) != Some(arguments.clone()), "{} bytes", len);
            }
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Arguments::from_bytes(&bytes);
        }
    }
}
