//! A queue with its messages on disk: writing and reading pages by the broker's verbs.

use std::collections::BTreeSet;

use imori_core::broker::{self, GetOptions, Got, page_failed, page_read, page_unreadable, page_written};
use imori_core::confirm::Lsn;
use imori_core::delivery::Outcome;
use imori_core::entries::{Entry, GonePage, PageId, PagePlace, PageSource};
use imori_core::error::BrokerError;
use imori_core::id::QueueId;
use imori_core::outbound::SessionId;
use imori_core::paging::{PageDraft, PageWork};
use imori_core::queue::PeekPart;
use imori_core::record::{
    PageEntry, RecordKind, decode_page_entry, decode_purge, decode_settle, encode_page,
};
use imori_core::world::World;
use imori_testkit::{Caller, TestMessage, TestWorld};

use crate::durable::durable;

/// Bytes of memory that a queue may keep here: a few dozen messages.
const SHARE: usize = 20_000;

const MESSAGES: usize = 200;

/// A queue, and a disk that performs its requests when a test says so.
struct Paged<'w> {
    world: &'w TestWorld,
    queue: QueueId,
    /// In the order of writing.
    pages: Vec<Vec<PageEntry>>,
}

impl<'w> Paged<'w> {
    fn new(world: &'w TestWorld, client: &Caller<'_>) -> Paged<'w> {
        world.share.set(SHARE);
        let queue = client.declare_with("q", &durable()).expect("it is allowed");
        for number in 0..MESSAGES {
            let body = format!("{number}");
            client.outgoing("", "q", &TestMessage { body: &body, ..TestMessage::default() });
        }
        Paged { world, queue, pages: Vec::new() }
    }

    fn drafts(&self) -> Vec<PageDraft> {
        let mut drafts = Vec::new();
        let work = std::mem::take(&mut *self.world.work.borrow_mut());
        for (queue, work) in work {
            match work {
                PageWork::Write(more) => drafts.extend(more),
                other => self.world.work.borrow_mut().push((queue, other)),
            }
        }
        drafts
    }

    fn write(&mut self, draft: PageDraft) {
        let place = PagePlace { segment: self.pages.len() as u32, index: 0 };
        self.pages.push(encode_page(&draft));
        page_written(self.world, self.queue, draft, place);
    }

    /// Writes until nothing is left to be written.
    fn write_all(&mut self) {
        loop {
            let drafts = self.drafts();
            if drafts.is_empty() {
                return;
            }
            drafts.into_iter().for_each(|draft| self.write(draft));
        }
    }

    fn asked(&self) -> Vec<(PageId, PageSource)> {
        let work = std::mem::take(&mut *self.world.work.borrow_mut());
        let reads = work.into_iter().filter_map(|(_, work)| match work {
            PageWork::Read(pages) => Some(pages),
            _ => None,
        });
        reads.flatten().collect()
    }

    fn entries(&self, source: &PageSource) -> Vec<Entry> {
        let place = place_of(source);
        let page = &self.pages[place.segment as usize];
        let entries =
            page.iter().map(|entry| decode_page_entry(entry.lsn, &entry.payload, self.world.gauge()));
        entries.collect::<Result<_, _>>().expect("the core wrote it")
    }
}

fn place_of(source: &PageSource) -> PagePlace {
    let PageSource::Segment(place) = source else { unreachable!("nothing was left in the journal") };
    *place
}

/// The bodies that arrived, in order.
fn bodies(text: &str) -> Vec<usize> {
    let bodies = text.split_terminator(';').map(|one| one.rsplit(':').next().unwrap_or_default().parse());
    bodies.collect::<Result<_, _>>().expect("bodies are numbers")
}

#[test]
fn what_was_written_leaves_memory_and_comes_back_in_its_order() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let mut paged = Paged::new(&world, &client);
    let before = world.charged();
    paged.write_all();
    assert!(paged.pages.len() > 3 && world.charged() < before / 2, "{} pages", paged.pages.len());
    assert_eq!(world.depth("q"), Some((MESSAGES, 0)));
    client.consume("q", "c", 0);
    let mut came = bodies(&client.read_all());
    assert!(came.len() < MESSAGES, "the rest is on disk");
    loop {
        let asked = paged.asked();
        if asked.is_empty() {
            break;
        }
        for (id, source) in asked {
            assert_eq!(page_read(&world, paged.queue, id, paged.entries(&source)), 0);
        }
        let text = client.read_all();
        assert!(!text.contains('!'), "it was not given out before");
        came.extend(bodies(&text));
    }
    assert_eq!(came, (0..MESSAGES).collect::<Vec<_>>());
}

