//! Bugs planted at the simulator's seams, which prove that the properties catch them.

use crate::property::Property;

/// A planted bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A cell routes by an outdated table.
    StaleTable,
    /// Consumers with room again after a write are not woken.
    LostWake,
    /// A cell gives up its claim on output before writing it, so that another cell overtakes it.
    TwoWriters,
    /// The rest of a partial write is put behind newer output.
    PutBackAtTheEnd,
    /// A partial write is repeated from its start.
    WrittenTwice,
    /// A touched connection is marked but missing from the list of touched ones.
    LostTouch,
    /// Output that a socket did not accept is not written once it has room.
    LostWriteSignal,
    /// A connection is found by slot alone, without its generation, and inboxes have no secrets.
    StaleConnection,
    /// A queue is found by slot alone, without its generation.
    StaleQueue,
    /// An ended connection does not release its unsettled deliveries.
    ForgottenUnsettled,
    /// An ended connection stays in queues and tables.
    ForgottenDisconnect,
    /// A consumer's window reopens while its deliveries are unsettled.
    CreditTwice,
    /// After a partial write a queue is locked while the outbound lock is held.
    QueueAfterOutbound,
    /// A transaction's queues are locked by falling id.
    QueuesFalling,
    /// The memory charge of a deleted queue's messages is not released.
    Uncharged,
    /// A queue's timer never fires.
    LostTimer,
    /// Publishers are not told that the memory alarm has ended.
    LostAlarmEnd,
    /// Connections waiting for memory for a long frame are not told when there is some.
    LostRoom,
    /// Other cells fail to wake a waiting task.
    LostWakeUp,
    /// A client that disconnects goes unnoticed while the connection is not read.
    UnnoticedEnd,
    /// A connection may have four times its limit of unsent bytes.
    NoBound,
    /// The disk reports a sync that it did not do. Everything else is right, so this tests the
    /// checks.
    LyingFlush,
    /// The folder is not synced after a file was renamed.
    FolderNotSynced,
    /// A short write counts as complete.
    ShortWriteIgnored,
    /// A failed sync is retried, and the retry's success is believed.
    SyncTriedAgain,
    /// Batches are not synced.
    SyncSkipped,
    /// Records are confirmed when they are appended.
    ConfirmBeforeCommit,
    /// Records are reported as written before they are.
    ConfirmBeforeWrite,
    /// Records are reported as durable when they are only written.
    ConfirmAtWritten,
    /// Connections are told that every record is durable.
    ConfirmAll,
    /// A confirm waits only for the record before its own.
    ConfirmOneTooFew,
    /// A failed sync is ignored, and later records are confirmed.
    ConfirmAfterFailure,
    /// Two receipts in one write are swapped.
    ReceiptsOvertake,
    /// A cell is not woken when the journal advances.
    LostJournalWake,
    /// A cell that starts to wait for the journal does not check how far the journal already is.
    JournalUnlooked,
    /// A settle is not recorded.
    SettleUnrecorded,
    /// One record removes a dead letter from its queue, and a later one adds it to its target.
    MoveUngrouped,
    /// The records of a transaction are not grouped.
    TransactionUngrouped,
    /// Recovery ignores settles.
    SettlesForgotten,
    /// Recovery marks nothing as redelivered.
    MarkForgotten,
    /// Recovery drops the last record.
    LastRecordCut,
    /// Recovery replays the records backwards.
    ReplayBackwards,
    /// Definitions that have left the journal are lost.
    DefinitionsForgotten,
    /// Bindings are lost.
    BindingsForgotten,
    /// Definitions are applied to their own store before their records are durable.
    DefinedBeforeDurable,
    /// A checkpoint claims that no record before it is needed.
    FloorTooHigh,
    /// A checkpoint's floor ignores definitions that only the journal has.
    FloorPastDefinitions,
    /// The checkpointer does not wait for turns to end, so it misses a message on its way to a
    /// queue.
    TurnsNotAwaited,
    /// Pages are written before the records of their messages are durable.
    PageBeforeRecord,
    /// A segment is synced neither before it counts as written nor before the checkpoint.
    SegmentNotSynced,
    /// A manifest is not synced before a checkpoint names it.
    ManifestNotSynced,
    /// Pages are discarded before the checkpoint that drops them is durable.
    DiscardBeforeCheckpoint,
    /// A checkpoint forgets which entries are settled in pages whose other entries are still needed.
    SettledForgotten,
    /// A checkpoint forgets the list of segments.
    SegmentsForgotten,
    /// A checkpoint forgets which pages are gone.
    GoneForgotten,
    /// Segments are opened without the checkpoint's manifest.
    ManifestUnread,
    /// Recovery does not check which records are in pages, so messages that the journal has too
    /// come twice.
    PagesUnlisted,
    /// Recovery reads pages before it knows which of their entries are settled.
    PagesBeforeSettles,
    /// The last entry of each page is lost when the page is read.
    PageCutShort,
    /// The last message of each page read from the journal is missing.
    JournalPageCutShort,
    /// Messages in files that are rewritten at start count as staying in the journal.
    RewrittenStays,
    /// Some page results never reach their queues.
    PageNewsLost,
    /// A timer lets time run a second ahead, so delayed messages are due early.
    DueEarly,
    /// Settles and cancellations of delayed messages are not recorded.
    DelayedSettleUnrecorded,
    /// Recovery does not read pages of delayed messages.
    DelayedPagesUnread,
    /// Recovery reads pages of delayed messages before it knows which are settled.
    DelayedPagesBeforeSettles,
    /// An end without a last checkpoint counts as clean.
    CleanWithoutCheckpoint,
    /// Connections open at a clean end do not release their deliveries.
    EndWithoutRelease,
    /// The next start does not remove the mark of a clean end.
    CleanMarkStays,
    /// Publishers are not told that a queue has room again.
    LostUnthrottle,
    /// Ids of messages that leave the journal are not recorded again.
    DedupUnrecorded,
    /// Recovery ignores ids that were recorded again.
    DedupUnread,
    /// The window of ids that were recorded again restarts with the broker.
    DedupAnew,
    /// Recovery ignores settled messages and thus their ids.
    SettledIdsForgotten,
    /// The broker assumes that the journal accepts records of any length.
    LengthUnlimited,
    /// Records too long for the journal are truncated.
    LongRecordsCut,
    /// A checkpoint that the journal refused counts as written.
    RefusedFrees,
    /// Publishers are not told that the disk has room again.
    LostRoomEnd,
    /// Journal files that could not be created for lack of room are never created.
    RoomUnseen,
    /// While publishers wait for the disk, no connection is read.
    DiskFullStopsReading,
    /// Unneeded journal files keep their space and are not reused.
    FreedFilesStay,
    /// The rejection of a pending dead letter is not recorded.
    RejectionUnrecorded,
    /// A rejected message is settled at once, and its dead letter recorded only later.
    PendingDeadLetterSettled,
    /// A pending dead letter is not copied when its journal file is freed.
    PendingDeadLetterNotCopied,
    /// The checkpointer does not record again that messages in pages were rejected.
    RejectionUncounted,
    /// Recovery ignores rejections.
    RejectionUnread,
    /// Dead letters that were pending when the broker ended stay pending.
    PendingDeadLetterNotWoken,
    /// A queue with pending dead letters is not woken to retry.
    LostRetry,
    /// A NATS subscription is made without its queue group.
    GroupForgotten,
    /// A NATS subscription continues beyond its limit of deliveries.
    LimitForgotten,
    /// A NATS reply goes to the inbox of another session.
    ReplyMisdirected,
    /// A PING is answered before the operation ahead of it is done.
    PongTooEarly,
    /// A live delivery to a NATS client on another connection is dropped.
    LiveDeliveryLost,
    /// The verdict on a login goes to another connection that is logging in.
    LoginMisdirected,
    /// A purge is not recorded.
    PurgeUnrecorded,
    /// The record of a purge names more than the purged messages.
    PurgeTooWide,
    /// A start leaves out the records of purges.
    PurgeUnread,
    /// The record of a message is written twice.
    MessageRecordedTwice,
    /// A message of a stream is recorded with the number of the message before it.
    StreamNumberAgain,
    /// Unbinding and exchange deletion are not recorded.
    UnbindUnrecorded,
    /// A queue with a single active consumer delivers to all its consumers.
    TwoActiveConsumers,
    /// Deliveries to an internal client are not charged to its credit.
    InternalCreditUncharged,
    /// Persistent messages of internal clients are published as transient.
    InternalPersistenceForgotten,
    /// A settle by an internal client settles nothing.
    InternalSettleForgotten,
    /// An internal client's accept releases the delivery.
    InternalAcceptReleases,
    /// A cancelled subscription of an internal client continues.
    InternalCancelIgnored,
    /// An internal client's definitions are not made, and its answer says that they are.
    InternalDefinitionLost,
    /// A get by an internal client settles its message at once.
    InternalGetAccepts,
    /// A message for an internal client lacks its last byte.
    InternalBodyCut,
    /// A reply goes to another call of its internal client.
    InternalReplyMisdirected,
    /// An answer for an internal client bears the number of another command.
    InternalAnswersSwapped,
    /// While one session has a held answer, no session of the connection is written.
    SessionsWaitTogether,
    /// An ended session does not release its unsettled deliveries.
    SessionForgotten,
    /// The end of a session also releases the deliveries of the connection's other sessions.
    NeighbourReleased,
    /// The sessions of a connection share one window instead of having their own.
    WindowShared,
    /// The answer to a session's end overtakes its last confirm.
    CloseOvertakes,
    /// An AMQP consumer ignores the prefetch count set before.
    PrefetchForgotten,
    /// An AMQP 1.0 link gets one credit more than its client granted.
    LinkCreditOneMore,
    /// Settling a range of deliveries also settles the next one.
    SettledOneTooMany,
    /// An accepted delivery is released.
    AcceptedReleased,
    /// A released delivery is rejected.
    ReleasedRejected,
    /// A message of a transaction is published at once, whatever the outcome.
    PostedOutside,
    /// A delivery that a transaction settles stays unsettled when it commits.
    RetirementForgotten,
    /// A commit rolls the transaction back.
    CommitRollsBack,
    /// A rollback commits the transaction.
    RollbackCommits,
    /// A session sends more transfers than its client's window allows.
    WindowUnbounded,
    /// A drained link does not answer.
    DrainUnanswered,
    /// A drained link reports that it used less credit than it did.
    DrainMiscounted,
    /// The last of several messages accepted together gets no outcome.
    OutcomesOneTooFew,
    /// A message in several transfers lacks the content of the later ones.
    PartLost,
    /// Readers see a message of a stream, and its publisher gets an answer, when its record is appended.
    StreamAtAppend,
    /// The same when its record is only written.
    StreamAtWritten,
    /// A stream is not told that the journal has progressed.
    LostStreamProgress,
    /// The removal of messages from a stream is not recorded.
    StreamRemovalUnrecorded,
    /// Recovery ignores removals from streams.
    StreamRemovalUnread,
    /// The last number of a removal from a stream is not recorded.
    StreamPurgeCut,
    /// The record of a stream's message lacks the messages that gave way to it.
    StreamDropsUnrecorded,
    /// Recovery ignores the messages that gave way to others.
    StreamDropsUnread,
    /// Recovery takes one more message for gone than gave way to another.
    StreamDropsMiscounted,
    /// An acknowledgement of a stream's message is not recorded.
    StreamAckUnrecorded,
    /// Recovery ignores acknowledgements of streams' messages.
    StreamAckUnread,
    /// An acknowledgement of a stream's message is recorded for the next one too.
    StreamAckMisnumbered,
    /// An acknowledgement is answered and only prolongs the time for one.
    StreamAckIgnored,
    /// Consumers of streams are not recorded.
    ConsumerUnrecorded,
    /// Recovery ignores the consumers of streams.
    ConsumerForgotten,
    /// The deletion of a stream's consumer is not recorded.
    ConsumerEndUnrecorded,
    /// The record of a consumer has everything delivered as acknowledged.
    FloorAheadOfPending,
    /// Recovery ignores the records of streams' last numbers.
    StreamMarkUnread,
    /// Recovery does not read the pages of streams.
    StreamPagesUnread,
    /// Recovery loses the settings of streams.
    StreamSettingsLost,
    /// Ids that are recorded again have lost the number of their message.
    StreamIdNumberForgotten,
    /// A timer lets time run a second ahead, so messages of streams expire early.
    StreamExpiresEarly,
    /// Recovery reads that no delivery failed.
    FailuresForgotten,
    /// Recovery restores the last two records in the wrong order.
    LastSwapped,
    /// Recovery lets ids that were recorded again count a moment longer.
    IdsLater,
    /// Recovery has the floor of a stream's consumer one message too low.
    FloorOneTooLow,
    /// Recovery counts one delivery too few of each message that a stream's consumer waits to have acknowledged.
    DeliveryUncounted,
}

