//! A client inside the broker's process: its commands and what it is sent are values in a pipe, and bytes in the
//! network stand for them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use imori_core::delivery::Outcome as Settled;
use imori_core::error::BrokerError;
use imori_core::internal::{
    Bind, BindTarget, Command, CommandError, Consume, Done, Incoming, IncomingMessage, OutgoingMessage,
    Receiver, Subscribe as SubscribeVerb, TICKET_BYTES, Verb, tickets,
};
use imori_core::message::{Address, Property, TOPIC_EXCHANGE, Value};
use imori_core::name::Name;
use imori_core::outbound::INBOX_PREFIX;
use imori_core::route::{Arguments, BindingKey, ExchangeKind, Settings, Syntax};

use super::errors::complaint;
use super::outgoing::{Destination, Outgoing, shared_name};
use super::protocol::{
    Abilities, ClientEvent, ClientProtocol, Confirmed, Delivered, Disconnect, HeaderUse, NumberHeader,
    Operate, Publish, Published, Settle, Subscribe, Unsubscribe,
};
use crate::machine::CommandPipe;
use crate::model::Outcome;

/// The most requests of a client, whose replies it awaits until it leaves.
const REQUESTS_MAX: usize = 3;

/// Characters of an inbox address after the prefix.
const ADDRESS_CHARS: usize = 38;

/// The separator of the parts of a reply address.
const SEPARATOR: char = '\u{1}';

/// An internal client of the broker.
pub(crate) struct InternalClient {
    pipe: Arc<CommandPipe>,
    /// The number of the last command.
    number: u64,
    /// The last command, for the trace.
    last: String,
    /// The number of requests that it may still send.
    requests_left: usize,
    calls: Vec<u64>,
    /// Publishes and calls without an answer that the run has seen, in order. They may overtake no other, but
    /// everything else may overtake them.
    publishes: VecDeque<Awaited<Published>>,
    /// Publishes so far.
    published: u64,
    /// Other commands without an answer that the run has seen, in order. The run expects answers in this order; the
    /// broker gives them in this order, except that commands may overtake a get.
    answers: VecDeque<Awaited<Confirmed>>,
    /// The names of subscriptions and gets.
    names: BTreeMap<u64, String>,
    /// Events that the run has not seen.
    events: VecDeque<ClientEvent>,
}

/// A command that is to be answered.
struct Awaited<T> {
    number: u64,
    /// The answer, once it is there and others must be seen first.
    answer: Option<T>,
    /// The name of the confirm; `None` if the run does not wait for it.
    name: Option<String>,
    /// Whether publishes have to be answered first.
    is_last: bool,
}

impl InternalClient {
    /// Creates a client. With `may_be_refused` it sends no requests: a request that a full queue
    /// refuses may have reached a subscriber, and that reply would arrive unexpectedly.
    pub(crate) fn new(pipe: Arc<CommandPipe>, may_be_refused: bool) -> InternalClient {
        InternalClient {
            pipe,
            number: 0,
            last: String::new(),
            requests_left: if may_be_refused { 0 } else { REQUESTS_MAX },
            calls: Vec::new(),
            publishes: VecDeque::new(),
            published: 0,
            answers: VecDeque::new(),
            names: BTreeMap::new(),
            events: VecDeque::new(),
        }
    }

    /// Sends a command; returns its number.
    fn send(&mut self, out: &mut Vec<u8>, verb: Verb) -> u64 {
        self.number += 1;
        self.last = format!("{}: {verb:?}", self.number);
        self.pipe.push_command(Command { number: self.number, verb });
        out.push(0);
        self.number
    }

    /// Sends a command that is confirmed.
    fn ask(&mut self, out: &mut Vec<u8>, verb: Verb, confirm: Option<&str>) -> u64 {
        let number = self.send(out, verb);
        let name = confirm.map(String::from);
        self.answers.push_back(Awaited { number, answer: None, name, is_last: false });
        number
    }

