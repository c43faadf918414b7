//! The pipe of an internal client: its commands on the way to its connection, and messages and answers on the way back.
//!
//! Handles of the client use it on any thread. What the connection writes are tickets, which any cell may write; a
//! ticket moves what it stands for to its receiver. Answers and the messages of consumers always find room, because
//! commands and credit are limited. A live subscription whose receiver is behind takes no more; it has a connection of
//! its own, whose outbound half then fills up as that of any slow reader.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use imori_core::delivery::Outcome;
use imori_core::internal::{
    Command, CommandError, Done, Incoming, IncomingMessage, Pipe, Receiver, SubscriptionEnd, TICKET_BYTES,
    Verb, tickets,
};
use imori_core::time::Time;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::limits::{INTERNAL_COMMANDS_MAX, PIPE_BYTES_MAX};
use crate::slots::unpoisoned;

/// The pipe of one internal client.
#[derive(Debug)]
pub(crate) struct ClientPipe {
    state: Mutex<State>,
    /// Places for commands that the connection has not taken; closed with the client.
    places: Semaphore,
}

/// The answer to a command.
#[derive(Debug)]
pub(crate) enum Reply {
    Done(Done),
    Message(Box<IncomingMessage>),
}

/// The reason why a command has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    Refused(CommandError),
    /// The reply to a call did not come in time.
    Late,
    Ended(SubscriptionEnd),
}

pub(crate) type Answer = oneshot::Sender<Result<Reply, Failure>>;

/// What a subscription's receiver gets: messages, and then the reason why there are no more.
pub(crate) type Item = Result<IncomingMessage, SubscriptionEnd>;

/// Messages that a receiver has not taken.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    count: AtomicUsize,
    bytes: AtomicUsize,
}

/// The receiver of a subscription, as the pipe knows it.
#[derive(Debug)]
pub(crate) struct Subscriber {
    pub(crate) items: mpsc::UnboundedSender<Item>,
    pub(crate) waiting: Arc<Waiting>,
    /// The most messages that wait for the receiver; `None` for a consumer, whose credit is the limit.
    pub(crate) waiting_max: Option<usize>,
}

#[derive(Debug, Default)]
struct State {
    /// Commands, and whether each has a place.
    commands: VecDeque<(Command, bool)>,
    /// Commands for which the connection was given no byte yet.
    unread: usize,
    /// The number of the last command.
    number: u64,
    /// What waits for its ticket to be written.
    kept: BTreeMap<u64, Incoming>,
    tickets: u64,
    answers: HashMap<u64, Answer>,
    /// When calls are late.
    deadlines: BTreeSet<(Time, u64)>,
    subscribers: HashMap<u64, Subscriber>,
    /// The subscription whose receiver is behind.
    blocked: Option<u64>,
    /// Every handle was dropped.
    is_gone: bool,
    /// The connection has closed its side.
    is_closed: bool,
    /// The reason why the client has ended.
    ended: Option<SubscriptionEnd>,
    /// Wakes the connection's task.
    waker: Option<Waker>,
}

impl Default for ClientPipe {
    fn default() -> ClientPipe {
        ClientPipe { state: Mutex::default(), places: Semaphore::new(INTERNAL_COMMANDS_MAX) }
    }
}

impl Waiting {
    fn add(&self, message: &IncomingMessage) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(message.body.len(), Ordering::Relaxed);
    }

    /// Notes that the receiver has taken a message.
    pub(crate) fn took(&self, message: &IncomingMessage) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(message.body.len(), Ordering::Relaxed);
    }
}

impl Subscriber {
    fn has_room(&self) -> bool {
        self.waiting_max.is_none_or(|max| {
            self.waiting.count.load(Ordering::Relaxed) < max
                && self.waiting.bytes.load(Ordering::Relaxed) < PIPE_BYTES_MAX
        })
    }
}

impl State {
    fn push(&mut self, number: u64, verb: Verb, has_place: bool) {
        self.commands.push_back((Command { number, verb }, has_place));
        self.unread += 1;
    }

    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Commands without an answer and without a place: one for each reader or call that ends, and for messages that no
    /// receiver has seen.
    fn push_unanswered(&mut self, verb: Verb) {
        if self.ended.is_none() {
            let number = self.next_number();
            self.push(number, verb, false);
        }
    }

    fn release(&mut self, numbers: Vec<u64>) {
        if !numbers.is_empty() {
            self.push_unanswered(Verb::Settle { numbers, outcome: Outcome::Release { failed: false } });
        }
    }

    fn answer(&mut self, command: u64, result: Result<Reply, Failure>) {
        let Some(answer) = self.answers.remove(&command) else {
            return self.release(unseen(result));
        };
        if let Err(result) = answer.send(result) {
            self.release(unseen(result));
        }
    }

