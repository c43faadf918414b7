//! A queue with delayed messages and little memory, compared with a list of what was sent: whenever the disk
//! answers and wherever the broker ends, each message is delivered once, and not before it is due.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::super::draft::PageWork;
use super::super::test_disk::{Disk, QUEUE, READER, restored, side};
use super::*;
use crate::delivery::{Delivery, Outcome, Taken};
use crate::id::Reader;
use crate::memory::Gauge;
use crate::message::{Address, AddressView, OriginId, Properties, Property, Publication, Span};
use crate::queue::{Arrival, QueueSettings};
use crate::record::{RecordKind, encode_counts, encode_message, encode_settle};
use crate::restore::Leaving;

/// The state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waits,
    /// The message was delivered under this number, and may have been released.
    Out(u64),
    Released,
    Over,
}

#[derive(Debug, Clone)]
struct Sent {
    name: String,
    due: Time,
    is_delayed: bool,
    is_persistent: bool,
    priority: u8,
    state: State,
    failures: u32,
}

struct Bench {
    queue: Queue,
    effects: Effects,
    settings: QueueSettings,
    gauge: Gauge,
    now: Time,
    share: usize,
    disk: Disk,
    work: Vec<PageWork>,
    spilled: Vec<PageDraft>,
    /// By body number.
    sent: BTreeMap<usize, Sent>,
    /// First deliveries of delayed messages in this run.
    order: Vec<usize>,
    pages_seen: usize,
    was_restarted: bool,
}

impl Bench {
    fn new(settings: QueueSettings, share: usize) -> Bench {
        let (gauge, now) = (Gauge::default(), Time(1_000_000));
        Bench {
            queue: side(&settings, &gauge, now).queue,
            effects: Effects::default(),
            settings,
            gauge,
            now,
            share,
            disk: Disk { last: 1, ..Disk::default() },
            work: Vec::new(),
            spilled: Vec::new(),
            sent: BTreeMap::new(),
            order: Vec::new(),
            pages_seen: 0,
            was_restarted: false,
        }
    }

    fn publish(
        &mut self,
        priority: u8,
        is_persistent: bool,
        delay_ms: Option<NonZeroU32>,
        name: &str,
        len: usize,
    ) {
        let number = self.sent.len();
        let body = format!("{number:>len$}");
        let mut properties = Properties::new(OriginId::BROKER);
        (properties.is_persistent, properties.priority, properties.delay_ms) =
            (is_persistent, Some(priority), delay_ms);
        if !name.is_empty() {
            properties.set(Property::MessageId, Span::new(0, name.len()).expect("it is short"));
        }
        let publication = Publication::new(&properties, name.as_bytes(), body.as_bytes());
        let address = Arc::new(Address::new(b"", b"q"));
        let address = AddressView::new(&address);
        let lsn = match is_persistent {
            true => {
                let payload = encode_message(&publication.view(), &address, None, &[QUEUE], self.now);
                self.disk.append(RecordKind::Message, payload, false)
            }
            false => Lsn::NONE,
        };
        let arrival = Arrival { address: &address, deaths: None, lsn, now: self.now };
        self.queue.enqueue(&publication, &arrival, &mut self.effects);
        let delay = delay_ms.map_or(0, |delay| u64::from(delay.get()));
        let sent = Sent {
            name: name.to_owned(),
            due: self.now.after(Duration::from_millis(delay)),
            is_delayed: delay_ms.is_some(),
            is_persistent,
            priority: priority.min(self.settings.priority_max.unwrap_or(0)),
            state: State::Waits,
            failures: 0,
        };
        self.sent.insert(number, sent);
        self.follow_up();
    }

