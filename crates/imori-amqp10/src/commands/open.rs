//! `open`: takes the client's container, selects the vhost, and negotiates sizes.

use std::time::Duration;

use imori_core::authorize::{Action, Actor, Object, authorize};
use imori_core::world::{Quotas as _, World};

use crate::PROTOCOL;
use crate::client::Client;
use crate::codec::composites::Open;
use crate::codec::condition;
use crate::codec::constructor::LIST_8;
use crate::codec::map::MapBuf;
use crate::codec::push::{Compound, push_value};
use crate::codec::symbols::Symbols;
use crate::codec::value::{Symbol, Value};
use crate::delivery::DeliveryEncoder;
use crate::limits::{FRAME_BYTES_MIN, NAME_BYTES_MAX, SHOWN_PROPERTIES_BYTES_MAX};
use crate::protocol_error::{Failure, ProtocolError};
use crate::settings::RABBITMQ_VERSION;

/// The container id of the broker.
const CONTAINER: &str = "imori";

/// Extensions that the broker offers, by their established names.
const CAPABILITIES: [Symbol<'static>; 5] = [
    Symbol("ANONYMOUS-RELAY"),
    Symbol("SHARED-SUBS"),
    Symbol("DELAYED_DELIVERY"),
    Symbol(SOLE_CONNECTION),
    Symbol("LINK_PAIR_V1_0"),
];

/// The capability of a client that wants to be the only connection of its container.
const SOLE_CONNECTION: &str = "sole-connection-for-container";

/// The property of an `open` that is followed by a `close` with an error.
const FAILED: &str = "amqp:connection-establishment-failed";

/// The property with the brokers to fail over to.
const FAILOVER: &str = "failover-server-list";

/// Upper bound for the length of an `open` without the list of other brokers, in bytes.
const OPEN_BYTES_MAX: usize = 384;

/// Prefix of a hostname that names a vhost. All other hostnames mean the vhost `/`.
const VHOST_PREFIX: &str = "vhost:";

/// Opens a connection and answers. Returns the client's idle time-out, if it has one.
pub(crate) fn open<W: World>(
    client: &mut Client,
    world: &W,
    open: &Open<'_>,
) -> Result<Option<Duration>, Failure> {
    let refused = |error| Failure::Connection(error);
    if open.max_frame_size < FRAME_BYTES_MIN {
        let text = format_args!(
            "`max-frame-size` is {}; it cannot be less than {FRAME_BYTES_MIN}",
            open.max_frame_size
        );
        return Err(refused(ProtocolError::new(condition::INVALID_FIELD, text)));
    }
    if open.container_id.len() > NAME_BYTES_MAX {
        let text = format_args!("`container-id` has more than {NAME_BYTES_MAX} bytes; use a shorter one");
        return Err(refused(ProtocolError::new(condition::INVALID_FIELD, text)));
    }
    client.container = open.container_id.into();
    client.set_identity(client.identity.clone());
    client.frame_bytes_max = open.max_frame_size;
    enter(client, world, open.hostname).map_err(refused)?;
    if open.desired_capabilities.is_some_and(|all| all.contains(SOLE_CONNECTION))
        && !world.quotas().claim_client_id(&client.actor(), open.container_id.as_bytes())
    {
        let container = open.container_id.escape_debug();
        let text = format_args!(
            "container `{container}` has a connection that is to be its only one; close that or take another \
             `container-id`"
        );
        let info = MapBuf::new().with("invalid-field", Value::Symbol(Symbol("container-id")));
        return Err(refused(ProtocolError::new(condition::INVALID_FIELD, text).with_info(info)));
    }
    let settings = &client.settings;
    client.facts.name = open.container_id.to_owned();
    client.facts.protocol = String::from(PROTOCOL);
    client.facts.sessions_max = Some(settings.channel_max.min(open.channel_max).saturating_add(1));
    client.facts.frame_bytes_max = Some(settings.frame_bytes_max.min(open.max_frame_size));
    client.facts.heartbeat_s = open.idle_time_out.map(|ms| u16::try_from(ms / 1000).unwrap_or(u16::MAX));
    let text = |name| match open.properties.and_then(|properties| properties.find(name)) {
        Some(Value::String(text) | Value::Symbol(Symbol(text))) => text.to_owned(),
        _ => String::new(),
    };
    (client.facts.language, client.facts.version) = (text("product"), text("version"));
    client.facts.properties = shown(open);
    let encoder = DeliveryEncoder::new(client.frame_bytes_max, settings);
    world.with_outbound(client.connection, |outbound| outbound.set_encoder(Box::new(encoder)));
    let properties = properties(client);
    client.answer_first(world, &Open { properties: Some(properties.map()), ..answer(client) });
    Ok(open.idle_time_out.filter(|ms| *ms > 0).map(|ms| Duration::from_millis(ms.into())))
}

