//! A queue with little memory, compared with one that keeps everything there: the same happens to both, and
//! both have to deliver the same, whenever the disk answers and wherever the broker ends.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::test_disk::{Disk, Given, QUEUE, READER, Side, VHOST, restored, side};
use super::*;
use crate::delivery::{Delivery, Outcome, Taken};
use crate::id::{Reader, ReaderId};
use crate::memory::Gauge;
use crate::message::{Address, AddressView, NoHeaders, OriginId, Properties, Property, Publication, Span};
use crate::name::Name;
use crate::queue::{Arrival, DeadLetterTarget, QueueSettings, Selection};
use crate::record::{
    PageEntry, RecordKind, encode_counts, encode_message, encode_page, encode_settle, purge_records,
};
use crate::restore::Leaving;
use crate::selector::Selector;

/// A reader of every third message, which it selects by type.
const SEEKER: Reader = Reader { id: ReaderId { slot: 1, generation: 0 }, ..READER };

impl Side {
    fn deliver(&mut self, now: Time, to: Reader, credit: &mut u32) {
        let given = &mut self.given;
        self.queue.wake(to);
        let mut offer = |reader: Reader, delivery: &Delivery<'_>| {
            if *credit == 0 || reader != to {
                return Taken::Full;
            }
            *credit -= 1;
            let body = String::from_utf8_lossy(delivery.message.body).into_owned();
            given.push((delivery.sequence, body, delivery.failures, delivery.is_redelivered));
            Taken::Unsettled
        };
        self.queue.deliver(now, &mut offer, &mut self.effects);
    }
}

/// Lets a start leave some messages in the journal, in small pages.
fn leaving(share: usize) -> Option<Leaving> {
    Some(Leaving { after_bytes: share / 4, page_bytes: share / 16 })
}

struct Twins {
    paged: Side,
    plain: Side,
    settings: QueueSettings,
    gauge: Gauge,
    now: Time,
    share: usize,
    disk: Disk,
    work: Vec<PageWork>,
    spilled: Vec<PageDraft>,
    next_body: u32,
    pages_seen: usize,
    /// Some of the messages expire.
    has_expiration: bool,
    /// Some readers select, and messages are released to places between others, which a start can tell only
    /// from pages.
    is_selective: bool,
    is_unordered: bool,
    /// The reader that takes messages, and how many more it takes; each answer of the disk delivers.
    taking: (Reader, u32),
}

impl Twins {
    fn new(settings: QueueSettings, share: usize) -> Twins {
        let (gauge, now) = (Gauge::default(), Time(1_000_000));
        Twins {
            paged: side(&settings, &gauge, now),
            plain: side(&settings, &Gauge::default(), now),
            settings,
            gauge,
            now,
            share,
            disk: Disk { last: 1, ..Disk::default() },
            work: Vec::new(),
            spilled: Vec::new(),
            next_body: 0,
            pages_seen: 0,
            has_expiration: false,
            is_selective: false,
            is_unordered: false,
            taking: (READER, 0),
        }
    }

    fn publish(&mut self, priority: u8, is_persistent: bool, expiration_ms: Option<u32>, len: usize) {
        let body = format!("{:>len$}", self.next_body);
        self.next_body += 1;
        self.has_expiration |= expiration_ms.is_some();
        let mut properties = Properties::new(OriginId::BROKER);
        (properties.is_persistent, properties.priority, properties.expiration_ms) =
            (is_persistent, Some(priority), expiration_ms);
        let kinds = [b"a", b"b", b"c"];
        let kind = kinds[self.next_body as usize % kinds.len()];
        properties.set(Property::Type, Span::new(0, 1).expect("it is short"));
        let publication = Publication::new(&properties, kind, body.as_bytes());
        let address = Arc::new(Address::new(b"", b"q"));
        let address = AddressView::new(&address);
        let lsn = match is_persistent {
            true => {
                let payload = encode_message(&publication.view(), &address, None, &[QUEUE], self.now);
                self.disk.append(RecordKind::Message, payload, true)
            }
            false => Lsn::NONE,
        };
        let arrival = Arrival { address: &address, deaths: None, lsn, now: self.now };
        for side in [&mut self.paged, &mut self.plain] {
            side.queue.enqueue(&publication, &arrival, &mut side.effects);
        }
        self.follow_up();
    }

