//! The decisions that a seed makes before a run: participants, actions, sizes and faults.

mod dead_letters;
mod workload;
mod special_messages;
mod queue_spec;
mod stream_spec;
mod action;

pub(crate) use action::Action;
pub(crate) use queue_spec::{QueueSpec, pattern, subject};
pub(crate) use stream_spec::{ConsumerSpec, KEYS, Retention, StreamSpec};
pub(crate) use workload::{Paging, Workload};
