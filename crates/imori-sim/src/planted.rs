//! Bugs that can be planted at the simulator's seams, to see that a property catches each.

use crate::property::Property;

/// A planted bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A cell routes by the table as it was before the latest changes.
    StaleTable,
    /// Consumers that have room again after a write are not woken.
    LostWake,
    /// A cell gives back what it took to write before it is written, so that another cell overtakes it.
    TwoWriters,
    /// The rest of a partial write goes behind what waits.
    PutBackAtTheEnd,
    /// A partial write is put back as if nothing of it were written.
    WrittenTwice,
    /// A touched connection is marked as touched but is on no list.
    LostTouch,
    /// What could not be written is not written when the socket has room.
    LostWriteSignal,
    /// A connection is found by its slot, whoever had it before, and inboxes have no secrets.
    StaleConnection,
    /// A queue is found by its slot, whoever had it before.
    StaleQueue,
    /// A connection that ends forgets what it had not settled.
    ForgottenUnsettled,
    /// A connection that ends is not taken out of queues and tables.
    ForgottenDisconnect,
    /// A consumer's window is opened again while its deliveries are out.
    CreditTwice,
    /// After a partial write a queue is locked while the connection is.
    QueueAfterOutbound,
    /// A transaction's queues are locked from the highest id down.
    QueuesFalling,
    /// What was charged for the messages of a queue that is deleted is not given back.
    Uncharged,
    /// A queue's wake-up does not come.
    LostTimer,
    /// Publishers are not told that the memory alarm is over.
    LostAlarmEnd,
    /// A task that waits is not woken by others.
    LostWakeUp,
    /// A client that goes away is not noticed while it is not read.
    UnnoticedEnd,
    /// A connection may have four times the unsent bytes that it should.
    NoBound,
}

impl Bug {
    /// Every planted bug with the properties of which one has to catch it.
    pub const ALL: [(Bug, &'static [Property]); 20] = [
        (Bug::StaleTable, &[Property::Visibility, Property::Loss]),
        (Bug::LostWake, &[Property::Starvation]),
        (Bug::TwoWriters, &[Property::WireOrder, Property::Framing]),
        (Bug::PutBackAtTheEnd, &[Property::WireOrder, Property::Framing]),
        (Bug::WrittenTwice, &[Property::WireOrder, Property::Framing]),
        (Bug::LostTouch, &[Property::Starvation, Property::Receipts]),
        (Bug::LostWriteSignal, &[Property::Starvation, Property::Receipts]),
        (Bug::StaleConnection, &[Property::Visibility, Property::InboxPrivacy, Property::Starvation]),
        (Bug::StaleQueue, &[Property::Loss, Property::Duplication, Property::Visibility]),
        (Bug::ForgottenUnsettled, &[Property::Loss, Property::Leftovers, Property::Memory]),
        (Bug::ForgottenDisconnect, &[Property::Loss, Property::Leftovers, Property::Starvation]),
        (Bug::CreditTwice, &[Property::Credit]),
        (Bug::QueueAfterOutbound, &[Property::LockOrder]),
        (Bug::QueuesFalling, &[Property::LockOrder]),
        (Bug::Uncharged, &[Property::Memory]),
        (Bug::LostTimer, &[Property::Expiry]),
        (Bug::LostAlarmEnd, &[Property::Receipts]),
        (Bug::LostWakeUp, &[Property::Starvation, Property::Receipts]),
        (Bug::UnnoticedEnd, &[Property::Memory]),
        (Bug::NoBound, &[Property::Bounds]),
    ];
}
