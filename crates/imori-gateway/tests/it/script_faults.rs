//! The latest faults of scripts.

use imori_core::time::Time;
use imori_gateway::for_tests::{FAULT_TEXT_BYTES_MAX, SCRIPT_FAULTS_MAX, ScriptFaults};

#[test]
fn a_long_message_is_cut_off_between_characters() {
    let faults = ScriptFaults::default();
    for rest in ["a", "b"] {
        let message = format!("x{}{rest}", "é".repeat(FAULT_TEXT_BYTES_MAX));
        faults.note(Time(1), "content", "a.rb:1", &message);
    }
    let expected = format!("x{}…", "é".repeat(FAULT_TEXT_BYTES_MAX / 2 - 1));
    let latest = faults.latest();
    assert_eq!(latest.len(), 1, "what differs behind the limit is one kind");
    assert_eq!((latest[0].message.as_str(), latest[0].count), (expected.as_str(), 2));
}

#[test]
fn a_fault_that_comes_again_is_counted_and_the_oldest_makes_place() {
    let faults = ScriptFaults::default();
    for number in 0..SCRIPT_FAULTS_MAX as u64 {
        faults.note(Time(number), "content", "a.rb:1", &number.to_string());
    }
    faults.note(Time(1_000), "content", "a.rb:1", "0");
    faults.note(Time(2_000), "content", "a.rb:1", "new");
    let latest = faults.latest();
    assert_eq!(latest.len(), SCRIPT_FAULTS_MAX);
    assert_eq!((latest[0].message.as_str(), latest[0].count), ("new", 1));
    assert_eq!((latest[1].message.as_str(), latest[1].count), ("0", 2));
    assert!(latest.iter().all(|fault| fault.message != "1"), "the one that was longest ago is gone");
}
