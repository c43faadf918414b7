//! The course of a run: the phases of its clients, and the checks at the end.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::simulation::{LONG_REST, REST, Simulation};
use crate::check::{check_end, expected_charge};
use crate::client::{Destination, NewSubscription};
use crate::model::{Goodbyes, Mode, Reads};
use crate::property::{Property, Violation};
use crate::workload::Workload;

/// The result of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The hash that equal runs share.
    pub hash: u64,
    /// The number of decisions.
    pub steps: u64,
    /// The number of crash images checked.
    pub points: u64,
    /// The number of comparisons with what a restart would make of the disk.
    pub shadows: u64,
    /// Whether a dead letter was ever pending for lack of room.
    pub has_pending_dead_letters: bool,
    /// Number of times that the broker ended while a dead letter was pending.
    pub ends_with_pending: u64,
    /// Sessions that ended beside others of their connection.
    pub goodbyes: Goodbyes,
    /// The first violation, if any.
    pub violation: Option<Violation>,
}

impl Simulation {
    /// Runs to the end or to the first violation.
    pub(crate) fn run(&mut self) -> Outcome {
        self.run_phases();
        let shared = &self.shared;
        let violation = shared.violation.take();
        let (steps, points, shadows) = (shared.step.get(), shared.points.get(), shared.shadows.get());
        let (has_pending_dead_letters, ends_with_pending) =
            (shared.dead_letters_pended_at.get().is_some(), shared.ends_with_pending.get());
        Outcome {
            hash: shared.trace.hash(),
            steps,
            points,
            shadows,
            has_pending_dead_letters,
            ends_with_pending,
            goodbyes: self.model.goodbyes,
            violation,
        }
    }

    fn run_phases(&mut self) -> Option<()> {
        if !self.workload.streams.is_empty() {
            return self.run_streams();
        }
        self.prepare()?;
        for _ in 0..self.workload.clients {
            let actions = self.workload.actions_each;
            self.connect(actions);
        }
        self.may_crash = true;
        self.plan_trouble();
        self.rest("actions")?;
        self.may_crash = self.workload.crashes > 0;
        if self.workload.crashes > 0 && self.shared.random.chance(1, 2) {
            self.end()?;
            self.rest("going on")?;
        }
        self.settle()?;
        self.may_crash = false;
        self.shared.log.borrow().device.disk.clear_faults();
        let has_failed = self.shared.log.borrow().has_failed;
        if has_failed || self.workload.crashes > 0 && self.shared.random.chance(1, 3) {
            if has_failed {
                self.crash()?;
            } else {
                self.end()?;
            }
            self.shared.log.borrow().device.disk.clear_faults();
            self.rest("going on again")?;
        }
        if self.workload.delays.is_some() || self.workload.long_waits() {
            self.patience = LONG_REST;
            self.rest("waiting for what is delayed")?;
            self.patience = REST;
        }
        if self.workload.mark_bytes.is_some() {
            // Draining the queues is what ends an alarm.
            self.drain()?;
            self.end_alarm()?;
        }
        self.leave()?;
        let charged = self.shared.memory.gauge().bytes();
        self.shared.trace.note(&[charged as u64], || self.inventory());
        // Delayed messages that were due but found no room in memory are charged for their index,
        // too.
        let mut has_delayed = false;
        self.shared.queues.each(|_, queue| has_delayed |= queue.delayed_len() > 0);
        self.take_room();
        self.drain()?;
        if has_delayed {
            // A due message without room in memory held up those due after it.
            self.patience = LONG_REST;
            self.rest("waiting for what was held up")?;
            self.patience = REST;
        }
        let waiting = self.drained();
        let expected = expected_charge(&self.model, &waiting);
        self.leave()?;
        check_end(&self.shared, &self.model);
        // Recovery copies a dead letter from its record, so queues may no longer share the message.
        let is_unknown = !self.model.crashes.is_empty() && waiting.values().any(|queues| *queues > 1);
        // Messages that are only on disk are not charged: those too long for memory, and those
        // restored from pages.
        let may_be_on_disk = self.workload.paging.is_short() || !self.model.crashes.is_empty();
        // A restored queue over its bound drops messages only when more arrive or are read.
        let may_drop =
            !self.model.crashes.is_empty() && self.model.queues.iter().any(|queue| queue.is_bounded);
        let is_charged = charged == expected || may_be_on_disk && charged < expected;
        let is_known = !self.workload.has_expirations && !is_unknown && !may_drop && !has_delayed;
        if !is_charged && is_known {
            let text =
                || format!("{charged} bytes were charged for {} messages, not {expected}", waiting.len());
            self.shared.violate(Property::Memory, text);
        }
        None
    }

