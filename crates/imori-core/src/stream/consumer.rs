//! A consumer of a stream: where it is, what is unacknowledged, and who waits for messages.
//!
//! ```text
//!            deliver                ack, term
//!  stream ───────────► pending ───────────────► gone
//!                      │     ▲
//!       nak, time over │     │ deliver again
//!                      ▼     │
//!                     returned
//! ```
//!
//! It keeps the rules of JetStream's consumers and knows no bodies; the stream looks messages up and sends them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::pace::Pace;
use super::pull::{Pin, Requests};
use super::settings::{AckPolicy, ConsumerSettings};
use crate::confirm::Lsn;
use crate::name::Name;
use crate::time::Time;

/// A place in the order of a consumer and in that of its stream; 0 is before the first.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The number of the delivery, which rises by one with each.
    pub consumer: u64,
    /// The sequence number of the message.
    pub stream: u64,
}

/// A delivery that was not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pending {
    /// The number of its latest delivery.
    pub(crate) number: u64,
    /// How often the message was delivered, the latest time included.
    pub(crate) deliveries: u64,
    /// When it is delivered again.
    pub(crate) due: Time,
}

/// The outcome that a reader gives a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// The message is done.
    Ack,
    /// The message is to be delivered again, after this time if there is one.
    Nak(Option<Duration>),
    /// The reader is still at work; its time begins anew.
    Progress,
    /// The message is never to be delivered again.
    Term,
}

/// A consumer; the module comment has its state diagram.
#[derive(Debug)]
pub struct StreamConsumer {
    pub(crate) name: Name,
    pub(crate) settings: ConsumerSettings,
    pub(crate) created: Time,
    /// The first message that was not looked at yet.
    pub(crate) next: u64,
    /// The messages to deliver before, of one that starts with the newest of each subject.
    pub(crate) first_ones: VecDeque<u64>,
    /// The latest delivery.
    pub(crate) delivered: Position,
    pub(crate) last_delivery: Option<Time>,
    /// All deliveries up to this one are acknowledged.
    pub(crate) floor: Position,
    pub(crate) last_ack: Option<Time>,
    pub(crate) pending: BTreeMap<u64, Pending>,
    /// When pending messages are due, with their sequence numbers.
    due: BTreeSet<(Time, u64)>,
    /// Messages to deliver again, in the order in which they were returned. The first one is pending; others may have
    /// been settled meanwhile.
    returned: VecDeque<u64>,
    /// Messages from `next` on that were acknowledged before the last restart.
    pub(crate) done: BTreeSet<u64>,
    /// Messages below this number may have been delivered before the last restart, which forgot that.
    pub(crate) restored_end: u64,
    /// Messages that nobody has got yet.
    pub(crate) unread: u64,
    pub(crate) requests: Requests,
    /// The client whose requests get messages, of a consumer that serves only one.
    pub(crate) pin: Option<Box<Pin>>,
    /// The deliver subject has a subscription.
    pub(crate) is_active: bool,
    /// When the last interest was seen.
    pub(crate) last_interest: Time,
    /// When the reader of a push consumer was last found behind.
    pub(crate) held_until: Option<Time>,
    /// When the next heartbeat is due.
    pub(crate) heartbeat: Option<Time>,
    /// What slows its deliveries down, if anything does.
    pub(crate) pace: Option<Box<Pace>>,
    /// What it waits for since its last turn; `None` if its next turn is due.
    pub(crate) rest: Option<Rest>,
    /// The record that has the whole state; later records have changes of it.
    pub(crate) recorded: Lsn,
    /// The state has changed since its last record.
    pub(crate) is_changed: bool,
}

/// What a consumer waits for that has nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rest {
    /// The end of the messages that it has looked at.
    seen_end: u64,
    /// When it has something to do without being asked.
    due: Option<Time>,
}

/// The message that a consumer would deliver next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextMessage {
    /// This one, which was delivered before.
    Redelivery(u64),
    /// This one, which was chosen when the consumer was made.
    Initial(u64),
    /// The first one from this number on that the filter takes.
    From(u64),
}

