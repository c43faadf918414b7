//! The model's records: sessions, messages, subscriptions, deliveries, transactions.

use std::collections::BTreeSet;
use std::fmt;

use super::due::{Cancel, Due};
use super::duplicate::Duplicate;

/// A session, from its first byte to its last.
#[derive(Debug, Default)]
pub(crate) struct SessionRecord {
    /// The transport of its connection.
    pub(crate) pipe: usize,
    /// Deliveries that it may have unsettled, if that is limited.
    pub(crate) window: Option<usize>,
    /// Deliveries that its client has not settled.
    pub(crate) unsettled: usize,
    /// The client said goodbye: from here on the broker may end it.
    pub(crate) left_at: Option<u64>,
    /// The broker answered that: the client has read all that it had for the session.
    pub(crate) is_answered: bool,
    /// The client ended it, or noticed its end.
    pub(crate) ended_at: Option<u64>,
    /// The session ended with the broker.
    pub(crate) is_crashed: bool,
    /// The last delivery that its client has read is not whole: the client has had it, and cannot say which it is.
    pub(crate) has_part: bool,
}

/// Sessions that ended beside others of their connection, by what was under way when their clients said goodbye.
#[derive(Debug, Default, Clone, Copy)]
pub struct Goodbyes {
    /// All of them.
    pub all: u64,
    /// Those with deliveries that were not settled.
    pub with_unsettled: u64,
    /// Those with publishes that were not confirmed.
    pub with_unconfirmed: u64,
    /// Those of the latter that happened while publishers had to wait.
    pub with_parked: u64,
}

impl Goodbyes {
    /// Adds those of another run.
    pub fn add(&mut self, other: &Goodbyes) {
        self.all += other.all;
        self.with_unsettled += other.with_unsettled;
        self.with_unconfirmed += other.with_unconfirmed;
        self.with_parked += other.with_parked;
    }
}

impl fmt::Display for Goodbyes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Goodbyes { all, with_unsettled, with_unconfirmed, with_parked } = self;
        write!(
            f,
            "{all} sessions ended beside others, {with_unsettled} with deliveries, {with_unconfirmed} with confirms under way, {with_parked} while publishers waited"
        )
    }
}

/// A message.
#[derive(Debug)]
pub(crate) struct MessageRecord {
    pub(crate) publisher: usize,
    pub(crate) to: To,
    /// The place among its publisher's messages; in a transaction the place of the commit comes first.
    pub(crate) key: (u64, u64),
    pub(crate) size: usize,
    pub(crate) priority: u8,
    pub(crate) has_ttl: bool,
    /// The message bears headers, its number among them.
    pub(crate) has_headers: bool,
    /// Bytes of header text that the broker keeps, where a receiver cannot count them.
    pub(crate) text_bytes: Option<usize>,
    /// When it, or its COMMIT, was sent; `None` while its transaction is open or after ABORT.
    pub(crate) sent_at: Option<u64>,
    /// When its publisher knew that the broker had worked it off.
    pub(crate) confirmed_at: Option<u64>,
    /// A receipt of its own said so.
    pub(crate) has_receipt: bool,
    /// The message is to outlive the broker, where its queue does.
    pub(crate) is_persistent: bool,
    pub(crate) is_in_transaction: bool,
    /// When somebody may have it, if not at once.
    pub(crate) due: Option<Due>,
    /// Whether somebody took it back.
    pub(crate) cancel: Cancel,
    /// How often that was tried.
    pub(crate) cancels: usize,
    /// The id that other messages may bear too.
    pub(crate) duplicate: Option<Duplicate>,
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

/// The source of a subscription.
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
    /// The group whose members share messages.
    pub(crate) group: Option<String>,
    pub(crate) sent_at: u64,
    pub(crate) receipt_at: Option<u64>,
    pub(crate) unsubscribed_at: Option<u64>,
    /// The deliveries after which its client asked it to end, and when.
    pub(crate) limit: Option<(usize, u64)>,
    /// Deliveries that may come, once that was confirmed.
    pub(crate) deliveries_max: Option<usize>,
    /// Deliveries that its client has not settled.
    pub(crate) unsettled: usize,
    /// Messages that a live subscription got.
    pub(crate) got: BTreeSet<usize>,
    /// The client asked for one message.
    pub(crate) is_get: bool,
}

impl SubscriptionRecord {
    /// A subscription that a client has just asked for, in no group.
    pub(crate) fn new(
        session: usize,
        reads: Reads,
        mode: Mode,
        prefetch: usize,
        sent_at: u64,
    ) -> SubscriptionRecord {
        SubscriptionRecord {
            session,
            reads,
            mode,
            prefetch,
            group: None,
            sent_at,
            receipt_at: None,
            unsubscribed_at: None,
            limit: None,
            deliveries_max: None,
            unsettled: 0,
            got: BTreeSet::new(),
            is_get: false,
        }
    }

    /// Tells whether all has come that may.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.deliveries_max.is_some_and(|max| self.got.len() >= max)
    }

    /// The step from which on nothing has to come, if its client ended it.
    pub(crate) fn ended_at(&self) -> Option<u64> {
        let limited = self.limit.filter(|(max, _)| self.got.len() >= *max).map(|(_, at)| at);
        limited.into_iter().chain(self.unsubscribed_at).min()
    }
}

/// The outcome of the latest delivery of a message from a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The consumer has not settled the delivery.
    Open,
    Auto,
    Accept,
    Release,
    Reject,
}

/// The latest delivery of a message from a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastDelivery {
    pub(crate) session: usize,
    /// The step at which it came.
    pub(crate) at: u64,
    /// The delivery's number in the session.
    pub(crate) number: u64,
    pub(crate) outcome: Outcome,
    /// The consumer knows that the broker heard the outcome.
    pub(crate) is_processed: bool,
    /// The broker ended since, so that it may not know of this delivery any more.
    pub(crate) is_of_earlier_life: bool,
}

/// The way of a subject to a queue, which an operator makes and perhaps takes out again.
#[derive(Debug, Clone)]
pub(crate) struct RouteRecord {
    pub(crate) queue: usize,
    /// Only messages with headers take it.
    pub(crate) by_headers: bool,
    pub(crate) subject: String,
    pub(crate) state: RouteState,
}

/// How far a way is. Nobody publishes to its subject before it is made for good, or gone for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteState {
    Changing,
    Made,
    Gone,
}

/// A purge, by steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PurgeRecord {
    pub(crate) queue: usize,
    pub(crate) sent_at: u64,
    /// When its client knew that it is done, and outlives the broker as its queue does.
    pub(crate) done_at: Option<u64>,
    /// From when on it takes nothing more.
    pub(crate) over_at: Option<u64>,
}

/// The publishes and accepts of a committed transaction.
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
    /// The delivery's number in the session.
    pub(crate) number: u64,
    pub(crate) is_redelivered: bool,
    /// Bytes of the header lines that are the message's own.
    pub(crate) text_bytes: usize,
    /// Why it died last, and in which queue.
    pub(crate) death: Option<(&'a str, &'a str)>,
}
