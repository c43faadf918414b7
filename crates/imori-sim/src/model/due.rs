//! When a delayed message is due, as far as clients can know, and whether somebody took it back.

use std::time::Duration;

use imori_core::time::Time;

use crate::machine::Shared;

/// When a message is due: the broker counts from when it reads it, which its publisher cannot see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    delay: Duration,
    pub(crate) earliest: Time,
    pub(crate) latest: Time,
}

/// Whether somebody took a message back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancel {
    Not,
    /// Somebody asked for it, so that the message may be gone.
    Asked,
    /// The broker said so.
    Done,
}

impl Due {
    /// Of a message that is not sent yet.
    pub(crate) fn after(delay: Duration) -> Due {
        Due { delay, earliest: Time::NEVER, latest: Time::NEVER }
    }

    /// Notes that the message's frame, or its commit, is on its way to a connection.
    pub(crate) fn sent(&mut self, shared: &Shared, pipe: usize) {
        let began = shared.network.pipe(pipe).turn_began;
        self.earliest = began.unwrap_or(shared.clock.get()).after(self.delay);
    }

    /// The broker has it.
    pub(crate) fn confirmed(&mut self, now: Time) {
        self.latest = now.after(self.delay);
    }
}

impl Cancel {
    /// The broker ended; the record of it may have gone too.
    pub(crate) fn outlive(&mut self, is_kept: bool) {
        if *self == Cancel::Done && !is_kept {
            *self = Cancel::Asked;
        }
    }
}
