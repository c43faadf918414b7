//! Settling the deliveries of a connection, and finding the consumers that can take more after it.

use std::collections::BTreeMap;

use super::credit::{Credit, FrameWindow, Grant};
use super::encoder::{Drained, FrameNumbers};
use super::outbound::{Outbound, Wake};
use super::session::{Numbers, Session, Unsettled};
use crate::delivery::Outcome;
use crate::id::ReaderId;
use crate::id::SessionId;
use crate::name::Name;

/// The deliveries that a client settled.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// In the order of their numbers.
    pub deliveries: Vec<Unsettled>,
    /// The client settled others too, which are still unsettled here.
    pub has_more: bool,
    /// The consumers that can take more now.
    pub wakes: Vec<Wake>,
}

/// The only delivery that a client settled.
#[derive(Debug)]
pub(crate) struct SettledOnly {
    /// What was settled: the message, by its place in its queue, and the consumer.
    pub(crate) delivery: Unsettled,
    /// Its consumer, if it can take more now.
    pub(crate) wake: Option<Wake>,
    /// The consumer that waited longest for the session's window, if the window is open now.
    pub(crate) in_line: Option<Wake>,
}

impl Outbound {
    /// Replaces a reader's credit; returns the consumer if it can take more now and has to be woken.
    pub fn set_credit(&mut self, id: ReaderId, credit: Credit) -> Option<Wake> {
        self.readers.get_mut(id)?.spec.credit = credit;
        self.wake(id)
    }

    /// Applies a grant of credit; returns the consumer if it can take more now and has to be woken.
    pub fn grant(&mut self, id: ReaderId, grant: &Grant) -> Option<Wake> {
        let record = self.readers.get_mut(id)?;
        record.spec.credit.grant(grant);
        record.is_draining = grant.drains;
        self.wake(id)
    }

    /// Ends the drain of a reader that has no credit left, or for which nothing is left in its queue
    /// (`is_all`); `false` if the drain goes on.
    pub(crate) fn end_drain(&mut self, id: ReaderId, queue: &Name, is_all: bool) -> bool {
        let has_last_word = self.is_ended();
        let Some(record) = self.readers.get_mut(id).filter(|record| record.is_draining) else { return true };
        // A held reader must not get anything before the answer that it waits for.
        if record.is_held || (!is_all && record.spec.credit.has_any()) {
            return false;
        }
        record.is_draining = false;
        let used = record.spec.credit.give_up();
        if let Some(session) = self.sessions.at_mut(record.session).filter(|_| !has_last_word) {
            let (encoder, label) = (&mut *self.encoder, &record.spec.label);
            let before = session.rest_bytes();
            self.buffer.append(|out| {
                let start = out.len();
                let frames = session.frames.as_ref().map(|frames| frames.numbers()).unwrap_or_default();
                encoder.drained(out, &Drained { session: session.id, label, queue, used, frames });
                if let Some(frames) = &mut session.frames {
                    frames.pass(encoder, out, start);
                }
            });
            self.rest_bytes += session.rest_bytes() - before;
        }
        true
    }

    /// The deliveries that a reader may still have and the serial number of its credit, if it is granted
    /// credit.
    pub fn granted(&self, id: ReaderId) -> Option<(u32, u32)> {
        match self.readers.get(id)?.spec.credit {
            Credit::Granted { left, used } => Some((left, used)),
            Credit::Unlimited | Credit::Window { .. } => None,
        }
    }

    /// Starts counting the frames of a session from these numbers; the peer takes `left` frames.
    pub fn count_frames(&mut self, session: SessionId, numbers: FrameNumbers, left: u32) {
        if let Some(session) = self.sessions.find_mut(session) {
            session.frames = Some(Box::new(FrameWindow::new(numbers.next, numbers.awaited, left)));
        }
    }

    /// Notes that the peer now learns which of its frames is awaited. Returns the serial numbers of the
    /// session.
    pub fn tell_awaited(&mut self, session: SessionId, awaited: u32) -> Option<FrameNumbers> {
        let frames = self.sessions.find_mut(session)?.frames.as_mut()?;
        frames.tell(awaited);
        Some(frames.numbers())
    }