    /// Records the effects, and collects the requests to the disk.
    fn follow_up(&mut self) {
        self.work.extend(self.queue.page_work(self.now, self.share));
        assert!(self.effects.dead().is_empty(), "nobody gets the dead");
        let Effects { settled, counted, .. } = std::mem::take(&mut self.effects);
        if !counted.is_empty() {
            self.disk.append(RecordKind::Count, encode_counts(&counted), false);
        }
        if !settled.is_empty() {
            self.disk.append(RecordKind::Settle, encode_settle(&settled), false);
        }
        self.pages_seen = self.pages_seen.max(self.queue.pages_len());
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
                    self.queue.page_written(&draft, place);
                } else {
                    self.queue.page_failed(draft, self.now);
                }
            }
            PageWork::Read(mut pages) => {
                let (id, source) = pages.swap_remove(choice % pages.len());
                if !pages.is_empty() {
                    self.work.push(PageWork::Read(pages));
                }
                let lost = match self.disk.read(&source, &self.gauge) {
                    Some(entries) => self.queue.page_read(id, entries, self.now, &mut self.effects),
                    // The page is no longer needed, or left the journal meanwhile.
                    None => self.queue.page_unreadable(id, &source),
                };
                assert_eq!(lost, 0, "nothing is lost");
            }
            PageWork::Gone(pages) => {
                for page in pages {
                    self.disk.transient.remove(&page.place).expect("it goes once");
                }
            }
            PageWork::Spared(_) => {}
        }
        self.follow_up();
        true
    }

    /// Repeats all requests until nothing more happens.
    fn rest(&mut self) {
        for times in 0.. {
            self.queue.deliver(self.now, &mut |_, _| Taken::Full, &mut self.effects);
            self.follow_up();
            if !self.io(times, true) {
                return;
            }
            assert!(times < 10_000, "the disk comes to rest");
        }
    }

    fn deliver(&mut self, mut credit: usize) -> Result<(), TestCaseError> {
        let mut given = Vec::new();
        self.queue.wake(READER);
        let mut offer = |_: Reader, delivery: &Delivery<'_>| {
            if credit == 0 {
                return Taken::Full;
            }
            credit -= 1;
            let body = std::str::from_utf8(delivery.message.body).expect("it is a number").trim();
            given.push((
                body.parse::<usize>().expect("it is one"),
                delivery.sequence,
                delivery.failures,
                delivery.is_redelivered,
            ));
            Taken::Unsettled
        };
        self.queue.deliver(self.now, &mut offer, &mut self.effects);
        self.follow_up();
        for (number, sequence, failures, is_redelivered) in given {
            let sent = self.sent.get_mut(&number).expect("it was sent");
            prop_assert!(sent.due <= self.now, "{number} {sent:?} is not due at {:?}", self.now);
            prop_assert!(
                matches!(sent.state, State::Waits | State::Released),
                "{number} {sent:?} came twice"
            );
            prop_assert_eq!(failures, sent.failures, "{} {:?}", number, sent);
            prop_assert!(
                is_redelivered || sent.state == State::Waits,
                "{number} {sent:?} was given out before"
            );
            prop_assert!(
                !is_redelivered || sent.state == State::Released || self.was_restarted,
                "{sent:?} was not"
            );
            if sent.state == State::Waits && sent.is_delayed {
                self.order.push(number);
            }
            sent.state = State::Out(sequence);
        }
        Ok(())
    }

    fn settle(&mut self, index: usize, outcome: Outcome) {
        let out: Vec<usize> = self
            .sent
            .iter()
            .filter(|(_, sent)| matches!(sent.state, State::Out(_)))
            .map(|(number, _)| *number)
            .collect();
        let Some(sent) = index.checked_rem(out.len()).and_then(|at| self.sent.get_mut(&out[at])) else {
            return;
        };
        let State::Out(sequence) = sent.state else { return };
        sent.state = if outcome == Outcome::Accept { State::Over } else { State::Released };
        sent.failures += u32::from(outcome == Outcome::Release { failed: true });
        assert!(self.queue.settle(sequence, outcome, self.now, &mut self.effects), "it is out");
        self.follow_up();
    }

    fn cancel(&mut self, name: &str) -> Result<(), TestCaseError> {
        let cancelled = self.queue.cancel(name.as_bytes(), self.now, &mut self.effects);
        let mut expected = 0;
        for sent in self.sent.values_mut() {
            if sent.name == name && sent.is_delayed && sent.due > self.now && sent.state == State::Waits {
                sent.state = State::Over;
                expected += 1;
            }
        }
        prop_assert_eq!(cancelled, expected, "of {}", name);
        self.follow_up();
        Ok(())
    }

    fn spill(&mut self, share: u64) {
        let through = Lsn(self.disk.last * (share % 8 + 1) / 8);
        self.spilled.extend(self.disk.move_pages(&mut self.queue, through, &self.gauge));
        self.spilled.extend(self.queue.spill(through, 5_000));
    }

    fn write_spilled(&mut self, is_well: bool) {
        for draft in std::mem::take(&mut self.spilled) {
            match is_well {
                true => {
                    let place = self.disk.write(&draft);
                    self.queue.page_written(&draft, place);
                }
                false => self.queue.page_failed(draft, self.now),
            }
        }
        self.follow_up();
    }

    /// Frees the journal as the checkpointer does when it has too many files: no record in it is needed
    /// afterwards.
    fn free_the_journal(&mut self) -> Result<(), TestCaseError> {
        loop {
            self.rest();
            self.spill(7);
            if self.spilled.is_empty() {
                break;
            }
            self.write_spilled(true);
        }
        prop_assert_eq!(self.queue.floor(), None, "the journal is needed");
        self.checkpoint(true);
        let messages = self.disk.journal.values().filter(|(kind, _)| *kind == RecordKind::Message);
        prop_assert_eq!(messages.count(), 0);
        Ok(())
    }

    fn checkpoint(&mut self, removes: bool) {
        // A checkpoint waits for the copies under way.
        self.write_spilled(true);
        self.disk.keep(&mut self.queue, removes);
    }

    fn restart(&mut self, was_clean: bool, written: usize) -> Result<(), TestCaseError> {
        let spilled = std::mem::take(&mut self.spilled);
        let asked = std::mem::take(&mut self.work).into_iter().filter_map(|work| match work {
            PageWork::Write(drafts) => Some(drafts),
            _ => None,
        });
        for draft in asked.flatten().chain(spilled).take(written) {
            self.disk.write(&draft);
        }
        self.disk.end(was_clean);
        let pages = std::mem::take(&mut self.disk.pages);
        let journal = &self.disk.journal;
        let found = Some((&self.disk, &pages));
        let leaving = Some(Leaving { after_bytes: 1_000, page_bytes: 300 });
        let (side, gone) =
            restored(&self.settings, &self.gauge, self.now, was_clean, journal, found, leaving)?;
        (self.disk.pages, self.disk.gone) = (pages, gone);
        (self.queue, self.effects) = (side.queue, side.effects);
        self.queue.add_consumer(READER, 0, false, self.now);
        for sent in self.sent.values_mut() {
            sent.state = match sent.state {
                State::Over => State::Over,
                _ if !sent.is_persistent => State::Over,
                // Without a delivery limit, a delivery leaves no record.
                State::Waits | State::Out(_) => State::Waits,
                State::Released => State::Released,
            };
        }
        self.order.clear();
        self.was_restarted = true;
        self.follow_up();
        Ok(())
    }

    /// Messages of one priority that were delivered in one run came in the order of their due times.
    fn ordered(&self) -> Result<(), TestCaseError> {
        if self.was_restarted {
            return Ok(());
        }
        for priority in 0..3 {
            let of_priority = self.order.iter().filter(|number| self.sent[number].priority == priority);
            let order: Vec<(Time, usize)> =
                of_priority.map(|number| (self.sent[number].due, *number)).collect();
            prop_assert!(order.is_sorted(), "{order:?}");
        }
        Ok(())
    }

    /// Delivers everything, and checks that nothing is left.
    fn drain(&mut self) -> Result<(), TestCaseError> {
        self.now = self.now.after(Duration::from_secs(10));
        for times in 0.. {
            self.rest();
            if self.queue.ready_len() + self.queue.delayed_len() == 0 {
                break;
            }
            assert!(times < 1_000, "it comes to an end");
            self.deliver(50)?;
            while self.sent.values().any(|sent| matches!(sent.state, State::Out(_))) {
                self.settle(0, Outcome::Accept);
            }
        }
        self.ordered()?;
        while self.sent.values().any(|sent| matches!(sent.state, State::Out(_))) {
            self.settle(0, Outcome::Accept);
        }
        self.write_spilled(true);
        self.rest();
        for (number, sent) in &self.sent {
            prop_assert_eq!(sent.state, State::Over, "{} {:?}", number, sent);
        }
        prop_assert_eq!(self.queue.pages_len(), 0, "no page is needed");
        prop_assert_eq!(self.queue.floor(), None, "no record is needed");
        prop_assert_eq!(self.gauge.bytes(), 0, "nothing is charged");
        Ok(())
    }
}

