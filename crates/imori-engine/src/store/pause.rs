//! The growing pause between attempts to reach the store.

use std::time::Duration;

use crate::limits::{STORE_RECONNECT_PAUSE_MAX, STORE_RECONNECT_PAUSE_MIN};

/// The pause after the next failed attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pause(Duration);

impl Pause {
    /// The pause after the first attempt.
    pub(super) fn first() -> Pause {
        Pause(STORE_RECONNECT_PAUSE_MIN)
    }

    /// The pause after this attempt.
    pub(super) fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(STORE_RECONNECT_PAUSE_MAX);
        pause
    }
}
