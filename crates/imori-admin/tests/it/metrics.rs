//! Metrics in Prometheus text format, and the numbers in them.

use std::time::Duration;

use imori_admin::for_tests::metrics::{
    ConsumerNumbers, Exposition, Ranked, Samples, StreamNumbers, busiest, keep_slowest, memory_bytes,
    parse_memory, parse_ticks, usage,
};
use imori_core::activity::QueueActivity;
use imori_core::id::QueueId;
use imori_core::time::Time;

#[test]
fn numbers_are_written_as_prometheus_reads_them() {
    let mut page = Exposition::default();
    page.counter("a_total", "All of a.", 12_345_678_901.0);
    page.each("gauge", ("b", "Each b."), "c", [("x", 0.25), ("y\"\n\\", 0.0)]);
    let sum = Duration::from_millis(4_500);
    page.histogram(("d_seconds", "Time of d."), &[100_000, 1_000_000], &[2, 0, 3], sum);
    let expected = "\
# HELP a_total All of a.
# TYPE a_total counter
a_total 12345678901
# HELP b Each b.
# TYPE b gauge
b{c=\"x\"} 0.25
b{c=\"y\\\"\\n\\\\\"} 0
# HELP d_seconds Time of d.
# TYPE d_seconds histogram
d_seconds_bucket{le=\"0.1\"} 2
d_seconds_bucket{le=\"1\"} 2
d_seconds_bucket{le=\"+Inf\"} 5
d_seconds_sum 4.5
d_seconds_count 5
";
    assert_eq!(page.into_text(), expected);
}

#[test]
fn memory_and_time_are_read_as_the_system_writes_them() {
    assert_eq!(parse_memory("VmPeak:\t 9 kB\nVmRSS:\t   15804 kB\n"), Some(15804 * 1024));
    assert_eq!(parse_memory("VmPeak:\t 9 kB\n"), None);
    let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20";
    assert_eq!(parse_ticks(stat), Some(300));
    assert_eq!(parse_ticks("7 (a) S 1"), None);
    assert!(memory_bytes() > Some(1 << 20));
    let usage = usage();
    assert!(usage.cpu_s.is_some() && usage.threads >= Some(1.0) && usage.open_files >= Some(3.0));
    assert!(usage.virtual_bytes >= Some(1e6) && usage.open_files_max >= usage.open_files);
}

#[test]
fn the_longest_and_the_most_moved_are_the_busiest() {
    let queues = [(0, 9), (5, 0), (1, 1), (0, 8), (7, 0), (0, 0)];
    let ranked = |count: usize| {
        let each = (0..).zip(queues.into_iter().take(count));
        each.map(|(slot, (held, moved))| Ranked { held, moved, key: QueueId { slot, generation: 0 } })
            .collect()
    };
    for (count, max, expected) in [
        (6, 4, &[0, 1, 3, 4][..]),
        (6, 2, &[0, 4]),
        (6, 6, &[0, 1, 2, 3, 4, 5]),
        (3, 100, &[0, 1, 2]),
        (0, 4, &[]),
    ] {
        let mut found: Vec<u32> = busiest(ranked(count), max).into_iter().map(|key| key.slot).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{max} of {count}");
    }
}

#[test]
fn a_rate_is_told_from_two_samples() {
    let key = QueueId { slot: 1, generation: 0 };
    let activity = |published| QueueActivity { published, ..QueueActivity::default() };
    let mut samples = Samples::default();
    samples.take(Time::default(), [(key, activity(100))]);
    assert_eq!(samples.rate(key, |of| of.published), 0.0, "one sample tells no rate");
    samples.take(Time::default().after(Duration::from_secs(10)), [(key, activity(150))]);
    assert_eq!(samples.rate(key, |of| of.published), 5.0);
    assert_eq!(samples.rate(key, |of| of.accepted), 0.0);
    assert_eq!(samples.rate(QueueId { slot: 2, generation: 0 }, |of| of.published), 0.0);
}

#[test]
fn the_consumers_that_are_furthest_behind_are_kept() {
    let stream = |name: &str, pending: &[u64]| StreamNumbers {
        vhost: String::from("/"),
        name: String::from(name),
        messages: 0,
        bytes: 0,
        first_sequence: 1,
        last_sequence: 0,
        consumer_count: pending.len(),
        consumers: (1..)
            .zip(pending)
            .map(|(number, pending)| ConsumerNumbers {
                name: format!("{name}{number}"),
                pending: *pending,
                ack_pending: 0,
                redelivered: 0,
            })
            .collect(),
    };
    for (max, expected) in [
        (0, vec![]),
        (1, vec!["b1"]),
        (2, vec!["a2", "b1"]),
        (3, vec!["a1", "a2", "b1"]),
        (4, vec!["a1", "a2", "b1", "b2"]),
        (9, vec!["a1", "a2", "b1", "b2"]),
    ] {
        let mut streams = [stream("a", &[1, 5]), stream("b", &[9, 1])];
        keep_slowest(&mut streams, max);
        let kept = streams.iter().flat_map(|stream| &stream.consumers);
        assert_eq!(kept.map(|consumer| consumer.name.as_str()).collect::<Vec<_>>(), expected, "{max}");
        assert!(streams.iter().all(|stream| stream.consumer_count == 2), "all are counted");
    }
}
