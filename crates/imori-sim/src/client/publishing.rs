//! Publishing, with properties added at random.

use super::client::Client;
use super::outgoing::{Destination, Outgoing};
use super::protocol::HeaderUse;
use crate::broker_end::EndKind;
use crate::machine::Shared;
use crate::model::{MessageRecord, Model, To, is_match};
use crate::workload::{QueueSpec, Workload};

/// The number of latest messages with an id, of which one may be repeated.
const REPEATED_OF: usize = 24;

/// The most messages of a transaction.
const TRANSACTION_MAX: usize = 10;

impl Client {
    /// Sends some messages to one queue.
    pub(crate) fn send_to_queue(&mut self, shared: &Shared, model: &mut Model, workload: &Workload) {
        let open: Vec<usize> = (0..model.queues.len())
            .filter(|queue| {
                let spec = model.queue(*queue);
                !spec.is_dead_letter_queue && spec.pattern.is_none() && self.may_send_to(spec)
            })
            .collect();
        let queue = *shared.random.pick(&open);
        let spec = model.queue(queue).clone();
        let is_own = spec.name.starts_with("own");
        let arguments = if is_own { &[][..] } else { &spec.arguments };
        let outgoing =
            Outgoing { arguments, ..Outgoing::new(To::Queue(queue), Destination::Queue(spec.name.clone())) };
        for _ in 0..shared.random.between(1, workload.burst_max) {
            self.send_somehow(shared, model, workload, outgoing.clone());
        }
    }

    /// Sends a message with random properties added.
    pub(crate) fn send_somehow(
        &mut self,
        shared: &Shared,
        model: &mut Model,
        workload: &Workload,
        outgoing: Outgoing<'_>,
    ) {
        let random = &shared.random;
        let delay_ms =
            workload.delay_ms(random).filter(|_| self.abilities.delays && is_kept(model, &outgoing.to));
        let has_headers = match self.abilities.headers {
            HeaderUse::Always => true,
            HeaderUse::Sometimes => random.chance(3, 4),
            HeaderUse::Never => false,
        };
        let bears_id = has_headers
            && outgoing.once.is_none()
            && delay_ms.is_none()
            && takes_once(model, &outgoing.to)
            && workload.bears_id(random);
        let outgoing = Outgoing {
            size: random.between(8, workload.body_bytes_max),
            priority: random.chance(1, 4).then(|| random.below(5) as u8).filter(|_| has_headers),
            expiration_ms: (workload.has_expirations && random.chance(1, 8))
                .then(|| random.below(30) as u64)
                .filter(|_| has_headers),
            has_headers,
            wants_receipt: random.chance(1, 2),
            is_in_transaction: self.has_room_in_transaction() && random.chance(2, 3),
            is_persistent: random.chance(workload.persistent_share, 8) && self.abilities.persists,
            delay_ms,
            once: bears_id.then_some(model.messages.len()).or(outgoing.once),
            ..outgoing
        };
        self.publish(shared, model, &outgoing);
    }

    /// Sends a message that is too large for any journal file to a queue that would keep it,
    /// perhaps as the last of a transaction.
    pub(crate) fn send_too_large(&mut self, shared: &Shared, model: &mut Model) {
        if !self.abilities.persists || !self.abilities.declares {
            return;
        }
        let random = &shared.random;
        let keeps = |queue: &usize| {
            let spec = model.queue(*queue);
            !spec.is_dead_letter_queue && spec.pattern.is_none() && spec.keeps(EndKind::Kill)
        };
        let queues: Vec<usize> = (0..model.queues.len()).filter(keeps).collect();
        if queues.is_empty() {
            return;
        }
        let queue = *random.pick(&queues);
        let spec = model.queue(queue).clone();
        let outgoing = Outgoing {
            arguments: &spec.arguments,
            size: shared.log.borrow().group_bytes_max() + random.below(2_000),
            wants_receipt: random.chance(1, 2),
            is_in_transaction: self.transaction.is_some() && random.chance(2, 3),
            is_persistent: true,
            is_too_large: true,
            ..Outgoing::new(To::Queue(queue), Destination::of(&spec))
        };
        self.publish(shared, model, &outgoing);
        if outgoing.is_in_transaction {
            self.commit(shared, model);
        }
    }

    /// Whether the queue certainly exists, or the client declares it by sending.
    fn may_send_to(&self, spec: &QueueSpec) -> bool {
        self.abilities.declares || spec.is_kept()
    }

    /// Whether another message fits: a transaction must fit into a journal file.
    fn has_room_in_transaction(&self) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.messages.len() < TRANSACTION_MAX)
    }

    /// Repeats the id of an earlier message of any client, whatever became of that message.
    pub(crate) fn repeat(&mut self, shared: &Shared, model: &mut Model, workload: &Workload) {
        let bears_id = |record: &&MessageRecord| record.duplicate.is_some() && record.sent_at.is_some();
        let latest: Vec<&MessageRecord> =
            model.messages.iter().rev().filter(bears_id).take(REPEATED_OF).collect();
        if latest.is_empty() || self.abilities.headers == HeaderUse::Never {
            return;
        }
        let record = *shared.random.pick(&latest);
        let (to, is_persistent) = (record.to.clone(), record.is_persistent);
        if is_persistent && !self.abilities.persists {
            // Its confirm would state the level of the first message.
            return;
        }
        let once = record.duplicate.map(|duplicate| duplicate.first);
        let (place, arguments) = match &to {
            To::Queue(queue) => {
                let spec = model.queue(*queue);
                if !self.may_send_to(spec) {
                    return;
                }
                (Destination::of(spec), spec.arguments.clone())
            }
            To::Topic(subject) => (Destination::Topic(subject.clone()), Vec::new()),
            To::Inbox(_) => return,
        };
        let outgoing = Outgoing {
            arguments: &arguments,
            once,
            size: shared.random.between(8, workload.body_bytes_max),
            wants_receipt: shared.random.chance(3, 4),
            is_in_transaction: self.has_room_in_transaction() && shared.random.chance(2, 3),
            is_persistent,
            ..Outgoing::new(to, place)
        };
        self.publish(shared, model, &outgoing);
    }
}

/// Whether a delayed message has a queue to wait in; otherwise it is refused.
fn is_kept(model: &Model, to: &To) -> bool {
    match to {
        To::Queue(_) => true,
        To::Topic(subject) => model.queues.iter().any(|spec| {
            !spec.is_volatile && spec.pattern.as_ref().is_some_and(|pattern| is_match(pattern, subject))
        }),
        To::Inbox(_) => false,
    }
}

/// Whether some queue of the destination de-duplicates.
fn takes_once(model: &Model, to: &To) -> bool {
    match to {
        To::Queue(queue) => model.queue(*queue).window.is_some(),
        To::Topic(subject) => model.queues.iter().any(|spec| {
            spec.window.is_some() && spec.pattern.as_ref().is_some_and(|pattern| is_match(pattern, subject))
        }),
        To::Inbox(_) => false,
    }
}
