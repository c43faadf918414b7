//! A journal file: its names, and the last content of its header.

use std::sync::Arc;

/// The suffix of a file that is not complete yet.
pub(crate) const NEW: &str = ".new";

/// A journal file: its number, generation and length.
#[derive(Debug)]
pub struct JournalFile<F> {
    pub(crate) file: Arc<F>,
    pub(crate) number: u32,
    /// The generation in its header.
    pub(crate) generation: u32,
    /// The length in bytes.
    pub(crate) bytes: usize,
}

/// The name of the file with this number.
pub(crate) fn name(number: u32) -> String {
    format!("journal-{number:010}")
}

/// Parses a journal file's name: its number, and whether it has no suffix.
pub(crate) fn parse_name(name: &str) -> Option<(u32, bool)> {
    let rest = name.strip_prefix("journal-")?;
    let (digits, suffix) = rest.split_at_checked(10)?;
    Some((digits.parse().ok()?, suffix.is_empty()))
}

/// Whether a file of this name was never completed.
pub(crate) fn is_unfinished(file_name: &str) -> bool {
    parse_name(file_name).is_some() && file_name.ends_with(NEW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        for (text, expected) in [
            ("journal-0000000012", Some((12, true))),
            ("journal-0000000012.new", Some((12, false))),
            ("journal-12", None),
            ("journal-00000000é2", None),
            ("other", None),
        ] {
            assert_eq!(parse_name(text), expected, "{text}");
        }
    }
}
