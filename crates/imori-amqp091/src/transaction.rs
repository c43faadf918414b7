//! Publishes and settlements of a channel that wait for their commit.

use imori_core::broker::Step;

/// The commands of a channel since its last commit. Messages are charged to the memory gauge.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// The commands.
    pub(crate) steps: Vec<Step>,
    /// For each step that publishes, whether it is returned where nobody gets it.
    pub(crate) mandatory: Vec<bool>,
}
