//! Answers of the connection's own protocol: each leaves in the order of its session, once what it promises
//! is true.

use std::ops::RangeInclusive;

use super::answers::{Answer, AnsweredPublishes, Held};
use super::encoder::{Confirmed, CutReason};
use super::outbound::{Outbound, Wake};
use super::sessions::FIRST_SLOT;
use crate::confirm::{Confirm, Level, Progress};
use crate::id::ReaderId;
use crate::id::SessionId;

impl Outbound {
    /// Sends an answer once `confirm` is reached, behind all earlier answers of its session. If there is no
    /// such session, it leaves with the answers of the first.
    pub fn answer(&mut self, session: SessionId, confirm: Confirm, write: impl FnOnce(&mut Vec<u8>)) {
        self.send_or_hold(session, confirm, None, write);
    }

    /// Sends an answer that promises a level of safety, like [`Outbound::answer`]. The promise is counted
    /// when it leaves.
    pub fn promise(
        &mut self,
        session: SessionId,
        confirm: Confirm,
        level: Level,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        self.send_or_hold(session, confirm, Some(level), write);
    }

    /// Confirms publishes by number, which the protocol counts from 1 in each session, once `confirm` is
    /// reached for all of them. Confirms that leave together with consecutive numbers are encoded as one.
    pub fn confirm(
        &mut self,
        session: SessionId,
        numbers: RangeInclusive<u64>,
        confirm: Confirm,
        level: Level,
    ) {
        let (first, last) = numbers.into_inner();
        self.answer_publishes(
            session,
            AnsweredPublishes { first, last, is_refused: false },
            confirm,
            Some(level),
        );
    }

    /// Answers that the broker takes no responsibility for the publish with this number, behind all earlier
    /// answers.
    pub fn refuse(&mut self, session: SessionId, number: u64) {
        let refused = AnsweredPublishes { first: number, last: number, is_refused: true };
        self.answer_publishes(session, refused, Confirm::NOW, None);
    }

    fn send_or_hold(
        &mut self,
        session: SessionId,
        confirm: Confirm,
        promised: Option<Level>,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        if self.has_last_word() {
            return;
        }
        let slot = self.sessions.slot(session).unwrap_or(FIRST_SLOT);
        if self.may_pass(slot, confirm) {
            promised.into_iter().for_each(|level| self.activity.confirmed(level, 1));
            self.append(write);
            return;
        }
        let mut bytes = Vec::new();
        write(&mut bytes);
        self.hold(slot, Held { confirm, promised, answer: Answer::Bytes(bytes) });
    }

    fn answer_publishes(
        &mut self,
        session: SessionId,
        answered: AnsweredPublishes,
        confirm: Confirm,
        promised: Option<Level>,
    ) {
        let Some(slot) = self.sessions.slot(session).filter(|_| !self.has_last_word()) else {
            return;
        };
        if self.may_pass(slot, confirm) {
            promised.into_iter().for_each(|level| self.activity.confirmed(level, answered.count()));
            self.write_answered(slot, answered);
            return;
        }
        self.hold(slot, Held { confirm, promised, answer: Answer::Publishes(answered) });
    }

    fn may_pass(&self, slot: u16, confirm: Confirm) -> bool {
        self.sessions.at(slot).is_none_or(|session| session.answers.may_pass(confirm, self.journal))
    }

    fn hold(&mut self, slot: u16, held: Held) {
        self.waits_for_write |= held.confirm.is_synced(self.journal);
        if held.promised.is_some() {
            self.newly_held = Some(held.confirm);
        }
        self.sessions.hold(slot, held);
    }

    /// Releases the answers that waited for this progress of the journal. Returns the consumers that can
    /// start now. Sessions without waiting answers cost nothing.
    #[must_use]
    #[inline]
    pub fn confirmed(&mut self, journal: Progress) -> Vec<Wake> {
        self.journal = self.journal.max(journal);
        if self.has_held_answers() {
            return self.release_held();
        }
        self.waits_for_write = false;
        Vec::new()
    }

    #[inline(never)]
    fn release_held(&mut self) -> Vec<Wake> {
        let mut wakes = Vec::new();
        let record_ref = self.sessions.take_holding();
        for slot in &record_ref {
            self.release(*slot, &mut wakes);
        }
        if self.has_last_word() {
            // The released answers exceeded the limit, and nothing may follow.
            for slot in &record_ref {
                self.sessions.clear_answers_of(*slot);
            }
        }
        self.sessions.put_back_holding(record_ref);
        self.waits_for_write = self.sessions.wait_for_write(self.journal);
        wakes
    }

