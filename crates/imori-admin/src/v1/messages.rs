//! Messages of queues: peek, take, publish, move and retry.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use imori_core::delivery::Outcome;
use imori_core::internal::MoveTarget;
use imori_core::name::Name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::limits::ADMIN_MESSAGES_MAX;
use crate::milliseconds::since_epoch;
use crate::operations::message_facts::MessageFacts;
use crate::operations::moves::MoveReport;
use crate::operations::publish;
use crate::operations::routing::DEFAULT_EXCHANGE;
use crate::operations::vhost_operator::VhostOperator;
use crate::requests::answer::Answer;
use crate::requests::input::{Answered, Input, Names, Params};
use crate::requests::operator::Operator;
use crate::requests::problem::Problem;

/// Bytes of a payload that a peek shows by default.
const PAYLOAD_BYTES: usize = 64 * 1024;

/// A message of a queue.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Message {
    /// Number of messages that the queue would deliver before this one.
    position: usize,
    /// The exchange that the message was published or dead-lettered to; empty for the default exchange.
    exchange: String,
    routing_key: String,
    /// Priority of the message in the queue.
    priority: u8,
    /// The message was delivered before.
    redelivered: bool,
    /// Number of failed deliveries.
    failures: u32,
    /// Expiry time, in milliseconds since the UNIX epoch.
    expires_at: Option<u64>,
    /// Size of the body in bytes.
    payload_bytes: usize,
    /// The body, or its beginning.
    payload: String,
    payload_encoding: Encoding,
    /// The payload is only the beginning of the body.
    truncated: bool,
    /// Properties under their AMQP 0-9-1 names.
    properties: Map<String, Value>,
    /// Headers that the publisher set.
    headers: Map<String, Value>,
    /// Earlier deaths of the message, latest first.
    deaths: Vec<Died>,
}

/// The encoding of a payload in JSON.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
enum Encoding {
    /// The payload as it is; it is UTF-8.
    #[default]
    String,
    /// Base64.
    Base64,
}

/// Deaths of a message in one queue for one reason.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct Died {
    queue: String,
    /// `rejected`, `expired`, `maxlen` or `delivery_limit`.
    reason: &'static str,
    count: u64,
    /// The exchange of the message's address at the first of these deaths.
    exchange: String,
    routing_key: String,
    /// Time of the first of these deaths, in milliseconds since the UNIX epoch.
    time: u64,
}

impl Message {
    fn of(position: usize, facts: &MessageFacts, payload_bytes_max: usize) -> Message {
        let body = facts.body();
        let shown = body.get(..payload_bytes_max).unwrap_or(&body);
        let (payload, payload_encoding) = text_of(shown);
        let deaths = facts.deaths().map(|death| Died {
            queue: death.queue.to_string(),
            reason: death.reason.as_str(),
            count: death.count,
            exchange: death.address.exchange.to_string(),
            routing_key: death.address.subject.to_string(),
            time: since_epoch(death.time),
        });
        Message {
            position,
            exchange: facts.exchange.clone(),
            routing_key: facts.routing_key.clone(),
            priority: facts.priority,
            redelivered: facts.is_redelivered,
            failures: facts.failures,
            expires_at: facts.expires_at,
            payload_bytes: body.len(),
            payload,
            payload_encoding,
            truncated: shown.len() < body.len(),
            properties: facts.properties(),
            headers: facts.headers(),
            deaths: deaths.collect(),
        }
    }
}

fn text_of(bytes: &[u8]) -> (String, Encoding) {
    match str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), Encoding::String),
        Err(_) => (BASE64_STANDARD.encode(bytes), Encoding::Base64),
    }
}

/// Selects the messages to show.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub(super) struct PeekQuery {
    /// Number of messages to skip.
    #[serde(default)]
    offset: usize,
    /// Maximum number of messages to show.
    #[serde(default = "ten")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1000, default = 10))]
    count: usize,
    /// Maximum bytes to show of each payload.
    #[serde(default = "payload_bytes")]
    #[cfg_attr(feature = "openapi", param(default = 65536))]
    payload_bytes: usize,
}

fn ten() -> usize {
    10
}

fn payload_bytes() -> usize {
    PAYLOAD_BYTES
}

/// Messages of a queue.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Messages {
    messages: Vec<Message>,
    /// Number of ready messages in the queue.
    ready: usize,
    /// The `offset` of the next messages, if there are any.
    next_offset: Option<usize>,
}

fn check_count(count: usize) -> Result<(), Problem> {
    match (1..=ADMIN_MESSAGES_MAX).contains(&count) {
        true => Ok(()),
        false => Err(Problem::bad(format!("`count` is not a number from 1 to {ADMIN_MESSAGES_MAX}"))),
    }
}

