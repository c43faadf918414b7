//! AMQP 0-9-1 with RabbitMQ's extensions.
//!
//! Queues and services are queues of that name on the default exchange; a topic is a routing key of
//! `amq.topic`. Replies use direct reply-to, or a queue per requester. The login and each set-up are pipelined;
//! they end with a method whose answer shows that all before it is done: `channel.open`, or a `channel.flow` that
//! changes nothing.

use anyhow::{Result, ensure};
use imori_amqp091::codec::frame::push_method;
use imori_amqp091::codec::methods::{basic, channel, confirm};
use imori_amqp091::codec::properties::{BasicProperties, TextProperty};
use imori_amqp091::codec::push::push_field;
use imori_amqp091::codec::table::{FieldValue, Table};
use imori_amqp091::limits::{CHANNEL_MAX, FRAME_BYTES_MAX};
use imori_client::amqp091::{
    DIRECT_REPLY_TO, Login, PERSISTENT, PublishPlaces, TOPICS, push_login, push_own_queue, push_publish,
    push_qos, push_queue, table,
};

use crate::options::{AckMode, Level, ReplyKind};
use crate::protocol::amqp_reader::AmqpReader;
use crate::protocol::driver::{
    ConfirmMode, Delivery, Destination, Driver, Manner, Queue, Reader, Replies, Terms, check_no_selector,
    declaration,
};
use crate::protocol::template::{CORRELATION_BYTES, Correlation, MessageTemplate, RequestTemplate};
use crate::stamp::STAMP_BYTES;
use crate::url::Url;

/// The only channel used.
const CHANNEL: u16 = 1;

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
        let login = Login {
            product: "imori-bench",
            capabilities: &["authentication_failure_close", "publisher_confirms", "basic.nack"],
            user: url.user(),
            vhost: &url.vhost,
            channel_max: CHANNEL_MAX,
            frame_max: FRAME_BYTES_MAX,
        };
        push_login(out, &login);
        push_method(out, CHANNEL, &channel::Open {});
    }

    fn subscribe(&self, destination: &Destination, terms: Terms, confirm: ConfirmMode, out: &mut Vec<u8>) {
        push_declaration(out, destination);
        // After a declaration whose queue is named by the broker, the empty name refers to that queue.
        let queue = match destination {
            Destination::Queue(queue) => &queue.name,
            Destination::Service(name) => name,
            Destination::Topic(subject) => {
                push_own_queue(out, CHANNEL, TOPICS, subject, Table::EMPTY);
                ""
            }
        };
        if let Some(count) = terms.prefetch {
            push_qos(out, CHANNEL, u16::try_from(count).unwrap_or(u16::MAX), false);
        }
        let consume = basic::Consume {
            queue,
            consumer_tag: "imori-bench",
            no_ack: terms.ack == AckMode::Auto,
            ..basic::Consume::default()
        };
        push_method(out, CHANNEL, &consume);
        if confirm == ConfirmMode::Each {
            push_barrier(out);
        }
    }

    fn prepare(&self, destination: &Destination, confirm: ConfirmMode, out: &mut Vec<u8>) {
        push_declaration(out, destination);
        if confirm == ConfirmMode::Each {
            push_method(out, CHANNEL, &confirm::Select { no_wait: false });
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
        let (bytes, places) = encoded(service, &properties, &vec![b' '; size]);
        // `correlation-id` is the first property, after its length octet.
        let correlation_ends = places.properties_at + 1 + CORRELATION_BYTES;
        RequestTemplate::encoded(bytes, correlation_ends, places.body_at, size)
    }

    fn message(&self, destination: &Destination, filler: &[u8], manner: Manner) -> MessageTemplate {
        let expiration = manner.expiration.map(|lives| lives.as_millis().to_string());
        let properties = BasicProperties {
            delivery_mode: manner.is_persistent.then_some(PERSISTENT),
            priority: manner.priorities.map(|_| 0),
            expiration: expiration.as_ref().map(|text| TextProperty::new(text.as_bytes())),
            ..BasicProperties::default()
        };
        let body = [&[0; STAMP_BYTES], filler].concat();
        let (bytes, places) = encoded(destination, &properties, &body);
        let template = MessageTemplate::encoded(bytes, places.body_at, body.len());
        match manner.priorities {
            Some(priorities) => {
                let at = places.properties_at + usize::from(manner.is_persistent);
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
        out.len() + push_message(out, "", key, &properties, request.body).body_at
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

    fn declaration(&self, level: Level, priorities: Option<u8>) -> Vec<(String, String)> {
        declaration(level, priorities)
    }
}

/// A message for a destination.
fn encoded(
    destination: &Destination,
    properties: &BasicProperties<'_>,
    body: &[u8],
) -> (Vec<u8>, PublishPlaces) {
    let (exchange, key) = match destination {
        Destination::Queue(queue) => ("", &queue.name),
        Destination::Service(name) => ("", name),
        Destination::Topic(subject) => (TOPICS, subject),
    };
    let mut bytes = Vec::new();
    let places = push_message(&mut bytes, exchange, key, properties, body);
    (bytes, places)
}

fn push_message(
    out: &mut Vec<u8>,
    exchange: &str,
    routing_key: &str,
    properties: &BasicProperties<'_>,
    body: &[u8],
) -> PublishPlaces {
    let mut block = Vec::new();
    properties.push(&mut block);
    let publish = basic::Publish { exchange, routing_key, mandatory: false, immediate: false };
    push_publish(out, CHANNEL, &publish, &block, body, FRAME_BYTES_MAX)
}

/// Appends the declaration of the destination's queue; a topic has none.
fn push_declaration(out: &mut Vec<u8>, destination: &Destination) {
    let (name, given) = match destination {
        Destination::Queue(queue) if queue.name != DIRECT_REPLY_TO => (&queue.name, &*queue.arguments),
        Destination::Service(name) => (name, &[][..]),
        Destination::Queue(_) | Destination::Topic(_) => return,
    };
    let mut arguments = Vec::new();
    for (name, value) in given {
        push_field(&mut arguments, name.as_bytes(), FieldValue::written(value));
    }
    push_queue(out, CHANNEL, name, table(&arguments));
}

/// Appends a method without effect; its answer shows that everything before it is done.
fn push_barrier(out: &mut Vec<u8>) {
    push_method(out, CHANNEL, &channel::Flow { active: true });
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use imori_amqp091::codec::frame::FRAME_BYTES;

    use super::*;
    use crate::protocol::driver::{Confirmed, Heard, taken};

    /// The most bytes of a body in one frame.
    const PART_BYTES: usize = FRAME_BYTES_MAX as usize - FRAME_BYTES;

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
