//! `queue.declare`, `bind`, `unbind`, `purge` and `delete`.

use imori_core::broker::{self, Actor, DeleteOptions};
use imori_core::confirm::Confirm;
use imori_core::error::BrokerError;
use imori_core::id::QueueId;
use imori_core::outbound::{Outbound, Source};
use imori_core::route::{BindingKey, Syntax};
use imori_core::world::World;

use crate::client::Client;
use crate::codec::methods::{basic, queue};
use crate::commands::arguments::binding_arguments;
use crate::commands::direct_reply;
use crate::commands::queue_arguments::{inequivalent_queue, queue_settings};
use crate::commands::stream::is_stream;
use crate::commands::token::named;
use crate::protocol_error::{Code, ProtocolError};

/// Declares a queue, or checks that it exists. The channel remembers its name.
pub(crate) fn declare<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    declare: &queue::Declare<'_>,
) -> Result<(), ProtocolError> {
    if direct_reply::is_inbox(declare.queue) {
        return direct_reply::probe(client, world, channel, declare);
    }
    // RabbitMQ, queue.declare: line ends are removed from names.
    let name: String = declare.queue.chars().filter(|char| !matches!(char, '\r' | '\n')).collect();
    let (name, confirm) = if declare.passive {
        (name, Confirm::NOW)
    } else {
        let is_made = name.is_empty();
        let name = if is_made { named("amq.gen-", world.secret()) } else { checked(name)? };
        let confirm = make(client, world, declare, &name, is_made)?;
        (name, confirm)
    };
    let found = broker::look_up_queue(world, &client.actor(), name.as_bytes());
    let found = found.map_err(|error| client.error(&error))?;
    if !declare.no_wait {
        let answer = queue::DeclareOk {
            queue: &name,
            message_count: u32::try_from(found.ready).unwrap_or(u32::MAX),
            consumer_count: u32::try_from(found.consumers).unwrap_or(u32::MAX),
        };
        client.answer(world, channel, confirm, &answer);
    }
    if let Some(state) = client.channels.get_mut(&channel) {
        state.last_queue = name.into_boxed_str();
    }
    Ok(())
}

/// Refuses a name with the broker's prefix.
fn checked(name: String) -> Result<String, ProtocolError> {
    if name.starts_with("amq.") {
        let text = format_args!("queue name '{}' contains reserved prefix 'amq.*'", name.escape_default());
        return Err(ProtocolError::new(Code::AccessRefused, text));
    }
    Ok(name)
}

/// Makes a queue, or finds it as it was declared before.
fn make<W: World>(
    client: &Client,
    world: &W,
    declare: &queue::Declare<'_>,
    name: &str,
    is_made: bool,
) -> Result<Confirm, ProtocolError> {
    let settings = queue_settings(declare, name, client.connection, &client.vhost_name)?;
    let (actor, bytes) = (client.actor(), name.as_bytes());
    let declared = if is_made {
        broker::declare_unnamed_queue(world, &actor, bytes, &settings)
    } else {
        broker::declare_queue(world, &actor, bytes, &settings, true)
    };
    declared.map(|declared| declared.confirm).map_err(|error| match error {
        BrokerError::Inequivalent { name, difference } if difference.property == "exclusive" => {
            client.error(&BrokerError::Locked(name))
        }
        BrokerError::Inequivalent { name, difference } => {
            inequivalent_queue(declare, &difference, &name, &client.vhost_name)
        }
        error => client.error(&error),
    })
}

/// Binds a queue to an exchange.
pub(crate) fn bind<W: World>(
    client: &Client,
    world: &W,
    channel: u16,
    bind: &queue::Bind<'_>,
    queue: &str,
) -> Result<(), ProtocolError> {
    let routing_key = key(bind.queue, bind.routing_key, queue);
    let confirm = set_binding(client, world, &queue::Bind { queue, routing_key, ..*bind }, true)?;
    if !bind.no_wait {
        client.answer(world, channel, confirm, &queue::BindOk);
    }
    Ok(())
}

/// Removes a binding of a queue.
pub(crate) fn unbind<W: World>(
    client: &Client,
    world: &W,
    channel: u16,
    unbind: &queue::Unbind<'_>,
    queue: &str,
) -> Result<(), ProtocolError> {
    let routing_key = key(unbind.queue, unbind.routing_key, queue);
    let queue::Unbind { exchange, arguments, .. } = *unbind;
    let binding = queue::Bind { queue, exchange, routing_key, arguments, no_wait: false };
    let confirm = set_binding(client, world, &binding, false)?;
    client.answer(world, channel, confirm, &queue::UnbindOk);
    Ok(())
}

