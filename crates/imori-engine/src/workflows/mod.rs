//! Executions of workflows: their conductors, states and children.

mod progress;
pub(crate) mod reruns;
mod children;
mod inquiries;
mod batch;
mod conductors;
mod refusal;

pub(crate) use batch::{Batch, News};
pub(crate) use conductors::is_workflow;
pub(crate) use inquiries::AnswerError;
