//! An AMQP 0-9-1 client. It offers no heartbeats; once it asks for confirms, they cover everything
//! it publishes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use imori_amqp091::codec::frame::{
    FRAME_BYTES, PROTOCOL_HEADER, push_body, push_content_header, push_method,
};
use imori_amqp091::codec::method::MethodFields;
use imori_amqp091::codec::methods::{basic, channel, confirm, connection, queue};
use imori_amqp091::codec::push::{push_field, push_table_field};
use imori_amqp091::codec::table::{FieldValue, Table};
use imori_amqp091::limits::FRAME_BYTES_MAX;
use imori_bench::Url;

use super::amqp_incoming::{Incoming, take};
use super::amqp_message::{Address, DELIVERY_TAG, properties};
use super::conversation::{Ack, Client, Header, Message, Received, Subscription, expiration};
use super::error::ClientError;
use super::transport::{PATIENCE, Transport};

/// The channel for everything except requests that may be refused.
const CHANNEL: u16 = 1;

/// The channel for checking whether a queue exists; if it does not, the broker closes the channel.
const PROBE: u16 = 2;

/// The pseudo-queue whose replies arrive on this connection.
const DIRECT_REPLY_TO: &str = "amq.rabbitmq.reply-to";

/// The reply code for an object that does not exist.
const NOT_FOUND: u16 = 404;

/// An AMQP connection that is logged in and has a channel.
pub(super) struct Amqp {
    transport: Transport,
    /// Messages that arrived while the client waited for an answer.
    waiting: VecDeque<Received>,
    /// Messages published since confirms were turned on; `None` before.
    published: Option<u64>,
    /// Whether acknowledging a message also acknowledges all earlier ones.
    is_ack_multiple: bool,
}

impl Amqp {
    pub(super) fn connect(url: &Url) -> Result<Amqp, ClientError> {
        let transport = Transport::connect(url)?;
        let mut client =
            Amqp { transport, waiting: VecDeque::new(), published: None, is_ack_multiple: false };
        client.log_in(url)?;
        Ok(client)
    }

    fn log_in(&mut self, url: &Url) -> Result<(), ClientError> {
        self.transport.write(|out| out.extend_from_slice(PROTOCOL_HEADER))?;
        self.answer::<connection::Start<'_>>()?;
        let (user, password) = match &url.login {
            Some((user, password)) => (user.as_str(), password.as_str()),
            None => ("guest", "guest"),
        };
        let mut client_properties = Vec::new();
        push_field(&mut client_properties, b"product", FieldValue::Text(b"imori"));
        push_table_field(&mut client_properties, b"capabilities", |out| {
            for capability in [&b"authentication_failure_close"[..], b"consumer_cancel_notify"] {
                push_field(out, capability, FieldValue::Bool(true));
            }
        });
        let response = format!("\0{user}\0{password}");
        let start_ok = connection::StartOk {
            client_properties: Table::new(&client_properties).unwrap_or(Table::EMPTY),
            mechanism: "PLAIN",
            response: response.as_bytes(),
            locale: "en_US",
        };
        self.send(0, &start_ok)?;
        self.answer::<connection::Tune>()?;
        self.send(0, &connection::TuneOk { channel_max: PROBE, frame_max: FRAME_BYTES_MAX, heartbeat: 0 })?;
        self.call::<_, connection::OpenOk>(0, &connection::Open { virtual_host: &url.vhost })?;
        self.call::<_, channel::OpenOk>(CHANNEL, &channel::Open {})
    }

