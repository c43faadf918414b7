//! Removes messages from a queue, as accepted, dead-lettered or dropped, or returns them to it.

use std::sync::Arc;
use std::time::Duration;

use super::queue::Queue;
use crate::delivery::{AnnotatedMessage, DeliveryCount, Outcome, PurgedRecords, RecordRef};
use crate::entries::{Entry, Page};
use crate::features::QueueFeatures;
use crate::id::{DurableQueueId, Reader};
use crate::message::{DeathReason, Deaths, Message};
use crate::name::Name;
use crate::room::Allowance;
use crate::time::Time;

/// The effects of a change of a queue, which the caller carries out after unlocking it.
#[derive(Debug, Default)]
pub struct Effects {
    /// Records of messages that the queue no longer has.
    pub settled: Vec<RecordRef>,
    /// Delivery counts of recorded messages that failed, or count as failed until they are settled.
    pub counted: Vec<DeliveryCount>,
    /// The waiting time of the sampled message, if it was delivered.
    pub waited: Option<Duration>,
    /// Effects that few changes have, boxed so that a message without them pays for one word.
    rare: Option<Box<RareEffects>>,
    /// Bytes of the disk that dead letters may take; `None` for no limit.
    room: Option<usize>,
    /// The first dead letter moves, however much room it takes.
    has_first: bool,
}

/// Effects that few changes of a queue have.
#[derive(Debug, Default)]
pub struct RareEffects {
    /// Dead letters, on their way to the queue's dead-letter exchange.
    pub dead: Vec<DeadLetter>,
    /// Delivery counts of dead letters that stay pending until the disk has room.
    pub pending_dead_letters: Vec<DeliveryCount>,
    /// Messages that were purged without being read.
    pub purged: Vec<PurgedRecords>,
    /// Messages that streams no longer have, by the stream's durable id and sequence number.
    pub removed: Vec<(DurableQueueId, u64)>,
    /// Messages that consumers of streams are done with: the stream, the consumer, and the sequence numbers.
    pub acked: Vec<(DurableQueueId, Name, Vec<u64>)>,
    /// Number of messages that died, for each of [`DeathReason::ALL`].
    pub died: [u32; DeathReason::ALL.len()],
}

impl Effects {
    /// No effects yet, of a change that may write this many bytes of dead letters.
    pub fn within(bytes: usize) -> Effects {
        Effects { room: Some(bytes), ..Effects::default() }
    }

    /// No effects yet, of a change with this allowance. Unless disk space is scarce, the first dead letter
    /// moves, however much room it takes.
    #[inline]
    pub fn allowed(allowance: &Allowance<'_>) -> Effects {
        Effects { has_first: !allowance.is_scarce(), ..Effects::within(allowance.bytes()) }
    }

    /// Whether there is nothing to carry out.
    #[inline]
    pub(crate) fn are_none(&self) -> bool {
        self.settled.is_empty() && self.counted.is_empty() && self.rare.is_none() && self.waited.is_none()
    }

    /// Whether there are delivery counts to record.
    #[inline]
    pub(crate) fn have_counts(&self) -> bool {
        !self.counted.is_empty() || self.rare.is_some()
    }

    /// The rare effects, created on first use.
    pub(crate) fn rare_mut(&mut self) -> &mut RareEffects {
        self.rare.get_or_insert_default()
    }

    /// Takes the rare effects, if there are any.
    pub(crate) fn take_rare(&mut self) -> Option<Box<RareEffects>> {
        self.rare.take()
    }

    /// The dead letters.
    pub fn dead(&self) -> &[DeadLetter] {
        self.rare.as_ref().map_or(&[], |rare| &rare.dead)
    }

    /// The messages that were purged without being read.
    pub fn purged(&self) -> &[PurgedRecords] {
        self.rare.as_ref().map_or(&[], |rare| &rare.purged)
    }

    /// The delivery counts of pending dead letters.
    pub fn pending_dead_letters(&self) -> &[DeliveryCount] {
        self.rare.as_ref().map_or(&[], |rare| &rare.pending_dead_letters)
    }

