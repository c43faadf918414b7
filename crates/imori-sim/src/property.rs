//! The properties checked in every run.

use std::fmt;

/// A property of the broker that a run can prove broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// Locks are taken in the order topology, queue, outbound, and queues by rising id.
    LockOrder,
    /// No thread waits for a lock forever.
    Deadlock,
    /// No code panics.
    Panic,
    /// The broker sends only whole frames with the right headers and body, and nothing after an
    /// error.
    Framing,
    /// Messages from one publishing session to one receiving session keep their order, across cells
    /// too.
    Order,
    /// Deliveries are on the wire in the order of delivery: their numbers rise by one.
    WireOrder,
    /// Every message that a queue accepted is delivered and settled, dead-lettered, expired, or
    /// dropped by a rule.
    Loss,
    /// A message is with one consumer at a time, is marked when redelivered, and never returns once
    /// accepted.
    Duplication,
    /// A consumer never has more unsettled deliveries than its prefetch count, nor more deliveries
    /// than it requested.
    Credit,
    /// A subscription gets every publish after its receipt, and none after the receipt of
    /// UNSUBSCRIBE.
    Visibility,
    /// Messages are dead-lettered only for reasons that apply to their queue.
    DeadLetter,
    /// The memory gauge equals the charges of waiting messages, and is zero if none waits.
    Memory,
    /// A reply reaches the owner of its inbox, once, and no other client.
    InboxPrivacy,
    /// A connection never exceeds its limit of unsent bytes by more than one message.
    Bounds,
    /// Receipts arrive, all of them, in the order of their frames.
    Receipts,
    /// At rest, no message waits that a consumer could take, and no output is unsent.
    Starvation,
    /// Expired messages leave their queue without any client's help.
    Expiry,
    /// A delayed message is delivered when it is due and not before. Only an undelivered one can be
    /// cancelled, and then it is gone.
    Delay,
    /// A queue with a de-duplication window delivers one message per id within it, across restarts.
    /// Duplicates are confirmed too, and after the window an id is accepted again.
    Dedup,
    /// While the disk has no room, reading and settling continue. Once there is room, publishers
    /// soon continue and dead letters move.
    Room,
    /// A message too long for a journal file is refused with the limit. Neither it nor any other
    /// message of its transaction is delivered.
    Refusal,
    /// Ended connections and their queues leave nothing behind.
    Leftovers,
    /// Confirmed messages survive what their level promises, durable settles stay settled, nothing
    /// else appears, and no byte changes.
    Durability,
    /// A transaction, or the move of a dead letter, survives entirely or not at all.
    Atomicity,
    /// The broker opens its store after any end and finds no damage.
    Recovery,
    /// A receipt promises the level of its queue.
    Level,
    /// Clients with the right password are let in, and no others.
    Login,
    /// A purge drops all ready messages, and none returns after its confirm, whatever happens.
    Purge,
    /// An answer that waits for the disk does not hold up other sessions of its connection.
    Apart,
    /// An ended session releases all its unsettled deliveries, and no others.
    Release,
    /// A queue with a single active consumer delivers to one at a time, until that one is gone.
    SingleActive,
    /// A stream gives each number to one message, across ends of the broker, and leaves none out.
    Sequence,
    /// At rest a stream keeps its limits, and has nothing that nobody wants.
    Retention,
    /// When nothing moves, a restart would give back every durable queue as it is: messages, their order and
    /// delivery counts, ids, and the state of streams.
    Replica,
}

/// A broken property, with the observation that proves it.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The property.
    pub property: Property,
    /// The observation.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.property, self.text)
    }
}