    fn send<'m>(&mut self, channel: u16, method: &impl MethodFields<'m>) -> Result<(), ClientError> {
        self.transport.write(|out| push_method(out, channel, method))
    }

    /// Sends a method and waits for its answer, an `A`.
    fn call<'m, 'a, M: MethodFields<'m>, A: MethodFields<'a>>(
        &mut self,
        channel: u16,
        method: &M,
    ) -> Result<(), ClientError> {
        self.send(channel, method)?;
        self.answer::<A>()
    }

    /// Waits for the method `A`; messages that arrive meanwhile are queued for `receive`.
    fn answer<'a, A: MethodFields<'a>>(&mut self) -> Result<(), ClientError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.next(Some(deadline))? {
                Incoming::Answer(id) if id == A::ID => return Ok(()),
                Incoming::Delivery(message) => self.waiting.push_back(message),
                Incoming::ChannelClosed(_, text) => return Err(ClientError::Refused(text)),
                Incoming::Answer(_) | Incoming::Taken(_) | Incoming::Nothing => {}
            }
        }
    }

    /// Waits for the broker's next frame or message. A closed connection, a rejected message and an
    /// unroutable one are errors.
    fn next(&mut self, deadline: Option<Instant>) -> Result<Incoming, ClientError> {
        self.transport.flush()?;
        loop {
            let taken = take(self.transport.input())?;
            if let Some((incoming, used)) = taken {
                self.transport.consume(used);
                return Ok(incoming);
            }
            self.transport.read(deadline)?;
        }
    }

    /// Makes sure the queue exists: an existing one is left as it is unless `arguments` are given;
    /// otherwise it is declared durable with them.
    fn declare(&mut self, name: &str, arguments: Table<'_>) -> Result<(), ClientError> {
        let declare = queue::Declare {
            queue: name,
            passive: false,
            durable: true,
            exclusive: false,
            auto_delete: false,
            no_wait: false,
            arguments,
        };
        if arguments.is_empty() && self.is_there(name)? {
            return Ok(());
        }
        self.call::<_, queue::DeclareOk<'_>>(CHANNEL, &declare)
    }

    fn is_there(&mut self, name: &str) -> Result<bool, ClientError> {
        let passive = queue::Declare {
            queue: name,
            passive: true,
            durable: false,
            exclusive: false,
            auto_delete: false,
            no_wait: false,
            arguments: Table::EMPTY,
        };
        self.call::<_, channel::OpenOk>(PROBE, &channel::Open {})?;
        self.send(PROBE, &passive)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.next(Some(deadline))? {
                Incoming::Answer(id) if id == queue::DeclareOk::ID => break,
                Incoming::Delivery(message) => self.waiting.push_back(message),
                Incoming::ChannelClosed(NOT_FOUND, _) => {
                    self.send(PROBE, &channel::CloseOk {})?;
                    return Ok(false);
                }
                Incoming::ChannelClosed(_, text) => return Err(ClientError::Refused(text)),
                Incoming::Answer(_) | Incoming::Taken(_) | Incoming::Nothing => {}
            }
        }
        let close = channel::Close { reply_code: 200, reply_text: "", class_id: 0, method_id: 0 };
        self.call::<_, channel::CloseOk>(PROBE, &close)?;
        Ok(true)
    }

    fn content(
        &mut self,
        (exchange, routing_key): (&str, &str),
        is_mandatory: bool,
        properties: &[u8],
        body: &[u8],
    ) -> Result<(), ClientError> {
        let publish = basic::Publish { exchange, routing_key, mandatory: is_mandatory, immediate: false };
        self.transport.write(|out| {
            push_method(out, CHANNEL, &publish);
            push_content_header(out, CHANNEL, body.len(), properties);
            push_body(out, CHANNEL, body, FRAME_BYTES_MAX as usize - FRAME_BYTES);
        })
    }

    /// Publishes a message with confirms on; returns its confirm number.
    fn publish_counted(&mut self, message: &Message<'_>) -> Result<u64, ClientError> {
        let address = Address::parse(message.destination)?;
        let properties = properties(message.headers, None, None)?;
        let before = match self.published {
            Some(before) => before,
            None => {
                if let Address::Queue(name) = address {
                    self.declare(name, Table::EMPTY)?;
                }
                self.call::<_, confirm::SelectOk>(CHANNEL, &confirm::Select { no_wait: false })?;
                0
            }
        };
        self.content(address.publish(), matches!(address, Address::Queue(_)), &properties, message.body)?;
        self.published = Some(before + 1);
        Ok(before + 1)
    }

    /// Declares what the subscription needs and returns the name of the queue to consume.
    fn source<'a>(&mut self, address: Address<'a>, arguments: Table<'_>) -> Result<&'a str, ClientError> {
        let (exchange, routing_key) = match address {
            Address::Queue(name) => {
                self.declare(name, arguments)?;
                return Ok(name);
            }
            Address::Exchange(exchange, key) => (exchange, key),
        };
        // The broker generates a name; from then on the empty name stands for that queue.
        let own = queue::Declare {
            queue: "",
            passive: false,
            durable: false,
            exclusive: true,
            auto_delete: true,
            no_wait: false,
            arguments,
        };
        self.call::<_, queue::DeclareOk<'_>>(CHANNEL, &own)?;
        let bind = queue::Bind { queue: "", exchange, routing_key, no_wait: false, arguments: Table::EMPTY };
        self.call::<_, queue::BindOk>(CHANNEL, &bind)?;
        Ok("")
    }

    fn consume(&mut self, queue: &str, is_acked: bool, arguments: Table<'_>) -> Result<(), ClientError> {
        let consume = basic::Consume {
            queue,
            consumer_tag: "",
            no_local: false,
            no_ack: !is_acked,
            exclusive: false,
            no_wait: false,
            arguments,
        };
        self.call::<_, basic::ConsumeOk<'_>>(CHANNEL, &consume)
    }
}

