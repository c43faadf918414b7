//! `/v1/streams`: lists and shows streams with their consumers, reads and deletes messages, purges and deletes streams.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use imori_core::id::QueueId;
use imori_core::index::StreamPurge;
use imori_core::name::Name;
use imori_core::stream::{AckPolicy, Position};
use imori_core::time::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::queues::{Dropped, DryRunQuery};
use crate::archives::{Piece, back_up};
use crate::limits::ADMIN_MESSAGES_MAX;
use crate::milliseconds::{millis, since_epoch};
use crate::objects::operation_error::OperationError;
use crate::operations::streams::{
    StreamConsumerFacts, StreamFacts, StreamMessageFacts, stream_ids, subject_filter,
};
use crate::requests::admin_state::AdminState;
use crate::requests::answer::Answer;
use crate::requests::input::{Answered, Input, Names, Page, PageQuery, Params, page};
use crate::requests::operator::Operator;
use crate::requests::problem::Problem;

/// A stream as it is now.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Stream))]
pub(super) struct ShownStream {
    name: String,
    vhost: String,
    /// The subjects of `amq.topic` whose messages it stores, in the syntax of NATS.
    subjects: Vec<String>,
    /// `file` or `memory`.
    storage: Value,
    /// The safety of a message that is confirmed: `memory`, `os` or `disk`.
    level: &'static str,
    /// `limits`, `interest` or `workqueue`.
    retention: Value,
    /// Creation time, in milliseconds since the UNIX epoch.
    created_at: u64,
    limits: Limits,
    state: State,
    /// The policy in effect.
    policy: Option<String>,
    /// The operator policy in effect.
    operator_policy: Option<String>,
    /// The configuration in the words of JetStream; only in the answer for a single stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<Value>,
    /// The consumers by name; only in the answer for a single stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    consumers: Option<Vec<StreamConsumer>>,
}

/// The limits of a stream in effect, with those of policies; null for none.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = StreamLimits))]
struct Limits {
    messages: Option<u64>,
    bytes: Option<u64>,
    /// Age of a message, in milliseconds.
    age_ms: Option<u64>,
    messages_per_subject: Option<u64>,
    message_bytes: Option<u64>,
    consumers: Option<usize>,
}

/// What a stream holds.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = StreamState))]
struct State {
    messages: u64,
    /// Bytes of subjects, headers and bodies, as limits count them.
    bytes: u64,
    /// Sequence number of the first message, or of the next one if there is none.
    first_sequence: u64,
    /// Sequence number of the last message, also if it is deleted.
    last_sequence: u64,
    /// Time of the first message, in milliseconds since the UNIX epoch.
    first_at: Option<u64>,
    /// Time of the last message, also if it is deleted.
    last_at: Option<u64>,
    /// Number of subjects that have messages.
    subjects: u64,
    /// Number of deleted messages behind the first one.
    deleted: u64,
    /// Number of consumers.
    consumers: u64,
}

/// A consumer of a stream: a reader with a place of its own.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct StreamConsumer {
    name: String,
    /// The consumer stays without a client, and through restarts.
    durable: bool,
    /// `pull` or `push`.
    kind: &'static str,
    /// The subject of the deliveries of a consumer that pushes.
    deliver_subject: Option<String>,
    /// For a consumer that pushes: a client subscribes to the subject.
    bound: Option<bool>,
    /// The subjects that it reads, in the syntax of NATS; none for all.
    filters: Vec<String>,
    /// `none`, `all` or `explicit`.
    ack_policy: &'static str,
    /// Creation time, in milliseconds since the UNIX epoch.
    created_at: u64,
    /// The latest delivery.
    delivered: Place,
    /// The delivery up to which all are acknowledged.
    ack_floor: Place,
    /// Number of messages that are still to be delivered: its lag.
    pending: u64,
    /// Number of deliveries without an acknowledgement.
    ack_pending: usize,
    /// Number of those messages that were delivered more than once.
    redelivered: usize,
    /// Number of pull requests that wait for messages.
    waiting_pulls: usize,
    /// Nothing is delivered before this time, in milliseconds since the UNIX epoch.
    paused_until: Option<u64>,
    /// The configuration in the words of JetStream.
    configuration: Value,
}

/// A place of a consumer.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = StreamConsumerPlace))]
struct Place {
    /// Number of the delivery.
    delivery: u64,
    /// Sequence number of the message.
    sequence: u64,
    /// Time of the last change, in milliseconds since the UNIX epoch.
    at: Option<u64>,
}

impl ShownStream {
    fn of(state: &AdminState, id: QueueId) -> Option<ShownStream> {
        StreamFacts::of(&state.broker, id).map(|facts| ShownStream::with(&facts))
    }