    fn release(&mut self, slot: u16, wakes: &mut Vec<Wake>) {
        let mut run: Option<AnsweredPublishes> = None;
        while self.ended.is_none()
            && let Some(session) = self.sessions.at_mut(slot)
            && let Some(held) = session.answers.pop(self.journal)
        {
            let count = match &held.answer {
                Answer::Publishes(answered) => answered.count(),
                Answer::Bytes(_) => 1,
            };
            held.promised.into_iter().for_each(|level| self.activity.confirmed(level, count));
            match held.answer {
                Answer::Publishes(answered) => {
                    if !run.as_mut().is_some_and(|run| run.join(answered)) {
                        run.replace(answered).into_iter().for_each(|run| self.write_answered(slot, run));
                    }
                }
                Answer::Bytes(bytes) => {
                    run.take().into_iter().for_each(|run| self.write_answered(slot, run));
                    if self.ended.is_none() {
                        self.append(|out| out.extend_from_slice(&bytes));
                    }
                }
            }
        }
        run.into_iter().for_each(|run| self.write_answered(slot, run));
        while let Some(id) = self.sessions.at_mut(slot).and_then(|session| session.answers.pop_started()) {
            wakes.extend(self.start(id));
        }
        self.sessions.forget_if_over(slot);
    }

    /// Ends the hold of a reader. One that drains is woken in any case, so that its queue ends the drain.
    fn start(&mut self, id: ReaderId) -> Option<Wake> {
        let record = self.readers.get_mut(id)?;
        record.is_held = false;
        let drains = record.is_draining;
        let queue = record.queue();
        self.wake(id).or_else(|| queue.filter(|_| drains).map(|queue| Wake { queue, reader: id, line: None }))
    }

    /// Writes the answer to publishes.
    fn write_answered(&mut self, slot: u16, answered: AnsweredPublishes) {
        let Some(session) = self.sessions.at_mut(slot).filter(|_| self.ended.is_none()) else { return };
        let AnsweredPublishes { first, last, is_refused } = answered;
        let is_next = session.answers.answered_through.checked_add(1) == Some(first);
        if is_next {
            session.answers.answered_through = last;
        }
        let (encoder, session) = (&mut self.encoder, session.id);
        self.buffer.append(|out| {
            encoder.confirmed(out, Confirmed { session, first, last, is_in_order: is_next, is_refused });
        });
        self.appended_answer();
    }

    /// Holds a reader back until all present answers of its session have left.
    pub fn start_after_answers(&mut self, id: ReaderId) {
        if let Some(record) = self.readers.get_mut(id)
            && let Some(session) = self.sessions.at_mut(record.session)
        {
            record.is_held = session.answers.start_behind(id);
        }
    }

    /// Sends bytes that are not an answer, such as heart-beats, without waiting for the journal.
    pub fn beat(&mut self, bytes: &[u8]) {
        if !self.has_last_word() {
            self.append(|out| out.extend_from_slice(bytes));
        }
    }

    /// Whether an answer only waits for the journal to be written, not synced.
    pub fn waits_for_write(&self) -> bool {
        self.waits_for_write
    }

    /// Whether answers wait for the journal.
    pub fn has_held_answers(&self) -> bool {
        self.sessions.is_any_holding()
    }

    fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.buffer.append(write);
        self.appended_answer();
    }

    fn appended_answer(&mut self) {
        self.charge_change();
        if self.unsent() >= self.limits.unsent_bytes_max {
            self.cut(CutReason::TooSlow { unsent_max: self.limits.unsent_bytes_max });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_stage::{FEED_BYTES, QUEUE, Stage, UNSENT_BYTES_MAX, long, synced};
    use super::super::{Credit, Grant};
    use super::*;
    use crate::confirm::Lsn;
    use crate::delivery::Taken;
    use crate::name::Name;

    #[test]
    fn answers_that_wait_for_the_journal_leave_in_order() {
        let pending = |position| Confirm::of(Level::Disk, Lsn(position));
        let mut stage = Stage::new();
        stage.answer(Confirm::NOW, "a;");
        stage.answer(pending(2), "b;");
        stage.answer(Confirm::NOW, "c;");
        stage.answer(pending(1), "d;");
        stage.answer(pending(5), "e;");
        assert_eq!(stage.written(), "a;");
        for (position, expected, held) in
            [(1, "", true), (2, "b;c;d;", true), (4, "", true), (9, "e;", false)]
        {
            assert_eq!(stage.outbound.confirmed(synced(position)), []);
            assert_eq!(stage.written(), expected, "{position}");
            assert_eq!(stage.outbound.has_held_answers(), held);
        }
        stage.answer(pending(9), "f;");
        assert_eq!(stage.written(), "f;", "it is durable already");
        assert_eq!(stage.outbound.confirmed(synced(3)), []);
        stage.answer(pending(9), "g;");
        assert_eq!(stage.written(), "g;", "the journal does not go back");
    }

    #[test]
    fn a_reader_gets_nothing_before_the_answer_that_it_waits_for() {
        let mut stage = Stage::new();
        stage.answer(Confirm::of(Level::Disk, Lsn(3)), "receipt;");
        let reader = stage.consume("c", QUEUE, true, Credit::Unlimited);
        stage.outbound.start_after_answers(reader);
        stage.answer(Confirm::of(Level::Disk, Lsn(9)), "later;");
        assert_eq!(stage.offer(reader, 1, "x"), Taken::Full);
        assert_eq!(stage.outbound.confirmed(synced(2)), []);
        assert_eq!(stage.offer(reader, 1, "x"), Taken::Full);
        assert_eq!(stage.outbound.confirmed(synced(3)), [Wake { queue: QUEUE, reader, line: None }]);
        assert_eq!(stage.offer(reader, 1, "x"), Taken::Unsettled);
        assert_eq!(stage.written(), "receipt;c#1?:x;");
        let at_once = stage.consume("d", QUEUE, false, Credit::Unlimited);
        assert_eq!(stage.outbound.confirmed(synced(9)), []);
        stage.outbound.start_after_answers(at_once);
        assert_eq!(stage.offer(at_once, 2, "y"), Taken::Settled, "no answer waits");
    }

    #[test]
    fn a_drain_ends_behind_the_answer_that_its_reader_waits_for() {
        for credit in [5, 0] {
            let mut stage = Stage::new();
            stage.answer(Confirm::of(Level::Disk, Lsn(3)), "receipt;");
            let reader = stage.consume("c", QUEUE, true, Credit::ungranted());
            stage.outbound.start_after_answers(reader);
            assert_eq!(stage.outbound.grant(reader, &Grant { used: 0, credit, drains: true }), None);
            assert!(!stage.outbound.end_drain(reader, &Name::from("q"), true), "the reader is held");
            assert_eq!(stage.written(), "");
            assert_eq!(stage.outbound.confirmed(synced(3)), [Wake { queue: QUEUE, reader, line: None }]);
            assert!(stage.outbound.end_drain(reader, &Name::from("q"), true));
            assert_eq!(stage.written(), format!("receipt;drained c {credit} 0;"));
        }
    }

    #[test]
    fn the_last_answer_of_a_good_bye_is_the_last_even_if_it_is_one_too_many() {
        let mut stage = Stage::new();
        stage.answer(Confirm::NOW, &"a".repeat(UNSENT_BYTES_MAX - 1));
        stage.outbound.finish();
        stage.answer(Confirm::NOW, "last;");
        let written = stage.written();
        assert!(written.ends_with("alast;"), "{written}");
    }

    #[test]
    fn answers_that_nobody_reads_end_the_connection() {
        let mut stage = Stage::new();
        for _ in 0..UNSENT_BYTES_MAX / FEED_BYTES {
            assert_eq!(stage.outbound.ended(), None);
            stage.answer(Confirm::NOW, &long("r"));
        }
        assert!(stage.outbound.ended().is_some());
        assert!(stage.written().ends_with("rtoo slow;"));
    }

    #[test]
    fn a_promise_is_counted_when_it_leaves() {
        let mut stage = Stage::new();
        let promise = |stage: &mut Stage, level, position| {
            let confirm = Confirm::of(level, Lsn(position));
            stage.outbound.promise(SessionId::FIRST, confirm, level, |out| out.push(b'p'));
        };
        promise(&mut stage, Level::Memory, 0);
        assert_eq!(stage.outbound.activity().confirmed, [1, 0, 0], "it leaves at once");
        for (level, position) in [(Level::Disk, 2), (Level::Memory, 0), (Level::Os, 1), (Level::Disk, 9)] {
            promise(&mut stage, level, position);
        }
        stage.answer(Confirm::NOW, "a;");
        for (position, expected) in [(1, [1, 0, 0]), (2, [2, 1, 1]), (9, [2, 1, 2]), (9, [2, 1, 2])] {
            let _ = stage.outbound.confirmed(synced(position));
            assert_eq!(stage.outbound.activity().confirmed, expected, "at {position}");
        }
    }
}
