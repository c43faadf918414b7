//! Events: from their sources to the executions of rules.

mod webhooks;
mod timers;
mod queues;
mod own;
mod dispatch;

pub(crate) use dispatch::EventError;
pub(crate) use own::{report_ends, run_own_events};
pub(crate) use queues::run_readers;
pub(crate) use timers::run_timers;
pub(crate) use webhooks::{WebhookAnswer, WebhookRefusal};
