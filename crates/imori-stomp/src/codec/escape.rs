//! Escapes of header names and values, which differ between versions.
//!
//! Some bytes cannot be expressed: NUL in no version, a carriage return only in 1.2, a line feed
//! not in 1.0. The encoder omits a header that contains one.

use std::borrow::Cow;

use memchr::memchr;

use crate::codec::command::Command;
use crate::codec::version::Version;

/// The escaping of names and values in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escaping {
    /// No escapes: STOMP 1.0, and CONNECT and CONNECTED in every version.
    None,
    /// `\n`, `\c` and `\\`: STOMP 1.1.
    V11,
    /// As `V11`, and `\r`: STOMP 1.2.
    V12,
}

impl Escaping {
    /// Returns the escaping of `command` in `version`.
    pub fn of(command: Command, version: Version) -> Self {
        // STOMP 1.2, Value Encoding: all frames except CONNECT and CONNECTED. STOMP is CONNECT by
        // another name, and is sent before a version is negotiated.
        match (command, version) {
            (Command::Connect | Command::Stomp | Command::Connected, _) | (_, Version::V10) => Self::None,
            (_, Version::V11) => Self::V11,
            (_, Version::V12) => Self::V12,
        }
    }

    /// Returns the bytes of the first undefined escape, if any.
    pub fn undefined(self, text: &[u8]) -> Option<&[u8]> {
        if self == Self::None {
            return None;
        }
        let mut rest = text;
        while let Some((_, escape)) = memchr(b'\\', rest).and_then(|at| rest.split_at_checked(at)) {
            let is_defined = match escape.get(1) {
                Some(b'n' | b'c' | b'\\') => true,
                Some(b'r') => self == Self::V12,
                _ => false,
            };
            if !is_defined {
                return Some(escape.get(..2).unwrap_or(escape));
            }
            rest = escape.get(2..).unwrap_or_default();
        }
        None
    }

    /// Appends a value; returns false and appends nothing if the value cannot be expressed.
    pub fn push_value(self, out: &mut Vec<u8>, value: &[u8]) -> bool {
        if is_plain(value) {
            out.extend_from_slice(value);
            return true;
        }
        self.push_unusual(out, value, false)
    }

    /// Appends a name; returns false and appends nothing if the name is empty or cannot be
    /// expressed.
    pub fn push_name(self, out: &mut Vec<u8>, name: &[u8]) -> bool {
        if name.is_empty() {
            return false;
        }
        if is_plain(name) {
            out.extend_from_slice(name);
            return true;
        }
        self.push_unusual(out, name, true)
    }

    #[cold]
    fn push_unusual(self, out: &mut Vec<u8>, text: &[u8], is_name: bool) -> bool {
        let len = out.len();
        for byte in text {
            match (byte, self) {
                (b'\\' | b':', Self::None) if *byte == b'\\' || !is_name => out.push(*byte),
                (b'\\', Self::V11 | Self::V12) => out.extend_from_slice(b"\\\\"),
                (b':', Self::V11 | Self::V12) => out.extend_from_slice(b"\\c"),
                (b'\n', Self::V11 | Self::V12) => out.extend_from_slice(b"\\n"),
                (b'\r', Self::V12) => out.extend_from_slice(b"\\r"),
                (b'\0' | b'\n' | b'\r' | b':', _) => {
                    out.truncate(len);
                    return false;
                }
                _ => out.push(*byte),
            }
        }
        true
    }
}

/// Replaces the escapes of a name or value by the characters they stand for.
///
/// Undefined escapes, which the decoder refuses, are kept unchanged.
pub fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'\\', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        match bytes.next() {
            Some(b'n') => out.push(b'\n'),
            Some(b'r') => out.push(b'\r'),
            Some(b'c') => out.push(b':'),
            Some(b'\\') | None => out.push(b'\\'),
            Some(other) => out.extend_from_slice(&[b'\\', *other]),
        }
    }
    Cow::Owned(out)
}

/// Removes spaces before a value. In STOMP 1.0 they are not part of it, since clients write
/// `name: value`, as its specification does.
pub(crate) fn trim_spaces(mut value: &[u8]) -> &[u8] {
    while let [b' ', after @ ..] = value {
        value = after;
    }
    value
}

/// Whether the text is written the same way in every version.
fn is_plain(text: &[u8]) -> bool {
    // The fold has no early exit so that the compiler can vectorize the loop.
    let special = text.iter().fold(false, |special, byte| {
        special | (*byte == b':') | (*byte == b'\\') | (*byte == b'\n') | (*byte == b'\r') | (*byte == b'\0')
    });
    !special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_writes_what_it_can() {
        // The value, then its form without escapes, in 1.1 and in 1.2.
        for (value, none, v11, v12) in [
            ("", Some(""), Some(""), Some("")),
            ("plain", Some("plain"), Some("plain"), Some("plain")),
            ("a:b", Some("a:b"), Some("a\\cb"), Some("a\\cb")),
            ("a\\b", Some("a\\b"), Some("a\\\\b"), Some("a\\\\b")),
            ("a\nb", None, Some("a\\nb"), Some("a\\nb")),
            ("a\rb", None, None, Some("a\\rb")),
            ("a\0b", None, None, None),
        ] {
            for (escaping, expected) in [(Escaping::None, none), (Escaping::V11, v11), (Escaping::V12, v12)] {
                let mut out = b"x".to_vec();
                let is_written = escaping.push_value(&mut out, value.as_bytes());
                assert_eq!(is_written, expected.is_some(), "{value:?} {escaping:?}");
                assert_eq!(
                    out,
                    [b"x", expected.unwrap_or_default().as_bytes()].concat(),
                    "{value:?} {escaping:?}"
                );
                if is_written && escaping != Escaping::None {
                    assert_eq!(*unescape(&out), [b"x", value.as_bytes()].concat(), "{value:?} {escaping:?}");
                }
            }
        }
    }

    #[test]
    fn name_without_a_form_is_not_written() {
        for (escaping, name, expected) in [
            (Escaping::None, "a:b", None),
            (Escaping::None, "a\\b", Some("a\\b")),
            (Escaping::V12, "a:b", Some("a\\cb")),
            (Escaping::V12, "", None),
            (Escaping::V12, "\0", None),
        ] {
            let mut out = Vec::new();
            assert_eq!(escaping.push_name(&mut out, name.as_bytes()), expected.is_some(), "{name:?}");
            assert_eq!(out, expected.unwrap_or_default().as_bytes(), "{name:?}");
        }
    }

    #[test]
    fn undefined_escape_is_found() {
        for (escaping, text, expected) in [
            (Escaping::None, "\\t", None),
            (Escaping::V11, "\\n\\c\\\\", None),
            (Escaping::V11, "a\\r", Some("\\r")),
            (Escaping::V12, "\\r\\n\\c\\\\", None),
            (Escaping::V12, "\\\\t", None),
            (Escaping::V12, "\\\\\\t", Some("\\t")),
            (Escaping::V12, "a\\tb", Some("\\t")),
            (Escaping::V12, "a\\N", Some("\\N")),
            (Escaping::V12, "a\\", Some("\\")),
        ] {
            assert_eq!(
                escaping.undefined(text.as_bytes()),
                expected.map(str::as_bytes),
                "{text} {escaping:?}"
            );
        }
    }
}
