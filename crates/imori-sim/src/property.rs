//! Properties that hold in every run.

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
    /// The broker sends whole frames with the right headers and body, and an error is the last of them.
    Framing,
    /// From one publishing session to one receiving session, order is kept, across cells too.
    Order,
    /// The order on the wire is that in which deliveries were given out: their numbers rise by one.
    WireOrder,
    /// Every message that a queue took is delivered and settled, or dead-lettered, expired or dropped by rule.
    Loss,
    /// A message is with one consumer at a time, and marked when it comes again; never after it was accepted.
    Duplication,
    /// A consumer never has more unsettled deliveries than its prefetch count, nor more deliveries than it asked for.
    Credit,
    /// After the receipt of SUBSCRIBE every publish reaches it, after that of UNSUBSCRIBE none.
    Visibility,
    /// A message is dead-lettered only for a reason that its queue has.
    DeadLetter,
    /// The gauge is charged with the messages that wait, and with nothing when none waits.
    Memory,
    /// A reply reaches the owner of its inbox, once, and nobody else.
    InboxPrivacy,
    /// No more than its limit and one message is unsent on a connection.
    Bounds,
    /// Receipts come in the order of the frames that asked for them, and all of them come.
    Receipts,
    /// When nothing moves any more, no message waits that a consumer could take, and nothing is unsent.
    Starvation,
    /// Messages over their time to live leave their queue without being asked.
    Expiry,
    /// A delayed message is given to nobody before it is due, and then to a reader. A cancelled one is gone, and
    /// only one that nobody was given can be cancelled.
    Delay,
    /// A queue with a window gives out one message of an id within it, restarts or not. All of them are
    /// confirmed, and after the window the next is taken.
    Dedup,
    /// While the disk has no room, readers and settles go on. Once it has some, publishers go on soon, and
    /// dead letters move to their queues.
    Room,
    /// A message too long for a journal file is refused to its publisher, who is told the limit. Nobody
    /// gets it, nor any other message of its transaction.
    Refusal,
    /// Connections and their queues, when they are gone, leave nothing.
    Leftovers,
    /// Confirmed messages outlive what their level says; messages settled for certain do not come back;
    /// nothing else is there, and no byte is changed.
    Durability,
    /// Of a transaction, and of a move to where the dead go, all outlives the broker or nothing.
    Atomicity,
    /// The broker opens what any end of it has left, and sees no damage there.
    Recovery,
    /// A receipt says the level of the queue.
    Level,
    /// Only a client with the right password is let in, and none of these is refused.
    Login,
    /// A purge drops what waits, and none of it comes back, whatever happens after its confirm.
    Purge,
    /// An answer that waits for the disk holds up no other session of its connection.
    Apart,
    /// The end of a session gives back all that it had not settled, and nothing that others have.
    Release,
    /// A queue with a single active consumer gives to one at a time, until that one goes.
    SingleActive,
}

/// A property that was broken, and how.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The property.
    pub property: Property,
    /// The observation that shows it.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.property, self.text)
    }
}
