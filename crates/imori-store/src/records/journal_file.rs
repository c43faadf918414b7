//! One file of the journal: what it is called, and what its header said last.

use std::sync::Arc;

/// What a file is called that is not yet whole.
pub(crate) const NEW: &str = ".new";

/// A file of the journal, whatever stands in it.
#[derive(Debug)]
pub struct JournalFile<F> {
    pub(crate) file: Arc<F>,
    pub(crate) number: u32,
    /// What its header said last.
    pub(crate) generation: u32,
    /// How long it is.
    pub(crate) bytes: usize,
}

/// What the file of this number is called.
pub(crate) fn name(number: u32) -> String {
    format!("journal-{number:010}")
}

/// The number in the name of a journal file, its suffix left out, and whether it had none.
pub(crate) fn parse_name(name: &str) -> Option<(u32, bool)> {
    let rest = name.strip_prefix("journal-")?;
    let (digits, suffix) = rest.split_at_checked(10)?;
    Some((digits.parse().ok()?, suffix.is_empty()))
}

/// Tells whether this is what is left of a file that was never whole.
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
