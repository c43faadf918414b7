//! AMQP 0-9-1 with RabbitMQ's extensions.
//!
//! Queues and services are queues of that name on the default exchange; a topic is a routing key of
//! `amq.topic`. Replies use direct reply-to, or a queue per requester.

use anyhow::{Result, ensure};
use imori_amqp091::codec::frame::{
    FRAME_BYTES, FRAME_END, HEAD_BYTES, push_body, push_content_header, push_method,
};
use imori_amqp091::codec::methods::basic;
use imori_amqp091::codec::properties::{BasicProperties, TextProperty};
use imori_amqp091::limits::FRAME_BYTES_MAX;

use crate::options::{AckMode, Level, ReplyKind};
use crate::protocol::amqp_reader::AmqpReader;
use crate::protocol::amqp_set_up::{
    CHANNEL, DIRECT_REPLY_TO, TOPICS, push_barrier, push_confirm_select, push_consumer, push_declaration,
    push_login,
};
use crate::protocol::driver::{
    ConfirmMode, Delivery, Destination, Driver, Manner, Queue, Reader, Replies, Terms, check_no_selector,
    declaration,
};
use crate::protocol::template::{CORRELATION_BYTES, Correlation, MessageTemplate, RequestTemplate};
use crate::stamp::STAMP_BYTES;
use crate::url::Url;

/// Login if the URL has none.
const LOGIN: (&str, &str) = ("guest", "guest");

/// `delivery-mode` of a persistent message.
const PERSISTENT: u8 = 2;

/// Bytes of the property flags.
const FLAGS_BYTES: usize = 2;

/// Bytes of the frame-end octet.
const FRAME_END_BYTES: usize = 1;

/// The most bytes of a body in one frame.
const PART_BYTES: usize = FRAME_BYTES_MAX as usize - FRAME_BYTES;

/// AMQP 0-9-1.
#[derive(Debug)]
pub(crate) struct Amqp;

