//! What has to hold in every run.

use std::fmt;

/// A property of the broker, which a run can show to be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// Locks are taken in the order topology, queue, outbound, and queues by rising id.
    LockOrder,
    /// Nobody waits for a lock for ever.
    Deadlock,
    /// No code panics.
    Panic,
    /// What the broker sends are whole frames, with the right headers and body, and an ERROR is the last of them.
    Framing,
    /// From one publishing session to one receiving session, order is kept, across cells too.
    Order,
    /// The order on the wire is that in which deliveries were given out: their numbers rise by one.
    WireOrder,
    /// What a queue took is delivered and settled, or dead-lettered, expired or dropped by rule.
    Loss,
    /// A message is with one consumer at a time, and marked when it comes again; never after it was accepted.
    Duplication,
    /// A consumer never has more unsettled deliveries than its prefetch count, nor more deliveries than it asked for.
    Credit,
    /// After the receipt of SUBSCRIBE every publish reaches it, after that of UNSUBSCRIBE none.
    Visibility,
    /// A message is dead-lettered only for a reason that its queue has.
    DeadLetter,
    /// What is charged is what waits, and nothing when nothing waits.
    Memory,
    /// A reply reaches the owner of its inbox, once, and nobody else.
    InboxPrivacy,
    /// No more than its limit and one message is unsent on a connection.
    Bounds,
    /// Receipts come in the order of the frames that asked for them, and all of them come.
    Receipts,
    /// When nothing moves any more, no message waits that a consumer could take, and nothing is unsent.
    Starvation,
    /// What is over its time to live leaves its queue without being asked.
    Expiry,
    /// A delayed message is given to nobody before it is due, and then to who reads; one that was cancelled is gone,
    /// and only one that nobody was given can be.
    Delay,
    /// Of messages with one id a queue that takes each once gives out one within its window, restarts or not, and
    /// confirms all of them; after that it takes it again.
    Dedup,
    /// While the disk has no room, who reads and settles goes on; once it has some again publishers do, soon, and what
    /// died goes where the dead go.
    Room,
    /// What does not fit into a journal file is refused to its publisher, who is told which limit that is, and nobody
    /// gets it, nor anything of the transaction that it is part of.
    Refusal,
    /// Connections and their queues, when they are gone, leave nothing.
    Leftovers,
    /// What was confirmed outlives what its level says; what was settled and confirmed does not come back;
    /// nothing else is there, and no byte is changed.
    Durability,
    /// Of a transaction, and of a move to where the dead go, all outlives the broker or nothing.
    Atomicity,
    /// The broker opens what any end of it has left, and sees no damage there.
    Recovery,
    /// A receipt says the level of the queue.
    Level,
}

/// A property that was broken, and how.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The property.
    pub property: Property,
    /// What was seen.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.property, self.text)
    }
}
