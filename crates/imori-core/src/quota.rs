//! Limits that an operator sets for a user or a vhost.

use std::fmt;

use crate::name::Name;

/// A limit that has been reached. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuotaReached {
    /// The vhost has reached its limit of connections.
    VhostConnections {
        /// The name of the full vhost.
        vhost: Name,
        /// The user who tried to enter.
        user: Name,
        /// The limit.
        max: usize,
    },
    /// The user has reached the limit of connections.
    UserConnections {
        /// The name of the user.
        user: Name,
        /// The limit.
        max: usize,
    },
    /// The user's connections together have reached the limit of sessions.
    Sessions {
        /// The name of the user.
        user: Name,
        /// The limit.
        max: usize,
    },
    /// The vhost has reached its limit of queues.
    Queues {
        /// The queue that was to be declared.
        queue: Name,
        /// The name of the full vhost.
        vhost: Name,
        /// The limit.
        max: usize,
    },
    /// The messages of the vhost have reached the limit of bytes.
    Bytes {
        /// The name of the full vhost.
        vhost: Name,
        /// The limit.
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
