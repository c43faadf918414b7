//! The headers of a SUBSCRIBE that reads a stream: where it starts, and which messages it gets.

use imori_core::message::OFFSET;
use imori_core::stream::{CursorOptions, Start, ValueFilter};
use imori_core::time::Time;

use crate::codec::error::Excerpt;
use crate::codec::frame::Headers;
use crate::codec::number::parse_u64;
use crate::commands::arguments::flag;
use crate::protocol_error::{PRECONDITION_FAILED, PROCESSING_ERROR, ProtocolError};

const FILTER: &str = "x-stream-filter";
const MATCH_UNFILTERED: &str = "x-stream-match-unfiltered";

/// The headers that only subscriptions to streams have.
pub(crate) const OF_STREAMS: [&str; 3] = [OFFSET, FILTER, MATCH_UNFILTERED];

/// Reads the part of a stream that a SUBSCRIBE asks for; `None` if it says nothing of it.
///
/// # Errors
/// The offset is none, or the filter has too many values.
pub(crate) fn cursor_options(
    headers: &Headers<'_>,
    now: Time,
) -> Result<Option<CursorOptions>, ProtocolError> {
    if OF_STREAMS.iter().all(|name| headers.raw(name).is_none()) {
        return Ok(None);
    }
    let mut options = CursorOptions::default();
    if let Some(offset) = headers.value(OFFSET) {
        options.start = start(&offset, now).ok_or_else(|| {
            let text = format_args!(
                "header `{OFFSET}` is `{}`; write `first`, `last`, `next`, `offset=` with a number, `timestamp=` with \
                 seconds since 1970, or an age such as `1h`",
                Excerpt::new(&offset)
            );
            ProtocolError::new(PROCESSING_ERROR, text)
        })?;
    }
    let takes_unmarked = flag(headers, MATCH_UNFILTERED)? == Some(true);
    if let Some(values) = headers.value(FILTER) {
        let values = values.split(|byte| *byte == b',').map(Box::from).collect();
        let filter = ValueFilter::new(values, takes_unmarked).ok_or_else(|| {
            ProtocolError::new(
                PROCESSING_ERROR,
                format_args!("header `{FILTER}` has too many values; write fewer"),
            )
        })?;
        options.filter = Some(filter);
    }
    Ok(Some(options))
}

/// RabbitMQ's forms, and a number or an age alone.
fn start(offset: &[u8], now: Time) -> Option<Start> {
    if let Some(number) = parse_u64(offset.strip_prefix(b"offset=").unwrap_or(offset)) {
        return Some(Start::at_offset(number));
    }
    match offset.strip_prefix(b"timestamp=") {
        Some(seconds) => Some(Start::Time(Time(parse_u64(seconds)?.saturating_mul(1_000_000)))),
        None => Start::of_word(offset, now),
    }
}

/// The error for a subscription with a header of streams to something else.
#[cold]
pub(crate) fn no_stream(headers: &Headers<'_>) -> ProtocolError {
    let name = OF_STREAMS.iter().find(|name| headers.raw(name).is_some()).unwrap_or(&OFFSET);
    let text = format_args!("header `{name}` is for streams, and this is none; leave it out");
    // RabbitMQ refuses it for a queue of another type.
    ProtocolError::last(PRECONDITION_FAILED, text)
}
