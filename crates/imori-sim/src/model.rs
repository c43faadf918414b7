//! What clients know: who sent what, who got what, and what that allows to happen next.
//!
//! It is made of what goes over the wire alone, and knows nothing of how the broker works.

use std::collections::{BTreeMap, BTreeSet};

use imori_core::confirm::Level;
use imori_core::time::Time;

use crate::due::{Cancel, Due};
use crate::ending::{Crash, Kind};
use crate::property::Property;
use crate::queue_spec::QueueSpec;
use crate::repetition::{Repetition, Taken};
use crate::shared::Shared;

/// A connection, from its first byte to its last.
#[derive(Debug, Default)]
pub(crate) struct SessionRecord {
    /// The client ended it, or noticed its end.
    pub(crate) ended_at: Option<u64>,
    /// It ended with the broker.
    pub(crate) is_crashed: bool,
}

/// A message.
#[derive(Debug)]
pub(crate) struct MessageRecord {
    pub(crate) publisher: usize,
    pub(crate) to: To,
    /// Its place among what its publisher sends; that of the COMMIT first, in a transaction.
    pub(crate) key: (u64, u64),
    pub(crate) size: usize,
    pub(crate) priority: u8,
    pub(crate) has_ttl: bool,
    /// When it, or its COMMIT, was sent; `None` while its transaction is open or after ABORT.
    pub(crate) sent_at: Option<u64>,
    /// When its publisher knew that the broker had worked it off.
    pub(crate) confirmed_at: Option<u64>,
    /// A receipt of its own said so.
    pub(crate) has_receipt: bool,
    /// It is to outlive the broker, where its queue does.
    pub(crate) is_persistent: bool,
    pub(crate) is_in_transaction: bool,
    /// When somebody may have it, if not at once.
    pub(crate) due: Option<Due>,
    /// Whether somebody took it back.
    pub(crate) cancel: Cancel,
    /// How often that was tried.
    pub(crate) cancels: usize,
    /// It has an id that others may have.
    pub(crate) repetition: Option<Repetition>,
    /// The journal has no room for it, or for its transaction.
    pub(crate) is_too_large: bool,
}

/// Where a message goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum To {
    Queue(usize),
    Topic(String),
    /// The inbox of this session.
    Inbox(usize),
}

/// How a subscription settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Auto,
    Client,
    Individual,
}

/// What a subscription reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reads {
    Queue(usize),
    Topic(String),
}

/// A subscription, from SUBSCRIBE to its end.
#[derive(Debug)]
pub(crate) struct SubscriptionRecord {
    pub(crate) session: usize,
    pub(crate) reads: Reads,
    pub(crate) mode: Mode,
    pub(crate) prefetch: usize,
    pub(crate) receipt_at: Option<u64>,
    pub(crate) unsubscribed_at: Option<u64>,
    /// Deliveries that its client has not settled.
    pub(crate) unsettled: usize,
    /// What a live one got.
    pub(crate) got: BTreeSet<usize>,
}

/// What became of the latest delivery of a message from a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Its consumer has said nothing that counts yet.
    Open,
    Auto,
    Accept,
    Release,
    Reject,
}

/// The latest delivery of a message from a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fate {
    pub(crate) session: usize,
    /// Its number in the session.
    pub(crate) number: u64,
    pub(crate) outcome: Outcome,
    /// Its consumer knows that the broker heard the outcome.
    pub(crate) is_processed: bool,
    /// The broker ended since, so that it may not know of this delivery any more.
    pub(crate) is_of_earlier_life: bool,
}

/// What a transaction did, once it was committed.
#[derive(Debug)]
pub(crate) struct TransactionRecord {
    pub(crate) session: usize,
    pub(crate) messages: Vec<usize>,
    /// Messages that it accepted, and from which queue.
    pub(crate) accepted: Vec<(usize, usize)>,
}

/// A delivery as it came over the wire.
#[derive(Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) session: usize,
    pub(crate) message: usize,
    /// Its number in the session.
    pub(crate) number: u64,
    pub(crate) is_redelivered: bool,
    /// Bytes of the header lines that are the message's own.
    pub(crate) text_bytes: usize,
    /// Why it died last, and in which queue.
    pub(crate) death: Option<(&'a str, &'a str)>,
}

