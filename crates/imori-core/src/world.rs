//! The environment of the broker's verbs: locks, clock, counters and the journal.

use std::fmt;
use std::time::Duration;

use crate::authorize::{Action, Actor, Object, Refusal, authorize};
use crate::confirm::Lsn;
use crate::id::{ConnectionId, QueueId, VhostId};
use crate::login::{Login, SCRAM_BYTES, ScramParameters, Verdict, Verification};
use crate::memory::Gauge;
use crate::message::{AddressView, DeathReason, HeaderReader, HeaderReaders, MessageView, OriginId};
use crate::outbound::Outbound;
use crate::paging::PageWork;
use crate::queue::Queue;
use crate::quota::QuotaReached;
use crate::record::{Appended, NewRecord};
use crate::room::Room;
use crate::route::{Router, Table};
use crate::time::Time;
use crate::topology::Topology;

/// An event that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// A message was published.
    Published,
    /// A message had no receiver.
    Unroutable,
    /// A reply was dropped because its inbox no longer exists.
    ReplyDropped,
    /// A connection was cut because too much output waited for it.
    CutTooSlow,
    /// A connection was cut because it did not finish a large message while others needed its
    /// memory.
    CutUnfinished,
    /// A queue dropped or dead-lettered a message that a consumer rejected.
    DiedRejected,
    /// A queue dropped or dead-lettered a message that had expired.
    DiedExpired,
    /// A queue dropped or dead-lettered a message because it was full.
    DiedOverflow,
    /// A queue dropped or dead-lettered a message that had failed too often.
    DiedDeliveryLimit,
    /// A message was dead-lettered because a consumer rejected it.
    DeadLetteredRejected,
    /// A message was dead-lettered because it had expired.
    DeadLetteredExpired,
    /// A message was dead-lettered because its queue was full.
    DeadLetteredOverflow,
    /// A message was dead-lettered because it had failed too often.
    DeadLetteredDeliveryLimit,
    /// A dead letter was dropped because its exchange does not exist, or because it cycled.
    DeadLetterDropped,
    /// A message was withheld from a subscription with a protocol that cannot represent its subject
    /// or size.
    NoForm,
    /// A connection was ended by a bug in the broker.
    Fault,
    /// A publisher started to wait for a queue to become shorter.
    Throttled,
    /// A publisher started to wait because its user or vhost exceeded its rate.
    RateLimited,
    /// A publish was refused because its vhost has reached its limit of bytes.
    BytesRefused,
    /// A queue was declared, whether or not it existed.
    QueueDeclared,
    /// A queue was created.
    QueueCreated,
    /// A queue was deleted.
    QueueDeleted,
}

impl Counter {
    /// Every counter.
    pub const ALL: [Counter; 22] = [
        Counter::Published,
        Counter::Unroutable,
        Counter::ReplyDropped,
        Counter::CutTooSlow,
        Counter::CutUnfinished,
        Counter::DiedRejected,
        Counter::DiedExpired,
        Counter::DiedOverflow,
        Counter::DiedDeliveryLimit,
        Counter::DeadLetteredRejected,
        Counter::DeadLetteredExpired,
        Counter::DeadLetteredOverflow,
        Counter::DeadLetteredDeliveryLimit,
        Counter::DeadLetterDropped,
        Counter::NoForm,
        Counter::Fault,
        Counter::Throttled,
        Counter::RateLimited,
        Counter::BytesRefused,
        Counter::QueueDeclared,
        Counter::QueueCreated,
        Counter::QueueDeleted,
    ];

    /// The counter for messages that died in a queue for this reason.
    #[must_use]
    pub fn died(reason: DeathReason) -> Counter {
        match reason {
            DeathReason::Rejected => Counter::DiedRejected,
            DeathReason::Expired => Counter::DiedExpired,
            DeathReason::Overflow => Counter::DiedOverflow,
            DeathReason::DeliveryLimit => Counter::DiedDeliveryLimit,
        }
    }

    /// The counter for messages dead-lettered for this reason.
    #[must_use]
    pub fn dead_lettered(reason: DeathReason) -> Counter {
        match reason {
            DeathReason::Rejected => Counter::DeadLetteredRejected,
            DeathReason::Expired => Counter::DeadLetteredExpired,
            DeathReason::Overflow => Counter::DeadLetteredOverflow,
            DeathReason::DeliveryLimit => Counter::DeadLetteredDeliveryLimit,
        }
    }
}

/// Published messages, as reported to a trace.
#[derive(Debug)]
pub struct Sent<'a> {
    /// The vhost.
    pub vhost: VhostId,
    /// The address they were published to.
    pub address: &'a AddressView<'a>,
    /// The first message; the others differ only in their bodies.
    pub first: MessageView<'a>,
    /// The number of messages.
    pub messages: usize,
    /// The number of receivers, summed over all messages.
    pub receivers: usize,
}

