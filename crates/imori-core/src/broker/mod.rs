//! What the broker does: each verb is a file, in the order in which a message meets them.
//!
//! The verbs reach queues and connections through [`World`], which lends them one at a time
//! under its lock: topology before queue, queue before outbound, never two of a kind, but for
//! a commit, which takes its queues by rising id.

mod publish;
mod commit;
mod settle;
mod dead_letter;
mod consume;
mod disconnect;
mod delete;
mod declare;
mod expire;
mod offer;

pub use commit::{Step, commit};
pub use consume::{ConsumeOptions, SubscribeOptions, cancel, consume, subscribe};
pub use declare::{bind_queue, declare_exchange, declare_queue, find_queue};
pub use delete::delete_queue;
pub use disconnect::disconnect;

pub use expire::queue_woken;
pub use offer::{resume_publishers, wake_consumers};
pub use publish::{PublishReport, publish};
pub use settle::settle;

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