/// Everything that clients know.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) sessions: Vec<SessionRecord>,
    pub(crate) queues: Vec<QueueSpec>,
    pub(crate) messages: Vec<MessageRecord>,
    pub(crate) subscriptions: Vec<SubscriptionRecord>,
    /// By message and queue.
    pub(crate) fates: BTreeMap<(usize, usize), Fate>,
    pub(crate) transactions: Vec<TransactionRecord>,
    /// Ends of the broker.
    pub(crate) crashes: Vec<Crash>,
    /// Replies that arrived.
    pub(crate) replies: BTreeSet<usize>,
    /// The broker was told to stop.
    pub(crate) has_stopped: bool,
    /// Some bytes that were given out are known to nobody.
    pub(crate) is_incomplete: bool,
    /// The latest key of live deliveries, by publisher and receiver.
    live_keys: BTreeMap<(usize, usize), (u64, u64)>,
    /// The latest key of first deliveries, by publisher, receiver, queue and priority.
    queue_keys: BTreeMap<(usize, usize, usize, u8), (u64, u64)>,
    /// The latest key of restored messages, by receiver, publisher and queue.
    restored_keys: BTreeMap<(usize, usize, usize), (u64, u64)>,
    /// The latest sending of what was delivered first, by receiver, queue and priority.
    queue_sent: BTreeMap<(usize, usize, u8), u64>,
    /// Messages with one id, by the first of them.
    pub(crate) same: BTreeMap<usize, Vec<usize>>,
    /// Messages with such ids that a queue took for certain, by message and queue.
    pub(crate) taken: BTreeMap<(usize, usize), Taken>,
    /// Header bytes of each message, as it came last.
    pub(crate) text_bytes: BTreeMap<usize, usize>,
}

impl Model {
    pub(crate) fn session(&mut self, session: usize) -> &mut SessionRecord {
        self.sessions.get_mut(session).expect("sessions are numbered as they begin")
    }

    pub(crate) fn message(&mut self, message: usize) -> &mut MessageRecord {
        self.messages.get_mut(message).expect("messages are numbered as they are made")
    }

    pub(crate) fn queue(&self, queue: usize) -> &QueueSpec {
        self.queues.get(queue).expect("queues are numbered as they are named")
    }

    pub(crate) fn subscription(&mut self, subscription: usize) -> &mut SubscriptionRecord {
        self.subscriptions.get_mut(subscription).expect("subscriptions are numbered as they begin")
    }

    /// A receipt says how safe a message is: as safe as its queue keeps it.
    pub(crate) fn check_level(&self, shared: &Shared, message: usize, said: Option<&str>) {
        let Some(record) = self.messages.get(message).filter(|record| !record.is_in_transaction) else {
            return;
        };
        let expected = match record.to {
            To::Queue(queue) if self.queue(queue).is_volatile => return,
            To::Queue(queue) if record.is_persistent => self.queue(queue).level(),
            To::Topic(_) if record.is_persistent => return,
            _ => Level::Memory,
        };
        if said != Some(expected.as_str()) {
            shared.violate(Property::Level, || {
                format!("the receipt of message {message} says {said:?}, its queue has {expected}")
            });
        }
    }

    /// The broker has ended.
    pub(crate) fn crash(&mut self, crash: Crash) {
        for session in &mut self.sessions {
            session.is_crashed |= session.ended_at.is_none_or(|at| at >= crash.at);
            session.ended_at.get_or_insert(crash.at);
        }
        for ((message, queue), fate) in &mut self.fates {
            let is_persistent = self.messages.get(*message).is_some_and(|message| message.is_persistent);
            let keeps = self.queues.get(*queue).is_some_and(|queue| queue.keeps(crash.kind));
            fate.is_processed &= is_persistent && keeps;
            fate.is_of_earlier_life |= !crash.was_clean;
        }
        for message in &mut self.messages {
            let keeps = matches!(message.to, To::Queue(queue)
                if self.queues.get(queue).is_some_and(|queue| queue.keeps(crash.kind)));
            message.cancel.outlive(message.is_persistent && keeps);
        }
        self.crashes.push(crash);
    }

