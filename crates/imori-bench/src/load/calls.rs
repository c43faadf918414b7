//! The calls of one requester: when each was due and sent, and whether it was answered.
//!
//! Memory follows the calls in flight: a block of calls that are all settled is dropped,
//! and a reply to one of them is still known as a second one.

/// Calls in one block.
const BLOCK: usize = 4_096;
/// A call that was answered.
const ANSWERED: u64 = u64::MAX;
/// Marks a call that was given up; below it stands when it was sent.
const GIVEN_UP: u64 = 1 << 63;

/// The meaning of a reply for its call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// The first reply, to a call due at this time and sent so much later, in nanoseconds.
    InTime(u64, u64),
    /// The first reply, after the call was given up.
    Late,
    /// Answered before.
    Again,
    /// Never sent.
    Unknown,
}

/// The calls of one requester, numbered from 0.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    blocks: Vec<Option<Block>>,
    next: u64,
    /// The first call that may be unsettled: all before it are answered or given up.
    oldest: u64,
}

#[derive(Debug)]
struct Block {
    due: Vec<u64>,
    /// How much later than due each was sent, in microseconds.
    lag_micros: Vec<u32>,
    /// Calls of this block that have not been answered.
    unanswered: usize,
}

impl Calls {
    /// How many were sent, which is also the number of the next one.
    pub(crate) fn sent(&self) -> u64 {
        self.next
    }

    /// Notes that the next call, due at a time, is sent now.
    pub(crate) fn send(&mut self, due: u64, now: u64) {
        if self.next.is_multiple_of(BLOCK as u64) {
            let (due, lag_micros) = (Vec::with_capacity(BLOCK), Vec::with_capacity(BLOCK));
            self.blocks.push(Some(Block { due, lag_micros, unanswered: BLOCK }));
        }
        if let Some(Some(block)) = self.blocks.last_mut() {
            block.due.push(due & !GIVEN_UP);
            block.lag_micros.push(u32::try_from(now.saturating_sub(due) / 1_000).unwrap_or(u32::MAX));
        }
        self.next += 1;
    }

    /// Notes a reply to a call.
    pub(crate) fn answer(&mut self, number: u64) -> Settled {
        if number >= self.next {
            return Settled::Unknown;
        }
        let (index, at) = place(number);
        let Some(slot) = self.blocks.get_mut(index) else {
            return Settled::Unknown;
        };
        // A block that is gone was answered to the last call.
        let Some(block) = slot else {
            return Settled::Again;
        };
        let (Some(state), Some(lag)) = (block.due.get_mut(at), block.lag_micros.get(at)) else {
            return Settled::Unknown;
        };
        let settled = match *state {
            ANSWERED => return Settled::Again,
            given_up if given_up & GIVEN_UP != 0 => Settled::Late,
            due => Settled::InTime(due, u64::from(*lag) * 1_000),
        };
        *state = ANSWERED;
        block.unanswered -= 1;
        if block.unanswered == 0 {
            *slot = None;
        }
        settled
    }

    /// Gives up the calls that were sent before this time and not answered; says when each was due.
    pub(crate) fn give_up_before(&mut self, time: u64, mut given_up: impl FnMut(u64)) {
        while self.oldest < self.next {
            let (index, at) = place(self.oldest);
            let Some(Some(block)) = self.blocks.get_mut(index) else {
                self.oldest = (index as u64 + 1) * BLOCK as u64;
                continue;
            };
            let (Some(due), Some(lag)) = (block.due.get_mut(at), block.lag_micros.get(at)) else {
                return;
            };
            // Answered or given up; the first has the mark of the second too.
            if *due & GIVEN_UP == 0 {
                // Calls are sent in order, so the first young one ends the search.
                if due.saturating_add(u64::from(*lag) * 1_000) >= time {
                    return;
                }
                given_up(*due);
                *due |= GIVEN_UP;
            }
            self.oldest += 1;
        }
    }
}

/// Block and place within it.
fn place(number: u64) -> (usize, usize) {
    ((number / BLOCK as u64) as usize, (number % BLOCK as u64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(count: u64) -> Calls {
        let mut calls = Calls::default();
        for time in 0..count {
            calls.send(time, time);
        }
        calls
    }

    #[test]
    fn a_reply_settles_its_call_once() {
        let mut calls = sent(3);
        for (number, expected) in [
            (1, Settled::InTime(1, 0)),
            (0, Settled::InTime(0, 0)),
            (1, Settled::Again),
            (3, Settled::Unknown),
            (u64::MAX, Settled::Unknown),
        ] {
            assert_eq!(calls.answer(number), expected, "{number}");
        }
    }

    #[test]
    fn a_settled_block_is_dropped_and_remembered() {
        let mut calls = sent(BLOCK as u64 * 2);
        for number in 0..BLOCK as u64 {
            assert_eq!(calls.answer(number), Settled::InTime(number, 0));
        }
        assert!(matches!(calls.blocks.as_slice(), [None, Some(_)]));
        assert_eq!(calls.answer(7), Settled::Again);
    }

    fn given_up(calls: &mut Calls, time: u64) -> u64 {
        let mut count = 0;
        calls.give_up_before(time, |_| count += 1);
        count
    }

    #[test]
    fn old_calls_are_given_up_once_and_answered_late() {
        let mut calls = sent(10);
        assert_eq!(calls.answer(1), Settled::InTime(1, 0));
        assert_eq!(given_up(&mut calls, 4), 3);
        assert_eq!(given_up(&mut calls, 4), 0);
        assert_eq!(calls.answer(2), Settled::Late);
        assert_eq!(calls.answer(2), Settled::Again);
        assert_eq!(given_up(&mut calls, u64::MAX >> 1), 6);
    }

    #[test]
    fn giving_up_steps_over_blocks_that_are_gone() {
        let mut calls = sent(BLOCK as u64 + 2);
        for number in 0..BLOCK as u64 {
            calls.answer(number);
        }
        assert_eq!(given_up(&mut calls, u64::MAX >> 1), 2);
    }

    #[test]
    fn what_is_sent_late_is_given_up_late() {
        let mut calls = Calls::default();
        calls.send(1_000, 9_000);
        assert_eq!(given_up(&mut calls, 5_000), 0);
        assert_eq!(calls.answer(0), Settled::InTime(1_000, 8_000));
    }
}
