//! Finds the known name that a misspelt one most likely meant.

use imori_server::config::Config;
use strsim::levenshtein;

/// The section whose name is nearest.
pub(super) fn nearest_section(name: &str) -> Option<&'static str> {
    let sections = Config::default().sections();
    nearest(sections.iter().map(|section| (distance(name, section.name), section.name)), name)
}

/// The section and key whose names are nearest: of the same section, or the same key of another.
pub(super) fn nearest_key(section: &str, key: &str) -> Option<(&'static str, &'static str)> {
    let sections = Config::default().sections();
    let candidates = sections.iter().flat_map(|known| {
        known.keys.iter().map(move |candidate| {
            let distance = distance(section, known.name).min(ELSEWHERE) + distance(key, candidate.name);
            (distance, (known.name, candidate.name))
        })
    });
    nearest(candidates, key)
}

/// The distance added to a key that stands in a section of quite another name.
const ELSEWHERE: usize = 2;

/// The first candidate of the smallest distance, unless that is too far to be a slip.
fn nearest<T>(candidates: impl Iterator<Item = (usize, T)>, name: &str) -> Option<T> {
    let (distance, candidate) = candidates.min_by_key(|(distance, _)| *distance)?;
    let distance_max = name.chars().count().div_ceil(3);
    (distance <= distance_max).then_some(candidate)
}

/// The edit distance in characters, where the end of `known` may be missing for the price of one:
/// people leave the unit off.
fn distance(typed: &str, known: &str) -> usize {
    let beginnings = known.char_indices().filter_map(|(end, _)| known.get(..end));
    let beginning = beginnings.map(|beginning| levenshtein(typed, beginning)).min();
    let whole = levenshtein(typed, known);
    beginning.map_or(whole, |distance| whole.min(distance + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood() {
        for (section, key, nearest) in [
            ("stomp", "hartbeat", Some(("stomp", "heart_beat_send_ms"))),
            ("stomp", "heart_beat_recieve_ms", Some(("stomp", "heart_beat_receive_ms"))),
            ("limits", "conections", Some(("limits", "connections"))),
            ("limits", "login_timeout", Some(("limits", "login_timeout_s"))),
            ("limit", "message_bytes", Some(("limits", "message_bytes"))),
            ("broker", "message_bytes", Some(("limits", "message_bytes"))),
            ("log", "levle", Some(("log", "level"))),
            ("broker", "colour", None),
            ("", "", None),
        ] {
            assert_eq!(nearest_key(section, key), nearest, "{section}.{key}");
        }
        for (section, nearest) in [("listener", Some("listeners")), ("stmop", Some("stomp")), ("mqtt", None)]
        {
            assert_eq!(nearest_section(section), nearest, "{section}");
        }
    }

    #[test]
    fn distances() {
        for (typed, known, expected) in [
            ("level", "level", 0),
            ("levle", "level", 2),
            ("leve", "level", 1),
            ("levell", "level", 1),
            ("login_timeout", "login_timeout_s", 1),
            ("", "level", 1),
        ] {
            assert_eq!(distance(typed, known), expected, "{typed} against {known}");
        }
    }
}
