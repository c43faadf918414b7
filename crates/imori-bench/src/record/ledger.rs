//! The outcome of everything that was sent. The performance numbers of a run with a broken ledger
//! are worthless.

use serde::{Deserialize, Serialize};

/// Calls or messages, counted by outcome.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Handed to the socket.
    pub sent: u64,
    /// Answered or delivered correctly, each counted once.
    pub good: u64,
    /// Never answered or delivered.
    pub lost: u64,
    /// Answered or delivered again without a redelivered mark.
    pub duplicated: u64,
    /// Delivered again with a redelivered mark.
    pub redelivered: u64,
    /// Sent by this run, but with a different content.
    pub altered: u64,
    /// Overtaken by a later message of the same publisher to the same consumer.
    pub reordered: u64,
    /// Of another run, of another requester, or never sent.
    pub foreign: u64,
    /// Calls that were given up after their time-out.
    pub timeouts: u64,
    /// Replies to calls that had already been given up.
    pub late: u64,
    /// In flight when a connection broke, so the broker may or may not have received them.
    #[serde(default)]
    pub unknown: u64,
    /// Never delivered, and past their time to live when the run ended, so the broker may have dropped them.
    #[serde(default)]
    pub expired: u64,
}

impl Ledger {
    /// Adds the counts of another part of the run.
    pub(crate) fn add(&mut self, other: &Ledger) {
        let Ledger { sent, good, lost, duplicated, redelivered, .. } = other;
        let Ledger { altered, reordered, foreign, timeouts, late, unknown, expired, .. } = other;
        self.sent += sent;
        self.good += good;
        self.lost += lost;
        self.duplicated += duplicated;
        self.redelivered += redelivered;
        self.altered += altered;
        self.reordered += reordered;
        self.foreign += foreign;
        self.timeouts += timeouts;
        self.late += late;
        self.unknown += unknown;
        self.expired += expired;
    }

    /// Whether the broker lost, repeated, changed or re-ordered anything.
    pub fn is_broken(&self) -> bool {
        self.lost > 0 || self.duplicated > 0 || self.altered > 0 || self.reordered > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_and_late_replies_do_not_break_a_ledger() {
        let clean = Ledger {
            sent: 9,
            good: 8,
            foreign: 3,
            timeouts: 1,
            late: 1,
            redelivered: 1,
            ..Ledger::default()
        };
        for (ledger, is_broken) in [
            (clean, false),
            (Ledger { lost: 1, ..clean }, true),
            (Ledger { duplicated: 1, ..clean }, true),
            (Ledger { altered: 1, ..clean }, true),
            (Ledger { reordered: 1, ..clean }, true),
        ] {
            assert_eq!(ledger.is_broken(), is_broken, "{ledger:?}");
        }
    }
}