#[test]
fn who_drains_a_queue_on_disk_gets_all_of_it_first() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let mut paged = Paged::new(&world, &client);
    paged.write_all();
    let reader = client.consume_granted("q", "c");
    client.grant(reader, (0, 1000), true);
    let mut text = client.read_all();
    assert!(!text.contains("drained"), "the rest is on disk");
    loop {
        let asked = paged.asked();
        if asked.is_empty() {
            break;
        }
        for (id, source) in asked {
            page_read(&world, paged.queue, id, paged.entries(&source));
        }
        text += &client.read_all();
    }
    let came = text.strip_suffix("drained c 1000;").expect("it ends when all came");
    assert_eq!(bodies(came), (0..MESSAGES).collect::<Vec<_>>());
}

#[test]
fn what_could_not_be_written_is_given_out_from_memory() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let paged = Paged::new(&world, &client);
    let drafts = paged.drafts();
    assert!(!drafts.is_empty());
    client.consume("q", "c", 0);
    let before = bodies(&client.read_all()).len();
    assert!(before < MESSAGES, "they are on their way to the disk");
    let mut came: Vec<usize> = (0..before).collect();
    for draft in drafts {
        page_failed(&world, paged.queue, draft);
        came.extend(bodies(&client.read_all()));
    }
    assert_eq!(came, (0..MESSAGES).collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_read_is_told_and_what_is_behind_it_goes_on() {
    for is_lost in [false, true] {
        let world = TestWorld::new();
        let client = world.connect(1);
        let mut paged = Paged::new(&world, &client);
        paged.write_all();
        client.consume("q", "c", 0);
        let mut came = bodies(&client.read_all());
        let (mut missing, mut is_first) = (0, true);
        loop {
            let asked = paged.asked();
            if asked.is_empty() {
                break;
            }
            for (id, source) in asked {
                let len = paged.pages[place_of(&source).segment as usize].len() as u32;
                match (std::mem::take(&mut is_first), is_lost) {
                    (false, _) => {
                        assert_eq!(page_read(&world, paged.queue, id, paged.entries(&source)), 0);
                    }
                    (true, false) => {
                        missing = page_unreadable(&world, paged.queue, id, &source);
                        assert!((2..=len).contains(&missing), "{missing} of {len}");
                    }
                    (true, true) => {
                        missing = page_read(&world, paged.queue, id, Vec::new());
                        assert!((2..=len).contains(&missing), "{missing} of {len}");
                    }
                }
            }
            came.extend(bodies(&client.read_all()));
        }
        assert_eq!(came.len() + missing as usize, MESSAGES, "lost {is_lost}");
        assert!(came.is_sorted(), "lost {is_lost}");
    }
}

#[test]
fn a_page_of_a_queue_that_went_meanwhile_is_given_up() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let mut paged = Paged::new(&world, &client);
    let draft = paged.drafts().swap_remove(0);
    broker::delete_queue(&world, &client.actor(), b"q").unwrap();
    world.work.borrow_mut().clear();
    paged.write(draft);
    let gone = GonePage { place: PagePlace { segment: 0, index: 0 }, is_durable: true };
    let work = world.work.take();
    assert!(matches!(&work[..], [(_, PageWork::Gone(pages))] if *pages == [gone]), "{work:?}");
}

#[test]
fn who_asks_for_one_message_waits_until_its_page_is_read() {
    // What happens to the page, and the answer to the client that waits for it.
    for how in ["it is read", "it is purged", "its queue is deleted"] {
        let world = TestWorld::new();
        let client = world.connect(1);
        let mut paged = Paged::new(&world, &client);
        paged.write_all();
        let options = GetOptions {
            session: SessionId(0),
            label: &|left| format!("{left}").into_bytes().into(),
            settles: false,
        };
        let get = || broker::get(&world, &client.actor(), b"q", &options);
        let mut got = 0;
        while let Ok(Got::Delivered { .. }) = get() {
            got += 1;
        }
        assert!((1..MESSAGES).contains(&got), "the rest is on disk: {got}");
        assert_eq!(get(), Ok(Got::Pending));
        client.send("q", "later");
        assert_eq!((world.unthrottled.borrow().len(), get()), (0, Ok(Got::Pending)), "nothing is known yet");
        client.read_all();
        let answer = match how {
            "it is read" => {
                let (page, source) = paged.asked().into_iter().next().expect("it is asked for");
                let entries = paged.entries(&source);
                assert_eq!(page_read(&world, paged.queue, page, entries), 0);
                Ok(Got::Delivered { left: MESSAGES - got })
            }
            "it is purged" => {
                broker::purge(&world, &client.actor(), b"q").expect("it is there");
                Ok(Got::Empty)
            }
            _ => {
                broker::delete_queue(&world, &client.actor(), b"q").expect("it is there");
                Err(BrokerError::NoQueue("q".into()))
            }
        };
        assert_eq!(*world.unthrottled.borrow(), [client.id], "{how}");
        assert_eq!(get(), answer, "{how}");
        if how == "it is read" {
            assert_eq!(client.read(), format!("{}:{got};", MESSAGES - got));
        }
    }
}

