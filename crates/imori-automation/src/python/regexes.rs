//! Regular expressions of Python.

use fancy_regex::{Regex, RegexBuilder};

use crate::limits::{TEMPLATE_REGEX_BACKTRACKS_MAX, TEMPLATE_REGEX_BYTES_MAX};

/// Compiles a regular expression of Python.
///
/// # Errors
/// It is wrong, or compiles to more than its limit.
pub(crate) fn python_regex(pattern: &str, ignorecase: bool) -> Result<Regex, String> {
    RegexBuilder::new(&translated(pattern))
        .case_insensitive(ignorecase)
        .backtrack_limit(TEMPLATE_REGEX_BACKTRACKS_MAX)
        .delegate_size_limit(TEMPLATE_REGEX_BYTES_MAX)
        .delegate_dfa_size_limit(TEMPLATE_REGEX_BYTES_MAX)
        .build()
        .map_err(|error| format!("the regular expression `{pattern}` is wrong: {error}"))
}

/// The pattern in the syntax of the `regex` crate, where it means something else in Python.
fn translated(pattern: &str) -> String {
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    let mut class = None;
    // Where a flag makes `$` end lines, both mean the same.
    let by_line = pattern.split("(?").skip(1).any(|flags| {
        let flags = flags.split([')', ':']).next().unwrap_or_default();
        flags.contains('m') && flags.bytes().all(|flag| flag.is_ascii_lowercase())
    });
    while let Some(c) = chars.next() {
        match (c, class) {
            ('\\', _) => match chars.next() {
                Some('Z') if class.is_none() => out.push_str("\\z"),
                Some(escaped) => out.extend(['\\', escaped]),
                None => out.push('\\'),
            },
            ('[', None) => {
                out.push('[');
                class = Some(out.len());
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                    class = Some(out.len());
                }
                if chars.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            (']', Some(_)) => {
                class = None;
                out.push(']');
            }
            // Rust reads these as the start of a set within a set, or of an operator on sets.
            ('[' | '&' | '~', Some(_)) => out.extend(['\\', c]),
            // In Python `$` also stands before a last end of line.
            ('$', None) if !by_line => out.push_str("(?=\\n?\\z)"),
            (c, _) => out.push(c),
        }
    }
    out
}
