//! Requests of an operator that the program which runs the broker sees to, as it knows where its configuration is.

use crate::config::KeyChange;

/// A request of an operator that leaves the broker running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorRequest {
    /// SIGHUP: read the configuration again and take over what can change while the broker runs.
    Reload,
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
