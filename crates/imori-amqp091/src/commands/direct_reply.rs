//! Direct reply-to: the inbox of a channel, under RabbitMQ's name for it.
//!
//! Replies go straight to the requester's connection: without a queue, without a record, at most
//! once.

use imori_core::authorize::{Action, Object, authorize};
use imori_core::confirm::Confirm;
use imori_core::error::BrokerError;
use imori_core::outbound::{INBOX_PREFIX, InboxAddress, SessionId};
use imori_core::world::World;

use crate::channel::ReplyConsumer;
use crate::client::Client;
use crate::codec::methods::{basic, queue};
use crate::commands::token::DIRECT_REPLY_TO;
use crate::delivery::consumer_label;
use crate::protocol_error::{Code, ProtocolError};

/// Opens the inbox of a channel and answers its consumer.
///
/// SECURITY AUTH-06: other clients see only an address with 128 random bits, and only this channel
/// receives on it.
pub(crate) fn consume<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    consume: &basic::Consume<'_>,
    tag: &str,
) -> Result<(), ProtocolError> {
    let precondition = |text: &str| Err(ProtocolError::new(Code::PreconditionFailed, text));
    let Some(state) = client.channels.get(&channel) else { return Ok(()) };
    if !consume.no_ack {
        return precondition("reply consumer cannot acknowledge");
    }
    if state.replies.is_some() {
        return precondition("reply consumer already set");
    }
    let refused = authorize(&client.identity, Action::Receive, client.vhost, Object::Inbox);
    refused.map_err(|refusal| client.error(&BrokerError::from(refusal)))?;
    let opened = world.with_outbound(client.connection, |outbound| {
        let make = || (consumer_label(channel, tag), world.secret());
        outbound.inbox(SessionId(channel), DIRECT_REPLY_TO.as_bytes(), make)
    });
    let Some(address) = opened.flatten() else {
        let text = "this connection has as many reply consumers as it may have";
        return Err(ProtocolError::new(Code::ResourceError, text));
    };
    if let Some(state) = client.channels.get_mut(&channel) {
        state.replies = Some(ReplyConsumer { tag: tag.into(), key: address.to_key().into_boxed_slice() });
    }
    if !consume.no_wait {
        client.answer(world, channel, Confirm::NOW, &basic::ConsumeOk { consumer_tag: tag });
    }
    Ok(())
}

/// Closes the inbox of a channel if `tag` is its consumer; later replies are dropped.
pub(crate) fn cancel<W: World>(client: &mut Client, world: &W, channel: u16, tag: &str) {
    let Some(state) = client.channels.get_mut(&channel) else { return };
    if state.replies.take_if(|replies| *replies.tag == *tag).is_some() {
        world.with_outbound(client.connection, |outbound| {
            outbound.close_inbox(SessionId(channel), DIRECT_REPLY_TO.as_bytes());
        });
    }
}

/// Returns the address of the channel's inbox, which replaces the pseudo-queue name in messages.
pub(crate) fn key(client: &Client, channel: u16) -> Result<&[u8], ProtocolError> {
    let replies = client.channels.get(&channel).and_then(|channel| channel.replies.as_ref());
    let none = || ProtocolError::new(Code::PreconditionFailed, "fast reply consumer does not exist");
    replies.map(|replies| &*replies.key).ok_or_else(none)
}

/// Whether `name` refers to an inbox.
pub(crate) fn is_inbox(name: &str) -> bool {
    name == DIRECT_REPLY_TO || name.as_bytes().starts_with(INBOX_PREFIX)
}

/// Answers the declaration of an inbox, which only asks whether a consumer still waits for replies.
pub(crate) fn probe<W: World>(
    client: &Client,
    world: &W,
    channel: u16,
    declare: &queue::Declare<'_>,
) -> Result<(), ProtocolError> {
    let is_there = match InboxAddress::from_key(declare.queue.as_bytes()) {
        Some(address) => {
            world.with_outbound(address.owner, |outbound| outbound.has_inbox(&address)) == Some(true)
        }
        None if declare.queue == DIRECT_REPLY_TO => {
            client.channels.get(&channel).is_some_and(|channel| channel.replies.is_some())
        }
        None => false,
    };
    if !is_there {
        let name = declare.queue.escape_default();
        return Err(ProtocolError::not_found("queue", name, &client.vhost_name));
    }
    if !declare.no_wait {
        let answer = queue::DeclareOk { queue: declare.queue, message_count: 0, consumer_count: 1 };
        client.answer(world, channel, Confirm::NOW, &answer);
    }
    Ok(())
}
