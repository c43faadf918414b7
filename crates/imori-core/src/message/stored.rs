//! A stored message, which owns exactly its bytes.

use std::mem::size_of;
use std::sync::Arc;

use bytes::Bytes;

use super::properties::Properties;
use super::view::MessageView;
use crate::memory::Gauge;

/// Size from which a body is shared with the buffer that it arrived in. Smaller bodies are copied, so that 16
/// bytes do not keep a 64 KiB read buffer alive.
pub const BODY_SHARED_MIN: usize = 16 * 1024;

/// Average bytes that the allocator adds to an allocation by rounding.
const ALLOCATION_OVERHEAD: usize = 8;

/// A message in the broker's memory: immutable, shared by all queues that have it, and charged to the memory
/// gauge for as long as it exists.
#[derive(Debug)]
pub struct Message {
    properties: Properties,
    text_len: u32,
    /// The header text, followed by the body unless that is shared.
    bytes: Box<[u8]>,
    body: Option<Box<Bytes>>,
    gauge: Gauge,
}

impl Message {
    /// Copies a message so that it can wait. `shared` is its body in a buffer of its own, if it has one.
    pub fn store(view: &MessageView<'_>, shared: Option<&Bytes>, gauge: &Gauge) -> Arc<Message> {
        let body = shared.filter(|body| body.len() >= BODY_SHARED_MIN).cloned().map(Box::new);
        let copied = if body.is_some() { &[][..] } else { view.body };
        let mut bytes = Vec::with_capacity(view.text.len() + copied.len());
        bytes.extend_from_slice(view.text);
        bytes.extend_from_slice(copied);
        let message = Message {
            properties: *view.properties,
            text_len: u32::try_from(view.text.len()).expect("header blocks end at 64 KiB"),
            bytes: bytes.into_boxed_slice(),
            body,
            gauge: gauge.clone(),
        };
        gauge.add(message.charge());
        Arc::new(message)
    }

    /// The message as a reader sees it.
    pub fn view(&self) -> MessageView<'_> {
        let (text, copied) = self.bytes.split_at(self.text_len as usize);
        MessageView {
            properties: &self.properties,
            text,
            body: self.body.as_ref().map_or(copied, |body| body),
        }
    }

    /// The body, if it is shared with the buffer that it arrived in.
    pub fn shared_body(&self) -> Option<&Bytes> {
        self.body.as_deref()
    }

    /// Estimated bytes of memory that this message would occupy.
    pub fn charge_of(view: &MessageView<'_>) -> usize {
        size_of::<Message>()
            + 2 * size_of::<usize>()
            + view.text.len()
            + view.body.len()
            + ALLOCATION_OVERHEAD
    }

    /// Bytes of memory that this message occupies.
    pub fn charge(&self) -> usize {
        let shared = self.body.as_ref().map_or(0, |body| body.len() + size_of::<Bytes>());
        // An `Arc` adds two reference counts.
        size_of::<Message>() + 2 * size_of::<usize>() + self.bytes.len() + shared + 2 * ALLOCATION_OVERHEAD
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        self.gauge.sub(self.charge());
    }
}

#[cfg(test)]
mod tests {
    use super::super::properties::{OriginId, Property, Span};
    use super::*;

    #[test]
    fn stored_message_reads_as_it_was_sent() {
        let gauge = Gauge::default();
        let mut properties = Properties::new(OriginId(1));
        properties.set(Property::CorrelationId, Span::new(15, 2).unwrap());
        let text = b"correlation-id:42\n";
        for len in [0, 16, BODY_SHARED_MIN - 1, BODY_SHARED_MIN] {
            let body = Bytes::from(vec![7; len]);
            let view = MessageView { properties: &properties, text, body: &body };
            let message = Message::store(&view, Some(&body), &gauge);
            assert_eq!(message.view().property(Property::CorrelationId), Some(&b"42"[..]));
            assert_eq!(message.view().body, &body[..]);
            assert_eq!(message.shared_body().is_some(), len >= BODY_SHARED_MIN);
            assert!(gauge.bytes() >= len + text.len(), "{len}");
        }
        assert_eq!(gauge.bytes(), 0, "what is gone is not charged");
    }
}
