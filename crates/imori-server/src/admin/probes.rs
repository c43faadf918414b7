//! Answers for probes and for Prometheus: `/livez` and `/readyz`, open to everybody, and `/metrics`.

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

/// The user who asks, if there was a login.
pub(super) type Asker = Option<Extension<Identity>>;

/// Whether the broker runs, whatever its disk does.
pub(super) async fn livez(State(broker): Broker, asker: Asker, Query(pairs): Pairs) -> Response {
    answer(broker.shared.lifelessness().as_ref(), asker.is_some(), &pairs)
}

/// Whether the broker can do its work.
pub(super) async fn readyz(State(broker): Broker, asker: Asker, Query(pairs): Pairs) -> Response {
    let counts_damage = pairs.iter().any(|(name, value)| name == "damage" && value != "0");
    let ailment = broker.shared.unreadiness(counts_damage);
    answer(ailment.as_ref(), asker.is_some(), &pairs)
}

/// Without a login no more than a word (SECURITY WEB-01); with one and `verbose` the reason.
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

/// The numbers for Prometheus.
pub(super) async fn metrics(State(broker): Broker, Extension(names): Extension<Names>) -> Response {
    exposition(metrics::page(&broker.metrics, names).await)
}

/// The families that are asked for, with a sample for each queue.
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