    fn take_answer(&mut self, command: u64, outcome: Result<Done, CommandError>) -> Result<(), String> {
        if let Some(awaited) = self.publishes.iter_mut().find(|awaited| awaited.number == command) {
            let is_refused = match outcome {
                Ok(Done::Published { .. }) => false,
                // No responder takes the request, or a queue is full, so some queues may lack the message.
                Err(CommandError::NoResponder | CommandError::Broker(BrokerError::QueueFull(_))) => true,
                other => return Err(format!("publish {command} is answered by {other:?}")),
            };
            if let Some(answer) = &mut awaited.answer {
                answer.is_refused |= is_refused;
            } else {
                awaited.answer = Some(Published { number: 0, is_multiple: false, is_refused });
            }
        } else if self.calls.contains(&command) {
            // The request was reported already.
            match outcome {
                Err(CommandError::NoResponder | CommandError::Broker(BrokerError::QueueFull(_))) => {}
                other => return Err(format!("call {command} is answered by {other:?}")),
            }
        } else if let Some(awaited) = self.answers.iter_mut().find(|awaited| awaited.number == command) {
            let count = match outcome {
                Ok(Done::Done | Done::Settled(1)) => None,
                Ok(Done::Dropped(count)) => Some(count),
                Ok(Done::Queue(found)) => Some(found.ready),
                Ok(Done::Empty) => Some(0),
                Ok(Done::Defined { refused: None, .. }) => None,
                other => return Err(format!("command {command} is answered by {other:?}")),
            };
            awaited.answer = Some(Confirmed { name: awaited.name.clone(), level: None, count });
        } else {
            return Err(format!("command {command} is answered, which waits for no answer"));
        }
        self.release();
        Ok(())
    }

    /// Shows the run the answers that wait for no other.
    fn release(&mut self) {
        while let Some(awaited) = self.publishes.pop_front_if(|awaited| awaited.answer.is_some()) {
            self.published += 1;
            let answer = awaited.answer.map(|answer| Published { number: self.published, ..answer });
            self.events.extend(answer.map(ClientEvent::Published));
        }
        let are_published = self.publishes.is_empty();
        let is_next = |awaited: &mut Awaited<Confirmed>| {
            awaited.answer.is_some() && (are_published || !awaited.is_last)
        };
        while let Some(awaited) = self.answers.pop_front_if(is_next) {
            self.events
                .extend(awaited.answer.filter(|answer| answer.name.is_some()).map(ClientEvent::Confirmed));
        }
    }

    fn take_message(&mut self, message: &IncomingMessage) -> Result<(), String> {
        let (subscription, get) = match message.receiver {
            Receiver::Subscription(number) => (number, None),
            Receiver::Get { command, .. } => (command, Some(command)),
            Receiver::Call(number) if self.calls.contains(&number) => (number, None),
            Receiver::Call(number) => return Err(format!("a reply comes to call {number}, which is none")),
        };
        self.events.push_back(ClientEvent::Delivered(self.delivered(subscription, message)));
        if let Some(awaited) = self.answers.iter_mut().find(|awaited| get == Some(awaited.number)) {
            awaited.answer = Some(Confirmed { name: awaited.name.clone(), level: None, count: Some(1) });
        }
        self.release();
        match get.is_some() && !message.settles {
            true => Err(String::from("a message that was to be settled is settled")),
            false => Ok(()),
        }
    }

    fn delivered(&self, subscription: u64, message: &IncomingMessage) -> Delivered {
        let header = message.header(b"n").map(|value| match value {
            Value::Text(value) => text(&value),
            other => format!("{other:?}"),
        });
        let reply_to = message
            .reply_to()
            .map(|to| format!("{}{SEPARATOR}{}", text(to.exchange.as_bytes()), text(to.subject.as_bytes())));
        Delivered {
            subscription: self.names.get(&subscription).cloned().unwrap_or_default(),
            number: Some(message.number),
            ack: message.number.to_string(),
            body: message.body.to_vec(),
            number_header: NumberHeader::Shown(header),
            is_redelivered: message.is_redelivered,
            reply_to,
            ..Delivered::default()
        }
    }
}

impl ClientProtocol for InternalClient {
    fn abilities(&self) -> Abilities {
        Abilities {
            reads_queues: true,
            reads_topics: true,
            operates: true,
            persists: true,
            confirms_apart: true,
            confirms_settles: true,
            headers: HeaderUse::Sometimes,
            ..Abilities::default()
        }
    }

    fn connect(&mut self, _: &mut Vec<u8>, _: bool) {}

