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

/// Something worth counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// A message was handed in.
    Published,
    /// A message found nobody.
    Unroutable,
    /// A reply found its inbox gone.
    ReplyDropped,
    /// A connection was cut because too much waited for it.
    CutTooSlow,
    /// A connection was cut because it did not finish a large message while others waited for its memory.
    CutUnfinished,
    /// A queue dropped or dead-lettered a message that a consumer rejected.
    DiedRejected,
    /// A queue dropped or dead-lettered a message whose time was over.
    DiedExpired,
    /// A queue dropped or dead-lettered a message for which it had no room.
    DiedOverflow,
    /// A queue dropped or dead-lettered a message that failed too often.
    DiedDeliveryLimit,
    /// A message was dead-lettered, as a consumer rejected it.
    DeadLetteredRejected,
    /// A message was dead-lettered, as its time was over.
    DeadLetteredExpired,
    /// A message was dead-lettered, as its queue had no room.
    DeadLetteredOverflow,
    /// A message was dead-lettered, as it failed too often.
    DeadLetteredDeliveryLimit,
    /// A dead letter found no exchange, or went in a circle.
    DeadLetterDropped,
    /// A message did not go to a subscription whose protocol has no form for its subject, or for so many bytes.
    NoForm,
    /// A fault in the broker's own code ended a connection.
    Fault,
    /// A publisher began to wait until a queue is shorter.
    Throttled,
    /// A publisher began to wait, as its user or vhost had published more than its rate.
    RateLimited,
    /// A publish was refused, as the messages of its vhost take as many bytes as they may.
    BytesRefused,
    /// A queue was declared, whether it was there or not.
    QueueDeclared,
    /// A queue was made.
    QueueCreated,
    /// A queue was deleted.
    QueueDeleted,
}

impl Counter {
    /// Every event.
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

    /// The counter of messages that died in a queue for this reason.
    #[must_use]
    pub fn died(reason: DeathReason) -> Counter {
        match reason {
            DeathReason::Rejected => Counter::DiedRejected,
            DeathReason::Expired => Counter::DiedExpired,
            DeathReason::Overflow => Counter::DiedOverflow,
            DeathReason::DeliveryLimit => Counter::DiedDeliveryLimit,
        }
    }

    /// The counter of dead letters that were sent for this reason.
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

/// Messages that were published, as a trace tells of them.
#[derive(Debug)]
pub struct Sent<'a> {
    /// The vhost.
    pub vhost: VhostId,
    /// Where they were published to.
    pub address: &'a AddressView<'a>,
    /// The first of them; the others differ in their bodies alone.
    pub first: MessageView<'a>,
    /// How many there are.
    pub messages: usize,
    /// Queues, subscriptions and inboxes that have one, counted for each of them.
    pub receivers: usize,
}

/// A change that a client makes to more than messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A queue or an exchange was made.
    Declare,
    /// A queue or an exchange was deleted.
    Delete,
    /// A binding was made.
    Bind,
    /// A binding was taken out.
    Unbind,
    /// The messages that waited in a queue were dropped.
    Purge,
}

impl Change {
    /// The word for it.
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

/// A time that is worth a histogram. Of both a sample is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latency {
    /// From the turn in which a publish came to the one in which its confirm left, where that waited for the journal.
    Confirm,
    /// From the coming of a message that had to wait to the time when its queue first gave it out.
    QueueWait,
}

impl Latency {
    /// Every one.
    pub const ALL: [Latency; 2] = [Latency::Confirm, Latency::QueueWait];
}

/// The world in which the broker's verbs run.
///
/// The server's has a mutex for each queue and connection; the simulator's has a scheduler that decides at each lock
/// who goes on. A closure must not call back for a lock of the same or an earlier kind in the order topology, queue,
/// outbound.
pub trait World {
    /// Tells of the room on the disk.
    type Room: Room;

    /// The time.
    fn now(&self) -> Time;

    /// 128 bits that nobody can guess.
    fn secret(&self) -> [u8; 16];

    /// Finds out who a client is, now or later. Whoever knows no user refuses everybody.
    fn verify(&self, _login: Login) -> Verification {
        Verification::Done(Verdict::Refused)
    }

