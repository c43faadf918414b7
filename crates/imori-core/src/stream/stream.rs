//! What a stream has beside the messages of its queue: their index, consumers, and messages that are not safe yet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::arrivals::Arrivals;
use super::batches::Batches;
use super::consumer::StreamConsumer;
use super::consumers::Consumers;
use super::cursor::Cursors;
use super::form::{StreamForm, StreamRefusal};
use super::get::Get;
use super::roles::Roles;
use super::settings::StreamSettings;
use crate::confirm::{Confirm, Lsn, Progress};
use crate::entries::Entry;
use crate::index::Index;
use crate::message::{Receipt, StreamPublish};
use crate::name::Name;
use crate::time::Time;

/// The part of a queue that makes it a stream.
#[derive(Debug)]
pub struct Stream {
    pub(crate) settings: StreamSettings,
    pub(crate) created: Time,
    pub(crate) index: Index,
    /// When the first and the last message came; kept when they are gone.
    pub(crate) first_time: Time,
    pub(crate) last_time: Time,
    /// A message that was the first one to go by age, and when it came; its page need not be read to know.
    pub(crate) ageing: Option<(u64, Time)>,
    /// The id of the last message.
    pub(crate) last_id: Option<Box<[u8]>>,
    /// Messages that have not reached the stream's level and answers that wait, in order.
    unreached: VecDeque<Unreached>,
    /// One above the last message that readers may see.
    pub(crate) visible_end: u64,
    /// Messages that have a number and are not in the stream yet.
    pub(crate) arrivals: Arrivals,
    pub(crate) consumers: Consumers,
    /// The consumers of connections.
    pub(crate) cursors: Cursors,
    pub(crate) gets: VecDeque<Get>,
    /// When messages with a time to live of their own go.
    pub(crate) ttls: BTreeSet<(Time, u64)>,
    /// The parts that messages have besides being read.
    pub(crate) roles: Roles,
    /// All messages below this one never expire.
    pub(crate) ageless_end: u64,
    /// Subjects whose last message expired and that get a marker.
    pub(crate) unmarked: Vec<Name>,
    /// A schedule that is due, or what it publishes, is being read from disk.
    pub(crate) is_schedule_on_disk: bool,
    /// The values of counters by subject.
    pub(crate) counters: BTreeMap<Box<[u8]>, Counter>,
    /// Batches that are not committed.
    pub(crate) batches: Batches,
    /// Stored messages that are to be published again.
    pub(crate) republished: VecDeque<Republished>,
    /// Messages to queues and streams that wait until this stream is unlocked.
    pub(crate) outbox: Vec<Outgoing>,
    /// The stream stopped to let others have its cell, and goes on as soon as it is woken.
    pub(crate) is_busy: bool,
    /// Answers to publishers that wait for nothing.
    pub(crate) answers: Vec<Answer>,
    /// The messages of an archive are being put back; the stream takes no other ones and keeps all of these.
    pub(crate) is_restoring: bool,
    /// The cell was asked to tell when the journal has progressed.
    is_awaited: bool,
    /// The record of the stream's last sequence number.
    pub(crate) marked: Lsn,
}

/// The value of a counter.
#[derive(Debug)]
pub(crate) struct Counter {
    /// The message that tells it.
    pub(crate) last: u64,
    pub(crate) value: Box<[u8]>,
}

/// A stored message that is to be published again.
#[derive(Debug)]
pub(crate) struct Republished {
    /// The message, which may have left the stream meanwhile.
    pub(crate) entry: Entry,
    pub(crate) to: Name,
    /// The message of its subject before it; 0 for none.
    pub(crate) before: u64,
}

/// A message of the stream to other queues.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) subject: Name,
    pub(crate) form: StreamForm,
}

/// A message that has not reached the stream's level, or an answer that waits for the journal.
#[derive(Debug)]
struct Unreached {
    /// The message; 0 for an answer alone.
    sequence: u64,
    confirm: Confirm,
    answer: Option<Answer>,
}

/// An answer of a stream to one of its clients.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) to: Name,
    pub(crate) what: Answered,
}

/// What a stream answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answered {
    /// It has the message with this number.
    Published(u64),
    /// It has the increment with this number, after which the counter has this value.
    Counted(u64, Box<[u8]>),
    /// It has all messages of the batch with this id: the number of the last one, and how many.
    Committed(u64, Box<[u8]>, u64),
    /// It has the message of a batch, which is not committed.
    Staged,
    /// It has had the message before, with this number.
    Duplicate(u64),
    /// It does not take the message.
    Refused(StreamRefusal),
    /// The acknowledgement is recorded.
    Acked,
    /// An answer in the form of its protocol.
    Form(Box<[u8]>),
}

impl Stream {
    /// An empty stream.
    pub(crate) fn new(settings: StreamSettings, now: Time) -> Stream {
        let first = settings.first_sequence.max(1);
        Stream {
            settings,
            created: now,
            index: Index::default(),
            first_time: Time(0),
            last_time: Time(0),
            ageing: None,
            last_id: None,
            unreached: VecDeque::new(),
            visible_end: first,
            arrivals: Arrivals::default(),
            consumers: Consumers::default(),
            cursors: Cursors::default(),
            gets: VecDeque::new(),
            ttls: BTreeSet::new(),
            roles: Roles::default(),
            ageless_end: 0,
            unmarked: Vec::new(),
            is_schedule_on_disk: false,
            counters: BTreeMap::new(),
            batches: Batches::default(),
            republished: VecDeque::new(),
            outbox: Vec::new(),
            is_busy: false,
            answers: Vec::new(),
            is_restoring: false,
            is_awaited: false,
            marked: Lsn::NONE,
        }
    }

