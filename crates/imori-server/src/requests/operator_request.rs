//! Requests of an operator that the program which runs the broker sees to, as it knows where its configuration is.

use std::fmt;

use tokio::sync::oneshot;

use crate::config::KeyChange;

/// A request of an operator that leaves the broker running.
#[derive(Debug)]
pub enum OperatorRequest {
    /// SIGHUP, or a request of the admin listener: read the configuration again and take over what can change while
    /// the broker runs.
    Reload(ReloadAnswer),
    /// SIGUSR1: open the file of the log anew, as it was moved away.
    ReopenLog,
}

/// The outcome of a reload.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Reloaded {
    /// The keys whose new values are in force.
    pub taken_over: Vec<KeyChange>,
    /// The keys whose new values wait for a restart.
    pub waiting: Vec<KeyChange>,
}

/// Where the outcome of a reload goes; nowhere for a signal.
#[derive(Default)]
pub struct ReloadAnswer(Option<oneshot::Sender<Result<Reloaded, String>>>);

impl ReloadAnswer {
    /// An answer, and where it comes.
    pub(crate) fn new() -> (ReloadAnswer, oneshot::Receiver<Result<Reloaded, String>>) {
        let (sender, receiver) = oneshot::channel();
        (ReloadAnswer(Some(sender)), receiver)
    }

    /// Tells the outcome, or why nothing was taken over.
    pub fn tell(self, outcome: Result<Reloaded, String>) {
        if let Some(sender) = self.0 {
            // Whoever asked may be gone.
            let _ = sender.send(outcome);
        }
    }
}

impl fmt::Debug for ReloadAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReloadAnswer")
    }
}
