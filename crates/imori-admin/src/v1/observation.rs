//! `/v1/trace` and `/v1/calls`: messages on their way, and requests with their replies.

use std::collections::HashMap;
use std::time::Duration;

use imori_core::delivery::Outcome;
use imori_core::id::ConnectionId;
use imori_core::time::Time;
use imori_core::world::Counter;
use imori_server::broker::{
    CallFigures, LATENCY_BOUNDS_US, MessageTrace, ServiceFigures, TRACED_MESSAGES_MAX, TraceFilter,
    TraceStep, TracedClient, TracedMessage,
};
use serde::{Deserialize, Serialize};

use crate::milliseconds::{millis, since_epoch};
use crate::operations::connections::name_of;
use crate::requests::answer::Answer;
use crate::requests::input::{Answered, Input};
use crate::requests::operator::Operator;
use crate::requests::problem::Problem;

/// Longest time of a trace, in seconds.
const TRACE_SECONDS_MAX: u64 = 3600;

/// The messages that a trace follows.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct NewTrace {
    vhost: String,
    /// The exchange that they are published to; absent for any.
    #[serde(default)]
    exchange: Option<String>,
    /// Their subject (routing key), in which `*` stands for any characters; absent for any.
    #[serde(default)]
    subject: Option<String>,
    /// The queue that takes them; absent for any queue and for live subscriptions.
    #[serde(default)]
    queue: Option<String>,
    /// Number of messages to follow, at most 1,000.
    #[serde(default = "usual_messages")]
    messages: usize,
    /// How long the trace runs, at most 3,600 seconds.
    #[serde(default = "usual_seconds")]
    seconds: u64,
}

fn usual_messages() -> usize {
    100
}

fn usual_seconds() -> u64 {
    60
}

/// A trace, and the messages that it has followed so far.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Trace {
    vhost: String,
    exchange: Option<String>,
    subject: String,
    queue: Option<String>,
    /// Number of messages to follow.
    messages_max: usize,
    /// The user who started it.
    user: String,
    /// When it started, in milliseconds since the UNIX epoch.
    from: u64,
    /// When it ends, or has ended, in milliseconds since the UNIX epoch.
    until: u64,
    /// It follows messages that are published now.
    running: bool,
    /// Oldest first.
    messages: Vec<Traced>,
}

/// A message that a trace has followed.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct Traced {
    /// When it was published, in microseconds since the UNIX epoch.
    at_us: u64,
    /// The client that published it; absent for a message of the broker itself.
    publisher: Option<Party>,
    exchange: String,
    subject: String,
    /// Empty if its publisher gave none.
    message_id: String,
    /// Empty if its publisher gave none.
    correlation_id: String,
    /// Bytes of the body.
    bytes: usize,
    /// Number of messages to the same address that the client sent together; the first one is followed.
    messages: usize,
    /// Oldest first.
    steps: Vec<Step>,
    /// Number of steps beyond the limit of a message.
    more_steps: usize,
}

/// A step of a message.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct Step {
    /// Microseconds since the message was published.
    after_us: u64,
    /// `queued`, `delivered`, `routed`, `accepted`, `released`, `rejected` or `dead_lettered`.
    step: &'static str,
    /// The queue; absent for a live subscription.
    queue: Option<String>,
    /// The connection that has the message or settled it.
    connection: Option<Party>,
    /// Number of receivers, of `routed`.
    receivers: Option<usize>,
    /// Why it was dead-lettered.
    reason: Option<&'static str>,
    /// The exchange to which it was dead-lettered.
    exchange: Option<String>,
    /// Its routing key as a dead letter.
    subject: Option<String>,
}

/// The client of a connection.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Party {
    /// The name of the connection; absent for a client inside the broker.
    connection: Option<String>,
    user: String,
    /// The protocol; absent for a client inside the broker.
    protocol: Option<String>,
}

impl Party {
    fn of(client: &TracedClient) -> Party {
        Party {
            connection: client.protocol.as_ref().map(|_| name_of(client.source, client.local)),
            user: client.user.clone(),
            protocol: client.protocol.clone(),
        }
    }
}

