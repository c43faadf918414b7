//! The arrival of a message in a queue: it is delivered at once, stored or refused.

use std::sync::Arc;
use std::time::Duration;

use super::leave::Effects;
use super::queue::Queue;
use crate::confirm::{Level, Lsn};
use crate::consumers::{Stance, is_grouped};
use crate::delivery::{Delivery, DeliveryCount, Taken};
use crate::entries::Entry;
use crate::features::QueueFeatures;
use crate::id::Reader;
use crate::message::{AddressView, DeathReason, Deaths, Envelope, Properties, Publication};
use crate::policy::Overflow;
use crate::time::Time;

/// The circumstances of a publish.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// The address that the message was published to.
    pub address: &'a AddressView<'a>,
    /// The message's history, if it comes from another queue.
    pub deaths: Option<&'a Arc<Deaths>>,
    /// The message's record, if this queue is named in it; otherwise [`Lsn::NONE`].
    pub lsn: Lsn,
    /// When the message arrived.
    pub now: Time,
}

/// The result of publishing to a queue that took the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// A consumer has the message.
    Delivered,
    /// The message waits.
    Waiting,
    /// The message is from the queue's own reader, and was dropped.
    Local,
}

/// The queue is at its length limit, and its overflow policy is to refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFull;

impl Queue {
    /// Takes a message: delivers it to a consumer, or stores it.
    ///
    /// Calls `offer` with the delivery for one consumer after another until one takes it. Consequences are
    /// added to `effects`.
    ///
    /// # Errors
    /// [`QueueFull`] if the length limit is reached and the overflow policy is to refuse.
    #[inline]
    pub fn publish(
        &mut self,
        publication: &Publication<'_>,
        arrival: &Arrival<'_>,
        offer: &mut impl FnMut(Reader, &Delivery<'_>) -> Taken,
        effects: &mut Effects,
    ) -> Result<Published, QueueFull> {
        self.debug_features();
        let properties = publication.view().properties;
        let is_plain = properties.delay_ms.is_none() && !is_grouped(&publication.view());
        // Nearly every message: no optional part is concerned, and the first consumer may have it.
        if is_plain && !self.features.any(QueueFeatures::OF_PUBLISH) && self.ready.is_empty() {
            while let Some(reader) = self.consumers.first() {
                let delivery = Delivery {
                    message: publication.view(),
                    shared_body: publication.shared_body(),
                    address: arrival.address,
                    deaths: arrival.deaths,
                    sequence: self.next_sequence,
                    failures: 0,
                    is_redelivered: false,
                    is_last: true,
                    is_of_stream: false,
                };
                let taken = offer(reader, &delivery);
                if matches!(taken, Taken::Settled | Taken::Unsettled) {
                    self.consumers.served_in_turn(reader);
                    self.note_delivered(publication, arrival, taken, effects);
                    return Ok(Published::Delivered);
                }
                self.consumers.wait(reader);
            }
            return self.publish_to_wait(publication, arrival, effects);
        }
        self.publish_with_care(publication, arrival, offer, effects)
    }

    /// Accounts for a new message that was delivered without waiting.
    #[inline]
    fn note_delivered(
        &mut self,
        publication: &Publication<'_>,
        arrival: &Arrival<'_>,
        taken: Taken,
        effects: &mut Effects,
    ) {
        self.activity.delivered(taken, false);
        self.activity.published += 1;
        if taken == Taken::Settled {
            self.next_sequence += 1;
            if arrival.lsn != Lsn::NONE {
                effects.settled.extend(self.record_ref(arrival.lsn));
            }
            return;
        }
        let entry = self.entry(publication, arrival);
        self.gauge.add(Entry::CHARGE);
        self.note_given_out(&entry, effects);
        self.give_out(entry);
        self.charge_room();
    }

    /// Stores a message that no consumer takes now, or refuses it.
    fn publish_to_wait(
        &mut self,
        publication: &Publication<'_>,
        arrival: &Arrival<'_>,
        effects: &mut Effects,
    ) -> Result<Published, QueueFull> {
        if self.refuses(1, publication.view().body.len() as u64) {
            self.refuse(publication, arrival, effects);
            return Err(QueueFull);
        }
        self.enqueue(publication, arrival, effects);
        Ok(Published::Waiting)
    }

    /// Takes a message if a feature of [`QueueFeatures::OF_PUBLISH`] is in use, if the message is delayed or
    /// grouped, or if other messages are ready.
    #[inline(never)]
    fn publish_with_care(
        &mut self,
        publication: &Publication<'_>,
        arrival: &Arrival<'_>,
        offer: &mut impl FnMut(Reader, &Delivery<'_>) -> Taken,
        effects: &mut Effects,
    ) -> Result<Published, QueueFull> {
        if self.stream.is_some() {
            // Its consumers get it once it is at the stream's level.
            return Ok(self.append(publication, arrival, effects));
        }
        self.move_due(arrival.now, effects);
        if let Some(own) = &self.no_local
            && publication.publisher() == Some(own)
        {
            effects.settled.extend(self.record_ref(arrival.lsn));
            return Ok(Published::Local);
        }
        let sequence = self.next_sequence;
        let (is_empty, end) = (self.ready.is_empty(), self.ready_end);
        let is_offered = is_empty || self.consumers.has_seekers();
        if is_offered && due(publication, arrival).is_none() && self.consumers.has_any() {
            let view = publication.view();
            if !self.consumers.has_groups() && is_grouped(&view) {
                self.begin_groups();
                // Each consumer has a seeker now, which must reach the end before a new message is offered.
                self.seek(arrival.now, offer, effects);
            }
            let delivery = Delivery {
                message: view,
                shared_body: publication.shared_body(),
                address: arrival.address,
                deaths: arrival.deaths,
                sequence,
                failures: 0,
                is_redelivered: false,
                is_last: is_empty,
                is_of_stream: false,
            };
            let stance = Stance::Fresh((!is_empty).then_some(end));
            if let Some(taken) = self.offer_in_turn(&delivery, stance, offer) {
                self.note_delivered(publication, arrival, taken, effects);
                self.seek_behind(&view, arrival.now, offer, effects);
                return Ok(Published::Delivered);
            }
        }
        self.publish_to_wait(publication, arrival, effects)?;
        if self.consumers.has_seekers() && self.ready_end > end && self.consumers.pass(end, self.ready_end) {
            self.seek(arrival.now, offer, effects);
        }
        Ok(Published::Waiting)
    }

    /// Whether this many more messages, with this many body bytes, would be refused now.
    ///
    /// If the overflow policy is to refuse, a delayed message takes up room from its arrival: once it is due,
    /// its publisher can no longer be told.
    pub fn refuses(&self, messages: u64, body_bytes: u64) -> bool {
        let (delayed, delayed_bytes) =
            self.delayed.as_ref().map_or((0, 0), |delayed| (delayed.len() as u64, delayed.body_bytes()));
        self.settings.overflow != Overflow::DropHead
            && self.is_over_with(messages + delayed, body_bytes + delayed_bytes)
    }

    /// Refuses a message after [`Queue::refuses`] said so; dead-letters it if that is the overflow policy.
    pub fn refuse(&mut self, publication: &Publication<'_>, arrival: &Arrival<'_>, effects: &mut Effects) {
        if self.settings.overflow == Overflow::RejectPublishDeadLetter {
            let mut entry = self.entry(publication, arrival);
            self.gauge.add(Entry::CHARGE);
            // The mark lasts while the dead letter is pending, and through a restart: the message was never
            // accepted, and must not be delayed either.
            entry.envelope.is_rejected = true;
            self.die(entry, DeathReason::Overflow, arrival.now, effects);
        } else {
            effects.settled.extend(self.record_ref(arrival.lsn));
        }
    }

    /// Stores a message even if a consumer could take it: for a commit, which delivers afterwards.
    pub fn enqueue(&mut self, publication: &Publication<'_>, arrival: &Arrival<'_>, effects: &mut Effects) {
        if self.stream.is_some() {
            self.append(publication, arrival, effects);
            return;
        }
        self.move_due(arrival.now, effects);
        self.activity.published += 1;
        let entry = self.entry(publication, arrival);
        match due(publication, arrival) {
            Some(due) => self.delay(due, entry),
            None => {
                self.gauge.add(Entry::CHARGE);
                self.wait_sample.begin(entry.envelope.sequence, arrival.now, self.ready.is_empty());
                self.ready_end = self.next_sequence;
                self.ready.push(entry);
                self.drop_surplus(arrival.now, effects);
            }
        }
    }

    pub(crate) fn entry(&mut self, publication: &Publication<'_>, arrival: &Arrival<'_>) -> Entry {
        let properties = publication.view().properties;
        let message = publication.stored(&self.gauge);
        // The time to live begins when a consumer could first have the message.
        let from = due(publication, arrival).unwrap_or(arrival.now);
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.need_record(arrival.lsn);
        let priority = self.priority_of(properties);
        // Pages keep the numbers of a stream's messages.
        let position =
            if self.stream.is_some() { sequence } else { self.next_position(priority, arrival.lsn) };
        Entry {
            message,
            envelope: Envelope {
                address: arrival.address.keep(),
                sequence,
                lsn: arrival.lsn,
                since: from,
                expiration_ms: Entry::expiration_ms(properties, Deaths::any(arrival.deaths)),
                deaths: arrival.deaths.cloned(),
                failures: 0,
                is_redelivered: false,
                is_rejected: false,
                priority,
            },
            page: None,
            position,
        }
    }

    /// Notes that the queue needs this record.
    pub(crate) fn need_record(&mut self, lsn: Lsn) {
        if self.keeps(lsn) {
            self.live_records.add(lsn);
        }
    }

    /// Notes that the queue no longer needs this record.
    pub(crate) fn release_record(&mut self, lsn: Lsn) {
        if self.keeps(lsn) {
            self.live_records.remove(lsn);
        }
    }

    /// The message's priority, at most the queue's highest.
    pub(crate) fn priority_of(&self, properties: &Properties) -> u8 {
        self.settings.priority_max.unwrap_or(0).min(properties.priority.unwrap_or(0))
    }

    /// Restores a message that the queue had before a restart. `arrival` has its original time.
    ///
    /// Returns the delayed messages that were due by then, and after them the message itself unless it is
    /// delayed.
    pub(crate) fn found(
        &mut self,
        publication: &Publication<'_>,
        arrival: &Arrival<'_>,
        count: Option<&DeliveryCount>,
        is_doubtful: bool,
    ) -> Vec<Entry> {
        let mut found = self.due_before(arrival.now);
        let mut entry = self.entry(publication, arrival);
        let is_counted = count.is_some_and(|count| count.is_redelivered);
        if let Some(count) = count {
            count.apply_to(&mut entry.envelope);
        }
        entry.envelope.is_redelivered |= is_doubtful;
        let is_dying = self.death_reason(&entry.envelope).is_some();
        match due(publication, arrival).filter(|_| !is_dying) {
            Some(due) => {
                // A doubtful message may have been delivered, but not if it is due now or later. `last_used`
                // is the time of the restoration.
                entry.envelope.is_redelivered = is_counted || is_doubtful && due < self.last_used;
                self.delay(due, entry);
            }
            None => found.push(entry),
        }
        found
    }

    pub(crate) fn is_over_with(&self, messages: u64, bytes: u64) -> bool {
        let len = self.ready.len() as u64 + messages;
        let body_bytes = self.ready.body_bytes() + bytes;
        self.settings.length_max.is_some_and(|max| len > max)
            || self.settings.length_bytes_max.is_some_and(|max| body_bytes > max)
    }

    /// Whether the queue needs this record for as long as it has the message.
    pub(crate) fn keeps(&self, lsn: Lsn) -> bool {
        lsn != Lsn::NONE && self.durability.is_some_and(|durability| durability.level > Level::Memory)
    }
}

/// When a delayed message becomes ready; `None` if that is on arrival. A dead letter was delayed before.
fn due(publication: &Publication<'_>, arrival: &Arrival<'_>) -> Option<Time> {
    let delay = publication.view().properties.delay_ms.filter(|_| !Deaths::any(arrival.deaths))?;
    Some(arrival.now.after(Duration::from_millis(u64::from(delay.get()))))
}

#[cfg(test)]
mod tests {
    use super::super::settings::QueueSettings;
    use super::super::test_stage::{SECOND, Stage, UNLIMITED, dead_lettering, properties_with};
    use super::*;

    #[test]
    fn length_limits_hold_with_each_overflow_policy() {
        use Overflow::{DropHead, RejectPublish, RejectPublishDeadLetter};
        // Limits, policy, bodies published; bodies kept and dead-lettered, and the number of refusals.
        for (length_max, bytes_max, overflow, bodies, kept, dead_lettered, refused) in [
            (Some(2), None, DropHead, "a b c", "b c", "a:maxlen", 0),
            (Some(2), None, RejectPublish, "a b c", "a b", "", 1),
            (Some(2), None, RejectPublishDeadLetter, "a b c", "a b", "c:maxlen", 1),
            (Some(0), None, DropHead, "a b", "", "a:maxlen b:maxlen", 0),
            (Some(0), None, RejectPublish, "a", "", "", 1),
            (None, Some(4), DropHead, "aa bb c", "bb c", "aa:maxlen", 0),
            (None, Some(4), DropHead, "a b cccc", "cccc", "a:maxlen b:maxlen", 0),
            (None, Some(4), DropHead, "a ccccc", "", "a:maxlen ccccc:maxlen", 0),
            (None, Some(4), RejectPublish, "aaa bb c", "aaa c", "", 1),
            (Some(1), Some(100), RejectPublishDeadLetter, "a b", "a", "b:maxlen", 1),
            (Some(u64::MAX), Some(u64::MAX), RejectPublish, "a b", "a b", "", 0),
        ] {
            let settings =
                QueueSettings { length_max, length_bytes_max: bytes_max, overflow, ..dead_lettering() };
            let mut stage = Stage::new(settings);
            let results: Vec<_> = bodies.split(' ').map(|body| stage.publish(body)).collect();
            let row = format!("{length_max:?} {bytes_max:?} {overflow:?} {bodies}");
            assert_eq!(results.iter().filter(|result| result.is_err()).count(), refused, "{row}");
            assert_eq!(stage.dead_lettered(), dead_lettered, "{row}");
            stage.consume(1, 0, UNLIMITED);
            assert_eq!(stage.bodies(), kept, "{row}");
        }
    }

    #[test]
    fn a_full_queue_hands_over_to_who_waits() {
        for overflow in [Overflow::DropHead, Overflow::RejectPublish, Overflow::RejectPublishDeadLetter] {
            let settings = QueueSettings { length_max: Some(0), overflow, ..dead_lettering() };
            let mut stage = Stage::with_reader(settings, UNLIMITED);
            assert_eq!(stage.publish("a"), Ok(Published::Delivered));
            assert_eq!((stage.bodies(), stage.dead_lettered()), ("a".to_owned(), String::new()));
        }
    }

    #[test]
    fn the_more_urgent_goes_first_and_the_least_urgent_is_dropped_first() {
        // Priorities of the queue and of messages a, b, c ...; the order of delivery.
        for (priority_max, priorities, given) in [
            (None, &[Some(1), Some(9), None][..], "a b c"),
            (Some(0), &[Some(1), Some(9), None], "a b c"),
            (Some(9), &[Some(1), Some(9), None], "b a c"),
            (Some(5), &[Some(5), Some(255), Some(6), Some(0)], "a b c d"),
            (Some(255), &[Some(254), Some(255), Some(254), None], "b a c d"),
        ] {
            let mut stage = Stage::new(QueueSettings { priority_max, ..QueueSettings::default() });
            for (body, priority) in ["a", "b", "c", "d"].into_iter().zip(priorities) {
                stage.publish_with(body, &properties_with(*priority, None), None).unwrap();
            }
            stage.consume(1, 0, UNLIMITED);
            assert_eq!(stage.bodies(), given, "{priority_max:?} {priorities:?}");
        }
        let mut stage =
            Stage::new(QueueSettings { priority_max: Some(1), length_max: Some(2), ..dead_lettering() });
        for (body, priority) in [("a", 1), ("b", 0), ("c", 1), ("d", 1)] {
            stage.publish_with(body, &properties_with(Some(priority), None), None).unwrap();
        }
        assert_eq!(stage.dead_lettered(), "b:maxlen a:maxlen");
    }

    #[test]
    fn a_message_expires_by_the_shorter_of_both_times() {
        let hour = 3_600_000;
        for (queue_ms, message_ms, lives_ms) in [
            (None, None, None),
            (Some(10), None, Some(10)),
            (None, Some(20), Some(20)),
            (Some(10), Some(20), Some(10)),
            (Some(30), Some(20), Some(20)),
            (Some(0), None, Some(0)),
            (None, Some(u32::MAX), Some(u64::from(u32::MAX))),
            (Some(hour), Some(0), Some(0)),
            // SECURITY LIM-16: a time that is too long is forever.
            (Some(u64::MAX), None, None),
        ] {
            let ttl = queue_ms.map(Duration::from_millis);
            let mut stage = Stage::new(QueueSettings { message_ttl: ttl, ..dead_lettering() });
            stage.publish_with("a", &properties_with(None, message_ms), None).unwrap();
            let expected = lives_ms.map(|ms| stage.now.after(Duration::from_millis(ms)));
            assert_eq!(stage.queue.new_wake_up(), expected, "{queue_ms:?} {message_ms:?}");
            let Some(lives_ms) = lives_ms else { continue };
            if let Some(before) = lives_ms.checked_sub(1) {
                stage.pass(Duration::from_millis(before));
                assert_eq!(stage.dead_lettered(), "", "{queue_ms:?} {message_ms:?}");
                stage.pass(Duration::from_millis(1));
            } else {
                stage.pass(Duration::ZERO);
            }
            assert_eq!(stage.dead_lettered(), "a:expired", "{queue_ms:?} {message_ms:?}");
        }
    }

    #[test]
    fn a_dead_letter_does_not_expire_by_its_publishers_time_again() {
        let mut stage = Stage::new(dead_lettering());
        let address = Arc::new(crate::message::Address::new(b"", b"q"));
        let died = Deaths::default().and(&"before".into(), DeathReason::Expired, &address, stage.now);
        let deaths = Arc::new(died);
        let properties = properties_with(None, Some(10));
        stage.publish_with("a", &properties, Some(&deaths)).unwrap();
        assert_eq!(stage.queue.new_wake_up(), None);
        stage.pass(SECOND);
        assert_eq!(stage.queue.ready_len(), 1);
    }

    #[test]
    fn a_message_that_expires_at_once_is_still_given_to_who_waits() {
        let mut stage = Stage::with_reader(dead_lettering(), UNLIMITED);
        stage.publish_with("a", &properties_with(None, Some(0)), None).unwrap();
        assert_eq!(stage.bodies(), "a");
    }

    #[test]
    fn each_delivery_has_a_number_of_its_own_settled_or_not() {
        for settles in [true, false] {
            let mut stage = Stage::with_reader(QueueSettings::default(), UNLIMITED);
            stage.settles = settles;
            for body in ["a", "b", "c"] {
                assert_eq!(stage.publish(body), Ok(Published::Delivered));
            }
            let numbers: Vec<u64> = stage.given.iter().map(|given| given.sequence).collect();
            assert_eq!(numbers, [1, 2, 3], "settles: {settles}");
        }
    }

    #[test]
    fn what_is_found_waits_for_its_time_unless_it_failed_too_often() {
        let limit = 2;
        // Known failures; whether the message was delivered before; whether it waits.
        for (failures, is_out, waits) in
            [(0, false, true), (1, true, true), (2, true, true), (3, true, false)]
        {
            let settings =
                QueueSettings { delivery_limit: Some(limit), is_durable: true, ..dead_lettering() };
            let mut stage = Stage::new(settings);
            let mut properties = properties_with(None, None);
            properties.delay_ms = std::num::NonZeroU32::new(1_000);
            let address = Arc::new(crate::message::Address::new(b"", b"q"));
            let lsn = Lsn(7);
            let arrival = Arrival { address: &AddressView::new(&address), deaths: None, lsn, now: stage.now };
            let record_ref = crate::delivery::RecordRef { queue: crate::id::DurableQueueId(1), lsn };
            let count = DeliveryCount { record_ref, failures, is_redelivered: is_out, is_rejected: false };
            let publication = Publication::new(&properties, b"", b"body");
            let found = stage.queue.found(&publication, &arrival, Some(&count), false);
            let at_once: Vec<u32> = found.iter().map(|entry| entry.envelope.failures).collect();
            assert_eq!(
                (at_once.is_empty(), stage.queue.delayed_len()),
                (waits, usize::from(waits)),
                "{failures}"
            );
            assert!(at_once.iter().all(|known| *known == failures));
            stage.pass(SECOND);
            stage.consume(1, 0, UNLIMITED);
            let given: Vec<_> =
                stage.given.iter().map(|given| (given.failures, given.is_redelivered)).collect();
            assert_eq!(given, if waits { vec![(failures, is_out)] } else { Vec::new() }, "{failures}");
        }
    }
}
