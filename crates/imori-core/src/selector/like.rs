//! Patterns of LIKE: `_` matches one character, `%` any number of characters.
//!
//! The `%` split a pattern into pieces. A piece of plain text is searched for in linear time; the
//! length of a piece with `_` is bounded, so that trying it at every position is linear too.

use memchr::memmem::Finder;

use crate::limits::SELECTOR_WILD_PIECE_MAX;

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Like {
    /// The piece at the start of the text; without `%` it must match the whole text.
    first: Piece,
    /// The pieces in between, found in order.
    middle: Box<[Middle]>,
    /// The piece at the end of the text; `None` if the pattern has no `%`.
    last: Option<Piece>,
}

/// Consecutive characters without a `%`.
#[derive(Debug, Default)]
struct Piece {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Text(Vec<u8>),
    /// Any single character.
    Any,
}

#[derive(Debug)]
enum Middle {
    Text(Box<Finder<'static>>),
    Wild(Piece),
}

impl Like {
    /// Compiles a pattern, in which `escape` makes the next `%`, `_` or escape character literal.
    ///
    /// # Errors
    /// The escape character precedes another character, or a piece with `_` is too long.
    pub(super) fn new(pattern: &str, escape: Option<char>) -> Result<Like, String> {
        let (mut pieces, mut piece) = (Vec::new(), Piece::default());
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            match character {
                _ if Some(character) == escape => match characters.next() {
                    Some(plain) if plain == '%' || plain == '_' || Some(plain) == escape => piece.push(plain),
                    _ => {
                        let after = "`%`, `_` or the escape character";
                        return Err(format!("the escape character stands before none of {after}"));
                    }
                },
                '%' => pieces.push(std::mem::take(&mut piece)),
                '_' => piece.parts.push(Part::Any),
                plain => piece.push(plain),
            }
        }
        if pieces.is_empty() {
            return Ok(Like { first: piece, middle: Box::default(), last: None });
        }
        let mut pieces = pieces.into_iter();
        let first = pieces.next().unwrap_or_default();
        let middle: Result<_, _> = pieces.filter(|piece| !piece.parts.is_empty()).map(Middle::new).collect();
        Ok(Like { first, middle: middle?, last: Some(piece) })
    }

    /// Whether a text matches the pattern.
    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        let Some(mut at) = self.first.match_at(text, 0) else { return false };
        let Some(last) = &self.last else { return at == text.len() };
        for piece in &self.middle {
            let found = match piece {
                Middle::Text(finder) => text
                    .get(at..)
                    .and_then(|rest| finder.find(rest).map(|start| at + start + finder.needle().len())),
                Middle::Wild(piece) => piece.find(text, at),
            };
            let Some(end) = found else { return false };
            at = end;
        }
        let Some(start) = last.start_before_end(text) else { return false };
        start >= at && last.match_at(text, start) == Some(text.len())
    }
}

impl Middle {
    fn new(piece: Piece) -> Result<Middle, String> {
        if let [Part::Text(text)] = piece.parts.as_slice() {
            return Ok(Middle::Text(Box::new(Finder::new(text).into_owned())));
        }
        // SECURITY LIM-12: matching takes at most this times the length of the text.
        if piece.chars() > SELECTOR_WILD_PIECE_MAX {
            return Err(format!(
                "the pattern has more than {SELECTOR_WILD_PIECE_MAX} characters with `_` between two `%`; use fewer"
            ));
        }
        Ok(Middle::Wild(piece))
    }
}

