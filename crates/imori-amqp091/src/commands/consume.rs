//! `basic.qos`, `consume`, `cancel` and `get`: requests for messages.

use std::fmt;

use imori_core::broker::{self, ConsumeOptions, GetOptions, Got};
use imori_core::confirm::Confirm;
use imori_core::inbound::Performed;
use imori_core::outbound::{Credit, SessionId};
use imori_core::stream::CursorOptions;
use imori_core::world::World;

use crate::client::Client;
use crate::codec::frame::push_method;
use crate::codec::methods::basic;
use crate::codec::table::Table;
use crate::commands::arguments::{integer, type_name};
use crate::commands::direct_reply;
use crate::commands::stream::{OF_STREAMS, cursor_options, is_stream};
use crate::commands::token::{DIRECT_REPLY_TO, named};
use crate::delivery::{consumer_label, get_label};
use crate::protocol_error::{Code, ProtocolError};

/// Limits the unsettled deliveries, of each future consumer or of the whole channel.
pub(crate) fn qos<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    qos: &basic::Qos,
) -> Result<(), ProtocolError> {
    if qos.prefetch_size != 0 {
        let text = format_args!("prefetch_size!=0 ({})", qos.prefetch_size);
        return Err(ProtocolError::new(Code::NotImplemented, text));
    }
    if qos.global {
        let window = (qos.prefetch_count != 0).then(|| u32::from(qos.prefetch_count));
        if let Some(state) = client.channels.get_mut(&channel) {
            state.is_windowed = window.is_some();
        }
        broker::set_window(world, &client.actor(), SessionId(channel), window);
    } else if let Some(state) = client.channels.get_mut(&channel) {
        state.prefetch_count = qos.prefetch_count;
    }
    client.answer(world, channel, Confirm::NOW, &basic::QosOk);
    Ok(())
}

/// Starts to consume from a queue; the answer precedes the first delivery.
pub(crate) fn consume<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    consume: &basic::Consume<'_>,
    queue: &str,
) -> Result<(), ProtocolError> {
    let generated;
    let tag = if consume.consumer_tag.is_empty() {
        generated = named("amq.ctag-", world.secret());
        &generated
    } else {
        consume.consumer_tag
    };
    if is_in_use(client, world, channel, tag) {
        let text = format_args!("attempt to reuse consumer tag '{}'", tag.escape_default());
        return Err(ProtocolError::new(Code::NotAllowed, text));
    }
    if queue == DIRECT_REPLY_TO {
        return direct_reply::consume(client, world, channel, consume, tag);
    }
    let (prefetch, is_windowed) = client
        .channels
        .get(&channel)
        .map_or((0, false), |channel| (channel.prefetch_count, channel.is_windowed));
    let actor = client.actor();
    let id = broker::find_queue(world, &actor, queue.as_bytes()).map_err(|error| client.error(&error))?;
    let cursor = match is_stream(world, id) {
        true => {
            check_stream(client, queue, consume.no_ack, prefetch, is_windowed)?;
            cursor_options(consume.arguments, queue, &client.vhost_name, world.now())?
        }
        false => {
            refuse_of_streams(client, consume.arguments, queue)?;
            CursorOptions::default()
        }
    };
    let options = ConsumeOptions {
        session: SessionId(channel),
        label: consumer_label(channel, tag),
        settles: !consume.no_ack,
        credit: match prefetch {
            0 => Credit::Unlimited,
            _ if consume.no_ack => Credit::Unlimited,
            count => Credit::window(count.into()),
        },
        priority: priority(client, consume.arguments, queue)?,
        is_exclusive: consume.exclusive,
        selector: None,
        drops_unwanted: false,
        is_browser: false,
        name: None,
        cursor,
    };
    let added = broker::consume(world, &actor, id, queue.as_bytes(), options, |outbound, reader| {
        if !consume.no_wait {
            outbound.answer(SessionId(channel), Confirm::NOW, |out| {
                push_method(out, channel, &basic::ConsumeOk { consumer_tag: tag });
            });
            outbound.start_after_answers(reader);
        }
    });
    let reader = added.map_err(|error| client.error(&error))?;
    if let Some(state) = client.channels.get_mut(&channel) {
        state.consumers.insert(tag.into(), reader);
    }
    Ok(())
}

