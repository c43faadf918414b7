//! When the broker may say that it has taken responsibility.

/// A place in the journal: everything up to it is durable, or not yet.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct JournalPosition(pub u64);

/// What a confirm has to wait for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confirm {
    /// Nothing: the message is as safe as it was asked to be.
    #[default]
    Now,
    /// Until the journal is durable up to here.
    Pending(JournalPosition),
}

impl Confirm {
    /// The confirm that waits for both: of a message for several queues, or of frames in order.
    pub fn and(self, other: Confirm) -> Confirm {
        self.max(other)
    }
}
