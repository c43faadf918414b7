//! The publishers, consumers and properties of a one-way scenario.

use crate::options::{AckOrder, FlowOptions, Level};
use crate::protocol::driver::{Destination, Manner, Terms};

/// The layout of a one-way run.
pub(super) struct Shape {
    /// The destination of each publisher.
    pub(super) subjects: Vec<Destination>,
    /// The destination of each consumer, and the index of its place among those of a publisher.
    pub(super) sources: Vec<(Destination, usize)>,
    /// Deliveries per message.
    pub(super) fan_out: u64,
    /// Places per publisher.
    pub(super) stride: usize,
    /// Bytes of each body.
    pub(super) size: usize,
    /// Whether consumers subscribe only after everything is published.
    pub(super) is_filled_first: bool,
    /// Number of subscribers over which the spread of each message is measured, if it is.
    pub(super) spread_over: Option<u32>,
    /// Level of safety required of a confirmed message.
    pub(super) level: Level,
    /// Properties common to all messages, except for confirms.
    pub(super) manner: Manner,
    /// The order of acknowledgements.
    pub(super) ack_order: AckOrder,
}

/// Repeats the places in turns until there are `count`.
pub(super) fn cycled(places: &[Destination], count: u32) -> Vec<Destination> {
    places.iter().cycle().take(count as usize).cloned().collect()
}

/// The terms of the consumers' subscriptions.
pub(super) fn terms(flow: &FlowOptions) -> Terms {
    Terms { ack: flow.ack(), prefetch: flow.prefetch, comparisons: flow.comparisons }
}
