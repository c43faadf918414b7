//! A disk for property tests of queues, and a broker that starts from it.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::PageDraft;
use crate::confirm::Lsn;
use crate::delivery::Outcome;
use crate::entries::{Entry, GonePage, JournalRead, PageFacts, PagePlace, PageSource};
use crate::id::{ConnectionId, DurableQueueId, QueueId, Reader, ReaderId, VhostId};
use crate::memory::Gauge;
use crate::name::Name;
use crate::queue::{Effects, Queue, QueueSettings};
use crate::record::{
    Checkpoint, Definition, ManifestPlace, PageEntry, RecordKind, decode_journal_entry, decode_page_entry,
    encode_annotations, encode_counts, encode_page,
};
use crate::restore::{Leaving, Restore};
use crate::route::hamt::Seed;
use crate::route::{Table, TableLimits};
use crate::time::Time;
use crate::topology::Topology;

pub(crate) const READER: Reader = Reader {
    connection: ConnectionId { cell: 0, slot: 0, generation: 0 },
    id: ReaderId { slot: 0, generation: 0 },
};
pub(crate) const QUEUE: DurableQueueId = DurableQueueId(1);
pub(crate) const VHOST: VhostId = VhostId(0);

/// A delivery: body, failures, redelivered.
pub(crate) type Given = (u64, String, u32, bool);

/// A queue, with its deliveries and effects.
pub(crate) struct Side {
    pub(crate) queue: Queue,
    pub(crate) given: Vec<Given>,
    pub(crate) effects: Effects,
}

/// A page on disk.
#[derive(Clone)]
pub(crate) struct DiskPage {
    pub(crate) priority: u8,
    pub(crate) entries: Vec<PageEntry>,
}

/// The disk, with pages and records that are on their way there.
#[derive(Default)]
pub(crate) struct Disk {
    pub(crate) pages: BTreeMap<PagePlace, DiskPage>,
    pub(crate) transient: BTreeMap<PagePlace, DiskPage>,
    pub(crate) next_segment: u32,
    /// Records that are still in the journal; `all` has every record that it ever had.
    pub(crate) journal: BTreeMap<Lsn, (RecordKind, Vec<u8>)>,
    pub(crate) all: BTreeMap<Lsn, (RecordKind, Vec<u8>)>,
    pub(crate) last: u64,
    pub(crate) checkpoint: Checkpoint,
    /// The segments that the manifest lists.
    pub(crate) listed: BTreeSet<u32>,
    pub(crate) floor: Lsn,
    pub(crate) gone: Vec<GonePage>,
}

impl Disk {
    pub(crate) fn append(&mut self, kind: RecordKind, payload: Vec<u8>, is_for_all: bool) -> Lsn {
        self.last += 1;
        let lsn = Lsn(self.last);
        self.journal.insert(lsn, (kind, payload.clone()));
        if is_for_all {
            self.all.insert(lsn, (kind, payload));
        }
        lsn
    }

    pub(crate) fn write(&mut self, draft: &PageDraft) -> PagePlace {
        let place = PagePlace { segment: self.next_segment, index: 0 };
        self.next_segment += 1;
        let page = DiskPage { priority: draft.priority, entries: encode_page(draft) };
        let pages = if draft.is_durable { &mut self.pages } else { &mut self.transient };
        pages.insert(place, page);
        place
    }

    /// Reads a page; `None` if it is gone.
    pub(crate) fn read(&self, source: &PageSource, gauge: &Gauge) -> Option<Vec<Entry>> {
        match source {
            PageSource::Segment(place) => {
                let page = self.pages.get(place).or_else(|| self.transient.get(place))?;
                let entries = page.entries.iter();
                let decode = |entry: &PageEntry| decode_page_entry(entry.lsn, &entry.payload, gauge);
                Some(entries.map(|entry| decode(entry).expect("it was written")).collect())
            }
            PageSource::Journal(read) => self.read_journal(read, gauge),
        }
    }

    pub(crate) fn read_journal(&self, read: &JournalRead, gauge: &Gauge) -> Option<Vec<Entry>> {
        let decode = |lsn: &Lsn| {
            let (_, payload) = self.journal.get(lsn)?;
            Some(decode_journal_entry(*lsn, payload, gauge).expect("it was written"))
        };
        read.lsns.iter().map(decode).collect()
    }

    /// Reads the pages that have to leave the journal; returns the drafts to write elsewhere.
    pub(crate) fn move_pages(&self, queue: &mut Queue, through: Lsn, gauge: &Gauge) -> Vec<PageDraft> {
        let moving = queue.moving_pages(through, 5_000).into_iter();
        let draft = |(id, read): (_, JournalRead)| {
            queue.draft_of(id, self.read_journal(&read, gauge).expect("it is needed there"))
        };
        moving.filter_map(draft).collect()
    }