    /// Gives something to its receiver; false where the receiver has no room, and it stays.
    fn give(&mut self, ticket: u64) -> bool {
        let Some(incoming) = self.kept.remove(&ticket) else { return true };
        match incoming {
            Incoming::Message(message) => match message.receiver {
                Receiver::Subscription(number) => return self.give_message(ticket, number, message),
                Receiver::Call(command) | Receiver::Get { command, .. } => {
                    self.answer(command, Ok(Reply::Message(message)));
                }
            },
            Incoming::Answer { command, outcome } => {
                self.answer(command, outcome.map(Reply::Done).map_err(Failure::Refused));
            }
            Incoming::Ended { subscription, reason } => {
                if let Some(subscriber) = self.subscribers.remove(&subscription) {
                    let _ = subscriber.items.send(Err(reason));
                }
            }
            Incoming::Cut(reason) => self.end(&SubscriptionEnd::Cut(reason)),
        }
        true
    }

    fn give_message(&mut self, ticket: u64, number: u64, message: Box<IncomingMessage>) -> bool {
        let (delivery, settles) = (message.number, message.settles);
        let given = match self.subscribers.get(&number) {
            Some(subscriber) if !subscriber.has_room() && !subscriber.items.is_closed() => {
                self.blocked = Some(number);
                self.kept.insert(ticket, Incoming::Message(message));
                return false;
            }
            Some(subscriber) => {
                subscriber.waiting.add(&message);
                subscriber.items.send(Ok(*message)).is_ok()
            }
            None => false,
        };
        if !given && settles {
            self.release(vec![delivery]);
        }
        true
    }

    /// Ends everything that waits, for this reason, unless it has ended for another.
    fn end(&mut self, reason: &SubscriptionEnd) {
        let reason = self.ended.get_or_insert_with(|| reason.clone()).clone();
        for (_, answer) in self.answers.drain() {
            let _ = answer.send(Err(Failure::Ended(reason.clone())));
        }
        for (_, subscriber) in self.subscribers.drain() {
            let _ = subscriber.items.send(Err(reason.clone()));
        }
        self.deadlines.clear();
        self.commands.retain(|(_, has_place)| *has_place);
        self.blocked = None;
    }
}

/// The deliveries in an answer that nobody has seen.
fn unseen(result: Result<Reply, Failure>) -> Vec<u64> {
    match result {
        Ok(Reply::Message(message)) if message.settles => vec![message.number],
        _ => Vec::new(),
    }
}

impl Pipe for ClientPipe {
    fn take_command(&self) -> Option<Command> {
        let (command, has_place) = self.with(|state| state.commands.pop_front())?;
        if has_place {
            self.places.add_permits(1);
        }
        Some(command)
    }

    fn keep(&self, incoming: Incoming) -> u64 {
        self.with(|state| {
            state.tickets += 1;
            state.kept.insert(state.tickets, incoming);
            state.tickets
        })
    }
}

