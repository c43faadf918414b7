//! `/healthz`: whether the broker can do what it is for.

use std::time::Duration;

use axum::http::StatusCode;
use serde::Serialize;

use super::monitored::Monitored;
use crate::shared::Phase;
use crate::stall::Cause;

/// How the broker is.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Healthz {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Healthz {
    /// The broker as it is now, with the status of the answer.
    pub(super) fn of(monitored: &Monitored) -> (StatusCode, Healthz) {
        let shared = &monitored.shared;
        let phase = *shared.phase.borrow();
        let lasts = shared.journal.flushing_for().filter(|lasts| *lasts >= monitored.stalled_flush);
        judge(phase, lasts, shared.stalls.flush_cause())
    }
}

fn judge(phase: Phase, lasts: Option<Duration>, cause: Option<Cause>) -> (StatusCode, Healthz) {
    let error = match (phase, lasts) {
        (Phase::Stopping | Phase::Ended, _) => String::from("the broker is stopping"),
        (Phase::Serving, Some(lasts)) => {
            let because = cause.map(|cause| format!(": {}", cause.text())).unwrap_or_default();
            format!(
                "the disk has not answered for {:.1} s, persistent messages are not confirmed{because}",
                lasts.as_secs_f64()
            )
        }
        (Phase::Serving, None) => return (StatusCode::OK, Healthz { status: "ok", error: None }),
    };
    (StatusCode::SERVICE_UNAVAILABLE, Healthz { status: "unavailable", error: Some(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_whose_disk_stands_still_is_not_healthy() {
        let stalled = Some(Duration::from_millis(1_250));
        for (phase, lasts, cause, status, words) in [
            (Phase::Serving, None, None, 200, None),
            (Phase::Serving, None, Some(Cause::Cpu), 200, None),
            (Phase::Serving, stalled, None, 503, Some("for 1.2 s, persistent messages are not confirmed")),
            (Phase::Serving, stalled, Some(Cause::Frozen), 503, Some("confirmed: the file system is frozen")),
            (Phase::Stopping, stalled, None, 503, Some("the broker is stopping")),
        ] {
            let (found, health) = judge(phase, lasts, cause);
            assert_eq!(found.as_u16(), status, "{health:?}");
            let error = health.error.unwrap_or_default();
            assert!(error.ends_with(words.unwrap_or_default()), "{error}");
        }
    }
}
