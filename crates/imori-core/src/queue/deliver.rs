//! Delivery of ready messages to consumers, and the charge for the room of unsettled deliveries.

use super::leave::Effects;
use super::queue::{Queue, ROOM_CHARGE, ROOM_KEPT};
use crate::consumers::{Stance, is_grouped};
use crate::delivery::{Delivery, Taken};
use crate::entries::Entry;
use crate::features::QueueFeatures;
use crate::id::Reader;
use crate::message::DeathReason;
use crate::time::Time;

impl Queue {
    /// Delivers ready messages for as long as consumers take them.
    #[inline]
    pub fn deliver(
        &mut self,
        now: Time,
        offer: &mut impl FnMut(Reader, &Delivery<'_>) -> Taken,
        effects: &mut Effects,
    ) {
        self.debug_features();
        // After nearly every settle no message is ready, and no feature with work to do here is in use.
        if self.features.any(QueueFeatures::OF_DELIVER) || !self.ready.is_empty() {
            self.deliver_waiting(now, offer, effects);
        }
    }

    #[inline(never)]
    fn deliver_waiting(
        &mut self,
        now: Time,
        offer: &mut impl FnMut(Reader, &Delivery<'_>) -> Taken,
        effects: &mut Effects,
    ) {
        if self.stream.is_some() {
            return self.deliver_from_stream(now, offer);
        }
        self.send_pending_dead_letters(now, effects);
        self.move_due(now, effects);
        self.expire(now, effects);
        while !self.is_held_up() && self.consumers.has_plain() {
            // Popped before the offer, so that nothing of the queue is borrowed meanwhile.
            let Some(entry) = self.ready.pop() else {
                break;
            };
            if self.is_expired(&entry, now) {
                self.die(entry, DeathReason::Expired, now, effects);
                continue;
            }
            if !self.consumers.has_groups() && is_grouped(&entry.message.view()) {
                self.begin_groups();
                self.ready.put_back(entry);
                break;
            }
            let stance = Stance::Front(entry.envelope.priority);
            let address = entry.address();
            let delivery = Delivery { is_last: self.ready.is_empty(), ..entry.delivery(&address) };
            match self.offer_in_turn(&delivery, stance, offer) {
                Some(taken) => {
                    self.activity.delivered(taken, entry.envelope.is_redelivered);
                    self.note_taken(entry, taken, now, effects);
                }
                None => self.ready.put_back(entry),
            }
        }
        self.seek(now, offer, effects);
    }

    /// Accounts for a message that a consumer took.
    #[inline]
    pub(crate) fn note_taken(&mut self, entry: Entry, taken: Taken, now: Time, effects: &mut Effects) {
        self.note_wait(&entry, now, effects);
        if taken == Taken::Settled {
            self.leave(&entry);
            effects.settled.extend(self.record_ref(entry.envelope.lsn));
        } else {
            self.note_given_out(&entry, effects);
            self.give_out(entry);
            self.charge_room();
        }
    }

    /// Offers a delivery to the consumers that want it, one after the other; `None` if none of them took it.
    pub(crate) fn offer_in_turn(
        &mut self,
        delivery: &Delivery<'_>,
        stance: Stance,
        offer: &mut impl FnMut(Reader, &Delivery<'_>) -> Taken,
    ) -> Option<Taken> {
        let mut after = None;
        while let Some((turn, reader)) = self.consumers.next(after, delivery, stance) {
            match offer(reader, delivery) {
                taken @ (Taken::Settled | Taken::Unsettled) => {
                    self.consumers.served(reader, &delivery.message);
                    return Some(taken);
                }
                Taken::Full => self.consumers.wait(reader),
                // Its connection is closing and will remove it; until then it is not offered anything.
                Taken::Gone => self.consumers.wait(reader),
            }
            // The consumers before it do not want the message.
            after = Some(turn);
        }
        None
    }

    /// Reports how long a delivered message waited, if it is the sampled one.
    #[inline]
    pub(crate) fn note_wait(&mut self, entry: &Entry, now: Time, effects: &mut Effects) {
        if let Some(waited) = self.wait_sample.end(entry.envelope.sequence, now) {
            effects.waited = Some(waited);
        }
    }

    /// Counts a delivery as failed until it is settled, if failures are limited: a message that kills the
    /// broker has to reach its limit too.
    pub(crate) fn note_given_out(&mut self, entry: &Entry, effects: &mut Effects) {
        if self.features.any(QueueFeatures::COUNTS) {
            self.counts.remove(&entry.envelope.lsn);
            if self.settings.delivery_limit.is_some() {
                effects.counted.extend(self.count(entry, entry.envelope.failures.saturating_add(1)));
            }
        }
    }

    /// Adjusts the charge for the room of unsettled deliveries, which rarely changes.
    pub(crate) fn charge_room(&mut self) {
        let room = Some(self.unsettled.capacity()).filter(|room| *room > ROOM_KEPT).unwrap_or(0);
        match room.checked_sub(self.room_charged) {
            Some(0) => return,
            Some(more) => self.gauge.add(more * ROOM_CHARGE),
            None => self.gauge.sub((self.room_charged - room) * ROOM_CHARGE),
        }
        self.room_charged = room;
    }

    /// Gives back the room of a burst, rarely enough that moving the remaining entries costs little.
    pub(crate) fn give_back_room(&mut self) {
        // After removals a hash table can report a smaller capacity than it has.
        let (len, room) = (self.unsettled.len(), self.unsettled.capacity().max(self.room_charged));
        if room > ROOM_KEPT && len < room / 8 {
            // Keeping what is never charged spares the next few deliveries an allocation.
            self.unsettled.shrink_to((2 * len).max(ROOM_KEPT * 7 / 8));
            self.charge_room();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::publish::Published;
    use super::super::settings::QueueSettings;
    use super::super::test_stage::{SECOND, Stage, UNLIMITED, dead_lettering, properties_with, reader};
    use crate::delivery::Outcome;

    #[test]
    fn consumers_take_turns_and_the_higher_priority_is_served_first() {
        // Consumers as (priority, credit), and the consumer that gets each of six messages.
        for (consumers, expected) in [
            (&[(0, UNLIMITED), (0, UNLIMITED)][..], "1 2 1 2 1 2"),
            (&[(0, UNLIMITED), (5, UNLIMITED)], "2 2 2 2 2 2"),
            (&[(0, UNLIMITED), (5, 2)], "2 2 1 1 1 1"),
            (&[(0, 1), (0, UNLIMITED), (0, 2)], "1 2 3 2 3 2"),
            (&[(-1, UNLIMITED), (i32::MAX, 1), (i32::MIN, UNLIMITED)], "2 1 1 1 1 1"),
            (&[(0, 1), (0, 2)], "1 2 2"),
        ] {
            let mut stage = Stage::new(QueueSettings::default());
            for (slot, (priority, credit)) in (1..).zip(consumers) {
                stage.consume(slot, *priority, *credit);
            }
            for _ in 0..6 {
                stage.publish("m").unwrap();
            }
            let readers: Vec<String> = stage.given.iter().map(|given| given.reader.to_string()).collect();
            assert_eq!(readers.join(" "), expected, "{consumers:?}");
        }
    }

    #[test]
    fn a_consumer_that_was_full_is_served_again_once_woken() {
        let mut stage = Stage::with_reader(QueueSettings::default(), 1);
        for body in ["a", "b", "c"] {
            stage.publish(body).unwrap();
        }
        assert_eq!(stage.bodies(), "a");
        stage.grant(1, 1);
        assert_eq!(stage.bodies(), "b");
        stage.queue.wake(reader(7));
        stage.grant(1, 5);
        assert_eq!(stage.bodies(), "c");
        assert_eq!(stage.publish("d"), Ok(Published::Delivered));
    }

    #[test]
    fn a_consumer_that_is_gone_is_not_asked_twice() {
        let mut stage = Stage::with_reader(QueueSettings::default(), 1);
        stage.credit.clear();
        for body in ["a", "b"] {
            assert_eq!(stage.publish(body), Ok(Published::Waiting));
        }
        assert!(!stage.queue.remove_consumer(reader(1), stage.now));
        stage.consume(2, 0, UNLIMITED);
        assert_eq!(stage.bodies(), "a b");
    }

    #[test]
    fn an_expired_message_is_not_given_out() {
        let mut stage = Stage::new(dead_lettering());
        stage.publish_with("a", &properties_with(None, Some(5)), None).unwrap();
        stage.publish("b").unwrap();
        stage.now = stage.now.after(SECOND);
        stage.consume(1, 0, UNLIMITED);
        assert_eq!(stage.bodies(), "b");
        assert_eq!(stage.dead_lettered(), "a:expired");
    }

    #[test]
    fn an_unsettled_burst_does_not_keep_its_memory() {
        let mut stage = Stage::with_reader(QueueSettings::default(), UNLIMITED);
        for _ in 0..10_000 {
            stage.publish("m").unwrap();
        }
        assert!(stage.queue.unsettled.capacity() >= 10_000);
        for sequence in 1..=10_000 {
            stage.settle(sequence, Outcome::Accept);
        }
        let left = stage.queue.unsettled.capacity();
        assert!(left < 1000, "room for {left} deliveries is kept for none");
    }

    /// After many removals a hash table reports a smaller capacity than it has.
    #[test]
    fn room_is_charged_for_nobody_when_nothing_is_unsettled() {
        for count in 57..=112_u64 {
            let mut stage = Stage::with_reader(QueueSettings::default(), UNLIMITED);
            for newest in 1..=count * 2 {
                stage.publish("m").unwrap();
                if let Some(settled) = newest.checked_sub(count) {
                    stage.settle(settled, Outcome::Accept);
                }
            }
            for sequence in 1..=count * 2 {
                stage.settle(sequence, Outcome::Accept);
            }
            assert_eq!(stage.gauge.bytes(), 0, "after {count} at a time");
        }
    }

    /// The room for unsettled deliveries grows in powers of two; after a burst, only what the remaining
    /// deliveries need is kept.
    #[test]
    fn the_room_of_a_burst_is_given_back_and_that_of_a_few_is_kept() {
        for (burst, left, is_kept) in
            [(40, 1, true), (1_000, 300, true), (1_000, 20, false), (5_000, 1, false)]
        {
            let mut stage = Stage::with_reader(QueueSettings::default(), UNLIMITED);
            for _ in 0..burst {
                stage.publish("m").expect("there is room");
            }
            assert_eq!(stage.queue.unsettled_len(), burst);
            let (room, charged) = (stage.queue.unsettled.capacity(), stage.gauge.bytes());
            let sequences: Vec<u64> = stage.given.iter().map(|given| given.sequence).collect();
            for sequence in &sequences[left..] {
                assert!(stage.settle(*sequence, Outcome::Accept));
            }
            let kept = stage.queue.unsettled.capacity();
            assert_eq!(kept >= room / 2, is_kept, "{kept} of {room}");
            assert!(kept >= left && (is_kept || kept < 16 * left.max(8)), "{kept} for {left}");
            assert!(is_kept || stage.gauge.bytes() < charged / 8, "{} of {charged}", stage.gauge.bytes());
        }
    }

    #[test]
    fn room_is_given_back_when_an_eighth_of_it_is_used_and_as_much_again_is_kept() {
        for burst in [100, 1_000, 5_000] {
            let mut stage = Stage::with_reader(QueueSettings::default(), UNLIMITED);
            for _ in 0..burst {
                stage.publish("m").expect("there is room");
            }
            let mut changes = 0;
            for sequence in 1..=burst {
                let before = stage.queue.room_charged;
                stage.settle(sequence, Outcome::Accept);
                let (len, room) = (stage.queue.unsettled_len(), stage.queue.room_charged);
                if room == before {
                    assert!(len >= room / 8, "{room} for {len} of {burst}");
                    continue;
                }
                changes += 1;
                assert!(len < before / 8, "{before} became {room} at {len} of {burst}");
                assert!(stage.queue.unsettled.capacity() >= 2 * len, "{room} for {len} of {burst}");
            }
            assert!((1..=4).contains(&changes), "{changes} times for {burst}");
            assert_eq!(stage.gauge.bytes(), 0);
        }
    }
}
