//! Health checks for scripts and probes.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use imori_core::authorize::Identity;
use serde_json::json;

use super::overview::protocol;
use crate::requests::administered::Administered;
use crate::requests::answer::{bad_request, json_with, not_found};
use crate::shared::Phase;

type Broker = State<Arc<Administered>>;

/// Answers 200 while the broker serves, 503 once it stops.
pub(super) async fn node(State(broker): Broker) -> Response {
    if *broker.shared.phase.borrow() == Phase::Serving {
        return json_with(StatusCode::OK, &json!({"status": "ok"}));
    }
    failed(json!({"status": "failed", "reason": "the broker is stopping"}))
}

/// The same check for a node by name; 404 if this broker has another name.
pub(super) async fn node_of(State(broker): Broker, Path(name): Path<String>) -> Response {
    if name == broker.node { node(State(broker)).await } else { not_found() }
}

/// Checks that a vhost exists and the broker serves. RabbitMQ used to send a message through the vhost, but no longer
/// does.
pub(super) async fn aliveness(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path(vhost): Path<String>,
) -> Response {
    if broker.vhost(&identity, &vhost).is_some() { node(State(broker)).await } else { not_found() }
}

/// Answers 503 while publishers wait for memory or disk space.
pub(super) async fn alarms(State(broker): Broker) -> Response {
    let resources =
        [("memory", broker.shared.memory.is_alarmed()), ("disk", broker.shared.journal.is_room_scarce())];
    let raised = resources.into_iter().filter(|(_, is_raised)| *is_raised);
    let alarms: Vec<_> =
        raised.map(|(resource, _)| json!({"node": broker.node, "resource": resource})).collect();
    if alarms.is_empty() {
        return json_with(StatusCode::OK, &json!({"status": "ok"}));
    }
    failed(
        json!({"status": "failed", "reason": "There are alarms in effect in the cluster", "alarms": alarms}),
    )
}

/// Answers 503 if the broker does not listen on a port.
pub(super) async fn port_listener(State(broker): Broker, Path(port): Path<String>) -> Response {
    let Ok(port) = port.parse::<u16>() else {
        return bad_request("Invalid port");
    };
    let settings = broker.settings();
    let ports: Vec<u16> = settings.listeners.iter().map(|listener| listener.address.port()).collect();
    if ports.contains(&port) {
        return json_with(StatusCode::OK, &json!({"status": "ok", "port": port}));
    }
    failed(json!({"status": "failed", "reason": "No active listener", "missing": port, "ports": ports}))
}

/// Answers 503 if the broker has no listener for a protocol.
pub(super) async fn protocol_listener(State(broker): Broker, Path(wanted): Path<String>) -> Response {
    let settings = broker.settings();
    let protocols: Vec<&str> = settings.listeners.iter().map(|listener| protocol(listener.name)).collect();
    if protocols.contains(&wanted.as_str()) {
        return json_with(StatusCode::OK, &json!({"status": "ok", "protocol": wanted}));
    }
    failed(
        json!({"status": "failed", "reason": "No active listener", "missing": wanted, "protocols": protocols}),
    )
}

#[expect(clippy::needless_pass_by_value, reason = "it is made for this")]
fn failed(answer: serde_json::Value) -> Response {
    json_with(StatusCode::SERVICE_UNAVAILABLE, &answer)
}
