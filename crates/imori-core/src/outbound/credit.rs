//! Credit: how many deliveries a reader may have, and how many of their frames a session may send.

use super::encoder::{Encoder, FrameNumbers, FramePart};

/// A reader's allowance of deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credit {
    /// No limit: the reader settles nothing.
    Unlimited,
    /// A maximum of unsettled deliveries; settling one gives one back (`prefetch-count`, `basic.qos`).
    Window {
        /// The allowance.
        size: u32,
        /// The part of it that is in use.
        used: u32,
    },
    /// A number of further deliveries; only a grant adds to it (AMQP 1.0 link credit).
    Granted {
        /// Deliveries that the reader may still get.
        left: u32,
        /// Deliveries so far plus credit given up unused: a serial number that grants refer to.
        used: u32,
    },
}

/// A grant of credit, as the receiver sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The value of `used` in [`Credit::Granted`] that the receiver knew.
    pub used: u32,
    /// Deliveries that the receiver may have, counted from there.
    pub credit: u32,
    /// The receiver wants the messages that are there, and gives up the rest of the credit then.
    pub drains: bool,
}

impl Credit {
    /// A window with nothing in use.
    pub fn window(size: u32) -> Credit {
        Credit::Window { size, used: 0 }
    }

    /// Granted credit, before the first grant.
    pub fn ungranted() -> Credit {
        Credit::Granted { left: 0, used: 0 }
    }

    /// Applies a grant. Deliveries that the receiver did not know of yet are deducted from it.
    pub(super) fn grant(&mut self, grant: &Grant) {
        if let Credit::Granted { left, used } = self {
            let more = grant.used.wrapping_add(grant.credit).wrapping_sub(*used);
            // A serial number in the upper half is in the past (RFC 1982).
            *left = if more > i32::MAX as u32 && more > grant.credit { 0 } else { more };
        }
    }

    /// Gives up the remaining granted credit. Returns the serial number behind it.
    pub(super) fn give_up(&mut self) -> u32 {
        match self {
            Credit::Granted { left, used } => {
                *used = used.wrapping_add(std::mem::take(left));
                *used
            }
            Credit::Unlimited | Credit::Window { .. } => 0,
        }
    }

    /// Whether one more delivery is allowed.
    pub fn has_any(&self) -> bool {
        match *self {
            Credit::Unlimited => true,
            Credit::Window { size, used } => used < size,
            Credit::Granted { left, .. } => left > 0,
        }
    }

    /// Uses one delivery's credit.
    pub fn spend(&mut self) {
        match self {
            Credit::Unlimited => {}
            Credit::Window { used, .. } => *used += 1,
            Credit::Granted { left, used } => {
                *left = left.saturating_sub(1);
                *used = used.wrapping_add(1);
            }
        }
    }

    /// Gives back the credit of a settled delivery, if it is a window.
    pub fn settled(&mut self) {
        if let Credit::Window { used, .. } = self {
            *used = used.saturating_sub(1);
        }
    }
}

/// The frames of deliveries that a session may send, if its peer limits them (AMQP 1.0, 2.5.6: session flow
/// control).
///
/// A delivery may have more frames than the window. The rest then waits here for the next grant, and no other
/// frame of the session overtakes it.
#[derive(Debug, Default)]
pub(super) struct FrameWindow {
    /// Number of frames that the peer still takes.
    left: u32,
    /// The serial number of the next frame.
    next: u32,
    /// The serial number of the peer's next frame, as last told to the peer.
    awaited: u32,
    /// Frames that wait for the window.
    rest: Vec<u8>,
}

impl FrameWindow {
    /// Creates a window of `left` frames. Our next frame has the number `next`, the peer's next frame
    /// the number `awaited`.
    pub(super) fn new(next: u32, awaited: u32, left: u32) -> FrameWindow {
        FrameWindow { left, next, awaited, rest: Vec::new() }
    }

