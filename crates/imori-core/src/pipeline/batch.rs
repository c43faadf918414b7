//! Messages that go the same way together.

use std::slice;
use std::sync::Arc;

use crate::confirm::Lsn;
use crate::id::{ConnectionId, VhostId};
use crate::message::{AddressView, Deaths, Publication};

/// Messages of one publisher to one address that differ in nothing but their bodies.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub(crate) vhost: VhostId,
    /// The address they were published to.
    pub(crate) address: &'a AddressView<'a>,
    pub(crate) messages: &'a [Publication<'a>],
    /// The history of a dead letter.
    pub(crate) deaths: Option<&'a Arc<Deaths>>,
    /// The record of the first message, if durable queues keep it. Those of the others follow it.
    pub(crate) first: Lsn,
}

impl<'a> Batch<'a> {
    /// A batch of a publisher, which is not recorded yet.
    #[inline]
    pub(crate) fn new(
        vhost: VhostId,
        address: &'a AddressView<'a>,
        messages: &'a [Publication<'a>],
    ) -> Batch<'a> {
        Batch { vhost, address, messages, deaths: None, first: Lsn::NONE }
    }

    /// The connection whose own subscriptions do not get the batch.
    #[inline]
    pub(crate) fn not_to(&self) -> Option<ConnectionId> {
        self.messages.first().and_then(Publication::left_out)
    }

    /// Tells whether nobody is given it yet. A dead letter waited before.
    pub(crate) fn is_delayed(&self) -> bool {
        !Deaths::any(self.deaths)
            && self.messages.first().is_some_and(|first| first.view().properties.delay_ms.is_some())
    }

    /// Its messages, each as a batch, with their indices.
    pub(crate) fn each(&self) -> impl Iterator<Item = (usize, Batch<'a>)> {
        let Batch { messages, first, .. } = *self;
        messages.iter().enumerate().map(move |(index, message)| {
            let (messages, first) = (slice::from_ref(message), first.plus(index));
            (index, Batch { messages, first, ..*self })
        })
    }
}