    fn with(facts: &StreamFacts) -> ShownStream {
        let (config, state, settings) = (&facts.config, &facts.state, &facts.settings);
        let stream = settings.stream.as_deref();
        ShownStream {
            name: facts.name.to_string(),
            vhost: facts.vhost.clone(),
            subjects: config.subjects.clone(),
            storage: json!(config.storage),
            level: facts.level.as_str(),
            retention: json!(config.retention),
            created_at: since_epoch(facts.created),
            limits: Limits {
                messages: settings.length_max,
                bytes: settings.length_bytes_max,
                age_ms: settings.message_ttl.map(millis),
                messages_per_subject: stream.and_then(|stream| stream.per_subject_max),
                message_bytes: stream.and_then(|stream| stream.message_bytes_max),
                consumers: stream.and_then(|stream| stream.consumers_max),
            },
            state: State {
                messages: state.messages,
                bytes: state.bytes,
                first_sequence: state.first,
                last_sequence: state.last,
                first_at: facts.first_time.map(since_epoch),
                last_at: facts.last_time.map(since_epoch),
                subjects: state.subjects,
                deleted: state.deleted,
                consumers: facts.consumers.len() as u64,
            },
            policy: facts.matched.policy.as_ref().map(|policy| policy.name.to_string()),
            operator_policy: facts.matched.operator.as_ref().map(|policy| policy.name.to_string()),
            configuration: None,
            consumers: None,
        }
    }

    /// A stream with its configuration and consumers.
    fn whole(state: &AdminState, id: QueueId) -> Option<ShownStream> {
        let facts = StreamFacts::of(&state.broker, id)?;
        let consumers = facts.consumers.iter().map(StreamConsumer::of).collect();
        let configuration = Some(json!(facts.config));
        Some(ShownStream { configuration, consumers: Some(consumers), ..ShownStream::with(&facts) })
    }
}

impl StreamConsumer {
    fn of(facts: &StreamConsumerFacts) -> StreamConsumer {
        let place = |place: Position, at: Option<Time>| Place {
            delivery: place.consumer,
            sequence: place.stream,
            at: at.map(since_epoch),
        };
        let push = facts.push.as_ref();
        StreamConsumer {
            name: facts.name.to_string(),
            durable: facts.is_durable,
            kind: if push.is_some() { "push" } else { "pull" },
            deliver_subject: push.map(|(subject, _)| subject.to_string()),
            bound: push.map(|(_, is_bound)| *is_bound),
            filters: facts.config.filters().map(str::to_owned).collect(),
            ack_policy: match facts.acks {
                AckPolicy::None => "none",
                AckPolicy::All => "all",
                AckPolicy::Explicit => "explicit",
            },
            created_at: since_epoch(facts.created),
            delivered: place(facts.delivered, facts.last_delivery),
            ack_floor: place(facts.ack_floor, facts.last_ack),
            pending: facts.pending,
            ack_pending: facts.ack_pending,
            redelivered: facts.redelivered,
            waiting_pulls: facts.waiting,
            paused_until: facts.paused_until.map(since_epoch),
            configuration: json!(facts.config),
        }
    }
}

/// Lists the streams of all vhosts that you may see.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/streams", tag = "streams",
    params(PageQuery),
    responses((status = 200, body = Page<ShownStream>)),
))]
pub(super) async fn list_all(
    operator: Operator,
    Params(query): Params<PageQuery>,
) -> Answered<Page<ShownStream>> {
    answer_page(&operator, query).await
}

/// Lists the streams of a vhost.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/streams/{vhost}", tag = "streams",
    params(("vhost" = String, Path), PageQuery),
    responses((status = 200, body = Page<ShownStream>)),
))]
pub(super) async fn list(
    operator: Operator,
    Params(query): Params<PageQuery>,
) -> Answered<Page<ShownStream>> {
    answer_page(&operator, query).await
}

async fn answer_page(operator: &Operator, query: PageQuery) -> Answered<Page<ShownStream>> {
    let keys: Vec<(Name, QueueId)> = stream_ids(operator.broker(), &operator.vhost_ids()?).await;
    let state = &operator.state;
    page(query, keys, |(name, _)| Some(name.to_string()), |(_, id)| ShownStream::of(state, *id)).await
}

/// One stream, with its configuration and consumers.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/streams/{vhost}/{name}", tag = "streams",
    params(("vhost" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = ShownStream)),
))]
pub(super) async fn show(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
) -> Answered<ShownStream> {
    let id = operator.in_vhost()?.stream(&name)?;
    let found = ShownStream::whole(&operator.state, id);
    Ok(Answer::of(found.ok_or(OperationError::Missing("stream", name))?))
}

