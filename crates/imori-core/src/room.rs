//! Room on the disk: which writes may proceed when space becomes scarce, and which must wait.
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
//! | settles | at once | part of the remaining space before each attempt at a checkpoint | as when scarce |
//! | dead letters, ids recorded again | a bounded number per command | only with the reserve | wait |
//! | dead letters caused by an arriving message | a bounded number | wait | wait |
//! | persistent publishes | at once, once the alarm is over | wait | wait |
//!
//! The publishers' alarm starts with the first shortage and ends only when everything has caught
//! up. Declarations are permanent, so each one asks whether there is room for it.

use std::sync::atomic::{AtomicBool, Ordering};

/// The state of the room, as drawn in the [module](self). [`Reserve`] tells whether it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomState {
    /// There is enough room.
    Ample {
        /// The bytes that dead letters of one command may fill. The rest moves gradually, so that a
        /// shortage is noticed in time.
        command_bytes_max: usize,
    },
    /// There is so little room that only writes that free some are unrestricted.
    Scarce,
}

/// What a verb is about to record. What leaves, settles, removals and purges, asks nobody: a full broker can always be
/// drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Messages of a publisher that waits while room is short.
    Publish,
    /// Messages that waited for nothing: those of streams and archives, and those that an operator moves.
    Store,
    /// A definition.
    Declare,
}

/// Why the journal takes no records of messages or definitions now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unavailable {
    /// The disk is nearly full, or does not keep up.
    DiskFull,
    /// Another node leads the journal.
    NotLeader,
    /// Too few nodes are there to keep anything.
    NoQuorum,
}

/// The room on the disk of a world.
///
/// It is asked for and not set by the world: how much waits for the disk changes with each record that is appended or
/// written, and only a command that may need room pays for the answer.
pub trait Room {
    /// The current state.
    fn state(&self) -> RoomState;

    /// The exclusive right to the space reserved for dead letters.
    fn reserve(&self) -> &Reserve;

    /// The bytes of the reserve that its holder may write now.
    fn reserve_bytes(&self) -> usize;

    /// Whether persistent publishes must wait, because the disk is nearly full or does not keep up.
    fn is_alarmed(&self) -> bool;

    /// Whether clients must wait before settling, because the rest of the last file is needed for a
    /// checkpoint. The wait ends at the latest with the next check for files to free. By default
    /// clients never wait.
    fn must_settle_wait(&self) -> bool {
        false
    }

    /// Whether more may be declared. Definitions are permanent, and even a deletion needs room
    /// first.
    fn may_declare(&self) -> bool;

    /// Whether there is room for records of this purpose.
    fn has_room_for(&self, purpose: Purpose) -> bool {
        match purpose {
            Purpose::Publish => true,
            Purpose::Store => !self.is_alarmed(),
            Purpose::Declare => self.may_declare(),
        }
    }

    /// Allows a command to write records that move or repeat something. If room is scarce, this
    /// takes the reserve, unless it is taken, and dropping the allowance returns it.
    #[inline]
    fn allow(&self) -> Allowance<'_> {
        let RoomState::Scarce = self.state() else { return self.allow_arrival() };
        let reserve = self.reserve().take().then(|| self.reserve());
        let bytes = if reserve.is_some() { self.reserve_bytes() } else { 0 };
        Allowance { bytes, is_scarce: true, reserve }
    }

    /// Allows an arriving message to write records of the messages that it displaces. If room is
    /// scarce it may write nothing: they move when their queue is woken.
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

/// The right to the space reserved for dead letters, held by one command at a time.
#[derive(Debug, Default)]
pub struct Reserve {
    is_taken: AtomicBool,
}

impl Reserve {
    /// Whether the reserve is taken.
    pub fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::Relaxed)
    }

    /// Takes the reserve; false if it is already taken.
    fn take(&self) -> bool {
        !self.is_taken.swap(true, Ordering::Acquire)
    }

    fn give_back(&self) {
        self.is_taken.store(false, Ordering::Release);
    }
}

/// The bytes on disk that one command may fill with records that free nothing by themselves.
#[derive(Debug)]
pub struct Allowance<'r> {
    bytes: usize,
    is_scarce: bool,
    /// Returned once the records have been appended.
    reserve: Option<&'r Reserve>,
}

impl Allowance<'_> {
    /// The number of bytes that may be written.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the limit is strict. With ample room, the first record may exceed it.
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