/// A change by a client that is audited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A queue or an exchange was created.
    Declare,
    /// A queue or an exchange was deleted.
    Delete,
    /// A binding was added.
    Bind,
    /// A binding was removed.
    Unbind,
    /// The ready messages of a queue were purged.
    Purge,
}

impl Change {
    /// The word for it in the audit log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Change::Declare => "declare",
            Change::Delete => "delete",
            Change::Bind => "bind",
            Change::Unbind => "unbind",
            Change::Purge => "purge",
        }
    }
}

/// A latency that is measured by sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latency {
    /// From the turn that received a publish to the turn that sent its confirm, if it waited for
    /// the journal.
    Confirm,
    /// From the arrival of a message that had to wait to its first delivery.
    QueueWait,
}

impl Latency {
    /// Every latency.
    pub const ALL: [Latency; 2] = [Latency::Confirm, Latency::QueueWait];
}

/// The environment in which the broker's verbs run.
///
/// The server's has a mutex for each queue and connection; the simulator's has a scheduler that
/// decides at each lock who continues. A closure must not call back for a lock of the same or an
/// earlier kind in the order topology, queue, outbound.
/// outbound.
pub trait World {
    /// The state of the disk.
    type Room: Room;

    /// The current time.
    fn now(&self) -> Time;

    /// 128 unpredictable bits.
    fn secret(&self) -> [u8; 16];

    /// Verifies a login, now or later. By default every login is refused.
    fn verify(&self, _login: Login) -> Verification {
        Verification::Done(Verdict::Refused)
    }

    /// The SCRAM parameters of a user. An unknown user gets some too, always the same ones
    /// (SECURITY AUTH-09). `None` if no user can log in that way.
    fn scram_parameters(&self, _user: &[u8]) -> Option<ScramParameters> {
        None
    }

    /// Whether all users with a password or a token have SCRAM keys. If SCRAM is offered, a client
    /// uses it before it has named its user.
    fn all_have_scram_keys(&self) -> bool {
        true
    }

    /// The `ServerSignature` (RFC 5802, 3), by which the broker proves that it knows the keys of a
    /// user who has logged in. `None` if the user has none.
    fn scram_signature(&self, _user: &[u8], _messages: &[u8]) -> Option<[u8; SCRAM_BYTES]> {
        None
    }

    /// Whether memory is so short that publishes must wait.
    fn is_alarmed(&self) -> bool;

    /// The room on the disk.
    fn room(&self) -> &Self::Room;

    /// The gauge that is charged with the memory of waiting messages.
    fn gauge(&self) -> &Gauge;

    /// Counts an event.
    fn count(&self, counter: Counter) {
        self.count_many(counter, 1);
    }

    /// Counts an event that happened `times` times.
    fn count_many(&self, counter: Counter, times: usize);

    /// Decides about an action as [`authorize`] does, and reports a refusal to [`World::refused`].
    /// Must not be called with an outbound half locked.
    ///
    /// # Errors
    /// The reason, in words for the client.
    #[inline]
    fn authorize(&self, actor: &Actor<'_>, action: Action, object: Object<'_>) -> Result<(), Refusal> {
        authorize(actor.identity, action, actor.vhost, object)
            .inspect_err(|refusal| self.refused(actor, refusal))
    }

    /// Counts a connection towards its user and vhost, replacing those it counted towards before.
    /// Must not be called with an outbound half locked. By default there are no limits.
    ///
    /// # Errors
    /// The limit of the vhost or the user is reached.
    fn enter(&self, _actor: &Actor<'_>) -> Result<(), QuotaReached> {
        Ok(())
    }

    /// Claims a client id for the life of a connection; false if another connection of the same
    /// user holds it in this vhost. SECURITY AUTH-07: equal ids of different users are different.
    fn claim_client_id(&self, _actor: &Actor<'_>, _id: &[u8]) -> bool {
        true
    }