/// Starts a trace: the broker notes the steps of the messages that it is about, and neither their headers nor their
/// bodies. It replaces the earlier trace.
#[cfg_attr(feature = "openapi", utoipa::path(
    put, path = "/v1/trace", tag = "broker",
    request_body = NewTrace,
    responses((status = 204, description = "it has started")),
))]
pub(super) async fn start_trace(operator: Operator, Input(new): Input<NewTrace>) -> Result<Answer, Problem> {
    if !(1..=TRACE_SECONDS_MAX).contains(&new.seconds) {
        return Err(Problem::bad(format!("`seconds` is 1 to {TRACE_SECONDS_MAX}")));
    }
    if !(1..=TRACED_MESSAGES_MAX).contains(&new.messages) {
        return Err(Problem::bad(format!("`messages` is 1 to {TRACED_MESSAGES_MAX}")));
    }
    let vhosts = operator.vhosts();
    let vhost = vhosts.iter().find(|(name, _)| name.to_string() == new.vhost);
    let Some((_, vhost)) = vhost else {
        return Err(Problem::bad(format!("there is no vhost `{}`", new.vhost.escape_debug())));
    };
    let filter = TraceFilter {
        vhost: *vhost,
        exchange: new.exchange,
        subject: new.subject.unwrap_or_else(|| String::from("*")),
        queue: new.queue,
        messages: new.messages,
        time: Duration::from_secs(new.seconds),
    };
    operator.broker().start_trace(filter, operator.identity.user.to_string());
    Ok(Answer::done())
}

/// Shows the latest trace, whether it still runs or not.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/trace", tag = "broker",
    responses((status = 200, body = Trace), (status = 404, description = "none was started")),
))]
pub(super) async fn show_trace(operator: Operator) -> Answered<Trace> {
    let Some(trace) = operator.broker().latest_trace() else {
        return Err(Problem::new(axum::http::StatusCode::NOT_FOUND, "no trace was started; PUT starts one"));
    };
    let vhosts = operator.vhosts();
    let vhost = vhosts.iter().find(|(_, id)| *id == trace.filter.vhost);
    let is_running = operator.broker().now() <= trace.until && trace.messages.len() < trace.filter.messages;
    let MessageTrace { filter, user, from, until, messages, clients, .. } = trace;
    Ok(Answer::of(Trace {
        vhost: vhost.map(|(name, _)| name.to_string()).unwrap_or_default(),
        exchange: filter.exchange,
        subject: filter.subject,
        queue: filter.queue,
        messages_max: filter.messages,
        user,
        from: since_epoch(from),
        until: since_epoch(until),
        running: is_running,
        messages: messages.into_iter().map(|message| Traced::of(message, &clients)).collect(),
    }))
}

/// Ends the trace and forgets what it followed.
#[cfg_attr(feature = "openapi", utoipa::path(
    delete, path = "/v1/trace", tag = "broker",
    responses((status = 204, description = "it has ended, or there was none")),
))]
pub(super) async fn end_trace(operator: Operator) -> Answer {
    operator.broker().end_trace();
    Answer::done()
}

impl Traced {
    fn of(message: TracedMessage, clients: &HashMap<ConnectionId, TracedClient>) -> Traced {
        let party = |id: &ConnectionId| clients.get(id).map(Party::of);
        let at = message.at;
        Traced {
            at_us: at.0,
            publisher: message.publisher.as_ref().and_then(party),
            exchange: message.exchange,
            subject: message.subject,
            message_id: message.message_id,
            correlation_id: message.correlation_id,
            bytes: message.bytes,
            messages: message.messages,
            steps: message.steps.into_iter().map(|step| Step::of(at, step, party)).collect(),
            more_steps: message.more_steps,
        }
    }
}

