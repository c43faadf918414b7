//! `/bindings`: creates, lists and deletes bindings.

use imori_core::authorize::{Action, Object};
use imori_core::broker;
use imori_core::error::BrokerError;
use imori_core::message::Value as CoreValue;
use imori_core::name::Name;
use imori_core::route::{Arguments, BindingKey, Syntax, Target};
use imori_core::world::World;

use crate::client::Client;
use crate::codec::constructor::LIST_8;
use crate::codec::map::MapBuf;
use crate::codec::push::{push_compound, push_map_of};
use crate::codec::value::{Map, Value};
use crate::management::arguments::{map, of_binding, text};
use crate::management::request::{Request, decoded, encoded};
use crate::management::response::{Response, put};

/// The target of a binding, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To<'a> {
    Queue(&'a str),
    Exchange(&'a str),
}

/// An existing binding.
struct Found {
    key: Name,
    arguments: Arguments,
}

/// Creates a binding.
pub(super) fn bind<W: World>(client: &Client, world: &W, body: Map<'_>) -> Result<Response, Response> {
    let source = text(body, "source")?.ok_or_else(|| Response::refused(400, "`source` is missing"))?;
    let key = text(body, "binding_key")?.unwrap_or_default();
    let to = match (text(body, "destination_queue")?, text(body, "destination_exchange")?) {
        (Some(queue), None) => To::Queue(queue),
        (None, Some(exchange)) => To::Exchange(exchange),
        _ => {
            let text = "name one of `destination_queue` and `destination_exchange`";
            return Err(Response::refused(400, text));
        }
    };
    let arguments = of_binding(map(body, "arguments")?)?;
    set(client, world, source, to, (key.as_bytes(), &arguments), true)?;
    Ok(Response::done())
}

/// Lists the bindings with a given key from an exchange to a target.
pub(super) fn list<W: World>(
    client: &Client,
    world: &W,
    request: &Request<'_>,
) -> Result<Response, Response> {
    let (source, key) = (request.parameter("src"), request.parameter("key"));
    let to = match (request.parameter("dstq"), request.parameter("dste")) {
        (Some(queue), _) => Some(To::Queue(queue)),
        (None, exchange) => exchange.map(To::Exchange),
    };
    let (Some(source), Some(key), Some(to)) = (source, key, to) else {
        return Err(Response::refused(400, "the query needs `src`, `key`, and `dstq` or `dste`"));
    };
    let mut rows = Vec::new();
    let mut count = 0;
    for found in found(client, world, source, to, Action::Consume)?
        .iter()
        .filter(|found| found.key.as_bytes() == key.as_bytes())
    {
        let mut row = MapBuf::new();
        put(&mut row, "source", Value::String(source));
        let (word, letter, name) = match to {
            To::Queue(name) => ("destination_queue", 'q', name),
            To::Exchange(name) => ("destination_exchange", 'e', name),
        };
        put(&mut row, word, Value::String(name));
        put(&mut row, "binding_key", Value::String(key));
        row.push_with(Value::String("arguments"), |out| push_map_of(out, shown(&found.arguments).map()));
        let [source, name, key] = [source, name, key].map(|part| encoded(part.as_bytes()));
        let mark = mark(&found.arguments);
        let location = format!("/bindings/src={source};dst{letter}={name};key={key};args={mark}");
        put(&mut row, "location", Value::String(&location));
        push_map_of(&mut rows, row.map());
        count += 1;
    }
    Ok(Response::new(200, |out| push_compound(out, LIST_8, count, &rows)))
}

/// Deletes the binding at a location; a missing one is no error.
pub(super) fn unbind<W: World>(client: &Client, world: &W, location: &str) -> Result<Response, Response> {
    let bad = || {
        let text = "the location of a binding is `src=…;dstq=…;key=…;args=…`, with `dste` for an exchange";
        Response::refused(400, text)
    };
    let mut parts = location.split(';');
    let mut part = |names: &[&str]| {
        let (name, value) = parts.next()?.split_once('=')?;
        names.contains(&name).then_some((name == "dste", decoded(value)?))
    };
    let read = (part(&["src"]), part(&["dstq", "dste"]), part(&["key"]), part(&["args"]));
    let (Some((_, source)), Some((is_exchange, name)), Some((_, key)), Some((_, wanted))) = read else {
        return Err(bad());
    };
    let to = if is_exchange { To::Exchange(&name) } else { To::Queue(&name) };
    let found = found(client, world, &source, to, Action::Bind)?;
    let is_meant =
        |found: &&Found| found.key.as_bytes() == key.as_bytes() && mark(&found.arguments) == wanted;
    if let Some(Found { key, arguments }) = found.iter().find(is_meant) {
        set(client, world, &source, to, (key.as_bytes(), arguments), false)?;
    }
    Ok(Response::done())
}

fn set<W: World>(
    client: &Client,
    world: &W,
    source: &str,
    to: To<'_>,
    (key, arguments): (&[u8], &Arguments),
    is_bound: bool,
) -> Result<(), Response> {
    let (actor, source, key) = (client.actor(), source.as_bytes(), BindingKey::new(Syntax::Amqp, key));
    match to {
        To::Queue(name) => {
            let queue = broker::find_queue(world, &actor, name.as_bytes())?;
            match is_bound {
                true => broker::bind_queue(world, &actor, source, &key, arguments, queue)?,
                false => broker::unbind_queue(world, &actor, source, &key, arguments, queue)?,
            }
        }
        To::Exchange(name) => match is_bound {
            true => broker::bind_exchange(world, &actor, source, &key, arguments, name.as_bytes())?,
            false => broker::unbind_exchange(world, &actor, source, &key, arguments, name.as_bytes())?,
        },
    };
    Ok(())
}

/// Returns the bindings from an exchange to a target, if the client may read the exchange and do
/// `on_queue` with a queue. Rights are checked first, so that a refusal does not reveal what
/// exists.
fn found<W: World>(
    client: &Client,
    world: &W,
    source: &str,
    to: To<'_>,
    on_queue: Action,
) -> Result<Vec<Found>, Response> {
    let actor = client.actor();
    let authorize = |action, object| world.authorize(&actor, action, object).map_err(BrokerError::from);
    authorize(Action::BindTo, Object::Exchange(source.as_bytes()))?;
    if let To::Queue(name) = to {
        authorize(on_queue, Object::Queue(name.as_bytes()))?;
    }
    broker::look_up_exchange(world, &actor, source.as_bytes())?;
    let target = match to {
        To::Queue(name) => Target::Queue(broker::find_queue(world, &actor, name.as_bytes())?),
        To::Exchange(name) => {
            broker::look_up_exchange(world, &actor, name.as_bytes())?;
            Target::Exchange(Name::from(name))
        }
    };
    let mut found = Vec::new();
    world.with_router(|_, table| {
        if let Some(exchange) = table.exchange(client.vhost, source.as_bytes()) {
            exchange.for_each_binding(&mut |binding| {
                if *binding.target == target {
                    found.push(Found { key: Name::new(binding.key), arguments: binding.arguments.clone() });
                }
            });
        }
    });
    Ok(found)
}

/// Returns the arguments to show to clients: texts, numbers and booleans. Other types could not be
/// sent back unchanged.
fn shown(arguments: &Arguments) -> MapBuf {
    let mut map = MapBuf::new();
    for (name, value) in arguments.entries() {
        let value = match value {
            CoreValue::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => Value::String(text),
                Err(_) => Value::Binary(text),
            },
            CoreValue::Bool(flag) => Value::Bool(*flag),
            CoreValue::Int(number) => Value::Long(*number),
            CoreValue::Uint(number) => Value::Ulong(*number),
            CoreValue::Float(number) => Value::Double(*number),
            _ => continue,
        };
        put(&mut map, &name.to_string(), value);
    }
    map
}

/// Returns a hash that distinguishes bindings with different arguments in locations; empty without
/// arguments.
fn mark(arguments: &Arguments) -> String {
    if arguments.is_empty() {
        return String::new();
    }
    // FNV-1a suffices: a location is compared with the few bindings of one key, and is not secret.
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let text = format!("{:?}", arguments.entries());
    format!("{:08x}", text.bytes().fold(0x811c_9dc5, step))
}