impl StreamConsumer {
    /// A consumer that looks at messages from `next` on, and delivers `first_ones` before.
    pub(crate) fn new(
        name: Name,
        settings: ConsumerSettings,
        (next, first_ones): (u64, VecDeque<u64>),
        unread: u64,
        now: Time,
    ) -> StreamConsumer {
        let before = first_ones.front().copied().unwrap_or(next).saturating_sub(1);
        let place = Position { consumer: 0, stream: before };
        let requests = Requests::new(settings.requests_max, settings.request_policy);
        StreamConsumer {
            name,
            created: now,
            next,
            first_ones,
            delivered: place,
            last_delivery: None,
            floor: place,
            last_ack: None,
            pending: BTreeMap::new(),
            due: BTreeSet::new(),
            returned: VecDeque::new(),
            done: BTreeSet::new(),
            restored_end: 0,
            unread,
            requests,
            pin: None,
            is_active: false,
            last_interest: now,
            held_until: None,
            heartbeat: None,
            pace: None,
            rest: None,
            recorded: Lsn::NONE,
            is_changed: true,
            settings,
        }
    }

    /// Whether it may have something to do: it was changed since its last turn, its time has come, or it has a request and
    /// there are messages before `visible_end` that it has not looked at. A consumer that pushes always has a turn, because
    /// nothing tells it when its readers come and go.
    pub(crate) fn has_turn(&self, now: Time, visible_end: u64) -> bool {
        let Some(Rest { seen_end, due }) = self.rest else { return true };
        self.settings.push.is_some()
            || due.is_some_and(|due| due <= now)
            || seen_end != visible_end && !self.requests.is_empty()
    }

    /// Ends its turn, in which it has looked at all messages before `seen_end`.
    pub(crate) fn rest(&mut self, seen_end: u64) {
        self.rest = Some(Rest { seen_end, due: self.next_due() });
    }

    /// The message that it would deliver next; `None` while nothing is to be repeated, and it must not deliver anything
    /// new.
    pub(crate) fn next_message(&self) -> Option<NextMessage> {
        if let Some(sequence) = self.returned.front() {
            return Some(NextMessage::Redelivery(*sequence));
        }
        let is_full = self.settings.pending_max.is_some_and(|max| self.pending.len() >= max);
        if is_full && self.settings.acks != AckPolicy::None {
            return None;
        }
        Some(match self.first_ones.front() {
            Some(sequence) => NextMessage::Initial(*sequence),
            None => NextMessage::From(self.next),
        })
    }

    /// Notes a delivery; returns its number and how often the message was delivered now.
    pub(crate) fn deliver(&mut self, next: NextMessage, sequence: u64, now: Time) -> (u64, u64) {
        let number = self.delivered.consumer + 1;
        self.delivered.consumer = number;
        self.last_delivery = Some(now);
        self.is_changed = true;
        let before = self.forget(sequence);
        if let NextMessage::Redelivery(_) = next {
            self.returned.pop_front();
        } else {
            self.pass(next, sequence);
            self.delivered.stream = self.delivered.stream.max(sequence);
        }
        let deliveries = before.map_or(0, |pending| pending.deliveries) + 1;
        if self.settings.acks == AckPolicy::None {
            self.floor = self.delivered;
        } else {
            let due = now.after(self.settings.wait_of(deliveries));
            self.put(sequence, Pending { number, deliveries, due });
        }
        self.drop_settled_returns();
        (number, deliveries)
    }

    /// Notes that the next message was looked at, whether it was delivered or is gone.
    pub(crate) fn pass(&mut self, next: NextMessage, sequence: u64) {
        match next {
            NextMessage::Redelivery(_) => {
                self.returned.pop_front();
                self.drop_settled_returns();
            }
            NextMessage::Initial(_) => {
                self.first_ones.pop_front();
                self.unread = self.unread.saturating_sub(1);
            }
            NextMessage::From(_) => {
                self.next = self.next.max(sequence.saturating_add(1));
                self.unread = self.unread.saturating_sub(1);
            }
        }
    }

    /// Whether a message was acknowledged before the last restart; then it is passed over.
    pub(crate) fn is_done(&self, sequence: u64) -> bool {
        self.done.contains(&sequence)
    }

