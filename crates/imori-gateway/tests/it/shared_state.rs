//! What scripts of all workers share.

use std::sync::Arc;
use std::time::Duration;

use imori_gateway::for_tests::{Key, SharedState};
use imori_ruby::Value;

fn key(name: &str) -> Key {
    (b"cache".to_vec(), name.as_bytes().to_vec())
}

#[test]
fn value_expires() {
    let state = SharedState::new(10_000);
    state.set(key("a"), "1".into(), Some(Duration::ZERO)).expect("there is room");
    assert_eq!(state.get(&key("a")), None);
    assert_eq!(state.keys(b"cache"), Vec::<Vec<u8>>::new());
    state.set(key("a"), "2".into(), None).expect("there is room");
    assert_eq!(state.get(&key("a")), Some("2".into()));
    assert_eq!(state.add(key("a"), "3".into(), None), Ok(false));
    assert_eq!(state.delete(&key("a")), Some("2".into()));
    assert_eq!(state.add(key("a"), "3".into(), None), Ok(true));
}

#[test]
fn counter_counts_and_ends() {
    let state = SharedState::new(10_000);
    assert_eq!(state.increment(key("n"), 2, None), Ok(2));
    assert_eq!(state.increment(key("n"), -5, None), Ok(-3));
    state.set(key("n"), Value::Integer(i64::MAX), None).expect("there is room");
    assert!(state.increment(key("n"), 1, None).is_err());
    state.set(key("n"), "x".into(), None).expect("there is room");
    assert!(state.increment(key("n"), 1, None).is_err());
}

#[test]
fn full_state_refuses_more_until_something_expires() {
    let state = SharedState::new(2_000);
    let large = || Value::string(vec![0; 800]);
    state.set(key("a"), large(), Some(Duration::ZERO)).expect("there is room");
    state.set(key("b"), large(), None).expect("there is room");
    state.set(key("c"), large(), None).expect("the first one has expired");
    assert!(state.set(key("d"), large(), None).is_err());
    state.set(key("c"), large(), None).expect("it takes its own place");
    state.clear(b"cache");
    state.set(key("d"), large(), None).expect("there is room");
    assert_eq!(state.keys(b"cache"), [b"d"]);
}

#[test]
fn lock_is_one_for_a_name_and_forgotten_after_use() {
    let state = SharedState::new(0);
    let first = state.lock_of(b"a");
    assert!(Arc::ptr_eq(&first, &state.lock_of(b"a")));
    assert!(!Arc::ptr_eq(&first, &state.lock_of(b"b")));
    drop(first);
    for number in 0..1000_u32 {
        state.lock_of(&number.to_ne_bytes());
    }
    assert!(state.locks.lock().unwrap().len() < 100);
}
