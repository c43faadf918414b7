//! Messages: `Imori.publish`, `Imori.call`, `Imori.get`, and events of a streamed response.

use std::{num::NonZeroU32, rc::Rc, sync::Arc, time::Duration};

use bytes::Bytes;
use imori_core::{
    delivery::Outcome,
    internal::{IncomingMessage, OutgoingMessage},
    message::{Address, Property, Value as HeaderValue},
};
use imori_ruby::{Call, Error, Handle, Library, Reply, Value};
use imori_server::{ConsumeOptions, InternalError};
use tokio::sync::mpsc::error::TrySendError;

use super::{
    context::{
        argument_error, awaiting, body_at, bytes_at, bytes_of, context_of, integer_at, kind, optional,
        pairs_at, run_of,
    },
    taken::TakenMessage,
};
use crate::request_context::{Decision, Phase, RequestContext};

/// The class of the handles of messages that are to be settled.
const DELIVERY: &str = "Imori::Delivery";

/// The longest time for a reply, or for a message of an empty queue.
const WAIT_MS_MAX: i64 = 10 * 60 * 1000;

/// Levels of lists and maps in a header.
const HEADER_DEPTH_MAX: u32 = 8;

pub(super) fn declare(library: &mut Library) {
    library
        .class("Imori::BrokerError", "Imori::Error")
        .class("Imori::NoResponderError", "Imori::BrokerError")
        .class("Imori::DisconnectedError", "Imori::Error")
        .handle_class(DELIVERY)
        .awaiting_singleton_method("Imori", "__publish", publish)
        .awaiting_singleton_method("Imori", "__call", call_service)
        .awaiting_singleton_method("Imori", "__get", get)
        .awaiting_method(DELIVERY, "settle", settle)
        .module("Imori::SSE")
        .awaiting_singleton_method("Imori::SSE", "__push", push)
        .prelude("<imori>/messages.rb", include_str!("../ruby/messages.rb"));
}

/// `__publish(exchange, key, body, headers, options)`
fn publish(call: &Call<'_>) -> Result<Reply, Error> {
    let (to, message) = (address_at(call)?, message_at(call)?);
    let run = Rc::clone(run_of(call)?);
    awaiting(async move {
        let client = run.services.client(&run.context).await.map_err(to_error)?;
        let published = client.publish(to, message).await.map_err(to_error)?;
        let receivers = i64::try_from(published.receivers).unwrap_or(i64::MAX);
        Ok(Value::Array(vec![receivers.into(), published.level.as_str().into()]))
    })
}

/// `__call(exchange, key, body, headers, options, ms)`
fn call_service(call: &Call<'_>) -> Result<Reply, Error> {
    let (to, message, within) = (address_at(call)?, message_at(call)?, wait_at(call, 5)?);
    let run = Rc::clone(run_of(call)?);
    awaiting(async move {
        let client = run.services.client(&run.context).await.map_err(to_error)?;
        let reply = client.call(to, message, within).await.map_err(to_error)?;
        Ok(message_to_ruby(&reply, Value::Nil))
    })
}

/// `__get(queue, settles, ms)`: takes the first message, or waits for one so long.
fn get(call: &Call<'_>) -> Result<Reply, Error> {
    let queue = bytes_at(call, 0)?;
    let settles = call.argument(1)?.is_truthy();
    let wait = wait_at(call, 2)?;
    let run = Rc::clone(run_of(call)?);
    awaiting(async move {
        let client = run.services.client(&run.context).await.map_err(to_error)?;
        let message = match client.get(&queue, settles).await.map_err(to_error)? {
            Some((message, _)) => message,
            None if wait.is_zero() => return Ok(Value::Nil),
            None => {
                let options = ConsumeOptions { settles, ..ConsumeOptions::new(&queue, 1) };
                let mut messages = client.consume(options).await.map_err(to_error)?;
                match tokio::time::timeout(wait, messages.recv()).await {
                    Ok(message) => message.map_err(|end| to_error(InternalError::Ended(end)))?,
                    Err(_) => return Ok(Value::Nil),
                }
            }
        };
        if !message.settles {
            return Ok(message_to_ruby(&message, Value::Nil));
        }
        let taken = run.taken.add(message, client);
        let handle = Value::Handle(Handle::new(DELIVERY, Arc::clone(&taken) as Arc<_>));
        Ok(message_to_ruby(&taken.message, handle))
    })
}

