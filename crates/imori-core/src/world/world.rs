//! The trait that the broker's verbs are generic over.

use std::time::Duration;

use super::access::Access;
use super::observer::Observer;
use super::quotas::Quotas;
use super::reports::{Counter, Latency};
use super::stream_services::StreamServices;
use crate::authorize::Actor;
use crate::confirm::{Confirm, Level};
use crate::id::{ConnectionId, QueueId};
use crate::memory::Gauge;
use crate::message::{HeaderReader, HeaderReaders, OriginId};
use crate::outbound::Outbound;
use crate::paging::PageWork;
use crate::queue::Queue;
use crate::record::{Appended, NewRecord};
use crate::room::{Purpose, Room, Unavailable};
use crate::route::{Router, Table};
use crate::time::Time;
use crate::topology::Topology;

/// The environment in which the broker's verbs run.
///
/// The server's has a mutex for each queue and connection; the simulator's has a scheduler that
/// decides at each lock who continues. A closure must not call back for a lock of the same or an
/// earlier kind in the order topology, queue, outbound.
pub trait World: Access {
    /// The state of the disk.
    type Room: Room;
    /// The limits of users and vhosts.
    type Quotas: Quotas;
    /// What streams need of their environment.
    type Streams: StreamServices;

    /// The current time.
    fn now(&self) -> Time;

    /// 128 unpredictable bits.
    fn secret(&self) -> [u8; 16];

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

    /// Reports messages that an actor published, with the total size of headers and bodies.
    #[inline]
    fn published(&self, _actor: &Actor<'_>, messages: usize, _bytes: usize) {
        self.count_many(Counter::Published, messages);
    }

    /// Reports a sampled latency. Samples are rare, so this may be somewhat costly.
    fn observe(&self, _latency: Latency, _took: Duration) {}

    /// The observer of single messages, while something is traced.
    #[inline]
    fn observer(&self) -> Option<&dyn Observer> {
        None
    }

    /// Lends this cell's router and the current routing table.
    fn with_router<R>(&self, f: impl FnOnce(&mut Router, &Table) -> R) -> R;

    /// Lends the topology. A change of its table is published before this returns, so that the next
    /// publish of every cell sees it.
    fn with_topology<R>(&self, f: impl FnOnce(&mut Topology) -> R) -> R;

    /// Checks whether the journal takes records of this purpose now. A verb asks before it changes anything; the records
    /// that it then appends in the same turn are taken.
    ///
    /// # Errors
    /// [`Unavailable`].
    #[inline]
    fn admits(&self, purpose: Purpose) -> Result<(), Unavailable> {
        if self.room().has_room_for(purpose) { Ok(()) } else { Err(Unavailable::DiskFull) }
    }

    /// Appends records to the journal in this order. After a crash each may be present or not. They
    /// are always accepted, because none exceeds [`World::group_bytes_max`]; if the disk fails the
    /// broker ends, without having reported them as durable.
    fn append(&self, records: Vec<NewRecord>) -> Appended;

    /// Appends records as [`World::append`] does, but after a crash either all are present or none.
    /// Together they must not exceed [`World::group_bytes_max`].
    fn append_group(&self, records: Vec<NewRecord>) -> Appended;

    /// A ticket for this level of every record that this cell has appended so far, which are those of the verb being
    /// carried out and of earlier ones. It is never reached once the journal has refused one of them.
    fn confirm_own(&self, level: Level) -> Confirm;

    /// A ticket for this level of every record that anyone has appended so far: for an answer that another client's
    /// change stands, which may not be durable yet.
    fn confirm_all(&self, level: Level) -> Confirm;

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

    /// The limits of users and vhosts.
    fn quotas(&self) -> &Self::Quotas;

    /// What streams need of their environment.
    fn streams(&self) -> &Self::Streams;

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
