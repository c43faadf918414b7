//! The CPU time of slices.

use std::thread;
use std::time::Duration;

use imori_ruby::for_tests::{READING_AGE_MAX, SliceClock, thread_cpu};

/// Uses the CPU for this time.
fn spin(time: Duration) {
    let begin = thread_cpu();
    while thread_cpu() - begin < time {}
}

#[test]
fn slice_counts_what_it_has_used_and_not_what_it_has_waited() {
    let clock = SliceClock::default();
    for (spun_ms, slept_ms) in [(0, 0), (3, 0), (0, 20), (3, 20)] {
        spin(2 * READING_AGE_MAX);
        clock.start();
        spin(Duration::from_millis(spun_ms));
        thread::sleep(Duration::from_millis(slept_ms));
        let (used, _) = clock.used();
        let least = Duration::from_millis(spun_ms);
        let most = least + READING_AGE_MAX + Duration::from_millis(1);
        assert!(least <= used && used <= most, "{spun_ms} ms of CPU and {slept_ms} ms of sleep: {used:?}");
    }
}