    /// Number of deliveries that a session had.
    pub fn delivered_in(&self, session: SessionId) -> u64 {
        self.sessions.find(session).map_or(0, Session::delivered)
    }

    /// The serial numbers of a session's next frames and the number of frames that the peer takes, if frames
    /// are counted.
    pub fn frames(&self, session: SessionId) -> Option<(FrameNumbers, u32)> {
        let frames = self.sessions.find(session)?.frames.as_ref()?;
        Some((frames.numbers(), frames.left()))
    }

    /// Number of unsettled deliveries of a session, by reader.
    pub fn unsettled_by_reader(&self, session: SessionId) -> BTreeMap<ReaderId, usize> {
        let mut counts = BTreeMap::new();
        for unsettled in self.sessions.find(session).into_iter().flat_map(Session::unsettled) {
            *counts.entry(unsettled.reader).or_default() += 1;
        }
        counts
    }

    /// The numbers of a reader's unsettled deliveries in a session, in order.
    pub fn unsettled_of(&self, session: SessionId, reader: ReaderId) -> Vec<u64> {
        let unsettled = self.sessions.find(session).into_iter().flat_map(Session::unsettled);
        unsettled.filter(|unsettled| unsettled.reader == reader).map(|unsettled| unsettled.number).collect()
    }

    /// The numbers from `first` to `last` of a session's unsettled deliveries with readers that have ended,
    /// in order.
    pub fn unsettled_of_ended(&self, session: SessionId, first: u64, last: u64) -> Vec<u64> {
        let Some(session) = self.sessions.find(session) else { return Vec::new() };
        let unsettled = session.meant(Numbers::Range(first, last), 0).into_iter();
        let of_ended = unsettled.filter(|unsettled| self.source(unsettled.reader).is_none());
        of_ended.map(|unsettled| unsettled.number).collect()
    }

    /// Number of answers of a session that wait for the journal.
    pub fn held_answers_in(&self, session: SessionId) -> usize {
        self.sessions.find(session).map_or(0, |session| session.answers.len())
    }

    /// Moves the end of the peer's window to the frame with this serial number. Frames that waited for it
    /// leave; then a consumer may be able to take more.
    pub fn grant_frames(&mut self, session: SessionId, end: u32) -> Option<Wake> {
        let has_last_word = self.has_last_word();
        let of_session = self.sessions.find_mut(session).filter(|_| !has_last_word)?;
        let frames = of_session.frames.as_mut()?;
        let before = frames.rest_bytes();
        let encoder = &*self.encoder;
        self.buffer.append(|out| frames.grant(encoder, end, out));
        self.rest_bytes -= before - frames.rest_bytes();
        self.charge_change();
        self.next_in_line(session)
    }

    /// The unsettled delivery with this number.
    pub fn find_unsettled(&self, session: SessionId, number: u64) -> Option<&Unsettled> {
        self.sessions.find(session)?.find(number)
    }

    /// The unsettled deliveries that `numbers` selects, above the number `above`; none if a named delivery is
    /// not unsettled.
    pub fn meant(&self, session: SessionId, numbers: Numbers, above: u64) -> Vec<Unsettled> {
        self.sessions.find(session).map(|session| session.meant(numbers, above)).unwrap_or_default()
    }

    /// Settles the deliveries that `numbers` selects, up to `max` of them, and finds the consumers that can
    /// take more. Settles none if a named delivery is not unsettled. Counts `outcome`.
    pub fn settle(&mut self, session: SessionId, numbers: Numbers, max: usize, outcome: Outcome) -> Settled {
        let Some(of_session) = self.sessions.find_mut(session) else {
            return Settled::default();
        };
        let (settled, has_more) = of_session.settle(numbers, max);
        let is_awaited = !of_session.line.is_empty();
        self.unsettled -= settled.len();
        self.activity.settled(outcome, settled.len());
        self.charge_change();
        let mut wakes = Vec::new();
        for unsettled in &settled {
            if let Some(record) = self.readers.get_mut(unsettled.reader) {
                record.spec.credit.settled();
            }
            wakes.extend(self.wake(unsettled.reader));
        }
        if is_awaited {
            wakes.extend(self.next_in_line(session));
        }
        Settled { deliveries: settled, has_more, wakes }
    }

