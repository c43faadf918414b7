//! `/v1/events`: a live stream of the broker's events, as server-sent events.

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::Response;
use imori_server::broker::Broker;
use imori_server::stall::Heard;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use crate::http::Streamed;
use crate::limits::{EVENTS_AT_ONCE, EVENTS_LIFE_MAX, EVENTS_QUIET_MAX};
use crate::milliseconds::since_epoch;
use crate::requests::input::Params;
use crate::requests::operator::Operator;
use crate::requests::problem::Problem;

/// The known kinds of events, up to the dot.
const KINDS: [&str; 8] =
    ["connection", "login", "queue", "exchange", "binding", "messages", "object", "stall"];

/// Selects the events to stream.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub(super) struct EventQuery {
    /// Kinds, or their parts before the dot, separated by commas: `queue,login.refused`. All kinds if absent.
    #[serde(default)]
    kinds: Option<String>,
    /// Begin with the oldest event still kept, not with the next one.
    #[serde(default)]
    replay: bool,
}

/// Streams events as server-sent events, each with its kind as `event`, a number as `id` and a JSON object as `data`.
/// The stream ends after a while; a reader that reconnects with `Last-Event-ID` misses no event that is still kept. A
/// reader that is too slow gets the event `lost` with the number of events it missed.
#[cfg_attr(feature = "openapi", utoipa::path(
    get,
    path = "/v1/events",
    tag = "broker",
    params(EventQuery, ("last-event-id" = Option<String>, Header, description = "the `id` of the last event that was heard")),
    responses((status = 200, content_type = "text/event-stream", body = String)),
))]
pub(super) async fn follow(
    operator: Operator,
    headers: HeaderMap,
    Params(query): Params<EventQuery>,
) -> Result<Response, Problem> {
    let kinds = Kinds::read(query.kinds.as_deref())?;
    let boot = since_epoch(operator.state.started);
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let count = *operator.broker().follow_events().borrow();
    let next = match last.and_then(|last| last.split_once('-')) {
        Some((run, number)) if run == boot.to_string() => {
            number.parse::<u64>().map_or(count, |last| last + 1)
        }
        // The broker restarted since then, so every event of this run is new to the reader.
        Some(_) => 0,
        None if query.replay => 0,
        None => count,
    };
    let (parts, written) = mpsc::channel(1);
    let reader = Reader { broker: operator.broker().clone(), boot, next: next.min(count), kinds };
    tokio::spawn(reader.run(parts));
    Ok(Streamed(written).events())
}

/// The kinds that a reader wants; empty for all.
pub struct Kinds(Vec<String>);

impl Kinds {
    /// Reads kinds, or parts of theirs before the dot, separated by commas.
    pub fn read(text: Option<&str>) -> Result<Kinds, Problem> {
        let kinds = text.unwrap_or_default().split(',').map(str::trim).filter(|kind| !kind.is_empty());
        let kinds: Vec<String> = kinds.map(str::to_owned).collect();
        let is_known = |kind: &&String| KINDS.contains(&kind.split('.').next().unwrap_or_default());
        match kinds.iter().find(|kind| !is_known(kind)) {
            Some(kind) => Err(Problem::bad(format!(
                "there are no events of the kind `{}`; use one of `{}`",
                kind.escape_debug(),
                KINDS.join("`, `")
            ))),
            None => Ok(Kinds(kinds)),
        }
    }

    /// Whether the reader gets events of this kind.
    pub fn wants(&self, kind: &str) -> bool {
        let before_dot = kind.split('.').next().unwrap_or_default();
        self.0.is_empty() || self.0.iter().any(|wanted| wanted == kind || wanted == before_dot)
    }
}

/// A reader of the stream, and its position.
struct Reader {
    broker: Broker,
    /// Start time of the broker in milliseconds since the UNIX epoch; the first part of each event's `id`.
    boot: u64,
    /// The number of the next event.
    next: u64,
    kinds: Kinds,
}

impl Reader {
    /// Writes events until the reader disconnects or the stream reaches its maximum age. A reader that does not read
    /// blocks only this task.
    async fn run(mut self, parts: mpsc::Sender<Bytes>) {
        let end = Instant::now() + EVENTS_LIFE_MAX;
        let mut count = self.broker.follow_events();
        let mut text = String::from("retry: 500\n\n");
        loop {
            loop {
                let heard = self.broker.events_from(self.next, EVENTS_AT_ONCE);
                if heard.happenings.is_empty() {
                    break;
                }
                self.push(&mut text, &heard);
            }
            if !text.is_empty() && parts.send(Bytes::from(std::mem::take(&mut text))).await.is_err() {
                return;
            }
            let next = self.next;
            let quiet_until = (Instant::now() + EVENTS_QUIET_MAX).min(end);
            match timeout_at(quiet_until, count.wait_for(|count| *count > next)).await {
                Ok(Ok(_)) => {}
                Ok(Err(_)) => return,
                Err(_) if quiet_until >= end => return,
                // This write fails if the reader is gone, and it keeps proxies from closing the stream.
                Err(_) => text.push_str(": quiet\n\n"),
            }
            if Instant::now() >= end {
                return;
            }
        }
    }

    fn push(&mut self, text: &mut String, heard: &Heard) {
        if heard.lost > 0 {
            text.push_str(&format!("event: lost\ndata: {}\n\n", json!({"lost": heard.lost})));
        }
        for (number, happening) in (heard.first..).zip(&heard.happenings) {
            if self.kinds.wants(happening.kind) {
                let data = serde_json::to_string(&**happening).unwrap_or_default();
                let (kind, boot) = (happening.kind, self.boot);
                text.push_str(&format!("event: {kind}\nid: {boot}-{number}\ndata: {data}\n\n"));
            }
            self.next = number + 1;
        }
    }
}
