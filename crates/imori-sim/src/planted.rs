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
    /// Bytes that a socket did not take are not written when it has room.
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
    /// The charge of a deleted queue's messages is not given back.
    Uncharged,
    /// A queue's wake-up does not come.
    LostTimer,
    /// Publishers are not told that the memory alarm is over.
    LostAlarmEnd,
    /// Connections that wait for memory for a long frame are not told when there is some.
    LostRoom,
    /// A task that waits is not woken by others.
    LostWakeUp,
    /// A client that goes away is not noticed while it is not read.
    UnnoticedEnd,
    /// A connection may have four times the unsent bytes that it should.
    NoBound,
    /// The disk says that it has synced, and has not: all else is right, so this checks the checks.
    LyingFlush,
    /// The folder is not synced when a file has got its name.
    FolderNotSynced,
    /// A short write is taken for a whole one.
    ShortWriteIgnored,
    /// After a sync that failed there is another, whose success is believed.
    SyncTriedAgain,
    /// Batches are not synced.
    SyncSkipped,
    /// Records are confirmed when they are appended.
    ConfirmBeforeCommit,
    /// Records are said to be written when they are about to be.
    ConfirmBeforeWrite,
    /// Records are said to be durable when they are written.
    ConfirmAtWritten,
    /// Connections are told that all records are durable.
    ConfirmAll,
    /// A confirm waits for the record before its own.
    ConfirmOneTooFew,
    /// A failed sync is passed over, and what follows is confirmed.
    ConfirmAfterFailure,
    /// Two receipts in one write change their places.
    ReceiptsOvertake,
    /// A cell is not woken when the journal comes further.
    LostJournalWake,
    /// A cell that begins to wait for the journal does not look how far that is.
    JournalUnlooked,
    /// A settle leaves no record.
    SettleUnrecorded,
    /// A dead letter leaves its queue in one record and comes to the other in a later one.
    MoveUngrouped,
    /// The records of a transaction are each for itself.
    TransactionUngrouped,
    /// Recovery passes over what was settled.
    SettlesForgotten,
    /// Recovery marks nothing as redelivered.
    MarkForgotten,
    /// Recovery cuts off one record too many.
    LastRecordCut,
    /// Recovery takes the last record first.
    ReplayBackwards,
    /// Definitions that have left the journal are lost.
    DefinitionsForgotten,
    /// Bindings are lost.
    BindingsForgotten,
    /// Definitions are applied to their own store before their records are durable.
    DefinedBeforeDurable,
    /// A checkpoint says that nothing before it is needed.
    FloorTooHigh,
    /// A checkpoint does not count definitions that only the journal has.
    FloorPastDefinitions,
    /// The checkpointer does not wait for the ends of turns, so that it misses a message on its way into a queue.
    TurnsNotAwaited,
    /// Pages are written before the records of their messages are durable.
    PageBeforeRecord,
    /// A segment is not synced before it counts as written, nor before the checkpoint.
    SegmentNotSynced,
    /// Pages are discarded before the checkpoint is durable that says that they are gone.
    DiscardBeforeCheckpoint,
    /// A checkpoint forgets what is settled of pages that are needed for others.
    SettledForgotten,
    /// A checkpoint forgets which segments there are.
    SegmentsForgotten,
    /// A checkpoint forgets which pages are gone.
    GoneForgotten,
    /// Segments are opened without what the checkpoint knows of them.
    ManifestUnread,
    /// Recovery does not look which records are in pages: what the journal has too comes twice.
    PagesUnlisted,
    /// Recovery looks at pages before it knows what was settled of them.
    PagesBeforeSettles,
    /// The last entry of each page that is read is lost.
    PageCutShort,
    /// The last message of a page that is read in the journal is not there.
    JournalPageCutShort,
    /// Messages of files that are written anew at a start are taken for such that stay.
    RewrittenStays,
    /// Queues are not told of some of their pages.
    PageNewsLost,
    /// A timer gives out what is due a second later.
    DueEarly,
    /// Settles and cancels of delayed messages leave no record.
    DelayedSettleUnrecorded,
    /// Recovery does not read pages of delayed messages.
    DelayedPagesUnread,
    /// Recovery reads pages of delayed messages before it knows what was settled of them.
    DelayedPagesBeforeSettles,
    /// An end without a last checkpoint counts as clean.
    CleanWithoutCheckpoint,
    /// Connections that are there at a clean end do not give back what they had.
    EndWithoutRelease,
    /// The mark of a clean end is not taken away by the next start.
    CleanMarkStays,
    /// Publishers are not told that a queue is shorter.
    LostUnthrottle,
    /// Ids whose messages leave the journal are not written anew.
    DedupUnrecorded,
    /// Recovery does not read ids that were written anew.
    DedupUnread,
    /// The window of ids that were written anew begins with the start.
    DedupAnew,
    /// Recovery passes over messages that are settled, and over their ids.
    SettledIdsForgotten,
    /// The broker believes that the journal takes records of any length.
    LengthUnlimited,
    /// Records that are too long for the journal are cut.
    LongRecordsCut,
    /// A checkpoint that the journal refused counts as written.
    RefusedFrees,
    /// Publishers are not told that there is room on the disk again.
    LostRoomEnd,
    /// Journal files that could not be made for want of room are never made.
    RoomUnseen,
    /// While publishers wait for the disk nobody is read.
    DiskFullStopsReading,
    /// Journal files that nobody needs keep their room, and are not used again.
    FreedFilesStay,
    /// The rejection of a pending dead letter is not recorded.
    RejectionUnrecorded,
    /// A message that was rejected is settled at once, and only later recorded where the dead go.
    PendingDeadLetterSettled,
    /// A rejected message that is pending is not copied when its journal file goes.
    PendingDeadLetterNotCopied,
    /// The checkpointer does not record again that messages in pages were rejected.
    RejectionUncounted,
    /// Recovery passes over that messages were rejected.
    RejectionUnread,
    /// Dead letters that were pending when the broker ended stay where they are.
    PendingDeadLetterNotWoken,
    /// A queue with pending dead letters is not woken to try again.
    LostRetry,
    /// A NATS subscription is made without its queue group.
    GroupForgotten,
    /// A NATS subscription goes on after the deliveries that its client limited it to.
    LimitForgotten,
    /// A reply by NATS goes to the inbox of another session.
    ReplyMisdirected,
    /// A PING is answered before the operation ahead of it is done.
    PongTooEarly,
    /// A live delivery to a NATS client of another connection is dropped.
    LiveDeliveryLost,
    /// The verdict of a login goes to another connection whose login is checked too.
    LoginMisdirected,
    /// A purge leaves no record.
    PurgeUnrecorded,
    /// Unbound bindings and deleted exchanges leave no record.
    UnbindUnrecorded,
    /// A queue with a single active consumer gives to all its consumers.
    TwoActiveConsumers,
    /// Deliveries to an internal client are not charged to its credit.
    InternalCreditUncharged,
    /// While an answer of one session waits for the disk, no session of its connection is written to.
    SessionsWaitTogether,
    /// A session that ends gives back nothing of what it had not settled.
    SessionForgotten,
    /// With a session's unsettled deliveries those of the other sessions of its connection are given back.
    NeighbourReleased,
    /// The sessions of a connection have one window together, in place of their own.
    WindowShared,
    /// The answer to a session's end leaves ahead of its last confirm.
    CloseOvertakes,
    /// An AMQP consumer is made without the prefetch count that its client set before.
    PrefetchForgotten,
    /// A link of AMQP 1.0 has one credit more than its client granted.
    LinkCreditOneMore,
    /// With a range of deliveries the one behind it is settled.
    SettledOneTooMany,
    /// A delivery that was accepted is released.
    AcceptedReleased,
    /// A delivery that was released is rejected.
    ReleasedRejected,
    /// A message of a transaction is published at once, whatever becomes of that.
    PostedOutside,
    /// A delivery that a transaction is to settle stays unsettled when that is committed.
    RetirementForgotten,
    /// A transaction that is committed is rolled back.
    CommitRollsBack,
    /// A transaction that is rolled back is committed.
    RollbackCommits,
    /// A session sends more transfers than its client has room for.
    WindowUnbounded,
    /// A drained link gives no answer.
    DrainUnanswered,
    /// A drained link says that it has used less than it was granted.
    DrainMiscounted,
    /// The last of several messages that were accepted together has no outcome.
    OutcomesOneTooFew,
    /// A message in several transfers lacks what is in the later ones.
    PartLost,
}

