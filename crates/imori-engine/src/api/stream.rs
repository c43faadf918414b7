//! Changes as they happen, as server-sent events: `/stream`.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderValue, Response, header};
use futures_util::stream::unfold;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::answers::{Answer, ListQuery};
use crate::engine::{Engine, Update};

pub(super) async fn stream(
    State(engine): State<Arc<Engine>>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Answer {
    let list = ListQuery::new(pairs);
    let names = |key: &str| -> Vec<String> {
        list.get(key).map(|names| names.split(',').map(str::to_owned).collect()).unwrap_or_default()
    };
    let wanted = Arc::new((names("events"), names("action_refs"), names("execution_ids")));
    let next = move |updates| next_event(updates, Arc::clone(&wanted));
    let body = Body::from_stream(unfold(engine.updates(), next));
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=UTF-8"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

/// Names of updates, references of actions and ids of executions that a reader asks for; an empty list asks for all.
type Wanted = (Vec<String>, Vec<String>, Vec<String>);

/// The next update that a reader asks for, as an event.
async fn next_event(
    mut updates: Receiver<Update>,
    wanted: Arc<Wanted>,
) -> Option<(Result<Bytes, Infallible>, Receiver<Update>)> {
    let (names, actions, ids) = &*wanted;
    let is_wanted = |list: &[String], value: &str| list.is_empty() || list.iter().any(|name| name == value);
    loop {
        let update = match updates.recv().await {
            Ok(update) => update,
            // A slow reader misses some updates, as in StackStorm.
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return None,
        };
        if is_wanted(names, update.name) && is_wanted(actions, &update.action) && is_wanted(ids, &update.id) {
            let event = format!("event: {}\ndata: {}\n\n", update.name, update.body);
            return Some((Ok(Bytes::from(event)), updates));
        }
    }
}