    /// Settles the only delivery that `numbers` can select: like [`Outbound::settle`], without a list. `None`
    /// if it may select several, or none.
    #[inline]
    pub(crate) fn settle_only(
        &mut self,
        session: SessionId,
        numbers: Numbers,
        outcome: Outcome,
    ) -> Option<SettledOnly> {
        let of_session = self.sessions.find_mut(session)?;
        let delivery = of_session.settle_only(numbers)?;
        let is_awaited = !of_session.line.is_empty();
        self.unsettled -= 1;
        self.activity.settled(outcome, 1);
        self.charge_change();
        if let Some(record) = self.readers.get_mut(delivery.reader) {
            record.spec.credit.settled();
        }
        let wake = self.wake(delivery.reader);
        let in_line = if is_awaited { self.next_in_line(session) } else { None };
        Some(SettledOnly { delivery, wake, in_line })
    }

    /// Limits the unsettled deliveries of a session; `None` lifts the limit. Returns a consumer that can take
    /// more now.
    pub fn set_window(&mut self, session: SessionId, window: Option<u32>) -> Option<Wake> {
        self.sessions.find_mut(session)?.window = window;
        self.next_in_line(session)
    }

    /// Takes the consumer that has waited longest for the window of a session, if the window is open. The
    /// caller wakes it and calls again, until this returns `None`.
    pub fn next_in_line(&mut self, session: SessionId) -> Option<Wake> {
        let slot = self.sessions.slot(session)?;
        let has_room = self.has_room();
        loop {
            let reader =
                self.sessions.at_mut(slot).filter(|session| session.has_window(true))?.line.pop_front()?;
            let Some(record) = self.readers.get_mut(reader) else { continue };
            record.is_in_line = false;
            if record.is_held || !record.spec.credit.has_any() {
                // Whatever gives it credit, or ends the hold, wakes it.
                continue;
            }
            let Some(queue) = record.queue() else { continue };
            if !has_room {
                self.is_starved = true;
                continue;
            }
            record.is_starved = false;
            return Some(Wake { queue, reader, line: Some(session) });
        }
    }

    /// Wakes a consumer that was refused, if it can take more now.
    pub(super) fn wake(&mut self, id: ReaderId) -> Option<Wake> {
        let has_room = self.has_room();
        let record = self.readers.get_mut(id)?;
        let queue = record.queue()?;
        if !record.is_starved || record.is_in_line || record.is_held || !record.spec.credit.has_any() {
            return None;
        }
        if !has_room {
            // The next call of [`Outbound::written`] wakes it.
            self.is_starved = true;
            return None;
        }
        let session = self.sessions.at_mut(record.session)?;
        // It must not overtake consumers that have waited longer.
        if session.limits(record.spec.settles)
            && (!session.has_window(record.spec.settles) || !session.line.is_empty())
        {
            session.join_line(record, id);
            return None;
        }
        record.is_starved = false;
        Some(Wake { queue, reader: id, line: None })
    }
}

#[cfg(test)]
mod tests {
    use super::super::outbound::UNCHARGED_UNSETTLED_MAX;
    use super::super::test_stage::{QUEUE, Stage, long};
    use super::*;
    use crate::delivery::Taken;

