//! The filters of a source that is a stream: where the link starts, and which messages it gets.

use imori_core::stream::{CursorOptions, Start, ValueFilter};
use imori_core::time::Time;

use crate::codec::condition;
use crate::codec::map::MapBuf;
use crate::codec::value::{Descriptor, Map, Symbol, Timestamp, Value};
use crate::protocol_error::ProtocolError;

const OFFSET: &str = "rabbitmq:stream-offset-spec";
const FILTER: &str = "rabbitmq:stream-filter";
const MATCH_UNFILTERED: &str = "rabbitmq:stream-match-unfiltered";

/// Reads the part of a stream that a source asks for, and adds its filters to `effective`.
///
/// # Errors
/// `amqp:invalid-field` for an offset or a filter of another form, or for too many values.
pub(crate) fn cursor_options(
    filters: Map<'_>,
    now: Time,
    effective: &mut MapBuf,
) -> Result<CursorOptions, ProtocolError> {
    let mut options = CursorOptions::default();
    let mut take = |name: &str| {
        let (key, value, inner) = find(filters, name)?;
        effective.push(key, value);
        Some(inner)
    };
    if let Some(value) = take(OFFSET) {
        options.start = start(value, now).ok_or_else(|| {
            refused(OFFSET, "is `first`, `last`, `next`, an age such as `1h`, a number or a timestamp")
        })?;
    }
    let values = take(FILTER);
    let takes_unmarked = take(MATCH_UNFILTERED) == Some(Value::Bool(true));
    if let Some(values) = values {
        let values =
            filter_values(values).ok_or_else(|| refused(FILTER, "is a string or a list of strings"))?;
        let filter = ValueFilter::new(values, takes_unmarked);
        options.filter = Some(filter.ok_or_else(|| refused(FILTER, "has too many values; send fewer"))?);
    }
    Ok(options)
}

/// Finds a filter by the name of its descriptor, or by its key if it has no descriptor: key, filter and value.
fn find<'a>(filters: Map<'a>, name: &str) -> Option<(Value<'a>, Value<'a>, Value<'a>)> {
    filters.iter().find_map(|(key, value)| match value {
        Value::Described(described) => {
            let is_meant = matches!(described.descriptor, Descriptor::Name(known) if known.0 == name);
            is_meant.then(|| (key, value, described.value()))
        }
        _ => (key == Value::Symbol(Symbol(name))).then_some((key, value, value)),
    })
}

fn start(value: Value<'_>, now: Time) -> Option<Start> {
    let number = match value {
        Value::String(word) | Value::Symbol(Symbol(word)) => return Start::of_word(word.as_bytes(), now),
        Value::Timestamp(Timestamp(ms)) => {
            return Some(Start::Time(Time(u64::try_from(ms).unwrap_or(0).saturating_mul(1000))));
        }
        Value::Ulong(number) => number,
        Value::Uint(number) => number.into(),
        Value::Ushort(number) => number.into(),
        Value::Ubyte(number) => number.into(),
        // An offset below the first one starts there.
        Value::Long(number) => u64::try_from(number).unwrap_or(0),
        Value::Int(number) => u64::try_from(number).unwrap_or(0),
        Value::Short(number) => u64::try_from(number).unwrap_or(0),
        Value::Byte(number) => u64::try_from(number).unwrap_or(0),
        _ => return None,
    };
    Some(Start::at_offset(number))
}

fn filter_values(value: Value<'_>) -> Option<Vec<Box<[u8]>>> {
    let text = |value| if let Value::String(text) = value { Some(text.as_bytes().into()) } else { None };
    match value {
        Value::List(values) => values.iter().map(text).collect(),
        Value::Array(values) => values.iter().map(text).collect(),
        value => text(value).map(|value| vec![value]),
    }
}

#[cold]
fn refused(filter: &str, why: &str) -> ProtocolError {
    ProtocolError::new(condition::INVALID_FIELD, format_args!("the filter `{filter}` {why}"))
}
