//! Who reads a queue, and whose turn it is.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::id::Reader;

/// Why a consumer was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumeRefusal {
    /// Another consumer has the queue for itself.
    Exclusive,
    /// It wants the queue for itself but others read it.
    InUse,
}

/// The consumers of a queue: in turn among equals, the higher priority first.
#[derive(Debug, Default)]
pub(super) struct Consumers {
    all: HashMap<Reader, Consumer, FixedState>,
    /// Those who can take more, by falling priority.
    turns: Vec<Turn>,
    exclusive: Option<Reader>,
}

#[derive(Debug)]
struct Consumer {
    priority: i32,
    is_waiting: bool,
}

#[derive(Debug)]
struct Turn {
    priority: i32,
    readers: VecDeque<Reader>,
}

impl Consumers {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All consumers, in no particular order.
    pub(super) fn readers(&self) -> impl Iterator<Item = Reader> {
        self.all.keys().copied()
    }

    pub(super) fn admit(&self, is_exclusive: bool) -> Result<(), ConsumeRefusal> {
        match (self.exclusive, is_exclusive) {
            (Some(_), _) => Err(ConsumeRefusal::Exclusive),
            (None, true) if !self.all.is_empty() => Err(ConsumeRefusal::InUse),
            (None, _) => Ok(()),
        }
    }

    pub(super) fn add(&mut self, reader: Reader, priority: i32, is_exclusive: bool) {
        if is_exclusive {
            self.exclusive = Some(reader);
        }
        self.all.insert(reader, Consumer { priority, is_waiting: false });
        self.turn(priority).push_back(reader);
    }

    /// Forgets a consumer; tells whether it was one.
    pub(super) fn remove(&mut self, reader: Reader) -> bool {
        let Some(consumer) = self.all.remove(&reader) else {
            return false;
        };
        if self.exclusive == Some(reader) {
            self.exclusive = None;
        }
        if !consumer.is_waiting {
            self.turn(consumer.priority).retain(|other| *other != reader);
        }
        self.turns.retain(|turn| self.all.values().any(|other| other.priority == turn.priority));
        true
    }

    /// Whose turn it is.
    pub(super) fn next(&self) -> Option<Reader> {
        self.turns.iter().find_map(|turn| turn.readers.front()).copied()
    }

    /// The one whose turn it was has been served: the next of its priority comes.
    pub(super) fn served(&mut self) {
        if let Some(turn) = self.turns.iter_mut().find(|turn| !turn.readers.is_empty()) {
            turn.readers.rotate_left(1);
        }
    }

    /// The one whose turn it was cannot take more until it is woken.
    pub(super) fn wait(&mut self, reader: Reader) {
        let Some(consumer) = self.all.get_mut(&reader) else {
            return;
        };
        if !consumer.is_waiting {
            consumer.is_waiting = true;
            let priority = consumer.priority;
            self.turn(priority).retain(|other| *other != reader);
        }
    }

    /// A consumer can take more again.
    pub(super) fn wake(&mut self, reader: Reader) {
        let Some(consumer) = self.all.get_mut(&reader) else {
            return;
        };
        if consumer.is_waiting {
            consumer.is_waiting = false;
            let priority = consumer.priority;
            self.turn(priority).push_back(reader);
        }
    }

    fn turn(&mut self, priority: i32) -> &mut VecDeque<Reader> {
        let index = self.turns.partition_point(|turn| turn.priority > priority);
        if self.turns.get(index).is_none_or(|turn| turn.priority != priority) {
            self.turns.insert(index, Turn { priority, readers: VecDeque::new() });
        }
        &mut self.turns.get_mut(index).expect("it was found or inserted").readers
    }
}
