//! The open transaction of a channel.

use imori_core::broker::Step;

/// The steps of a channel since its last commit. Messages are charged to the memory gauge.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// Publishes and settles, in order.
    pub(crate) steps: Vec<Step>,
    /// For each publish among the steps, whether it is mandatory.
    pub(crate) mandatory: Vec<bool>,
}