/// Makes a binding of a queue, or takes it out.
fn set_binding<W: World>(
    client: &Client,
    world: &W,
    binding: &queue::Bind<'_>,
    is_bound: bool,
) -> Result<Confirm, ProtocolError> {
    let key = BindingKey::new(Syntax::Amqp, binding.routing_key.as_bytes());
    let arguments = binding_arguments(binding.arguments);
    let (actor, exchange) = (client.actor(), binding.exchange.as_bytes());
    let set = broker::find_queue(world, &actor, binding.queue.as_bytes()).and_then(|id| match is_bound {
        true => broker::bind_queue(world, &actor, exchange, &key, &arguments, id),
        false => broker::unbind_queue(world, &actor, exchange, &key, &arguments, id),
    });
    set.map_err(|error| client.error(&error))
}

/// AMQP 0-9-1, queue.bind: if both queue and key are empty, the key is the name of the queue
/// declared last.
fn key<'a>(named: &str, key: &'a str, queue: &'a str) -> &'a str {
    if named.is_empty() && key.is_empty() { queue } else { key }
}

/// Drops the ready messages of a queue.
pub(crate) fn purge<W: World>(
    client: &Client,
    world: &W,
    channel: u16,
    purge: &queue::Purge<'_>,
    queue: &str,
) -> Result<(), ProtocolError> {
    let id = broker::find_queue(world, &client.actor(), queue.as_bytes());
    if id.is_ok_and(|id| is_stream(world, id)) {
        let (queue, vhost) = (queue.escape_default(), &client.vhost_name);
        let text =
            format_args!("queue.purge not supported by stream queues queue '{queue}' in vhost '{vhost}'");
        return Err(ProtocolError::new(Code::NotImplemented, text));
    }
    let purged = broker::purge(world, &client.actor(), queue.as_bytes());
    let (count, confirm) = purged.map_err(|error| client.error(&error))?;
    if !purge.no_wait {
        let answer = queue::PurgeOk { message_count: u32::try_from(count).unwrap_or(u32::MAX) };
        client.answer(world, channel, confirm, &answer);
    }
    Ok(())
}

/// Deletes a queue; a missing one is no error. This connection's consumers are cancelled after the
/// answer, as clients expect the answer first.
pub(crate) fn delete<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    delete: &queue::Delete<'_>,
    queue: &str,
) -> Result<(), ProtocolError> {
    let options = DeleteOptions { if_unused: delete.if_unused, if_empty: delete.if_empty };
    let (identity, vhost) = (client.identity.clone(), client.vhost);
    let actor = Actor { identity: &identity, connection: client.connection, vhost };
    let deleted = broker::delete_queue_if(world, &actor, queue.as_bytes(), options, |deleted| {
        let own = take_consumers(client, world, deleted.queue);
        if !delete.no_wait {
            let message_count = u32::try_from(deleted.ready).unwrap_or(u32::MAX);
            client.answer(world, channel, deleted.confirm, &queue::DeleteOk { message_count });
        }
        for (channel, tag) in own.iter().filter(|_| client.capabilities.is_told_of_cancels) {
            let cancel = basic::Cancel { consumer_tag: tag, no_wait: true };
            client.answer(world, *channel, Confirm::NOW, &cancel);
        }
    });
    match deleted {
        Ok(_) => Ok(()),
        Err(BrokerError::NoQueue(_)) => {
            if !delete.no_wait {
                client.answer(world, channel, Confirm::NOW, &queue::DeleteOk { message_count: 0 });
            }
            Ok(())
        }
        Err(BrokerError::InUse(name)) => {
            let text = format_args!("queue '{name}' in vhost '{}' in use", client.vhost_name);
            Err(ProtocolError::new(Code::PreconditionFailed, text))
        }
        Err(error) => Err(client.error(&error)),
    }
}

/// Ends this connection's consumers of a deleted queue; returns channel and tag of each.
fn take_consumers<W: World>(client: &mut Client, world: &W, queue: QueueId) -> Vec<(u16, Box<str>)> {
    let mut taken = Vec::new();
    for (number, channel) in &mut client.channels {
        let of_queue = channel.consumers.extract_if(.., |_, reader| {
            let reads = |outbound: &mut Outbound| {
                let is_its = outbound.source(*reader) == Some(&Source::Queue(queue));
                is_its && outbound.remove_reader(*reader).is_some()
            };
            world.with_outbound(client.connection, reads) == Some(true)
        });
        taken.extend(of_queue.map(|(tag, _)| (*number, tag)));
    }
    taken
}
