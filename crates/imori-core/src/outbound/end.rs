//! The end of a connection: its last frame, and what it leaves behind.

use std::mem;

use super::backlog::Backlog;
use super::encoder::{AfterCancel, CutReason};
use super::outbound::Outbound;
use super::readers::Source;
use super::session::{Numbers, Unsettled};
use crate::features::ConnectionFeatures;
use crate::id::{ConnectionId, QueueId, ReaderId, SessionId};
use crate::name::Name;

/// Objects of an ended connection or session that the caller has to clean up.
#[derive(Debug, Default)]
pub struct Remains {
    /// Unsettled deliveries, by session and number.
    pub unsettled: Vec<Unsettled>,
    /// The readers and their sources.
    pub readers: Vec<(ReaderId, Source)>,
    /// Publishers that waited for room in the connection.
    pub throttled: Vec<ConnectionId>,
    /// Nothing else is left.
    pub is_all: bool,
}

impl Outbound {
    /// Ends the connection; the encoded reason is its last frame. Deliveries that wait as messages are
    /// dropped: the connection is far behind, and encoding a widely shared message for each connection would
    /// take too much memory.
    pub fn cut(&mut self, reason: CutReason) {
        if self.is_ended() {
            return;
        }
        let encoder = &mut self.encoder;
        self.buffer.append(|out| encoder.cut(out, &reason));
        self.end(reason);
    }

    /// Refuses further deliveries; the connection ends once all unsent bytes are written. Deliveries that
    /// wait as messages are dropped, or they would follow the answer that is meant to be last.
    pub fn finish(&mut self) {
        self.backlog = Backlog::default();
        self.is_finished = true;
        self.features.set(ConnectionFeatures::ENDED, true);
    }

    /// Whether the connection has ended with nothing left to write, now or when the journal allows it.
    pub fn is_over(&self) -> bool {
        self.is_ended() && !self.has_unsent() && !self.has_held_answers()
    }

    /// Whether the connection takes no more deliveries, for whatever reason.
    #[inline]
    pub fn is_ended(&self) -> bool {
        let is_ended = self.features.any(ConnectionFeatures::ENDED);
        debug_assert_eq!(is_ended, self.is_closed || self.is_finished || self.ended.is_some());
        is_ended
    }

    /// Removes a reader whose queue the broker took away. The protocol decides whether the connection ends
    /// with it.
    pub fn cancel_reader(&mut self, id: ReaderId, queue: &Name) {
        let Some(record) = self.take_reader(id) else {
            return;
        };
        if self.has_last_word() {
            return;
        }
        let encoder = &mut self.encoder;
        let mut next = AfterCancel::GoOn;
        self.buffer.append(|out| next = encoder.cancelled(out, &record.spec.label, queue));
        if next == AfterCancel::End {
            self.end(CutReason::QueueDeleted { queue: queue.clone() });
        }
    }

    /// Removes the reader of `queue` with this name, because its client now has the reader elsewhere. Returns
    /// the reader's session, which keeps the unsettled deliveries; `None` if `id` is a different reader.
    pub fn take_over_reader(&mut self, id: ReaderId, queue: QueueId, name: &Name) -> Option<SessionId> {
        let spec = &self.readers.get(id)?.spec;
        if spec.name.as_ref() != Some(name) || spec.source != Source::Queue(queue) {
            return None;
        }
        let record = self.take_reader(id)?;
        if !self.has_last_word() {
            let encoder = &mut self.encoder;
            self.buffer.append(|out| encoder.taken_over(out, &record.spec.label));
        }
        Some(record.spec.session)
    }