    /// The serial numbers of the next frame each way.
    pub(super) fn numbers(&self) -> FrameNumbers {
        FrameNumbers { next: self.next, awaited: self.awaited }
    }

    /// Number of frames that the peer still takes.
    pub(super) fn left(&self) -> u32 {
        self.left
    }

    /// Notes that the peer now learns which of its frames is awaited.
    pub(super) fn tell(&mut self, awaited: u32) {
        self.awaited = awaited;
    }

    /// Whether another delivery may begin.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.left > 0 && self.rest.is_empty()
    }

    /// Bytes that wait for the window.
    pub(super) fn rest_bytes(&self) -> usize {
        self.rest.len()
    }

    /// Holds back the frames in `out`, from `start` on, that the peer does not take yet.
    pub(super) fn pass(&mut self, encoder: &dyn Encoder, out: &mut Vec<u8>, start: usize) {
        if !self.rest.is_empty() {
            self.rest.extend(out.drain(start..));
            return;
        }
        let mut at = start;
        while let Some(rest) = out.get(at..).filter(|rest| !rest.is_empty()) {
            let FramePart { bytes, is_counted } = encoder.next_frame(rest);
            if is_counted && self.left == 0 {
                self.rest = out.split_off(at);
                return;
            }
            self.left -= u32::from(is_counted);
            self.next = self.next.wrapping_add(u32::from(is_counted));
            at += bytes.max(1);
        }
    }

    /// Moves the end of the peer's window to the frame with this serial number, and writes the waiting frames
    /// that fit.
    pub(super) fn grant(&mut self, encoder: &dyn Encoder, end: u32, out: &mut Vec<u8>) {
        let left = end.wrapping_sub(self.next);
        // A serial number in the upper half is in the past (RFC 1982).
        self.left = if left > i32::MAX as u32 { 0 } else { left };
        let start = out.len();
        out.append(&mut self.rest);
        self.pass(encoder, out, start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_is_spent_and_comes_back_by_its_kind() {
        // SECURITY LIM-16: any number from outside.
        for (credit, allowed, after_settling) in [
            (Credit::Unlimited, 5, true),
            (Credit::window(0), 0, false),
            (Credit::window(3), 3, true),
            (Credit::window(u32::MAX), 5, true),
            (Credit::Window { size: u32::MAX, used: u32::MAX }, 0, true),
            (Credit::Window { size: 1, used: 2 }, 0, false),
            (Credit::Granted { left: 0, used: 7 }, 0, false),
            (Credit::Granted { left: 2, used: u32::MAX }, 2, false),
            (Credit::Granted { left: u32::MAX, used: 0 }, 5, true),
        ] {
            let mut left = credit;
            let mut spent = 0;
            while spent < 5 && left.has_any() {
                left.spend();
                spent += 1;
            }
            assert_eq!(spent, allowed, "{credit:?}");
            left.settled();
            assert_eq!(left.has_any(), after_settling, "{credit:?}");
        }
        let mut unused = Credit::window(1);
        unused.settled();
        assert_eq!(unused, Credit::window(1));
    }

    /// AMQP 1.0, 2.6.7: link-credit(snd) := delivery-count(rcv) + link-credit(rcv) - delivery-count(snd).
    #[test]
    fn a_grant_counts_from_what_the_receiver_knew() {
        for (used, known, granted, left) in [
            (0, 0, 10, 10),
            (4, 0, 10, 6),
            (10, 0, 10, 0),
            (11, 0, 10, 0),
            (4, 4, 10, 10),
            (1, u32::MAX, 10, 8),
            (u32::MAX, u32::MAX, 2, 2),
            (0, 0, u32::MAX, u32::MAX),
            (7, 7, 0, 0),
        ] {
            let mut credit = Credit::Granted { left: 3, used };
            credit.grant(&Grant { used: known, credit: granted, drains: false });
            assert_eq!(credit, Credit::Granted { left, used }, "{granted} from {known} on");
            assert_eq!(credit.give_up(), used.wrapping_add(left));
            assert!(!credit.has_any());
        }
    }
}
