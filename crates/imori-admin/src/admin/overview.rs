//! `/api/overview` and `/api/nodes`: the broker as a whole.

use std::process;

use axum::extract::Path;
use imori_amqp091::settings::RABBITMQ_VERSION;
use imori_core::arguments::DELAYED;
use imori_core::id::VhostId;
use imori_core::route::ExchangeKind;
use imori_core::world::Counter;
use imori_server::AutomationState;
use imori_server::config::{ListenerName, ProtocolName, Service};
use serde_json::{Value, json};

use crate::metrics::memory_bytes;
use crate::milliseconds::millis;
use crate::operations::vhosts::{ObjectTotals, Totals};
use crate::requests::admin_state::AdminState;
use crate::requests::answer::Answer;
use crate::requests::operator::Operator;

/// The broker and its totals.
pub(super) async fn overview(operator: Operator) -> Answer {
    let broker = operator.broker();
    let vhosts: Vec<VhostId> = operator.vhosts().into_iter().map(|(_, vhost)| vhost).collect();
    let Totals { ready, unsettled } = Totals::of(broker, &vhosts).await;
    let objects = ObjectTotals::of(broker, &operator.identity, &vhosts).await;
    let published = broker.counted(Counter::Published);
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
        "node": operator.state.node,
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
        "listeners": listeners(&operator.state),
        "contexts": [],
    });
    Answer::of(answer)
}

/// Lists the nodes; there is always one.
pub(super) async fn nodes(operator: Operator) -> Answer {
    Answer::of(json!([node_row(&operator.state)]))
}

/// One node.
pub(super) async fn node(operator: Operator, Path(name): Path<String>) -> Answer {
    if name == operator.state.node { Answer::of(node_row(&operator.state)) } else { Answer::not_found() }
}

fn node_row(state: &AdminState) -> Value {
    let broker = &state.broker;
    let (memory, journal) = (broker.memory_figures(), broker.journal_figures());
    json!({
        "name": state.node,
        "type": "disc",
        "running": true,
        "being_drained": false,
        "os_pid": process::id().to_string(),
        "uptime": millis(broker.now().since(state.started)),
        "processors": state.cores,
        "mem_used": memory_bytes(),
        "mem_limit": memory.mark_bytes,
        "mem_alarm": memory.is_alarmed,
        "disk_free": journal.free_bytes,
        "disk_free_alarm": journal.is_room_scarce,
        "automation": automation(&broker.automation_state()),
        "sockets_used": broker.socket_connections(),
        "rates_mode": "basic",
        "applications": [],
        "auth_mechanisms": [],
        "contexts": [],
        "enabled_plugins": [],
        "exchange_types": [],
        "partitions": [],
    })
}

/// One word for the automation, or why it does not work.
fn automation(state: &AutomationState) -> &str {
    match state {
        AutomationState::Absent => "none",
        AutomationState::Starting => "starting",
        AutomationState::Away(reason) => reason,
        AutomationState::Ready => "ready",
    }
}

fn listeners(state: &AdminState) -> Vec<Value> {
    let row = |listener: &imori_server::Listener| {
        json!({
            "node": state.node,
            "protocol": protocol(listener.name),
            "ip_address": listener.address.ip(),
            "port": listener.address.port(),
            "tls": listener.name.is_tls,
        })
    };
    state.broker.settings().listeners().iter().map(row).collect()
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
        (Service::Automation, false) => "http/automation",
        (Service::Automation, true) => "https/automation",
        (Service::Http, false) => "http/gateway",
        (Service::Http, true) => "https/gateway",
    }
}
