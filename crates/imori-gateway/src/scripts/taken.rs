//! The messages that a run has taken from queues. One that is not settled when the run ends returns to its queue.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use imori_core::{delivery::Outcome, internal::IncomingMessage};
use imori_server::InternalClient;

/// A message that a script has taken from a queue.
pub(super) struct TakenMessage {
    pub(super) message: IncomingMessage,
    pub(super) client: InternalClient,
    is_settled: AtomicBool,
}

impl TakenMessage {
    /// Marks the message as settled; returns whether it was not.
    pub(super) fn settle(&self) -> bool {
        !self.is_settled.swap(true, Ordering::Relaxed)
    }
}

/// The messages that a run and those beside it have taken.
#[derive(Default)]
pub(super) struct TakenMessages(RefCell<Vec<Arc<TakenMessage>>>);

impl TakenMessages {
    /// Keeps a message until the run ends.
    pub(super) fn add(&self, message: IncomingMessage, client: InternalClient) -> Arc<TakenMessage> {
        let taken = Arc::new(TakenMessage { message, client, is_settled: AtomicBool::new(false) });
        let mut all = self.0.borrow_mut();
        all.retain(|taken| !taken.is_settled.load(Ordering::Relaxed));
        all.push(Arc::clone(&taken));
        taken
    }
}

impl Drop for TakenMessages {
    fn drop(&mut self) {
        for taken in self.0.take() {
            // Without a runtime the client ends too, which returns its messages.
            if taken.settle()
                && let Ok(runtime) = tokio::runtime::Handle::try_current()
            {
                drop(runtime.spawn(async move {
                    // The client has ended if this fails, so that the message is back already.
                    let _ = taken.client.settle(&taken.message, Outcome::Release { failed: true }).await;
                }));
            }
        }
    }
}