#[derive(Debug, Clone)]
enum Step {
    Publish {
        count: usize,
        priority: u8,
        is_persistent: bool,
        delay_ms: Option<u32>,
        name: &'static str,
        len: usize,
    },
    Deliver(usize),
    Settle(usize, Outcome),
    SettleMany(usize, usize),
    Cancel(&'static str),
    Pass(u64),
    Io {
        choice: usize,
        is_well: bool,
    },
    Rest,
    Spill(u64),
    WriteSpilled(bool),
    Checkpoint(bool),
    Free,
    Restart {
        was_clean: bool,
        written: usize,
    },
}

fn name() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b"), Just("")]
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        4 => Just(Outcome::Accept),
        2 => any::<bool>().prop_map(|failed| Outcome::Release { failed }),
    ];
    let delay_ms = proptest::option::weighted(0.8, 1u32..3_000);
    prop_oneof![
        8 => (1usize..30, 0u8..3, 0..8u8, delay_ms, name(), 3usize..200).prop_map(
            |(count, priority, kind, delay_ms, name, len)| {
                Step::Publish { count, priority, is_persistent: kind > 0, delay_ms, name, len }
            }
        ),
        5 => (1usize..30).prop_map(Step::Deliver),
        4 => (any::<usize>(), outcome).prop_map(|(index, outcome)| Step::Settle(index, outcome)),
        3 => (any::<usize>(), 1usize..30).prop_map(|(index, count)| Step::SettleMany(index, count)),
        2 => name().prop_map(Step::Cancel),
        4 => (0u64..1_500).prop_map(Step::Pass),
        8 => (any::<usize>(), 0..8u8).prop_map(|(choice, kind)| Step::Io { choice, is_well: kind > 0 }),
        2 => Just(Step::Rest),
        3 => any::<u64>().prop_map(Step::Spill),
        2 => any::<bool>().prop_map(Step::WriteSpilled),
        3 => any::<bool>().prop_map(Step::Checkpoint),
        1 => Just(Step::Free),
        1 => (any::<bool>(), 0usize..9).prop_map(|(was_clean, written)| Step::Restart { was_clean, written }),
    ]
}

