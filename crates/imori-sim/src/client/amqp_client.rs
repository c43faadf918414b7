//! An AMQP 0-9-1 client for one channel of a connection.
//!
//! A channel either confirms publishes by number or is transactional. On a transactional channel
//! each command outside of a larger transaction is a transaction of its own.

use std::collections::VecDeque;
use std::rc::Rc;

use imori_amqp091::codec::frame::{FrameType, PROTOCOL_HEADER, Step, decode, push_method};
use imori_amqp091::codec::method::{MethodFields, MethodId};
use imori_amqp091::codec::methods::{Method, basic, channel, confirm, tx};
use imori_amqp091::codec::push::push_field;
use imori_amqp091::codec::table::FieldValue;
use imori_client::amqp091::{self, Login, Reader, TOPICS, push_login, push_publish, push_qos, table};

use super::connection::Connection;
use super::errors::complaint;
use super::outgoing::Destination;
use super::protocol::{
    Abilities, ClientEvent, ClientProtocol, Confirmed, Delivered, Disconnect, Open, Publish, Published,
    Settle, Subscribe, Transact, Unsubscribe,
};
use crate::model::Outcome;

/// The largest frame in bytes; small, so that large bodies take several.
const FRAME_BYTES_MAX: u32 = 4096;

/// The properties of a message: the flags and, if it is persistent, the delivery mode.
const PERSISTENT: [u8; 3] = [0x10, 0, 2];
const TRANSIENT: [u8; 2] = [0, 0];

/// Frames of any size, because the broker's limits are not what is tested here.
const READER: Reader = Reader { payload_bytes_max: usize::MAX, body_bytes_max: usize::MAX };

/// A client of one channel.
pub(crate) struct AmqpClient {
    connection: Rc<Connection>,
    channel: u16,
    is_transactional: bool,
    /// Expected answers, each with the names of the confirms that arrive with it.
    asked: VecDeque<(MethodId, Vec<String>)>,
    /// Names of confirms that arrive with the next commit.
    uncommitted: Vec<String>,
    /// Names of confirms that arrived with an answer already read.
    confirmed: VecDeque<String>,
    /// Whether the broker has closed the channel.
    is_closed: bool,
}

impl AmqpClient {
    /// Creates the client of a channel on a connection.
    pub(crate) fn new(connection: &Rc<Connection>, channel: u16, is_transactional: bool) -> AmqpClient {
        AmqpClient {
            connection: Rc::clone(connection),
            channel,
            is_transactional,
            asked: VecDeque::new(),
            uncommitted: Vec::new(),
            confirmed: VecDeque::new(),
            is_closed: false,
        }
    }

    /// Writes a method that is answered by an `A`.
    fn ask<'a, A: MethodFields<'a>>(
        &mut self,
        out: &mut Vec<u8>,
        method: &impl MethodFields<'a>,
        names: Vec<String>,
    ) {
        self.asked.push_back((A::ID, names));
        push_method(out, self.channel, method);
    }

    /// Commits the transaction that consists of one command, unless it belongs to a larger one.
    fn commit(&mut self, out: &mut Vec<u8>, confirm: Option<&str>, is_in_larger: bool) {
        self.uncommitted.extend(confirm.map(String::from));
        if !is_in_larger {
            let names = std::mem::take(&mut self.uncommitted);
            self.ask::<tx::CommitOk>(out, &tx::Commit, names);
        }
    }

    fn of_connection(&self, method: &Method<'_>) -> ClientEvent {
        match method {
            Method::ConnectionClose(close) if !self.is_closed => refused(close.reply_text),
            _ => ClientEvent::Nothing,
        }
    }

    fn of_channel(&mut self, method: &Method<'_>) -> Result<ClientEvent, String> {
        match *method {
            Method::BasicAck(basic::Ack { delivery_tag, multiple }) => {
                Ok(published(delivery_tag, multiple, false))
            }
            Method::BasicNack(basic::Nack { delivery_tag, multiple, .. }) => {
                Ok(published(delivery_tag, multiple, true))
            }
            Method::ChannelClose(close) => {
                self.is_closed = true;
                self.connection.closed_by_broker.borrow_mut().insert(self.channel);
                Ok(refused(close.reply_text))
            }
            _ => {
                self.is_closed = matches!(method, Method::ChannelCloseOk(_));
                match self.asked.pop_front() {
                    Some((id, names)) if id == method.id() => self.confirmed.extend(names),
                    other => return Err(format!("{method:?} for {other:?}")),
                }
                Ok(self.next_confirmed().unwrap_or(ClientEvent::Nothing))
            }
        }
    }

