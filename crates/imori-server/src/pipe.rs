//! The pipe of an internal client: carries its commands to its connection, and messages and answers back.
//!
//! Handles of the client use it from any thread. The connection's outbound half holds tickets instead of bytes. Any
//! cell may write them; writing a ticket moves its message or answer to the receiver. Answers and consumers' messages
//! always find room, because commands and credit are limited. A live subscription with a slow receiver stops taking
//! tickets; it has a connection of its own, whose outbound half then fills up as for any slow reader.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use imori_core::authorize::{Identity, Renewal};
use imori_core::delivery::Outcome;
use imori_core::internal::{
    Command, CommandError, Done, Incoming, IncomingMessage, Pipe, Receiver, SubscriptionEnd, TICKET_BYTES,
    Verb, tickets,
};
use imori_core::memory::Gauge;
use imori_core::outbound::CutReason;
use imori_core::time::Time;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::limits::{INTERNAL_COMMANDS_MAX, INTERNAL_SETTLES_MAX, PIPE_BYTES_MAX};
use crate::slots::unpoisoned;

/// The pipe of one internal client.
#[derive(Debug)]
pub(crate) struct ClientPipe {
    state: Mutex<State>,
    /// Permits for commands that the connection has not yet taken; closed when the client ends.
    permits: Semaphore,
}

/// The answer to a command.
#[derive(Debug)]
pub(crate) enum Reply {
    Done(Done),
    Message(Box<IncomingMessage>),
}

/// Why a command has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    Refused(CommandError),
    /// The reply to a call did not come in time.
    Late,
    Ended(SubscriptionEnd),
}

pub(crate) type Answer = oneshot::Sender<Result<Reply, Failure>>;

/// An item for a subscription's receiver: a message, or finally the reason for the end.
pub(crate) type Item = Result<IncomingMessage, SubscriptionEnd>;

/// The number and size of messages that a receiver has not yet taken.
#[derive(Debug)]
pub(crate) struct Waiting {
    count: AtomicUsize,
    bytes: AtomicUsize,
    /// Charged with the bytes.
    gauge: Gauge,
}

/// The pipe's end of a subscription.
#[derive(Debug)]
pub(crate) struct Subscriber {
    pub(crate) items: mpsc::UnboundedSender<Item>,
    pub(crate) waiting: Arc<Waiting>,
    /// The maximum number of messages waiting for the receiver; `None` for a consumer, which its credit limits.
    pub(crate) waiting_max: Option<usize>,
}

#[derive(Debug)]
struct State {
    /// The identity of the user, renewed as rights change; the reason of the end once the user is gone.
    identity: Result<Identity, SubscriptionEnd>,
    /// The commands not yet taken, each with whether it holds a permit.
    commands: VecDeque<(Command, bool)>,
    /// Commands not yet announced to the connection by a byte.
    unread: usize,
    /// The number of the last command sent.
    number: u64,
    /// Messages and answers whose ticket is not yet written, by ticket.
    kept: BTreeMap<u64, Incoming>,
    tickets: u64,
    answers: HashMap<u64, Answer>,
    /// The deadlines of calls, with the call's number.
    deadlines: BTreeSet<(Time, u64)>,
    subscribers: HashMap<u64, Subscriber>,
    /// The subscription whose receiver has no room.
    blocked: Option<u64>,
    /// All handles are dropped.
    has_no_handles: bool,
    /// The connection has closed its side.
    is_closed: bool,
    /// Why the client has ended.
    ended: Option<SubscriptionEnd>,
    /// Wakes the connection's task.
    waker: Option<Waker>,
}

impl Waiting {
    /// Nothing; `gauge` is charged with what is added.
    pub(crate) fn new(gauge: Gauge) -> Waiting {
        Waiting { count: AtomicUsize::new(0), bytes: AtomicUsize::new(0), gauge }
    }