fn run(settings: QueueSettings, share: usize, steps: &[Step]) -> Result<usize, TestCaseError> {
    let mut bench = Bench::new(settings, share);
    for step in steps {
        match step {
            Step::Publish { count, priority, is_persistent, delay_ms, name, len } => {
                for more in 0..*count as u32 {
                    // Each message has its own due time, as far as the clock is precise enough.
                    let delay_ms = delay_ms.and_then(|delay| NonZeroU32::new(delay + more / 2));
                    bench.publish(*priority, *is_persistent, delay_ms, name, *len);
                }
            }
            Step::Deliver(credit) => bench.deliver(*credit)?,
            Step::Settle(index, outcome) => bench.settle(*index, *outcome),
            Step::SettleMany(index, count) => {
                (0..*count).for_each(|each| bench.settle(index.wrapping_mul(each + 1), Outcome::Accept));
            }
            Step::Cancel(name) if !name.is_empty() => bench.cancel(name)?,
            Step::Cancel(_) => {}
            Step::Pass(ms) => bench.now = bench.now.after(Duration::from_millis(*ms)),
            Step::Io { choice, is_well } => drop(bench.io(*choice, *is_well)),
            Step::Rest => bench.rest(),
            Step::Spill(share) => bench.spill(*share),
            Step::WriteSpilled(is_well) => bench.write_spilled(*is_well),
            Step::Checkpoint(removes) => bench.checkpoint(*removes),
            Step::Free => bench.free_the_journal()?,
            Step::Restart { was_clean, written } => {
                // A clean end writes its last checkpoint after everything else.
                if *was_clean {
                    bench.rest();
                }
                bench.restart(*was_clean, *written)?;
            }
        }
    }
    bench.drain()?;
    Ok(bench.pages_seen)
}

fn settings(priority_max: Option<u8>) -> QueueSettings {
    QueueSettings { is_durable: true, priority_max, ..QueueSettings::default() }
}

fn publish(count: usize, delay_ms: Option<u32>, name: &'static str) -> Step {
    Step::Publish { count, priority: 0, is_persistent: true, delay_ms, name, len: 100 }
}

