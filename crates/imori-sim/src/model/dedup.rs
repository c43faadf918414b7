//! Checks de-duplication: a queue accepts each id once within its window.

use super::duplicate::{Span, Taken};
use super::model::Model;
use super::records::Arrived;
use crate::broker_end::Crash;
use crate::machine::Shared;
use crate::property::Property;

impl Model {
    /// Notes that a queue accepted the message, as its delivery proves: this queue, or the one it
    /// died in. No message with the same id may have been accepted within the window.
    pub(crate) fn note_taken(&mut self, shared: &Shared, arrived: &Arrived<'_>, queue: usize) {
        let message = arrived.message;
        let died_in = arrived.death.and_then(|(reason, name)| {
            let spec = self.queues.iter().position(|spec| spec.name == name);
            // A refused message is dead-lettered without having been accepted.
            spec.filter(|spec| !(reason == "maxlen" && self.queue(*spec).refuses))
        });
        let is_dead = self.queue(queue).is_dead_letter_queue;
        let queue = if is_dead { died_in } else { Some(queue) };
        let Some(queue) = queue.filter(|queue| !self.queue(*queue).is_volatile) else { return };
        let (Some(window), Some(span)) = (self.queue(queue).window, self.span(message, queue)) else {
            return;
        };
        let taken = Taken { at: shared.clock.get(), step: shared.step.get(), is_dead };
        self.taken.entry((message, queue)).or_insert(taken);
        let others = self.others(message).filter(|other| self.taken.contains_key(&(*other, queue)));
        let other = others.into_iter().find(|other| {
            let is_within =
                self.span(*other, queue).is_some_and(|of_other| of_other.is_within(&span, window));
            is_within && !self.may_be_forgotten(message, *other, queue)
        });
        if let Some(other) = other {
            let spans = (self.span(other, queue), span);
            shared.violate(Property::Dedup, || {
                format!("messages {other} and {message} have one id and came from queue {queue}: {spans:?}")
            });
        }
    }

    /// Whether a queue may have discarded a message as a duplicate. `is_there` tells whether a
    /// message was accepted itself.
    pub(crate) fn is_duplicate(
        &self,
        message: usize,
        queue: usize,
        is_there: impl Fn(usize) -> bool,
    ) -> bool {
        let (Some(window), Some(span)) = (self.queue(queue).window, self.span(message, queue)) else {
            return false;
        };
        let may_hide =
            |other: &usize| self.span(*other, queue).is_some_and(|of_other| of_other.may_hide(&span, window));
        let has_ttl = |other: usize| self.messages.get(other).is_some_and(|other| other.has_ttl);
        let may_be_gone = |other: usize| has_ttl(other) || self.may_be_purged(other, queue);
        self.others(message).filter(may_hide).any(|other| is_there(other) || may_be_gone(other))
    }

    /// Whether other messages share this message's id.
    pub(crate) fn is_repeated(&self, message: usize) -> bool {
        self.others(message).next().is_some()
    }

    /// The time span in which a queue can have accepted a message with a shared id.
    pub(crate) fn span(&self, message: usize, queue: usize) -> Option<Span> {
        let duplicate = self.messages.get(message)?.duplicate?;
        Some(duplicate.span(self.taken.get(&(message, queue))))
    }

    /// The other messages that were sent with the same id.
    fn others(&self, message: usize) -> impl Iterator<Item = usize> {
        let duplicate = self.messages.get(message).and_then(|message| message.duplicate);
        let same = duplicate.and_then(|duplicate| self.same.get(&duplicate.first));
        let is_sent = |other: &usize| self.messages.get(*other).is_some_and(|other| other.sent_at.is_some());
        same.into_iter().flatten().copied().filter(move |other| *other != message && is_sent(other))
    }

    /// Whether an end of the broker may have erased the id of one message before the other arrived.
    fn may_be_forgotten(&self, one: usize, other: usize, queue: usize) -> bool {
        let taken = |message| self.taken.get(&(message, queue));
        let step = |message| taken(message).map(|taken| taken.step);
        let may_take = |lost: usize, kept: usize, crash: &Crash| {
            let sent = self.messages.get(lost).and_then(|lost| lost.sent_at);
            let may_be_gone = taken(lost).is_none_or(|taken| taken.is_dead || taken.step <= crash.at);
            let is_before = sent.is_some_and(|sent| sent <= crash.at) && may_be_gone;
            let may_come_after = step(kept).is_none_or(|seen| seen > crash.at);
            is_before && may_come_after && !self.is_kept(lost, queue, crash.kind, crash.at)
        };
        self.crashes.iter().any(|crash| may_take(one, other, crash) || may_take(other, one, crash))
    }
}
