//! The steps by which a message enters the broker, the same for every verb that publishes.
//!
//! ```text
//! resolve ─► plan ─► record ─► enqueue ─► live ─► dead letter
//!            └──────── locked ────────┘
//! ```
//!
//! Each step is a file and works on a [`Batch`]. For de-duplicated messages and transactions the
//! three middle steps happen under the locks of all queues involved. The verbs are elsewhere.

mod outgoing;
mod send;
mod dedup;
mod apart;
mod locked;
mod dead_letter;
mod enqueue;
mod follow_ups;
mod stream;
mod own;
mod offer;
mod live;
mod record;
mod plan;
mod proposal;
mod resolve;
mod batch;
mod report;

pub(crate) use batch::Batch;
pub(crate) use dead_letter::{Move, publish_dead_letters};
pub use dedup::{renew_seen, renew_some_seen};
pub(crate) use follow_ups::{FollowUps, give_up, unthrottle};
pub(crate) use live::{live_receivers, pass, reply, send_live, send_to_own};
pub(crate) use locked::{LockedPlan, LockedQueues};
pub(crate) use offer::offer;
pub use outgoing::announce;
pub(crate) use outgoing::publish_outgoing;
pub(crate) use own::append_archived;
#[cfg(test)]
pub(crate) use own::record_of;
pub(crate) use proposal::{Proposal, Recorded, admit, group_bytes, record_one};
pub(crate) use record::{is_scarce, message_record, record_annotations, record_counts, record_effects};
pub use report::PublishReport;
pub(crate) use report::Reports;
pub use resolve::may_publish;
pub(crate) use resolve::{
    Resolved, authorize_publish, authorize_reply, authorize_run, check_kept, is_inbox, is_topic, resolve,
    resolve_all, resolve_own,
};
pub(crate) use send::{check_bytes, send};
pub(crate) use stream::Readers;
pub use stream::answer;