    /// Passes over a message that was acknowledged before the last restart.
    pub(crate) fn pass_done(&mut self, sequence: u64) {
        self.done.remove(&sequence);
        self.next = self.next.max(sequence.saturating_add(1));
    }

    /// Whether a message has had all the deliveries that it may have.
    pub(crate) fn is_spent(&self, sequence: u64) -> bool {
        let deliveries = self.pending.get(&sequence).map_or(0, |pending| pending.deliveries);
        self.settings.deliveries_max.is_some_and(|max| deliveries >= max)
    }

    /// Settles a delivery; returns the messages that are done.
    pub(crate) fn settle(&mut self, sequence: u64, settlement: Settlement, now: Time) -> Vec<u64> {
        match settlement {
            Settlement::Ack | Settlement::Term => self.acknowledge(sequence, now),
            Settlement::Progress => {
                if let Some(pending) = self.forget(sequence) {
                    let due = now.after(self.settings.wait_of(pending.deliveries));
                    self.put(sequence, Pending { due, ..pending });
                }
                Vec::new()
            }
            Settlement::Nak(delay) => {
                if let Some(pending) = self.forget(sequence) {
                    let due = delay.map_or(Time::NEVER, |delay| now.after(delay));
                    self.put(sequence, Pending { due, ..pending });
                    if delay.is_none() {
                        self.give_back(sequence);
                    }
                }
                Vec::new()
            }
        }
    }

    fn acknowledge(&mut self, sequence: u64, now: Time) -> Vec<u64> {
        let done: Vec<u64> = match self.settings.acks {
            AckPolicy::None => return Vec::new(),
            AckPolicy::Explicit => {
                self.pending.contains_key(&sequence).then_some(sequence).into_iter().collect()
            }
            AckPolicy::All => self.pending.range(..=sequence).map(|(sequence, _)| *sequence).collect(),
        };
        if done.is_empty() {
            return done;
        }
        self.last_ack = Some(now);
        self.is_changed = true;
        let numbers = done.iter().filter_map(|done| self.forget(*done)).map(|pending| pending.number);
        let highest = numbers.max().unwrap_or(0);
        self.raise_floor(highest, sequence);
        self.drop_settled_returns();
        done
    }

    /// Whether an acknowledgement may belong to a delivery from before the last restart.
    pub(crate) fn may_be_restored(&self, sequence: u64) -> bool {
        self.settings.acks == AckPolicy::Explicit && (self.next..self.restored_end).contains(&sequence)
    }

    /// Notes that a message which was delivered before the last restart is acknowledged. Returns whether that is new.
    pub(crate) fn acknowledge_restored(&mut self, sequence: u64) -> bool {
        let is_new = self.done.insert(sequence);
        if is_new {
            self.unread = self.unread.saturating_sub(1);
            self.is_changed = true;
        }
        is_new
    }

    /// Raises the floor after the delivery with this number was acknowledged, by the rules of nats-server.
    fn raise_floor(&mut self, number: u64, sequence: u64) {
        if self.pending.is_empty() {
            self.floor = self.delivered;
        } else if self.settings.acks == AckPolicy::All {
            self.floor = Position { consumer: number, stream: sequence };
        } else if number == self.floor.consumer + 1 {
            let next = self.pending.range(sequence..).next();
            self.floor = match next {
                Some((next, pending)) => {
                    Position { consumer: pending.number.saturating_sub(1), stream: next.saturating_sub(1) }
                }
                None => Position { consumer: number, stream: sequence },
            };
        }
    }

    /// Forgets a message that the stream no longer has. `is_wanted` tells whether the filter takes its subject.
    pub(crate) fn removed(&mut self, sequence: u64, is_wanted: bool) {
        if let Some(pending) = self.forget(sequence) {
            (self.is_changed, self.rest) = (true, None);
            self.raise_floor(pending.number, sequence);
            self.drop_settled_returns();
        } else if let Some(at) = self.first_ones.iter().position(|first| *first == sequence) {
            self.first_ones.remove(at);
            self.unread = self.unread.saturating_sub(1);
        } else if self.done.remove(&sequence) {
            self.is_changed = true;
        } else if is_wanted && sequence >= self.next {
            self.unread = self.unread.saturating_sub(1);
        }
    }

