//! The samples of the broker: what they are taken from, and the history that keeps them.

use std::time::{Duration, Instant};

use imori_admin::for_tests::samples::{
    Buckets, Counts, History, Noted, PassState, Sample, Series, StallsSeen, Traffic, Window, Windows, between,
};
use imori_admin::for_tests::{HISTORY_MINUTES_MAX, HISTORY_SECONDS_MAX};
use imori_core::id::ConnectionId;
use imori_core::time::Time;
use imori_server::broker::Times;
use imori_server::stall::{Cause, Evidence, LateWork, Stall};
use serde_json::Value;

const START: u64 = 1_800_000_000_000;

fn sample(values: &[(Series, f64)]) -> Sample {
    let mut sample = Sample::default();
    values.iter().for_each(|(series, value)| sample.set(*series, Some(*value)));
    sample
}

#[test]
fn a_longer_step_is_summed_up_by_the_meaning_of_each_series() {
    let samples = [
        sample(&[(Series::Settled, 10.0), (Series::ConfirmP99, 5.0), (Series::StalledMs, 200.0)]),
        sample(&[(Series::Settled, 20.0), (Series::ConfirmP99, 7.0), (Series::StalledMs, 300.0)]),
        Sample::default(),
    ];
    let summary = Sample::summary(&samples);
    assert_eq!(summary.get(Series::Settled), Some(15.0), "a sample that is missing counts nothing");
    assert_eq!(summary.get(Series::ConfirmP99), Some(7.0));
    assert_eq!(summary.get(Series::StalledMs), Some(500.0));
    assert_eq!(summary.get(Series::Queues), None);
}

#[test]
fn a_sample_is_an_object_with_all_series() {
    let text = sample(&[(Series::Settled, 10.0), (Series::Ready, 0.12345)]).to_json();
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read.as_object().unwrap().len(), Series::ALL.len());
    assert_eq!((&read["settled"], &read["ready"]), (&Value::from(10), &Value::from(0.123)));
    assert!(read["queues"].is_null());
    for (index, series) in Series::ALL.into_iter().enumerate() {
        assert_eq!(series as usize, index, "{}", series.name());
    }
}

#[test]
fn quantiles_lie_within_their_buckets() {
    let of = |counts: &[u64], part| Buckets { bounds_us: &[100, 200, 1_000], counts }.quantile_us(part);
    for (counts, part, expected) in [
        (&[0, 0, 0, 0][..], 0.5, None),
        (&[10, 0, 0, 0], 0.5, Some(50.0)),
        (&[10, 10, 0, 0], 0.5, Some(100.0)),
        (&[0, 10, 0, 0], 0.99, Some(199.0)),
        (&[99, 0, 1, 0], 0.99, Some(100.0)),
        (&[99, 0, 1, 0], 1.0, Some(1_000.0)),
        (&[0, 0, 0, 3], 0.5, Some(1_000.0)),
        (&[1, 0, 0, 0], 0.01, Some(100.0)),
    ] {
        assert_eq!(of(counts, part), expected, "{part} of {counts:?}");
    }
    let max = |counts: &[u64]| Buckets { bounds_us: &[100, 200], counts }.max_us();
    assert_eq!(
        (max(&[0, 0, 0]), max(&[5, 0, 0]), max(&[5, 1, 0]), max(&[0, 0, 1])),
        (None, Some(100.0), Some(200.0), Some(200.0))
    );
}

#[test]
fn rates_are_between_two_counts() {
    let at = Instant::now();
    let counts = |at, expired, confirms: [u64; 2]| {
        let mut times = Times::default();
        times.classes[0] = confirms[0];
        times.classes[1] = confirms[1];
        Counts { at, returned: 0, expired, dead_lettered: 0, journal_bytes: 0, confirms: times }
    };
    let before = counts(at, 100, [5, 5]);
    let mut sample = Sample::default();
    counts(at + Duration::from_secs(2), 150, [5, 7]).add_to(&mut sample, &before);
    assert_eq!((sample.get(Series::Expired), sample.get(Series::Returned)), (Some(25.0), Some(0.0)));
    assert_eq!(sample.get(Series::ConfirmMax), Some(250.0), "earlier confirms count nothing");
    counts(at + Duration::from_secs(2), 90, [5, 5]).add_to(&mut sample, &before);
    assert_eq!((sample.get(Series::Expired), sample.get(Series::ConfirmP50)), (Some(0.0), None));
    before.add_to(&mut sample, &before);
    assert_eq!(sample.get(Series::Expired), None, "there is no time between");
}

#[test]
fn traffic_is_told_by_protocol() {
    let at = Instant::now();
    let before = Traffic { at, published: [1; 5], delivered: [0; 5], settled: 7 };
    let after = Traffic {
        at: at + Duration::from_secs(1),
        published: [1, 2, 3, 4, 5],
        delivered: [9, 0, 0, 0, 0],
        settled: 9,
    };
    let mut sample = Sample::default();
    after.add_to(&mut sample, &before);
    let told = Series::PUBLISHED.map(|series| sample.get(series).unwrap());
    assert_eq!(told, [0.0, 1.0, 2.0, 3.0, 4.0]);
    assert_eq!((sample.get(Series::DeliveredStomp), sample.get(Series::Settled)), (Some(9.0), Some(2.0)));
}

