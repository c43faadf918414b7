//! Limits that an operator sets for a user or a vhost.

use std::fmt;

use crate::name::Name;

/// A limit that is reached. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuotaReached {
    /// The vhost has as many connections as it may have.
    VhostConnections {
        /// The vhost.
        vhost: Name,
        /// The user who wanted in.
        user: Name,
        /// How many it may have.
        max: usize,
    },
    /// The user has as many connections as it may have.
    UserConnections {
        /// The user.
        user: Name,
        /// How many it may have.
        max: usize,
    },
    /// The connections of the user have as many sessions as they may have.
    Sessions {
        /// The user.
        user: Name,
        /// How many they may have together.
        max: usize,
    },
    /// The vhost has as many queues as it may have.
    Queues {
        /// The queue that was to be made.
        queue: Name,
        /// The vhost.
        vhost: Name,
        /// How many it may have.
        max: usize,
    },
    /// The messages of the vhost have as many bytes as they may have.
    Bytes {
        /// The vhost.
        vhost: Name,
        /// How many they may have.
        max: u64,
    },
}

impl fmt::Display for QuotaReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuotaReached::VhostConnections { vhost, user, max } => write!(
                f,
                "user `{user}` cannot enter vhost `{vhost}`, which has `{max}` connections, as many as it may have; \
                 close some or raise its `max-connections`"
            ),
            QuotaReached::UserConnections { user, max } => write!(
                f,
                "user `{user}` has `{max}` connections, as many as it may have; close some or raise its \
                 `max-connections`"
            ),
            QuotaReached::Sessions { user, max } => write!(
                f,
                "user `{user}` has `{max}` channels, as many as it may have; close some or raise its `max-channels`"
            ),
            QuotaReached::Queues { queue, vhost, max } => write!(
                f,
                "queue `{queue}` cannot be made in vhost `{vhost}`, which has `{max}` queues, as many as it may have; \
                 delete some or raise its `max-queues`"
            ),
            QuotaReached::Bytes { vhost, max } => write!(
                f,
                "the messages of vhost `{vhost}` have `{max}` bytes, as many as they may have; consume or purge some, or \
                 raise its `max-bytes`"
            ),
        }
    }
}

impl std::error::Error for QuotaReached {}