    #[test]
    fn settling_wakes_a_consumer_once_and_only_if_it_was_refused() {
        let mut stage = Stage::new();
        let reader = stage.consume("a", QUEUE, true, Credit::window(2));
        assert_eq!(stage.offer(reader, 1, "m"), Taken::Unsettled);
        assert_eq!(stage.settle(Numbers::One(1)), (vec![1], vec![]), "it was never refused");
        for sequence in 2..4 {
            stage.offer(reader, sequence, "m");
        }
        assert_eq!(stage.offer(reader, 4, "m"), Taken::Full);
        assert_eq!(stage.settle(Numbers::UpTo(3)), (vec![2, 3], vec![reader]));
        assert_eq!(stage.settle(Numbers::UpTo(3)), (vec![], vec![]));
        assert_eq!(stage.offer(reader, 4, "m"), Taken::Unsettled);
    }

    #[test]
    fn a_grant_wakes_and_settling_does_not_give_it_back() {
        let mut stage = Stage::new();
        let reader = stage.consume("a", QUEUE, true, Credit::Granted { left: 1, used: 0 });
        stage.offer(reader, 1, "m");
        assert_eq!(stage.offer(reader, 2, "m"), Taken::Full);
        assert_eq!(stage.settle(Numbers::One(1)), (vec![1], vec![]));
        assert_eq!(stage.outbound.set_credit(reader, Credit::Granted { left: 0, used: 0 }), None);
        let wake = stage.outbound.set_credit(reader, Credit::Granted { left: u32::MAX, used: 0 });
        assert_eq!(wake, Some(Wake { queue: QUEUE, reader, line: None }));
        let gone = ReaderId { slot: 9, generation: 0 };
        assert_eq!(stage.outbound.set_credit(gone, Credit::Unlimited), None);
    }

    #[test]
    fn credit_that_comes_back_without_room_wakes_when_there_is_room() {
        let mut stage = Stage::new();
        let reader = stage.consume("a", QUEUE, true, Credit::window(1));
        stage.offer(reader, 1, &long("x"));
        assert_eq!(stage.offer(reader, 2, "m"), Taken::Full);
        assert_eq!(stage.settle(Numbers::One(1)), (vec![1], vec![]), "there is no room");
        stage.written();
        assert_eq!(stage.wakes(), [reader]);
    }

    #[test]
    fn room_that_comes_back_without_credit_wakes_when_there_is_credit() {
        let mut stage = Stage::new();
        let reader = stage.consume("a", QUEUE, true, Credit::window(1));
        stage.offer(reader, 1, &long("x"));
        assert_eq!(stage.offer(reader, 2, "m"), Taken::Full);
        stage.written();
        assert_eq!(stage.wakes(), []);
        assert_eq!(stage.settle(Numbers::One(1)), (vec![1], vec![reader]));
    }

    #[test]
    fn unsettled_deliveries_outlive_their_reader() {
        let mut stage = Stage::new();
        let reader = stage.consume("a", QUEUE, true, Credit::window(1));
        stage.offer(reader, 1, "m");
        stage.outbound.remove_reader(reader);
        assert_eq!(stage.outbound.unsettled_len(), 1);
        assert_eq!(
            stage.outbound.find_unsettled(SessionId(0), 1).map(|unsettled| unsettled.reader),
            Some(reader)
        );
        assert_eq!(stage.settle(Numbers::One(1)), (vec![1], vec![]));
    }

    #[test]
    fn unsettled_deliveries_are_charged_until_they_are_settled() {
        let mut stage = Stage::new();
        let reader = stage.consume("a", QUEUE, true, Credit::Unlimited);
        for count in [UNCHARGED_UNSETTLED_MAX, 1000, 100_000] {
            for sequence in 0..count {
                assert_eq!(stage.offer(reader, sequence as u64, "m"), Taken::Unsettled);
                stage.written();
            }
            stage.outbound.written();
            let expected = (count - UNCHARGED_UNSETTLED_MAX) * Session::UNSETTLED_BYTES;
            assert_eq!(stage.gauge.bytes(), expected);
            assert_eq!(stage.outbound.unsettled_len(), count);
            let last = stage.outbound.sessions.find(SessionId::FIRST).unwrap().next_number() - 1;
            assert_eq!(stage.settle(Numbers::UpTo(last)).0.len(), count);
            assert_eq!(stage.gauge.bytes(), 0, "though nothing is written");
        }
    }
}
