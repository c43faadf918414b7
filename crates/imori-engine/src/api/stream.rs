//! Changes as they happen, as server-sent events: `/stream`.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderValue, Response, header};
use futures_util::stream::unfold;
use imori_automation::value::Value;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::executions::shape;
use crate::answers::{Answer, ListQuery};
use crate::engine::{Engine, Update};

/// The beginning of the names of updates of executions.
const OF_EXECUTIONS: &str = "st2.execution__";

pub(super) async fn stream(
    State(engine): State<Arc<Engine>>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Answer {
    let list = ListQuery::new(pairs);
    let names = |key: &str| -> Vec<String> {
        list.get(key).map(|names| names.split(',').map(str::to_owned).collect()).unwrap_or_default()
    };
    let wanted = Arc::new((names("events"), names("action_refs"), names("execution_ids")));
    let updates = engine.updates();
    let next = move |updates| next_event(updates, Arc::clone(&wanted), Arc::clone(&engine));
    let body = Body::from_stream(unfold(updates, next));
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=UTF-8"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

/// The document of an update: an execution as its path shows it, without secrets.
fn shown<'u>(engine: &Engine, update: &'u Update) -> Cow<'u, str> {
    match Value::from_json(update.body.as_bytes()) {
        Ok(Value::Map(execution)) if update.name.starts_with(OF_EXECUTIONS) => {
            Value::Map(shape(engine, execution, false)).to_json().into()
        }
        _ => update.body.as_str().into(),
    }
}

/// Names of updates, references of actions and ids of executions that a reader asks for; an empty list asks for all.
type Wanted = (Vec<String>, Vec<String>, Vec<String>);

/// The next update that a reader asks for, as an event.
async fn next_event(
    mut updates: Receiver<Update>,
    wanted: Arc<Wanted>,
    engine: Arc<Engine>,
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
            let event = format!("event: {}\ndata: {}\n\n", update.name, shown(&engine, &update));
            return Some((Ok(Bytes::from(event)), updates));
        }
    }
}
