//! The arguments of a consumer of a stream: where it starts, and which messages it gets.

use imori_core::id::QueueId;
use imori_core::message::OFFSET;
use imori_core::name::Name;
use imori_core::stream::{CursorOptions, Start, ValueFilter};
use imori_core::time::Time;
use imori_core::world::World;

use crate::codec::table::{FieldValue, Table};
use crate::commands::arguments::{integer, type_name};
use crate::protocol_error::{Code, ProtocolError};

const FILTER: &str = "x-stream-filter";
const MATCH_UNFILTERED: &str = "x-stream-match-unfiltered";

/// The arguments that only consumers of streams have.
pub(crate) const OF_STREAMS: [&str; 3] = [OFFSET, FILTER, MATCH_UNFILTERED];

/// Whether a queue is a stream.
pub(crate) fn is_stream<W: World>(world: &W, queue: QueueId) -> bool {
    world.with_queue(queue, |queue| queue.is_stream()) == Some(true)
}

/// Reads the part of a stream that a consumer asks for.
///
/// # Errors
/// `PRECONDITION_FAILED` for an offset that is none, or for too many filter values.
pub(crate) fn cursor_options(
    arguments: Table<'_>,
    queue: &str,
    vhost: &Name,
    now: Time,
) -> Result<CursorOptions, ProtocolError> {
    let default = CursorOptions::default();
    let start = match arguments.find(OFFSET) {
        None => default.start,
        Some(value) => start(value, now).ok_or_else(|| refused(OFFSET, queue, vhost, &shown(value)))?,
    };
    let values = arguments.find(FILTER).and_then(filter_values);
    let takes_unmarked = matches!(arguments.find(MATCH_UNFILTERED), Some(FieldValue::Bool(true)));
    let filter = values.map(|values| ValueFilter::new(values, takes_unmarked));
    match filter {
        None => Ok(CursorOptions { start, filter: None }),
        Some(Some(filter)) => Ok(CursorOptions { start, filter: Some(filter) }),
        Some(None) => Err(refused(FILTER, queue, vhost, "too_many_values")),
    }
}

fn start(value: FieldValue<'_>, now: Time) -> Option<Start> {
    match value {
        FieldValue::Text(word) => Start::of_word(word, now),
        FieldValue::Timestamp(seconds) => Some(Start::Time(Time(seconds.saturating_mul(1_000_000)))),
        // An offset below the first one starts there.
        number => Some(Start::at_offset(u64::try_from(integer(number)?).unwrap_or(0))),
    }
}

/// RabbitMQ: values that are no strings are left out, and a filter of another type is none.
fn filter_values(value: FieldValue<'_>) -> Option<Vec<Box<[u8]>>> {
    match value {
        FieldValue::Text(value) => Some(vec![value.into()]),
        FieldValue::Array(values) => {
            let text = |value| if let FieldValue::Text(text) = value { Some(text.into()) } else { None };
            Some(values.iter().filter_map(text).collect())
        }
        _ => None,
    }
}

/// A refused offset in RabbitMQ's words.
fn shown(value: FieldValue<'_>) -> String {
    let kind = type_name(value);
    match value {
        FieldValue::Text(text) => {
            format!("{{invalid_stream_offset_arg,{{{kind},<<\"{}\">>}}}}", text.escape_ascii())
        }
        _ => format!("{{invalid_stream_offset_arg,{kind}}}"),
    }
}

#[cold]
fn refused(argument: &str, queue: &str, vhost: &Name, why: &str) -> ProtocolError {
    let queue = queue.escape_default();
    let text = format_args!("invalid arg '{argument}' for queue '{queue}' in vhost '{vhost}': {why}");
    ProtocolError::new(Code::PreconditionFailed, text)
}