    /// Records the effects, which are the same in both, and collects the requests to the disk.
    fn follow_up(&mut self) {
        let work = self.paged.queue.page_work(self.now, self.share);
        self.work.extend(work);
        let effects = std::mem::take(&mut self.paged.effects);
        let plain = std::mem::take(&mut self.plain.effects);
        // The paged queue does late what the plain one did at once, so each has its own journal.
        self.record(&effects, false);
        self.record(&plain, true);
        self.pages_seen = self.pages_seen.max(self.paged.queue.pages_len());
    }

    fn record(&mut self, effects: &Effects, is_plain: bool) {
        let settled: Vec<_> = effects
            .settled
            .iter()
            .copied()
            .chain(effects.dead().iter().filter_map(|dead| dead.record_ref))
            .collect();
        for (kind, payload) in [
            (RecordKind::Count, (!effects.counted.is_empty()).then(|| encode_counts(&effects.counted))),
            (RecordKind::Settle, (!settled.is_empty()).then(|| encode_settle(&settled))),
            (RecordKind::Purge, purge_records(effects.purged()).pop().map(|record| record.payload)),
        ] {
            let Some(payload) = payload else { continue };
            self.disk.last += 1;
            let records = if is_plain { &mut self.disk.all } else { &mut self.disk.journal };
            records.insert(Lsn(self.disk.last), (kind, payload));
        }
    }

    /// The disk performs one request, with success or without.
    fn io(&mut self, choice: usize, is_well: bool) -> bool {
        if self.work.is_empty() {
            return false;
        }
        match self.work.swap_remove(choice % self.work.len()) {
            PageWork::Write(mut drafts) => {
                let draft = drafts.swap_remove(choice % drafts.len());
                if !drafts.is_empty() {
                    self.work.push(PageWork::Write(drafts));
                }
                if is_well {
                    let place = self.disk.write(&draft);
                    self.paged.queue.page_written(&draft, place);
                } else {
                    self.paged.queue.page_failed(draft, self.now);
                }
            }
            PageWork::Read(mut pages) => {
                let (id, source) = pages.swap_remove(choice % pages.len());
                if !pages.is_empty() {
                    self.work.push(PageWork::Read(pages));
                }
                let lost = match self.disk.read(&source, &self.gauge) {
                    Some(entries) => {
                        self.paged.queue.page_read(id, entries, self.now, &mut self.paged.effects)
                    }
                    // The page may have left the journal meanwhile.
                    None => self.paged.queue.page_unreadable(id, &source),
                };
                assert_eq!(lost, 0, "nothing is lost");
            }
            PageWork::Gone(pages) => {
                for page in pages {
                    assert!(!page.is_durable, "the checkpointer asks for durable ones");
                    self.disk.transient.remove(&page.place).expect("it goes once");
                }
            }
            PageWork::Spared(_) => {}
        }
        self.take();
        self.follow_up();
        true
    }

    fn take(&mut self) {
        let (to, left) = &mut self.taking;
        if *left > 0 {
            self.paged.deliver(self.now, *to, left);
        }
    }

    /// Performs all requests, until the disk has nothing left to do.
    fn calm(&mut self, choice: usize) {
        for times in 0.. {
            if !self.io(choice, true) {
                return;
            }
            assert!(times < 10_000, "the disk comes to rest");
        }
    }

    /// Adds readers that select.
    fn add_seeker(&mut self) {
        if self.is_selective {
            return;
        }
        self.is_selective = true;
        for side in [&mut self.paged, &mut self.plain] {
            let selector = Some(Selector::parse("JMSType = 'b'").expect("it is one"));
            let selection =
                Selection { selector, drops_unwanted: false, is_browser: false, headers: |_| &NoHeaders };
            side.queue.add_seeker(SEEKER, 0, false, selection, self.now);
        }
    }

