//! Encodes spans as OTLP 1.x JSON: `ExportTraceServiceRequest`, ids in hexadecimal, 64-bit numbers as text.

use data_encoding::HEXLOWER;
use imori_core::time::Time;
use serde_json::{Value, json};

use super::span::Span;

/// `SPAN_KIND_SERVER`: the broker handles a publish.
const KIND_SERVER: u32 = 2;

/// `STATUS_CODE_ERROR`.
const STATUS_ERROR: u32 = 2;

/// The body of a request to `/v1/traces`.
pub(super) fn request(node: &str, spans: &[Span]) -> Vec<u8> {
    let resource = [
        text("service.name", "imori"),
        text("service.version", env!("CARGO_PKG_VERSION")),
        text("service.instance.id", node),
    ];
    let spans: Vec<Value> = spans.iter().map(span).collect();
    let scope = json!({"name": "imori", "version": env!("CARGO_PKG_VERSION")});
    let scoped = json!({"scope": scope, "spans": spans});
    let request = json!({"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [scoped]}]});
    request.to_string().into_bytes()
}

fn span(span: &Span) -> Value {
    let destination = if span.exchange.is_empty() { &span.subject } else { &span.exchange };
    let mut attributes = vec![
        text("messaging.system", "imori"),
        text("messaging.operation.name", "publish"),
        text("messaging.operation.type", "send"),
        text("messaging.destination.name", destination),
        text("messaging.rabbitmq.destination.routing_key", &span.subject),
        text("imori.vhost", &span.vhost),
        number("messaging.message.body.size", span.body_bytes),
        number("imori.receivers", span.receivers),
    ];
    if span.messages > 1 {
        attributes.push(number("messaging.batch.message_count", span.messages));
    }
    let mut value = json!({
        "traceId": HEXLOWER.encode(&span.context.trace),
        "spanId": HEXLOWER.encode(&span.id),
        "parentSpanId": HEXLOWER.encode(&span.context.parent),
        "name": format!("publish {destination}"),
        "kind": KIND_SERVER,
        "startTimeUnixNano": nanos(span.from),
        "endTimeUnixNano": nanos(span.until),
        "attributes": attributes,
    });
    if span.receivers == 0 {
        value["status"] = json!({"code": STATUS_ERROR, "message": "nobody has the message"});
    }
    value
}

fn nanos(time: Time) -> String {
    time.since(Time::default()).as_nanos().to_string()
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn number(key: &str, value: usize) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}