/// Shows ready messages, in memory or on disk, and changes nothing. Returns fewer than `count` if messages are large.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/queues/{vhost}/{name}/messages", tag = "messages",
    params(("vhost" = String, Path), ("name" = String, Path), PeekQuery),
    responses((status = 200, body = Messages)),
))]
pub(super) async fn peek(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
    Params(PeekQuery { offset, count, payload_bytes }): Params<PeekQuery>,
) -> Answered<Messages> {
    check_count(count)?;
    let peeked = operator.in_vhost()?.peek(&name, offset, count).await?;
    let messages: Vec<Message> = peeked
        .messages
        .iter()
        .enumerate()
        .map(|(index, facts)| Message::of(offset.saturating_add(index), facts, payload_bytes))
        .collect();
    let next = offset.saturating_add(messages.len());
    let next_offset = (!messages.is_empty() && next < peeked.ready).then_some(next);
    Ok(Answer::of(Messages { messages, ready: peeked.ready, next_offset }))
}

/// Options of a take.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct TakeRequest {
    /// Maximum number of messages to take.
    #[serde(default = "one")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000, default = 1))]
    count: usize,
    /// The outcome of all taken messages.
    #[serde(default)]
    outcome: TakeOutcome,
}

fn one() -> usize {
    1
}

/// The outcome of a taken message.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
enum TakeOutcome {
    /// The message leaves the queue.
    #[default]
    Accept,
    /// The message dies: it goes to the queue's dead-letter exchange, if the queue has one.
    Reject,
    /// The message returns to its place, marked as redelivered.
    Release,
}

/// Takes messages from a queue, and settles all of them at once.
#[cfg_attr(feature = "openapi", utoipa::path(
    post, path = "/v1/queues/{vhost}/{name}/take", tag = "messages",
    params(("vhost" = String, Path), ("name" = String, Path)),
    request_body = TakeRequest,
    responses((status = 200, body = Messages)),
))]
pub(super) async fn take(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
    Input(TakeRequest { count, outcome }): Input<TakeRequest>,
) -> Answered<Messages> {
    check_count(count)?;
    let operator = operator.in_vhost()?;
    let outcome = match outcome {
        TakeOutcome::Accept => Outcome::Accept,
        TakeOutcome::Reject => Outcome::Reject,
        TakeOutcome::Release => Outcome::Release { failed: false },
    };
    let taken = operator.take(&name, count, outcome).await?;
    let messages = taken.iter().map(|(facts, _)| Message::of(0, facts, usize::MAX)).collect();
    let ready = operator.would_drop(&name).unwrap_or_default();
    Ok(Answer::of(Messages { messages, ready, next_offset: None }))
}

/// A message to publish.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct NewMessage {
    #[serde(default)]
    routing_key: String,
    #[serde(default)]
    payload: String,
    #[serde(default)]
    payload_encoding: Encoding,
    /// Properties under their AMQP 0-9-1 names, such as `content_type` and `delivery_mode`.
    #[serde(default)]
    properties: Map<String, Value>,
    /// Headers.
    #[serde(default)]
    headers: Map<String, Value>,
}

/// The result of a publish.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Published {
    /// Number of queues and subscriptions that received the message.
    receivers: usize,
}

/// Publishes a message to an exchange; `amq.default` names the default exchange. Answers once the message is as durable
/// as its queues promise.
#[cfg_attr(feature = "openapi", utoipa::path(
    post, path = "/v1/exchanges/{vhost}/{name}/publish", tag = "messages",
    params(("vhost" = String, Path), ("name" = String, Path)),
    request_body = NewMessage,
    responses((status = 200, body = Published)),
))]
pub(super) async fn publish_to_exchange(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
    Input(message): Input<NewMessage>,
) -> Answered<Published> {
    let exchange = if name == DEFAULT_EXCHANGE { "" } else { &name };
    let operator = operator.in_vhost()?;
    let routing_key = message.routing_key.clone();
    send(&operator, exchange, &routing_key, message).await
}

/// Publishes a message to a queue, through the default exchange.
#[cfg_attr(feature = "openapi", utoipa::path(
    post, path = "/v1/queues/{vhost}/{name}/publish", tag = "messages",
    params(("vhost" = String, Path), ("name" = String, Path)),
    request_body = NewMessage,
    responses((status = 200, body = Published)),
))]
pub(super) async fn publish_to_queue(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
    Input(message): Input<NewMessage>,
) -> Answered<Published> {
    let operator = operator.in_vhost()?;
    operator.queue(&name)?;
    send(&operator, "", &name, message).await
}