    fn deliver(&mut self, to: Reader, credit: u32, choice: usize) -> Result<(), TestCaseError> {
        let mut of_plain = credit;
        self.plain.deliver(self.now, to, &mut of_plain);
        self.taking = (to, credit);
        for times in 0.. {
            assert!(times < 3_000, "the disk comes to rest");
            self.take();
            self.follow_up();
            if self.taking.1 == of_plain || !self.io(choice, true) {
                break;
            }
        }
        self.taking.1 = 0;
        // Messages that expired behind the last delivery are at the front now.
        self.rest(choice)?;
        self.same()
    }

    /// Checks that both delivered the same, and have the same messages left.
    fn same(&mut self) -> Result<(), TestCaseError> {
        let shown = |given: &[Given]| -> Vec<(String, u32)> {
            given.iter().map(|(_, body, failures, _)| (body.trim().to_owned(), *failures)).collect()
        };
        let (mut paged, mut plain) = (shown(&self.paged.given), shown(&self.plain.given));
        if self.is_unordered {
            paged.sort();
            plain.sort();
        }
        prop_assert_eq!(paged, plain);
        for (paged, plain) in self.paged.given.iter().zip(&self.plain.given) {
            prop_assert!(self.is_unordered || paged.3 >= plain.3, "{:?} was given out before", paged);
        }
        prop_assert_eq!(self.paged.queue.unsettled_len(), self.plain.queue.unsettled_len());
        Ok(())
    }

    fn settle(&mut self, index: usize, outcome: Outcome) {
        if self.paged.given.is_empty() {
            return;
        }
        let index = index % self.paged.given.len();
        for side in [&mut self.paged, &mut self.plain] {
            let (sequence, ..) = side.given.remove(index);
            assert!(side.queue.settle(sequence, outcome, self.now, &mut side.effects), "it is out");
        }
        self.follow_up();
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.after(time);
        for side in [&mut self.paged, &mut self.plain] {
            side.queue.expire(self.now, &mut side.effects);
        }
        self.follow_up();
    }

    /// Repeats all requests until nothing more happens, and checks that both have the same messages.
    fn rest(&mut self, choice: usize) -> Result<(), TestCaseError> {
        for times in 0.. {
            assert!(times < 1_000, "it comes to rest: {:?}", self.work);
            self.calm(choice);
            self.paged.queue.expire(self.now, &mut self.paged.effects);
            self.plain.queue.expire(self.now, &mut self.plain.effects);
            let has_changed = !self.paged.effects.dead().is_empty() || !self.paged.effects.settled.is_empty();
            self.follow_up();
            if !has_changed && self.work.is_empty() {
                break;
            }
        }
        // A message that failed too often before the restart dies when it is read. A message that expired on
        // disk reaches the front later than one in memory, possibly behind a released one.
        let is_late = self.settings.delivery_limit.is_some() || self.has_expiration;
        let (paged, plain) = (self.paged.queue.ready_len(), self.plain.queue.ready_len());
        // A seeker finds expired messages where it looks, and it looks later at those on disk.
        let is_early = self.has_expiration && self.is_selective;
        prop_assert!(paged == plain || paged > plain && is_late || is_early, "{paged} {plain}");
        prop_assert_eq!(self.paged.queue.unsettled_len(), self.plain.queue.unsettled_len());
        Ok(())
    }

    /// The checkpointer copies old messages; the disk writes them later.
    fn spill(&mut self, share: u64) {
        let through = Lsn(self.disk.last * (share % 8 + 1) / 8);
        self.spilled.extend(self.disk.move_pages(&mut self.paged.queue, through, &self.gauge));
        self.spilled.extend(self.paged.queue.spill(through, 5_000));
    }