    fn subscribe(&mut self, out: &mut Vec<u8>, subscribe: &Subscribe<'_>) {
        let verb = match subscribe.place {
            Destination::Queue(name) | Destination::DeclaredQueue(name) => Verb::Consume(Box::new(Consume {
                queue: Name::from(name.as_str()),
                credit: u32::try_from(subscribe.prefetch).unwrap_or(u32::MAX),
                settles: true,
                priority: 0,
                is_exclusive: false,
                selector: None,
                is_browser: false,
            })),
            Destination::Topic(pattern) | Destination::Reply(pattern) => {
                Verb::Subscribe(Box::new(SubscribeVerb {
                    exchange: Name::new(TOPIC_EXCHANGE),
                    key: key(pattern),
                    group: None,
                    selector: None,
                }))
            }
        };
        let number = self.ask(out, verb, Some(subscribe.confirm));
        self.names.insert(number, String::from(subscribe.id));
    }

    fn unsubscribe(&mut self, out: &mut Vec<u8>, unsubscribe: &Unsubscribe<'_>) {
        let of_this = self.names.iter().rev().find(|(_, name)| *name == unsubscribe.id);
        let subscription = of_this.map_or(0, |(number, _)| *number);
        self.ask(out, Verb::Cancel { subscription }, Some(unsubscribe.confirm));
    }

    fn publish(&mut self, out: &mut Vec<u8>, publish: &Publish<'_>) -> Option<usize> {
        let outgoing = publish.outgoing;
        let (to, is_reply) = match &outgoing.place {
            Destination::Queue(name) | Destination::DeclaredQueue(name) => {
                (Address::new(b"", name.as_bytes()), false)
            }
            Destination::Topic(subject) => (Address::new(TOPIC_EXCHANGE, subject.as_bytes()), false),
            Destination::Reply(address) => {
                let (exchange, subject) = address.split_once(SEPARATOR).unwrap_or(("", address));
                (Address::new(exchange.as_bytes(), subject.as_bytes()), true)
            }
        };
        let calls = outgoing.reply_to.is_some() && !is_reply && self.requests_left > 0;
        self.requests_left -= usize::from(calls);
        let message = message(publish.message, publish.body, outgoing);
        let number = match calls {
            true => self.send(out, Verb::Call { to, message }),
            false => self.send(out, Verb::Publish { to, message }),
        };
        // A request has no confirm, so its outcome is unknown.
        let answer = calls.then_some(Published { number: 0, is_multiple: false, is_refused: true });
        self.publishes.push_back(Awaited { number, answer, name: None, is_last: false });
        if calls {
            self.calls.push(number);
            self.release();
        }
        // The size of the core's header block.
        let header = outgoing.has_headers.then(|| 4 + 1 + publish.message.to_string().len());
        let id = outgoing.once.map(|first| shared_name(first).len());
        let inbox = calls.then_some(INBOX_PREFIX.len() + ADDRESS_CHARS);
        let parts = [header, id, inbox];
        let has_block = parts.iter().any(Option::is_some);
        Some(parts.into_iter().flatten().sum::<usize>() + if has_block { 2 } else { 0 })
    }

    fn settle(&mut self, out: &mut Vec<u8>, settle: &Settle<'_>) {
        let outcome = match settle.outcome {
            Outcome::Reject => Settled::Reject,
            Outcome::Release => Settled::Release { failed: true },
            Outcome::Open | Outcome::Auto | Outcome::Accept => Settled::Accept,
        };
        let numbers = vec![settle.ack.parse().unwrap_or_default()];
        self.ask(out, Verb::Settle { numbers, outcome }, settle.confirm);
    }

    fn operate(&mut self, out: &mut Vec<u8>, operate: &Operate<'_>) {
        match *operate {
            Operate::Purge { queue, confirm } => {
                self.ask(out, Verb::Purge { queue: Name::from(queue) }, Some(confirm));
            }
            Operate::Get { id, queue, confirm } => {
                let verb = Verb::Get { queue: Name::from(queue), settles: true };
                let number = self.ask(out, verb, Some(confirm));
                self.names.insert(number, String::from(id));
            }
            Operate::Route { queue, subject, by_headers, confirm } => {
                self.ask(out, Verb::Define(route(queue, subject, by_headers)), Some(confirm));
            }
            Operate::Unroute { queue, subject, by_headers, place, confirm } => {
                let verb = match place {
                    0 => Verb::Unbind(Box::new(queue_binding(queue, subject, by_headers))),
                    1 => Verb::Unbind(Box::new(exchange_binding(subject))),
                    _ => Verb::DeleteExchange { exchange: Name::from(subject), if_unused: false },
                };
                self.ask(out, Verb::Define(vec![verb]), Some(confirm));
            }
            Operate::LookUp { queue, confirm } => {
                self.ask(out, Verb::LookUpQueue { queue: Name::from(queue) }, Some(confirm));
            }
        }
    }