    /// Tells whether this message of this queue outlives such an end at that time.
    pub(crate) fn is_kept(&self, message: usize, queue: usize, kind: Kind, at: u64) -> bool {
        let is_kept = |message: &MessageRecord| {
            message.is_persistent && message.confirmed_at.is_some_and(|confirmed| confirmed <= at)
        };
        self.messages.get(message).is_some_and(is_kept) && self.queue(queue).keeps(kind)
    }

    /// Tells whether an end of the broker may have taken this message of this queue.
    pub(crate) fn may_be_lost(&self, message: usize, queue: usize) -> bool {
        let sent = self.messages.get(message).and_then(|message| message.sent_at).unwrap_or(0);
        let is_later = |crash: &&Crash| crash.at >= sent;
        self.crashes.iter().filter(is_later).any(|crash| !self.is_kept(message, queue, crash.kind, crash.at))
    }

    /// When the broker ended last.
    fn last_crash(&self) -> Option<u64> {
        self.crashes.last().map(|crash| crash.at)
    }

    pub(crate) fn is_over(&self, shared: &Shared, session: usize) -> bool {
        let ended = self.sessions.get(session).is_none_or(|session| session.ended_at.is_some());
        ended || shared.network.pipe(session).is_ending
    }

    /// A reply came to an inbox.
    pub(crate) fn reply_arrived(&mut self, shared: &Shared, arrived: &Arrived<'_>) {
        let (session, message) = (arrived.session, arrived.message);
        let record = self.message(message);
        if record.to != To::Inbox(session) {
            let to = record.to.clone();
            shared.violate(Property::InboxPrivacy, || {
                format!("message {message} to {to:?} came to an inbox of session {session}")
            });
        }
        if arrived.is_redelivered || !self.replies.insert(message) {
            shared.violate(Property::Duplication, || {
                format!("reply {message} came twice to session {session}")
            });
        }
        self.check_live_order(shared, session, message);
    }

    /// A message came to a live subscription.
    pub(crate) fn live_arrived(&mut self, shared: &Shared, arrived: &Arrived<'_>, subscription: usize) {
        let (session, message) = (arrived.session, arrived.message);
        let Some(record) = self.subscriptions.get_mut(subscription) else { return };
        if arrived.is_redelivered || !record.got.insert(message) {
            shared.violate(Property::Duplication, || {
                format!("message {message} came twice to subscription {subscription}")
            });
        }
        let Reads::Topic(pattern) = &record.reads else { return };
        let is_meant = match self.messages.get(message).map(|message| &message.to) {
            Some(To::Topic(subject)) => is_match(pattern, subject),
            _ => false,
        };
        let is_meant = is_meant && self.messages.get(message).is_some_and(|message| message.due.is_none());
        if !is_meant {
            let text = format!("message {message} is not for subscription {subscription} to `{pattern}`");
            shared.violate(Property::Visibility, || text);
        }
        self.check_live_order(shared, session, message);
    }

    fn check_live_order(&mut self, shared: &Shared, session: usize, message: usize) {
        let record = self.message(message);
        let (publisher, key) = (record.publisher, record.key);
        let latest = self.live_keys.entry((publisher, session)).or_default();
        if key < *latest {
            shared.violate(Property::Order, || {
                format!("session {session} got message {message} of session {publisher} after a later one")
            });
        }
        *latest = key;
    }

    /// A message came from a queue.
    pub(crate) fn queue_arrived(
        &mut self,
        shared: &Shared,
        arrived: &Arrived<'_>,
        subscription: usize,
        queue: usize,
    ) {
        let (session, message) = (arrived.session, arrived.message);
        self.text_bytes.insert(message, arrived.text_bytes);
        let record = self.subscription(subscription);
        let mode = record.mode;
        if mode != Mode::Auto {
            record.unsettled += 1;
            if record.unsettled > record.prefetch {
                let (have, may) = (record.unsettled, record.prefetch);
                shared
                    .violate(Property::Credit, || format!("subscription {subscription} has {have} of {may}"));
            }
        }
        self.check_address(shared, arrived, queue);
        self.note_taken(shared, arrived, queue);
        self.check_single(shared, arrived, queue);
        let is_delayed = self.message(message).due.is_some();
        if !arrived.is_redelivered && !is_delayed {
            self.check_queue_order(shared, session, message, queue);
        }
        let outcome = if mode == Mode::Auto { Outcome::Auto } else { Outcome::Open };
        self.fates.insert(
            (message, queue),
            Fate { session, number: arrived.number, outcome, is_processed: false, is_of_earlier_life: false },
        );
    }

