//! Answers of a connection's own protocol, which leave in their order and once what they promise is so.

use super::encoder::CutReason;
use super::outbound::{Outbound, Wake};
use crate::confirm::{Confirm, Given, Level, Progress};
use crate::id::ReaderId;

impl Outbound {
    /// Sends an answer once `confirm` is reached, behind all earlier answers.
    pub fn answer(&mut self, confirm: Confirm, write: impl FnOnce(&mut Vec<u8>)) {
        self.send_or_hold(confirm, None, write);
    }

    /// The same with an answer that promises a level; tells whether it left at once. One that waits is
    /// counted by [`Outbound::confirmed`] when it leaves.
    pub fn promise(&mut self, confirm: Confirm, level: Level, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.send_or_hold(confirm, Some(level), write)
    }

    fn send_or_hold(
        &mut self,
        confirm: Confirm,
        promised: Option<Level>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> bool {
        if self.has_last_word() {
            return false;
        }
        if self.answers.may_pass(confirm) {
            self.append(write);
            return true;
        }
        let mut bytes = Vec::new();
        write(&mut bytes);
        self.answers.hold(confirm, promised, bytes);
        false
    }

    /// Lets go the answers that waited for the journal to come so far; tells which consumers can take
    /// something from now on, and what those answers promise.
    #[must_use]
    pub fn confirmed(&mut self, journal: Progress) -> (Vec<Wake>, Given) {
        let (mut given, mut wakes) = (Given::default(), Vec::new());
        self.answers.note(journal);
        while let Some(held) = self.answers.pop() {
            self.append(|out| out.extend_from_slice(&held.bytes));
            held.promised.into_iter().for_each(|level| given.add(level));
        }
        while let Some(id) = self.answers.pop_started() {
            if let Some(record) = self.readers.get_mut(id) {
                record.is_held = false;
                wakes.extend(self.wake(id));
            }
        }
        (wakes, given)
    }

    /// Lets a reader have nothing before all answers that were given have left.
    pub fn start_after_answers(&mut self, id: ReaderId) {
        if let Some(record) = self.readers.get_mut(id) {
            record.is_held = self.answers.start_behind(id);
        }
    }

    /// Sends bytes that answer nothing, such as heart-beats: they wait for no journal.
    pub fn beat(&mut self, bytes: &[u8]) {
        if !self.has_last_word() {
            self.append(|out| out.extend_from_slice(bytes));
        }
    }

    /// Tells whether the last of them waits for no more than that the journal is written.
    pub fn waits_for_write(&self) -> bool {
        self.answers.wait_for_write()
    }

    /// Tells whether answers wait for the journal.
    pub fn has_held_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.buffer.append(write);
        self.charge_change();
        if self.unsent() >= self.limits.unsent_bytes_max {
            self.cut(CutReason::TooSlow { unsent_max: self.limits.unsent_bytes_max });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Credit;
    use super::super::test_stage::{FEED_BYTES, QUEUE, Stage, UNSENT_BYTES_MAX, long, synced};
    use super::*;
    use crate::confirm::Lsn;
    use crate::delivery::Taken;

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
            assert_eq!(stage.outbound.confirmed(synced(position)).0, []);
            assert_eq!(stage.written(), expected, "{position}");
            assert_eq!(stage.outbound.has_held_answers(), held);
        }
        stage.answer(pending(9), "f;");
        assert_eq!(stage.written(), "f;", "it is durable already");
        assert_eq!(stage.outbound.confirmed(synced(3)).0, []);
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
        assert_eq!(stage.outbound.confirmed(synced(2)).0, []);
        assert_eq!(stage.offer(reader, 1, "x"), Taken::Full);
        assert_eq!(stage.outbound.confirmed(synced(3)).0, [Wake { queue: QUEUE, reader }]);
        assert_eq!(stage.offer(reader, 1, "x"), Taken::Unsettled);
        assert_eq!(stage.written(), "receipt;c#1?:x;");
        let at_once = stage.consume("d", QUEUE, false, Credit::Unlimited);
        assert_eq!(stage.outbound.confirmed(synced(9)).0, []);
        stage.outbound.start_after_answers(at_once);
        assert_eq!(stage.offer(at_once, 2, "y"), Taken::Settled, "no answer waits");
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
        let mut promise = |level, position| {
            let confirm = Confirm::of(level, Lsn(position));
            stage.outbound.promise(confirm, level, |out| out.push(b'p'))
        };
        assert!(promise(Level::Memory, 0), "it leaves at once");
        for (level, position) in [(Level::Disk, 2), (Level::Memory, 0), (Level::Os, 1), (Level::Disk, 9)] {
            assert!(!promise(level, position), "what stands behind one that waits waits too");
        }
        stage.answer(Confirm::NOW, "a;");
        for (position, expected) in [
            (1, vec![]),
            (2, vec![(Level::Memory, 1), (Level::Os, 1), (Level::Disk, 1)]),
            (9, vec![(Level::Disk, 1)]),
            (9, vec![]),
        ] {
            let (_, given) = stage.outbound.confirmed(synced(position));
            assert_eq!(given.by_level().collect::<Vec<_>>(), expected, "at {position}");
        }
    }
}
