//! Messages as events: a queue's, which are settled once the event is on disk or its actions have ended, and a topic's.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use imori_automation::ids::Id;
use imori_automation::value::{Map, Value};
use imori_core::authorize::Identity;
use imori_core::delivery::Outcome;
use imori_core::internal::{Bind, BindTarget, IncomingMessage, OutgoingMessage};
use imori_core::message::{Address, Property, Value as HeaderValue};
use imori_core::name::Name;
use imori_core::queue::QueueSettings;
use imori_core::route::{BindingKey, Syntax};
use imori_server::{ConsumeOptions, InternalClient, InternalError, SubscribeOptions, Subscription};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tracing::{error, info, warn};

use super::dispatch::TriggerEvent;
use crate::engine::Engine;
use crate::executions::Execution;
use crate::limits::{PREFETCH_DEFAULT, RECONNECT_PAUSE, STORE_PAUSE};
use crate::registry::Trigger;

/// The trigger type of a queue's messages.
const QUEUE_TYPE: &str = "imori.queue";

/// The trigger type of a topic's messages.
const TOPIC_TYPE: &str = "imori.topic";

/// Reads the queues and topics of the rules until the engine stops: a task for each trigger.
pub(crate) async fn run_readers(engine: Arc<Engine>) {
    let mut readers: BTreeMap<String, JoinHandle<()>> = BTreeMap::new();
    let mut changes = engine.trigger_changes();
    loop {
        let registry = engine.registry();
        readers.retain(|reference, reader| {
            let is_wanted = registry.triggers.contains_key(reference);
            if !is_wanted {
                reader.abort();
            }
            is_wanted
        });
        let kinds = [QUEUE_TYPE, TOPIC_TYPE];
        for trigger in registry.triggers.values().filter(|trigger| kinds.contains(&trigger.kind.as_str())) {
            if !readers.contains_key(&trigger.reference) {
                let reader = engine.runtime.spawn(read(Arc::clone(&engine), Arc::clone(trigger)));
                readers.insert(trigger.reference.clone(), reader);
            }
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { break },
            () = engine.stopped() => break,
        }
    }
    readers.into_values().for_each(|reader| reader.abort());
}

/// Reads messages until it is aborted; a reader that ends begins again.
async fn read(engine: Arc<Engine>, trigger: Arc<Trigger>) {
    loop {
        match open(&engine, &trigger).await {
            Ok((client, mut subscription)) => {
                info!(trigger = trigger.reference, "messages are read");
                let reason = loop {
                    match subscription.recv().await {
                        Ok(message) => take(&engine, &trigger, &client, message).await,
                        Err(reason) => break reason,
                    }
                };
                warn!(trigger = trigger.reference, %reason, "messages are no longer read; trying again");
            }
            Err(error) => warn!(trigger = trigger.reference, %error, "messages cannot be read; trying again"),
        }
        sleep(RECONNECT_PAUSE).await;
    }
}

async fn open(engine: &Engine, trigger: &Trigger) -> Result<(InternalClient, Subscription), InternalError> {
    let text = |key: &str| trigger.parameters.get(key).and_then(Value::as_str);
    let vhost = text("vhost").unwrap_or("/");
    let client = engine.broker.internal_clients().connect(Identity::broker(), vhost.as_bytes()).await?;
    let prefetch = trigger.parameters.get("prefetch").and_then(Value::as_int);
    let prefetch = prefetch.and_then(|prefetch| u32::try_from(prefetch).ok()).unwrap_or(PREFETCH_DEFAULT);
    if trigger.kind == QUEUE_TYPE {
        let queue = text("queue").unwrap_or_default();
        let subscription = client.consume(ConsumeOptions::new(queue.as_bytes(), prefetch)).await?;
        return Ok((client, subscription));
    }
    let exchange = text("exchange").unwrap_or("amq.topic");
    let key = BindingKey::new(Syntax::Amqp, text("pattern").unwrap_or("#").as_bytes());
    let Some(queue) = text("queue") else {
        let subscription = client.subscribe(SubscribeOptions::new(exchange.as_bytes(), key)).await?;
        return Ok((client, subscription));
    };
    let settings = QueueSettings { is_durable: true, ..QueueSettings::default() };
    client.declare_queue(queue.as_bytes(), settings, false).await?;
    let target = BindTarget::Queue(Name::new(queue.as_bytes()));
    let bind = Bind { source: Name::new(exchange.as_bytes()), key, arguments: Default::default(), target };
    client.bind(bind).await?;
    let subscription = client.consume(ConsumeOptions::new(queue.as_bytes(), prefetch)).await?;
    Ok((client, subscription))
}

