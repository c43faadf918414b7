//! Everything that a seed decides beforehand: how many take part, what they do, and what the broker is up against.

mod dead_letters;
mod workload;
mod special_messages;
mod queue_spec;
mod action;

pub(crate) use action::Action;
pub(crate) use queue_spec::{QueueSpec, pattern, subject};
pub(crate) use workload::{Paging, Workload};
