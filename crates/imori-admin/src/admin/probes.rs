//! `/livez` and `/readyz` for probes, without a login, and `/metrics` for Prometheus.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use imori_core::authorize::Identity;
use serde_json::json;

use crate::health::{Ailment, Part, lifelessness, unreadiness, unreadiness_of};
use crate::http::Names;
use crate::metrics;
use crate::requests::admin_state::AdminState;
use crate::requests::answer::Answer;

type Admin = State<Arc<AdminState>>;
type Pairs = Query<Vec<(String, String)>>;

/// The user of the request, if it was logged in.
pub(super) type Asker = Option<Extension<Identity>>;

/// Answers 503 if the broker needs a restart. Trouble with the disk does not count.
pub(super) async fn livez(State(state): Admin, asker: Asker, Query(pairs): Pairs) -> Response {
    answer(lifelessness(&state.broker).as_ref(), asker.is_some(), &pairs)
}

/// Answers 503 if the broker is stopping, its disk is stalled or, with `damage`, has unacknowledged
/// damage. With `part`, tells of that part alone.
pub(super) async fn readyz(State(state): Admin, asker: Asker, Query(pairs): Pairs) -> Response {
    let counts_damage = pairs.iter().any(|(name, value)| name == "damage" && value != "0");
    let named = pairs.iter().find(|(name, _)| name == "part").map(|(_, part)| part.as_str());
    let ailment = match named.map(Part::named) {
        Some(None) => {
            return Answer::bad_request("`part` is none of `automation` and `publish`").into_response();
        }
        Some(Some(part)) => unreadiness_of(&state.broker, part),
        None => unreadiness(&state.broker, counts_damage),
    };
    answer(ailment.as_ref(), asker.is_some(), &pairs)
}

/// The answer of a probe: one word (SECURITY WEB-01). `verbose` adds the reason, and needs a login.
fn answer(ailment: Option<&Ailment>, is_known: bool, pairs: &[(String, String)]) -> Response {
    let is_verbose = pairs.iter().any(|(name, _)| name == "verbose");
    let (status, word) = match ailment {
        None => (StatusCode::OK, "ok"),
        Some(_) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    };
    match (is_verbose, is_known) {
        (false, _) => {
            let headers = [
                (CONTENT_TYPE, "text/plain"),
                (CACHE_CONTROL, "no-store"),
                (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            ];
            (status, headers, format!("{word}\n")).into_response()
        }
        (true, false) => Answer::not_authorized().into_response(),
        (true, true) => {
            let reasons: Vec<_> = ailment
                .map(|ailment| json!({"reason": ailment.name(), "message": ailment.text()}))
                .into_iter()
                .collect();
            Answer::of(json!({"status": word, "reasons": reasons})).with_status(status).into_response()
        }
    }
}

/// The page of metrics for Prometheus.
pub(super) async fn metrics(State(state): Admin, Extension(names): Extension<Names>) -> Response {
    exposition(metrics::page(&state.metrics, names).await)
}

/// The requested metric families, with a sample for each queue.
pub(super) async fn detailed(
    State(state): Admin,
    Extension(names): Extension<Names>,
    Query(pairs): Pairs,
) -> Response {
    exposition(metrics::detailed(&state.metrics, &pairs, names))
}

fn exposition(body: impl IntoResponse) -> Response {
    let headers =
        [(CONTENT_TYPE, metrics::CONTENT), (CACHE_CONTROL, "no-store"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (headers, body).into_response()
}