    fn add(&self, message: &IncomingMessage) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(message.body.len(), Ordering::Relaxed);
        self.gauge.add(message.body.len());
    }

    /// Subtracts a message that the receiver took.
    pub(crate) fn remove(&self, message: &IncomingMessage) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(message.body.len(), Ordering::Relaxed);
        self.gauge.sub(message.body.len());
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.gauge.sub(*self.bytes.get_mut());
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
    fn new(identity: Identity) -> State {
        State {
            identity: Ok(identity),
            commands: VecDeque::new(),
            unread: 0,
            number: 0,
            kept: BTreeMap::new(),
            tickets: 0,
            answers: HashMap::new(),
            deadlines: BTreeSet::new(),
            subscribers: HashMap::new(),
            blocked: None,
            has_no_handles: false,
            is_closed: false,
            ended: None,
            waker: None,
        }
    }

    /// Returns the reason why the client has ended, if it has.
    fn check_alive(&self) -> Result<(), SubscriptionEnd> {
        self.ended.clone().map_or(Ok(()), Err)
    }

    fn push(&mut self, number: u64, verb: Verb, has_permit: bool) {
        self.commands.push_back((Command { number, verb }, has_permit));
        self.unread += 1;
    }

    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Queues a command that has no answer and needs no permit. There is one for each ended reader or call, one for
    /// each grant, and one for deliveries that no receiver saw.
    fn push_unanswered(&mut self, verb: Verb) {
        if self.ended.is_none() {
            let number = self.next_number();
            self.push(number, verb, false);
        }
    }

    fn release(&mut self, numbers: &[u64]) {
        for some in numbers.chunks(INTERNAL_SETTLES_MAX) {
            let outcome = Outcome::Release { failed: false };
            self.push_unanswered(Verb::Settle { numbers: some.to_vec(), outcome });
        }
    }

    fn answer(&mut self, command: u64, result: Result<Reply, Failure>) {
        let Some(answer) = self.answers.remove(&command) else {
            return self.release(unseen(&result).as_slice());
        };
        if let Err(result) = answer.send(result) {
            self.release(unseen(&result).as_slice());
        }
    }

    /// Hands a ticket's content to its receiver; returns false and keeps it if the receiver has no room.
    fn deliver(&mut self, ticket: u64) -> bool {
        let Some(incoming) = self.kept.remove(&ticket) else { return true };
        match incoming {
            Incoming::Message(message) => match message.receiver {
                Receiver::Subscription(number) => return self.deliver_message(ticket, number, message),
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

    fn deliver_message(&mut self, ticket: u64, number: u64, message: Box<IncomingMessage>) -> bool {
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
            self.release(&[delivery]);
        }
        true
    }

    /// Ends all pending commands and subscriptions with `reason`, or with the earlier reason if the client has already
    /// ended.
    fn end(&mut self, reason: &SubscriptionEnd) {
        let reason = self.ended.get_or_insert_with(|| reason.clone()).clone();
        for (_, answer) in self.answers.drain() {
            let _ = answer.send(Err(Failure::Ended(reason.clone())));
        }
        for (_, subscriber) in self.subscribers.drain() {
            let _ = subscriber.items.send(Err(reason.clone()));
        }
        self.deadlines.clear();
        self.commands.retain(|(_, has_permit)| *has_permit);
        self.blocked = None;
    }
}

/// The unsettled delivery in an answer that its requester never saw.
fn unseen(result: &Result<Reply, Failure>) -> Option<u64> {
    match result {
        Ok(Reply::Message(message)) if message.settles => Some(message.number),
        _ => None,
    }
}

impl Pipe for ClientPipe {
    fn take_command(&self) -> Option<Command> {
        let (command, has_permit) = self.with(|state| state.commands.pop_front())?;
        if has_permit {
            self.permits.add_permits(1);
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
    /// The pipe of a client that acts for this identity.
    pub(crate) fn new(identity: Identity) -> ClientPipe {
        ClientPipe { state: Mutex::new(State::new(identity)), permits: Semaphore::new(INTERNAL_COMMANDS_MAX) }
    }

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

    // Used by the handles.

    /// Sends a command once a permit is free; returns the receiver of its answer.
    pub(crate) async fn send(
        &self,
        verb: Verb,
    ) -> Result<oneshot::Receiver<Result<Reply, Failure>>, SubscriptionEnd> {
        match self.permits.acquire().await {
            Ok(place) => place.forget(),
            Err(_) => return Err(self.end_reason()),
        }
        self.wake_with(|state| {
            state.check_alive()?;
            let (number, (answer, answered)) = (state.next_number(), oneshot::channel());
            state.answers.insert(number, answer);
            state.push(number, verb, true);
            Ok(answered)
        })
    }

    /// Sends a call with this deadline; `None` if `calls_max` calls already wait.
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

    /// Ends a call, whether or not its reply has arrived.
    pub(crate) fn forget_call(&self, call: u64, deadline: Time) {
        self.wake_with(|state| {
            state.deadlines.remove(&(deadline, call));
            state.answers.remove(&call);
            // The connection ignores the byte of a command that is gone.
            match state.commands.iter().position(|(command, _)| command.number == call) {
                Some(at) => drop(state.commands.remove(at)),
                None => state.push_unanswered(Verb::Forget { call }),
            }
        });
    }

    /// Sends the command that starts a subscription once a permit is free; returns the subscription's number and the
    /// receiver of the answer.
    pub(crate) async fn send_subscribe(
        &self,
        verb: Verb,
        subscriber: Subscriber,
    ) -> Result<(u64, oneshot::Receiver<Result<Reply, Failure>>), SubscriptionEnd> {
        match self.permits.acquire().await {
            Ok(place) => place.forget(),
            Err(_) => return Err(self.end_reason()),
        }
        self.wake_with(|state| {
            state.check_alive()?;
            let (number, (answer, answered)) = (state.next_number(), oneshot::channel());
            state.answers.insert(number, answer);
            state.subscribers.insert(number, subscriber);
            state.push(number, verb, true);
            Ok((number, answered))
        })
    }

    /// Ends a subscription. `drain` takes the unsettled messages that its receiver never saw, which are released; no
    /// more arrive by then.
    pub(crate) fn unsubscribe(&self, subscription: u64, drain: impl FnOnce() -> Vec<u64>) {
        self.wake_with(|state| {
            state.subscribers.remove(&subscription);
            let unseen = drain();
            if state.blocked == Some(subscription) {
                state.blocked = None;
            }
            state.push_unanswered(Verb::Cancel { subscription });
            // Comes after the cancel; otherwise the consumer would receive them again.
            state.release(&unseen);
        });
    }

    /// Releases a delivery whose get was given up when it had already been answered.
    pub(crate) fn release(&self, delivery: u64) {
        self.wake_with(|state| state.release(&[delivery]));
    }

    /// The identity of the user, as of now.
    ///
    /// # Errors
    /// The client has ended, or its user is gone.
    pub(crate) fn identity(&self) -> Result<Identity, SubscriptionEnd> {
        self.with(|state| {
            state.check_alive()?;
            state.identity.clone()
        })
    }

    /// Notes a change of a user, if it is the client's. The connection hears of it in its next turn.
    pub(crate) fn renew(&self, renewal: &Renewal) {
        self.with(|state| {
            if state.identity.as_ref().is_ok_and(|identity| renewal.concerns(identity)) {
                let gone = || SubscriptionEnd::Cut(CutReason::Revoked { user: renewal.user.clone() });
                state.identity = renewal.identity.clone().ok_or_else(gone);
            }
        });
    }

    /// Allows a consumer that does not settle `credit` messages beyond the `taken` ones.
    pub(crate) fn grant(&self, subscription: u64, taken: u32, credit: u32) {
        self.wake_with(|state| state.push_unanswered(Verb::Grant { subscription, taken, credit }));
    }

    /// Wakes the connection if it was blocked on this subscription, whose receiver took a message.
    pub(crate) fn wake_if_blocked_on(&self, subscription: u64) {
        if self.with(|state| state.blocked == Some(subscription)) {
            self.wake_with(|_| ());
        }
    }

    /// Notes that all handles are dropped.
    pub(crate) fn handles_dropped(&self) {
        self.wake_with(|state| state.has_no_handles = true);
    }

    /// Why the client has ended.
    pub(crate) fn end_reason(&self) -> SubscriptionEnd {
        self.with(|state| state.ended.clone()).unwrap_or(SubscriptionEnd::Ended)
    }

    // Used by the connection.

    pub(crate) fn set_waker(&self, waker: &Waker) {
        self.with(|state| state.waker = Some(waker.clone()));
    }

    /// The number of commands not yet announced, up to `max`; 0 if no more will come.
    pub(crate) fn poll_read(&self, max: usize) -> Poll<usize> {
        self.with(|state| {
            let bytes = state.unread.min(max);
            state.unread -= bytes;
            match bytes {
                0 if state.has_no_handles || state.is_closed => Poll::Ready(0),
                0 => Poll::Pending,
                bytes => Poll::Ready(bytes),
            }
        })
    }

    /// Writes tickets and hands out their contents, as far as the receivers have room.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|state| {
            let unread = state.unread;
            let given = tickets(bytes).take_while(|ticket| state.deliver(*ticket)).count();
            // An encoder never writes a partial ticket; one would end the connection.
            let waker = if state.unread > unread { state.waker.clone() } else { None };
            waker.iter().for_each(Waker::wake_by_ref);
            match given * TICKET_BYTES {
                0 if state.blocked.is_some() => Err(ErrorKind::WouldBlock.into()),
                written => Ok(written),
            }
        })
    }

    /// Ready once the blocked receiver has room.
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
        if self.with(|state| state.has_no_handles) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Notes that the connection has written everything.
    pub(crate) fn close(&self) {
        self.with(|state| state.is_closed = true);
    }

    /// Fails the calls whose deadline has passed; returns the next deadline.
    pub(crate) fn fail_late_calls(&self, now: Time) -> Option<Time> {
        self.with(|state| {
            while let Some((deadline, call)) = state.deadlines.first().copied().filter(|(at, _)| *at <= now) {
                state.deadlines.remove(&(deadline, call));
                // Dropping the call's future then sends `Verb::Forget`.
                state.answer(call, Err(Failure::Late));
            }
            state.deadlines.first().map(|(deadline, _)| *deadline)
        })
    }

    /// Ends the client, because its connection is gone.
    pub(crate) fn end(&self) {
        self.permits.close();
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

#[cfg(test)]
mod tests {
    use imori_core::authorize::{Rights, Tags};
    use imori_core::internal::OutgoingMessage;
    use imori_core::message::Address;
    use imori_core::name::Name;

    use super::*;

    fn call() -> Verb {
        Verb::Call { to: Address::new(b"", b"q"), message: OutgoingMessage::new("request") }
    }

    fn block_on<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn a_call_that_is_given_up_before_it_was_read_leaves_nothing_behind() {
        let pipe = ClientPipe::new(Identity::broker());
        let (number, _answered) = pipe.send_call(call(), Time(7), 1).unwrap();
        assert!(pipe.send_call(call(), Time(7), 1).is_none(), "one call at a time");
        pipe.forget_call(number, Time(7));
        assert!(pipe.take_command().is_none());
        let (number, _answered) = pipe.send_call(call(), Time(7), 1).unwrap();
        assert!(pipe.take_command().is_some());
        pipe.forget_call(number, Time(7));
        let forget = pipe.take_command().map(|command| command.verb);
        assert!(matches!(forget, Some(Verb::Forget { call }) if call == number));
    }

    #[test]
    fn a_command_after_the_end_is_told_of_it() {
        let pipe = ClientPipe::new(Identity::broker());
        // The end comes after the command had its permit.
        pipe.with(|state| state.end(&SubscriptionEnd::Ended));
        assert!(matches!(block_on(pipe.send(Verb::Sync)), Err(SubscriptionEnd::Ended)));
        assert!(pipe.identity().is_err());
    }

    #[test]
    fn the_identity_is_that_of_the_last_change() {
        let pipe = ClientPipe::new(Identity::guest());
        let renew = |user, identity| pipe.renew(&Renewal { user: Name::from(user), identity });
        renew("other", None);
        assert_eq!(pipe.identity(), Ok(Identity::guest()));
        let rights = Arc::new(Rights::new(&Name::from("guest"), Tags::NONE, []).unwrap());
        let changed = Identity { user: Name::from("guest"), rights };
        renew("guest", Some(changed.clone()));
        assert_eq!(pipe.identity(), Ok(changed));
        renew("guest", None);
        let gone = SubscriptionEnd::Cut(CutReason::Revoked { user: Name::from("guest") });
        assert_eq!(pipe.identity(), Err(gone));
    }

    #[test]
    fn deliveries_that_nobody_saw_are_released_in_parts() {
        let pipe = ClientPipe::new(Identity::broker());
        pipe.unsubscribe(1, || (0..INTERNAL_SETTLES_MAX as u64 + 1).collect());
        let verbs: Vec<Verb> =
            std::iter::from_fn(|| pipe.take_command()).map(|command| command.verb).collect();
        let [Verb::Cancel { .. }, Verb::Settle { numbers, .. }, Verb::Settle { numbers: last, .. }] = &*verbs
        else {
            panic!("{verbs:?}")
        };
        assert_eq!(
            (numbers.len(), last.as_slice()),
            (INTERNAL_SETTLES_MAX, &[INTERNAL_SETTLES_MAX as u64][..])
        );
    }
}
