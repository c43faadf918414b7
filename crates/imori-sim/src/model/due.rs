//! The due time of a delayed message, as far as clients can know it, and its cancellation.

use std::time::Duration;

use imori_core::time::Time;

use crate::machine::Shared;

/// The due time of a message: the broker counts from when it reads it, which the publisher cannot
/// see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    delay: Duration,
    pub(crate) earliest: Time,
    pub(crate) latest: Time,
}

/// Whether a message was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancel {
    Not,
    /// A client cancelled it, so it may be gone.
    Asked,
    /// The broker confirmed the cancellation.
    Done,
}

impl Due {
    /// The due time of a message that is not sent yet.
    pub(crate) fn after(delay: Duration) -> Due {
        Due { delay, earliest: Time::NEVER, latest: Time::NEVER }
    }

    /// Notes that the message, or its commit, is on its way to the broker.
    pub(crate) fn sent(&mut self, shared: &Shared, pipe: usize) {
        let began = shared.network.pipe(pipe).turn_began;
        self.earliest = began.unwrap_or(shared.clock.get()).after(self.delay);
    }

    /// Notes that the broker has the message.
    pub(crate) fn confirmed(&mut self, now: Time) {
        self.latest = now.after(self.delay);
    }
}

impl Cancel {
    /// Notes an end of the broker, which may have lost the record of the cancellation.
    pub(crate) fn outlive(&mut self, is_kept: bool) {
        if *self == Cancel::Done && !is_kept {
            *self = Cancel::Asked;
        }
    }
}
