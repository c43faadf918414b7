//! The part of the environment that limits what users and vhosts take.

use crate::authorize::Actor;
use crate::id::VhostId;
use crate::quota::QuotaReached;

/// The limits of users and vhosts, and what counts towards them. By default there are no limits.
pub trait Quotas {
    /// Counts a connection towards its user and vhost, replacing those it counted towards before.
    /// Must not be called with an outbound half locked. By default there are no limits.
    ///
    /// # Errors
    /// The limit of the vhost or the user is reached.
    fn enter(&self, _actor: &Actor<'_>) -> Result<(), QuotaReached> {
        Ok(())
    }

    /// Claims a client id for the life of a connection; false if another connection of the same
    /// user holds it in this vhost. SECURITY AUTH-07: equal ids of different users are different.
    fn claim_client_id(&self, _actor: &Actor<'_>, _id: &[u8]) -> bool {
        true
    }

    /// Releases the client id claimed by a connection, if any.
    fn release_client_id(&self, _actor: &Actor<'_>) {}

    /// Opens a session through `open`, unless the user's connections have reached their limit. Must
    /// not be called with an outbound half locked.
    ///
    /// # Errors
    /// The limit is reached, and `open` was not called.
    fn open_session<R>(&self, _actor: &Actor<'_>, open: impl FnOnce() -> R) -> Result<R, QuotaReached> {
        Ok(open())
    }

    /// An operator's limit on the number of queues in a vhost, if set.
    fn queues_max(&self, _vhost: VhostId) -> Option<usize> {
        None
    }

    /// Whether a rate limit applies to an actor's publishes. Called only if [`Gauge::rates`](crate::memory::Gauge::rates) is not
    /// zero.
    fn has_rate(&self, _actor: &Actor<'_>) -> bool {
        false
    }

    /// Whether an actor's publishes must wait because its user or vhost exceeded its rate. The
    /// world makes the connection ask again when the wait is over.
    fn must_wait_for_rate(&self, _actor: &Actor<'_>) -> bool {
        false
    }

    /// Reports a change of the total bytes of messages in a vhost's queues. Called with a queue
    /// locked.
    fn bytes_changed(&self, _vhost: VhostId, _change: i64) {}

    /// The limit on a vhost's message bytes, if it has been reached. Called only if
    /// [`Gauge::full_vhosts`](crate::memory::Gauge::full_vhosts) is not zero.
    fn bytes_max_reached(&self, _vhost: VhostId) -> Option<QuotaReached> {
        None
    }
}
