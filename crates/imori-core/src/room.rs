//! Room on the disk: who may still write when it gets less, and who waits.
//!
//! ```text
//!              little is free, or much waits for the disk          a command takes the reserve
//!   ┌───────┐ ───────────────────────────────────────────► ┌────────┐ ──────────────────────► ┌───────┐
//!   │ ample │                                               │ scarce │                         │ taken │
//!   └───────┘ ◄─────────────────────────────────────────── └────────┘ ◄────────────────────── └───────┘
//!              enough is free, and the disk keeps up               its records are appended
//! ```
//!
//! | who writes | ample | scarce | taken |
//! |---|---|---|---|
//! | checkpoints | at once | at once | at once |
//! | settles | at once | a part of what is left before each look for a checkpoint | as where it is scarce |
//! | dead letters, ids recorded again | a bounded number a command | with the reserve alone | wait |
//! | dead letters of a message that arrives | a bounded number | wait | wait |
//! | persistent publishes | at once, once the alarm is over | wait | wait |
//!
//! The alarm of publishers begins with the first shortage and ends later: when all has caught up. What is declared
//! stays for good, so that each declaration asks whether there is room for it.

use std::sync::atomic::{AtomicBool, Ordering};

/// The state of the room, as the [module](self) draws it. Who has the reserve is told by [`Reserve`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomState {
    /// There is enough.
    Ample {
        /// Bytes that the dead letters of one command may fill. The rest goes by and by: it is seen in time that there
        /// is no room any more.
        command_bytes_max: usize,
    },
    /// There is so little that only what gives some back may write freely.
    Scarce,
}

/// The room on the disk of a world.
pub trait Room {
    /// The state it is in now.
    fn state(&self) -> RoomState;

    /// The right to the room that is kept for dead letters.
    fn reserve(&self) -> &Reserve;

    /// Bytes of the reserve that may be written now; asked by who has the reserve.
    fn reserve_bytes(&self) -> usize;

    /// Tells whether publishes of messages that are to be kept on disk have to wait: the disk is nearly full, or does
    /// not take what is there already.
    fn is_alarmed(&self) -> bool;

    /// Tells whether clients have to wait with what they settle: little is left of the last file, which a checkpoint
    /// needs. Nobody waits for longer than the next look whether one frees something. By default nobody waits.
    fn must_settle_wait(&self) -> bool {
        false
    }

    /// Tells whether more may be declared: definitions stay, and a deletion needs room too.
    fn may_declare(&self) -> bool;

    /// Allows a command to write what moves or repeats something. Where room is scarce it takes the reserve, unless
    /// somebody has it, and gives it back when the allowance is dropped.
    #[inline]
    fn allow(&self) -> Allowance<'_> {
        let RoomState::Scarce = self.state() else { return self.allow_arrival() };
        let reserve = self.reserve().take().then(|| self.reserve());
        let bytes = if reserve.is_some() { self.reserve_bytes() } else { 0 };
        Allowance { bytes, is_scarce: true, reserve }
    }

    /// Allows the arrival of a message to write what it pushes out. Where room is scarce that is nothing: it moves as
    /// soon as its queue is woken.
    #[inline]
    fn allow_arrival(&self) -> Allowance<'_> {
        match self.state() {
            RoomState::Ample { command_bytes_max } => {
                Allowance { bytes: command_bytes_max, is_scarce: false, reserve: None }
            }
            RoomState::Scarce => Allowance { bytes: 0, is_scarce: true, reserve: None },
        }
    }
}

/// The right to the room that is kept for dead letters, which one command has at a time.
#[derive(Debug, Default)]
pub struct Reserve {
    is_taken: AtomicBool,
}

impl Reserve {
    /// Tells whether somebody has it.
    pub fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::Relaxed)
    }

    /// Takes it; false where somebody has it.
    fn take(&self) -> bool {
        !self.is_taken.swap(true, Ordering::Acquire)
    }

    fn give_back(&self) {
        self.is_taken.store(false, Ordering::Release);
    }
}

/// Bytes of the disk that one command may fill with what frees nothing by itself.
#[derive(Debug)]
pub struct Allowance<'r> {
    bytes: usize,
    is_scarce: bool,
    /// Given back once the records that took room are appended.
    reserve: Option<&'r Reserve>,
}

impl Allowance<'_> {
    /// The bytes that may be written.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Tells whether nothing may be written beyond them. Where room is ample, the first in any case may.
    pub fn is_scarce(&self) -> bool {
        self.is_scarce
    }
}

impl Drop for Allowance<'_> {
    fn drop(&mut self) {
        if let Some(reserve) = self.reserve {
            reserve.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Disk {
        state: RoomState,
        reserve: Reserve,
    }

    impl Room for Disk {
        fn state(&self) -> RoomState {
            self.state
        }

        fn reserve(&self) -> &Reserve {
            &self.reserve
        }

        fn reserve_bytes(&self) -> usize {
            7
        }

        fn is_alarmed(&self) -> bool {
            false
        }

        fn may_declare(&self) -> bool {
            true
        }
    }

    #[test]
    fn one_command_has_the_reserve_until_its_records_are_appended() {
        let disk = Disk { state: RoomState::Scarce, reserve: Reserve::default() };
        for _ in 0..2 {
            let first = disk.allow();
            assert_eq!((first.bytes(), disk.allow().bytes(), disk.allow_arrival().bytes()), (7, 0, 0));
            assert!(first.is_scarce() && disk.reserve.is_taken(), "others do not give it back");
            drop(first);
            assert!(!disk.reserve.is_taken());
        }
    }

    #[test]
    fn who_arrives_takes_no_reserve() {
        let disk = Disk { state: RoomState::Scarce, reserve: Reserve::default() };
        let _arrival = disk.allow_arrival();
        assert_eq!(disk.allow().bytes(), 7);
    }

    #[test]
    fn where_room_is_ample_nobody_waits_for_another() {
        let state = RoomState::Ample { command_bytes_max: 9 };
        let disk = Disk { state, reserve: Reserve::default() };
        let all = [disk.allow(), disk.allow(), disk.allow_arrival()];
        assert!(all.iter().all(|allowance| allowance.bytes() == 9 && !allowance.is_scarce()));
        assert!(!disk.reserve.is_taken());
    }
}