/// Answers an `open` that is about to be followed by a `close`.
pub(crate) fn answer_refused<W: World>(client: &Client, world: &W) {
    let failed = MapBuf::new().with(FAILED, Value::Bool(true));
    client.answer_first(world, &Open { properties: Some(failed.map()), ..answer(client) });
}

/// Returns the broker's `open`, without properties.
fn answer(client: &Client) -> Open<'static> {
    let settings = &client.settings;
    Open {
        container_id: CONTAINER,
        max_frame_size: settings.frame_bytes_max,
        channel_max: settings.channel_max,
        idle_time_out: u32::try_from(settings.idle_time_out.as_millis()).ok(),
        offered_capabilities: Some(Symbols::Slice(&CAPABILITIES)),
        ..Open::default()
    }
}

/// Returns the broker's properties. Clients look for RabbitMQ by name to use its extensions; people
/// see the platform (decision 0062).
fn properties(client: &Client) -> MapBuf {
    let text = |text| Value::String(text);
    let told = MapBuf::new().with("product", text("RabbitMQ")).with("version", text(RABBITMQ_VERSION));
    let mut told = told.with("platform", text(&client.settings.platform));
    let bytes_max = (client.frame_bytes_max as usize).saturating_sub(OPEN_BYTES_MAX);
    push_failover(&mut told, &client.settings.failover, bytes_max);
    told
}

/// Adds the list of other brokers, as far as it fits into `bytes_max`.
fn push_failover(properties: &mut MapBuf, others: &[(String, u16)], bytes_max: usize) {
    let (mut maps, mut count) = (Vec::new(), 0);
    for (host, port) in others {
        let map =
            MapBuf::new().with("network-host", Value::String(host)).with("port", Value::Int((*port).into()));
        let before = maps.len();
        push_value(&mut maps, Value::Map(map.map()));
        if maps.len() > bytes_max {
            maps.truncate(before);
            break;
        }
        count += 1;
    }
    if count > 0 {
        properties.push_with(Value::Symbol(Symbol(FAILOVER)), |out| {
            let list = Compound::begin(out, LIST_8);
            out.extend_from_slice(&maps);
            list.end(out, count);
        });
    }
}

/// Enters the vhost that `hostname` names. A missing vhost and one closed to the user give the same
/// answer (SECURITY AUTH-14).
fn enter<W: World>(client: &mut Client, world: &W, hostname: Option<&str>) -> Result<(), ProtocolError> {
    let name = hostname.and_then(|name| name.strip_prefix(VHOST_PREFIX)).unwrap_or("/");
    let known = world.with_router(|_, table| table.vhost_named(name.as_bytes()));
    let may_enter = |id: &_| authorize(&client.identity, Action::Enter, *id, Object::Vhost).is_ok();
    let Some(id) = known.filter(may_enter) else {
        let text = format_args!("vhost `{}` not found", name.escape_debug());
        return Err(ProtocolError::new(condition::NOT_FOUND, text));
    };
    world.quotas().enter(&Actor { vhost: id, ..client.actor() })?;
    client.vhost = id;
    (client.facts.vhost, client.facts.user) = (Some(id), client.identity.user.to_string());
    Ok(())
}

/// Returns the client's properties as JSON for operators; an empty object if they are too long.
fn shown(open: &Open<'_>) -> String {
    let mut text = String::from("{");
    for (key, value) in open.properties.iter().flat_map(|properties| properties.iter()) {
        let (Value::Symbol(Symbol(key)) | Value::String(key)) = key else { continue };
        if text.len() > 1 {
            text.push(',');
        }
        imori_core::message::Value::text(key.as_bytes()).push_json(&mut text);
        text.push(':');
        crate::header_block::core_value(value).push_json(&mut text);
        if text.len() > SHOWN_PROPERTIES_BYTES_MAX {
            return String::from("{}");
        }
    }
    text.push('}');
    text
}