/// Whether a consumer of the channel has this tag and was not cancelled by the broker.
fn is_in_use<W: World>(client: &Client, world: &W, channel: u16, tag: &str) -> bool {
    let Some(state) = client.channels.get(&channel) else { return false };
    let hears_replies = state.replies.as_ref().is_some_and(|replies| *replies.tag == *tag);
    hears_replies
        || state.consumers.get(tag).is_some_and(|reader| {
            world.with_outbound(client.connection, |outbound| outbound.source(*reader).is_some())
                == Some(true)
        })
}

/// Checks that a consumer of a stream has credit of its own and settles, as in RabbitMQ.
fn check_stream(
    client: &Client,
    queue: &str,
    no_ack: bool,
    prefetch: u16,
    is_windowed: bool,
) -> Result<(), ProtocolError> {
    let (queue, vhost) = (queue.escape_default(), &client.vhost_name);
    let new = |code, text: fmt::Arguments<'_>| Err(ProtocolError::new(code, text));
    if prefetch == 0 {
        return new(
            Code::PreconditionFailed,
            format_args!("consumer prefetch count is not set for stream queue '{queue}' in vhost '{vhost}'"),
        );
    }
    if no_ack {
        return new(
            Code::NotImplemented,
            format_args!(
                "automatic acknowledgement not supported by stream queue '{queue}' in vhost '{vhost}'"
            ),
        );
    }
    if is_windowed {
        return new(
            Code::NotImplemented,
            format_args!("queue '{queue}' in vhost '{vhost}' does not support global qos"),
        );
    }
    Ok(())
}

/// Refuses the arguments that only consumers of streams have.
fn refuse_of_streams(client: &Client, arguments: Table<'_>, queue: &str) -> Result<(), ProtocolError> {
    let Some(argument) = OF_STREAMS.iter().find(|argument| arguments.find(argument).is_some()) else {
        return Ok(());
    };
    let (queue, vhost) = (queue.escape_default(), &client.vhost_name);
    let text = format_args!(
        "invalid arg '{argument}' for queue '{queue}' in vhost '{vhost}' of queue type rabbit_classic_queue"
    );
    Err(ProtocolError::new(Code::PreconditionFailed, text))
}

/// Reads `x-priority`.
fn priority(client: &Client, arguments: Table<'_>, queue: &str) -> Result<i32, ProtocolError> {
    let refused = |name: &str, why: String| {
        let (queue, vhost) = (queue.escape_default(), &client.vhost_name);
        let text = format_args!("invalid arg '{name}' for queue '{queue}' in vhost '{vhost}'{why}");
        Err(ProtocolError::new(Code::PreconditionFailed, text))
    };
    let Some(value) = arguments.find("x-priority") else { return Ok(0) };
    let Some(number) = integer(value) else {
        return refused("x-priority", format!(": \"expected integer, got {}\"", type_name(value)));
    };
    match i32::try_from(number) {
        Ok(number) => Ok(number),
        Err(_) => refused("x-priority", format!(": {{value_too_large,{number}}}")),
    }
}

/// Ends a consumer. Its unsettled deliveries stay with the channel.
pub(crate) fn cancel<W: World>(client: &mut Client, world: &W, channel: u16, cancel: &basic::Cancel<'_>) {
    direct_reply::cancel(client, world, channel, cancel.consumer_tag);
    let state = client.channels.get_mut(&channel);
    let reader = state.and_then(|channel| channel.consumers.remove(cancel.consumer_tag));
    if let Some(reader) = reader {
        broker::cancel(world, &client.actor(), reader);
    }
    if !cancel.no_wait {
        let answer = basic::CancelOk { consumer_tag: cancel.consumer_tag };
        client.answer(world, channel, Confirm::NOW, &answer);
    }
}

/// Delivers one message; [`Performed::Held`] while the queue reads it from disk.
pub(crate) fn get<W: World>(
    client: &Client,
    world: &W,
    channel: u16,
    get: &basic::Get<'_>,
    queue: &str,
) -> Result<Performed, ProtocolError> {
    let options = GetOptions { session: SessionId(channel), label: &get_label, settles: !get.no_ack };
    match broker::get(world, &client.actor(), queue.as_bytes(), &options) {
        Ok(Got::Delivered { .. }) => {}
        Ok(Got::Empty) => client.answer(world, channel, Confirm::NOW, &basic::GetEmpty),
        Ok(Got::Pending) => return Ok(Performed::Held),
        Err(error) => return Err(client.error(&error)),
    }
    Ok(Performed::Done)
}
