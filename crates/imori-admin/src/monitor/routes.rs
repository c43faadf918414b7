//! The monitor's paths and their handlers.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{Html, IntoResponse, Response};
use axum::{Extension, Router};
use imori_core::authorize::Action;
use imori_server::http::{Guarded, guard, router};
use serde::Serialize;

use super::connz::{self, Connz};
use super::healthz::{self, Healthz};
use super::jsz::{self, Jsz};
use super::monitor_state::{MonitorState, Path};
use super::query::Parameters;
use super::storez::{self, Storez};
use super::subsz::{self, Subsz};
use super::varz::Varz;
use super::wording::timestamp;
use crate::http::{Endpoint, Names, Right, note_names, row, without_login};
use crate::metrics;

type Subject = State<Arc<MonitorState>>;
type Shown = Extension<Names>;
type Pairs = Query<Vec<(String, String)>>;

const GET: Method = Method::GET;

/// The monitor's routes. Methods other than GET and HEAD are refused.
pub(crate) fn routes(state: Arc<MonitorState>) -> Router {
    router(&endpoints())
        .layer(from_fn_with_state(state.broker.clone(), note_names))
        .layer(from_fn_with_state(Guarded::new(&state.broker, 0), guard))
        .with_state(state)
}

/// The table of the monitor. An answer to a client on another machine has names only with a login.
fn endpoints() -> Vec<Endpoint<Arc<MonitorState>>> {
    use Action::Monitor;
    use Right::Nothing;
    vec![
        without_login(row(GET, Path::Root.text(), Monitor, Nothing, root)),
        without_login(row(GET, Path::Varz.text(), Monitor, Nothing, varz)),
        without_login(row(GET, Path::Connz.text(), Monitor, Nothing, connz)),
        without_login(row(GET, Path::Subsz.text(), Monitor, Nothing, subsz)),
        without_login(row(GET, "/subscriptionsz", Monitor, Nothing, subsz)),
        without_login(row(GET, Path::Routez.text(), Monitor, Nothing, routez)),
        without_login(row(GET, Path::Healthz.text(), Monitor, Nothing, healthz)),
        without_login(row(GET, Path::Readyz.text(), Monitor, Nothing, readyz)),
        without_login(row(GET, Path::Livez.text(), Monitor, Nothing, livez)),
        without_login(row(GET, Path::Jsz.text(), Monitor, Nothing, jsz)),
        without_login(row(GET, Path::Storez.text(), Monitor, Nothing, storez)),
        without_login(row(GET, Path::Metrics.text(), Monitor, Nothing, metrics)),
        without_login(row(GET, "/metrics/detailed", Monitor, Nothing, detailed)),
    ]
}

async fn root(State(state): Subject) -> Response {
    state.requests.count(Path::Root);
    let policy = (CONTENT_SECURITY_POLICY, "default-src 'none'");
    ([policy, (X_CONTENT_TYPE_OPTIONS, "nosniff")], Html(INDEX)).into_response()
}

async fn varz(State(state): Subject) -> Response {
    state.requests.count(Path::Varz);
    json(&Varz::of(&state))
}

async fn connz(State(state): Subject, Extension(names): Shown, Query(pairs): Pairs) -> Response {
    state.requests.count(Path::Connz);
    match connz::ConnzQuery::read(&Parameters(pairs)) {
        Ok(query) => json(&Connz::of(&state, &query, names)),
        Err(reason) => refuse(reason),
    }
}

async fn subsz(State(state): Subject, Extension(names): Shown, Query(pairs): Pairs) -> Response {
    state.requests.count(Path::Subsz);
    match subsz::SubszQuery::read(&Parameters(pairs)) {
        Ok(query) => json(&Subsz::of(&state, &query, names)),
        Err(reason) => refuse(reason),
    }
}

/// Routes to other brokers. There are none, but exporters ask.
#[derive(Debug, Serialize)]
struct Routez<'a> {
    server_id: &'a str,
    server_name: &'a str,
    now: String,
    num_routes: usize,
    routes: [(); 0],
}