/// Deletes a stream with its messages and consumers; with `dry_run` only reports how many messages it has.
#[cfg_attr(feature = "openapi", utoipa::path(
    delete, path = "/v1/streams/{vhost}/{name}", tag = "streams",
    params(("vhost" = String, Path), ("name" = String, Path), DryRunQuery),
    responses((status = 200, body = Dropped)),
))]
pub(super) async fn delete(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
    Params(DryRunQuery { dry_run }): Params<DryRunQuery>,
) -> Answered<Dropped> {
    let operator = operator.in_vhost()?;
    let all = StreamPurge { filter: subject_filter(None)?, up_to: None, keep: 0 };
    let messages = match dry_run {
        true => operator.would_purge(&name, &all)?,
        false => operator.delete_stream(&name).await?,
    };
    Ok(dropped(dry_run, messages))
}

/// Selects the messages to purge: all of them by default.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub(super) struct PurgeQuery {
    /// Only messages with this subject, which may have wildcards of NATS.
    subject: Option<String>,
    /// Messages from this sequence number on stay.
    sequence: Option<u64>,
    /// The newest messages stay, this many of those that `subject` selects.
    keep: Option<u64>,
    /// Only report how many messages would be dropped.
    #[serde(default)]
    dry_run: bool,
}

/// Drops messages of a stream; with `dry_run` only reports how many.
#[cfg_attr(feature = "openapi", utoipa::path(
    post, path = "/v1/streams/{vhost}/{name}/purge", tag = "streams",
    params(("vhost" = String, Path), ("name" = String, Path), PurgeQuery),
    responses((status = 200, body = Dropped)),
))]
pub(super) async fn purge(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
    Params(PurgeQuery { subject, sequence, keep, dry_run }): Params<PurgeQuery>,
) -> Answered<Dropped> {
    if sequence.is_some() && keep.is_some() {
        return Err(Problem::bad("`sequence` and `keep` exclude each other; name one of them"));
    }
    let filter = subject_filter(subject.as_deref())?;
    let purge = StreamPurge { filter, up_to: sequence, keep: keep.unwrap_or(0) };
    let operator = operator.in_vhost()?;
    let messages = match dry_run {
        true => operator.would_purge(&name, &purge)?,
        false => operator.purge_stream(&name, purge).await?,
    };
    Ok(dropped(dry_run, messages))
}

fn dropped(dry_run: bool, messages: u64) -> Answer<Dropped> {
    Answer::of(Dropped { dry_run, messages: usize::try_from(messages).unwrap_or(usize::MAX) })
}

/// Selects the parts of an archive.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub(super) struct ArchiveQuery {
    /// Leave out the consumers.
    #[serde(default)]
    no_consumers: bool,
}

/// The archive of a stream, with its messages and consumers, as nats-server 2.15 reads and writes it. The configuration
/// is not in it. An answer that breaks off is no archive.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/streams/{vhost}/{name}/archive", tag = "streams",
    params(("vhost" = String, Path), ("name" = String, Path), ArchiveQuery),
    responses((status = 200, content_type = "application/octet-stream", body = Vec<u8>)),
))]
pub(super) async fn archive(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
    Params(ArchiveQuery { no_consumers }): Params<ArchiveQuery>,
) -> Result<Response, Problem> {
    let backup = back_up(&operator.in_vhost()?, &name, !no_consumers).await?;
    let head = [(CONTENT_TYPE, "application/octet-stream"), (CACHE_CONTROL, "no-store")];
    Ok((head, Body::new(backup)).into_response())
}

/// A piece of the archive of a stream.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ArchivePiece {
    /// The configuration of the stream in the words of JetStream; with the first piece alone.
    #[serde(default)]
    configuration: Option<Map<String, Value>>,
    /// The number of bytes of the archive before this piece.
    offset: u64,
    /// Bytes of the archive in base64.
    bytes: String,
    /// This is the last piece.
    #[serde(default)]
    last: bool,
}

/// Makes a stream of an archive, which comes in pieces, one request after the other; answers 201 to the last one. Until
/// then the stream takes no message. After a refusal, or half a minute without a piece, what came is deleted.
#[cfg_attr(feature = "openapi", utoipa::path(
    post, path = "/v1/streams/{vhost}/{name}/restore", tag = "streams",
    params(("vhost" = String, Path), ("name" = String, Path)),
    request_body = ArchivePiece,
    responses(
        (status = 201, description = "the stream is restored"),
        (status = 204, description = "the piece is taken"),
    ),
))]
pub(super) async fn restore(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
    Input(piece): Input<ArchivePiece>,
) -> Result<Answer, Problem> {
    let bytes = BASE64_STANDARD.decode(&piece.bytes);
    let bytes = bytes.map_err(|error| Problem::bad(format!("`bytes` is not in base64: {error}")))?;
    let configuration = piece.configuration.map(|fields| Value::Object(fields).to_string().into_bytes());
    let taken = Piece { configuration, offset: piece.offset, bytes, is_last: piece.last };
    operator.state.restores.take(&operator.in_vhost()?, &name, taken).await?;
    Ok(Answer::put(piece.last))
}

