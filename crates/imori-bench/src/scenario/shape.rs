//! The senders and receivers of each subject in one-way scenarios.

use crate::options::{AckOrder, FlowOptions, Level};
use crate::protocol::driver::{Destination, Manner, Terms};

/// The senders and receivers of each subject.
pub(super) struct Shape {
    /// For each publisher, where it sends.
    pub(super) subjects: Vec<Destination>,
    /// For each consumer, what it reads and which place of a publisher that is.
    pub(super) sources: Vec<(Destination, usize)>,
    /// Deliveries of each message.
    pub(super) fan_out: u64,
    /// Places of each publisher.
    pub(super) stride: usize,
    /// Bytes of each body.
    pub(super) size: usize,
    /// Whether consumers subscribe only after everything is published.
    pub(super) is_filled_first: bool,
    /// Whether each message is followed over so many subscribers.
    pub(super) spread_over: Option<u32>,
    /// How safe a message has to be when it is confirmed.
    pub(super) level: Level,
    /// The properties that all messages share, beside their confirms.
    pub(super) manner: Manner,
    /// The order of acknowledgements.
    pub(super) ack_order: AckOrder,
}

/// So many places, of these in turns.
pub(super) fn cycled(places: &[Destination], count: u32) -> Vec<Destination> {
    places.iter().cycle().take(count as usize).cloned().collect()
}

/// How consumers are served.
pub(super) fn terms(flow: &FlowOptions) -> Terms {
    Terms { ack: flow.ack(), prefetch: flow.prefetch, comparisons: flow.comparisons }
}
