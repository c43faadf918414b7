//! Internal clients of a cell, counted by owner, so that none of them takes the places of another.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::{INTERNAL_CLIENTS_MAX, OPERATOR_CLIENTS_MAX, SERVICE_CLIENTS_MAX};

/// For whom an internal client works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A service of the broker, such as the responder to pings.
    Service,
    /// An operator's request.
    Operator,
    /// A program around the broker, such as a gateway.
    Program,
}

impl Owner {
    /// The most connections that a cell has for clients of this owner.
    pub(crate) fn clients_max(self) -> usize {
        match self {
            Owner::Service => SERVICE_CLIENTS_MAX,
            Owner::Operator => OPERATOR_CLIENTS_MAX,
            Owner::Program => INTERNAL_CLIENTS_MAX,
        }
    }
}

/// The number of connections of internal clients.
#[derive(Debug, Default)]
pub(crate) struct InternalCounts {
    service: AtomicUsize,
    operator: AtomicUsize,
    program: AtomicUsize,
}

impl InternalCounts {
    pub(crate) fn of(&self, owner: Owner) -> &AtomicUsize {
        match owner {
            Owner::Service => &self.service,
            Owner::Operator => &self.operator,
            Owner::Program => &self.program,
        }
    }

    pub(crate) fn total(&self) -> usize {
        [Owner::Service, Owner::Operator, Owner::Program]
            .map(|owner| self.of(owner).load(Ordering::Relaxed))
            .iter()
            .sum()
    }
}
