//! `/api/overview` and `/api/nodes`: the broker as a whole.

use std::process;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use imori_amqp091::settings::RABBITMQ_VERSION;
use imori_core::arguments::DELAYED;
use imori_core::authorize::Identity;
use imori_core::id::VhostId;
use imori_core::route::ExchangeKind;
use imori_core::world::Counter;
use serde_json::{Value, json};

use crate::clock::millis;
use crate::config::{ListenerName, ProtocolName, Service};
use crate::metrics::memory_bytes;
use crate::operations::vhosts::{ObjectTotals, Totals};
use crate::requests::administered::Administered;
use crate::requests::answer::{json_with, not_found};

type Broker = State<Arc<Administered>>;

/// The broker and its totals.
pub(super) async fn overview(State(broker): Broker, Extension(identity): Extension<Identity>) -> Response {
    let vhosts: Vec<VhostId> = broker.vhosts(&identity).iter().map(|(_, vhost)| *vhost).collect();
    let Totals { ready, unsettled } = Totals::of(&broker, &vhosts).await;
    let objects = ObjectTotals::of(&broker, &identity, &vhosts).await;
    let published: u64 = broker.cells().map(|cell| cell.counters.get(Counter::Published)).sum();
    let kinds = [ExchangeKind::Direct, ExchangeKind::Fanout, ExchangeKind::Headers, ExchangeKind::Topic];
    let names = kinds.into_iter().map(ExchangeKind::name).chain([DELAYED]);
    let kinds: Vec<Value> =
        names.map(|name| json!({"name": name, "description": "", "enabled": true})).collect();
    let answer = json!({
        "management_version": RABBITMQ_VERSION,
        "rabbitmq_version": RABBITMQ_VERSION,
        "product_name": "Imori",
        "product_version": env!("CARGO_PKG_VERSION"),
        "cluster_name": "imori",
        "node": broker.node,
        "rates_mode": "basic",
        "exchange_types": kinds,
        "object_totals": {
            "connections": objects.connections,
            "channels": objects.sessions,
            "consumers": objects.readers,
            "exchanges": objects.exchanges,
            "queues": objects.queues,
        },
        "queue_totals": {
            "messages": ready + unsettled,
            "messages_ready": ready,
            "messages_unacknowledged": unsettled,
        },
        "message_stats": {"publish": published},
        "listeners": listeners(&broker),
        "contexts": [],
    });
    json_with(StatusCode::OK, &answer)
}

/// Lists the nodes; there is always one.
pub(super) async fn nodes(State(broker): Broker) -> Response {
    json_with(StatusCode::OK, &json!([node_row(&broker)]))
}

/// One node.
pub(super) async fn node(State(broker): Broker, Path(name): Path<String>) -> Response {
    if name == broker.node { json_with(StatusCode::OK, &node_row(&broker)) } else { not_found() }
}

fn node_row(broker: &Administered) -> Value {
    let shared = &broker.shared;
    json!({
        "name": broker.node,
        "type": "disc",
        "running": true,
        "being_drained": false,
        "os_pid": process::id().to_string(),
        "uptime": millis(shared.clock.now().since(broker.started)),
        "processors": broker.cores,
        "mem_used": memory_bytes(),
        "mem_limit": shared.memory.mark_bytes(),
        "mem_alarm": shared.memory.is_alarmed(),
        "disk_free": shared.journal.free_bytes(),
        "disk_free_alarm": shared.journal.is_room_scarce(),
        "sockets_used": broker.cells().map(|cell| cell.socket_connections()).sum::<usize>(),
        "rates_mode": "basic",
        "applications": [],
        "auth_mechanisms": [],
        "contexts": [],
        "enabled_plugins": [],
        "exchange_types": [],
        "partitions": [],
    })
}

fn listeners(broker: &Administered) -> Vec<Value> {
    let row = |listener: &crate::settings::Listener| {
        json!({
            "node": broker.node,
            "protocol": protocol(listener.name),
            "ip_address": listener.address.ip(),
            "port": listener.address.port(),
            "tls": listener.name.is_tls,
        })
    };
    broker.settings().listeners.iter().map(row).collect()
}

/// The protocol of a listener, under RabbitMQ's name if it has one.
pub(super) fn protocol(listener: ListenerName) -> &'static str {
    match (listener.service, listener.is_tls) {
        (Service::Messages(ProtocolName::Amqp), false) => "amqp",
        (Service::Messages(ProtocolName::Amqp), true) => "amqp/ssl",
        (Service::Messages(ProtocolName::Stomp), false) => "stomp",
        (Service::Messages(ProtocolName::Stomp), true) => "stomp/ssl",
        (Service::Messages(ProtocolName::Nats), false) => "nats",
        (Service::Messages(ProtocolName::Nats), true) => "nats/ssl",
        (Service::WebSocket, false) => "http/web-stomp",
        (Service::WebSocket, true) => "https/web-stomp",
        (Service::NatsMonitor, false) => "http/nats-monitor",
        (Service::NatsMonitor, true) => "https/nats-monitor",
        (Service::Admin, false) => "http",
        (Service::Admin, true) => "https",
    }
}
