//! `/queues`: shows, declares, deletes and purges queues, and cancels delayed messages.

use imori_core::arguments::read_arguments;
use imori_core::authorize::{Action, Object};
use imori_core::broker;
use imori_core::error::BrokerError;
use imori_core::name::Name;
use imori_core::queue::{Queue, QueueSettings};
use imori_core::world::World;

use crate::client::Client;
use crate::codec::map::MapBuf;
use crate::codec::push::{push_map_of, push_strings};
use crate::codec::value::{Map, Value};
use crate::management::arguments::{check_name, entries, flag, map, of_settings};
use crate::management::response::{Response, put};

/// Shows a queue to a client that may read it.
pub(super) fn show<W: World>(client: &Client, world: &W, name: &str) -> Result<Response, Response> {
    world
        .authorize(&client.actor(), Action::Consume, Object::Queue(name.as_bytes()))
        .map_err(BrokerError::from)?;
    shown(client, world, name, 200)
}

/// Declares a queue, or confirms that an equal one exists.
pub(super) fn declare<W: World>(
    client: &Client,
    world: &W,
    name: &str,
    body: Map<'_>,
) -> Result<Response, Response> {
    check_name(name)?;
    let is_exclusive = flag(body, "exclusive", false)?;
    let declared = QueueSettings {
        is_durable: flag(body, "durable", true)? && !is_exclusive,
        exclusive_to: is_exclusive.then_some(client.connection),
        is_auto_delete: flag(body, "auto_delete", false)?,
        ..QueueSettings::default()
    };
    let read = read_arguments(declared, entries(map(body, "arguments")?));
    let settings = read.map_err(|error| Response::refused(400, error))?;
    let is_known = world.with_router(|_, table| table.queue(client.vhost, name.as_bytes()).is_some());
    broker::declare_queue(world, &client.actor(), name.as_bytes(), &settings, true)?;
    shown(client, world, name, if is_known { 200 } else { 201 })
}

/// Deletes a queue; a missing one is no error.
pub(super) fn delete<W: World>(client: &Client, world: &W, name: &str) -> Result<Response, Response> {
    match broker::delete_queue(world, &client.actor(), name.as_bytes()) {
        Ok(count) => Ok(counted(count)),
        Err(BrokerError::NoQueue(_)) => Ok(counted(0)),
        Err(error) => Err(error.into()),
    }
}

/// Drops the ready messages of a queue.
pub(super) fn purge<W: World>(client: &Client, world: &W, name: &str) -> Result<Response, Response> {
    let id = broker::find_queue(world, &client.actor(), name.as_bytes());
    if id.is_ok_and(|id| world.with_queue(id, |queue| queue.is_stream()) == Some(true)) {
        // As in RabbitMQ.
        return Err(Response::refused(
            400,
            format_args!("purge not supported by stream `{name}`; delete it"),
        ));
    }
    let (count, _) = broker::purge(world, &client.actor(), name.as_bytes())?;
    Ok(counted(count))
}

/// Cancels the delayed messages with this id. None is no error, as they may have become due just
/// before.
pub(super) fn cancel<W: World>(
    client: &Client,
    world: &W,
    name: &str,
    id: &str,
) -> Result<Response, Response> {
    let (count, _) = broker::cancel_delayed(world, &client.actor(), name.as_bytes(), id.as_bytes())?;
    Ok(counted(count))
}

fn counted(count: usize) -> Response {
    let mut map = MapBuf::new();
    put(&mut map, "message_count", Value::Ulong(count as u64));
    Response::of_map(200, &map)
}

fn shown<W: World>(client: &Client, world: &W, name: &str, status: u16) -> Result<Response, Response> {
    let found = broker::look_up_queue(world, &client.actor(), name.as_bytes())?;
    let declared = |queue: &mut Queue| queue.declared().clone();
    let gone = || Response::from(BrokerError::NoQueue(Name::from(name)));
    let settings = world.with_queue(found.id, declared).ok_or_else(gone)?;
    let vhost = world.with_router(|_, table| table.vhost_name(client.vhost).map(Name::to_string));
    let mut map = MapBuf::new();
    put(&mut map, "message_count", Value::Ulong(found.ready as u64));
    // An extension; RabbitMQ's clients ignore it.
    put(&mut map, "delayed_count", Value::Ulong(found.delayed as u64));
    put(&mut map, "consumer_count", Value::Uint(u32::try_from(found.consumers).unwrap_or(u32::MAX)));
    put(&mut map, "name", Value::String(name));
    put(&mut map, "vhost", Value::String(&vhost.unwrap_or_default()));
    put(&mut map, "durable", Value::Bool(settings.is_durable));
    put(&mut map, "auto_delete", Value::Bool(settings.is_auto_delete));
    put(&mut map, "exclusive", Value::Bool(settings.exclusive_to.is_some()));
    put(&mut map, "type", Value::String(settings.kind.name()));
    map.push_with(Value::String("arguments"), |out| push_map_of(out, of_settings(&settings).map()));
    // RabbitMQ reports its nodes; this broker is a single node.
    put(&mut map, "leader", Value::String(NODE));
    map.push_with(Value::String("replicas"), |out| push_strings(out, [NODE].into_iter()));
    Ok(Response::of_map(status, &map))
}

/// The name of the single node.
const NODE: &str = "imori";