impl Driver for Amqp {
    fn name(&self) -> &'static str {
        "amqp"
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(AmqpReader::default())
    }

    fn log_in(&self, url: &Url, out: &mut Vec<u8>) {
        let login = url.login.as_ref().map(|(user, password)| (user.as_str(), password.as_str()));
        let (user, password) = login.unwrap_or(LOGIN);
        push_login(out, user, password, &url.vhost);
    }

    fn subscribe(&self, destination: &Destination, terms: Terms, confirm: ConfirmMode, out: &mut Vec<u8>) {
        push_declaration(out, destination);
        push_consumer(out, destination, terms);
        if confirm == ConfirmMode::Each {
            push_barrier(out);
        }
    }

    fn prepare(&self, destination: &Destination, confirm: ConfirmMode, out: &mut Vec<u8>) {
        push_declaration(out, destination);
        if confirm == ConfirmMode::Each {
            push_confirm_select(out);
        }
        push_barrier(out);
    }

    fn replies(&self, kind: ReplyKind, name: &str, requester: Correlation) -> Result<Replies> {
        let address = match kind {
            ReplyKind::TempQueue => DIRECT_REPLY_TO.to_owned(),
            ReplyKind::Named => format!("{name}-reply-{}", requester.requester),
        };
        let source = Some(Destination::Queue(Queue::named(&address)));
        Ok(Replies { address, source })
    }

    fn request(
        &self,
        service: &Destination,
        replies: &Replies,
        size: usize,
        first: Correlation,
    ) -> RequestTemplate {
        let correlation = first.to_string();
        let properties = BasicProperties {
            correlation_id: Some(TextProperty::new(correlation.as_bytes())),
            reply_to: Some(TextProperty::new(replies.address.as_bytes())),
            ..BasicProperties::default()
        };
        let head = Head::new(service, &properties, size);
        // `correlation-id` is the first property, after its length octet.
        let correlation_ends = head.properties_at + 1 + CORRELATION_BYTES;
        let (before, after) = head.bytes.split_at(correlation_ends.min(head.bytes.len()));
        let body = framed(&vec![b' '; size]);
        let (body_head, body) = body.split_at(HEAD_BYTES.min(body.len()));
        // The value fits into the first body frame; the padding in the others never changes.
        let part_bytes = size.min(PART_BYTES);
        let end = body.get(part_bytes..).unwrap_or_default();
        RequestTemplate::new(before, &[after, body_head].concat(), part_bytes, end)
    }

    fn message(&self, destination: &Destination, filler: &[u8], manner: Manner) -> MessageTemplate {
        let expiration = manner.expiration.map(|lives| lives.as_millis().to_string());
        let properties = BasicProperties {
            delivery_mode: manner.is_persistent.then_some(PERSISTENT),
            priority: manner.priorities.map(|_| 0),
            expiration: expiration.as_ref().map(|text| TextProperty::new(text.as_bytes())),
            ..BasicProperties::default()
        };
        let mut head = Head::new(destination, &properties, STAMP_BYTES + filler.len());
        let body = framed(&[&[0; STAMP_BYTES], filler].concat());
        head.bytes.extend_from_slice(body.get(..HEAD_BYTES).unwrap_or_default());
        let filler = body.get(HEAD_BYTES + STAMP_BYTES..body.len().saturating_sub(1)).unwrap_or_default();
        let template = MessageTemplate::new(|_| head.bytes, filler, &[FRAME_END]);
        match manner.priorities {
            Some(priorities) => {
                let at = head.properties_at + usize::from(manner.is_persistent);
                template.with_priorities_at(at, priorities)
            }
            None => template,
        }
    }

    fn reply(&self, request: &Delivery<'_>, out: &mut Vec<u8>) -> usize {
        let properties = BasicProperties {
            correlation_id: Some(TextProperty::new(request.correlation)),
            ..BasicProperties::default()
        };
        let key = str::from_utf8(request.reply_to).unwrap_or_default();
        push_head(out, "", key, &properties, request.body.len());
        let body_at = out.len() + HEAD_BYTES;
        push_body(out, CHANNEL, request.body, PART_BYTES);
        body_at
    }

    fn acknowledge(&self, token: &[u8], mode: AckMode, out: &mut Vec<u8>) {
        let delivery_tag = token.first_chunk().map_or(0, |tag| u64::from_be_bytes(*tag));
        push_method(out, CHANNEL, &basic::Ack { delivery_tag, multiple: mode == AckMode::Client });
    }

    fn check(&self, terms: Terms) -> Result<()> {
        check_no_selector(terms, "AMQP 0-9-1")?;
        let max = u32::from(u16::MAX);
        ensure!(
            terms.prefetch.is_none_or(|count| count <= max),
            "a prefetch count of AMQP is at most {max}; use `--prefetch {max}` or less"
        );
        Ok(())
    }

    fn confirms_by_count(&self) -> bool {
        true
    }

    fn check_confirms(&self) -> Result<()> {
        Ok(())
    }

    fn check_queues(&self) -> Result<()> {
        Ok(())
    }

    fn declaration(&self, level: Level, priorities: Option<u8>) -> Vec<(String, String)> {
        declaration(level, priorities)
    }
}

/// The frames of a publish before its body.
struct Head {
    bytes: Vec<u8>,
    /// Offset of the first property, after the flags.
    properties_at: usize,
}

impl Head {
    fn new(destination: &Destination, properties: &BasicProperties<'_>, body_bytes: usize) -> Head {
        let (exchange, key) = match destination {
            Destination::Queue(queue) => ("", &queue.name),
            Destination::Service(name) => ("", name),
            Destination::Topic(subject) => (TOPICS, subject),
        };
        let mut bytes = Vec::new();
        let properties_at = push_head(&mut bytes, exchange, key, properties, body_bytes);
        Head { bytes, properties_at }
    }
}

/// Appends the frames of a publish before its body; returns the offset of the first property.
fn push_head(
    out: &mut Vec<u8>,
    exchange: &str,
    key: &str,
    properties: &BasicProperties<'_>,
    body_bytes: usize,
) -> usize {
    let publish = basic::Publish { exchange, routing_key: key, mandatory: false, immediate: false };
    push_method(out, CHANNEL, &publish);
    let mut block = Vec::new();
    properties.push(&mut block);
    push_content_header(out, CHANNEL, body_bytes, &block);
    out.len() - FRAME_END_BYTES - block.len() + FLAGS_BYTES
}

