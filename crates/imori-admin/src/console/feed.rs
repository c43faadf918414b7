//! `/v1/feed`: the broker as it changes, as server-sent events.
//!
//! All readers share what the sampler finds. A reader that is slow gets what changed meanwhile in one piece, as it is
//! then; one that reads nothing for a while loses its feed.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::http::{Extensions, StatusCode};
use axum::response::Response;
use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::id::VhostId;
use imori_server::broker::may_see;
use imori_server::http::{KeepOpen, RequestOrigin};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout, timeout_at};

use crate::http::{Streamed, may_monitor};
use crate::limits::{FEED_QUIET_MAX, FEED_READERS_MAX, FEED_WRITE_MAX, SAMPLE_EVERY};
use crate::live::{CONNECTION_COLUMNS, Chunk, Follower, Latest, Position, QUEUE_COLUMNS, Topic, Topics};
use crate::lock::lock;
use crate::milliseconds::{millis, since_epoch};
use crate::objects::stall::ShownStall;
use crate::requests::admin_state::AdminState;
use crate::requests::input::Params;
use crate::requests::operator::Operator;
use crate::requests::problem::Problem;
use crate::requests::sessions::SessionKey;

/// Selects the topics to follow.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub(crate) struct FeedQuery {
    /// Topics, separated by commas: `overview`, `queues` and `connections`. The overview if absent.
    topics: Option<String>,
}

/// Streams the broker's state as server-sent events: first `hello`, then at most one event of each topic a second. A
/// list comes whole, in one or several events, and then by its changed and removed rows. Users with the tag
/// `monitoring` also get an event `stall` when a part of the broker begins or ends to be late.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/feed", tag = "broker",
    params(FeedQuery),
    responses((status = 200, content_type = "text/event-stream", body = String)),
))]
pub(crate) async fn follow(
    operator: Operator,
    session: Option<Extension<SessionKey>>,
    kept: Option<Extension<KeepOpen>>,
    extensions: Extensions,
    Params(query): Params<FeedQuery>,
) -> Result<Response, Problem> {
    let topics = topics(query.topics.as_deref())?;
    let Operator { state, identity, .. } = operator;
    let follower = state.live.follow(topics).ok_or_else(|| {
        let text = format!("the feed has {FEED_READERS_MAX} readers, which is the most; close a console");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, text)
    })?;
    let viewer = Viewer {
        session: session.map(|Extension(key)| key),
        is_local: RequestOrigin::of(&extensions).is_local(&state.broker),
        is_stored: state
            .broker
            .access()
            .identity_of(&identity.user.to_string())
            .is_some_and(|now| now == identity),
        identity,
    };
    let (parts, written) = mpsc::channel(1);
    let reader = FeedReader {
        parts,
        topics,
        viewer,
        number: 0,
        stalls: state.live.latest().borrow().stalls.back().map_or(0, |(number, _)| *number),
        queues: Position::default(),
        connections: Position::default(),
        last_write: Instant::now(),
        state,
        _follower: follower,
    };
    let kept = kept.map(|Extension(connection)| connection.keep());
    tokio::spawn(async move {
        // Returns the reason why the feed ends, which is of no interest: the reader is told by the end.
        let _ = reader.run().await;
        drop(kept);
    });
    Ok(Streamed(written).events())
}

/// Reads the topics that a request names: the overview if it names none.
pub fn topics(text: Option<&str>) -> Result<Topics, Problem> {
    let names = text.unwrap_or("overview").split(',').map(str::trim).filter(|name| !name.is_empty());
    names.into_iter().try_fold(Topics::default(), |topics, name| {
        let topic = Topic::ALL.into_iter().find(|topic| topic.name() == name).ok_or_else(|| {
            let all = Topic::ALL.map(Topic::name).join("`, `");
            Problem::bad(format!("there is no topic `{}`; use one of `{all}`", name.escape_debug()))
        })?;
        Ok(topics.with(topic))
    })
}

/// The user of a feed, whose rights may change while it lasts.
struct Viewer {
    identity: Identity,
    /// The session of the request, if it had one instead of a login.
    session: Option<SessionKey>,
    is_local: bool,
    /// The user is stored, so a change of it can be seen.
    is_stored: bool,
}

impl Viewer {
    /// Renews the rights; tells whether they changed. `None` if the user may not follow the feed any more.
    fn renew(&mut self, state: &AdminState) -> Option<bool> {
        let access = state.broker.access();
        let identity = match self.session {
            Some(key) => state.sessions.renewed(&state.broker, key, self.is_local)?,
            // A changed user has to log in again, since the password may be another one.
            None if self.is_stored => {
                access.identity_of(&self.identity.user.to_string()).filter(|now| *now == self.identity)?
            }
            None => {
                let end = self.identity.rights.valid_until();
                end.is_none_or(|end| state.broker.now() < end).then(|| self.identity.clone())?
            }
        };
        authorize(&identity, Action::Manage, VhostId(0), Object::Broker).ok()?;
        let has_changed = identity != self.identity;
        self.identity = identity;
        Some(has_changed)
    }
}