/// A message of a stream.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct StreamMessage {
    sequence: u64,
    subject: String,
    /// The exchange that it was published to.
    exchange: String,
    /// Time at which the stream stored it, in milliseconds since the UNIX epoch.
    stored_at: u64,
    /// Properties under their AMQP 0-9-1 names.
    properties: Map<String, Value>,
    /// Headers that the publisher set.
    headers: Map<String, Value>,
    /// The body in base64.
    body: String,
    /// Size of the body in bytes.
    body_bytes: usize,
}

impl StreamMessage {
    fn of(facts: &StreamMessageFacts) -> StreamMessage {
        let body = facts.message.body();
        StreamMessage {
            sequence: facts.sequence,
            subject: facts.message.routing_key.clone(),
            exchange: facts.message.exchange.clone(),
            stored_at: since_epoch(facts.time),
            properties: facts.message.properties(),
            headers: facts.message.headers(),
            body: BASE64_STANDARD.encode(&body),
            body_bytes: body.len(),
        }
    }
}

/// Selects messages of a stream.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub(super) struct StreamMessagesQuery {
    /// The lowest sequence number.
    #[serde(default)]
    from: u64,
    /// Maximum number of messages.
    #[serde(default = "ten")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1000, default = 10))]
    count: usize,
    /// Only messages with this subject, which may have wildcards of NATS.
    subject: Option<String>,
}

fn ten() -> usize {
    10
}

/// Messages of a stream.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct StreamMessages {
    /// The messages by rising sequence number.
    messages: Vec<StreamMessage>,
    /// The `from` of the next messages; null at the end of the stream.
    next_from: Option<u64>,
}

/// Shows messages of a stream by sequence number. Returns fewer than `count` if messages are large.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/streams/{vhost}/{name}/messages", tag = "streams",
    params(("vhost" = String, Path), ("name" = String, Path), StreamMessagesQuery),
    responses((status = 200, body = StreamMessages)),
))]
pub(super) async fn messages(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
    Params(StreamMessagesQuery { from, count, subject }): Params<StreamMessagesQuery>,
) -> Answered<StreamMessages> {
    if !(1..=ADMIN_MESSAGES_MAX).contains(&count) {
        return Err(Problem::bad(format!("`count` is not a number from 1 to {ADMIN_MESSAGES_MAX}")));
    }
    let filter = subject_filter(subject.as_deref())?;
    let operator = operator.in_vhost()?;
    let found = operator.stream_messages(&name, from, &filter, count).await?;
    let next = found.last().and_then(|last| last.sequence.checked_add(1));
    let next_from = match next {
        Some(next) => operator.has_message_from(&name, next, &filter)?.then_some(next),
        None => None,
    };
    Ok(Answer::of(StreamMessages { messages: found.iter().map(StreamMessage::of).collect(), next_from }))
}

/// One message of a stream.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/streams/{vhost}/{name}/messages/{sequence}", tag = "streams",
    params(("vhost" = String, Path), ("name" = String, Path), ("sequence" = u64, Path)),
    responses((status = 200, body = StreamMessage)),
))]
pub(super) async fn message(
    operator: Operator,
    Names((_vhost, name, sequence)): Names<(String, String, u64)>,
) -> Answered<StreamMessage> {
    let found = operator.in_vhost()?.stream_message(&name, sequence).await?;
    Ok(Answer::of(StreamMessage::of(&found.ok_or_else(|| no_message(sequence))?)))
}

/// Deletes one message of a stream.
#[cfg_attr(feature = "openapi", utoipa::path(
    delete, path = "/v1/streams/{vhost}/{name}/messages/{sequence}", tag = "streams",
    params(("vhost" = String, Path), ("name" = String, Path), ("sequence" = u64, Path)),
    responses((status = 204, description = "it is deleted")),
))]
pub(super) async fn delete_message(
    operator: Operator,
    Names((_vhost, name, sequence)): Names<(String, String, u64)>,
) -> Result<Answer, Problem> {
    match operator.in_vhost()?.delete_stream_message(&name, sequence).await? {
        true => Ok(Answer::done()),
        false => Err(no_message(sequence).into()),
    }
}

fn no_message(sequence: u64) -> OperationError {
    OperationError::Missing("message", sequence.to_string())
}