    /// The parameters by which a user proves to know a password. A name that is nobody's has some too, always equal
    /// ones (SECURITY AUTH-09). `None` where no user may log in that way.
    fn scram_parameters(&self, _user: &[u8]) -> Option<ScramParameters> {
        None
    }

    /// Tells whether all users who log in by a password or a token have keys of SCRAM. A client that is offered SCRAM
    /// uses it before it says which user it is.
    fn all_have_scram_keys(&self) -> bool {
        true
    }

    /// The `ServerSignature` (RFC 5802, 3), by which the broker proves that it knows the keys of a user who has logged
    /// in. `None` where the user has none.
    fn scram_signature(&self, _user: &[u8], _messages: &[u8]) -> Option<[u8; SCRAM_BYTES]> {
        None
    }

    /// Tells whether so much memory is used that publishes have to wait.
    fn is_alarmed(&self) -> bool;

    /// The room on the disk.
    fn room(&self) -> &Self::Room;

    /// The gauge that is charged with the memory of waiting messages.
    fn gauge(&self) -> &Gauge;

    /// Counts.
    fn count(&self, counter: Counter) {
        self.count_many(counter, 1);
    }

    /// Counts something that happened so many times.
    fn count_many(&self, counter: Counter, times: usize);

    /// Decides whether an actor may do something, as [`authorize`] does, and has a refusal noted. No outbound half is
    /// locked.
    ///
    /// # Errors
    /// The reason, in words for the client.
    #[inline]
    fn authorize(&self, actor: &Actor<'_>, action: Action, object: Object<'_>) -> Result<(), Refusal> {
        authorize(actor.identity, action, actor.vhost, object)
            .inspect_err(|refusal| self.refused(actor, refusal))
    }

    /// Takes an actor's connection in as one of its user and vhost, in place of those that it had before. No outbound
    /// half is locked. Whoever knows no limits takes everybody in.
    ///
    /// # Errors
    /// The vhost or the user has as many as it may have.
    fn enter(&self, _actor: &Actor<'_>) -> Result<(), QuotaReached> {
        Ok(())
    }

    /// Claims a client's id for a connection, as long as it is there; false where another connection of the user has it in
    /// this vhost. SECURITY AUTH-07: an id of another user's is another one.
    fn claim_client_id(&self, _actor: &Actor<'_>, _id: &[u8]) -> bool {
        true
    }

