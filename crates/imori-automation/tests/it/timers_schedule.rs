//! The schedule of many timers.

use imori_automation::ids::Id;
use imori_automation::timers::{Missed, Schedule, Timer};
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};

const A: [u8; 12] = [1; 12];
const B: [u8; 12] = [2; 12];

fn every(seconds: i64) -> Timer {
    let parameters: Map =
        [("unit", Value::from("seconds")), ("delta", Value::from(seconds))].into_iter().collect();
    Timer::read("core.st2.IntervalTimer", &parameters).unwrap()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}

fn ids() -> (Id, Id) {
    (Id::from_bytes(A), Id::from_bytes(B))
}

#[test]
fn timers_fire_in_the_order_of_moments() {
    let (a, b) = ids();
    let mut schedule = Schedule::new();
    assert_eq!(schedule.next(), None);
    schedule.insert(a, every(10), None, Missed::Skip, at(0));
    schedule.insert(b, every(4), None, Missed::Skip, at(0));
    assert_eq!((schedule.next(), schedule.len()), (Some(at(4)), 2));
    assert_eq!(schedule.due(at(3)), []);
    assert_eq!(schedule.due(at(4)), [(b, at(4))]);
    assert_eq!(schedule.due(at(11)), [(b, at(8)), (a, at(10))]);
    assert_eq!(schedule.next(), Some(at(12)));
}

#[test]
fn standstill_makes_one_firing_of_many() {
    let (a, _) = ids();
    for (missed, fired) in [
        (Missed::Skip, vec![(a, at(30))]),
        (Missed::Once, vec![(a, at(30))]),
        (Missed::All, vec![(a, at(10)), (a, at(20)), (a, at(30))]),
    ] {
        let mut schedule = Schedule::new();
        schedule.insert(a, every(10), None, missed, at(0));
        assert_eq!(schedule.due(at(39)), fired, "{missed:?}");
        assert_eq!(schedule.next(), Some(at(40)));
    }
}

#[test]
fn restart_makes_up_for_what_was_missed() {
    let (a, _) = ids();
    for (missed, fired) in [
        (Missed::Skip, vec![]),
        (Missed::Once, vec![(a, at(30))]),
        (Missed::All, vec![(a, at(10)), (a, at(20)), (a, at(30))]),
    ] {
        let mut schedule = Schedule::new();
        schedule.insert(a, every(10), Some(at(0)), missed, at(39));
        assert_eq!(schedule.due(at(39)), fired, "{missed:?}");
        assert_eq!(schedule.next(), Some(at(40)));
    }
}

#[test]
fn replaced_timer_fires_by_the_new_one_only() {
    let (a, _) = ids();
    let mut schedule = Schedule::new();
    schedule.insert(a, every(10), None, Missed::Skip, at(0));
    schedule.insert(a, every(25), None, Missed::Skip, at(0));
    assert_eq!(schedule.timer(a), Some(&every(25)));
    assert_eq!(schedule.due(at(24)), []);
    assert!(schedule.remove(a));
    assert!(!schedule.remove(a));
    assert_eq!((schedule.next(), schedule.is_empty()), (None, true));
}