    /// The settings of its declaration, with the limits and subjects.
    pub fn settings(&self) -> &StreamSettings {
        &self.settings
    }

    /// Whether a message has to be appended apart from other queues that get it.
    pub(crate) fn appends_apart(&self, asked: Option<&StreamPublish<'_>>) -> bool {
        let settings = &self.settings;
        settings.is_counter
            || settings.stored_as.is_some()
            || asked.is_some_and(|asked| asked.batch.is_some())
    }

    /// Notes the value of a counter that a stored message tells.
    pub(crate) fn note_count(&mut self, subject: &[u8], sequence: u64, value: Box<[u8]>) {
        if self.counters.get(subject).is_none_or(|counter| counter.last < sequence) {
            self.counters.insert(Box::from(subject), Counter { last: sequence, value });
        }
    }

    /// The index of its messages.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// When it was made.
    pub fn created(&self) -> Time {
        self.created
    }

    /// When the first and the last message came.
    pub fn times(&self) -> (Time, Time) {
        (self.first_time, self.last_time)
    }

    /// The consumers by name.
    pub fn consumers(&self) -> impl Iterator<Item = &StreamConsumer> {
        self.consumers.values()
    }

    /// The consumer of this name.
    pub fn consumer(&self, name: &[u8]) -> Option<&StreamConsumer> {
        self.consumers.get(name)
    }

    /// Notes that a message is in the stream; `confirm` tells when it is at the stream's level, and the publisher is
    /// told the receipt.
    pub(crate) fn note(&mut self, sequence: u64, confirm: Confirm, answer: Option<(&[u8], Receipt<'_>)>) {
        let answer = answer.filter(|_| !self.settings.is_silent).map(|(to, receipt)| {
            let what = match receipt {
                Receipt::Plain => Answered::Published(sequence),
                Receipt::Count(value) => Answered::Counted(sequence, Box::from(value)),
                Receipt::Batch(id, count) => Answered::Committed(sequence, Box::from(id), count),
            };
            Answer { to: Name::new(to), what }
        });
        self.unreached.push_back(Unreached { sequence, confirm, answer });
    }

    /// Notes when a message goes that has a time to live of its own. Where markers tell that a message expired, it stays
    /// as long as the marker before it, which would be missed otherwise.
    pub(crate) fn note_ttl(&mut self, sequence: u64, stored: Time, ms: u32) {
        let own = Duration::from_millis(u64::from(ms));
        let min = self.settings.marker_ttl.filter(|_| self.settings.per_subject_max != Some(1));
        let due = stored.after(own.max(min.unwrap_or_default()));
        self.ttls.insert((due, sequence));
    }

    /// Notes that the journal has progressed; the cell tells no more until it is asked again.
    pub(crate) fn progressed(&mut self, progress: Progress) {
        self.is_awaited = false;
        self.reach(progress);
    }

    /// Shows readers the messages that are at the stream's level, and answers their publishers.
    pub(crate) fn reach(&mut self, progress: Progress) {
        while let Some(reached) = self.unreached.pop_front_if(|first| first.confirm.is_reached(progress)) {
            self.visible_end = self.visible_end.max(reached.sequence + 1);
            self.answers.extend(reached.answer);
        }
    }

    /// The confirm to wait for, unless the cell is already asked to.
    pub(crate) fn awaits(&mut self) -> Option<Confirm> {
        let first = self.unreached.front().filter(|_| !self.is_awaited)?;
        self.is_awaited = true;
        Some(first.confirm)
    }

    /// Answers a publisher whose message the stream has had before, though not before the first one is safe.
    pub(crate) fn answer_duplicate(&mut self, to: &[u8], sequence: u64) {
        let answer = Answer { to: Name::new(to), what: Answered::Duplicate(sequence) };
        match self.unreached.iter().find(|first| first.sequence == sequence).map(|first| first.confirm) {
            Some(confirm) => self.answer_at(confirm, answer),
            None => self.answers.push(answer),
        }
    }

    /// Answers a client once `confirm` is reached.
    pub(crate) fn answer_at(&mut self, confirm: Confirm, answer: Answer) {
        self.unreached.push_back(Unreached { sequence: 0, confirm, answer: Some(answer) });
    }

    /// When a consumer has something to do without being asked.
    pub(crate) fn next_due(&self) -> Option<Time> {
        let ttl = self.ttls.first().map(|(due, _)| *due);
        let scheduled = self.roles.first_due().filter(|_| !self.is_schedule_on_disk).map(|(due, _)| due);
        let outgoing = (!self.outbox.is_empty()).then_some(Time(0));
        let others = [ttl, scheduled, outgoing, self.batches.next_due()];
        self.consumers.values().filter_map(StreamConsumer::due).chain(others.into_iter().flatten()).min()
    }
}
