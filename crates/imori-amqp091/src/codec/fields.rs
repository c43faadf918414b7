//! Fields of a payload, read one after the other.

use std::array;
use std::fmt;
use std::str;

use crate::limits::NESTING_MAX;

/// Why fields cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldError {
    /// A field has more bytes than are left of its payload, table or array.
    TooShort,
    /// Bytes are left behind the last field.
    TooLong,
    /// A short string is not UTF-8.
    NotUtf8,
    /// A value in a table is of a type that there is not.
    UnknownType {
        /// The type.
        octet: u8,
    },
    /// Tables and arrays are in each other more often than allowed.
    TooDeep,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldError::TooShort => f.write_str("a field has more bytes than are left"),
            FieldError::TooLong => f.write_str("bytes are left behind the last field"),
            FieldError::NotUtf8 => f.write_str("a short string is not UTF-8"),
            FieldError::UnknownType { octet } => {
                write!(f, "a table has a value of type `{}`, which there is not", octet.escape_ascii())
            }
            FieldError::TooDeep => {
                write!(f, "tables are nested more than `{NESTING_MAX}` deep; send flatter ones")
            }
        }
    }
}

impl std::error::Error for FieldError {}

/// The rest of a payload.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of a payload, none of them read.
    pub fn new(payload: &'a [u8]) -> Fields<'a> {
        Fields { rest: payload }
    }

    /// The bytes that are not read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Tells whether all is read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Checks that all is read.
    ///
    /// # Errors
    /// [`FieldError::TooLong`].
    #[inline]
    pub fn end(&self) -> Result<(), FieldError> {
        if self.rest.is_empty() { Ok(()) } else { Err(FieldError::TooLong) }
    }

    /// Reads `len` bytes.
    ///
    /// # Errors
    /// [`FieldError::TooShort`], as of every other field.
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], FieldError> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(FieldError::TooShort)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads an array of bytes, such as those of a number.
    ///
    /// # Errors
    /// [`FieldError::TooShort`].
    #[inline]
    pub fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], FieldError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(FieldError::TooShort)?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// Reads bits that share an octet, of which the first is the lowest. The others are ignored.
    ///
    /// # Errors
    /// [`FieldError::TooShort`].
    #[inline]
    pub fn bits<const LEN: usize>(&mut self) -> Result<[bool; LEN], FieldError> {
        const { assert!(LEN <= 8, "they share one octet") };
        let octet = self.octet()?;
        Ok(array::from_fn(|place| octet & 1 << place != 0))
    }

    /// Reads a number of 8 bits.
    ///
    /// # Errors
    /// [`FieldError::TooShort`].
    #[inline]
    pub fn octet(&mut self) -> Result<u8, FieldError> {
        self.array().map(u8::from_be_bytes)
    }

    /// Reads a number of 16 bits.
    ///
    /// # Errors
    /// [`FieldError::TooShort`].
    #[inline]
    pub fn short(&mut self) -> Result<u16, FieldError> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads a number of 32 bits.
    ///
    /// # Errors
    /// [`FieldError::TooShort`].
    #[inline]
    pub fn long(&mut self) -> Result<u32, FieldError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads a number of 64 bits.
    ///
    /// # Errors
    /// [`FieldError::TooShort`].
    #[inline]
    pub fn longlong(&mut self) -> Result<u64, FieldError> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads a string of at most 255 bytes, of any encoding.
    ///
    /// # Errors
    /// [`FieldError::TooShort`].
    #[inline]
    pub fn short_bytes(&mut self) -> Result<&'a [u8], FieldError> {
        let len = self.octet()?;
        self.bytes(usize::from(len))
    }

    /// Reads a string of at most 255 bytes.
    ///
    /// # Errors
    /// [`FieldError::TooShort`] or [`FieldError::NotUtf8`].
    #[inline]
    pub fn short_str(&mut self) -> Result<&'a str, FieldError> {
        str::from_utf8(self.short_bytes()?).map_err(|_| FieldError::NotUtf8)
    }

    /// Reads a string of any bytes.
    ///
    /// # Errors
    /// [`FieldError::TooShort`].
    #[inline]
    pub fn long_str(&mut self) -> Result<&'a [u8], FieldError> {
        let len = self.long()?;
        self.bytes(usize::try_from(len).map_err(|_| FieldError::TooShort)?)
    }
}