    /// Declares the queues that must exist before clients use them.
    fn prepare(&mut self) -> Option<()> {
        self.connect_stomp(0);
        let shared = Rc::clone(&self.shared);
        for queue in 0..self.model.queues.len() {
            let is_bound = self.model.queue(queue).pattern.is_some();
            let is_to_be_there = self.is_to_be_there(queue);
            let client = self.clients.last_mut()?;
            if is_bound {
                client.subscribe_bound(&shared, &mut self.model, queue);
            } else if is_to_be_there {
                client.subscribe_queue(&shared, &mut self.model, &self.workload, queue);
            } else {
                continue;
            }
            self.rest("preparing")?;
            self.clients.last_mut()?.unsubscribe(&shared, &mut self.model);
            self.rest("preparing")?;
        }
        self.clients.last_mut()?.leave(&shared, &mut self.model);
        self.rest("preparing")
    }

    /// Whether a queue must exist before clients use it; only STOMP clients declare queues.
    fn is_to_be_there(&self, queue: usize) -> bool {
        let spec = self.model.queue(queue);
        let Workload { nats_share, inside_share, channel_share, .. } = self.workload;
        let has_others = nats_share + inside_share + channel_share > 0;
        spec.is_dead_letter_queue || has_others && spec.is_kept()
    }

    /// Lets every client read again, and some clients settle everything.
    fn settle(&mut self) -> Option<()> {
        let shared = Rc::clone(&self.shared);
        let settles_all = self.workload.mark_bytes.is_some();
        for client in self.clients.iter_mut().filter(|client| !client.is_ended()) {
            client.connection.is_reading.set(true);
            client.actions_left = 0;
            if !client.is_silent() && (settles_all || shared.random.chance(1, 2)) {
                client.commit(&shared, &mut self.model);
                client.settle_all(&shared, &mut self.model);
                client.accepts_all = true;
            }
        }
        drop(shared);
        self.rest("settling")
    }

    /// Ends the alarm by resetting clients. A client that parked its limit is not read, so it can
    /// never settle the messages that keep up the alarm.
    fn end_alarm(&mut self) -> Option<()> {
        let shared = Rc::clone(&self.shared);
        if !shared.memory.is_alarmed() {
            return Some(());
        }
        let drainer = self.clients.len() - 1;
        for client in self.clients.iter_mut().take(drainer) {
            client.reset(&shared, &mut self.model);
        }
        self.rest("ending the alarm")?;
        // The deliveries of the reset clients may be ready again.
        self.drain()?;
        if shared.memory.is_alarmed() {
            shared.violate(Property::Memory, || format!("the alarm does not end: {}", self.inventory()));
            return None;
        }
        Some(())
    }

    /// Ends every client.
    fn leave(&mut self) -> Option<()> {
        let shared = Rc::clone(&self.shared);
        for client in self.clients.iter_mut().filter(|client| !client.is_ended()) {
            client.actions_left = 0;
            let leaves = client.accepts_all || shared.random.chance(2, 3);
            match client.is_leaving {
                false if leaves => client.leave(&shared, &mut self.model),
                false => client.die(&shared, &mut self.model),
                true => {}
            }
        }
        drop(shared);
        self.rest("leaving")
    }

    /// Connects a client that drains every queue.
    fn drain(&mut self) -> Option<()> {
        let shared = Rc::clone(&self.shared);
        self.connect_stomp(0);
        self.clients.last_mut()?.accepts_all = true;
        for queue in 0..self.model.queues.len() {
            let spec = self.model.queue(queue).clone();
            let mut is_there = false;
            shared.queues.each(|_, queue| is_there |= queue.name().as_bytes() == spec.name.as_bytes());
            if !is_there || spec.name.starts_with("own") && !self.is_free(&spec.name) {
                continue;
            }
            let client = self.clients.last_mut()?;
            let new = NewSubscription {
                reads: Reads::Queue(queue),
                place: Destination::DeclaredQueue(spec.name),
                group: None,
                arguments: &[],
                mode: Mode::Individual,
                prefetch: 1000,
            };
            client.subscribe(&shared, &mut self.model, new);
        }
        drop(shared);
        self.rest("draining")
    }

    /// The charge and the messages of each queue, for people.
    fn inventory(&self) -> String {
        let mut text = format!("{} bytes are charged", self.shared.memory.gauge().bytes());
        self.shared.queues.each(|_, queue| {
            text.push_str(&format!(
                ", {} + {} in `{}`",
                queue.ready_len(),
                queue.unsettled_len(),
                queue.name()
            ));
        });
        text
    }

    /// The messages that the draining client received, each with its number of queues.
    fn drained(&self) -> BTreeMap<usize, usize> {
        let drainer = self.clients.last().map(|client| client.session);
        let mut waiting = BTreeMap::new();
        for ((message, _), last) in &self.model.last_deliveries {
            if Some(last.session) == drainer {
                *waiting.entry(*message).or_insert(0) += 1;
            }
        }
        waiting
    }

    fn is_free(&self, name: &str) -> bool {
        let mut is_free = true;
        self.shared.queues.each(|_, queue| {
            is_free &= queue.name().as_bytes() != name.as_bytes() || queue.settings().exclusive_to.is_none();
        });
        is_free
    }
}