impl Bug {
    /// Every planted bug, with the properties of which at least one has to catch it.
    pub const ALL: [(Bug, &'static [Property]); 157] = [
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
        (Bug::ManifestNotSynced, &[Property::Durability, Property::Recovery, Property::Loss]),
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
        (Bug::PurgeTooWide, &[Property::Durability, Property::Loss]),
        (Bug::PurgeUnread, &[Property::Purge, Property::Replica]),
        (Bug::MessageRecordedTwice, &[Property::Durability, Property::Duplication]),
        (Bug::StreamNumberAgain, &[Property::Durability, Property::Sequence, Property::Recovery]),
        (Bug::UnbindUnrecorded, &[Property::Visibility, Property::Durability]),
        (Bug::TwoActiveConsumers, &[Property::SingleActive]),
        (Bug::InternalCreditUncharged, &[Property::Credit]),
        (Bug::InternalPersistenceForgotten, &[Property::Durability, Property::Recovery, Property::Loss]),
        (Bug::InternalSettleForgotten, &[Property::Framing, Property::Leftovers]),
        (Bug::InternalAcceptReleases, &[Property::Duplication]),
        (Bug::InternalCancelIgnored, &[Property::Visibility, Property::Starvation]),
        (Bug::InternalDefinitionLost, &[Property::Loss, Property::Framing]),
        (Bug::InternalGetAccepts, &[Property::Framing]),
        (Bug::InternalBodyCut, &[Property::Framing]),
        (Bug::InternalReplyMisdirected, &[Property::Framing]),
        (Bug::InternalAnswersSwapped, &[Property::Framing, Property::Receipts]),
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
        (Bug::StreamAtAppend, &[Property::Durability, Property::Sequence, Property::Loss, Property::Dedup]),
        (Bug::StreamAtWritten, &[Property::Durability, Property::Sequence, Property::Loss, Property::Dedup]),
        (Bug::LostStreamProgress, &[Property::Receipts]),
        (Bug::StreamRemovalUnrecorded, &[Property::Purge, Property::Durability, Property::Retention]),
        (Bug::StreamRemovalUnread, &[Property::Purge, Property::Retention, Property::Durability]),
        (Bug::StreamPurgeCut, &[Property::Purge, Property::Retention, Property::Durability]),
        (Bug::StreamDropsUnrecorded, &[Property::Retention, Property::Durability]),
        (Bug::StreamDropsUnread, &[Property::Retention, Property::Durability, Property::Replica]),
        (Bug::StreamDropsMiscounted, &[Property::Retention, Property::Durability]),
        (Bug::StreamAckUnrecorded, &[Property::Durability, Property::Duplication]),
        (Bug::StreamAckUnread, &[Property::Duplication, Property::Replica]),
        (Bug::StreamAckMisnumbered, &[Property::Durability, Property::Loss]),
        (Bug::StreamAckIgnored, &[Property::Durability, Property::Duplication, Property::Purge]),
        (Bug::ConsumerUnrecorded, &[Property::Durability]),
        (Bug::ConsumerForgotten, &[Property::Durability]),
        (Bug::ConsumerEndUnrecorded, &[Property::Durability]),
        (Bug::FloorAheadOfPending, &[Property::Durability, Property::Loss]),
        (Bug::StreamMarkUnread, &[Property::Sequence]),
        (Bug::StreamPagesUnread, &[Property::Durability, Property::Sequence]),
        (Bug::StreamSettingsLost, &[Property::Durability, Property::Retention]),
        (Bug::StreamIdNumberForgotten, &[Property::Dedup, Property::Replica]),
        (Bug::StreamExpiresEarly, &[Property::Durability, Property::Visibility]),
        (Bug::FailuresForgotten, &[Property::Replica]),
        (Bug::LastSwapped, &[Property::Replica]),
        (Bug::IdsLater, &[Property::Replica]),
        (Bug::FloorOneTooLow, &[Property::Replica]),
        (Bug::DeliveryUncounted, &[Property::Replica]),
    ];

    /// The properties of which at least one has to catch it.
    #[must_use]
    pub fn properties(self) -> &'static [Property] {
        Bug::ALL.iter().find(|(bug, _)| *bug == self).map_or(&[], |(_, properties)| properties)
    }
}
