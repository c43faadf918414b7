//! What readers see before the journal has progressed, and numbers after a restart.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use super::{Outlet, Sent};
use crate::confirm::{Level, Lsn, Progress};
use crate::entries::{PageFacts, PagePlace};
use crate::id::{DurableQueueId, VhostId};
use crate::index::Filter;
use crate::memory::Gauge;
use crate::message::{
    Address, AddressView, OriginId, Properties, Publication, Rollup, Schedule, ScheduleTimes, StreamAsks,
    StreamPublish, TOPIC_EXCHANGE,
};
use crate::name::Name;
use crate::paging::PageDraft;
use crate::pipeline::record_of;
use crate::policy::QueueKind;
use crate::queue::{Arrival, Effects, Queue, QueueSettings};
use crate::record::{Definition, PageEntry, encode_page, removed_records};
use crate::restore::Restore;
use crate::route::hamt::Seed;
use crate::route::{Table, TableLimits};
use crate::stream::{Advisory, Get, GetForm, MessageQuery, Outgoing, StreamMessage, StreamSettings};
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
    let publication = Publication::new(&properties, b"", b"body");
    queue.reserve_sequence(&publication, b"a");
    queue.append(&publication, &arrival, &mut Effects::default());
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

/// A message of a test: its subject, its time to live, and what its publisher asks.
type Message = (&'static str, Option<u32>, StreamPublish<'static>);

/// Publishes messages to a new stream and returns it with the records of the messages alone, as if a kill had followed
/// the last one at once.
fn published(settings: &QueueSettings, messages: &[Message]) -> (Queue, Vec<Vec<u8>>) {
    let mut queue = Queue::new(VhostId(0), Name::from("s"), settings.clone(), Gauge::default(), NOW);
    queue.make_durable(DurableQueueId(7));
    let mut records = Vec::new();
    for (lsn, (subject, expiration_ms, asked)) in (10..).map(Lsn).zip(messages) {
        let mut properties = Properties::new(OriginId::BROKER);
        properties.expiration_ms = *expiration_ms;
        properties.never_expires = asked.has_ttl;
        properties.is_marker = *subject == "marked";
        let address = Arc::new(Address::new(TOPIC_EXCHANGE, subject.as_bytes()));
        let address = AddressView::new(&address);
        let asks = StreamAsks::from(asked);
        let publication = Publication::new(&properties, b"", b"body").asking(&asks);
        records
            .extend(record_of(&mut queue, &publication, (&address, None), NOW).map(|record| record.payload));
        let arrival = Arrival { address: &address, deaths: None, lsn, now: NOW };
        queue.append(&publication, &arrival, &mut Effects::default());
    }
    (queue, records)
}

/// Restarts a stream from the records of its messages and from pages.
fn restored(settings: &QueueSettings, records: &[Vec<u8>], pages: &[PageDraft]) -> Queue {
    let mut restore = Restore::new(Gauge::default(), NOW, false);
    let (vhost, name) = (VhostId(0), Name::from("s"));
    let definition = Definition::Queue { vhost, name, settings: settings.clone() };
    restore.definition(Lsn(7), &definition.encode()).unwrap();
    restore.define().unwrap();
    let pages: Vec<(PagePlace, Vec<PageEntry>)> =
        (0..).map(|segment| PagePlace { segment, index: 0 }).zip(pages.iter().map(encode_page)).collect();
    for (place, entries) in &pages {
        let lsns = entries.iter().map(|entry| entry.lsn);
        let positions = entries.iter().map(|entry| entry.position);
        restore.page(PageFacts {
            queue: DurableQueueId(7),
            priority: 0,
            place: *place,
            count: entries.len() as u32,
            first: lsns.clone().min().unwrap(),
            last: lsns.max().unwrap(),
            first_position: positions.clone().min().unwrap(),
            last_position: positions.max().unwrap(),
        });
    }
    for (place, entries) in &pages {
        let entries = entries.iter().map(|entry| (entry.lsn, entry.payload.as_ref()));
        restore.delayed_page(*place, entries).unwrap();
    }
    for (lsn, record) in (10..).map(Lsn).zip(records) {
        restore.message(lsn, record, None).unwrap();
    }
    let mut table = Table::new(Seed(1), TableLimits::default());
    table.add_vhost(vhost, Name::from("/"));
    let mut found = None;
    restore.finish(&mut Topology::new(table), &mut |queue| {
        found = Some(queue);
        None
    });
    found.unwrap()
}