impl Bug {
    /// Every planted bug with the properties of which one has to catch it.
    pub const ALL: [(Bug, &'static [Property]); 116] = [
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
        (Bug::LostRoom, &[Property::Receipts, Property::Starvation]),
        (Bug::LostWakeUp, &[Property::Starvation, Property::Receipts]),
        (Bug::UnnoticedEnd, &[Property::Memory]),
        (Bug::NoBound, &[Property::Bounds]),
        (Bug::LyingFlush, &[Property::Durability, Property::Recovery, Property::Loss]),
        (Bug::FolderNotSynced, &[Property::Durability, Property::Recovery, Property::Loss]),
        (Bug::ShortWriteIgnored, &[Property::Durability, Property::Recovery, Property::Loss]),
        (Bug::SyncTriedAgain, &[Property::Durability, Property::Recovery, Property::Loss]),
        (Bug::SyncSkipped, &[Property::Durability, Property::Recovery, Property::Loss]),
        (Bug::ConfirmBeforeCommit, &[Property::Durability, Property::Loss]),
        (Bug::ConfirmBeforeWrite, &[Property::Durability, Property::Loss]),
        (Bug::ConfirmAtWritten, &[Property::Durability, Property::Loss]),
        (Bug::ConfirmAll, &[Property::Durability, Property::Loss]),
        (Bug::ConfirmOneTooFew, &[Property::Durability, Property::Loss]),
        (Bug::ConfirmAfterFailure, &[Property::Durability, Property::Recovery, Property::Loss]),
        (Bug::ReceiptsOvertake, &[Property::Receipts]),
        (Bug::LostJournalWake, &[Property::Receipts]),
        (Bug::JournalUnlooked, &[Property::Receipts]),
        (Bug::SettleUnrecorded, &[Property::Durability, Property::Duplication]),
        (Bug::MoveUngrouped, &[Property::Durability, Property::Atomicity, Property::Loss]),
        (Bug::TransactionUngrouped, &[Property::Atomicity]),
        (Bug::SettlesForgotten, &[Property::Duplication]),
        (Bug::MarkForgotten, &[Property::Duplication]),
        (Bug::LastRecordCut, &[Property::Loss]),
        (Bug::ReplayBackwards, &[Property::Order]),
        (Bug::DefinitionsForgotten, &[Property::Loss, Property::Framing]),
        (Bug::BindingsForgotten, &[Property::Loss]),
        (Bug::DefinedBeforeDurable, &[Property::Durability, Property::Recovery, Property::Loss]),
        (Bug::FloorTooHigh, &[Property::Durability, Property::Loss]),
        (Bug::FloorPastDefinitions, &[Property::Durability, Property::Recovery, Property::Loss]),
        (Bug::TurnsNotAwaited, &[Property::Durability, Property::Loss]),
        (Bug::PageBeforeRecord, &[Property::Durability, Property::Atomicity, Property::Loss]),
        (Bug::SegmentNotSynced, &[Property::Durability, Property::Recovery, Property::Loss]),
        (Bug::DiscardBeforeCheckpoint, &[Property::Durability, Property::Recovery, Property::Loss]),
        (Bug::SettledForgotten, &[Property::Durability, Property::Duplication]),
        (Bug::SegmentsForgotten, &[Property::Durability, Property::Loss]),
        (Bug::GoneForgotten, &[Property::Durability, Property::Duplication]),
        (Bug::ManifestUnread, &[Property::Durability, Property::Duplication, Property::Loss]),
        (Bug::PagesUnlisted, &[Property::Duplication]),
        (Bug::PagesBeforeSettles, &[Property::Duplication]),
        (Bug::PageCutShort, &[Property::Loss]),
        (Bug::JournalPageCutShort, &[Property::Loss]),
        (Bug::RewrittenStays, &[Property::Loss]),
        (Bug::PageNewsLost, &[Property::Starvation, Property::Loss, Property::Leftovers]),
        (Bug::DueEarly, &[Property::Delay]),
        (Bug::DelayedSettleUnrecorded, &[Property::Durability, Property::Delay, Property::Duplication]),
        (Bug::DelayedPagesUnread, &[Property::Loss]),
        (Bug::CleanWithoutCheckpoint, &[Property::Duplication]),
        (Bug::EndWithoutRelease, &[Property::Duplication]),
        (Bug::CleanMarkStays, &[Property::Recovery]),
        (Bug::DelayedPagesBeforeSettles, &[Property::Durability, Property::Delay, Property::Duplication]),
        (Bug::LostUnthrottle, &[Property::Receipts, Property::Starvation]),
        (Bug::DedupUnrecorded, &[Property::Dedup]),
        (Bug::DedupUnread, &[Property::Dedup]),
        (Bug::DedupAnew, &[Property::Durability, Property::Loss]),
        (Bug::SettledIdsForgotten, &[Property::Dedup]),
        (Bug::RefusedFrees, &[Property::Durability, Property::Recovery, Property::Loss]),
        (Bug::LostRoomEnd, &[Property::Room]),
        (Bug::RoomUnseen, &[Property::Room]),
        (Bug::DiskFullStopsReading, &[Property::Room]),
        (Bug::FreedFilesStay, &[Property::Room]),
        (Bug::RejectionUnrecorded, &[Property::Durability, Property::Duplication]),
        (Bug::PendingDeadLetterSettled, &[Property::Atomicity, Property::Loss]),
        (Bug::PendingDeadLetterNotCopied, &[Property::Atomicity, Property::Durability, Property::Loss]),
        (Bug::RejectionUncounted, &[Property::Durability, Property::Duplication]),
        (Bug::RejectionUnread, &[Property::Durability, Property::Duplication]),
        (Bug::PendingDeadLetterNotWoken, &[Property::Leftovers, Property::Loss]),
        (Bug::LostRetry, &[Property::Room]),
        (Bug::LengthUnlimited, &[Property::Refusal]),
        (Bug::LongRecordsCut, &[Property::Refusal, Property::Durability]),
        (Bug::GroupForgotten, &[Property::Duplication]),
        (Bug::LimitForgotten, &[Property::Credit, Property::Visibility]),
        (Bug::ReplyMisdirected, &[Property::InboxPrivacy]),
        (Bug::PongTooEarly, &[Property::Visibility, Property::Duplication]),
        (Bug::LiveDeliveryLost, &[Property::Visibility, Property::Loss]),
        (Bug::LoginMisdirected, &[Property::Login, Property::Starvation]),
        (Bug::PurgeUnrecorded, &[Property::Purge]),
        (Bug::UnbindUnrecorded, &[Property::Visibility, Property::Durability]),
        (Bug::TwoActiveConsumers, &[Property::SingleActive]),
        (Bug::InternalCreditUncharged, &[Property::Credit]),
        (Bug::SessionsWaitTogether, &[Property::Apart]),
        (Bug::SessionForgotten, &[Property::Release, Property::Leftovers, Property::Loss]),
        (Bug::NeighbourReleased, &[Property::Release, Property::Duplication, Property::Framing]),
        (Bug::WindowShared, &[Property::Starvation, Property::Credit]),
        (Bug::CloseOvertakes, &[Property::Receipts]),
        (Bug::PrefetchForgotten, &[Property::Credit]),
        (Bug::LinkCreditOneMore, &[Property::Credit, Property::Framing]),
        (
            Bug::SettledOneTooMany,
            &[Property::Loss, Property::Duplication, Property::Release, Property::Durability],
        ),
        (Bug::AcceptedReleased, &[Property::Duplication]),
        (Bug::ReleasedRejected, &[Property::Loss, Property::DeadLetter, Property::Durability]),
        (Bug::PostedOutside, &[Property::Visibility, Property::Framing]),
        (Bug::RetirementForgotten, &[Property::Framing]),
        (Bug::CommitRollsBack, &[Property::Loss, Property::Framing, Property::Durability]),
        (Bug::RollbackCommits, &[Property::Visibility, Property::Framing, Property::Durability]),
        (Bug::WindowUnbounded, &[Property::Framing]),
        (Bug::DrainUnanswered, &[Property::Receipts, Property::Starvation]),
        (Bug::DrainMiscounted, &[Property::Framing]),
        (Bug::OutcomesOneTooFew, &[Property::Framing, Property::Receipts]),
        (Bug::PartLost, &[Property::Framing]),
    ];
}