    fn write_spilled(&mut self, is_well: bool) {
        for draft in std::mem::take(&mut self.spilled) {
            match is_well {
                true => {
                    let place = self.disk.write(&draft);
                    self.paged.queue.page_written(&draft, place);
                }
                false => self.paged.queue.page_failed(draft, self.now),
            }
        }
        self.follow_up();
    }

    /// A checkpoint forgets what is below its floor and removes free pages, unless a crash comes first.
    fn checkpoint(&mut self, removes: bool) {
        // A checkpoint waits for the copies under way.
        self.write_spilled(true);
        self.disk.keep(&mut self.paged.queue, removes);
    }

    /// The broker ends and starts again. Outstanding requests to the disk are performed, or not.
    fn restart(&mut self, was_clean: bool, is_written: bool) -> Result<(), TestCaseError> {
        let spilled = std::mem::take(&mut self.spilled);
        let asked = std::mem::take(&mut self.work).into_iter().filter_map(|work| match work {
            PageWork::Write(drafts) => Some(drafts),
            _ => None,
        });
        for draft in asked.flatten().chain(spilled).filter(|_| is_written) {
            self.disk.write(&draft);
        }
        self.disk.end(was_clean);
        let pages = std::mem::take(&mut self.disk.pages);
        let (paged, gone) = restored(
            &self.settings,
            &self.gauge,
            self.now,
            was_clean,
            &self.disk.journal,
            Some((&self.disk, &pages)),
            leaving(self.share),
        )?;
        self.disk.pages = pages;
        self.disk.gone = gone;
        let plain = Gauge::default();
        let (plain, _) = restored(&self.settings, &plain, self.now, was_clean, &self.disk.all, None, None)?;
        (self.paged, self.plain) = (paged, plain);
        for side in [&mut self.paged, &mut self.plain] {
            side.queue.add_consumer(READER, 0, false, self.now);
        }
        self.follow_up();
        Ok(())
    }
}

#[derive(Debug, Clone)]
enum Step {
    Publish { count: usize, priority: u8, is_persistent: bool, expiration_ms: Option<u32>, len: usize },
    Deliver(u32),
    Select(u32),
    Settle(usize, Outcome),
    SettleMany(usize, usize),
    Pass(u64),
    Io { choice: usize, is_well: bool },
    Rest,
    Spill(u64),
    WriteSpilled(bool),
    Checkpoint(bool),
    Purge,
    Restart { was_clean: bool, is_written: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        4 => Just(Outcome::Accept),
        2 => any::<bool>().prop_map(|failed| Outcome::Release { failed }),
        1 => Just(Outcome::Reject),
    ];
    prop_oneof![
        8 => (1usize..40, 0u8..3, 0..8u8, proptest::option::weighted(0.1, 1u32..3_000), 3usize..200).prop_map(
            |(count, priority, kind, expiration_ms, len)| {
                Step::Publish { count, priority, is_persistent: kind > 0, expiration_ms, len }
            }
        ),
        5 => (1u32..30).prop_map(Step::Deliver),
        6 => (any::<usize>(), outcome).prop_map(|(index, outcome)| Step::Settle(index, outcome)),
        4 => (any::<usize>(), 1usize..30).prop_map(|(index, count)| Step::SettleMany(index, count)),
        1 => (0u64..1_000).prop_map(Step::Pass),
        8 => (any::<usize>(), 0..8u8).prop_map(|(choice, kind)| Step::Io { choice, is_well: kind > 0 }),
        2 => Just(Step::Rest),
        3 => any::<u64>().prop_map(Step::Spill),
        2 => any::<bool>().prop_map(Step::WriteSpilled),
        3 => any::<bool>().prop_map(Step::Checkpoint),
        1 => Just(Step::Purge),
        1 => any::<(bool, bool)>().prop_map(|(was_clean, is_written)| Step::Restart { was_clean, is_written }),
    ]
}

