//! The progress of a body that is passed on: a request that moves has no time in all.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::lock::lock;

/// When a piece of a body was last passed on.
#[derive(Debug, Clone)]
pub(super) struct Progress(Arc<Mutex<Instant>>);

/// Nothing has moved for too long.
#[derive(Debug)]
pub(super) struct Stalled;

impl Default for Progress {
    fn default() -> Progress {
        Progress(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Progress {
    /// Takes note of a piece.
    pub(super) fn note(&self) {
        *lock(&self.0) = Instant::now();
    }

    /// Waits for what depends on the body.
    ///
    /// # Errors
    /// Neither that nor a piece of the body has come for this time.
    pub(super) async fn within<T>(
        &self,
        patience: Duration,
        waited: impl Future<Output = T>,
    ) -> Result<T, Stalled> {
        tokio::pin!(waited);
        loop {
            let end = *lock(&self.0) + patience;
            tokio::select! {
                done = &mut waited => return Ok(done),
                () = sleep_until(end) => if *lock(&self.0) + patience <= end { return Err(Stalled) },
            }
        }
    }
}