    /// Closes the connection: nothing is delivered to it from now on. Returns what it leaves behind.
    ///
    /// Each call returns up to `readers_max` readers. Once the last reader is returned, calls also return
    /// unsettled deliveries, up to `unsettled_max` each.
    pub fn close(&mut self, readers_max: usize, unsettled_max: usize) -> Remains {
        self.is_closed = true;
        self.features.set(ConnectionFeatures::ENDED, true);
        self.buffer.discard();
        self.backlog = Backlog::default();
        self.inboxes.clear();
        self.exhausted.clear();
        self.sessions.clear_answers();
        for session in self.sessions.iter_mut() {
            session.readers.clear();
            session.line.clear();
            session.frames = None;
        }
        self.rest_bytes = 0;
        let mut remains = Remains {
            readers: self.readers.take(readers_max),
            throttled: mem::take(&mut self.throttled),
            unsettled: Vec::new(),
            is_all: self.readers.len() == 0,
        };
        if remains.is_all {
            for session in self.sessions.iter_mut() {
                let max = unsettled_max - remains.unsettled.len();
                remains.unsettled.extend(session.settle(Numbers::All, max).0);
            }
            self.unsettled -= remains.unsettled.len();
            remains.is_all = self.unsettled == 0;
        }
        self.charge_change();
        remains
    }

    /// Whether nothing may follow what was written last.
    pub(super) fn has_last_word(&self) -> bool {
        self.is_closed || self.ended.is_some()
    }

    fn end(&mut self, reason: CutReason) {
        self.backlog = Backlog::default();
        self.sessions.clear_answers();
        self.ended = Some(reason);
        self.features.set(ConnectionFeatures::ENDED, true);
    }
}

#[cfg(test)]
mod tests {
    use super::super::deliver::WAITING_BODY_MIN;
    use super::super::test_stage::{QUEUE, Stage, long, synced};
    use super::super::{Credit, Live, ReaderSpec, Settled};
    use super::*;
    use crate::confirm::{Confirm, Level, Lsn};
    use crate::delivery::{Outcome, Taken};

    #[test]
    fn what_is_not_there_takes_nothing() {
        let mut stage = Stage::new();
        let reader = stage.consume("a", QUEUE, true, Credit::window(1));
        assert_eq!(stage.outbound.source(reader), Some(&Source::Queue(QUEUE)));
        assert_eq!(stage.outbound.remove_reader(reader), Some(Source::Queue(QUEUE)));
        assert_eq!(stage.outbound.remove_reader(reader), None);
        let again = stage.consume("b", QUEUE, true, Credit::window(1));
        assert_eq!((again.slot, again.generation), (reader.slot, reader.generation + 1));
        assert_eq!(stage.offer(reader, 1, "m"), Taken::Gone, "its slot is another's now");
        assert_eq!(stage.send(reader, "m"), Live::Gone);
        assert_eq!(stage.outbound.readers_len(), 1);
        assert_eq!(stage.settle(Numbers::One(1)), (vec![], vec![]));
        let Settled { deliveries: unsettled, wakes, .. } =
            stage.outbound.settle(SessionId(9), Numbers::UpTo(u64::MAX), usize::MAX, Outcome::Accept);
        assert_eq!((unsettled, wakes), (vec![], vec![]));
        assert_eq!(stage.outbound.meant(SessionId(9), Numbers::One(0), 0), []);
    }

    #[test]
    fn a_backlog_does_not_follow_a_good_bye() {
        let mut stage = Stage::new();
        let reader = stage.subscribe("s");
        for letter in ["a", "b", "c"] {
            stage.send(reader, &long(letter));
        }
        stage.answer(Confirm::NOW, "last;");
        stage.outbound.finish();
        let written = stage.written();
        assert!(written.ends_with("last;"), "{written}");
        assert_eq!(stage.gauge.bytes(), stage.outbound.unsent());
    }

    #[test]
    fn held_answers_are_dropped_with_the_connection_and_kept_by_a_good_bye() {
        let mut stage = Stage::new();
        stage.answer(Confirm::of(Level::Disk, Lsn(1)), "a;");
        stage.outbound.finish();
        let reader = stage.subscribe("l");
        assert_eq!(stage.send(reader, "m"), Live::Gone);
        assert_eq!(stage.outbound.confirmed(synced(1)), []);
        assert_eq!(stage.written(), "a;");

        let mut stage = Stage::new();
        stage.answer(Confirm::of(Level::Disk, Lsn(1)), "a;");
        stage.outbound.cut(CutReason::ShuttingDown);
        stage.outbound.cut(CutReason::Fault);
        assert_eq!(stage.outbound.confirmed(synced(1)), []);
        assert_eq!(stage.written(), "cut;", "nothing follows the last word");
        assert!(!stage.outbound.has_held_answers());
    }

