//! `/healthz` and `/readyz`: whether the broker can do its work; `/livez`: whether a restart would help it.

use axum::http::StatusCode;
use serde::Serialize;

use super::monitored::Monitored;
use super::query::Parameters;
use crate::health::Ailment;
use crate::http::Names;

/// How the broker is.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Healthz {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Healthz {
    /// The broker as it is now, with the status of the answer. Damage is told with the names of queues.
    pub(super) fn of(monitored: &Monitored, query: HealthzQuery, names: Names) -> (StatusCode, Healthz) {
        let ailment = monitored.shared.unreadiness(query.counts_damage);
        let (status, mut health) = answer(ailment.as_ref());
        if let (Some(Ailment::Damaged(findings)), Names(false)) = (&ailment, names) {
            health.error = Some(format!("damage was found, {} findings", findings.len()));
        }
        (status, health)
    }

    /// Whether the broker runs, with the status of the answer.
    pub(super) fn of_life(monitored: &Monitored) -> (StatusCode, Healthz) {
        answer(monitored.shared.lifelessness().as_ref())
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
    /// Reads the parameters, or says what is wrong with them; those of nats-server change nothing.
    pub(super) fn read(parameters: &Parameters) -> Result<HealthzQuery, String> {
        Ok(HealthzQuery { counts_damage: parameters.flag("damage")? })
    }
}