fn run(settings: QueueSettings, share: usize, steps: &[Step]) -> Result<usize, TestCaseError> {
    let mut twins = Twins::new(settings, share);
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Publish { count, priority, is_persistent, expiration_ms, len } => {
                for _ in 0..*count {
                    twins.publish(*priority, *is_persistent, *expiration_ms, *len);
                }
            }
            Step::Deliver(credit) => {
                twins.rest(number)?;
                twins.deliver(READER, *credit, number)?;
            }
            Step::Select(credit) => {
                twins.add_seeker();
                twins.rest(number)?;
                twins.deliver(SEEKER, *credit, number)?;
            }
            Step::Settle(index, outcome) => twins.settle(*index, *outcome),
            Step::SettleMany(index, count) => {
                (0..*count).for_each(|each| twins.settle(index.wrapping_mul(each + 1), Outcome::Accept));
            }
            Step::Pass(ms) => twins.pass(Duration::from_millis(*ms)),
            Step::Io { choice, is_well } => drop(twins.io(*choice, *is_well)),
            Step::Rest => twins.rest(number)?,
            Step::Spill(share) => twins.spill(*share),
            Step::WriteSpilled(is_well) => twins.write_spilled(*is_well),
            Step::Checkpoint(removes) => twins.checkpoint(*removes),
            Step::Purge => {
                for side in [&mut twins.paged, &mut twins.plain] {
                    side.queue.purge(twins.now, &mut side.effects);
                    prop_assert_eq!(side.queue.ready_len(), 0);
                }
                twins.follow_up();
            }
            Step::Restart { was_clean, is_written } => {
                twins.rest(number)?;
                twins.restart(*was_clean, *is_written)?;
                twins.rest(number)?;
                if twins.is_selective {
                    twins.is_unordered = true;
                    break;
                }
            }
        }
    }
    // Everything is delivered, and nothing is left.
    twins.rest(0)?;
    for times in 0.. {
        if twins.paged.queue.ready_len() == 0 {
            break;
        }
        assert!(times < 1_000, "it comes to an end");
        let credit = if twins.is_unordered { u32::MAX } else { 100 };
        twins.deliver(READER, credit, 0)?;
        (0..twins.paged.given.len()).for_each(|_| twins.settle(0, Outcome::Accept));
        twins.rest(0)?;
    }
    (0..twins.paged.given.len()).for_each(|_| twins.settle(0, Outcome::Accept));
    twins.rest(0)?;
    twins.write_spilled(true);
    twins.rest(0)?;
    prop_assert_eq!(twins.paged.queue.pages_len(), 0, "no page is needed");
    prop_assert_eq!(twins.paged.queue.floor(), None, "no record is needed");
    prop_assert_eq!(twins.gauge.bytes(), 0, "nothing is charged");
    Ok(twins.pages_seen)
}

fn settings(priority_max: Option<u8>, delivery_limit: Option<u32>, is_dead_lettering: bool) -> QueueSettings {
    let target = DeadLetterTarget { exchange: Name::from("dlx"), routing_key: None };
    QueueSettings {
        is_durable: true,
        priority_max,
        delivery_limit,
        dead_letter: is_dead_lettering.then_some(target),
        ..QueueSettings::default()
    }
}

#[test]
fn pages_follow_each_other_as_their_messages_do_whatever_their_records() {
    for lsns in [[4, 5, 6, 7], [5, 4, 6, 7], [9, 3, 4, 5], [2, 8, 3, 9], [9, 9, 9, 9]] {
        let mut queue =
            Queue::new(VHOST, Name::from("q"), settings(None, None, false), Gauge::default(), Time(0));
        queue.make_durable(QUEUE);
        let (properties, address) = (Properties::new(OriginId::BROKER), Arc::new(Address::new(b"", b"q")));
        for lsn in lsns.map(Lsn) {
            let arrival = Arrival { address: &AddressView::new(&address), deaths: None, lsn, now: Time(0) };
            queue.enqueue(&Publication::new(&properties, b"", b"body"), &arrival, &mut Effects::default());
        }
        let mut entries: Vec<PageEntry> = Vec::new();
        for index in 0..lsns.len() as u32 {
            // Each page in a segment of its own.
            for draft in queue.spill(Lsn(10), 1) {
                entries.extend(encode_page(&draft));
                queue.page_written(&draft, PagePlace { segment: index, index: 0 });
            }
        }
        assert_eq!(entries.iter().map(|entry| entry.lsn.0).collect::<Vec<_>>(), lsns);
        assert!(entries.is_sorted_by(|one, next| one.position < next.position), "{lsns:?}: {entries:?}");
    }
}

