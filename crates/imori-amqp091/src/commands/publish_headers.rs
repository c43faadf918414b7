//! The headers of a publish that instruct the broker: further routing keys, a delay, direct
//! reply-to.

use std::borrow::Cow;
use std::num::NonZeroU32;

use imori_core::message::{Properties, Property};
use imori_core::name::Name;
use imori_core::world::World;

use crate::client::Client;
use crate::codec::methods::basic;
use crate::codec::properties::{BasicProperties, TextProperty};
use crate::codec::push::push_field;
use crate::codec::table::{FieldValue, Table};
use crate::commands::arguments::{integer, type_name};
use crate::commands::direct_reply;
use crate::commands::token::DIRECT_REPLY_TO;
use crate::header_block::{BASIC, Requests, read};
use crate::limits::COPIES_MAX;
use crate::protocol_error::{Code, ProtocolError};

/// The header block of a message to publish, and its further routing keys.
pub(crate) struct PublishHeaders<'a> {
    /// The properties that the broker reads in `block`.
    pub(crate) properties: Properties,
    /// The block for receivers: the client's, without the instructions to the broker.
    pub(crate) block: Cow<'a, [u8]>,
    /// Further routing keys.
    pub(crate) copies: Vec<Name>,
}

impl<'a> PublishHeaders<'a> {
    /// Reads the header block of a message.
    #[inline]
    pub(crate) fn read<W: World>(
        client: &Client,
        world: &W,
        channel: u16,
        publish: &basic::Publish<'_>,
        block: &'a [u8],
    ) -> Result<PublishHeaders<'a>, ProtocolError> {
        let origin = client.settings.origins.origin(BASIC);
        let (properties, requests) = read(block, origin, client.identity.user.as_bytes())?;
        let asks_reply = properties.property(Property::ReplyTo, block) == Some(DIRECT_REPLY_TO.as_bytes());
        if !asks_reply && requests == Requests::default() {
            return Ok(PublishHeaders { properties, block: Cow::Borrowed(block), copies: Vec::new() });
        }
        Self::with_requests(client, world, channel, publish, (block, asks_reply, requests))
    }

    #[cold]
    fn with_requests<W: World>(
        client: &Client,
        world: &W,
        channel: u16,
        publish: &basic::Publish<'_>,
        (block, asks_reply, requests): (&'a [u8], bool, Requests<'_>),
    ) -> Result<PublishHeaders<'a>, ProtocolError> {
        let mut copies = routing_keys("CC", requests.cc)?;
        copies.extend(routing_keys("BCC", requests.bcc)?);
        if copies.len() > COPIES_MAX {
            let text = format_args!(
                "{} routing keys in CC and BCC are more than the {COPIES_MAX} that a message may have",
                copies.len()
            );
            return Err(ProtocolError::new(Code::PreconditionFailed, text));
        }
        let is_delayed = || {
            let exchange = publish.exchange.as_bytes();
            let delays = |_: &mut _, table: &imori_core::route::Table| {
                let exchange = table.exchange(client.vhost, exchange);
                exchange.is_some_and(|exchange| exchange.settings().is_delayed)
            };
            world.with_router(delays)
        };
        let delay_ms = requests.delay.and_then(milliseconds).filter(|_| is_delayed());
        let reply_key = if asks_reply { Some(direct_reply::key(client, channel)?) } else { None };
        let block = match (reply_key, requests.bcc, delay_ms) {
            (None, None, None) => Cow::Borrowed(block),
            _ => Cow::Owned(rewritten(block, reply_key, delay_ms)?),
        };
        let origin = client.settings.origins.origin(BASIC);
        let (mut properties, _) = read(&block, origin, client.identity.user.as_bytes())?;
        properties.replies_to_inbox = asks_reply;
        properties.delay_ms = delay_ms;
        Ok(PublishHeaders { properties, block, copies })
    }
}

/// Returns the routing keys in a list; values of other types are ignored, as in RabbitMQ.
fn routing_keys(header: &str, value: Option<FieldValue<'_>>) -> Result<Vec<Name>, ProtocolError> {
    match value {
        None => Ok(Vec::new()),
        Some(FieldValue::Array(keys)) => {
            let texts = keys.iter().filter_map(|key| match key {
                FieldValue::Text(text) => Some(Name::new(text)),
                _ => None,
            });
            Ok(texts.collect())
        }
        Some(other) => {
            let text = format_args!(
                "invalid message: {{unacceptable_type_in_header,\"{header}\",{}}}",
                type_name(other)
            );
            Err(ProtocolError::new(Code::PreconditionFailed, text))
        }
    }
}

/// Reads `x-delay`. As in RabbitMQ's plugin, a value below one millisecond, above 32 bits or of
/// another type means no delay.
fn milliseconds(value: FieldValue<'_>) -> Option<NonZeroU32> {
    let number = match value {
        FieldValue::Text(text) => std::str::from_utf8(text).ok()?.parse().ok()?,
        FieldValue::F32(number) => whole(number.into())?,
        FieldValue::F64(number) => whole(number)?,
        other => integer(other)?,
    };
    NonZeroU32::new(u32::try_from(number).ok()?)
}

/// Returns the integer part of a number in the range of delays.
fn whole(number: f64) -> Option<i64> {
    (0.0..=f64::from(u32::MAX)).contains(&number).then_some(number as i64)
}

/// Rewrites a header block: sets the inbox address in `reply-to`, removes `BCC`, and negates the
/// delay, so that the message is not delayed again when it is sent on.
fn rewritten(
    block: &[u8],
    reply_key: Option<&[u8]>,
    delay_ms: Option<NonZeroU32>,
) -> Result<Vec<u8>, ProtocolError> {
    let basic = BasicProperties::read(block)?;
    let mut headers = Vec::new();
    for (name, value) in basic.headers.unwrap_or_default().iter() {
        match (name, delay_ms) {
            (b"BCC", _) => {}
            (b"x-delay", Some(ms)) => {
                push_field(&mut headers, name, FieldValue::I64(-i64::from(ms.get())));
            }
            _ => push_field(&mut headers, name, value),
        }
    }
    let headers = basic.headers.and(Table::new(&headers).ok());
    let reply_to = reply_key.map(TextProperty::new).or(basic.reply_to);
    let mut out = Vec::with_capacity(block.len() + reply_key.map_or(0, <[u8]>::len));
    BasicProperties { reply_to, headers, ..basic }.push(&mut out);
    Ok(out)
}
