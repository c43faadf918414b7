//! Batches: messages that take the same route together.

use std::slice;
use std::sync::Arc;

use crate::confirm::Lsn;
use crate::id::{ConnectionId, VhostId};
use crate::message::{AddressView, Deaths, Publication};

/// Messages of one publisher to one address that differ only in their bodies.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub(crate) vhost: VhostId,
    /// The address they were published to.
    pub(crate) address: &'a AddressView<'a>,
    pub(crate) messages: &'a [Publication<'a>],
    /// The history of a dead letter.
    pub(crate) deaths: Option<&'a Arc<Deaths>>,
    /// The record of the first message, if durable queues store the batch. The records of the
    /// other messages follow.
    pub(crate) first: Lsn,
}

impl<'a> Batch<'a> {
    /// A publisher's batch that has not been recorded yet.
    #[inline]
    pub(crate) fn new(
        vhost: VhostId,
        address: &'a AddressView<'a>,
        messages: &'a [Publication<'a>],
    ) -> Batch<'a> {
        Batch { vhost, address, messages, deaths: None, first: Lsn::NONE }
    }

    /// The connection excluded from receiving the batch.
    #[inline]
    pub(crate) fn not_to(&self) -> Option<ConnectionId> {
        self.messages.first().and_then(Publication::left_out)
    }

    /// Whether delivery must be delayed. A dead letter has already waited.
    pub(crate) fn is_delayed(&self) -> bool {
        !Deaths::any(self.deaths)
            && self.messages.first().is_some_and(|first| first.view().properties.delay_ms.is_some())
    }

    /// Iterates over the messages, each as a batch of its own, with their indices.
    pub(crate) fn each(&self) -> impl Iterator<Item = (usize, Batch<'a>)> {
        let Batch { messages, first, .. } = *self;
        messages.iter().enumerate().map(move |(index, message)| {
            let (messages, first) = (slice::from_ref(message), first.plus(index));
            (index, Batch { messages, first, ..*self })
        })
    }
}