    /// Takes the delivery counts of pending dead letters.
    pub(crate) fn take_pending_dead_letters(&mut self) -> Vec<DeliveryCount> {
        self.rare.as_mut().map(|rare| std::mem::take(&mut rare.pending_dead_letters)).unwrap_or_default()
    }

    /// Counts a message that died for this reason, for the metrics.
    pub(crate) fn count_death(&mut self, reason: DeathReason) {
        if let Some(died) = self.rare_mut().died.get_mut(reason as usize) {
            *died += 1;
        }
    }

    /// Takes room for a dead letter; `false` if there is too little.
    pub(crate) fn take_room(&mut self, bytes: usize) -> bool {
        let Some(left) = &mut self.room else { return true };
        let has_first = std::mem::take(&mut self.has_first);
        let after = left.checked_sub(bytes).or(has_first.then_some(0));
        *left = after.unwrap_or(*left);
        after.is_some()
    }
}

/// A message that left a queue without being accepted, on its way to the dead-letter exchange.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    /// The message's record in its old queue, which is needed until the dead letter is recorded elsewhere;
    /// `None` if it has no record.
    pub record_ref: Option<RecordRef>,
    /// Its sequence number in its old queue.
    pub sequence: u64,
    /// The message itself, unchanged; what happened to it is in `deaths`.
    pub message: Arc<Message>,
    /// The exchange it goes to.
    pub exchange: Name,
    /// Its new routing key.
    pub routing_key: Name,
    /// Its history, including this death.
    pub deaths: Arc<Deaths>,
}

impl DeadLetter {
    /// Replaces the annotations, as [`Queue::annotate`] does.
    pub(crate) fn annotate(&mut self, annotate: impl FnOnce(Option<&[u8]>) -> Option<Box<[u8]>>) {
        if let Some(annotations) = annotate(self.deaths.annotations()) {
            self.deaths = Arc::new(Deaths::clone(&self.deaths).with_annotations(Some(annotations)));
        }
    }
}

impl Queue {
    /// Settles a delivery; returns whether it was unsettled.
    pub fn settle(&mut self, sequence: u64, outcome: Outcome, now: Time, effects: &mut Effects) -> bool {
        let Some(mut entry) = self.take_back(sequence) else {
            return false;
        };
        self.give_back_room();
        match outcome {
            Outcome::Accept => {
                self.activity.accepted += 1;
                self.leave(&entry);
                effects.settled.extend(self.record_ref(entry.envelope.lsn));
            }
            Outcome::Reject => self.die(entry, DeathReason::Rejected, now, effects),
            Outcome::Release { failed } | Outcome::Refuse { failed } => {
                entry.envelope.is_redelivered = true;
                entry.envelope.failures = entry.envelope.failures.saturating_add(u32::from(failed));
                match self.death_reason(&entry.envelope) {
                    Some(reason) => self.die(entry, reason, now, effects),
                    None => {
                        effects.counted.extend(self.count(&entry, entry.envelope.failures));
                        let (priority, sequence) = (entry.envelope.priority, entry.envelope.sequence);
                        self.ready.put_back(entry);
                        // A message that was delivered on arrival is not counted in `ready_end` yet.
                        self.ready_end = self.ready_end.max(sequence + 1);
                        self.consumers.note_returned(priority, sequence);
                    }
                }
            }
        }
        true
    }

    /// Settles a delivery for the consumer that has it; returns whether it was unsettled. A consumer that
    /// refuses a message does not get it again. If it refused too many before, the message is dead-lettered.
    pub fn settle_by(
        &mut self,
        reader: Reader,
        sequence: u64,
        outcome: Outcome,
        now: Time,
        effects: &mut Effects,
    ) -> bool {
        let was_out = self.settle(sequence, outcome, now, effects);
        if was_out && matches!(outcome, Outcome::Refuse { .. }) {
            // The failure may have dead-lettered the message already.
            let priority = self.ready.priority_of_released(sequence);
            if let Some(priority) = priority.filter(|_| !self.consumers.refuse(reader, sequence))
                && let Some(entry) = self.ready.take(priority, sequence)
            {
                self.die(entry, DeathReason::Rejected, now, effects);
            }
            // The consumer has a seeker of its own from now on.
            self.renew_features();
        }
        was_out
    }

