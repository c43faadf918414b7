//! Recognizes SENDs that repeat a known head, so that they are published without parsing it again.

use std::mem;

use imori_core::broker::Repetition;
use imori_core::inbound::{Repeat, RepeatedHead};
use imori_core::message::{Address, BODY_SHARED_MIN};
use imori_core::world::World;

use crate::address::Destination;
use crate::client::Client;
use crate::codec::frame::Frame;
use crate::codec::number::parse_u64;
use crate::commands::send_headers::SendHeaders;

/// Longest head that is remembered, in bytes. Longer ones are parsed each time.
const HEAD_BYTES_MAX: usize = 1024;

/// Notes the head of a SEND that was parsed and published; `bytes` is the whole frame.
#[inline]
pub(crate) fn note<W: World>(
    repeat: &mut Repeat,
    client: &mut Client,
    world: &W,
    frame: &Frame<'_>,
    bytes: &[u8],
) {
    let head = bytes.get(..bytes.len().saturating_sub(frame.body.len() + 1)).unwrap_or_default();
    if head.len() <= HEAD_BYTES_MAX {
        repeat.note(head, || read(client, world, frame, head));
    }
}

/// Parses a head that occurred again. `None` if its frame does more than publish, such as a
/// receipt, a transaction, a declaration, an inbox or a cancel.
#[cold]
fn read<W: World>(client: &mut Client, world: &W, frame: &Frame<'_>, head: &[u8]) -> Option<RepeatedHead> {
    let headers = &frame.headers;
    let declared = headers.raw("content-length").and_then(parse_u64)?;
    let is_simple = !headers.is_escaped
        && usize::try_from(declared) == Ok(frame.body.len())
        && frame.body.len() < BODY_SHARED_MIN;
    if !is_simple {
        return None;
    }
    let mut scratch = mem::take(&mut client.scratch);
    scratch.clear();
    let mut read = SendHeaders::new();
    let is_read = read.read(client, world, headers, &mut scratch).is_ok();
    let text = read.text(&scratch).to_vec();
    client.scratch = scratch;
    if !is_read
        || read.receipt.is_some()
        || read.transaction.is_some()
        || read.cancels.is_some()
        || read.has_arguments
        || read.properties.replies_to_inbox
    {
        return None;
    }
    let destination = Destination::parse(read.destination?).ok()?;
    let (exchange, subject) = destination.address()?;
    let declares = matches!(destination, Destination::Queue(_) | Destination::AmqQueue(_));
    Some(RepeatedHead {
        head: head.to_vec(),
        body_len: frame.body.len(),
        end: b"\0",
        properties: read.properties,
        text,
        address: Address::new(exchange, subject),
        not_to: None,
        declares,
        repetition: Repetition::new(declares),
    })
}