    /// A checkpoint forgets what is below its floor and removes free pages, unless a crash comes first.
    pub(crate) fn keep(&mut self, queue: &mut Queue, removes: bool) {
        let next = Lsn(self.last + 1);
        let tally = queue.tally();
        let gone: Vec<GonePage> = self.gone.drain(..).chain(tally.gone).collect();
        if !tally.counts.is_empty() {
            self.append(RecordKind::Count, encode_counts(&tally.counts), false);
        }
        for message in &tally.annotations {
            self.append(RecordKind::Annotations, encode_annotations(message), false);
        }
        let floor = tally.floor.map_or(next, |floor| floor.min(next)).max(self.floor);
        let is_gone = |place: &PagePlace| gone.iter().any(|page| page.place == *place);
        self.listed = self.pages.keys().filter(|place| !is_gone(place)).map(|place| place.segment).collect();
        let checkpoint = Checkpoint {
            next_segment: self.next_segment,
            manifest: ManifestPlace::default(),
            doubtful_below: self.checkpoint.doubtful_below,
            doubtful_records_below: self.checkpoint.doubtful_records_below,
            settled: tally.settled,
        };
        self.checkpoint = Checkpoint::decode(&checkpoint.encode()).expect("it was written");
        self.floor = floor;
        self.journal.retain(|lsn, _| *lsn >= floor);
        if !removes {
            // The next checkpoint removes them.
            self.gone = gone;
        } else {
            gone.iter().for_each(|page| drop(self.pages.remove(&page.place).expect("it goes once")));
        }
    }

    /// Ends the broker: transient pages are lost, and so are pages that the checkpoint names as gone.
    pub(crate) fn end(&mut self, was_clean: bool) {
        self.transient.clear();
        self.gone.clear();
        let checkpoint = self.checkpoint.clone();
        let is_listed = |segment| segment >= checkpoint.next_segment || self.listed.contains(&segment);
        self.pages.retain(|place, _| is_listed(place.segment));
        if !was_clean {
            self.checkpoint.doubtful_below = self.next_segment;
        }
    }
}

pub(crate) fn side(settings: &QueueSettings, gauge: &Gauge, now: Time) -> Side {
    let mut queue = Queue::new(VHOST, Name::from("q"), settings.clone(), gauge.clone(), now);
    queue.make_durable(QUEUE);
    queue.add_consumer(READER, 0, false, now);
    Side { queue, given: Vec::new(), effects: Effects::default() }
}

pub(crate) fn restored(
    settings: &QueueSettings,
    gauge: &Gauge,
    now: Time,
    was_clean: bool,
    journal: &BTreeMap<Lsn, (RecordKind, Vec<u8>)>,
    pages: Option<(&Disk, &BTreeMap<PagePlace, DiskPage>)>,
    leaving: Option<Leaving>,
) -> Result<(Side, Vec<GonePage>), TestCaseError> {
    let mut restore = Restore::new(gauge.clone(), now, was_clean);
    if let Some(leaving) = leaving {
        restore = restore.leaving(leaving);
    }
    let definition = Definition::Queue { vhost: VHOST, name: Name::from("q"), settings: settings.clone() };
    restore.definition(Lsn(QUEUE.0), &definition.encode()).expect("it was written");
    restore.define().expect("it is one");
    let floor = pages.map_or(Lsn(1), |(disk, _)| disk.floor);
    if let Some((disk, pages)) = pages {
        restore.checkpoint(Checkpoint::decode(&disk.checkpoint.encode()).expect("it was written"));
        for (place, page) in pages {
            let lsns = || page.entries.iter().map(|entry| entry.lsn);
            let positions = || page.entries.iter().map(|entry| entry.position);
            restore.page(PageFacts {
                queue: QUEUE,
                priority: page.priority,
                place: *place,
                count: page.entries.len() as u32,
                first: lsns().min().expect("there is one"),
                last: lsns().max().expect("there is one"),
                first_position: positions().min().expect("there is one"),
                last_position: positions().max().expect("there is one"),
            });
        }
    }
    for (kind, payload) in journal.values() {
        match kind {
            RecordKind::Settle => restore.settle(payload).expect("it was written"),
            RecordKind::Purge => restore.purge(payload).expect("it was written"),
            RecordKind::Count => restore.count(payload).expect("it was written"),
            RecordKind::Annotations => restore.annotations(payload).expect("it was written"),
            _ => {}
        }
    }
    if let Some((_, pages)) = pages {
        for place in restore.delayed_pages() {
            let entries = pages[&place].entries.iter().map(|entry| (entry.lsn, &*entry.payload));
            restore.delayed_page(place, entries).expect("it was written");
        }
        for place in restore.pages_to_list(floor) {
            let lsns: Vec<Lsn> = pages[&place].entries.iter().map(|entry| entry.lsn).collect();
            restore.page_list(place, &lsns);
        }
    }
    for (lsn, (kind, payload)) in journal {
        if *kind == RecordKind::Message {
            restore.message(*lsn, payload, leaving.map(|_| (lsn.0 / 40) as u32)).expect("it was written");
        }
    }
    let gone = restore.gone_pages();
    let limits =
        TableLimits { queues_max: 9, bindings_max: 9, subscriptions_max: 9, ..TableLimits::default() };
    let mut table = Table::new(Seed(1), limits);
    table.add_vhost(VHOST, Name::from("/"));
    let mut queues = Vec::new();
    let (awakenings, _) = restore.finish(&mut Topology::new(table), &mut |queue| {
        queues.push(queue);
        Some(QueueId { slot: 0, generation: 0 })
    });
    let queue = queues.pop().expect("it is durable");
    let mut side = Side { queue, given: Vec::new(), effects: Effects::default() };
    for sequence in awakenings.iter().flat_map(|awakening| &awakening.failed) {
        side.queue.settle(*sequence, Outcome::Release { failed: false }, now, &mut side.effects);
    }
    Ok((side, gone))
}