    /// Replaces the annotations of an unsettled message. `annotate` gets the current ones and returns the new
    /// ones, or `None` to change nothing. Returns what has to be recorded.
    pub fn annotate(
        &mut self,
        sequence: u64,
        annotate: impl FnOnce(Option<&[u8]>) -> Option<Box<[u8]>>,
    ) -> Option<AnnotatedMessage> {
        let entry = self.unsettled.get_mut(&sequence)?;
        let annotations = annotate(entry.envelope.deaths.as_deref().and_then(Deaths::annotations))?;
        entry.envelope.annotate(annotations);
        self.annotated(self.unsettled.get(&sequence)?)
    }

    /// The annotations of a message for the journal, if it has both annotations and a record.
    pub(crate) fn annotated(&self, entry: &Entry) -> Option<AnnotatedMessage> {
        let annotations = Box::from(entry.envelope.deaths.as_ref()?.annotations()?);
        Some(AnnotatedMessage { record_ref: self.record_ref(entry.envelope.lsn)?, annotations })
    }

    /// The annotations of an unsettled message, if it has any.
    pub fn annotations(&self, sequence: u64) -> Option<&[u8]> {
        self.unsettled.get(&sequence)?.envelope.deaths.as_ref()?.annotations()
    }

    /// The dead letter that settling a delivery with `outcome` would cause, if any.
    pub fn death(&self, sequence: u64, outcome: Outcome, now: Time) -> Option<DeadLetter> {
        let entry = self.unsettled.get(&sequence)?;
        let reason = match outcome {
            Outcome::Accept => return None,
            Outcome::Reject => DeathReason::Rejected,
            Outcome::Release { failed } | Outcome::Refuse { failed } => {
                let failures = entry.envelope.failures.saturating_add(u32::from(failed));
                self.death_reason_after(&entry.envelope, failures)?
            }
        };
        self.dead(entry, reason, now)
    }

    /// Dead-letters the expired messages at the front.
    pub fn expire(&mut self, now: Time, effects: &mut Effects) {
        if self.stream.is_some() {
            return self.expire_in_stream(now, effects);
        }
        let ttl = self.settings.message_ttl;
        let is_due = |entry: &Entry| entry.envelope.deadline(ttl).is_some_and(|deadline| deadline <= now);
        while !self.is_held_up()
            && let Some(entry) = self.ready.pop_if(is_due)
        {
            self.die(entry, DeathReason::Expired, now, effects);
        }
    }

    /// Whether the message's time to live is over.
    pub(crate) fn is_expired(&self, entry: &Entry, now: Time) -> bool {
        entry.envelope.deadline(self.settings.message_ttl).is_some_and(|deadline| deadline <= now)
    }

    /// Dead-letters the oldest messages while the queue exceeds its length limit. A message on disk follows
    /// once it is read.
    pub(crate) fn drop_surplus(&mut self, now: Time, effects: &mut Effects) {
        while self.is_over_with(0, 0) && self.stream.is_none() && !self.is_held_up() {
            let Some(entry) = self.ready.pop_to_drop() else {
                break;
            };
            self.die(entry, DeathReason::Overflow, now, effects);
        }
    }

    pub(crate) fn dead_letter(&self, entry: &Entry, reason: DeathReason, now: Time, effects: &mut Effects) {
        effects.count_death(reason);
        match self.dead(entry, reason, now) {
            Some(dead) => effects.rare_mut().dead.push(dead),
            None => effects.settled.extend(self.record_ref(entry.envelope.lsn)),
        }
    }

    /// The dead letter of an entry, if the queue has a target for dead letters.
    fn dead(&self, entry: &Entry, reason: DeathReason, now: Time) -> Option<DeadLetter> {
        let target = self.settings.dead_letter.as_ref()?;
        let none = Deaths::default();
        let before = entry.envelope.deaths.as_deref().unwrap_or(&none);
        let deaths = before.and(&self.name, reason, &entry.envelope.address, now);
        Some(DeadLetter {
            record_ref: self.record_ref(entry.envelope.lsn),
            sequence: entry.envelope.sequence,
            message: Arc::clone(&entry.message),
            exchange: target.exchange.clone(),
            routing_key: target.routing_key.clone().unwrap_or_else(|| entry.envelope.address.subject.clone()),
            deaths: Arc::new(deaths),
        })
    }