/// A reader of the feed, and its position.
struct FeedReader {
    parts: mpsc::Sender<Bytes>,
    state: Arc<AdminState>,
    topics: Topics,
    viewer: Viewer,
    /// The number of the last sample that was written.
    number: u64,
    /// The number of the last stall that was written.
    stalls: u64,
    queues: Position,
    connections: Position,
    last_write: Instant,
    _follower: Follower,
}

impl FeedReader {
    /// Writes events until the reader is gone or too slow, its user may not follow any more, or the broker ends.
    async fn run(mut self) -> Option<()> {
        let mut latest = self.state.live.latest();
        self.write(self.hello()).await?;
        loop {
            let now = latest.borrow_and_update().clone();
            if self.viewer.renew(&self.state)? {
                self.queues.reset();
                self.connections.reset();
            }
            self.write_news(&now).await?;
            let quiet_until = self.last_write + FEED_QUIET_MAX;
            let changed = tokio::select! {
                changed = timeout_at(quiet_until, latest.changed()) => changed,
                () = self.parts.closed() => return None,
            };
            match changed {
                Ok(changed) => changed.ok()?,
                // A proxy that drops quiet connections lets this one pass.
                Err(_) => self.write(String::from(":\n\n")).await?,
            }
        }
    }

    fn hello(&self) -> String {
        let state = &self.state;
        let data = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "node": state.node,
            "started": since_epoch(state.started),
            "now": since_epoch(state.broker.now()),
            "interval_ms": millis(SAMPLE_EVERY),
        });
        format!("retry: 1000\nevent: hello\ndata: {data}\n\n")
    }

    /// Writes what the reader has not got yet.
    async fn write_news(&mut self, latest: &Latest) -> Option<()> {
        let mut text = String::new();
        if self.topics.has(Topic::Overview) && latest.number > self.number {
            let started = since_epoch(self.state.started);
            let data = latest.overview(&self.state.broker, &self.viewer.identity, started);
            text.push_str(&format!("event: overview\ndata: {data}\n\n"));
        }
        self.number = latest.number;
        let last = self.stalls;
        for (number, stall) in latest.stalls.iter().filter(|(number, _)| *number > last) {
            if may_monitor(&self.viewer.identity) {
                let data = serde_json::to_string(&ShownStall::of(stall)).unwrap_or_default();
                text.push_str(&format!("event: stall\ndata: {data}\n\n"));
            }
            self.stalls = *number;
        }
        if !text.is_empty() {
            self.write(text).await?;
        }
        while self.topics.has(Topic::Queues) {
            let sees = |vhost: &VhostId| may_see(&self.viewer.identity, *vhost);
            let next = lock(&self.state.live.queues).next(&mut self.queues, sees);
            let Some(chunk) = next else { break };
            self.write_chunk(Topic::Queues, QUEUE_COLUMNS, &chunk).await?;
        }
        let (sees_all, user) = (may_monitor(&self.viewer.identity), self.viewer.identity.user.to_string());
        while self.topics.has(Topic::Connections) {
            let sees = |of: &String| sees_all || *of == user;
            let next = lock(&self.state.live.connections).next(&mut self.connections, sees);
            let Some(chunk) = next else { break };
            self.write_chunk(Topic::Connections, CONNECTION_COLUMNS, &chunk).await?;
        }
        Some(())
    }

    async fn write_chunk(&mut self, topic: Topic, columns: &str, chunk: &Chunk) -> Option<()> {
        if chunk.is_empty() {
            yield_now().await;
            return Some(());
        }
        let at = since_epoch(self.state.broker.now());
        let (topic, Chunk { is_reset, is_last, rows, removed, .. }) = (topic.name(), chunk);
        self.write(format!(
            "event: {topic}\ndata: {{\"at\":{at},\"reset\":{is_reset},\"last\":{is_last},\"columns\":{columns},\
             \"rows\":[{rows}],\"removed\":[{removed}]}}\n\n"
        ))
        .await
    }

    /// Waits until the reader takes the text; `None` if it is gone or too slow.
    async fn write(&mut self, text: String) -> Option<()> {
        timeout(FEED_WRITE_MAX, self.parts.send(Bytes::from(text))).await.ok()?.ok()?;
        self.last_write = Instant::now();
        Some(())
    }
}
