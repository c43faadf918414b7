//! The calls of one requester: when each was sent, and whether it was answered.
//!
//! Memory follows the calls in flight: a block of calls that are all settled is dropped,
//! and a reply to one of them is still known as a second one.

/// Calls in one block.
const BLOCK: usize = 4_096;
/// A call that was answered.
const ANSWERED: u64 = u64::MAX;
/// Marks a call that was given up; below it stands when it was sent.
const GIVEN_UP: u64 = 1 << 63;

/// What a reply means for its call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// The first reply, to a call sent at this time.
    InTime(u64),
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
    sent_at: Vec<u64>,
    /// Calls of this block that have not been answered.
    unanswered: usize,
}

impl Calls {
    /// How many were sent, which is also the number of the next one.
    pub(crate) fn sent(&self) -> u64 {
        self.next
    }

    /// Notes that the next call is sent at this time.
    pub(crate) fn send(&mut self, now: u64) {
        if self.next.is_multiple_of(BLOCK as u64) {
            self.blocks.push(Some(Block { sent_at: Vec::with_capacity(BLOCK), unanswered: BLOCK }));
        }
        if let Some(Some(block)) = self.blocks.last_mut() {
            block.sent_at.push(now & !GIVEN_UP);
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
        let Some(state) = block.sent_at.get_mut(at) else {
            return Settled::Unknown;
        };
        let settled = match *state {
            ANSWERED => return Settled::Again,
            given_up if given_up & GIVEN_UP != 0 => Settled::Late,
            sent_at => Settled::InTime(sent_at),
        };
        *state = ANSWERED;
        block.unanswered -= 1;
        if block.unanswered == 0 {
            *slot = None;
        }
        settled
    }

    /// Gives up the calls that were sent before this time and not answered; says how many.
    pub(crate) fn give_up_before(&mut self, time: u64) -> u64 {
        let mut given_up = 0;
        while self.oldest < self.next {
            let (index, at) = place(self.oldest);
            match self.blocks.get_mut(index) {
                Some(Some(block)) => match block.sent_at.get_mut(at) {
                    // Calls are sent in order, so the first young one ends the search.
                    Some(sent_at) if *sent_at & GIVEN_UP == 0 && *sent_at >= time => return given_up,
                    Some(sent_at) if *sent_at & GIVEN_UP == 0 => {
                        *sent_at |= GIVEN_UP;
                        given_up += 1;
                        self.oldest += 1;
                    }
                    // Answered or given up; the first has the mark of the second too.
                    _ => self.oldest += 1,
                },
                _ => self.oldest = (index as u64 + 1) * BLOCK as u64,
            }
        }
        given_up
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
            calls.send(time);
        }
        calls
    }

    #[test]
    fn a_reply_settles_its_call_once() {
        let mut calls = sent(3);
        for (number, expected) in [
            (1, Settled::InTime(1)),
            (0, Settled::InTime(0)),
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
            assert_eq!(calls.answer(number), Settled::InTime(number));
        }
        assert!(matches!(calls.blocks.as_slice(), [None, Some(_)]));
        assert_eq!(calls.answer(7), Settled::Again);
    }

    #[test]
    fn old_calls_are_given_up_once_and_answered_late() {
        let mut calls = sent(10);
        assert_eq!(calls.answer(1), Settled::InTime(1));
        assert_eq!(calls.give_up_before(4), 3);
        assert_eq!(calls.give_up_before(4), 0);
        assert_eq!(calls.answer(2), Settled::Late);
        assert_eq!(calls.answer(2), Settled::Again);
        assert_eq!(calls.give_up_before(u64::MAX >> 1), 6);
    }

    #[test]
    fn giving_up_steps_over_blocks_that_are_gone() {
        let mut calls = sent(BLOCK as u64 + 2);
        for number in 0..BLOCK as u64 {
            calls.answer(number);
        }
        assert_eq!(calls.give_up_before(u64::MAX >> 1), 2);
    }
}
