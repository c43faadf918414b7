//! An AMQP 0-9-1 client. It offers no heartbeats; once it asks for confirms, they cover everything
//! it publishes.

use std::time::{Duration, Instant};

use imori_amqp091::codec::frame::push_method;
use imori_amqp091::codec::method::{MethodFields, MethodId};
use imori_amqp091::codec::methods::{Method, basic, channel, confirm, connection, queue};
use imori_amqp091::codec::push::push_field;
use imori_amqp091::codec::table::{FieldValue, Table};
use imori_amqp091::limits::FRAME_BYTES_MAX;
use imori_bench::Url;
use imori_client::Malformed;
use imori_client::amqp091::{
    DIRECT_REPLY_TO, Item, Login, Reader, TOPICS, push_login, push_own_queue, push_publish, push_qos,
    push_queue, refusal, table,
};

use super::address::Address;
use super::amqp_message::{DELIVERY_TAG, properties, received};
use super::conversation::{Ack, Client, Header, Message, Received, Subscription, expiration};
use super::error::ClientError;
use super::session::{Protocol, Session};

/// The channel for everything except requests that may be refused.
const CHANNEL: u16 = 1;

/// The channel for checking whether a queue exists; if it does not, the broker closes the channel.
const PROBE: u16 = 2;

/// The reply code for an object that does not exist.
const NOT_FOUND: u16 = 404;

/// The largest frames and bodies.
const READER: Reader = Reader { payload_bytes_max: FRAME_BYTES_MAX as usize, body_bytes_max: usize::MAX };

/// An AMQP connection that is logged in and has a channel.
pub(super) struct Amqp {
    session: Session<Frames>,
    /// Messages published since confirms were turned on; `None` before.
    published: Option<u64>,
    /// Whether acknowledging a message also acknowledges all earlier ones.
    is_ack_multiple: bool,
}

/// The broker's answers so far.
struct Frames {
    answered: Option<MethodId>,
    /// The broker confirmed all messages up to this number.
    taken: u64,
}

impl Protocol for Frames {
    fn take(
        &mut self,
        input: &[u8],
        _out: &mut Vec<u8>,
    ) -> Result<Option<(Option<Received>, usize)>, ClientError> {
        let taken = READER.take(input).map_err(wrong)?;
        let Some((item, used)) = taken else { return Ok(None) };
        let mut message = None;
        match item {
            Item::Delivery(delivery) => message = Some(received(&delivery).map_err(wrong)?),
            Item::Method(_, Method::BasicAck(ack)) => self.taken = ack.delivery_tag,
            Item::Method(channel, method) => {
                let is_missing = channel == PROBE
                    && matches!(method, Method::ChannelClose(channel::Close { reply_code: NOT_FOUND, .. }));
                if let Some(text) = refusal(&method).filter(|_| !is_missing) {
                    return Err(ClientError::Refused(text));
                }
                self.answered = Some(method.id());
            }
            Item::Heartbeat => {}
        }
        Ok(Some((message, used)))
    }
}

impl Amqp {
    pub(super) fn connect(url: &Url) -> Result<Amqp, ClientError> {
        let session = Session::connect(url, Frames { answered: None, taken: 0 })?;
        let mut client = Amqp { session, published: None, is_ack_multiple: false };
        let login = Login {
            product: "imori",
            capabilities: &["authentication_failure_close", "consumer_cancel_notify"],
            user: url.user(),
            vhost: &url.vhost,
            channel_max: PROBE,
            frame_max: FRAME_BYTES_MAX,
        };
        client.session.write(|out| push_login(out, &login))?;
        client.call::<_, channel::OpenOk>(CHANNEL, &channel::Open {})?;
        Ok(client)
    }