    /// Gives up the client's id that a connection has claimed, if it has.
    fn release_client_id(&self, _actor: &Actor<'_>) {}

    /// Opens a session by `open`, unless the connections of the actor's user have as many as they may have. No outbound
    /// half is locked.
    ///
    /// # Errors
    /// They have as many, and `open` was not called.
    fn open_session<R>(&self, _actor: &Actor<'_>, open: impl FnOnce() -> R) -> Result<R, QuotaReached> {
        Ok(open())
    }

    /// How many queues an operator lets a vhost have; `None` where no operator said.
    fn queues_max(&self, _vhost: VhostId) -> Option<usize> {
        None
    }

    /// Takes note of messages that an actor published, with the bytes of their headers and bodies together.
    #[inline]
    fn published(&self, _actor: &Actor<'_>, messages: usize, _bytes: usize) {
        self.count_many(Counter::Published, messages);
    }

    /// Tells whether there is a limit on how much an actor publishes a second. Asked only where there are rates, as
    /// [`Gauge::rates`] tells.
    fn has_rate(&self, _actor: &Actor<'_>) -> bool {
        false
    }

    /// Tells whether an actor's publishes have to wait, as its user or vhost has published more than its rate. The
    /// world sees to it that the connection asks again when that is over.
    fn must_wait_for_rate(&self, _actor: &Actor<'_>) -> bool {
        false
    }

    /// Takes note that the messages in the queues of a vhost have so many bytes more, or fewer. A queue is locked.
    fn bytes_changed(&self, _vhost: VhostId, _change: i64) {}

    /// How many bytes the messages of a vhost may have, if they have as many. Asked only where there are such vhosts, as
    /// [`Gauge::full_vhosts`] tells.
    fn bytes_max_reached(&self, _vhost: VhostId) -> Option<QuotaReached> {
        None
    }

    /// Takes note that an actor was refused something. No outbound half is locked.
    fn refused(&self, _actor: &Actor<'_>, _refusal: &Refusal) {}

    /// Takes note of a change that an actor made, to an object that the action names: for the audit log. No outbound
    /// half is locked.
    fn changed(&self, _actor: &Actor<'_>, _change: Change, _object: &dyn fmt::Display) {}

    /// Takes note of a time. Few are told, so that this may cost a little.
    fn observe(&self, _latency: Latency, _took: Duration) {}

    /// The time at which a publish begins, where the world traces those.
    #[inline]
    fn trace_from(&self) -> Option<Time> {
        None
    }

    /// Takes note of a publish that began at this time. No queue and no outbound half is locked.
    fn trace(&self, _from: Time, _sent: &Sent<'_>) {}

    /// Lends this cell's router, and the routing table as it is now.
    fn with_router<R>(&self, f: impl FnOnce(&mut Router, &Table) -> R) -> R;

    /// Lends the topology. A change of its table is published before this returns, so that
    /// the next publish of every cell sees it.
    fn with_topology<R>(&self, f: impl FnOnce(&mut Topology) -> R) -> R;

    /// Hands records to the journal in this order, which it keeps; each is there after a crash or not. They
    /// are taken in any case, as each has no more bytes than [`World::group_bytes_max`]: a disk that fails ends the
    /// broker, and until then is never done.
    fn append(&self, records: Vec<NewRecord>) -> Appended;

    /// Appends records as [`World::append`] does, but after a crash all of them are there or none. Together they have
    /// no more bytes than [`World::group_bytes_max`].
    fn append_group(&self, records: Vec<NewRecord>) -> Appended;

    /// The number of the last record that anybody handed to the journal: whoever waits for all of them waits for it.
    /// [`Lsn::NEVER`](crate::confirm::Lsn::NEVER) once the journal has refused one.
    fn appended(&self) -> Lsn;

    /// Bytes that the payload of a record, or those of a group together, may have, each with [`RECORD_SLACK_BYTES`]
    /// more.
    ///
    /// [`RECORD_SLACK_BYTES`]: crate::limits::RECORD_SLACK_BYTES
    fn group_bytes_max(&self) -> usize;

    /// Takes in a queue; `None` where there are as many as there may be.
    fn add_queue(&self, queue: Queue) -> Option<QueueId>;

    /// Gives a queue back for good.
    fn remove_queue(&self, id: QueueId) -> Option<Queue>;

    /// Lends a queue, if it is there.
    fn with_queue<R>(&self, id: QueueId, f: impl FnOnce(&mut Queue) -> R) -> Option<R>;

    /// Lends several queues at once; `ids` rise. Those that are not there are `None`.
    fn with_queues<R>(&self, ids: &[QueueId], f: impl FnOnce(&mut [Option<&mut Queue>]) -> R) -> R;

    /// Lends a connection's outbound half, if it is there, and sees to it that what is
    /// unsent in it then gets written.
    fn with_outbound<R>(&self, id: ConnectionId, f: impl FnOnce(&mut Outbound) -> R) -> Option<R>;

    /// Asks for a call of [`queue_woken`](crate::broker::queue_woken) at this time.
    fn wake_queue_at(&self, id: QueueId, at: Time);

    /// Bytes of memory that the waiting messages of a queue may keep before the rest goes to disk.
    fn queue_memory_bytes(&self) -> usize {
        usize::MAX
    }

    /// Carries out a request of a queue to the disk. The result is told later by
    /// [`page_written`](crate::broker::page_written) or one of its siblings.
    fn page(&self, _queue: QueueId, _work: PageWork) {}

    /// Lets a publisher go on that waited for the room of a slow reader.
    fn resume(&self, publisher: ConnectionId);

    /// Lets a publisher go on that waited until a queue is shorter.
    fn unthrottle(&self, publisher: ConnectionId);

    /// The reader of header blocks of this origin.
    fn header_readers(&self) -> HeaderReaders;

    /// The reader of header blocks of this origin.
    fn header_reader(&self, origin: OriginId) -> &'static dyn HeaderReader {
        self.header_readers()(origin)
    }
}