fn stall(began: u64, lasted: u64, is_over: bool) -> Stall {
    Stall {
        what: LateWork::Flush,
        began: Time(began),
        lasted: Duration::from_micros(lasted),
        is_over,
        cause: Cause::Unknown,
        evidence: Evidence::default(),
        step: None,
        queued_bytes: 0,
        unsynced: 0,
    }
}

#[test]
fn a_stall_counts_in_each_sample_that_it_lasts_and_is_told_twice() {
    let mut stalls = StallsSeen::since(Time(1_000));
    assert_eq!(stalls.note(Time(2_000), &[]), Noted::default());
    let begins = stall(1_600, 900, false);
    let noted = stalls.note(Time(3_000), &[begins]);
    assert_eq!(noted.stalled, Duration::from_micros(1_000));
    assert_eq!((noted.earlier, noted.changed), (vec![(Time(1_600), Time(2_000))], vec![begins]));
    let goes_on = stall(1_600, 2_000, false);
    let noted = stalls.note(Time(4_000), &[goes_on]);
    assert_eq!((noted.stalled, noted.changed.len()), (Duration::from_micros(1_000), 0));
    let ends = stall(1_600, 2_900, true);
    let noted = stalls.note(Time(5_000), &[ends]);
    assert_eq!((noted.stalled, noted.changed), (Duration::from_micros(500), vec![ends]));
    assert!(noted.earlier.is_empty());
    assert_eq!(stalls.note(Time(6_000), &[ends]), Noted::default());
    // This one begins and ends between two samples.
    let short = stall(5_200, 100, true);
    let noted = stalls.note(Time(7_000), &[ends, short]);
    assert_eq!((noted.stalled, noted.earlier.len(), noted.changed.len()), (Duration::ZERO, 1, 1));
}

#[test]
fn clients_inside_the_broker_count_until_they_are_gone() {
    let id = |slot| ConnectionId { cell: 0, slot, generation: 0 };
    let mut state = PassState::default();
    for (clients, expected) in [
        (&[(1, (5, 0))][..], (5, 0)),
        (&[(1, (7, 1)), (2, (3, 0))], (10, 1)),
        (&[(2, (3, 0))], (10, 1)),
        (&[], (10, 1)),
        (&[(3, (1, 1))], (11, 2)),
    ] {
        state.count_internal(clients.iter().map(|(slot, counts)| (id(*slot), *counts)).collect());
        assert_eq!(state.other, expected, "{clients:?}");
    }
}

#[test]
fn the_time_between_two_passes_is_that_between_two_lists() {
    let mut last = None;
    assert_eq!(between(&mut last, true), Duration::ZERO);
    assert!(last.is_some());
    between(&mut last, false);
    assert_eq!(between(&mut last, true), Duration::ZERO, "the list was not filled in between");
}

fn settled(value: f64) -> Sample {
    let mut sample = Sample::default();
    sample.set(Series::Settled, Some(value));
    sample
}

fn shown(history: &History, window: Window) -> (u64, Vec<Option<f64>>) {
    let Windows { until, samples, .. } = history.window(window);
    assert!(samples.values().all(|values| values.len() == samples["settled"].len()));
    (until, samples["settled"].clone())
}

#[test]
fn each_window_is_bounded_and_ends_now() {
    let mut history = History::default();
    assert_eq!(shown(&history, Window::TenMinutes), (0, vec![]));
    let seconds = (HISTORY_MINUTES_MAX + 2) * 60;
    for second in 0..seconds as u64 {
        history.add(START + second * 1_000, settled((second / 60) as f64));
    }
    let until = START + (seconds as u64 - 1) * 1_000;
    let (shown_until, values) = shown(&history, Window::TenMinutes);
    assert_eq!((shown_until, values.len()), (until, HISTORY_SECONDS_MAX));
    let (shown_until, values) = shown(&history, Window::Day);
    assert_eq!((shown_until, values.len()), (until, HISTORY_MINUTES_MAX));
    assert_eq!((values[0], values.last()), (Some(2.0), Some(&Some(HISTORY_MINUTES_MAX as f64 + 1.0))));
}

#[test]
fn seconds_without_a_sample_have_no_numbers() {
    let mut history = History::default();
    for (at, value) in [(0, 1.0), (1_004, 2.0), (2_490, 3.0), (6_000, 4.0)] {
        history.add(START + at, settled(value));
    }
    let (until, values) = shown(&history, Window::TenMinutes);
    assert_eq!(until, START + 6_000);
    assert_eq!(values, [Some(1.0), Some(2.0), Some(3.0), None, None, None, Some(4.0)]);
    // The clock was set back, and then far ahead.
    history.add(START, settled(5.0));
    history.add(START * 2, settled(6.0));
    assert_eq!(shown(&history, Window::TenMinutes).1.len(), HISTORY_SECONDS_MAX);
}

#[test]
fn a_stall_counts_in_the_seconds_in_which_it_was() {
    let mut history = History::default();
    (1..=5).for_each(|second| history.add(START + second * 1_000, Sample::default()));
    history.note_stall(START + 1_700, START + 3_500);
    let stalled = |history: &History| history.window(Window::TenMinutes).samples["stalled_ms"].clone();
    assert_eq!(stalled(&history), [None, Some(300.0), Some(1_000.0), Some(500.0), None]);
    history.note_stall(START + 3_100, START + 9_000);
    assert_eq!(stalled(&history)[3..], [Some(1_000.0), None], "the last second is the caller's");
}
