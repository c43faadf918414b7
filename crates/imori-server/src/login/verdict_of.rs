//! A login that is checked outside a connection's turn.

use std::sync::{Arc, Mutex};

use imori_core::id::ConnectionId;
use imori_core::login::{Login, Verdict, Verification};
use tokio::sync::oneshot;

use super::verifiers::{Verdicts, Verifiers};
use crate::slots::unpoisoned;

/// Checks a login. A slow check waits for a verifier's thread like those of protocols.
pub(crate) async fn verdict_of(verifiers: &Verifiers, login: &Login) -> Verdict {
    let (sender, told) = oneshot::channel();
    let waiting = || Arc::new(Waiting(Mutex::new(Some(sender)))) as Arc<dyn Verdicts>;
    match verifiers.verify(login.clone(), waiting) {
        Verification::Done(verdict) => verdict,
        // A broker that is ending drops the sender.
        Verification::Pending => told.await.unwrap_or(Verdict::Busy),
    }
}

/// Waits for a verdict.
struct Waiting(Mutex<Option<oneshot::Sender<Verdict>>>);

impl Verdicts for Waiting {
    fn is_awaited(&self, _: ConnectionId) -> bool {
        unpoisoned(self.0.lock()).as_ref().is_some_and(|sender| !sender.is_closed())
    }

    fn tell(&self, _: &Login, verdict: Verdict) {
        if let Some(sender) = unpoisoned(self.0.lock()).take() {
            let _ = sender.send(verdict);
        }
    }
}