impl Piece {
    fn push(&mut self, character: char) {
        if !matches!(self.parts.last(), Some(Part::Text(_))) {
            self.parts.push(Part::Text(Vec::new()));
        }
        if let Some(Part::Text(text)) = self.parts.last_mut() {
            text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    fn chars(&self) -> usize {
        let of_part = |part: &Part| match part {
            Part::Text(text) => text.iter().filter(|byte| !is_inside(**byte)).count(),
            Part::Any => 1,
        };
        self.parts.iter().map(of_part).sum()
    }

    /// The end of the piece if it matches at byte `start`.
    fn match_at(&self, text: &[u8], start: usize) -> Option<usize> {
        let mut at = start;
        for part in &self.parts {
            match part {
                Part::Text(part) => {
                    text.get(at..)?.strip_prefix(part.as_slice())?;
                    at += part.len();
                }
                Part::Any => at = next_boundary(text, at)?,
            }
        }
        Some(at)
    }

    /// The end of the first match at or after byte `start`.
    fn find(&self, text: &[u8], start: usize) -> Option<usize> {
        let mut at = start;
        loop {
            if let Some(end) = self.match_at(text, at) {
                return Some(end);
            }
            at = next_boundary(text, at)?;
        }
    }

    /// The only byte at which the piece can start if it ends the text; `None` if the text is too
    /// short.
    fn start_before_end(&self, text: &[u8]) -> Option<usize> {
        let mut at = text.len();
        for part in self.parts.iter().rev() {
            match part {
                Part::Text(part) => at = at.checked_sub(part.len())?,
                Part::Any => at = text.get(..at)?.iter().rposition(|byte| !is_inside(*byte))?,
            }
        }
        Some(at)
    }
}

/// Whether a byte continues a UTF-8 character.
fn is_inside(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// The end of the character at `at`. In invalid UTF-8, a character is a byte with all continuation
/// bytes that follow it.
fn next_boundary(text: &[u8], at: usize) -> Option<usize> {
    let (_, rest) = text.get(at..)?.split_first()?;
    let inside = rest.iter().take_while(|byte| is_inside(**byte)).count();
    Some(at + 1 + inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_characters() {
        for (pattern, escape, text, expected) in [
            ("12%3", None, "123", true),
            ("12%3", None, "12993", true),
            ("12%3", None, "1234", false),
            ("l_se", None, "lose", true),
            ("l_se", None, "loose", false),
            (r"\_%", Some('\\'), "_foo", true),
            (r"\_%", Some('\\'), "bar", false),
            (r"a\\%", Some('\\'), r"a\b", true),
            (r"\_%", None, r"\xy", true),
            ("", None, "", true),
            ("", None, "a", false),
            ("%", None, "", true),
            ("%%", None, "abc", true),
            ("_", None, "", false),
            ("_", None, "ö", true),
            ("__", None, "ö", false),
            ("%_", None, "aö", true),
            ("%_ö", None, "ö", false),
            ("%_ö", None, "xö", true),
            ("a%a", None, "a", false),
            ("a%a", None, "aa", true),
            ("%ab%ab%", None, "abab", true),
            ("%ab%ab%", None, "aba", false),
            ("%a_c%", None, "xxabcx", true),
            ("%a_c%a_c", None, "abcaxc", true),
            ("%a_c%a_c", None, "abxc", false),
            ("a.c", None, "abc", false),
            ("%\n%", None, "a\nb", true),
        ] {
            let like = Like::new(pattern, escape).unwrap();
            assert_eq!(like.is_match(text.as_bytes()), expected, "{text:?} LIKE {pattern:?}");
        }
        assert!(Like::new("%_%", None).unwrap().is_match(b"\xff"));
        assert!(!Like::new("%__%", None).unwrap().is_match(b"\xff\x80"));
    }

    #[test]
    fn a_bad_pattern_is_refused() {
        for pattern in ["a\\", "\\a"] {
            assert!(Like::new(pattern, Some('\\')).is_err(), "{pattern}");
        }
        let wild = |count| format!("%{}%", "_".repeat(count));
        assert!(Like::new(&wild(SELECTOR_WILD_PIECE_MAX), None).is_ok());
        assert!(Like::new(&wild(SELECTOR_WILD_PIECE_MAX + 1), None).is_err());
        let anchored = "_".repeat(SELECTOR_WILD_PIECE_MAX + 1);
        assert!(Like::new(&anchored, None).is_ok(), "it is tried in one place");
    }
}
