//! Publishes that repeat each other: which frames may be published again without being read.

use imori_core::broker::Repetition;
use imori_core::inbound::{Repeat, RepeatedHead};
use imori_core::message::{Address, BODY_SHARED_MIN, Property};
use imori_core::outbound::INBOX_PREFIX;

use crate::client::Client;
use crate::codec::frame::FRAME_END;
use crate::codec::methods::basic;
use crate::commands::token::DIRECT_REPLY_TO;
use crate::content::Content;
use crate::header_block::{BASIC, Requests, read};

/// Bytes of method and header that are remembered. Longer ones are read each time.
const HEAD_BYTES_MAX: usize = 1024;

/// Notes a message that was read and published; `bytes` are all its frames, of which the last is that of its body.
#[inline]
pub(crate) fn note(
    repeat: &mut Repeat,
    client: &Client,
    publish: &basic::Publish<'_>,
    content: &Content<'_>,
    bytes: &[u8],
) {
    let body_len = content.body.len();
    if !(1..BODY_SHARED_MIN).contains(&body_len) {
        return;
    }
    let head = bytes.get(..bytes.len().saturating_sub(body_len + 1)).unwrap_or_default();
    if head.len() <= HEAD_BYTES_MAX {
        repeat.note(head, || remembered(client, publish, content, head));
    }
}

/// The meaning of frames that came again. `None` where they do more than publish to one address: their replies come to
/// this connection, they go to an inbox, or to further addresses.
#[cold]
fn remembered(
    client: &Client,
    publish: &basic::Publish<'_>,
    content: &Content<'_>,
    head: &[u8],
) -> Option<RepeatedHead> {
    let block = content.properties;
    let origin = client.settings.origins.origin(BASIC);
    let (properties, requests) = read(block, origin, client.identity.user.as_bytes()).ok()?;
    let (exchange, subject) = (publish.exchange.as_bytes(), publish.routing_key.as_bytes());
    let asks_directly = properties.property(Property::ReplyTo, block) == Some(DIRECT_REPLY_TO.as_bytes());
    if asks_directly || requests != Requests::default() || subject.starts_with(INBOX_PREFIX) {
        return None;
    }
    Some(RepeatedHead {
        head: head.to_vec(),
        body_len: content.body.len(),
        end: &[FRAME_END],
        properties,
        text: block.to_vec(),
        address: Address::new(exchange, subject),
        not_to: None,
        // One that nobody gets is returned.
        declares: publish.mandatory,
        repetition: Repetition::new(publish.mandatory),
    })
}
