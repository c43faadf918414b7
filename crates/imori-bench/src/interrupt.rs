//! Ctrl-C: the first ends a run early and reports what was measured; a second ends the program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Exit code of a program that was ended by a signal.
const INTERRUPTED: i32 = 130;

/// Installs the signal handlers; calling it again does nothing.
pub fn listen() -> Result<()> {
    let asked = Arc::new(AtomicBool::new(false));
    if ASKED.set(Arc::clone(&asked)).is_err() {
        return Ok(());
    }
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&asked))
            .and_then(|_| flag::register(signal, Arc::clone(&asked)))
            .context("signals cannot be listened to")?;
    }
    Ok(())
}

/// Whether the run should end.
pub fn is_asked_for() -> bool {
    ASKED.get().is_some_and(|asked| asked.load(Ordering::Relaxed))
}
