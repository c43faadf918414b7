//! Health checks for scripts and probes.

use axum::extract::Path;
use axum::http::StatusCode;
use imori_server::Phase;
use serde_json::json;

use super::overview::protocol;
use crate::objects::operation_error::OperationError;
use crate::requests::admin_state::AdminState;
use crate::requests::answer::Answer;
use crate::requests::operator::Operator;

/// Answers 200 while the broker serves, 503 once it stops.
pub(super) async fn node(operator: Operator) -> Answer {
    if operator.broker().phase() == Phase::Serving {
        return Answer::of(json!({"status": "ok"}));
    }
    failed(json!({"status": "failed", "reason": "the broker is stopping"}))
}

/// The same check for a node by name; 404 if this broker has another name.
pub(super) async fn node_of(operator: Operator, Path(name): Path<String>) -> Answer {
    if name == operator.state.node { node(operator).await } else { Answer::not_found() }
}

/// Checks that a vhost exists and the broker serves. RabbitMQ used to send a message through the vhost, but no longer
/// does.
pub(super) async fn aliveness(operator: Operator) -> Result<Answer, OperationError> {
    operator.in_vhost()?;
    Ok(node(operator).await)
}

/// Answers 503 while publishers wait for memory or disk space.
pub(super) async fn alarms(operator: Operator) -> Answer {
    let AdminState { broker, node, .. } = &*operator.state;
    let resources =
        [("memory", broker.memory_figures().is_alarmed), ("disk", broker.journal_figures().is_room_scarce)];
    let raised = resources.into_iter().filter(|(_, is_raised)| *is_raised);
    let alarms: Vec<_> = raised.map(|(resource, _)| json!({"node": node, "resource": resource})).collect();
    if alarms.is_empty() {
        return Answer::of(json!({"status": "ok"}));
    }
    failed(
        json!({"status": "failed", "reason": "There are alarms in effect in the cluster", "alarms": alarms}),
    )
}

/// Answers 503 if the broker does not listen on a port.
pub(super) async fn port_listener(operator: Operator, Path(port): Path<String>) -> Answer {
    let Ok(port) = port.parse::<u16>() else {
        return Answer::bad_request("Invalid port");
    };
    let settings = operator.broker().settings();
    let ports: Vec<u16> = settings.listeners().iter().map(|listener| listener.address.port()).collect();
    if ports.contains(&port) {
        return Answer::of(json!({"status": "ok", "port": port}));
    }
    failed(json!({"status": "failed", "reason": "No active listener", "missing": port, "ports": ports}))
}

/// Answers 503 if the broker has no listener for a protocol.
pub(super) async fn protocol_listener(operator: Operator, Path(wanted): Path<String>) -> Answer {
    let settings = operator.broker().settings();
    let protocols: Vec<&str> = settings.listeners().iter().map(|listener| protocol(listener.name)).collect();
    if protocols.contains(&wanted.as_str()) {
        return Answer::of(json!({"status": "ok", "protocol": wanted}));
    }
    failed(
        json!({"status": "failed", "reason": "No active listener", "missing": wanted, "protocols": protocols}),
    )
}

fn failed(answer: serde_json::Value) -> Answer {
    Answer::of(answer).with_status(StatusCode::SERVICE_UNAVAILABLE)
}
