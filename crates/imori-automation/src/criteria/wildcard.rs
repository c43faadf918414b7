//! Wildcards of Python's `fnmatch`.

use super::expression::Expression;
use super::translation::Flags;

/// Compiles a wildcard: `*`, `?`, `[abc]`, `[a-c]` and `[!abc]`, which have to match the whole text.
///
/// # Errors
/// The wildcard is too large.
pub(super) fn compile(pattern: &str) -> Result<Expression, String> {
    let flags = Flags { is_dot_all: true, is_anchored: true, ..Flags::default() };
    Expression::compile(&translate(pattern), flags)
}

/// The regular expression of Python that matches the same from the beginning.
fn translate(pattern: &str) -> String {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut out = String::new();
    let mut at = 0;
    while let Some(character) = pattern.get(at) {
        at += 1;
        match character {
            '*' if out.ends_with(".*") => {}
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '[' => match set_end(&pattern, at) {
                Some(end) => {
                    out.push_str(&set(pattern.get(at..end).unwrap_or_default()));
                    at = end + 1;
                }
                None => out.push_str(r"\["),
            },
            other => push_escaped(&mut out, *other),
        }
    }
    out.push_str(r"\Z");
    out
}

fn push_escaped(out: &mut String, character: char) {
    if character.is_ascii() && !character.is_ascii_alphanumeric() {
        out.push('\\');
    }
    out.push(character);
}

/// Where the set ends that begins here; a `]` at its beginning is part of it.
fn set_end(pattern: &[char], from: usize) -> Option<usize> {
    let mut at = from;
    if pattern.get(at) == Some(&'!') {
        at += 1;
    }
    if pattern.get(at) == Some(&']') {
        at += 1;
    }
    (at..pattern.len()).find(|at| pattern.get(*at) == Some(&']'))
}

/// A set of Python's regular expressions. `fnmatch` drops ranges that are empty, instead of refusing them.
fn set(content: &[char]) -> String {
    let mut chunks = chunks(content);
    for at in (1..chunks.len()).rev() {
        let (before, after) = chunks.split_at_mut(at);
        let (Some(before), Some(after)) = (before.last_mut(), after.first()) else { continue };
        if let (Some(from), Some(to)) = (before.last(), after.first())
            && from > to
        {
            before.pop();
            before.extend(after.iter().skip(1));
            chunks.remove(at);
        }
    }
    let is_negated = chunks.first().is_some_and(|chunk| chunk.first() == Some(&'!'));
    let mut items = String::new();
    for (at, chunk) in chunks.iter().enumerate() {
        if at > 0 {
            items.push('-');
        }
        let mark = usize::from(at == 0 && is_negated);
        chunk.iter().skip(mark).for_each(|character| push_escaped(&mut items, *character));
    }
    match (is_negated, items.is_empty()) {
        (true, true) => ".".to_owned(),
        (false, true) => r"[^\s\S]".to_owned(),
        (true, false) => format!("[^{items}]"),
        (false, false) => format!("[{items}]"),
    }
}

/// The parts of a set between the hyphens that make ranges.
fn chunks(content: &[char]) -> Vec<Vec<char>> {
    let mut chunks = Vec::new();
    let mut begin = 0;
    let mut from = if content.first() == Some(&'!') { 2 } else { 1 };
    while let Some(hyphen) = (from..content.len()).find(|at| content.get(*at) == Some(&'-')) {
        chunks.push(content.get(begin..hyphen).unwrap_or_default().to_vec());
        begin = hyphen + 1;
        from = hyphen + 3;
    }
    match content.get(begin..) {
        Some(rest) if !rest.is_empty() => chunks.push(rest.to_vec()),
        _ => {
            if let Some(last) = chunks.last_mut() {
                last.push('-');
            }
        }
    }
    chunks
}
