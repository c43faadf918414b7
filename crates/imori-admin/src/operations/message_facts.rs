//! A message of a queue in the form that the admin APIs show.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use imori_core::entries::Entry;
use imori_core::message::{Death, Deaths, Message, MessageView};
use imori_server::json_value::shown;
use imori_server::protocols::header_reader;
use serde_json::{Map, Value, json};

use super::publish::TEXT_PROPERTIES;
use crate::milliseconds::since_epoch;

/// A waiting message, or one that was taken.
pub(crate) struct MessageFacts {
    message: Arc<Message>,
    deaths: Option<Arc<Deaths>>,
    pub(crate) exchange: String,
    pub(crate) routing_key: String,
    pub(crate) priority: u8,
    /// Deliveries that failed.
    pub(crate) failures: u32,
    pub(crate) is_redelivered: bool,
    /// When it expires, in milliseconds since the UNIX epoch.
    pub(crate) expires_at: Option<u64>,
}

impl MessageFacts {
    /// The facts about an entry of a queue with this message TTL.
    pub(crate) fn of(entry: &Entry, message_ttl: Option<Duration>) -> MessageFacts {
        let envelope = entry.envelope();
        MessageFacts {
            message: Arc::clone(entry.message()),
            deaths: envelope.deaths.clone(),
            exchange: envelope.address.exchange.to_string(),
            routing_key: envelope.address.subject.to_string(),
            priority: envelope.priority,
            failures: envelope.failures,
            is_redelivered: envelope.is_redelivered,
            expires_at: envelope.deadline(message_ttl).map(since_epoch),
        }
    }

    fn view(&self) -> MessageView<'_> {
        self.message.view()
    }

    /// The body, decoded if the message's protocol encodes bodies.
    pub(crate) fn body(&self) -> Cow<'_, [u8]> {
        let view = self.view();
        header_reader(view.properties.origin).body(&view)
    }

    /// The deaths of a dead letter, the latest first.
    pub(crate) fn deaths(&self) -> impl Iterator<Item = &Death> {
        self.deaths.iter().flat_map(|deaths| deaths.iter())
    }

    /// The message's properties without the user's headers, by AMQP's names.
    pub(crate) fn properties(&self) -> Map<String, Value> {
        let view = self.view();
        let text = |property| view.property(property).map(|text| json!(String::from_utf8_lossy(text)));
        let texts = TEXT_PROPERTIES.into_iter().filter_map(|(name, property)| Some((name, text(property)?)));
        let properties = view.properties;
        let numbers = [
            ("delivery_mode", Some(json!(if properties.is_persistent { 2 } else { 1 }))),
            ("priority", properties.priority.map(|priority| json!(priority))),
            ("expiration", properties.expiration_ms.map(|ms| json!(ms.to_string()))),
            ("timestamp", properties.timestamp.map(|seconds| json!(seconds))),
        ];
        let numbers = numbers.into_iter().filter_map(|(name, value)| Some((name, value?)));
        texts.chain(numbers).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The user's headers; the first of two with the same name counts.
    pub(crate) fn headers(&self) -> Map<String, Value> {
        let view = self.view();
        let mut headers = Map::new();
        header_reader(view.properties.origin).visit_headers(view.text, &mut |name, value| {
            headers.entry(String::from_utf8_lossy(&name)).or_insert_with(|| shown(&value));
        });
        headers
    }
}