    /// Releases the client id claimed by a connection, if any.
    fn release_client_id(&self, _actor: &Actor<'_>) {}

    /// Opens a session through `open`, unless the user's connections have reached their limit. Must
    /// not be called with an outbound half locked.
    ///
    /// # Errors
    /// The limit is reached, and `open` was not called.
    fn open_session<R>(&self, _actor: &Actor<'_>, open: impl FnOnce() -> R) -> Result<R, QuotaReached> {
        Ok(open())
    }

    /// An operator's limit on the number of queues in a vhost, if set.
    fn queues_max(&self, _vhost: VhostId) -> Option<usize> {
        None
    }

    /// Reports messages that an actor published, with the total size of headers and bodies.
    #[inline]
    fn published(&self, _actor: &Actor<'_>, messages: usize, _bytes: usize) {
        self.count_many(Counter::Published, messages);
    }

    /// Whether a rate limit applies to an actor's publishes. Called only if [`Gauge::rates`] is not
    /// zero.
    fn has_rate(&self, _actor: &Actor<'_>) -> bool {
        false
    }

    /// Whether an actor's publishes must wait because its user or vhost exceeded its rate. The
    /// world makes the connection ask again when the wait is over.
    fn must_wait_for_rate(&self, _actor: &Actor<'_>) -> bool {
        false
    }

    /// Reports a change of the total bytes of messages in a vhost's queues. Called with a queue
    /// locked.
    fn bytes_changed(&self, _vhost: VhostId, _change: i64) {}

    /// The limit on a vhost's message bytes, if it has been reached. Called only if
    /// [`Gauge::full_vhosts`] is not zero.
    fn bytes_max_reached(&self, _vhost: VhostId) -> Option<QuotaReached> {
        None
    }

    /// Reports that an actor was refused. Must not be called with an outbound half locked.
    fn refused(&self, _actor: &Actor<'_>, _refusal: &Refusal) {}

    /// Reports a change to an object by an actor, for the audit log. Must not be called with an
    /// outbound half locked.
    fn changed(&self, _actor: &Actor<'_>, _change: Change, _object: &dyn fmt::Display) {}

    /// Reports a sampled latency. Samples are rare, so this may be somewhat costly.
    fn observe(&self, _latency: Latency, _took: Duration) {}

    /// The start time of a publish if the world traces publishes, else `None`.
    #[inline]
    fn trace_from(&self) -> Option<Time> {
        None
    }

    /// Reports a publish that started at `from`. No queue or outbound half is locked.
    fn trace(&self, _from: Time, _sent: &Sent<'_>) {}

    /// Lends this cell's router and the current routing table.
    fn with_router<R>(&self, f: impl FnOnce(&mut Router, &Table) -> R) -> R;

    /// Lends the topology. A change of its table is published before this returns, so that the next
    /// publish of every cell sees it.
    fn with_topology<R>(&self, f: impl FnOnce(&mut Topology) -> R) -> R;

    /// Appends records to the journal in this order. After a crash each may be present or not. They
    /// are always accepted, because none exceeds [`World::group_bytes_max`]; if the disk fails the
    /// broker ends, without having reported them as durable.
    fn append(&self, records: Vec<NewRecord>) -> Appended;

    /// Appends records as [`World::append`] does, but after a crash either all are present or none.
    /// Together they must not exceed [`World::group_bytes_max`].
    fn append_group(&self, records: Vec<NewRecord>) -> Appended;

    /// The number of the last record appended by any caller, to wait for all records so far.
    /// [`Lsn::NEVER`](crate::confirm::Lsn::NEVER) once the journal has refused one.
    fn appended(&self) -> Lsn;

    /// The maximum size of a record's payload, or of all payloads in a group, counting
    /// [`RECORD_SLACK_BYTES`] more for each.
    ///
    /// [`RECORD_SLACK_BYTES`]: crate::limits::RECORD_SLACK_BYTES
    fn group_bytes_max(&self) -> usize;

    /// Registers a queue; `None` if the limit of queues is reached.
    fn add_queue(&self, queue: Queue) -> Option<QueueId>;

    /// Removes a queue for good and returns it.
    fn remove_queue(&self, id: QueueId) -> Option<Queue>;

    /// Lends a queue, if it exists.
    fn with_queue<R>(&self, id: QueueId, f: impl FnOnce(&mut Queue) -> R) -> Option<R>;

    /// Lends several queues at once; `ids` must be ascending. Missing queues are `None`.
    fn with_queues<R>(&self, ids: &[QueueId], f: impl FnOnce(&mut [Option<&mut Queue>]) -> R) -> R;

    /// Lends a connection's outbound half, if it exists, and afterwards arranges for its unsent
    /// output to be written.
    fn with_outbound<R>(&self, id: ConnectionId, f: impl FnOnce(&mut Outbound) -> R) -> Option<R>;

    /// Requests a call of [`queue_woken`](crate::broker::queue_woken) at this time.
    fn wake_queue_at(&self, id: QueueId, at: Time);

    /// The bytes of waiting messages that a queue may keep in memory before the rest goes to disk.
    fn queue_memory_bytes(&self) -> usize {
        usize::MAX
    }

    /// Carries out a queue's request to the disk. The result is reported later through
    /// [`page_written`](crate::broker::page_written) or a similar verb.
    fn page(&self, _queue: QueueId, _work: PageWork) {}

    /// Resumes a publisher that waited for a slow reader.
    fn resume(&self, publisher: ConnectionId);

    /// Resumes a publisher that waited for a queue to become shorter.
    fn unthrottle(&self, publisher: ConnectionId);

    /// The header readers of all origins.
    fn header_readers(&self) -> HeaderReaders;

    /// The reader of header blocks of this origin.
    fn header_reader(&self, origin: OriginId) -> &'static dyn HeaderReader {
        self.header_readers()(origin)
    }
}