/// `delivery.settle(outcome)`; returns `false` if it was settled before.
fn settle(call: &Call<'_>) -> Result<Reply, Error> {
    let outcome = match call.text(0)? {
        "ack" => Outcome::Accept,
        "requeue" => Outcome::Release { failed: true },
        "reject" => Outcome::Reject,
        other => return Err(argument_error(format!("`{}` is no outcome", other.escape_debug()))),
    };
    let taken = call.receiver.as_ref().and_then(Handle::object::<TakenMessage>);
    let taken = taken.ok_or_else(|| Error::new("TypeError", "this is no delivery"))?;
    if !taken.settle() {
        return Ok(Reply::Value(Value::Boolean(false)));
    }
    awaiting(async move {
        taken.client.settle(&taken.message, outcome).await.map_err(to_error)?;
        Ok(Value::Boolean(true))
    })
}

/// `__push(bytes)`: sends a part of the response at once, and waits while the client is slow.
fn push(call: &Call<'_>) -> Result<Reply, Error> {
    let context = context_of(call)?;
    if context.phase.get() != Phase::Content {
        return Err(Error::new("RuntimeError", "a response is streamed by the script of `content`"));
    }
    let bytes = Bytes::from(bytes_at(call, 0)?);
    let sender = context.stream();
    context.decide(Decision::Respond);
    let is_gone = || Error::new("Imori::DisconnectedError", "the client has left");
    match sender.try_send(bytes) {
        Ok(()) => {
            let context = Rc::clone(context);
            // The listener gets the chunk before the script goes on, so that a loop of pushes streams.
            awaiting(async move {
                tokio::task::yield_now().await;
                count(&context)
            })
        }
        Err(TrySendError::Closed(_)) => Err(is_gone()),
        Err(TrySendError::Full(bytes)) => {
            let context = Rc::clone(context);
            awaiting(async move {
                sender.send(bytes).await.map_err(|_| is_gone())?;
                count(&context)
            })
        }
    }
}

/// Each event of a stream, which has no end, has the operations and the CPU time of a request.
fn count(context: &RequestContext) -> Result<Value, Error> {
    context.awaits.set(0);
    context.cpu.set(Duration::ZERO);
    Ok(Value::Nil)
}

/// The first two arguments: exchange and routing key.
fn address_at(call: &Call<'_>) -> Result<Address, Error> {
    Ok(Address::new(&bytes_at(call, 0)?, &bytes_at(call, 1)?))
}

/// The next three: body, headers and options.
fn message_at(call: &Call<'_>) -> Result<OutgoingMessage, Error> {
    let mut message = OutgoingMessage::new(body_at(call, 2)?);
    for (name, value) in pairs_at(call, 3)? {
        message = message.typed_header(&bytes_of(name)?, header_of(value, 0)?);
    }
    for (name, value) in pairs_at(call, 4)? {
        message = with_option(message, name.text().unwrap_or_default(), value)?;
    }
    if message.lend(|_| ()).is_none() {
        return Err(argument_error("the headers are over 64 KiB; send large values in the body"));
    }
    Ok(message)
}

fn with_option(mut message: OutgoingMessage, name: &str, value: &Value) -> Result<OutgoingMessage, Error> {
    if value == &Value::Nil {
        return Ok(message);
    }
    let wrong = |what: &str| argument_error(format!("option `{name}` is {}; use {what}", kind(value)));
    let milliseconds = || match value {
        Value::Integer(ms) => u32::try_from(*ms).map_err(|_| wrong("milliseconds")),
        _ => Err(wrong("milliseconds")),
    };
    let property = match name {
        "persistent" => return Ok(message.persistent(value.is_truthy())),
        "priority" => {
            let Value::Integer(priority) = value else { return Err(wrong("0 to 255")) };
            message.properties.priority = Some(u8::try_from(*priority).map_err(|_| wrong("0 to 255"))?);
            return Ok(message);
        }
        "expires" => {
            message.properties.expiration_ms = Some(milliseconds()?);
            return Ok(message);
        }
        "delay" => {
            message.properties.delay_ms = NonZeroU32::new(milliseconds()?);
            return Ok(message);
        }
        "content_type" => Property::ContentType,
        "correlation_id" => Property::CorrelationId,
        "id" => Property::MessageId,
        "type" => Property::Type,
        "group" => Property::GroupId,
        other => return Err(argument_error(format!("there is no option `{}`", other.escape_debug()))),
    };
    let text = bytes_of(value)?;
    Ok(message.with(property, &text))
}