    fn next_confirmed(&mut self) -> Option<ClientEvent> {
        let name = Some(self.confirmed.pop_front()?);
        Some(ClientEvent::Confirmed(Confirmed { name, level: None, count: None }))
    }
}

impl ClientProtocol for AmqpClient {
    fn abilities(&self) -> Abilities {
        Abilities {
            reads_queues: true,
            persists: true,
            transacts: self.is_transactional,
            transacts_all: self.is_transactional,
            confirms_apart: !self.is_transactional,
            confirms_settles: self.is_transactional,
            has_windows: true,
            ..Abilities::default()
        }
    }

    fn connect(&mut self, out: &mut Vec<u8>, is_intruder: bool) {
        let login = Login {
            product: "imori-sim",
            capabilities: &["authentication_failure_close"],
            user: is_intruder.then_some(("guest", "wrong")),
            vhost: "/",
            channel_max: 16,
            frame_max: FRAME_BYTES_MAX,
        };
        push_login(out, &login);
    }

    fn open(&mut self, out: &mut Vec<u8>, open: &Open<'_>) {
        // A channel that the broker closed is free again only once that is answered.
        if self.connection.closed_by_broker.borrow_mut().remove(&self.channel) {
            push_method(out, self.channel, &channel::CloseOk);
        }
        self.ask::<channel::OpenOk>(out, &channel::Open, Vec::new());
        if let Some(window) = open.window {
            let prefetch_count = u16::try_from(window).unwrap_or(u16::MAX);
            self.asked.push_back((basic::QosOk::ID, Vec::new()));
            push_qos(out, self.channel, prefetch_count, true);
        }
        let names = vec![String::from(open.confirm)];
        match self.is_transactional {
            true => self.ask::<tx::SelectOk>(out, &tx::Select, names),
            false => self.ask::<confirm::SelectOk>(out, &confirm::Select { no_wait: false }, names),
        }
    }

    fn subscribe(&mut self, out: &mut Vec<u8>, subscribe: &Subscribe<'_>) {
        let (Destination::Queue(queue) | Destination::DeclaredQueue(queue)) = subscribe.place else { return };
        let prefetch_count = u16::try_from(subscribe.prefetch).unwrap_or(u16::MAX);
        self.asked.push_back((basic::QosOk::ID, Vec::new()));
        push_qos(out, self.channel, prefetch_count, false);
        let mut arguments = Vec::new();
        if let Some(priority) = subscribe.priority {
            push_field(&mut arguments, b"x-priority", FieldValue::I64(priority as i64));
        }
        let consume = basic::Consume {
            queue,
            consumer_tag: subscribe.id,
            arguments: table(&arguments),
            ..basic::Consume::default()
        };
        self.asked.push_back((basic::ConsumeOk::ID, vec![String::from(subscribe.confirm)]));
        push_method(out, self.channel, &consume);
    }

    fn unsubscribe(&mut self, out: &mut Vec<u8>, unsubscribe: &Unsubscribe<'_>) {
        let cancel = basic::Cancel { consumer_tag: unsubscribe.id, no_wait: false };
        self.asked.push_back((basic::CancelOk::ID, vec![String::from(unsubscribe.confirm)]));
        push_method(out, self.channel, &cancel);
    }

    fn publish(&mut self, out: &mut Vec<u8>, publish: &Publish<'_>) -> Option<usize> {
        let (exchange, routing_key) = match &publish.outgoing.place {
            Destination::Queue(queue) | Destination::DeclaredQueue(queue) => ("", queue),
            Destination::Topic(subject) | Destination::Reply(subject) => (TOPICS, subject),
        };
        let to = basic::Publish { exchange, routing_key, mandatory: false, immediate: false };
        let properties = if publish.outgoing.is_persistent { &PERSISTENT[..] } else { &TRANSIENT };
        push_publish(out, self.channel, &to, properties, publish.body, FRAME_BYTES_MAX);
        if self.is_transactional {
            self.commit(out, publish.confirm, publish.transaction.is_some());
        }
        Some(properties.len())
    }

