//! Requests that the program around the broker fulfils, because only it knows where its configuration is.

use std::fmt;

use tokio::sync::oneshot;

use crate::config::KeyChange;

/// A request of an operator that leaves the broker running.
#[derive(Debug)]
pub enum OperatorRequest {
    /// SIGHUP, or a request to the admin listener: reload the configuration and apply the keys that can change while
    /// the broker runs.
    Reload(ReloadAnswer),
    /// SIGUSR1: reopen the log file, which was moved away.
    ReopenLog,
}

/// The outcome of a reload.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Reloaded {
    /// The keys whose new values are in effect.
    pub taken_over: Vec<KeyChange>,
    /// The keys whose new values wait for a restart.
    pub waiting: Vec<KeyChange>,
}

/// Receives the outcome of a reload; a signal's reload has no receiver.
#[derive(Default)]
pub struct ReloadAnswer(Option<oneshot::Sender<Result<Reloaded, String>>>);

impl ReloadAnswer {
    /// Creates an answer and its receiver.
    pub(crate) fn new() -> (ReloadAnswer, oneshot::Receiver<Result<Reloaded, String>>) {
        let (sender, receiver) = oneshot::channel();
        (ReloadAnswer(Some(sender)), receiver)
    }

    /// Sends the outcome, or why nothing was applied.
    pub fn tell(self, outcome: Result<Reloaded, String>) {
        if let Some(sender) = self.0 {
            // The requester may be gone.
            let _ = sender.send(outcome);
        }
    }
}

impl fmt::Debug for ReloadAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReloadAnswer")
    }
}