    /// Releases what the queue holds for an entry that is no longer ready or unsettled.
    pub(crate) fn leave(&mut self, entry: &Entry) {
        self.gauge.sub(Entry::CHARGE);
        self.consumers.note_left(entry.envelope.sequence);
        let lsn = entry.envelope.lsn;
        let is_kept = entry.page.and_then(|page| self.pages.get(page)).is_some_and(Page::is_kept);
        if let Some(page) = entry.page {
            self.pages.settle(page, lsn);
        }
        if !is_kept {
            self.release_record(lsn);
        }
        if self.features.any(QueueFeatures::COUNTS) {
            self.counts.remove(&lsn);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::settings::{DeadLetterTarget, QueueSettings};
    use super::super::test_stage::{Stage, UNLIMITED, dead_lettering, properties, properties_with, shown};
    use super::*;
    use crate::message::Address;

    #[test]
    fn released_messages_come_back_to_their_places() {
        for (released, expected) in
            [(&[1, 2][..], "a b c d"), (&[2, 1], "a b c d"), (&[2], "b c d"), (&[], "c d")]
        {
            let mut stage = Stage::with_reader(QueueSettings::default(), 2);
            for body in ["a", "b", "c", "d"] {
                stage.publish(body).unwrap();
            }
            stage.given.clear();
            for sequence in released {
                assert!(stage.settle(*sequence, Outcome::Release { failed: false }));
            }
            stage.grant(1, UNLIMITED);
            for given in &stage.given {
                assert_eq!(given.is_redelivered, given.sequence <= 2, "{given:?}");
                assert_eq!(given.failures, 0);
            }
            assert_eq!(stage.bodies(), expected, "{released:?}");
        }
    }

    #[test]
    fn a_delivery_is_settled_once() {
        let mut stage = Stage::with_reader(QueueSettings::default(), UNLIMITED);
        stage.publish("a").unwrap();
        for (sequence, expected) in [(0, false), (u64::MAX, false), (1, true), (1, false)] {
            assert_eq!(stage.settle(sequence, Outcome::Accept), expected, "{sequence}");
        }
    }

    #[test]
    fn failures_are_counted_up_to_the_delivery_limit() {
        for (limit, failures, deliveries, dead_lettered) in [
            (None, 5, 6, ""),
            (Some(0), 1, 1, "a:delivery_limit"),
            (Some(2), 2, 3, ""),
            (Some(2), 3, 3, "a:delivery_limit"),
            (Some(u32::MAX), 5, 6, ""),
        ] {
            let mut stage =
                Stage::with_reader(QueueSettings { delivery_limit: limit, ..dead_lettering() }, UNLIMITED);
            stage.publish("a").unwrap();
            for _ in 0..failures {
                stage.settle(1, Outcome::Release { failed: true });
            }
            let counts: Vec<u32> = stage.given.iter().map(|given| given.failures).collect();
            assert_eq!(counts, (0..deliveries).collect::<Vec<u32>>(), "{limit:?}");
            assert_eq!(stage.dead_lettered(), dead_lettered, "{limit:?}");
        }
    }

    #[test]
    fn each_priority_expires_by_itself() {
        let mut stage = Stage::new(QueueSettings { priority_max: Some(3), ..dead_lettering() });
        for (body, priority, expiration_ms) in [("high", 3, None), ("mid", 2, Some(20)), ("low", 0, Some(10))]
        {
            let properties = properties_with(Some(priority), expiration_ms);
            stage.publish_with(body, &properties, None).unwrap();
        }
        assert_eq!(stage.queue.new_wake_up(), Some(stage.now.after(Duration::from_millis(10))));
        stage.pass(Duration::from_millis(10));
        assert_eq!(stage.dead_lettered(), "low:expired");
        stage.pass(Duration::from_millis(10));
        assert_eq!(stage.dead_lettered(), "mid:expired");
        assert_eq!(stage.queue.ready_len(), 1);
    }

    #[test]
    fn a_death_is_written_into_the_history() {
        let key = Name::from("failed");
        let target = DeadLetterTarget { exchange: Name::from("dlx"), routing_key: Some(key.clone()) };
        for (routing_key, expected) in [(None, "q"), (Some(key), "failed")] {
            let dead_letter = Some(DeadLetterTarget { routing_key, ..target.clone() });
            let mut stage = Stage::with_reader(QueueSettings { dead_letter, ..QueueSettings::default() }, 1);
            let address = Arc::new(Address::new(b"x", b"y"));
            let before = Deaths::default().and(&Name::from("other"), DeathReason::Expired, &address, Time(7));
            stage.publish_with("a", &properties(), Some(&Arc::new(before))).unwrap();
            stage.settle(1, Outcome::Reject);
            let dead = stage.effects.rare_mut().dead.pop().unwrap();
            assert_eq!(
                (dead.exchange.to_string(), dead.routing_key.to_string()),
                ("dlx".into(), expected.into())
            );
            let deaths: Vec<_> = dead
                .deaths
                .iter()
                .map(|death| (death.queue.to_string(), death.reason, death.count, death.time))
                .collect();
            assert_eq!(
                deaths,
                [
                    ("q".to_owned(), DeathReason::Rejected, 1, stage.now),
                    ("other".to_owned(), DeathReason::Expired, 1, Time(7)),
                ]
            );
            assert_eq!(dead.deaths.first().unwrap().address.subject, Name::from("y"));
        }
    }

    #[test]
    fn without_a_dead_letter_exchange_what_dies_is_gone() {
        let mut stage = Stage::with_reader(QueueSettings::default(), 1);
        stage.publish("a").unwrap();
        assert!(stage.settle(1, Outcome::Reject));
        assert_eq!(stage.dead_lettered(), "");
        assert_eq!(stage.gauge.bytes(), 0);
    }

    #[test]
    fn a_purge_leaves_what_is_not_settled() {
        let mut stage = Stage::with_reader(dead_lettering(), 1);
        for body in ["a", "b", "c"] {
            stage.publish(body).unwrap();
        }
        assert_eq!(stage.purge(), 2);
        assert_eq!((stage.queue.ready_len(), stage.queue.unsettled_len()), (0, 1));
        stage.settle(1, Outcome::Release { failed: false });
        assert_eq!(stage.purge(), 1);
        assert_eq!(stage.dead_lettered(), "");
        assert_eq!(stage.gauge.bytes(), 0);
    }

    #[test]
    fn a_death_by_settling_is_known_before() {
        let outcomes = [
            Outcome::Accept,
            Outcome::Reject,
            Outcome::Release { failed: false },
            Outcome::Release { failed: true },
        ];
        for limit in [None, Some(0), Some(1), Some(2), Some(u32::MAX)] {
            for (before, outcome) in (0..4).flat_map(|before| outcomes.map(|outcome| (before, outcome))) {
                let settings = QueueSettings { delivery_limit: limit, ..dead_lettering() };
                let mut stage = Stage::with_reader(settings, UNLIMITED);
                stage.publish("a").unwrap();
                for _ in 0..before {
                    stage.settle(1, Outcome::Release { failed: true });
                }
                stage.effects.rare_mut().dead.clear();
                let told = stage.queue.death(1, outcome, stage.now).map(|dead| shown(&dead));
                stage.settle(1, outcome);
                let row = format!("{outcome:?} after {before} failures of {limit:?}");
                assert_eq!(told.unwrap_or_default(), stage.dead_lettered(), "{row}");
            }
        }
    }

    #[test]
    fn a_purge_leaves_what_is_not_due() {
        let mut stage = Stage::new(dead_lettering());
        let mut delayed = properties();
        delayed.delay_ms = std::num::NonZeroU32::new(1_000);
        for (body, properties) in [
            ("a", &properties()),
            ("b", &delayed),
            ("c", &properties()),
            ("d", &delayed),
            ("e", &properties()),
        ] {
            stage.publish_with(body, properties, None).unwrap();
        }
        assert_eq!(stage.purge(), 3);
        assert_eq!((stage.queue.ready_len(), stage.queue.delayed_len()), (0, 2));
        assert_eq!((stage.purge(), stage.dead_lettered()), (0, String::new()));
    }
}
