//! Watches the disk from beside: a flush that takes long is told of while it lasts, with what is known of why.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use crate::limits::STALL_WATCH_EVERY;
use crate::shared::{Phase, Shared};

/// Runs until the broker ends; a flush longer than `slow` is told of.
pub(crate) fn watch_disk(shared: &Arc<Shared>, slow: Duration) {
    let mut since: Option<Instant> = None;
    while *shared.phase.borrow() < Phase::Ended {
        sleep(STALL_WATCH_EVERY);
        match shared.journal.flushing_for() {
            Some(lasts) if lasts >= slow && since.is_none() => {
                since = Instant::now().checked_sub(lasts);
                warn!(
                    flushing_ms = lasts.as_millis(),
                    queued_bytes = shared.journal.queued_bytes(),
                    "the disk is slow: a flush takes long, confirms of persistent messages wait for it"
                );
            }
            Some(lasts) if since.is_some_and(|since| since.elapsed() <= lasts + slow) => {}
            _ => {
                let Some(began) = since.take() else { continue };
                info!(flushing_ms = began.elapsed().as_millis(), "the slow flush is over");
            }
        }
    }
}
