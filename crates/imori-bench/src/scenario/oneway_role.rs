//! The connections of one-way scenarios: publishers and consumers.

use crate::load::consumer::{Consumer, Received};
use crate::load::event_loop::{EventLoop, Role};
use crate::load::publisher::Publisher;
use crate::protocol::driver::Heard;
use crate::record::Timeline;
use crate::record::levels::Levels;

/// The consumers among the roles of a loop.
pub(super) fn consumers_of(consumers: &mut EventLoop<FlowRole>) -> impl Iterator<Item = &mut Consumer> {
    consumers.roles().filter_map(|role| match role {
        FlowRole::Consumer(consumer) => Some(&mut **consumer),
        FlowRole::Publisher(_) => None,
    })
}

/// The role of a connection in one-way scenarios.
pub(super) enum FlowRole {
    Publisher(Box<Publisher>),
    Consumer(Box<Consumer>),
}

/// The counters of all connections of a loop.
pub(super) struct FlowBoard {
    pub(super) received: Received,
    pub(super) timeline: Timeline,
    /// Messages whose confirm may have been lost with a broken connection, by publisher and number.
    pub(super) unknown: Vec<(u16, u32)>,
    /// Confirms of messages received from the broker.
    pub(super) confirms: u64,
    /// The levels reported with the confirms.
    pub(super) levels: Levels,
}

impl FlowBoard {
    /// Starts at zero, for this number of places and priorities.
    pub(super) fn new(places: usize, priorities: u8) -> FlowBoard {
        FlowBoard {
            received: Received::new(places, priorities),
            timeline: Timeline::new(),
            unknown: Vec::new(),
            confirms: 0,
            levels: Levels::default(),
        }
    }
}

impl Role for FlowRole {
    type Board = FlowBoard;

    fn hear(&mut self, heard: &Heard<'_>, now: u64, board: &mut FlowBoard, out: &mut Vec<u8>) {
        match (self, heard) {
            (FlowRole::Publisher(publisher), Heard::Confirmed(Some(confirmed))) => {
                board.confirms += 1;
                board.levels.note(confirmed.level);
                publisher.confirm(confirmed.number, now, &mut board.timeline);
            }
            (FlowRole::Consumer(consumer), Heard::Delivery(delivery)) => {
                consumer.delivery(delivery, now, (&mut board.received, &mut board.timeline), out);
            }
            _ => {}
        }
    }

    fn fill(&mut self, now: u64, board: &mut FlowBoard, out: &mut Vec<u8>) -> bool {
        match self {
            FlowRole::Publisher(publisher) => publisher.fill(now, &mut board.timeline, out),
            FlowRole::Consumer(consumer) => {
                consumer.fill(out);
                false
            }
        }
    }

    fn reads(&self, _unwritten: usize) -> bool {
        true
    }

    fn is_producer(&self) -> bool {
        matches!(self, FlowRole::Publisher(_))
    }

    fn next_due(&self) -> Option<u64> {
        match self {
            FlowRole::Publisher(publisher) => publisher.next_due(),
            FlowRole::Consumer(_) => None,
        }
    }

    fn cut_off(&mut self, _now: u64, board: &mut FlowBoard) {
        if let FlowRole::Publisher(publisher) = self {
            board.unknown.extend(publisher.cut_off());
        }
    }

    fn reopened(&mut self, now: u64, board: &mut FlowBoard) {
        match self {
            FlowRole::Publisher(publisher) => publisher.reopened(),
            FlowRole::Consumer(consumer) => consumer.reopened(),
        }
        board.timeline.reconnected(now);
    }

    fn tick(&mut self, _now: u64, _board: &mut FlowBoard) {
        if let FlowRole::Consumer(consumer) = self {
            consumer.tick();
        }
    }
}