/// Everything that the arrival of messages decides.
fn decided(queue: &Queue) -> String {
    let stream = queue.stream().unwrap();
    let index = stream.index();
    let subjects = index
        .all_from(0)
        .map(|sequence| (sequence, String::from_utf8_lossy(index.subject(sequence).unwrap()).into_owned()));
    let marks = index
        .all_from(0)
        .map(|sequence| (stream.roles.never_expires(sequence), stream.roles.is_marker(sequence)));
    let (subjects, marks): (Vec<_>, Vec<_>) = (subjects.collect(), marks.collect());
    format!(
        "{subjects:?} {marks:?} {:?} {:?} {} {} {}",
        stream.ttls,
        stream.roles.first_due(),
        index.bytes(),
        queue.ready_len(),
        queue.last_sequence()
    )
}

#[test]
fn a_restart_knows_what_left_with_a_message() {
    let plain = |subject| (subject, None, StreamPublish::default());
    let asking = |subject, asked| (subject, None, asked);
    let rollup = |rollup| StreamPublish { rollup: Some(rollup), ..StreamPublish::default() };
    let schedule = Arc::new(Schedule {
        times: ScheduleTimes::Every(Duration::from_secs(5)),
        target: Name::from("a"),
        source: None,
        ttl: None,
        is_rollup: false,
    });
    let scheduled = StreamPublish { schedule: Some(schedule), ..StreamPublish::default() };
    let ends = StreamPublish { ended_schedule: Some(b"jobs".into()), ..StreamPublish::default() };
    let replaces = StreamPublish { replaced: Some(1), ..StreamPublish::default() };
    let never = StreamPublish { has_ttl: true, ..StreamPublish::default() };
    let of = |stream: StreamSettings| QueueSettings { stream: Some(Box::new(stream)), ..settings() };
    let limited = QueueSettings { length_max: Some(2), ..settings() };
    let small = QueueSettings { length_bytes_max: Some(90), ..settings() };
    let per_subject = of(StreamSettings { per_subject_max: Some(1), ..StreamSettings::default() });
    for (settings, messages) in [
        (&limited, vec![plain("a"), plain("b"), plain("c"), plain("d")]),
        (&small, vec![plain("a"), plain("b"), plain("c"), plain("d")]),
        (&per_subject, vec![plain("a"), plain("b"), plain("a"), plain("a")]),
        (&settings(), vec![plain("a"), plain("b"), asking("a", rollup(Rollup::Subject)), plain("a")]),
        (&settings(), vec![plain("a"), plain("b"), asking("b", rollup(Rollup::All)), plain("a")]),
        (&settings(), vec![asking("jobs", scheduled.clone()), plain("b")]),
        (&settings(), vec![asking("jobs", scheduled), asking("b", ends)]),
        (&settings(), vec![plain("a"), asking("b", replaces)]),
        (&settings(), vec![asking("a", never), plain("marked"), ("b", Some(77), StreamPublish::default())]),
    ] {
        let (queue, records) = published(settings, &messages);
        assert_eq!(decided(&restored(settings, &records, &[])), decided(&queue), "{messages:?}");
    }
}

/// The page has the messages 1 and 3, so its range contains the number of message 2, which left.
#[test]
fn a_message_that_left_is_in_no_page_that_its_successors_are_in() {
    let stream = StreamSettings { per_subject_max: Some(1), ..StreamSettings::default() };
    let settings = QueueSettings { stream: Some(Box::new(stream)), ..settings() };
    let messages = ["a", "b", "b"].map(|subject| (subject, None, StreamPublish::default()));
    let (mut queue, records) = published(&settings, &messages);
    let pages = queue.spill(Lsn(100), usize::MAX);
    let sequences =
        |page: &PageDraft| -> Vec<u64> { page.entries.iter().map(|entry| entry.envelope.sequence).collect() };
    assert_eq!(pages.iter().map(sequences).collect::<Vec<_>>(), [[1, 3]]);
    let restored = restored(&settings, &records, &pages);
    assert_eq!(decided(&restored), decided(&queue));
    assert_eq!(restored.floor(), None, "no message is in the journal alone");
}