#[test]
fn what_expires_on_disk_behind_a_released_message_goes_after_it() {
    let publish = |count, expiration_ms| Step::Publish {
        count,
        priority: 0,
        is_persistent: false,
        expiration_ms,
        len: 15,
    };
    let release = Step::Settle(0, Outcome::Release { failed: false });
    let steps = [publish(1, None), publish(60, Some(1)), Step::Deliver(1), Step::Pass(1), release];
    let pages_seen = run(settings(None, None, false), 3_000, &steps).expect("both give out the same");
    assert!(pages_seen > 0, "some of it was on disk");
}

#[test]
fn what_is_read_while_it_leaves_the_journal_is_in_one_page() {
    let publish = |count, is_persistent, len| Step::Publish {
        count,
        priority: 0,
        is_persistent,
        expiration_ms: None,
        len,
    };
    let restart = |is_written| Step::Restart { was_clean: false, is_written };
    let before = [publish(1, false, 3), publish(15, true, 8), Step::Spill(5), publish(10, true, 3)];
    // Pages that are being moved while they are read, and copies of messages behind them.
    let moving =
        [Step::Spill(4), publish(1, false, 3), Step::Deliver(13), publish(1, false, 3), Step::Spill(3)];
    let steps = before.into_iter().chain([restart(false)]).chain(moving).chain([restart(true)]);
    run(settings(None, Some(0), false), 3_000, &steps.collect::<Vec<_>>()).expect("their order stays");
}

#[test]
fn a_purge_drops_every_part_of_a_page_and_nothing_that_is_out() {
    let publish = |count, is_persistent, len| Step::Publish {
        count,
        priority: 0,
        is_persistent,
        expiration_ms: None,
        len,
    };
    for front in 1..20 {
        for given in [0, 1, front as u32 + 1, front as u32 + 3] {
            // Copied into one page first, and later on disk alone with others in between.
            let mut steps = vec![publish(front, false, 100)];
            (0..6).for_each(|_| steps.extend([publish(1, true, 3), publish(1, false, 3)]));
            steps.extend([Step::Spill(100), Step::WriteSpilled(true), publish(40, false, 100)]);
            steps.extend([Step::Deliver(given), publish(40, false, 100), Step::Purge]);
            steps.push(Step::Restart { was_clean: false, is_written: true });
            run(settings(None, None, false), 3_000, &steps)
                .unwrap_or_else(|error| panic!("{front} in front, {given} out: {error}"));
        }
    }
}

/// Steps in which some readers select.
fn selective_step() -> impl Strategy<Value = Step> {
    prop_oneof![6 => step(), 1 => (1u32..30).prop_map(Step::Select)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_paged_queue_is_looked_through_as_one_in_memory_is(
        steps in proptest::collection::vec(selective_step(), 1..120),
        priority_max in proptest::option::of(1u8..3),
        is_dead_lettering: bool,
        share in prop_oneof![Just(3_000usize), Just(20_000)],
    ) {
        run(settings(priority_max, None, is_dead_lettering), share, &steps)?;
    }

    #[test]
    fn a_paged_queue_does_what_one_in_memory_does(
        steps in proptest::collection::vec(step(), 1..120),
        priority_max in proptest::option::of(1u8..3),
        delivery_limit in proptest::option::of(0u32..3),
        is_dead_lettering: bool,
        share in prop_oneof![Just(3_000usize), Just(20_000)],
    ) {
        run(settings(priority_max, delivery_limit, is_dead_lettering), share, &steps)?;
    }
}
