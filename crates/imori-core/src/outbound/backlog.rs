//! Deliveries that wait as messages: their reader is behind, and encoding them for each reader would cost
//! more memory.

use std::collections::VecDeque;
use std::mem::size_of;
use std::sync::Arc;

use crate::delivery::Delivery;
use crate::id::ReaderId;
use crate::message::{Address, AddressView, Deaths, Message};

/// The receiver of a waiting delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Receiver {
    Reader(ReaderId),
    /// The index of an inbox, and its serial number.
    Inbox(u16, u32),
}

/// A delivery that is not encoded yet.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) receiver: Receiver,
    pub(super) message: Arc<Message>,
    pub(super) address: Arc<Address>,
    pub(super) deaths: Option<Arc<Deaths>>,
}

impl Waiting {
    pub(super) fn address(&self) -> AddressView<'_> {
        AddressView::new(&self.address)
    }

    pub(super) fn delivery<'a>(&'a self, address: &'a AddressView<'a>) -> Delivery<'a> {
        Delivery {
            message: self.message.view(),
            shared_body: self.message.shared_body(),
            address,
            deaths: self.deaths.as_ref(),
            sequence: 0,
            failures: 0,
            is_redelivered: false,
            is_last: false,
            is_of_stream: false,
        }
    }

    /// Bytes counted towards the limit of unsent bytes: about what the delivery will take on the wire.
    fn bytes(&self) -> usize {
        self.message.charge() + size_of::<Waiting>()
    }
}

/// Waiting deliveries, in order.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that the backlog occupies besides its messages.
    pub(super) fn own_bytes(&self) -> usize {
        self.waiting.len() * size_of::<Waiting>()
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.bytes();
        self.waiting.push_back(waiting);
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.bytes -= waiting.bytes();
        Some(waiting)
    }
}
