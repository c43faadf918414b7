//! The model's records: sessions, messages, subscriptions, deliveries, transactions.

use std::collections::BTreeSet;
use std::fmt;

use super::due::{Cancel, Due};
use super::duplicate::Duplicate;

/// A session.
#[derive(Debug, Default)]
pub(crate) struct SessionRecord {
    /// The transport of its connection.
    pub(crate) pipe: usize,
    /// The most deliveries it may have unsettled, if limited.
    pub(crate) window: Option<usize>,
    /// Deliveries that its client has not settled.
    pub(crate) unsettled: usize,
    /// The step at which the client said goodbye; the broker may end the session from then on.
    pub(crate) left_at: Option<u64>,
    /// Whether the broker answered the goodbye; the client has then read all output for the
    /// session.
    pub(crate) is_answered: bool,
    /// The step at which the client ended the session or noticed its end.
    pub(crate) ended_at: Option<u64>,
    /// Whether the session ended with the broker.
    pub(crate) is_crashed: bool,
    /// Whether its client got only a part of its last delivery, and so cannot tell which message it
    /// is.
    pub(crate) has_part: bool,
}

/// Counts of sessions that ended beside others of their connection, by what was pending at their
/// goodbye.
#[derive(Debug, Default, Clone, Copy)]
pub struct Goodbyes {
    /// All such sessions.
    pub all: u64,
    /// Sessions with unsettled deliveries.
    pub with_unsettled: u64,
    /// Sessions with unconfirmed publishes.
    pub with_unconfirmed: u64,
    /// Sessions with unconfirmed publishes while publishers had to wait.
    pub with_parked: u64,
}

impl Goodbyes {
    /// Adds the counts of another run.
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
    /// Its position among its publisher's messages; in a transaction, the position of the commit
    /// comes first.
    pub(crate) key: (u64, u64),
    pub(crate) size: usize,
    pub(crate) priority: u8,
    pub(crate) has_ttl: bool,
    /// Whether the message has headers, one of which is its number.
    pub(crate) has_headers: bool,
    /// Bytes of header text that the broker keeps, if receivers cannot count them.
    pub(crate) text_bytes: Option<usize>,
    /// The step at which it, or its COMMIT, was sent; `None` while its transaction is open or after
    /// ABORT.
    pub(crate) sent_at: Option<u64>,
    /// The step at which its publisher knew that the broker had handled it.
    pub(crate) confirmed_at: Option<u64>,
    /// Whether a receipt of its own confirmed it.
    pub(crate) has_receipt: bool,
    /// Whether it should survive the broker if its queue does.
    pub(crate) is_persistent: bool,
    pub(crate) is_in_transaction: bool,
    /// The due time of a delayed message.
    pub(crate) due: Option<Due>,
    /// Whether the message was cancelled.
    pub(crate) cancel: Cancel,
    /// The number of attempts to cancel it.
    pub(crate) cancels: usize,
    /// The id that it may share with other messages.
    pub(crate) duplicate: Option<Duplicate>,
    /// Whether the journal has no room for it, or for its transaction.
    pub(crate) is_too_large: bool,
}

/// The destination of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum To {
    Queue(usize),
    Topic(String),
    /// The inbox of this session.
    Inbox(usize),
}

/// The ack mode of a subscription.
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
    /// The number of deliveries after which its client wants it to end, and the step of that
    /// request.
    pub(crate) limit: Option<(usize, u64)>,
    /// The most deliveries it may get, once that request is confirmed.
    pub(crate) deliveries_max: Option<usize>,
    /// Deliveries that its client has not settled.
    pub(crate) unsettled: usize,
    /// Messages that a live subscription got.
    pub(crate) got: BTreeSet<usize>,
    /// Whether the client requested a single message.
    pub(crate) is_get: bool,
}

impl SubscriptionRecord {
    /// A subscription that a client has just requested, without a group.
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

    /// Whether it got all deliveries that it may get.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.deliveries_max.is_some_and(|max| self.got.len() >= max)
    }

    /// The step from which on no delivery is required, if its client ended it.
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
    /// The step at which it arrived.
    pub(crate) at: u64,
    /// The delivery's number in the session.
    pub(crate) number: u64,
    pub(crate) outcome: Outcome,
    /// Whether the consumer knows that the broker handled the outcome.
    pub(crate) is_processed: bool,
    /// Whether the broker ended since then, and may have forgotten this delivery.
    pub(crate) is_of_earlier_life: bool,
}

/// A route from a subject to a queue, which an operator makes and perhaps removes.
#[derive(Debug, Clone)]
pub(crate) struct RouteRecord {
    pub(crate) queue: usize,
    /// Whether only messages with headers take it.
    pub(crate) by_headers: bool,
    pub(crate) subject: String,
    pub(crate) state: RouteState,
}

/// The state of a route. No client publishes to its subject while it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteState {
    Changing,
    Made,
    Gone,
}

/// A purge, with its steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PurgeRecord {
    pub(crate) queue: usize,
    pub(crate) sent_at: u64,
    /// When its client knew that it was done; from then on it survives the broker if its queue
    /// does.
    pub(crate) done_at: Option<u64>,
    /// From when on it removes nothing more.
    pub(crate) over_at: Option<u64>,
}

/// The publishes and accepts of a committed transaction.
#[derive(Debug)]
pub(crate) struct TransactionRecord {
    pub(crate) session: usize,
    pub(crate) messages: Vec<usize>,
    /// The messages that it accepted, each with its queue.
    pub(crate) accepted: Vec<(usize, usize)>,
}

/// A delivery as it was received.
#[derive(Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) session: usize,
    pub(crate) message: usize,
    /// The delivery's number in the session.
    pub(crate) number: u64,
    pub(crate) is_redelivered: bool,
    /// Bytes of the message's own header lines.
    pub(crate) text_bytes: usize,
    /// The reason and queue of its latest death.
    pub(crate) death: Option<(&'a str, &'a str)>,
}