impl Step {
    fn of(from: Time, (at, step): (Time, TraceStep), party: impl Fn(&ConnectionId) -> Option<Party>) -> Step {
        let plain = Step {
            after_us: at.0.saturating_sub(from.0),
            step: "",
            queue: None,
            connection: None,
            receivers: None,
            reason: None,
            exchange: None,
            subject: None,
        };
        match step {
            TraceStep::Routed { receivers } => Step { step: "routed", receivers: Some(receivers), ..plain },
            TraceStep::Queued { queue } => Step { step: "queued", queue: Some(queue), ..plain },
            TraceStep::Delivered { queue, to } => {
                Step { step: "delivered", queue, connection: party(&to), ..plain }
            }
            TraceStep::Settled { queue, by, outcome } => {
                let step = match outcome {
                    Outcome::Accept => "accepted",
                    Outcome::Release { .. } | Outcome::Refuse { .. } => "released",
                    Outcome::Reject => "rejected",
                };
                Step { step, queue: Some(queue), connection: party(&by), ..plain }
            }
            TraceStep::DeadLettered { queue, reason, exchange, subject } => Step {
                step: "dead_lettered",
                queue: Some(queue),
                reason: Some(reason.as_str()),
                exchange: Some(exchange),
                subject: Some(subject),
                ..plain
            },
        }
    }
}

/// Requests and their replies, in the vhosts that you may see.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Calls {
    /// Milliseconds since the measurement began.
    measured_ms: u64,
    /// Number of replies since the start of the broker whose inbox no longer existed.
    orphan_replies: u64,
    /// Number of requests that were not followed because too many were in flight.
    not_followed: u64,
    /// Upper bounds of the buckets of `times`, in microseconds; the last bucket has none.
    bounds_us: Vec<u64>,
    services: Vec<Service>,
}

/// An address to which requests are published.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct Service {
    vhost: String,
    exchange: String,
    subject: String,
    /// Number of requests.
    requests: u64,
    /// Number of replies.
    replies: u64,
    /// Number of requests without a reply for 30 seconds.
    timed_out: u64,
    /// Number of requests that nothing received.
    unroutable: u64,
    /// Number of requests that wait for their reply.
    in_flight: usize,
    /// Milliseconds since the oldest of them.
    oldest_ms: Option<u64>,
    /// Number of calls by the time from request to reply, in the buckets of `bounds_us`.
    times: Vec<u64>,
    /// The longest time from request to reply, in microseconds.
    longest_us: u64,
    /// The connections that replied, at most 16.
    responders: Vec<Party>,
}

/// Shows calls: requests with a reply address, and their replies. The broker measures them while this path is read, and
/// for 15 seconds more; the figures count from the first of these readings.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/calls", tag = "broker",
    responses((status = 200, body = Calls)),
))]
pub(super) async fn calls(operator: Operator) -> Answered<Calls> {
    let broker = operator.broker();
    let CallFigures { from, services, not_followed } = broker.measure_calls();
    let (now, vhosts) = (broker.now(), operator.vhosts());
    let shown = services.into_iter().filter_map(|service| {
        let (vhost, _) = vhosts.iter().find(|(_, id)| *id == service.vhost)?;
        let ServiceFigures { exchange, subject, requests, replies, timed_out, unroutable, .. } = service;
        let responders = service.responders.iter();
        let party = |id: &ConnectionId| broker.traced_client(*id).as_ref().map(Party::of);
        Some(Service {
            vhost: vhost.to_string(),
            exchange,
            subject,
            requests,
            replies,
            timed_out,
            unroutable,
            in_flight: service.in_flight,
            oldest_ms: service.oldest.map(|oldest| millis(now.since(oldest))),
            times: service.times.to_vec(),
            longest_us: u64::try_from(service.longest.as_micros()).unwrap_or(u64::MAX),
            responders: responders.filter_map(party).collect(),
        })
    });
    Ok(Answer::of(Calls {
        measured_ms: millis(now.since(from)),
        orphan_replies: broker.counted(Counter::ReplyDropped),
        not_followed,
        bounds_us: LATENCY_BOUNDS_US.to_vec(),
        services: shown.collect(),
    }))
}