    fn settle(&mut self, out: &mut Vec<u8>, settle: &Settle<'_>) {
        let delivery_tag: u64 = settle.ack.parse().unwrap_or_default();
        match settle.outcome {
            Outcome::Open | Outcome::Auto | Outcome::Accept => {
                push_method(out, self.channel, &basic::Ack { delivery_tag, multiple: false });
            }
            Outcome::Release => {
                let nack = basic::Nack { delivery_tag, multiple: false, requeue: true };
                push_method(out, self.channel, &nack);
            }
            Outcome::Reject => {
                push_method(out, self.channel, &basic::Reject { delivery_tag, requeue: false });
            }
        }
        if self.is_transactional {
            self.commit(out, settle.confirm, settle.transaction.is_some());
        }
    }

    /// A transaction is open from the start; each commit begins another.
    fn transact(&mut self, out: &mut Vec<u8>, step: Transact, _name: &str, confirm: Option<&str>) {
        match step {
            Transact::Begin => {}
            Transact::Commit => self.commit(out, confirm, false),
            Transact::Abort => {
                self.uncommitted.clear();
                self.ask::<tx::RollbackOk>(out, &tx::Rollback, Vec::new());
            }
        }
    }

    fn disconnect(&mut self, out: &mut Vec<u8>, disconnect: &Disconnect<'_>) {
        let close = channel::Close { reply_code: 200, ..channel::Close::default() };
        self.asked.push_back((channel::CloseOk::ID, vec![String::from(disconnect.confirm)]));
        push_method(out, self.channel, &close);
    }

    fn channel(&self) -> Option<u16> {
        Some(self.channel)
    }

    fn part(&self, input: &[u8]) -> Option<(usize, Option<u16>)> {
        match decode(input, usize::MAX) {
            Ok(Step::Frame(frame)) => {
                Some((frame.len(), Some(frame.channel).filter(|channel| *channel != 0)))
            }
            Ok(Step::Incomplete { .. }) => None,
            // The reader of these bytes reports the error.
            Err(_) => (!input.is_empty()).then_some((input.len(), None)),
        }
    }

    fn text_of(&self, bytes: &[u8]) -> String {
        let mut rest = bytes.strip_prefix(PROTOCOL_HEADER).unwrap_or(bytes);
        let mut text = String::new();
        while let Ok(Step::Frame(frame)) = decode(rest, usize::MAX) {
            let shown = match (frame.kind, Method::decode(frame.payload)) {
                (FrameType::Method, Ok(method)) => format!("{method:?}"),
                (kind, _) => format!("{kind:?} {}", frame.payload.escape_ascii()),
            };
            text.push_str(&format!("{} {shown} | ", frame.channel));
            rest = rest.get(frame.len()..).unwrap_or_default();
        }
        text
    }

    fn read(&mut self, input: &[u8]) -> Result<Option<(usize, ClientEvent)>, String> {
        if let Some(event) = self.next_confirmed() {
            return Ok(Some((0, event)));
        }
        let taken = READER.take(input).map_err(|error| error.to_string())?;
        let Some((item, len)) = taken else { return Ok(None) };
        let event = match item {
            amqp091::Item::Heartbeat => ClientEvent::Nothing,
            amqp091::Item::Method(0, method) => self.of_connection(&method),
            amqp091::Item::Delivery(_) | amqp091::Item::Method(..) if self.is_closed => {
                return Err(format!("{item:?} comes after the end of its channel"));
            }
            amqp091::Item::Method(_, method) => self.of_channel(&method)?,
            amqp091::Item::Delivery(delivery) => delivered(&delivery),
        };
        Ok(Some((len, event)))
    }
}

fn delivered(delivery: &amqp091::Delivery<'_>) -> ClientEvent {
    let deliver = &delivery.deliver;
    ClientEvent::Delivered(Delivered {
        subscription: String::from(deliver.consumer_tag),
        number: Some(deliver.delivery_tag),
        ack: deliver.delivery_tag.to_string(),
        body: delivery.body.to_vec(),
        is_redelivered: deliver.redelivered,
        ..Delivered::default()
    })
}

fn published(number: u64, is_multiple: bool, is_refused: bool) -> ClientEvent {
    ClientEvent::Published(Published { number, is_multiple, is_refused })
}

/// Extracts the reason that follows the name of the code.
fn refused(reply_text: &str) -> ClientEvent {
    let reason = reply_text.split_once(" - ").map_or(reply_text, |(_, reason)| reason);
    ClientEvent::Refused { message: complaint(reason), text: reason.as_bytes().to_vec() }
}