    /// The message was sent to this queue, or died on the way here by rule.
    fn check_address(&mut self, shared: &Shared, arrived: &Arrived<'_>, queue: usize) {
        let message = arrived.message;
        let spec = self.queue(queue);
        let name = spec.name.clone();
        if !spec.is_dead_letter_queue {
            let is_meant = match self.messages.get(message).map(|message| &message.to) {
                Some(To::Queue(to)) => *to == queue,
                Some(To::Topic(subject)) => {
                    spec.pattern.as_ref().is_some_and(|pattern| is_match(pattern, subject))
                }
                _ => false,
            };
            if !is_meant || arrived.death.is_some() {
                shared
                    .violate(Property::Visibility, || format!("message {message} is not for queue `{name}`"));
            }
            return;
        }
        let Some((reason, died_in)) = arrived.death else {
            shared.violate(Property::DeadLetter, || format!("message {message} came to `{name}` alive"));
            return;
        };
        let origin =
            self.queues.iter().position(|spec| spec.name == died_in && spec.dead_letter == Some(queue));
        let Some(origin) = origin else {
            shared.violate(Property::DeadLetter, || {
                format!("message {message} died in `{died_in}`, came to `{name}`")
            });
            return;
        };
        let spec = self.queue(origin);
        let (has_ttl, has_length, has_limit) =
            (spec.ttl_ms.is_some(), spec.is_bounded, spec.has_delivery_limit);
        let fate = self.fates.get(&(message, origin)).copied();
        let has_ttl = has_ttl || self.message(message).has_ttl;
        let is_allowed = match reason {
            "expired" => has_ttl,
            "maxlen" => has_length,
            "delivery_limit" => has_limit,
            "rejected" => fate.is_some_and(|fate| fate.outcome == Outcome::Reject),
            _ => false,
        };
        let is_with_consumer = fate.is_some_and(|fate| match fate.outcome {
            Outcome::Auto => !fate.is_of_earlier_life,
            Outcome::Open | Outcome::Accept => !self.is_over(shared, fate.session),
            Outcome::Release | Outcome::Reject => false,
        });
        if !is_allowed || is_with_consumer {
            shared.violate(Property::DeadLetter, || {
                format!(
                    "message {message} died of `{reason}` in `{died_in}`; its latest delivery is {fate:?}"
                )
            });
        }
    }

    /// The message was with nobody else, and is marked if it was given out before.
    fn check_single(&mut self, shared: &Shared, arrived: &Arrived<'_>, queue: usize) {
        let message = arrived.message;
        let spec = self.queue(queue);
        let record = self.messages.get(message);
        let sent = record.and_then(|record| record.sent_at);
        // What is dead is not delayed.
        let due = record.and_then(|record| record.due).filter(|_| !spec.is_dead_letter_queue);
        let was_before = |crash: u64| sent.is_some_and(|sent| sent <= crash);
        let is_restored = self.last_crash().is_some_and(was_before);
        if is_restored && !spec.is_dead_letter_queue {
            if !record.is_some_and(|record| record.is_persistent) || spec.is_transient && !spec.is_volatile {
                shared.violate(Property::Durability, || {
                    format!("message {message} outlived the broker, for which it was not made")
                });
            }
            // What fell due later was given to nobody before.
            let is_marked = |crash: &Crash| {
                !crash.was_clean && was_before(crash.at) && due.is_none_or(|due| due.latest < crash.back)
            };
            if !arrived.is_redelivered && self.crashes.iter().any(is_marked) {
                shared.violate(Property::Duplication, || {
                    format!("message {message} outlived the broker and does not say that it may come again")
                });
            }
        }
        if is_restored && !spec.is_dead_letter_queue && due.is_none() {
            self.check_restored_order(shared, arrived.session, message, queue);
        }
        let spec = self.queue(queue);
        // One that died again, as the broker forgot that it had, is delivered as if it had never been.
        let may_be_unmarked = spec.is_dead_letter_queue;
        let Some(fate) = self.fates.get(&(message, queue)).copied() else {
            // A later start does not know any more what was due at that of the doubt.
            let back = self.crashes.last().map_or(Time(0), |crash| crash.back);
            let is_doubtful = due.is_none_or(|due| due.earliest < back)
                && self.crashes.iter().any(|crash| !crash.was_clean && was_before(crash.at));
            if arrived.is_redelivered && !self.is_incomplete && !is_doubtful {
                shared.violate(Property::Duplication, || {
                    format!("message {message} is marked as redelivered but nobody had it")
                });
            }
            return;
        };
        let is_allowed = match fate.outcome {
            Outcome::Auto => fate.is_of_earlier_life,
            Outcome::Release => true,
            Outcome::Open => self.is_over(shared, fate.session),
            Outcome::Accept | Outcome::Reject => self.is_over(shared, fate.session) && !fate.is_processed,
        };
        if !is_allowed {
            let session = arrived.session;
            shared.violate(Property::Duplication, || {
                format!("message {message} of queue {queue} came to session {session} although {fate:?}")
            });
        }
        if !(arrived.is_redelivered || may_be_unmarked && fate.is_of_earlier_life) {
            shared.violate(Property::Duplication, || {
                format!("message {message} of queue {queue} came again without the mark")
            });
        }
    }

