//! `/livez` and `/readyz` for probes, without a login, and `/metrics` for Prometheus.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use imori_core::authorize::Identity;
use serde_json::json;

use crate::health::Ailment;
use crate::http::Names;
use crate::metrics;
use crate::requests::administered::Administered;
use crate::requests::answer::{json_with, not_authorized};

type Broker = State<Arc<Administered>>;
type Pairs = Query<Vec<(String, String)>>;

/// The user of the request, if it was logged in.
pub(super) type Asker = Option<Extension<Identity>>;

/// Answers 503 if the broker needs a restart. Trouble with the disk does not count.
pub(super) async fn livez(State(broker): Broker, asker: Asker, Query(pairs): Pairs) -> Response {
    answer(broker.shared.lifelessness().as_ref(), asker.is_some(), &pairs)
}

/// Answers 503 if the broker is stopping, its disk is stalled or, with `damage`, has unacknowledged
/// damage.
pub(super) async fn readyz(State(broker): Broker, asker: Asker, Query(pairs): Pairs) -> Response {
    let counts_damage = pairs.iter().any(|(name, value)| name == "damage" && value != "0");
    let ailment = broker.shared.unreadiness(counts_damage);
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
        (true, false) => not_authorized(),
        (true, true) => {
            let reasons: Vec<_> = ailment
                .map(|ailment| json!({"reason": ailment.name(), "message": ailment.text()}))
                .into_iter()
                .collect();
            json_with(status, &json!({"status": word, "reasons": reasons}))
        }
    }
}

/// The page of metrics for Prometheus.
pub(super) async fn metrics(State(broker): Broker, Extension(names): Extension<Names>) -> Response {
    exposition(metrics::page(&broker.metrics, names).await)
}

/// The requested metric families, with a sample for each queue.
pub(super) async fn detailed(
    State(broker): Broker,
    Extension(names): Extension<Names>,
    Query(pairs): Pairs,
) -> Response {
    exposition(metrics::detailed(&broker.metrics, &pairs, names))
}

fn exposition(body: impl IntoResponse) -> Response {
    let headers =
        [(CONTENT_TYPE, metrics::CONTENT), (CACHE_CONTROL, "no-store"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (headers, body).into_response()
}