impl ClientPipe {
    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        let mut state = unpoisoned(self.state.lock());
        f(&mut state)
    }

    /// Changes the state and wakes the connection's task.
    fn wake_with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        let (result, waker) = self.with(|state| (f(state), state.waker.clone()));
        waker.into_iter().for_each(Waker::wake);
        result
    }

    // The side of the handles.

    /// Sends a command when there is a place for it; returns its number and where the answer comes.
    pub(crate) async fn send(
        &self,
        verb: Verb,
    ) -> Result<oneshot::Receiver<Result<Reply, Failure>>, SubscriptionEnd> {
        match self.places.acquire().await {
            Ok(place) => place.forget(),
            Err(_) => return Err(self.end_reason()),
        }
        let (answer, answered) = oneshot::channel();
        self.wake_with(|state| {
            let number = state.next_number();
            state.answers.insert(number, answer);
            state.push(number, verb, true);
        });
        Ok(answered)
    }

    /// Sends a call that is late at `deadline`; `None` if `calls_max` calls wait already.
    pub(crate) fn send_call(
        &self,
        verb: Verb,
        deadline: Time,
        calls_max: usize,
    ) -> Option<(u64, oneshot::Receiver<Result<Reply, Failure>>)> {
        let (answer, answered) = oneshot::channel();
        self.wake_with(|state| {
            if state.deadlines.len() >= calls_max {
                return None;
            }
            let number = state.next_number();
            if let Some(reason) = &state.ended {
                let _ = answer.send(Err(Failure::Ended(reason.clone())));
                return Some((number, answered));
            }
            state.answers.insert(number, answer);
            state.deadlines.insert((deadline, number));
            state.push(number, verb, false);
            Some((number, answered))
        })
    }

    /// Ends a call, whose reply may have come.
    pub(crate) fn forget_call(&self, call: u64, deadline: Time) {
        self.wake_with(|state| {
            state.deadlines.remove(&(deadline, call));
            state.answers.remove(&call);
            state.push_unanswered(Verb::Forget { call });
        });
    }

    /// Sends the command that begins a subscription when there is a place for it; returns the number of the
    /// subscription and where the answer comes.
    pub(crate) async fn send_subscribe(
        &self,
        verb: Verb,
        subscriber: Subscriber,
    ) -> Result<(u64, oneshot::Receiver<Result<Reply, Failure>>), SubscriptionEnd> {
        match self.places.acquire().await {
            Ok(place) => place.forget(),
            Err(_) => return Err(self.end_reason()),
        }
        let (answer, answered) = oneshot::channel();
        let number = self.wake_with(|state| {
            let number = state.next_number();
            state.answers.insert(number, answer);
            state.subscribers.insert(number, subscriber);
            state.push(number, verb, true);
            number
        });
        Ok((number, answered))
    }

    /// Ends a subscription; these of its messages, which were to be settled, were not seen.
    pub(crate) fn unsubscribe(&self, subscription: u64, unseen: Vec<u64>) {
        self.wake_with(|state| {
            state.subscribers.remove(&subscription);
            if state.blocked == Some(subscription) {
                state.blocked = None;
            }
            state.push_unanswered(Verb::Cancel { subscription });
            // Behind the end of the consumer, which would otherwise get them again.
            state.release(unseen);
        });
    }

    /// Lets a consumer that does not settle have `credit` messages beyond those that its receiver has taken.
    pub(crate) fn grant(&self, subscription: u64, taken: u32, credit: u32) {
        self.wake_with(|state| state.push_unanswered(Verb::Grant { subscription, taken, credit }));
    }

    /// Notes that the receiver of a subscription has taken a message.
    pub(crate) fn has_room(&self, subscription: u64) {
        if self.with(|state| state.blocked == Some(subscription)) {
            self.wake_with(|_| ());
        }
    }

    /// Notes that every handle is gone.
    pub(crate) fn hang_up(&self) {
        self.wake_with(|state| state.is_gone = true);
    }

    /// The reason why the client has ended.
    pub(crate) fn end_reason(&self) -> SubscriptionEnd {
        self.with(|state| state.ended.clone()).unwrap_or(SubscriptionEnd::Ended)
    }

    // The side of the connection.

    pub(crate) fn set_waker(&self, waker: &Waker) {
        self.with(|state| state.waker = Some(waker.clone()));
    }

    /// Tells how many commands there are for which no byte was given, up to `max`; 0 if there will be none.
    pub(crate) fn poll_read(&self, max: usize) -> Poll<usize> {
        self.with(|state| {
            let bytes = state.unread.min(max);
            state.unread -= bytes;
            match bytes {
                0 if state.is_gone || state.is_closed => Poll::Ready(0),
                0 => Poll::Pending,
                bytes => Poll::Ready(bytes),
            }
        })
    }

    /// Writes tickets: what they stand for goes to its receivers, as far as they have room.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|state| {
            let unread = state.unread;
            let given = tickets(bytes).take_while(|ticket| state.give(*ticket)).count();
            // A partial ticket is never written by an encoder, and would end the connection.
            let waker = if state.unread > unread { state.waker.clone() } else { None };
            waker.iter().for_each(Waker::wake_by_ref);
            match given * TICKET_BYTES {
                0 if state.blocked.is_some() => Err(ErrorKind::WouldBlock.into()),
                written => Ok(written),
            }
        })
    }

    /// Waits until the receiver that was behind has room.
    pub(crate) fn poll_writable(&self) -> Poll<bool> {
        self.with(|state| {
            let blocked = state.blocked.and_then(|number| state.subscribers.get(&number));
            if blocked.is_some_and(|subscriber| !subscriber.has_room() && !subscriber.items.is_closed()) {
                return Poll::Pending;
            }
            state.blocked = None;
            Poll::Ready(true)
        })
    }

    pub(crate) fn poll_gone(&self) -> Poll<()> {
        if self.with(|state| state.is_gone) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Notes that the connection has written everything.
    pub(crate) fn close(&self) {
        self.with(|state| state.is_closed = true);
    }

    /// Fails the calls that are late, and tells when the next one will be.
    pub(crate) fn fail_late_calls(&self, now: Time) -> Option<Time> {
        self.with(|state| {
            while let Some((deadline, call)) = state.deadlines.first().copied().filter(|(at, _)| *at <= now) {
                state.deadlines.remove(&(deadline, call));
                // Its handle forgets it.
                state.answer(call, Err(Failure::Late));
            }
            state.deadlines.first().map(|(deadline, _)| *deadline)
        })
    }

    /// Ends the client: its connection is gone.
    pub(crate) fn end(&self) {
        self.places.close();
        self.with(|state| {
            let cut = state.kept.values().find_map(|incoming| match incoming {
                Incoming::Cut(reason) => Some(SubscriptionEnd::Cut(reason.clone())),
                _ => None,
            });
            state.end(&cut.unwrap_or(SubscriptionEnd::Ended));
            state.kept.clear();
            state.commands.clear();
        });
    }
}