    /// What is restored comes in its order, as long as nobody went who had some of it, and nothing was given back.
    fn check_restored_order(&mut self, shared: &Shared, session: usize, message: usize, queue: usize) {
        let begin = self.last_crash().unwrap_or(0);
        let is_disturbed = |session: &SessionRecord| session.ended_at.is_some_and(|at| at > begin);
        let is_released = |fate: &Fate| {
            !fate.is_of_earlier_life && matches!(fate.outcome, Outcome::Release | Outcome::Reject)
        };
        let disturbed = self.sessions.iter().any(is_disturbed) || self.fates.values().any(is_released);
        let has_priorities = self.queue(queue).has_priorities;
        let Some(record) = self.messages.get(message).filter(|_| !disturbed && !has_priorities) else {
            return;
        };
        let (publisher, key) = (record.publisher, record.key);
        let latest = self.restored_keys.entry((session, publisher, queue)).or_default();
        if key < *latest {
            shared.violate(Property::Order, || {
                format!("message {message} of queue {queue} is restored behind a later one of its publisher")
            });
        }
        *latest = key;
    }

    fn check_queue_order(&mut self, shared: &Shared, session: usize, message: usize, queue: usize) {
        let spec = self.queue(queue);
        if spec.is_dead_letter_queue {
            return;
        }
        let has_priorities = spec.has_priorities;
        let record = self.message(message);
        let priority = if has_priorities { record.priority } else { 0 };
        let (publisher, key) = (record.publisher, record.key);
        let (sent, confirmed) = (record.sent_at, record.confirmed_at);
        let latest = self.queue_keys.entry((publisher, session, queue, priority)).or_default();
        if key < *latest {
            shared.violate(Property::Order, || {
                format!("session {session} got message {message} of queue {queue} after a later one of session {publisher}")
            });
        }
        *latest = key;
        let latest = self.queue_sent.entry((session, queue, priority)).or_default();
        if confirmed.is_some_and(|confirmed| confirmed < *latest) {
            shared.violate(Property::Order, || {
                format!("session {session} got message {message} of queue {queue} after one sent when it was confirmed")
            });
        }
        *latest = (*latest).max(sent.unwrap_or(0));
    }
}

/// AMQP's wildcards: `*` is one word, `#` any number.
pub(crate) fn is_match(pattern: &str, subject: &str) -> bool {
    fn words(pattern: &[&str], subject: &[&str]) -> bool {
        match (pattern.split_first(), subject.split_first()) {
            (None, None) => true,
            (Some((&"#", rest)), None) => words(rest, subject),
            (Some((&"#", rest)), Some((_, later))) => words(rest, subject) || words(pattern, later),
            (Some((word, rest)), Some((first, later))) => {
                (*word == "*" || word == first) && words(rest, later)
            }
            _ => false,
        }
    }
    let split = |text: &str| -> Vec<String> { text.split('.').map(String::from).collect() };
    let (pattern, subject) = (split(pattern), split(subject));
    let pattern: Vec<&str> = pattern.iter().map(String::as_str).collect();
    let subject: Vec<&str> = subject.iter().map(String::as_str).collect();
    words(&pattern, &subject)
}

#[cfg(test)]
mod tests;
