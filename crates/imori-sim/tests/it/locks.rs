//! The order of locks.

use imori_sim::for_tests::{Lock, Locks};

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
