//! `/healthz` and `/readyz`: whether the broker can do its work; `/livez`: whether a restart would help it.

use std::time::Duration;

use axum::http::StatusCode;
use serde::Serialize;

use super::monitored::Monitored;
use super::query::Parameters;
use crate::shared::Phase;
use crate::stall::Cause;

/// A cell that is so late will not come back.
const DEAD_LAG: Duration = Duration::from_secs(60);

/// How the broker is.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Healthz {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Healthz {
    /// The broker as it is now, with the status of the answer. Damage that nobody has acknowledged counts
    /// where it is asked for. A restart does not mend it, so it must be hidden from a probe that restarts
    /// what is not healthy.
    pub(super) fn of(monitored: &Monitored, query: HealthzQuery) -> (StatusCode, Healthz) {
        let shared = &monitored.shared;
        let phase = *shared.phase.borrow();
        let lasts = shared.journal.flushing_for().filter(|lasts| *lasts >= monitored.stalled_flush);
        let damages = if query.counts_damage { shared.damages.findings() } else { Vec::new() };
        judge(phase, lasts, shared.stalls.flush_cause(), &damages)
    }
}

impl Healthz {
    /// Whether the broker runs. A disk that is slow, full or frozen is no reason to end it, and neither is a stop under
    /// way; a cell that comes to nothing any more is one.
    pub(super) fn of_life(monitored: &Monitored) -> (StatusCode, Healthz) {
        let now = monitored.now();
        let cells = monitored.shared.cells.get().into_iter().flatten();
        let lags = cells.map(|cell| cell.pulse.lag(now, cell.load.is_parked()));
        judge_life(lags.max().unwrap_or_default())
    }
}

fn judge_life(lag: Duration) -> (StatusCode, Healthz) {
    if lag < DEAD_LAG {
        return (StatusCode::OK, Healthz { status: "ok", error: None });
    }
    let error = format!("a cell has not come to its work for {:.0} s", lag.as_secs_f64());
    (StatusCode::SERVICE_UNAVAILABLE, Healthz { status: "unavailable", error: Some(error) })
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

fn judge(
    phase: Phase,
    lasts: Option<Duration>,
    cause: Option<Cause>,
    damages: &[String],
) -> (StatusCode, Healthz) {
    let error = match (phase, lasts) {
        (Phase::Stopping | Phase::Ended, _) => String::from("the broker is stopping"),
        (Phase::Serving, Some(lasts)) => {
            let because = cause.map(|cause| format!(": {}", cause.text())).unwrap_or_default();
            format!(
                "the disk has not answered for {:.1} s, persistent messages are not confirmed{because}",
                lasts.as_secs_f64()
            )
        }
        (Phase::Serving, None) => match damages {
            [] => return (StatusCode::OK, Healthz { status: "ok", error: None }),
            [first, more @ ..] => {
                let more = if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) };
                format!("{first}{more}; `/storez` lists what was found, `imori store acknowledge` ends this")
            }
        },
    };
    (StatusCode::SERVICE_UNAVAILABLE, Healthz { status: "unavailable", error: Some(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_cell_that_stands_still_is_no_life() {
        assert_eq!(judge_life(Duration::from_secs(59)).0, StatusCode::OK);
        let (status, health) = judge_life(Duration::from_secs(61));
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(health.error.unwrap(), "a cell has not come to its work for 61 s");
    }

    #[test]
    fn a_broker_whose_disk_stands_still_is_not_healthy() {
        let stalled = Some(Duration::from_millis(1_250));
        let damages = ["one is lost".to_string(), "two is lost".to_string()];
        let (none, one, both) = (&damages[..0], &damages[..1], &damages[..]);
        let told = "is lost; `/storez` lists what was found, `imori store acknowledge` ends this";
        let many =
            "one is lost, and 1 more; `/storez` lists what was found, `imori store acknowledge` ends this";
        let unconfirmed = "for 1.2 s, persistent messages are not confirmed";
        for (phase, lasts, cause, damages, status, words) in [
            (Phase::Serving, None, None, none, 200, None),
            (Phase::Serving, None, Some(Cause::Cpu), none, 200, None),
            (Phase::Serving, stalled, None, none, 503, Some(unconfirmed)),
            (Phase::Serving, stalled, None, both, 503, Some(unconfirmed)),
            (Phase::Serving, stalled, Some(Cause::Frozen), none, 503, Some("the file system is frozen")),
            (Phase::Stopping, stalled, None, both, 503, Some("the broker is stopping")),
            (Phase::Serving, None, None, one, 503, Some(told)),
            (Phase::Serving, None, None, both, 503, Some(many)),
        ] {
            let (found, health) = judge(phase, lasts, cause, damages);
            assert_eq!(found.as_u16(), status, "{health:?}");
            let error = health.error.unwrap_or_default();
            assert!(error.ends_with(words.unwrap_or_default()), "{error}");
        }
    }
}