    fn disconnect(&mut self, out: &mut Vec<u8>, disconnect: &Disconnect<'_>) {
        for call in self.calls.clone() {
            self.send(out, Verb::Forget { call });
        }
        self.ask(out, Verb::Sync, Some(disconnect.confirm));
        self.answers.back_mut().into_iter().for_each(|awaited| awaited.is_last = true);
    }

    fn text_of(&self, bytes: &[u8]) -> String {
        match tickets(bytes).next() {
            Some(ticket) => format!("ticket {ticket}"),
            None => self.last.clone(),
        }
    }

    fn read(&mut self, input: &[u8]) -> Result<Option<(usize, ClientEvent)>, String> {
        if let Some(event) = self.events.pop_front() {
            return Ok(Some((0, event)));
        }
        let Some(bytes) = input.get(..TICKET_BYTES) else { return Ok(None) };
        let incoming = tickets(bytes).next().and_then(|ticket| self.pipe.take_kept(ticket));
        match incoming.ok_or("a ticket stands for nothing")? {
            Incoming::Message(message) => self.take_message(&message)?,
            Incoming::Answer { command, outcome } => self.take_answer(command, outcome)?,
            Incoming::Ended { subscription, reason } => {
                return Err(format!("subscription {subscription} ends, whose queue stays: {reason}"));
            }
            Incoming::Cut(reason) => {
                let text = reason.to_string();
                let message = complaint(&text);
                return Ok(Some((TICKET_BYTES, ClientEvent::Refused { message, text: text.into_bytes() })));
            }
        }
        let event = self.events.pop_front().unwrap_or(ClientEvent::Nothing);
        Ok(Some((TICKET_BYTES, event)))
    }
}

/// A message as the core's client sends it.
fn message(number: usize, body: &[u8], outgoing: &Outgoing<'_>) -> OutgoingMessage {
    let mut message = OutgoingMessage::new(body.to_vec()).persistent(outgoing.is_persistent);
    message.properties.priority = outgoing.priority;
    message.properties.expiration_ms = outgoing.expiration_ms.and_then(|ms| u32::try_from(ms).ok());
    if outgoing.has_headers {
        message = message.header(b"n", number.to_string().as_bytes());
    }
    if let Some(first) = outgoing.once {
        message = message.with(Property::MessageId, shared_name(first).as_bytes());
    }
    message
}

/// Binds a queue, with an argument, to an exchange of its own, and that to the topic exchange.
fn route(queue: &str, subject: &str, by_headers: bool) -> Vec<Verb> {
    let settings = Settings { is_durable: true, ..Settings::default() };
    let kind = if by_headers { ExchangeKind::Headers } else { ExchangeKind::Topic };
    vec![
        Verb::DeclareExchange { exchange: Name::from(subject), kind, settings },
        Verb::Bind(Box::new(exchange_binding(subject))),
        Verb::Bind(Box::new(queue_binding(queue, subject, by_headers))),
    ]
}

/// The binding of a route's exchange to the topic exchange.
fn exchange_binding(subject: &str) -> Bind {
    Bind {
        source: Name::new(TOPIC_EXCHANGE),
        key: key(subject),
        arguments: Arguments::NONE,
        target: BindTarget::Exchange(Name::from(subject)),
    }
}

/// The binding of a queue to its route's exchange; a headers exchange then requires the header `n`.
fn queue_binding(queue: &str, subject: &str, by_headers: bool) -> Bind {
    let arguments = match by_headers {
        true => Arguments::new([(Name::from("n"), Value::Null)]),
        false => Arguments::new([(Name::from("of"), Value::text(b"an operator"))]),
    };
    Bind {
        source: Name::from(subject),
        key: key("#"),
        arguments,
        target: BindTarget::Queue(Name::from(queue)),
    }
}

fn key(text: &str) -> BindingKey {
    BindingKey::new(Syntax::Amqp, text.as_bytes())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
