//! `/v1/history`: samples of the last minutes and of the last day.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::live::{Window, Windows};
use crate::requests::answer::Answer;
use crate::requests::input::{Answered, Params};
use crate::requests::operator::Operator;
use crate::requests::problem::Problem;

/// Selects a window.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryQuery {
    /// `10m` for ten minutes in steps of a second, or `24h` for a day in steps of a minute.
    #[cfg_attr(feature = "openapi", param(default = "10m"))]
    window: Option<String>,
}

/// Samples at equal distances.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct History {
    /// Milliseconds between two samples.
    step_ms: u64,
    /// When the last sample was taken, in milliseconds since the UNIX epoch; 0 if there is none.
    until: u64,
    /// A list for each series, oldest first and all of the same length: a number, or null where there is none.
    samples: BTreeMap<&'static str, Vec<Option<f64>>>,
}

/// Shows how the broker's rates, latencies and sizes changed since it started. It keeps them in memory.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/history", tag = "broker",
    params(HistoryQuery),
    responses((status = 200, body = History)),
))]
pub(crate) async fn show(operator: Operator, Params(query): Params<HistoryQuery>) -> Answered<History> {
    let window = match query.window.as_deref() {
        None | Some("10m") => Window::TenMinutes,
        Some("24h") => Window::Day,
        Some(other) => {
            let text = format!("there is no window `{}`; use `10m` or `24h`", other.escape_debug());
            return Err(Problem::bad(text));
        }
    };
    let Windows { step_ms, until, samples } = operator.state.live.window(window);
    Ok(Answer::of(History { step_ms, until, samples }))
}