#[test]
fn a_peek_reads_pages_in_their_order_and_changes_nothing() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let mut paged = Paged::new(&world, &client);
    paged.write_all();
    paged.asked();
    let peek = |skip, count| {
        let (_, peek) = broker::peek(&world, &client.actor(), b"q", skip, count).unwrap();
        assert!(!peek.is_being_written);
        let entries = peek.parts.into_iter().flat_map(|part| match part {
            PeekPart::Entries(entries) => entries,
            PeekPart::Page(page) => page.pick(paged.entries(&page.source)),
        });
        let body = |entry: Entry| String::from_utf8(entry.message().view().body.to_vec()).unwrap();
        entries.map(|entry| body(entry).parse::<usize>().unwrap()).collect::<Vec<_>>()
    };
    let depth = world.depth("q");
    for (skip, count) in [(0, MESSAGES), (0, 3), (50, 100), (90, 1), (MESSAGES - 1, 9), (MESSAGES, 9)] {
        let expected: Vec<usize> = (skip..MESSAGES.min(skip + count)).collect();
        assert_eq!(peek(skip, count), expected, "{count} behind {skip}");
    }
    assert_eq!((world.depth("q"), paged.asked().len()), (depth, 0), "a peek asks for nothing");
    // Settled messages are still in their pages, and are not shown.
    let outcome = Outcome::Accept;
    let taken = broker::take(&world, &client.actor(), b"q", (5, usize::MAX), outcome).unwrap();
    assert_eq!(taken.messages.len(), 5);
    assert_eq!(peek(0, MESSAGES), (5..MESSAGES).collect::<Vec<_>>());
}

#[test]
fn a_purge_names_the_records_of_pages_that_nobody_read_without_those_that_stay() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let mut paged = Paged::new(&world, &client);
    client.outgoing("", "q", &TestMessage { body: "later", delay_ms: 1_000, ..TestMessage::default() });
    for body in ["more", "of", "them"].iter().cycle().take(MESSAGES) {
        client.outgoing("", "q", &TestMessage { body, ..TestMessage::default() });
    }
    paged.write_all();
    let delayed = MESSAGES as u64 + 1;
    let before = world.journal.borrow().len();
    assert_eq!(broker::purge(&world, &client.actor(), b"q").map(|(count, _)| count), Ok(2 * MESSAGES));
    let of_kind = |kind| {
        let journal = world.journal.borrow();
        let records = journal.iter().skip(before).filter(|(_, record, _)| record.kind == kind);
        records.map(|(_, record, _)| record.payload.clone()).collect::<Vec<_>>()
    };
    let mut gone = BTreeSet::new();
    for payload in of_kind(RecordKind::Purge) {
        for purged in decode_purge(&payload).expect("it was written") {
            gone.extend(purged.first.0..=purged.last.0);
        }
    }
    assert!(gone.len() > MESSAGES, "{gone:?}");
    for payload in of_kind(RecordKind::Settle) {
        decode_settle(&payload, &mut |record_ref| _ = gone.insert(record_ref.lsn.0)).expect("it was written");
    }
    // The queue's own definition is the first record.
    let first = 2;
    assert!(
        (first..=first + 2 * MESSAGES as u64).all(|lsn| gone.contains(&lsn) != (lsn == first + delayed - 1))
    );
    let tally = world.with_queue(paged.queue, |queue| queue.tally()).expect("it is there");
    assert_eq!(tally.gone.len(), paged.pages.len());
}

#[test]
fn a_message_that_a_purge_overtook_is_recorded_again() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let mut paged = Paged::new(&world, &client);
    paged.write_all();
    broker::purge(&world, &client.actor(), b"q").expect("it is allowed");
    // It was numbered before the purge, and comes after it. A group takes one number more.
    world.number_records_after(Lsn(20));
    let before = world.journal.borrow().len();
    client.outgoing("", "q", &TestMessage { body: "late", ..TestMessage::default() });
    let kinds: Vec<(Lsn, RecordKind)> =
        world.journal.borrow().iter().skip(before).map(|(lsn, record, _)| (*lsn, record.kind)).collect();
    let (message, settle) = (RecordKind::Message, RecordKind::Settle);
    assert_eq!(kinds, [(Lsn(21), message), (Lsn(23), message), (Lsn(24), settle)]);
}