/// Makes an event of a message, and settles it once that is on disk.
async fn take(
    engine: &Arc<Engine>,
    trigger: &Arc<Trigger>,
    client: &InternalClient,
    message: IncomingMessage,
) {
    let now = engine.now();
    let event = TriggerEvent {
        id: event_id(engine, trigger, &message),
        trigger: Arc::clone(trigger),
        payload: Value::Map(payload(trigger, &message)),
        occurred: now,
    };
    let waits = trigger.parameters.get("settle").and_then(Value::as_str) == Some("action");
    let executions = loop {
        match engine.accept(event.clone()).await {
            Ok(executions) => break executions,
            Err(error) => {
                error!(trigger = trigger.reference, %error, "a message waits for the store");
                sleep(STORE_PAUSE).await;
            }
        }
    };
    let reply = message.reply_to().is_some() && !executions.is_empty();
    if !message.settles && !reply {
        return;
    }
    if !waits && !reply {
        return settle(client, &message).await;
    }
    let (engine, client) = (Arc::clone(engine), client.clone());
    let handle = engine.runtime.clone();
    handle.spawn(async move {
        if !waits {
            settle(&client, &message).await;
        }
        let results = ended(&engine, &executions).await;
        if let Some(result) = results.first()
            && replies(&engine, result)
        {
            let result = result.get("result").cloned().unwrap_or_default();
            let reply = OutgoingMessage::new(result.to_json().into_bytes());
            let reply = reply.with(Property::ContentType, b"application/json");
            // The caller may have gone.
            let _ = client.reply(&message, reply).await;
        }
        if waits {
            settle(&client, &message).await;
        }
    });
}

async fn settle(client: &InternalClient, message: &IncomingMessage) {
    if !message.settles {
        return;
    }
    if let Err(error) = client.settle(message, Outcome::Accept).await {
        // It comes again, and its event has an id that is known by then.
        warn!(%error, "a message that became an event is not settled");
    }
}

/// Waits until the executions have ended; returns their documents.
async fn ended(engine: &Engine, executions: &[Execution]) -> Vec<Map> {
    let mut documents = Vec::new();
    for execution in executions {
        if let Some(document) = engine.ended(execution.text("id")).await {
            documents.push(document);
        }
    }
    documents
}

/// Whether the rule of this execution answers the caller with its result.
fn replies(engine: &Engine, execution: &Map) -> bool {
    let rule = execution.get("rule").and_then(Value::as_str).unwrap_or_default();
    engine.registry().rules.get(rule).is_some_and(|rule| rule.rule.extension.replies)
}

/// Derives the id of a message's event from the message id, so that a redelivered message is one event. A message without
/// an id gets a new one.
fn event_id(engine: &Engine, trigger: &Trigger, message: &IncomingMessage) -> Id {
    match message.property(Property::MessageId).filter(|id| !id.is_empty()) {
        None => engine.new_id(),
        Some(id) => {
            let Address { exchange, subject } = &message.address;
            Id::derived(0, &[b"message", trigger.id.as_bytes(), exchange.as_bytes(), subject.as_bytes(), id])
        }
    }
}

fn payload(trigger: &Trigger, message: &IncomingMessage) -> Map {
    let mut payload = Map::new();
    let text = std::str::from_utf8(&message.body);
    let (body, encoding) = match (Value::from_json(&message.body), text) {
        (Ok(value), _) => (value, "json"),
        (Err(_), Ok(text)) => (Value::from(text), "text"),
        (Err(_), Err(_)) => (Value::from(STANDARD.encode(&message.body)), "base64"),
    };
    payload.insert("body", body);
    payload.insert("body_encoding", encoding);
    let headers = message.headers().into_iter();
    let headers: Map =
        headers.map(|(name, value)| (String::from_utf8_lossy(&name).into_owned(), header(value))).collect();
    payload.insert("headers", headers);
    let mut properties = Map::new();
    for (name, property) in PROPERTIES {
        if let Some(value) = message.property(property).filter(|value| !value.is_empty()) {
            properties.insert(name, String::from_utf8_lossy(value).into_owned());
        }
    }
    payload.insert("properties", properties);
    payload.insert("exchange", message.address.exchange.to_string());
    payload.insert("routing_key", message.address.subject.to_string());
    payload.insert("queue", trigger.parameters.get("queue").cloned().unwrap_or_default());
    payload.insert("redelivered", message.is_redelivered);
    payload
}

const PROPERTIES: [(&str, Property); 8] = [
    ("content_type", Property::ContentType),
    ("content_encoding", Property::ContentEncoding),
    ("correlation_id", Property::CorrelationId),
    ("reply_to", Property::ReplyTo),
    ("message_id", Property::MessageId),
    ("type", Property::Type),
    ("user_id", Property::UserId),
    ("app_id", Property::AppId),
];

/// A header's value as JSON.
fn header(value: HeaderValue<'_>) -> Value {
    match value {
        HeaderValue::Null => Value::Null,
        HeaderValue::Bool(value) => Value::Bool(value),
        HeaderValue::Int(number) | HeaderValue::Timestamp(number) => Value::Int(number),
        HeaderValue::Uint(number) => i64::try_from(number).map_or(Value::Float(number as f64), Value::Int),
        HeaderValue::Float(number) => Value::Float(number),
        HeaderValue::Text(text) => Value::String(String::from_utf8_lossy(&text).into_owned()),
        HeaderValue::Binary(bytes) => Value::String(STANDARD.encode(bytes)),
        HeaderValue::List(list) => Value::List(list.into_iter().map(header).collect()),
        HeaderValue::Map(map) => Value::Map(
            map.into_iter()
                .map(|(key, value)| (String::from_utf8_lossy(&key).into_owned(), header(value)))
                .collect(),
        ),
    }
}
