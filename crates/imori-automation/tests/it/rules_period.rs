//! Spans of time in rules.

use imori_automation::rules::Extension;
use imori_automation::value::Map;

use crate::json;

/// The microseconds of a span.
fn micros(span: &str) -> Option<i64> {
    let span = json(span);
    let extension: Map = [("once_within", span)].into_iter().collect();
    Extension::read(&extension).ok()?.once_within
}

#[test]
fn spans_are_numbers_or_texts_with_a_unit() {
    let rows = [("5", 5_000_000), ("0.5", 500_000), ("\"500ms\"", 500_000), ("\"1.5m\"", 90_000_000)];
    for (text, expected) in rows {
        assert_eq!(micros(text), Some(expected), "{text}");
    }
    for text in ["0", "-1", "\"5\"", "\"m\"", "\"5 weeks\"", "true", "1e300", "\"1..5s\"", "\"9999d\""] {
        assert_eq!(micros(text), None, "{text}");
    }
}
