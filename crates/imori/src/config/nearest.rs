//! Suggests the known name for a misspelt one.

use imori_server::config::Config;
use strsim::levenshtein;

/// The section with the nearest name.
pub fn nearest_section(name: &str) -> Option<&'static str> {
    let sections = Config::default().sections();
    nearest(sections.iter().map(|section| (distance(name, section.name), section.name)), name)
}

/// The section and key with the nearest names, penalising a wrong section less than a wrong key.
pub fn nearest_key(section: &str, key: &str) -> Option<(&'static str, &'static str)> {
    let sections = Config::default().sections();
    let candidates = sections.iter().flat_map(|known| {
        known.keys.iter().map(move |candidate| {
            let distance = distance(section, known.name).min(ELSEWHERE) + distance(key, candidate.name);
            (distance, (known.name, candidate.name))
        })
    });
    nearest(candidates, key)
}

/// The largest penalty for a key in another section.
const ELSEWHERE: usize = 2;

/// The nearest candidate, unless it is too far for a typing error.
fn nearest<T>(candidates: impl Iterator<Item = (usize, T)>, name: &str) -> Option<T> {
    let (distance, candidate) = candidates.min_by_key(|(distance, _)| *distance)?;
    let distance_max = name.chars().count().div_ceil(3);
    (distance <= distance_max).then_some(candidate)
}

/// The edit distance in characters. A missing end of `known` costs only one, because people leave
/// units off.
pub fn distance(typed: &str, known: &str) -> usize {
    let beginnings = known.char_indices().filter_map(|(end, _)| known.get(..end));
    let beginning = beginnings.map(|beginning| levenshtein(typed, beginning)).min();
    let whole = levenshtein(typed, known);
    beginning.map_or(whole, |distance| whole.min(distance + 1))
}
