//! Names that clients choose: exchanges, queues, groups, subjects.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// A name: arbitrary bytes, compared bytewise, cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<[u8]>);

impl Name {
    /// Creates a name from these bytes.
    pub fn new(bytes: &[u8]) -> Name {
        Name(Arc::from(bytes))
    }

    /// Joins parts with slashes, after a prefix. Slashes and percent signs within a part are
    /// escaped as `%2F` and `%25`, so that different parts never give the same name.
    pub fn joined<'p>(prefix: &[u8], parts: impl IntoIterator<Item = &'p [u8]>) -> Name {
        let mut name = prefix.to_vec();
        for (index, part) in parts.into_iter().enumerate() {
            if index > 0 {
                name.push(b'/');
            }
            for byte in part {
                match byte {
                    b'/' => name.extend_from_slice(b"%2F"),
                    b'%' => name.extend_from_slice(b"%25"),
                    _ => name.push(*byte),
                }
            }
        }
        Name(Arc::from(name))
    }

    /// The bytes of the name.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name::new(text.as_bytes())
    }
}

impl From<&[u8]> for Name {
    fn from(bytes: &[u8]) -> Name {
        Name::new(bytes)
    }
}

// `Hash` and `Eq` of `Name` are those of its bytes, as `Borrow` demands.
impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Printable(&self.0))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// Displays foreign bytes on one line, with control characters and invalid UTF-8 escaped.
#[derive(Debug, Clone, Copy)]
pub struct Printable<'a>(pub &'a [u8]);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                match character {
                    '\\' => f.write_str("\\\\")?,
                    _ if character.is_control() => write!(f, "{}", character.escape_default())?,
                    _ => write!(f, "{character}")?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_parts_never_make_the_same_name() {
        for (parts, expected) in [
            (&["a", "b"][..], "p-a/b"),
            (&["a/b"], "p-a%2Fb"),
            (&["a%2Fb", ""], "p-a%252Fb/"),
            (&["", "", "c"], "p-//c"),
            (&[], "p-"),
        ] {
            let name = Name::joined(b"p-", parts.iter().map(|part| part.as_bytes()));
            assert_eq!(name, Name::from(expected));
        }
    }

    #[test]
    fn names_from_outside_stay_on_one_line() {
        for (bytes, shown) in [
            (&b"orders"[..], "orders"),
            (b"a\r\nb", "a\\r\\nb"),
            (b"\x1b[31m", "\\u{1b}[31m"),
            ("井守".as_bytes(), "井守"),
            (b"\xff\x00", "\\xff\\u{0}"),
            (b"a\\b", "a\\\\b"),
        ] {
            assert_eq!(Name::new(bytes).to_string(), shown);
        }
    }
}
