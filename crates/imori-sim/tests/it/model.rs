//! What the clients' model finds broken, and may find.

use std::time::Duration;

use imori_core::time::Time;
use imori_sim::for_tests::{Span, histories, is_match};

#[test]
fn deliveries_break_what_they_should_not() {
    for (row, (expected, found)) in histories().into_iter().enumerate() {
        assert_eq!(found, expected, "row {row}");
    }
}

#[test]
fn what_may_and_what_must_be_within_a_window() {
    let span = |earliest, latest| Span { earliest: Time(earliest), latest: Time(latest) };
    let window = Duration::from_micros(10);
    for (first, second, may_hide, is_within) in [
        (span(100, 100), span(109, 109), true, true),
        (span(100, 100), span(110, 110), false, false),
        (span(100, 101), span(110, 110), true, false),
        (span(100, 100), span(109, 110), true, false),
        (span(100, 100), span(99, 99), false, true),
        (span(100, 100), span(99, 100), true, true),
        (span(100, u64::MAX), span(500, 500), true, false),
    ] {
        assert_eq!(first.may_hide(&second, window), may_hide, "{first:?} {second:?}");
        assert_eq!(first.is_within(&second, window), is_within, "{first:?} {second:?}");
    }
}

#[test]
fn wildcards_stand_for_words() {
    for (pattern, subject, expected) in [
        ("a.b", "a.b", true),
        ("a.*", "a.b", true),
        ("a.*", "a.b.c", false),
        ("a.#", "a", true),
        ("#", "a.b.c", true),
        ("#.c", "a.b.c", true),
        ("*.b", "a.b", true),
        ("b.#", "a.b", false),
    ] {
        assert_eq!(is_match(pattern, subject), expected, "{pattern} against {subject}");
    }
}
