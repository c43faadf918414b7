//! Checks of delayed messages.

use super::due::Cancel;
use super::model::Model;
use super::records::{Arrived, To};
use super::wildcards::is_match;
use crate::machine::Shared;
use crate::property::Property;

impl Model {
    /// Checks that a delivered message is due, and was not cancelled.
    pub(crate) fn check_due(&mut self, shared: &Shared, arrived: &Arrived<'_>) {
        let (now, message) = (shared.clock.get(), arrived.message);
        // A queue that refuses messages at its limit dead-letters them at once.
        let is_refused = arrived.death.is_some_and(|(reason, died_in)| {
            matches!(reason, "maxlen" | "rejected")
                && self.queues.iter().any(|spec| spec.refuses && spec.name == died_in)
        });
        let record = self.message(message);
        if let Some(due) = record.due.filter(|due| due.earliest > now && !is_refused) {
            shared.violate(Property::Delay, || format!("message {message} came at {now:?}, {due:?}"));
        }
        if record.cancel == Cancel::Done {
            shared.violate(Property::Delay, || format!("message {message} came, and was cancelled"));
        }
    }

    /// Checks how many messages the broker says it cancelled; the client cancelled at step
    /// `asked_at`.
    pub(crate) fn cancelled(&mut self, shared: &Shared, message: usize, count: usize, asked_at: u64) {
        let Some(record) = self.messages.get(message) else { return };
        let To::Queue(queue) = record.to else { return };
        let spec = self.queue(queue);
        match count {
            0 => {
                let is_taken = record.confirmed_at.is_some_and(|at| at < asked_at)
                    && (!spec.refuses || record.has_receipt);
                let is_waiting = record.due.is_some_and(|due| due.earliest > shared.clock.get());
                let may_be_gone = spec.is_volatile || record.cancels != 1 || self.may_be_lost(message, queue);
                if is_taken && is_waiting && !may_be_gone {
                    shared.violate(Property::Delay, || {
                        format!("message {message} is not due and was not found to cancel")
                    });
                }
            }
            1 => {
                if let Some(last) = self.last_deliveries.get(&(message, queue)) {
                    shared.violate(Property::Delay, || {
                        format!("message {message} was cancelled, and somebody had it: {last:?}")
                    });
                }
                if record.cancel == Cancel::Done {
                    shared.violate(Property::Delay, || format!("message {message} was cancelled twice"));
                }
                self.message(message).cancel = Cancel::Done;
            }
            _ => shared.violate(Property::Delay, || {
                format!("{count} messages were cancelled where there was message {message} alone")
            }),
        }
    }
}

/// Checks at rest that no message is delayed beyond its due time, if memory has room for it.
pub(crate) fn check_late(shared: &Shared, model: &Model) {
    let now = shared.clock.get();
    let mut delayed = Vec::new();
    shared.queues.each(|_, queue| {
        if queue.delayed_len() > 0 && queue.ready_len() == 0 {
            delayed.push((queue.name().clone(), queue.delayed_len()));
        }
    });
    for (name, delayed) in delayed {
        let Some(queue) = model.queues.iter().position(|spec| spec.name.as_bytes() == name.as_bytes()) else {
            continue;
        };
        let may_wait = model.messages.iter().filter(|message| {
            let is_for = match &message.to {
                To::Queue(to) => *to == queue,
                To::Topic(subject) => {
                    model.queue(queue).pattern.as_ref().is_some_and(|pattern| is_match(pattern, subject))
                }
                To::Inbox(_) => false,
            };
            let is_due = message.due.is_none_or(|due| due.latest < now);
            is_for && !is_due && message.cancel != Cancel::Done
        });
        let may_wait = may_wait.count();
        if delayed > may_wait {
            shared.violate(Property::Delay, || {
                format!("{delayed} messages of `{name}` wait for their time, which {may_wait} may")
            });
        }
    }
}