async fn send(
    operator: &VhostOperator,
    exchange: &str,
    routing_key: &str,
    message: NewMessage,
) -> Answered<Published> {
    let body = match message.payload_encoding {
        Encoding::String => message.payload.into_bytes(),
        Encoding::Base64 => BASE64_STANDARD
            .decode(message.payload)
            .map_err(|error| Problem::bad(format!("`payload` is not base64: {error}")))?,
    };
    let mut properties = message.properties;
    if !message.headers.is_empty() {
        properties.insert(String::from("headers"), json!(message.headers));
    }
    let message = publish::message(body, &properties)?;
    let receivers = operator.publish(exchange, routing_key, message).await?;
    Ok(Answer::of(Published { receivers }))
}

/// The target of a move, and the messages to move.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct MoveRequest {
    /// The target exchange; the default exchange if absent or empty.
    #[serde(default)]
    exchange: String,
    /// The new routing key: a queue's name for the default exchange. If absent, each message keeps its own.
    #[serde(default)]
    routing_key: Option<String>,
    /// Maximum number of messages to move, from the first on; all ready messages if absent.
    #[serde(default)]
    count: Option<usize>,
    /// Only report what would happen.
    #[serde(default)]
    dry_run: bool,
}

/// Selects the dead letters to move back.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct RetryRequest {
    /// Maximum number of messages to move, from the first on; all ready messages if absent.
    #[serde(default)]
    count: Option<usize>,
    /// Only report what would happen.
    #[serde(default)]
    dry_run: bool,
}

/// The result of a move.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Moved {
    /// This was a dry run: nothing changed.
    dry_run: bool,
    /// Number of messages that moved, or would move.
    moved: usize,
    /// Number of messages that stay because they never died in a queue.
    skipped: usize,
    /// The addresses that messages moved to, with their numbers.
    targets: Vec<MovedTo>,
    /// The reason why the move stopped early, if it did.
    stopped: Option<String>,
    /// Number of ready messages in the queue now.
    left: usize,
}

/// Messages that moved to one address.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct MovedTo {
    exchange: String,
    routing_key: String,
    messages: usize,
}

impl Moved {
    fn of(report: MoveReport, dry_run: bool) -> Moved {
        let MoveReport { moved, skipped, targets, stopped, left } = report;
        let targets = targets.into_iter().map(|((exchange, routing_key), messages)| MovedTo {
            exchange,
            routing_key,
            messages,
        });
        Moved { dry_run, moved, skipped, targets: targets.collect(), stopped, left }
    }
}

/// Moves ready messages to an exchange, in order. Each message is durable at its target before it leaves the queue. The
/// move stops at the first message that no queue, or only a full queue, would receive.
#[cfg_attr(feature = "openapi", utoipa::path(
    post, path = "/v1/queues/{vhost}/{name}/move", tag = "messages",
    params(("vhost" = String, Path), ("name" = String, Path)),
    request_body = MoveRequest,
    responses((status = 200, body = Moved)),
))]
pub(super) async fn relocate(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
    Input(request): Input<MoveRequest>,
) -> Answered<Moved> {
    let MoveRequest { exchange, routing_key, count, dry_run } = request;
    let exchange = if exchange == DEFAULT_EXCHANGE { String::new() } else { exchange };
    if exchange.is_empty() && routing_key.is_none() {
        return Err(Problem::bad("name an `exchange` to move to, or a queue as `routing_key`"));
    }
    let operator = operator.in_vhost()?;
    let (exchange, routing_key) = (Name::from(exchange.as_str()), routing_key.as_deref().map(Name::from));
    let target = MoveTarget::Address { exchange, routing_key };
    moved(&operator, &name, target, count, dry_run).await
}

/// Moves dead letters back to the queues in which they died last; messages that never died stay.
#[cfg_attr(feature = "openapi", utoipa::path(
    post, path = "/v1/queues/{vhost}/{name}/retry", tag = "messages",
    params(("vhost" = String, Path), ("name" = String, Path)),
    request_body = RetryRequest,
    responses((status = 200, body = Moved)),
))]
pub(super) async fn retry(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
    Input(RetryRequest { count, dry_run }): Input<RetryRequest>,
) -> Answered<Moved> {
    let operator = operator.in_vhost()?;
    moved(&operator, &name, MoveTarget::Origin, count, dry_run).await
}

async fn moved(
    operator: &VhostOperator,
    name: &str,
    target: MoveTarget,
    count: Option<usize>,
    dry_run: bool,
) -> Answered<Moved> {
    let count = count.unwrap_or(usize::MAX);
    let report = match dry_run {
        true => operator.would_move(name, &target, count).await?,
        false => operator.move_messages(name, target, count).await?,
    };
    Ok(Answer::of(Moved::of(report, dry_run)))
}