async fn routez(State(state): Subject) -> Response {
    state.requests.count(Path::Routez);
    json(&Routez {
        server_id: state.broker.server_id(),
        server_name: &state.broker.settings().config().nats.server_name,
        now: timestamp(state.broker.now()),
        num_routes: 0,
        routes: [],
    })
}

async fn healthz(state: Subject, names: Shown, pairs: Pairs) -> Response {
    state.requests.count(Path::Healthz);
    readiness(state, names, pairs)
}

async fn readyz(state: Subject, names: Shown, pairs: Pairs) -> Response {
    state.requests.count(Path::Readyz);
    readiness(state, names, pairs)
}

async fn livez(State(state): Subject) -> Response {
    state.requests.count(Path::Livez);
    let (status, health) = Healthz::of_life(&state);
    answer(status, serde_json::to_vec(&health))
}

fn readiness(State(state): Subject, Extension(names): Shown, Query(pairs): Pairs) -> Response {
    let query = match healthz::HealthzQuery::read(&Parameters(pairs)) {
        Ok(query) => query,
        Err(reason) => return refuse(reason),
    };
    let (status, health) = Healthz::of(&state, &query, names);
    // On one line, because probes compare it as text.
    answer(status, serde_json::to_vec(&health))
}

async fn storez(State(state): Subject, Extension(names): Shown, Query(pairs): Pairs) -> Response {
    state.requests.count(Path::Storez);
    match storez::StorezQuery::read(&Parameters(pairs)) {
        Ok(query) => json(&Storez::of(&state, &query, state.metrics.confirmed().await, names)),
        Err(reason) => refuse(reason),
    }
}

async fn jsz(State(state): Subject, Extension(names): Shown, Query(pairs): Pairs) -> Response {
    state.requests.count(Path::Jsz);
    match jsz::JszQuery::read(&Parameters(pairs)) {
        Ok(query) => json(&Jsz::of(&state, &query, names)),
        Err(reason) => refuse(reason),
    }
}

async fn metrics(State(state): Subject, Extension(names): Shown) -> Response {
    state.requests.count(Path::Metrics);
    exposition(metrics::page(&state.metrics, names).await)
}

async fn detailed(State(state): Subject, Extension(names): Shown, Query(pairs): Pairs) -> Response {
    state.requests.count(Path::Metrics);
    exposition(metrics::detailed(&state.metrics, &pairs, names))
}

fn exposition(body: impl IntoResponse) -> Response {
    let headers =
        [(CONTENT_TYPE, metrics::CONTENT), (CACHE_CONTROL, "no-store"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (headers, body).into_response()
}

fn json(value: &impl Serialize) -> Response {
    answer(StatusCode::OK, serde_json::to_vec_pretty(value))
}

fn answer(status: StatusCode, body: serde_json::Result<Vec<u8>>) -> Response {
    match body {
        Ok(body) => {
            let headers = [
                (CONTENT_TYPE, "application/json"),
                (CACHE_CONTROL, "no-store"),
                (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            ];
            (status, headers, body).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn refuse(reason: String) -> Response {
    (StatusCode::BAD_REQUEST, [(X_CONTENT_TYPE_OPTIONS, "nosniff")], reason).into_response()
}

const INDEX: &str = "\
<!DOCTYPE html>
<html lang=\"en\">
<head><meta charset=\"utf-8\"><title>Imori</title></head>
<body>
<h1>Imori</h1>
<ul>
<li><a href=\"varz\">The broker</a></li>
<li><a href=\"connz\">Connections</a>, <a href=\"connz?subs=1\">with what they read</a></li>
<li><a href=\"subsz\">Subscriptions</a>, <a href=\"subsz?subs=1\">each</a></li>
<li><a href=\"jsz\">Streams</a>, <a href=\"jsz?consumers=1\">each with its consumers</a></li>
<li><a href=\"storez\">The store</a></li>
<li><a href=\"readyz\">Ready</a>, <a href=\"livez\">alive</a></li>
<li><a href=\"metrics\">Numbers for Prometheus</a></li>
</ul>
</body>
</html>
";
