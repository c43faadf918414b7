//! `/healthz` and `/readyz`: whether the broker is ready; `/livez`: whether a restart would help.

use axum::http::StatusCode;
use imori_core::queue::Queue;
use serde::Serialize;

use super::monitor_state::MonitorState;
use super::query::Parameters;
use crate::health::{Ailment, lifelessness, unreadiness};
use crate::http::Names;

/// The broker's health.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Healthz {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Healthz {
    /// Current readiness, with the response's status. Findings of damage contain names of queues.
    pub(super) fn of(state: &MonitorState, query: &HealthzQuery, names: Names) -> (StatusCode, Healthz) {
        if let Some(refusal) = query.refusal() {
            return refusal;
        }
        let ailment = unreadiness(&state.broker, query.counts_damage);
        let (status, mut health) = answer(ailment.as_ref());
        if let (Some(Ailment::Damaged(findings)), Names(false)) = (&ailment, names) {
            health.error = Some(format!("damage was found, {} findings", findings.len()));
        }
        match query.missing(state, names).filter(|_| ailment.is_none()) {
            Some(missing) => missing,
            None => (status, health),
        }
    }

    /// Whether the broker is alive, with the response's status.
    pub(super) fn of_life(state: &MonitorState) -> (StatusCode, Healthz) {
        answer(lifelessness(&state.broker).as_ref())
    }
}

fn answer(ailment: Option<&Ailment>) -> (StatusCode, Healthz) {
    match ailment {
        None => (StatusCode::OK, Healthz { status: "ok", error: None }),
        Some(ailment) => {
            let error = Some(ailment.text());
            (StatusCode::SERVICE_UNAVAILABLE, Healthz { status: "unavailable", error })
        }
    }
}

/// The parameters of `/healthz`. JetStream is always enabled, so those that ask only for that change nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthzQuery {
    counts_damage: bool,
    /// Streams and consumers are not looked up.
    pub is_server_only: bool,
    /// The vhost, the stream and the consumer that have to be there; empty for any.
    account: String,
    stream: String,
    consumer: String,
}

impl HealthzQuery {
    /// Parses the parameters, or returns what is wrong with them.
    pub fn read(parameters: &Parameters) -> Result<HealthzQuery, String> {
        let mut is_server_only = false;
        for name in ["js-enabled", "js-enabled-only", "js-server-only", "js-meta-only"] {
            is_server_only |= parameters.flag(name)?;
        }
        parameters.flag("details")?;
        Ok(HealthzQuery {
            counts_damage: parameters.flag("damage")?,
            is_server_only,
            account: parameters.text("account").to_owned(),
            stream: parameters.text("stream").to_owned(),
            consumer: parameters.text("consumer").to_owned(),
        })
    }

    /// The refusal of parameters that belong together, in nats-server's words.
    pub fn refusal(&self) -> Option<(StatusCode, Healthz)> {
        let error = if self.account.is_empty() && !self.stream.is_empty() {
            "\"account\" must not be empty when checking stream health"
        } else if self.stream.is_empty() && !self.consumer.is_empty() {
            "\"stream\" must not be empty when checking consumer health"
        } else {
            return None;
        };
        let health = Healthz { status: "error", error: Some(String::from(error)) };
        Some((StatusCode::BAD_REQUEST, health))
    }

    /// The answer if something that has to be there is not. Without `names` nothing is looked up.
    fn missing(&self, state: &MonitorState, names: Names) -> Option<(StatusCode, Healthz)> {
        if self.is_server_only || names == Names(false) || self.account.is_empty() {
            return None;
        }
        let missing = |what: String| {
            let error = Some(format!("JetStream {what}"));
            Some((StatusCode::NOT_FOUND, Healthz { status: "unavailable", error }))
        };
        let (account, stream, consumer) = (&self.account, &self.stream, &self.consumer);
        let table = state.broker.table();
        let Some(vhost) = table.vhost_named(self.account.as_bytes()) else {
            return missing(format!("account {account:?} not found"));
        };
        if stream.is_empty() {
            return None;
        }
        let has_consumer = |queue: &Queue| {
            let stream = queue.stream()?;
            Some(consumer.is_empty() || stream.consumer(consumer.as_bytes()).is_some())
        };
        match table
            .queue(vhost, stream.as_bytes())
            .and_then(|id| state.broker.with_queue(id, has_consumer))
            .flatten()
        {
            None => missing(format!("stream {stream:?} not found on account {account:?}")),
            Some(false) => missing(format!(
                "consumer {consumer:?} not found for stream {stream:?} on account {account:?}"
            )),
            Some(true) => None,
        }
    }
}
