//! Sets of characters of a regular expression, in the syntax of the `regex` crate.

use std::fmt::Write as _;

/// A set in the making.
#[derive(Debug, Default)]
pub(super) struct Class {
    items: String,
}

impl Class {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn push_literal(&mut self, character: char) {
        push_literal(&mut self.items, character);
    }

    pub(super) fn push_range(&mut self, from: char, to: char) {
        push_literal(&mut self.items, from);
        self.items.push('-');
        push_literal(&mut self.items, to);
    }

    /// Adds a category as of [`category`].
    pub(super) fn push_category(&mut self, set: &str) {
        self.items.push_str(set);
    }

    pub(super) fn finish(self, is_negated: bool) -> String {
        format!("[{}{}]", if is_negated { "^" } else { "" }, self.items)
    }
}

/// The set of `\d`, `\w`, `\s` or one of their opposites.
pub(super) fn category(letter: char, is_ascii: bool) -> Option<&'static str> {
    Some(match (letter, is_ascii) {
        ('d', false) => r"\d",
        ('D', false) => r"\D",
        ('w', false) => r"\w",
        ('W', false) => r"\W",
        // Python counts the separators of ASCII as blanks too.
        ('s', false) => r"[\s\x1c-\x1f]",
        ('S', false) => r"[^\s\x1c-\x1f]",
        ('d', true) => "[0-9]",
        ('D', true) => "[^0-9]",
        ('w', true) => "[0-9A-Za-z_]",
        ('W', true) => "[^0-9A-Za-z_]",
        ('s', true) => r"[\t-\r ]",
        ('S', true) => r"[^\t-\r ]",
        _ => return None,
    })
}

/// Appends a character that stands for itself.
pub(super) fn push_literal(out: &mut String, character: char) {
    if character.is_ascii_alphanumeric() || !character.is_ascii() {
        out.push(character);
    } else {
        let _ = write!(out, r"\x{{{:x}}}", u32::from(character));
    }
}
