//! The broker's locks with their holders, and the check of their order.

use std::cell::RefCell;

/// A lock, in the order in which they may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lock {
    /// The writer's side of the routing table.
    Topology,
    /// The queue in this slot.
    Queue(u32),
    /// The connection of this cell in this slot.
    Outbound(u16, u32),
}

impl Lock {
    fn rank(self) -> u8 {
        match self {
            Lock::Topology => 0,
            Lock::Queue(_) => 1,
            Lock::Outbound(..) => 2,
        }
    }
}

/// All held locks, each with its holder.
#[derive(Debug, Default)]
pub struct Locks(RefCell<Vec<(Lock, usize)>>);

impl Locks {
    /// The held lock that forbids taking `lock` now, if any. Several queues may be held if they are
    /// taken as one of many, by rising id.
    pub fn misorder(&self, cell: usize, lock: Lock, is_one_of_many: bool) -> Option<Lock> {
        let held = self.0.borrow();
        let of_cell = held.iter().filter(|(_, holder)| *holder == cell).map(|(held, _)| *held);
        let mut wrong = of_cell.filter(|held| match held.rank().cmp(&lock.rank()) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => !is_one_of_many || *held >= lock,
            std::cmp::Ordering::Greater => true,
        });
        wrong.next()
    }

    /// The thread that holds a lock.
    pub(crate) fn holder(&self, lock: Lock) -> Option<usize> {
        self.0.borrow().iter().find(|(held, _)| *held == lock).map(|(_, holder)| *holder)
    }

    /// Notes that a thread of this cell holds a lock.
    pub fn take(&self, cell: usize, lock: Lock) {
        self.0.borrow_mut().push((lock, cell));
    }

    pub(crate) fn give_back(&self, lock: Lock) {
        self.0.borrow_mut().retain(|(held, _)| *held != lock);
    }
}