    #[test]
    fn a_reader_whose_queue_is_deleted_is_told() {
        for (after_cancel, is_ended) in [(AfterCancel::GoOn, false), (AfterCancel::End, true)] {
            let mut stage = Stage::of_kind(1, after_cancel);
            let (reader, live) = (stage.consume("a", QUEUE, true, Credit::window(9)), stage.subscribe("l"));
            stage.send(live, &long("x"));
            stage.send(live, &"b".repeat(WAITING_BODY_MIN));
            stage.outbound.cancel_reader(reader, &Name::from("q"));
            stage.outbound.cancel_reader(reader, &Name::from("q"));
            assert_eq!(stage.outbound.is_ended(), is_ended);
            let text = stage.written();
            assert_eq!(text.matches("cancelled a q;").count(), 1);
            assert_eq!(text.ends_with("cancelled a q;"), is_ended, "{text}");
        }
    }

    #[test]
    fn a_reader_is_taken_over_by_its_name_and_queue() {
        let mut stage = Stage::new();
        let name = Name::from("n");
        let spec = |name: &Name| ReaderSpec {
            session: SessionId::FIRST,
            label: b"a".as_slice().into(),
            source: Source::Queue(QUEUE),
            settles: true,
            credit: Credit::Unlimited,
            name: Some(name.clone()),
        };
        let reader = stage.outbound.add_reader(spec(&name)).unwrap();
        let unnamed = stage.consume("b", QUEUE, true, Credit::Unlimited);
        let elsewhere = QueueId { slot: QUEUE.slot + 1, ..QUEUE };
        for (id, queue, asked) in [(reader, QUEUE, "m"), (reader, elsewhere, "n"), (unnamed, QUEUE, "n")] {
            assert_eq!(stage.outbound.take_over_reader(id, queue, &Name::from(asked)), None);
        }
        assert_eq!(stage.outbound.take_over_reader(reader, QUEUE, &name), Some(SessionId::FIRST));
        assert_eq!(stage.outbound.take_over_reader(reader, QUEUE, &name), None);
        assert_eq!((stage.written().as_str(), stage.outbound.readers_len()), ("taken over a;", 1));

        let last = stage.outbound.add_reader(spec(&name)).unwrap();
        stage.outbound.cut(CutReason::ShuttingDown);
        assert_eq!(stage.outbound.take_over_reader(last, QUEUE, &name), Some(SessionId::FIRST));
        assert_eq!(stage.written(), "cut;", "nothing follows the last word");
    }

    #[test]
    fn closing_gives_all_that_is_left_once() {
        let mut stage = Stage::new();
        let reader = stage.consume("a", QUEUE, true, Credit::window(9));
        let live = stage.subscribe("l");
        for sequence in 1..4 {
            stage.offer(reader, sequence, "m");
        }
        stage.settle(Numbers::One(2));
        let (bytes, _) = stage.outbound.take_unsent().unwrap();
        let mut readers: Vec<ReaderId> = Vec::new();
        for (is_all, left) in [(false, vec![]), (false, vec![1]), (true, vec![3])] {
            let remains = stage.outbound.close(1, 1);
            readers.extend(remains.readers.iter().map(|(id, _)| *id));
            let numbers: Vec<u64> = remains.unsettled.iter().map(|unsettled| unsettled.number).collect();
            // Only after the last reader is gone, because a released message would be offered to it.
            assert_eq!((remains.is_all, numbers), (is_all, left));
        }
        assert_eq!(readers, [live, reader]);
        assert_eq!(stage.offer(reader, 9, "m"), Taken::Gone);
        stage.answer(Confirm::NOW, "answer");
        // The active writer has nothing left to write.
        assert_eq!(stage.outbound.put_back(bytes, 1), Some(Vec::new()));
        assert_eq!(stage.outbound.take_unsent(), None);
        assert!(!stage.outbound.has_unsent());
        let again = stage.outbound.close(9, 9);
        assert!(again.unsettled.is_empty() && again.readers.is_empty());
        assert_eq!(stage.gauge.bytes(), 0);
    }
}
