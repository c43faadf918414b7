//! Validates UTF-8 that arrives in pieces, which may split a character.

use std::str::from_utf8;

/// A streaming validator.
#[derive(Debug, Default)]
pub(super) struct Utf8 {
    /// The first bytes of an incomplete character.
    begun: Vec<u8>,
}

impl Utf8 {
    /// Validates the next piece; false if the text is not UTF-8.
    pub(super) fn take(&mut self, mut piece: &[u8]) -> bool {
        while !self.begun.is_empty() {
            let Some((&byte, rest)) = piece.split_first() else {
                return true;
            };
            piece = rest;
            self.begun.push(byte);
            match from_utf8(&self.begun) {
                Ok(_) => self.begun.clear(),
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return false,
            }
        }
        match from_utf8(piece) {
            Ok(_) => true,
            Err(error) => {
                self.begun.extend_from_slice(piece.get(error.valid_up_to()..).unwrap_or_default());
                error.error_len().is_none()
            }
        }
    }

    /// Ends the text; false if that splits a character.
    pub(super) fn end(&mut self) -> bool {
        let is_whole = self.begun.is_empty();
        self.begun.clear();
        is_whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_judged_the_same_however_it_is_cut() {
        for (text, is_utf8) in [
            (&b""[..], true),
            (b"plain", true),
            ("größe 🦀 €".as_bytes(), true),
            (b"a\xff", false),
            (b"\xc3", false),
            (b"\xe2\x82", false),
            (b"\xf0\x9f\xa6", false),
            (b"\xc0\x80", false),
            (b"\xed\xa0\x80", false),
            (b"\xc3(", false),
            (b"\xf4\x90\x80\x80", false),
        ] {
            for pieces in 1..=text.len().max(1) {
                let mut utf8 = Utf8::default();
                let taken = text.chunks(pieces).all(|piece| utf8.take(piece));
                assert_eq!(taken && utf8.end(), is_utf8, "{text:?} in pieces of {pieces}");
            }
        }
    }
}
