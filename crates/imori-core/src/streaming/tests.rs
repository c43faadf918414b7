//! What readers see before the journal has progressed, and numbers after a restart.

use std::cell::RefCell;
use std::sync::Arc;

use super::{Outlet, Sent};
use crate::confirm::{Level, Lsn, Progress};
use crate::id::{DurableQueueId, VhostId};
use crate::index::Filter;
use crate::memory::Gauge;
use crate::message::{Address, AddressView, OriginId, Properties, Publication, TOPIC_EXCHANGE};
use crate::name::Name;
use crate::policy::QueueKind;
use crate::queue::{Arrival, Effects, Queue, QueueSettings};
use crate::record::{Definition, removed_records};
use crate::restore::Restore;
use crate::route::hamt::Seed;
use crate::route::{Table, TableLimits};
use crate::stream::{Advisory, Get, GetForm, MessageQuery, Outgoing, StreamMessage};
use crate::time::Time;
use crate::topology::Topology;

const NOW: Time = Time(1_000);

/// The numbers of the messages that were sent; 0 for the answer that there is none.
#[derive(Default)]
struct Heard(RefCell<Vec<u64>>);

impl Outlet for Heard {
    fn has_readers(&mut self, _: &Name, _: Option<&Name>) -> bool {
        true
    }

    fn new_pin(&mut self) -> Name {
        Name::from("pin")
    }

    fn advise(&mut self, _: &Advisory<'_>) -> Option<Outgoing> {
        None
    }

    fn may_publish(&mut self, _: &[u8], _: &Name) -> bool {
        true
    }

    fn publish(&mut self, _: &Name, _: &StreamMessage<'_>) -> Option<Outgoing> {
        None
    }

    fn send(&mut self, _: &Name, message: &StreamMessage<'_>) -> Sent {
        match message {
            StreamMessage::Direct { entry, .. } => self.0.borrow_mut().push(entry.envelope().sequence),
            StreamMessage::NotFound(_) => self.0.borrow_mut().push(0),
            _ => {}
        }
        Sent::Taken
    }
}

fn settings() -> QueueSettings {
    QueueSettings { kind: QueueKind::Stream, is_durable: true, ..QueueSettings::default() }
}

/// Puts a message with this record into the stream.
fn append(queue: &mut Queue, lsn: u64) {
    let properties = Properties::new(OriginId::BROKER);
    let address = Arc::new(Address::new(TOPIC_EXCHANGE, b"a"));
    let arrival = Arrival { address: &AddressView::new(&address), deaths: None, lsn: Lsn(lsn), now: NOW };
    queue.reserve_sequence();
    queue.append(&Publication::new(&properties, b"", b"body"), &arrival, &mut Effects::default());
}

fn get_last(queue: &mut Queue) -> Vec<u64> {
    let mut heard = Heard::default();
    queue.get_from_stream(Get::one(Name::from("to"), GetForm::Direct, MessageQuery::LastOf(Filter::all())));
    queue.send_from_stream(NOW, &mut heard, &mut Effects::default());
    heard.0.take()
}

#[test]
fn a_message_that_is_not_safe_yet_does_not_hide_the_last_one() {
    let mut queue = Queue::new(VhostId(0), Name::from("s"), settings(), Gauge::default(), NOW);
    queue.make_durable(DurableQueueId(1));
    assert_eq!(queue.durability().map(|durability| durability.level), Some(Level::Disk));
    append(&mut queue, 1);
    assert_eq!(get_last(&mut queue), [0]);
    queue.stream_progressed(Progress { written: Lsn(1), synced: Lsn(1) });
    append(&mut queue, 2);
    assert_eq!(get_last(&mut queue), [1]);
    queue.stream_progressed(Progress { written: Lsn(2), synced: Lsn(2) });
    assert_eq!(get_last(&mut queue), [2]);
}

#[test]
fn the_number_of_a_removed_message_is_not_given_again() {
    let mut restore = Restore::new(Gauge::default(), NOW, false);
    let queue = Definition::Queue { vhost: VhostId(0), name: Name::from("s"), settings: settings() };
    restore.definition(Lsn(7), &queue.encode()).unwrap();
    restore.define().unwrap();
    for record in removed_records(&[(DurableQueueId(7), 1), (DurableQueueId(7), 2)]) {
        restore.stream(Lsn(8), &record.payload).unwrap();
    }
    let mut table = Table::new(Seed(1), TableLimits::default());
    table.add_vhost(VhostId(0), Name::from("/"));
    let mut last = None;
    restore.finish(&mut Topology::new(table), &mut |queue| {
        last = Some(queue.last_sequence());
        None
    });
    assert_eq!(last, Some(2));
}
