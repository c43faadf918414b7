//! Any text is read as YAML, or refused at a place within it: never a panic, and never without end.
//!
//! Held: the line and the column of an error, and those of each key, lie within the text; what is read is a value that
//! JSON has.

use imori_automation::value::Value;
use imori_automation::yaml::{load, load_with_lines};

use crate::planted::fail_if_planted;

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let lines = lines(text);
    match load_with_lines(text) {
        Ok((value, places)) => {
            // No NaN is equal to another.
            let json = value.to_json();
            assert_eq!(load(text).map(|again| again.to_json()), Ok(json.clone()));
            for (key, _) in value.as_map().into_iter().flat_map(|map| map.iter()) {
                let place = places.nearest(&[key]);
                // A key that is left out at the end of the text stands behind its last line.
                assert!(place.line <= lines + 1, "`{key}` is in line {} of {lines}", place.line);
            }
            planted(&value);
            // What is no number of JSON is `null` there.
            assert!(Value::from_json(json.as_bytes()).is_ok(), "{json}");
        }
        Err(error) => {
            assert!(error.line <= lines, "line {} of {lines}: {error}", error.line);
            assert!(!error.message.is_empty());
        }
    }
}

/// The number of lines, as the parser counts them: each `\r`, `\r\n` and `\n` begins one.
fn lines(text: &str) -> usize {
    let joined = text.replace("\r\n", "\n");
    joined.matches(['\n', '\r']).count() + 1
}

/// Does nothing unless a fault is planted: then a list within a list is one too many.
fn planted(value: &Value) {
    let is_found = value.as_list().is_some_and(|list| list.iter().any(|item| item.as_list().is_some()));
    fail_if_planted(is_found);
}