#[test]
fn delayed_messages_come_once_when_they_are_due_wherever_they_are() {
    let crash = || Step::Restart { was_clean: false, written: 9 };
    for (title, share, steps) in [
        ("in memory", 1_000_000, vec![publish(40, Some(500), "a")]),
        ("on disk for want of memory", 3_000, vec![publish(40, Some(500), "a"), Step::Rest]),
        (
            "copied, and the journal free",
            1_000_000,
            vec![
                publish(40, Some(500), "a"),
                Step::Free,
                crash(),
                Step::Cancel("a"),
                publish(1, Some(9), "b"),
            ],
        ),
        (
            "ready, on disk again, and the broker ends before a checkpoint",
            3_000,
            vec![
                publish(60, Some(5), "a"),
                Step::Free,
                Step::Pass(900),
                Step::Rest,
                crash(),
                Step::Rest,
                crash(),
            ],
        ),
        (
            "ready in memory, out, and the broker ends",
            1_000_000,
            vec![
                publish(20, Some(5), "a"),
                Step::Free,
                Step::Pass(900),
                Step::Rest,
                Step::Deliver(7),
                Step::SettleMany(0, 3),
                crash(),
            ],
        ),
    ] {
        let pages_seen = run(settings(None), share, &steps).unwrap_or_else(|why| panic!("{title}: {why}"));
        assert_eq!(pages_seen > 0, title != "in memory", "{title}");
    }
}

#[test]
fn what_waits_for_its_time_takes_no_more_memory_than_the_queue_may_have() {
    let mut bench = Bench::new(settings(None), 40_000);
    for number in 0..400 {
        bench.publish(0, number % 4 > 0, NonZeroU32::new(1 + number * 7 % 400), "", 1_000);
        bench.rest();
        assert!(bench.queue.delayed_memory() <= 40_000, "{number}");
    }
    let stubs = 400 * 100;
    assert!(bench.gauge.bytes() < 60_000 + stubs, "{} bytes", bench.gauge.bytes());
    bench.drain().expect("all come");
}

#[test]
fn a_page_that_cannot_be_read_holds_nothing_up_and_comes_with_the_next_start() {
    let mut bench = Bench::new(settings(None), 3_000);
    (0..30).for_each(|_| bench.publish(0, true, NonZeroU32::new(5), "a", 100));
    bench.free_the_journal().expect("nothing holds it");
    bench.now = bench.now.after(Duration::from_secs(1));
    bench.restart(true, 0).expect("it starts");
    let (len, mut withheld) = (bench.queue.delayed_len() + bench.queue.ready_len(), 0);
    assert_eq!(len, 30);
    bench.publish(0, true, NonZeroU32::new(1), "", 100);
    bench.now = bench.now.after(Duration::from_secs(1));
    while let Some(at) = bench.work.iter().position(|work| matches!(work, PageWork::Read(_))) {
        let PageWork::Read(pages) = bench.work.swap_remove(at) else { continue };
        withheld +=
            pages.into_iter().map(|(id, source)| bench.queue.page_unreadable(id, &source)).sum::<u32>();
        bench.rest_without_reading();
    }
    assert_eq!((withheld, bench.queue.ready_len(), bench.queue.delayed_len()), (30, 1, 0));
    bench.restart(false, 0).expect("it starts");
    bench.drain().expect("all come");
}

impl Bench {
    fn rest_without_reading(&mut self) {
        self.queue.deliver(self.now, &mut |_, _| Taken::Full, &mut self.effects);
        self.follow_up();
    }
}

#[test]
fn what_of_a_page_does_not_verify_is_lost_alone() {
    let mut bench = Bench::new(settings(None), 3_000);
    (0..30).for_each(|_| bench.publish(0, true, NonZeroU32::new(5), "a", 100));
    bench.rest();
    bench.now = bench.now.after(Duration::from_secs(1));
    let before = bench.queue.delayed_len() + bench.queue.ready_len();
    let mut lost = 0;
    for times in 0.. {
        assert!(times < 1_000, "it comes to an end");
        bench.rest_without_reading();
        let Some(at) = bench.work.iter().position(|work| matches!(work, PageWork::Read(_))) else { break };
        let PageWork::Read(pages) = bench.work.swap_remove(at) else { continue };
        for (id, source) in pages {
            let entries = bench.disk.read(&source, &bench.gauge).expect("it is there");
            let entries = entries.into_iter().skip(1).collect();
            lost += bench.queue.page_read(id, entries, bench.now, &mut bench.effects) as usize;
        }
    }
    assert!(lost > 0);
    assert_eq!((bench.queue.ready_len(), bench.queue.delayed_len()), (before - lost, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn delayed_messages_come_once_and_not_before_they_are_due(
        steps in proptest::collection::vec(step(), 1..120),
        priority_max in proptest::option::of(1u8..3),
        share in prop_oneof![Just(3_000usize), Just(20_000)],
    ) {
        run(settings(priority_max), share, &steps)?;
    }
}
