//! On whose behalf the broker does something.

use crate::authorize::Identity;
use crate::id::{ConnectionId, VhostId};

/// On whose behalf something is done.
#[derive(Debug, Clone, Copy)]
pub struct Actor<'a> {
    /// Who it is.
    pub identity: &'a Identity,
    /// Their connection.
    pub connection: ConnectionId,
    /// The vhost they are in.
    pub vhost: VhostId,
}
