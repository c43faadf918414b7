//! `/api/queues/{vhost}/{name}/get`: takes messages from a queue, and accepts, rejects or releases them.

use axum::extract::Path;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use imori_core::delivery::Outcome;
use imori_server::access::AccessError;
use serde_json::{Value, json};

use crate::limits::ADMIN_MESSAGES_MAX;
use crate::objects::operation_error::OperationError;
use crate::operations::message_facts::MessageFacts;
use crate::requests::answer::Answer;
use crate::requests::body::Body;
use crate::requests::operator::Operator;

/// The requested encoding of payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    /// Text if the payload is UTF-8, else base64.
    Auto,
    Base64,
}

/// Takes messages, as `count`, `ackmode`, `encoding` and `truncate` of the body say.
pub(super) async fn get_messages(
    operator: Operator,
    Path((_, name)): Path<(String, String)>,
    body: Body,
) -> Result<Answer, OperationError> {
    let operator = operator.in_vhost()?;
    let count = number(&body, "count")?.ok_or_else(|| AccessError::bad("`count` is missing"))?;
    if !(1..=ADMIN_MESSAGES_MAX).contains(&count) {
        let text = format!("`count` is not a number from 1 to {ADMIN_MESSAGES_MAX}");
        return Err(OperationError::Bad(text));
    }
    let (outcome, encoding) = (outcome(&body)?, encoding(&body)?);
    let truncate = number(&body, "truncate")?.unwrap_or(usize::MAX);
    operator.queue(&name)?;
    let taken = operator.take(&name, count, outcome).await?;
    let rows = taken.iter().map(|(facts, left)| row(facts, *left, encoding, truncate));
    Ok(Answer::of(rows.collect()))
}

/// Reads a number, which may be sent as text.
fn number(body: &Body, name: &str) -> Result<Option<usize>, AccessError> {
    match body.0.get(name) {
        Some(Value::String(text)) => match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(AccessError::bad(format_args!("`{name}` is no number"))),
        },
        _ => body.get(name),
    }
}

/// Reads the outcome of the messages from `ackmode`, or from `requeue`, which older tools send.
fn outcome(body: &Body) -> Result<Outcome, AccessError> {
    let mode: Option<String> = body.get("ackmode")?;
    Ok(match mode.as_deref() {
        Some("ack_requeue_false") => Outcome::Accept,
        // RabbitMQ counts no failed delivery for either mode.
        Some("ack_requeue_true" | "reject_requeue_true") => Outcome::Release { failed: false },
        Some("reject_requeue_false") => Outcome::Reject,
        Some(other) => {
            return Err(AccessError::bad(format_args!(
                "`ackmode` is `{}`; use `ack_requeue_true`, `ack_requeue_false`, `reject_requeue_true` or \
                 `reject_requeue_false`",
                other.escape_debug()
            )));
        }
        None if body.flag("requeue", true)? => Outcome::Release { failed: false },
        None => Outcome::Accept,
    })
}

fn encoding(body: &Body) -> Result<Encoding, AccessError> {
    let encoding: Option<String> = body.get("encoding")?;
    match encoding.as_deref() {
        None | Some("auto") => Ok(Encoding::Auto),
        Some("base64") => Ok(Encoding::Base64),
        Some(_) => Err(AccessError::bad("`encoding` is `auto` or `base64`")),
    }
}

/// A message as RabbitMQ shows it.
fn row(facts: &MessageFacts, left: usize, encoding: Encoding, truncate: usize) -> Value {
    let body = facts.body();
    let shown = body.get(..truncate).unwrap_or(&body);
    let (payload, encoded) = match (str::from_utf8(shown), encoding) {
        (Ok(text), Encoding::Auto) => (text.to_owned(), "string"),
        _ => (BASE64_STANDARD.encode(shown), "base64"),
    };
    let mut properties = facts.properties();
    let mut headers = facts.headers();
    let deaths: Vec<Value> = facts
        .deaths()
        .map(|death| {
            json!({
                "queue": death.queue.to_string(),
                "reason": death.reason.as_str(),
                "count": death.count,
                "exchange": death.address.exchange.to_string(),
                "routing-keys": [death.address.subject.to_string()],
                "time": death.time.since(imori_core::time::Time::default()).as_secs(),
            })
        })
        .collect();
    if !deaths.is_empty() {
        headers.insert(String::from("x-death"), json!(deaths));
    }
    if !headers.is_empty() {
        properties.insert(String::from("headers"), Value::Object(headers));
    }
    json!({
        "payload_bytes": body.len(),
        "redelivered": facts.is_redelivered,
        "exchange": facts.exchange,
        "routing_key": facts.routing_key,
        "message_count": left,
        "properties": properties,
        "payload": payload,
        "payload_encoding": encoded,
    })
}