impl Client for Amqp {
    fn publish(&mut self, message: &Message<'_>) -> Result<(), ClientError> {
        self.publish_counted(message).map(drop)
    }

    fn publish_confirmed(&mut self, message: &Message<'_>) -> Result<(), ClientError> {
        let number = self.publish_counted(message)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.next(Some(deadline))? {
                Incoming::Taken(until) if until >= number => return Ok(()),
                Incoming::Delivery(message) => self.waiting.push_back(message),
                Incoming::ChannelClosed(_, text) => return Err(ClientError::Refused(text)),
                Incoming::Answer(_) | Incoming::Taken(_) | Incoming::Nothing => {}
            }
        }
    }

    /// Ignores `is_shared`: consumers share a message exactly if the address is a queue.
    fn subscribe(&mut self, subscription: &Subscription<'_>) -> Result<(), ClientError> {
        let address = Address::parse(subscription.source)?;
        let (mut of_queue, mut of_consumer) = (Vec::new(), Vec::new());
        let mut prefetch = None;
        for Header { name, value } in subscription.headers {
            match name.as_str() {
                "prefetch-count" => prefetch = Some(value.parse().map_err(|_| prefetch_error(value))?),
                "x-priority" => push_field(&mut of_consumer, name.as_bytes(), FieldValue::written(value)),
                _ if name.starts_with("x-") => {
                    push_field(&mut of_queue, name.as_bytes(), FieldValue::written(value));
                }
                _ => return Err(argument_error(name)),
            }
        }
        let table = |fields| Table::new(fields).unwrap_or(Table::EMPTY);
        let queue = self.source(address, table(&of_queue))?;
        if let Some(prefetch_count) = prefetch {
            let qos = basic::Qos { prefetch_size: 0, prefetch_count, global: false };
            self.call::<_, basic::QosOk>(CHANNEL, &qos)?;
        }
        self.is_ack_multiple = subscription.ack == Ack::Client;
        self.consume(queue, subscription.ack != Ack::Auto, table(&of_consumer))
    }

    fn request(&mut self, message: &Message<'_>, patience: Duration) -> Result<(), ClientError> {
        let address = Address::parse(message.destination)?;
        if let Address::Queue(name) = address {
            self.declare(name, Table::EMPTY)?;
        }
        let expiration = expiration(message.headers, patience);
        let headers = [message.headers, expiration.as_slice()].concat();
        let properties = properties(&headers, Some(b"1"), Some(DIRECT_REPLY_TO))?;
        self.consume(DIRECT_REPLY_TO, false, Table::EMPTY)?;
        self.content(address.publish(), true, &properties, message.body)
    }

    fn reply(&mut self, request: &Received, answer: &Result<Vec<u8>, String>) -> Result<(), ClientError> {
        let Some(reply_to) = &request.reply_to else { return Ok(()) };
        let Ok(routing_key) = str::from_utf8(reply_to) else { return Ok(()) };
        let error = answer.as_ref().err().map(|error| Header { name: "error".into(), value: error.clone() });
        let properties = properties(error.as_slice(), request.header("correlation-id"), None)?;
        self.content(("", routing_key), false, &properties, answer.as_deref().unwrap_or_default())
    }

    fn accept(&mut self, message: &Received) -> Result<(), ClientError> {
        let tag = message.header(DELIVERY_TAG).and_then(|tag| str::from_utf8(tag).ok());
        let Some(delivery_tag) = tag.and_then(|tag| tag.parse().ok()) else { return Ok(()) };
        self.send(CHANNEL, &basic::Ack { delivery_tag, multiple: self.is_ack_multiple })
    }

    fn receive(&mut self, deadline: Option<Instant>) -> Result<Received, ClientError> {
        if let Some(message) = self.waiting.pop_front() {
            return Ok(message);
        }
        loop {
            match self.next(deadline)? {
                Incoming::Delivery(message) => return Ok(message),
                Incoming::ChannelClosed(_, text) => return Err(ClientError::Refused(text)),
                Incoming::Answer(_) | Incoming::Taken(_) | Incoming::Nothing => {}
            }
        }
    }

    fn disconnect(mut self: Box<Self>) -> Result<(), ClientError> {
        let close = connection::Close { reply_code: 200, reply_text: "", class_id: 0, method_id: 0 };
        self.call::<_, connection::CloseOk>(0, &close)
    }
}

fn prefetch_error(value: &str) -> ClientError {
    ClientError::Unspeakable(format!("`{value}` is no prefetch count; use a number from 0 to 65535"))
}

fn argument_error(name: &str) -> ClientError {
    ClientError::Unspeakable(format!(
        "`{name}` is no argument of a queue or a consumer; use `prefetch-count`, or a name that begins with `x-`"
    ))
}