/// The body in frames.
fn framed(body: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    push_body(&mut frames, CHANNEL, body, PART_BYTES);
    frames
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::protocol::driver::{Confirmed, Heard, taken};

    const FIRST: Correlation = Correlation { run: 0xdead_beef, requester: 3, number: 0 };

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    /// The delivery that a broker would send for a publish.
    fn delivered(publish: &[u8], tag: u64) -> Vec<u8> {
        let method_bytes = 8 + u32::from_be_bytes(*publish[3..].first_chunk().unwrap()) as usize;
        let deliver = basic::Deliver {
            consumer_tag: "imori-bench",
            delivery_tag: tag,
            redelivered: false,
            exchange: "",
            routing_key: "q",
        };
        let mut out = written(|out| push_method(out, CHANNEL, &deliver));
        out.extend_from_slice(&publish[method_bytes..]);
        out
    }

    #[test]
    fn requests_and_replies_say_which_call_they_are() {
        let replies = Amqp.replies(ReplyKind::TempQueue, "rpc", FIRST).unwrap();
        let service = Destination::Service("rpc".to_owned());
        for size in [3, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES] {
            let template = Amqp.request(&service, &replies, size, FIRST);
            let request = delivered(&written(|out| template.append(out, 0x1f, 99)), 7);
            taken(&Amqp, &request, |heard| {
                let Heard::Delivery(request) = heard else { panic!("{heard:?}") };
                assert_eq!(Correlation::read(request.correlation), Some(Correlation { number: 31, ..FIRST }));
                assert_eq!((request.reply_to, request.body.len()), (&b"amq.rabbitmq.reply-to"[..], size));
                assert!(request.body.starts_with(b"99 "));
                let mut out = b"before".to_vec();
                let body_at = Amqp.reply(request, &mut out);
                assert!(out[body_at..].starts_with(b"99 "));
                taken(&Amqp, &delivered(&out[6..], 1), |heard| {
                    let Heard::Delivery(reply) = heard else { panic!("{heard:?}") };
                    assert_eq!((reply.correlation, reply.body), (request.correlation, request.body));
                });
                let ack = written(|out| Amqp.acknowledge(request.ack, AckMode::Client, out));
                assert_eq!(
                    ack,
                    written(|out| push_method(out, 1, &basic::Ack { delivery_tag: 7, multiple: true }))
                );
            });
        }
    }

    #[test]
    fn a_message_carries_its_stamp_filler_and_properties() {
        let manner = Manner {
            is_persistent: true,
            priorities: Some(3),
            expiration: Some(Duration::from_secs(2)),
            ..Manner::default()
        };
        for filler in [&b"fill"[..], &[b'x'; 2 * PART_BYTES]] {
            for (destination, manner) in [
                (Destination::Topic("t".to_owned()), Manner::default()),
                (Destination::Queue(Queue::named("q")), manner),
            ] {
                let template = Amqp.message(&destination, filler, manner);
                let message = delivered(&written(|out| template.append(out, 5, b"0123456789abcdef")), 1);
                taken(&Amqp, &message, |heard| {
                    let Heard::Delivery(delivery) = heard else { panic!("{heard:?}") };
                    assert_eq!(delivery.body, [b"0123456789abcdef", filler].concat());
                });
                let properties = [&[0b0001_1001, 0, 2, 2, 4][..], b"2000"].concat();
                let has_them = message.windows(properties.len()).any(|bytes| bytes == properties);
                assert_eq!(has_them, manner.is_persistent, "priority 2 of the message 5, after 0, 1 and 2");
            }
        }
    }

    #[test]
    fn an_acknowledgement_confirms_all_that_it_counts() {
        let ack = written(|out| push_method(out, CHANNEL, &basic::Ack { delivery_tag: 3, multiple: true }));
        let mut reader = Amqp.reader();
        for (number, used) in [(0, 0), (1, 0), (2, ack.len())] {
            let (heard, took) = reader.take(&ack).unwrap().unwrap();
            let Heard::Confirmed(Some(confirmed)) = heard else { panic!("{heard:?}") };
            assert_eq!((confirmed, took), (Confirmed { number, level: None }, used));
        }
    }

    #[test]
    fn other_protocols_are_told_apart() {
        for bytes in
            [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"AMQP\0\0\x09\x01", b"INFO {\"server_id\":\"x\"}\r\n"]
        {
            assert!(Amqp.reader().take(bytes).is_err());
        }
        assert!(Amqp.check(Terms { prefetch: Some(65_536), ..Terms::default() }).is_err());
    }
}
