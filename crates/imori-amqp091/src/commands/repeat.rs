//! Recognizes publishes that repeat known frames, so that they are published without parsing them
//! again.

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

/// Longest method and header that are remembered, in bytes. Longer ones are parsed each time.
const HEAD_BYTES_MAX: usize = 1024;

/// Notes the frames of a published message; `bytes` holds all of them, with the body frame last.
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

/// Parses frames that occurred again. `None` if they do more than publish to one address: they use
/// direct reply-to, have further routing keys, or go to an inbox.
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
        // A mandatory message is returned if no queue gets it.
        declares: publish.mandatory,
        repetition: Repetition::new(publish.mandatory),
    })
}
