//! `/healthz` and `/readyz`: whether the broker is ready; `/livez`: whether a restart would help.

use axum::http::StatusCode;
use serde::Serialize;

use super::monitor_state::MonitorState;
use super::query::Parameters;
use crate::health::{Ailment, lifelessness, unreadiness};
use crate::http::Names;

/// The broker's health.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Healthz {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Healthz {
    /// Current readiness, with the response's status. Findings of damage contain names of queues.
    pub(super) fn of(state: &MonitorState, query: HealthzQuery, names: Names) -> (StatusCode, Healthz) {
        let ailment = unreadiness(&state.broker, query.counts_damage);
        let (status, mut health) = answer(ailment.as_ref());
        if let (Some(Ailment::Damaged(findings)), Names(false)) = (&ailment, names) {
            health.error = Some(format!("damage was found, {} findings", findings.len()));
        }
        (status, health)
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

/// The parameters of `/healthz`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HealthzQuery {
    counts_damage: bool,
}

impl HealthzQuery {
    /// Parses the parameters, or returns what is wrong with them; ignores those of nats-server.
    pub(super) fn read(parameters: &Parameters) -> Result<HealthzQuery, String> {
        Ok(HealthzQuery { counts_damage: parameters.flag("damage")? })
    }
}
