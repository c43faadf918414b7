//! The methods with which an AMQP 0-9-1 client logs in, declares and consumes, all on one channel.
//!
//! They are pipelined, because the answers come in order. Each sequence ends with a method whose answer shows
//! that all before it is done: `channel.open`, or a `channel.flow` that changes nothing.

use imori_amqp091::codec::frame::{PROTOCOL_HEADER, push_method};
use imori_amqp091::codec::methods::{basic, channel, confirm, connection, queue};
use imori_amqp091::codec::push::{push_field, push_table_field};
use imori_amqp091::codec::table::{FieldValue, Table};
use imori_amqp091::limits::{CHANNEL_MAX, FRAME_BYTES_MAX};

use crate::options::AckMode;
use crate::protocol::driver::{Destination, Queue, Terms};

/// The only channel used.
pub(super) const CHANNEL: u16 = 1;

/// The pseudo-queue of direct reply-to.
pub(super) const DIRECT_REPLY_TO: &str = "amq.rabbitmq.reply-to";

/// The exchange for topics.
pub(super) const TOPICS: &str = "amq.topic";

/// Appends everything from the protocol header to the opening of the channel.
pub(super) fn push_login(out: &mut Vec<u8>, user: &str, password: &str, vhost: &str) {
    let mut properties = Vec::new();
    push_field(&mut properties, b"product", FieldValue::Text(b"imori-bench"));
    push_table_field(&mut properties, b"capabilities", |out| {
        for capability in [&b"authentication_failure_close"[..], b"publisher_confirms", b"basic.nack"] {
            push_field(out, capability, FieldValue::Bool(true));
        }
    });
    let response = format!("\0{user}\0{password}");
    let start_ok = connection::StartOk {
        client_properties: table(&properties),
        mechanism: "PLAIN",
        response: response.as_bytes(),
        locale: "en_US",
    };
    let tune_ok = connection::TuneOk { channel_max: CHANNEL_MAX, frame_max: FRAME_BYTES_MAX, heartbeat: 0 };
    out.extend_from_slice(PROTOCOL_HEADER);
    push_method(out, 0, &start_ok);
    push_method(out, 0, &tune_ok);
    push_method(out, 0, &connection::Open { virtual_host: vhost });
    push_method(out, CHANNEL, &channel::Open {});
}

/// Appends the declaration of the destination's queue; a topic has none.
pub(super) fn push_declaration(out: &mut Vec<u8>, destination: &Destination) {
    match destination {
        Destination::Queue(queue) if queue.name == DIRECT_REPLY_TO => {}
        Destination::Queue(queue) => push_queue(out, queue),
        Destination::Service(name) => push_queue(out, &Queue::named(name)),
        Destination::Topic(_) => {}
    }
}

/// Appends `confirm.select`, which requests confirms for everything published.
pub(super) fn push_confirm_select(out: &mut Vec<u8>) {
    push_method(out, CHANNEL, &confirm::Select { no_wait: false });
}

/// Appends a consumer of a destination; its queue must be declared before, unless it is a topic.
pub(super) fn push_consumer(out: &mut Vec<u8>, destination: &Destination, terms: Terms) {
    // After a declaration whose queue is named by the broker, the empty name refers to that queue.
    let queue = match destination {
        Destination::Queue(queue) => &queue.name,
        Destination::Service(name) => name,
        Destination::Topic(subject) => {
            let own = queue::Declare { exclusive: true, auto_delete: true, ..named("", Table::EMPTY) };
            push_method(out, CHANNEL, &queue::Declare { durable: false, ..own });
            let bind = queue::Bind {
                queue: "",
                exchange: TOPICS,
                routing_key: subject,
                no_wait: false,
                arguments: Table::EMPTY,
            };
            push_method(out, CHANNEL, &bind);
            ""
        }
    };
    if let Some(count) = terms.prefetch {
        let prefetch_count = u16::try_from(count).unwrap_or(u16::MAX);
        push_method(out, CHANNEL, &basic::Qos { prefetch_size: 0, prefetch_count, global: false });
    }
    let consume = basic::Consume {
        queue,
        consumer_tag: "imori-bench",
        no_local: false,
        no_ack: terms.ack == AckMode::Auto,
        exclusive: false,
        no_wait: false,
        arguments: Table::EMPTY,
    };
    push_method(out, CHANNEL, &consume);
}

/// Appends a method without effect; its answer shows that everything before it is done.
pub(super) fn push_barrier(out: &mut Vec<u8>) {
    push_method(out, CHANNEL, &channel::Flow { active: true });
}

fn push_queue(out: &mut Vec<u8>, queue: &Queue) {
    let mut arguments = Vec::new();
    for (name, value) in &queue.arguments {
        push_field(&mut arguments, name.as_bytes(), FieldValue::written(value));
    }
    push_method(out, CHANNEL, &named(&queue.name, table(&arguments)));
}

fn named<'a>(name: &'a str, arguments: Table<'a>) -> queue::Declare<'a> {
    queue::Declare {
        queue: name,
        passive: false,
        durable: true,
        exclusive: false,
        auto_delete: false,
        no_wait: false,
        arguments,
    }
}

/// A table of fields that were just written.
fn table(fields: &[u8]) -> Table<'_> {
    Table::new(fields).unwrap_or(Table::EMPTY)
}
