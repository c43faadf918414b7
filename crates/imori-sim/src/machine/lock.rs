//! The broker's locks with their holders, and the check of their order.

use std::cell::RefCell;

/// A lock, in the order in which they may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lock {
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
pub(crate) struct Locks(RefCell<Vec<(Lock, usize)>>);

impl Locks {
    /// The held lock that forbids taking `lock` now, if any. Several queues may be held if they are
    /// taken as one of many, by rising id.
    pub(crate) fn misorder(&self, cell: usize, lock: Lock, is_one_of_many: bool) -> Option<Lock> {
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

    pub(crate) fn take(&self, cell: usize, lock: Lock) {
        self.0.borrow_mut().push((lock, cell));
    }

    pub(crate) fn give_back(&self, lock: Lock) {
        self.0.borrow_mut().retain(|(held, _)| *held != lock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_topology_queue_outbound() {
        let (queue, outbound) = (Lock::Queue(3), Lock::Outbound(0, 0));
        for (held, lock, is_one_of_many, allowed) in [
            (Lock::Topology, queue, false, true),
            (queue, outbound, false, true),
            (outbound, queue, false, false),
            (outbound, outbound, false, false),
            (outbound, Lock::Outbound(1, 0), false, false),
            (queue, Lock::Queue(4), false, false),
            (queue, Lock::Queue(4), true, true),
            (queue, Lock::Queue(2), true, false),
            (queue, Lock::Topology, false, false),
        ] {
            let locks = Locks::default();
            locks.take(0, held);
            assert_eq!(locks.misorder(0, lock, is_one_of_many).is_none(), allowed, "{held:?} then {lock:?}");
            assert_eq!(locks.misorder(1, lock, is_one_of_many), None, "another cell's locks do not matter");
        }
    }
}