    fn send<'m>(&mut self, channel: u16, method: &impl MethodFields<'m>) -> Result<(), ClientError> {
        self.session.write(|out| push_method(out, channel, method))
    }

    /// Sends a method and waits for its answer, an `A`.
    fn call<'m, 'a, M: MethodFields<'m>, A: MethodFields<'a>>(
        &mut self,
        channel: u16,
        method: &M,
    ) -> Result<(), ClientError> {
        self.send(channel, method)?;
        self.answer(&[A::ID]).map(drop)
    }

    /// Waits for one of these methods.
    fn answer(&mut self, ids: &[MethodId]) -> Result<MethodId, ClientError> {
        self.session.wait(|frames| frames.answered.take().filter(|id| ids.contains(id)))
    }

    /// Makes sure the queue exists: an existing one is left as it is unless `arguments` are given;
    /// otherwise it is declared durable with them.
    fn declare(&mut self, name: &str, arguments: Table<'_>) -> Result<(), ClientError> {
        if arguments.is_empty() && self.is_there(name)? {
            return Ok(());
        }
        self.session.write(|out| push_queue(out, CHANNEL, name, arguments))?;
        self.answer(&[queue::DeclareOk::ID]).map(drop)
    }

    fn is_there(&mut self, name: &str) -> Result<bool, ClientError> {
        self.call::<_, channel::OpenOk>(PROBE, &channel::Open {})?;
        let passive = queue::Declare { queue: name, passive: true, ..queue::Declare::default() };
        self.send(PROBE, &passive)?;
        if self.answer(&[queue::DeclareOk::ID, channel::Close::ID])? == channel::Close::ID {
            self.send(PROBE, &channel::CloseOk {})?;
            return Ok(false);
        }
        let close = channel::Close { reply_code: 200, ..channel::Close::default() };
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
        self.session.write(|out| {
            push_publish(out, CHANNEL, &publish, properties, body, FRAME_BYTES_MAX);
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
        self.content(route(address), matches!(address, Address::Queue(_)), &properties, message.body)?;
        self.published = Some(before + 1);
        Ok(before + 1)
    }

    /// Declares what the subscription needs and returns the name of the queue to consume.
    fn source<'a>(&mut self, address: Address<'a>, arguments: Table<'_>) -> Result<&'a str, ClientError> {
        if let Address::Queue(name) = address {
            self.declare(name, arguments)?;
            return Ok(name);
        }
        let (exchange, key) = route(address);
        self.session.write(|out| push_own_queue(out, CHANNEL, exchange, key, arguments))?;
        self.answer(&[queue::BindOk::ID])?;
        Ok("")
    }

    fn consume(&mut self, queue: &str, is_acked: bool, arguments: Table<'_>) -> Result<(), ClientError> {
        let consume = basic::Consume { queue, no_ack: !is_acked, arguments, ..basic::Consume::default() };
        self.call::<_, basic::ConsumeOk<'_>>(CHANNEL, &consume)
    }
}

impl Client for Amqp {
    fn publish(&mut self, message: &Message<'_>) -> Result<(), ClientError> {
        self.publish_counted(message).map(drop)
    }

    fn publish_confirmed(&mut self, message: &Message<'_>) -> Result<(), ClientError> {
        let number = self.publish_counted(message)?;
        self.session.wait(|frames| (frames.taken >= number).then_some(()))
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
        let queue = self.source(address, table(&of_queue))?;
        if let Some(prefetch) = prefetch {
            self.session.write(|out| push_qos(out, CHANNEL, prefetch, false))?;
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
        self.content(route(address), true, &properties, message.body)
    }

    fn reply(&mut self, request: &Received, answer: &Result<Vec<u8>, String>) -> Result<(), ClientError> {
        let Some(reply_to) = &request.reply_to else { return Ok(()) };
        let Ok(routing_key) = str::from_utf8(reply_to) else { return Ok(()) };
        let error = answer.as_ref().err().map(|error| Header { name: "error".into(), value: error.clone() });
        let properties = properties(error.as_slice(), request.header("correlation-id"), None)?;
        self.content(("", routing_key), false, &properties, answer.as_deref().unwrap_or_default())
    }

    fn accept(&mut self, message: &Received) -> Result<(), ClientError> {
        let Some(delivery_tag) = message.number(DELIVERY_TAG) else { return Ok(()) };
        self.send(CHANNEL, &basic::Ack { delivery_tag, multiple: self.is_ack_multiple })
    }

    fn receive(&mut self, deadline: Option<Instant>) -> Result<Received, ClientError> {
        self.session.receive(deadline)
    }

    fn disconnect(mut self: Box<Self>) -> Result<(), ClientError> {
        let close = connection::Close { reply_code: 200, ..connection::Close::default() };
        self.call::<_, connection::CloseOk>(0, &close)
    }
}

/// The exchange and routing key of an address.
fn route(address: Address<'_>) -> (&str, &str) {
    match address {
        Address::Queue(name) => ("", name),
        Address::Topic(key) => (TOPICS, key),
        Address::Exchange(exchange, key) => (exchange, key),
    }
}

fn wrong(error: Malformed) -> ClientError {
    ClientError::Decode("AMQP 0-9-1", error)
}

fn prefetch_error(value: &str) -> ClientError {
    ClientError::Unspeakable(format!("`{value}` is no prefetch count; use a number from 0 to 65535"))
}

fn argument_error(name: &str) -> ClientError {
    ClientError::Unspeakable(format!(
        "`{name}` is no argument of a queue or a consumer; use `prefetch-count`, or a name that begins with `x-`"
    ))
}
