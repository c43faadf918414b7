//! What is on its way to the receivers of a route.

use std::slice;
use std::sync::Arc;

use crate::confirm::Lsn;
use crate::id::{ConnectionId, VhostId};
use crate::message::{AddressView, Deaths, Publication};

/// Messages of one publisher that differ in nothing but their bodies, with what they carry from queue to queue.
pub(super) struct Letter<'a> {
    pub(super) vhost: VhostId,
    /// Where they were published to.
    pub(super) address: &'a AddressView<'a>,
    pub(super) run: &'a [Publication<'a>],
    pub(super) deaths: Option<Arc<Deaths>>,
    /// The record of the first of them, whose others follow it, if durable queues get them.
    pub(super) first: Lsn,
    /// A connection whose own subscriptions do not get it.
    pub(super) echo_to: Option<ConnectionId>,
}

impl Letter<'_> {
    /// Nobody is given it yet. A dead letter waited before.
    pub(super) fn is_delayed(&self) -> bool {
        self.deaths.is_none() && self.run.first().is_some_and(|first| first.view().head.delay_ms.is_some())
    }

    /// The same with one of its messages, the one that has so many before it.
    pub(super) fn of_one<'a>(&'a self, index: usize, publication: &'a Publication<'a>) -> Letter<'a> {
        let (run, first) = (slice::from_ref(publication), self.first.plus(index));
        Letter { run, first, deaths: self.deaths.clone(), ..*self }
    }
}
