//! The fate of everything that was sent. A run whose ledger is not clean proves nothing but that.

use serde::{Deserialize, Serialize};

/// Counts of calls or messages by what became of them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Handed to the socket.
    pub sent: u64,
    /// Answered or delivered as they should be, each counted once.
    pub good: u64,
    /// Never answered or delivered.
    pub lost: u64,
    /// Answered or delivered again, without the mark of a redelivery.
    pub duplicated: u64,
    /// Delivered again with that mark.
    pub redelivered: u64,
    /// Of ours, with another value than it should have.
    pub altered: u64,
    /// Overtaken by a later message of the same publisher to the same consumer.
    pub reordered: u64,
    /// Of another run, of another requester, or never sent.
    pub foreign: u64,
    /// Calls that were given up.
    pub timeouts: u64,
    /// Replies to calls that were given up before.
    pub late: u64,
    /// Under way when a connection broke, so that they may have been taken or not.
    #[serde(default)]
    pub unknown: u64,
    /// Never delivered, and at the end older than they were to live, so that the broker may have dropped them.
    #[serde(default)]
    pub expired: u64,
}

impl Ledger {
    /// Adds what another part of the run counted.
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