fn header_of(value: &Value, depth: u32) -> Result<HeaderValue<'static>, Error> {
    if depth > HEADER_DEPTH_MAX {
        return Err(argument_error(format!("a header is over {HEADER_DEPTH_MAX} levels deep")));
    }
    Ok(match value {
        Value::Nil => HeaderValue::Null,
        Value::Boolean(value) => HeaderValue::Bool(*value),
        Value::Integer(value) => HeaderValue::Int(*value),
        Value::Float(value) => HeaderValue::Float(*value),
        Value::String(text) | Value::Symbol(text) => HeaderValue::Text(text.clone().into()),
        Value::Array(items) => {
            HeaderValue::List(items.iter().map(|item| header_of(item, depth + 1)).collect::<Result<_, _>>()?)
        }
        Value::Hash(pairs) => {
            let pair =
                |(name, value): &(Value, Value)| Ok((bytes_of(name)?.into(), header_of(value, depth + 1)?));
            HeaderValue::Map(pairs.iter().map(pair).collect::<Result<_, Error>>()?)
        }
        other => return Err(Error::new("TypeError", format!("{} is no value of a header", kind(other)))),
    })
}

fn header_to_ruby(value: &HeaderValue<'_>) -> Value {
    match value {
        HeaderValue::Null => Value::Nil,
        HeaderValue::Bool(value) => Value::Boolean(*value),
        HeaderValue::Int(value) | HeaderValue::Timestamp(value) => Value::Integer(*value),
        HeaderValue::Uint(value) => i64::try_from(*value).map_or(Value::Float(*value as f64), Value::Integer),
        HeaderValue::Float(value) => Value::Float(*value),
        HeaderValue::Text(bytes) | HeaderValue::Binary(bytes) => Value::string(bytes),
        HeaderValue::List(items) => Value::Array(items.iter().map(header_to_ruby).collect()),
        HeaderValue::Map(pairs) => Value::Hash(
            pairs.iter().map(|(name, value)| (Value::string(name), header_to_ruby(value))).collect(),
        ),
    }
}

/// The fields of a message, in the order of `Imori::Message#initialize`.
fn message_to_ruby(message: &IncomingMessage, delivery: Value) -> Value {
    let headers = message.headers();
    let headers = headers.iter().map(|(name, value)| (Value::string(name), header_to_ruby(value)));
    let text = |property| optional(message.property(property));
    Value::Array(vec![
        Value::string(&message.body),
        Value::Hash(headers.collect()),
        Value::string(message.address.exchange.as_bytes()),
        Value::string(message.address.subject.as_bytes()),
        text(Property::MessageId),
        text(Property::ContentType),
        text(Property::CorrelationId),
        message.is_redelivered.into(),
        delivery,
    ])
}

fn wait_at(call: &Call<'_>, index: usize) -> Result<Duration, Error> {
    match integer_at(call, index)? {
        ms @ 0..=WAIT_MS_MAX => Ok(Duration::from_millis(ms.unsigned_abs())),
        ms => Err(argument_error(format!("cannot wait {ms} ms; use 0 to {WAIT_MS_MAX}"))),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn to_error(error: InternalError) -> Error {
    let class = match &error {
        InternalError::NoResponder => "Imori::NoResponderError",
        InternalError::Late => "Imori::TimeoutError",
        InternalError::TooManyCalls | InternalError::TooMany => "Imori::LimitError",
        _ => "Imori::BrokerError",
    };
    Error::new(class, error.to_string())
}