    /// Returns the deliveries that were not acknowledged in time.
    pub(crate) fn return_due(&mut self, now: Time) {
        while let Some((due, sequence)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            self.due.remove(&(due, sequence));
            if let Some(pending) = self.pending.get_mut(&sequence) {
                pending.due = Time::NEVER;
            }
            self.give_back(sequence);
        }
    }

    /// Gives up on a message that was delivered as often as it may be; returns how often that was.
    pub(crate) fn give_up(&mut self, sequence: u64) -> u64 {
        self.returned.pop_front();
        let Some(pending) = self.forget(sequence) else { return 0 };
        self.drop_settled_returns();
        self.is_changed = true;
        self.raise_floor(pending.number, sequence);
        pending.deliveries
    }

    /// The time at which it has something to do without being asked.
    pub(crate) fn due(&self) -> Option<Time> {
        self.rest.map_or_else(|| self.next_due(), |rest| rest.due)
    }

    fn next_due(&self) -> Option<Time> {
        // The end of a subscription is not reported to the stream, so interest is polled.
        let idle = self.settings.inactive_max.filter(|_| self.requests.is_empty());
        let idle = idle.map(|max| self.last_interest.after(max));
        let ack = self.due.first().map(|(due, _)| *due).filter(|due| *due < Time::NEVER);
        let times = [
            ack,
            self.requests.next_due(),
            idle,
            self.held_until,
            self.heartbeat,
            self.settings.paused_until,
            self.pace.as_ref().and_then(|pace| pace.held_until),
            self.pin.as_ref().map(|pin| pin.due),
        ];
        times.into_iter().flatten().min()
    }

    /// Whether it was without interest for too long.
    pub(crate) fn is_idle_too_long(&self, now: Time) -> bool {
        let is_over = |max| self.last_interest.after(max) <= now;
        self.settings.inactive_max.is_some_and(is_over) && !self.has_interest()
    }

    fn has_interest(&self) -> bool {
        self.is_active || !self.requests.is_empty()
    }

    /// Whether a message is needed: it was not delivered yet, or it is unacknowledged.
    pub(crate) fn needs(&self, sequence: u64, subject: &[u8]) -> bool {
        // What was acknowledged before the last restart is ahead and not needed.
        let is_ahead = sequence >= self.next && !self.done.contains(&sequence);
        let is_ahead = is_ahead || self.first_ones.contains(&sequence);
        self.pending.contains_key(&sequence) || is_ahead && self.settings.filter.takes(subject)
    }

    /// Goes to another place in the stream, where everything is unread.
    pub(crate) fn reset(&mut self, next: u64, unread: u64) {
        let place = Position { consumer: 0, stream: next.saturating_sub(1) };
        self.restore(place, place, std::iter::empty());
        (self.next, self.unread) = (next, unread);
        (self.last_delivery, self.last_ack) = (None, None);
        self.first_ones.clear();
        self.done.clear();
        self.is_changed = true;
    }

    /// Restores the state that a record has.
    pub(crate) fn restore(
        &mut self,
        delivered: Position,
        floor: Position,
        pending: impl Iterator<Item = (u64, Pending)>,
    ) {
        (self.delivered, self.floor) = (delivered, floor);
        self.next = self.next.max(delivered.stream + 1);
        self.pending.clear();
        self.due.clear();
        self.returned.clear();
        for (sequence, pending) in pending {
            self.put(sequence, pending);
        }
    }

    fn give_back(&mut self, sequence: u64) {
        if !self.returned.contains(&sequence) {
            self.returned.push_back(sequence);
        }
    }

    /// Drops messages that were settled after they were returned, up to the first one that is still pending.
    fn drop_settled_returns(&mut self) {
        while self.returned.front().is_some_and(|sequence| !self.pending.contains_key(sequence)) {
            self.returned.pop_front();
        }
    }

    fn put(&mut self, sequence: u64, pending: Pending) {
        self.due.insert((pending.due, sequence));
        self.pending.insert(sequence, pending);
    }

    fn forget(&mut self, sequence: u64) -> Option<Pending> {
        let pending = self.pending.remove(&sequence)?;
        self.due.remove(&(pending.due, sequence));
        Some(pending)
    }
}

#[cfg(test)]
mod tests;
