//! What a stream has beside the messages of its queue: their index, consumers, and messages that are not safe yet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::consumer::StreamConsumer;
use super::cursor::Cursors;
use super::form::StreamRefusal;
use super::get::Get;
use super::index::Index;
use super::settings::StreamSettings;
use crate::confirm::{Confirm, Lsn, Progress};
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
    /// The id of the last message.
    pub(crate) last_id: Option<Box<[u8]>>,
    /// Messages that have not reached the stream's level and answers that wait, in order.
    unreached: VecDeque<Unreached>,
    /// One above the last message that readers may see.
    pub(crate) visible_end: u64,
    /// Numbers that were given to messages that are not in the stream yet.
    reserved: u64,
    pub(crate) consumers: BTreeMap<Name, StreamConsumer>,
    /// The consumers of connections.
    pub(crate) cursors: Cursors,
    pub(crate) gets: VecDeque<Get>,
    /// When messages with a time to live of their own go.
    pub(crate) ttls: BTreeSet<(Time, u64)>,
    /// The stream stopped to let others have its cell, and goes on as soon as it is woken.
    pub(crate) is_busy: bool,
    /// Answers to publishers that wait for nothing.
    pub(crate) answers: Vec<Answer>,
    /// The cell was asked to tell when the journal has progressed.
    is_awaited: bool,
    /// The record of the stream's last sequence number.
    pub(crate) marked: Lsn,
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
            last_id: None,
            unreached: VecDeque::new(),
            visible_end: first,
            reserved: 0,
            consumers: BTreeMap::new(),
            cursors: Cursors::default(),
            gets: VecDeque::new(),
            ttls: BTreeSet::new(),
            is_busy: false,
            answers: Vec::new(),
            is_awaited: false,
            marked: Lsn::NONE,
        }
    }

    /// The settings.
    pub fn settings(&self) -> &StreamSettings {
        &self.settings
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

    /// Gives the next message its sequence number, before it is in the stream; `next` is the first free one.
    pub(crate) fn reserve(&mut self, next: u64) -> u64 {
        self.reserved += 1;
        next + self.reserved - 1
    }

    /// Notes that a message is in the stream; `confirm` tells when it is at the stream's level.
    pub(crate) fn note(&mut self, sequence: u64, confirm: Confirm, answer_to: Option<&[u8]>) {
        self.reserved = self.reserved.saturating_sub(1);
        let answer_to = answer_to.filter(|_| !self.settings.is_silent);
        let answer = answer_to.map(|to| Answer { to: Name::new(to), what: Answered::Published(sequence) });
        self.unreached.push_back(Unreached { sequence, confirm, answer });
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
        self.consumers.values().filter_map(StreamConsumer::next_due).chain(ttl).min()
    }
}
