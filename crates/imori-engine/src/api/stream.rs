//! Changes as they happen, as server-sent events: `/stream`.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderValue, Response, header};
use futures_util::stream::unfold;
use imori_automation::value::Value;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use super::admission::Admitted;
use super::executions::{find, shape};
use super::tenure::Tenure;
use crate::answers::{Answer, ListQuery};
use crate::engine::{Engine, Update};
use crate::executions::Status;
use crate::limits::TENURE_CHECK;

/// The beginning of the names of updates of executions.
const OF_EXECUTIONS: &str = "st2.execution__";

/// The update that tells of an execution's end, unless `end_event` names another.
const END: &str = "st2.execution__update";

pub(super) async fn stream(
    State(engine): State<Arc<Engine>>,
    Extension(admitted): Extension<Admitted>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Answer {
    let tenure = Tenure::new(&engine, admitted);
    let list = ListQuery::new(pairs);
    let names = |key: &str| -> Vec<String> {
        list.get(key).map(|names| names.split(',').map(str::to_owned).collect()).unwrap_or_default()
    };
    let wanted =
        Wanted { names: names("events"), actions: names("action_refs"), ids: names("execution_ids") };
    // Before the execution is looked at, so that its end is seen by one or the other.
    let updates = engine.updates();
    let last = list
        .get("end_execution_id")
        .map(|id| Last { id: id.to_owned(), event: list.get("end_event").unwrap_or(END).to_owned() });
    let ended = match &last {
        Some(last) => last.ended(&engine).await,
        None => None,
    };
    let reader = Reader { engine, tenure, updates, wanted, last, ended, is_over: false };
    let body = Body::from_stream(unfold(reader, Reader::next_event));
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
struct Wanted {
    names: Vec<String>,
    actions: Vec<String>,
    ids: Vec<String>,
}

impl Wanted {
    fn has(&self, update: &Update) -> bool {
        let has = |list: &[String], value: &str| list.is_empty() || list.iter().any(|name| name == value);
        has(&self.names, update.name) && has(&self.actions, &update.action) && has(&self.ids, &update.id)
    }
}

/// The execution with whose end a stream ends.
struct Last {
    id: String,
    /// The name of the update that tells of the end.
    event: String,
}

impl Last {
    /// Its end, if it has ended already.
    async fn ended(&self, engine: &Engine) -> Option<Update> {
        let execution = find(engine, &self.id).await.ok()?;
        let status = execution.get("status").and_then(Value::as_str).unwrap_or_default();
        Status::is_final(status).then(|| Update::of(END, &execution))
    }

    /// Whether nothing follows an update.
    fn is_ended_by(&self, update: &Update) -> bool {
        if update.id != self.id || update.name != self.event {
            return false;
        }
        let execution = Value::from_json(update.body.as_bytes()).ok();
        let status = execution.as_ref().and_then(|execution| execution.as_map()?.get("status")?.as_str());
        status.is_some_and(Status::is_final)
    }
}

/// A reader of the stream.
struct Reader {
    engine: Arc<Engine>,
    tenure: Tenure,
    updates: Receiver<Update>,
    wanted: Wanted,
    /// The stream goes on without end if there is none.
    last: Option<Last>,
    /// The end of `last`, if it came before the reader.
    ended: Option<Update>,
    is_over: bool,
}

impl Reader {
    /// The next update that the reader asks for, as an event; `None` after the last one, or once its user would not be
    /// admitted any more.
    async fn next_event(mut self) -> Option<(Result<Bytes, Infallible>, Reader)> {
        if self.is_over {
            return None;
        }
        let update = match self.ended.take() {
            Some(ended) => {
                self.is_over = true;
                ended
            }
            None => self.next_update().await?,
        };
        if !self.tenure.holds(&self.engine).await {
            return None;
        }
        let event = format!("event: {}\ndata: {}\n\n", update.name, shown(&self.engine, &update));
        self.is_over |= self.last.as_ref().is_some_and(|last| last.is_ended_by(&update));
        Some((Ok(Bytes::from(event)), self))
    }

    async fn next_update(&mut self) -> Option<Update> {
        loop {
            match timeout(TENURE_CHECK, self.updates.recv()).await {
                Ok(Ok(update)) if self.wanted.has(&update) => return Some(update),
                // A slow reader misses some updates, as in StackStorm.
                Ok(Ok(_) | Err(RecvError::Lagged(_))) => {}
                Ok(Err(RecvError::Closed)) => return None,
                Err(_) if self.tenure.holds(&self.engine).await => {}
                Err(_) => return None,
            }
        }
    }
}
