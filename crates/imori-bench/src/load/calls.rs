//! The calls of one requester: when each was due and sent, and whether it was answered.
//!
//! Memory follows the calls in flight: a block whose calls are all answered is dropped, and another
//! reply to one of them is still recognized as a duplicate.

/// Calls in one block.
const BLOCK: usize = 4_096;
/// Due time of a call that was answered.
const ANSWERED: u64 = u64::MAX;
/// Bit that marks the due time of a call that was given up.
const GIVEN_UP: u64 = 1 << 63;

/// The state of the call that a reply belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// First reply to a call; carries the due time and the delay of the send behind it, in nanoseconds.
    InTime(u64, u64),
    /// First reply to a call that had been given up.
    Late,
    /// The call was already answered.
    Again,
    /// No such call was sent.
    Unknown,
}

/// The calls of one requester, numbered from 0.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    blocks: Vec<Option<Block>>,
    next: u64,
    /// The first call that may be in flight: all before it are answered or given up.
    oldest: u64,
}

#[derive(Debug)]
struct Block {
    due: Vec<u64>,
    /// Delay of each send behind its due time, in microseconds.
    lag_micros: Vec<u32>,
    /// Calls of this block that have not been answered.
    unanswered: usize,
}

impl Calls {
    /// Number of calls sent, which is also the number of the next one.
    pub(crate) fn sent(&self) -> u64 {
        self.next
    }

    /// Records that the next call, due at `due`, is sent now.
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

    /// Records a reply to call `number`.
    pub(crate) fn answer(&mut self, number: u64) -> Settled {
        if number >= self.next {
            return Settled::Unknown;
        }
        let (index, at) = place(number);
        let Some(slot) = self.blocks.get_mut(index) else {
            return Settled::Unknown;
        };
        // A block is dropped once all its calls are answered.
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

    /// Gives up the unanswered calls sent before `time`, and passes the due time of each to `given_up`.
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
            // Skips calls that are answered or given up; `ANSWERED` includes the bit of `GIVEN_UP`.
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

/// Index of the block, and the index within the block.
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
