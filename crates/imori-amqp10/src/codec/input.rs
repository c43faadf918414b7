//! A reader over a byte slice.

use crate::codec::error::ValueError;

/// The bytes that are still to be read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// Creates a reader of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input(bytes)
    }

    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8], ValueError> {
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(ValueError::TooShort)?;
        self.0 = rest;
        Ok(bytes)
    }

    #[inline]
    pub(crate) fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], ValueError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(ValueError::TooShort)?;
        self.0 = rest;
        Ok(*bytes)
    }

    #[inline]
    pub(crate) fn octet(&mut self) -> Result<u8, ValueError> {
        self.array().map(u8::from_be_bytes)
    }

    /// Reads an 8-bit length or count.
    #[inline]
    pub(crate) fn small(&mut self) -> Result<usize, ValueError> {
        self.octet().map(usize::from)
    }

    /// Reads a 32-bit length or count.
    #[inline]
    pub(crate) fn long(&mut self) -> Result<usize, ValueError> {
        usize::try_from(u32::from_be_bytes(self.array()?)).map_err(|_| ValueError::TooShort)
    }

    #[inline]
    pub(crate) fn boolean(&mut self) -> Result<bool, ValueError> {
        match self.octet()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(ValueError::NotBoolean),
        }
    }

    pub(crate) fn char(&mut self) -> Result<char, ValueError> {
        char::from_u32(u32::from_be_bytes(self.array()?)).ok_or(ValueError::NotChar)
    }

    /// Reads length and bytes of a value whose constructor `octet` gives the width of the length.
    #[inline]
    pub(crate) fn variable(&mut self, octet: u8) -> Result<&'a [u8], ValueError> {
        let len = if is_small(octet) { self.small()? } else { self.long()? };
        self.bytes(len)
    }

    /// Reads a string.
    #[inline]
    pub(crate) fn text(&mut self, octet: u8) -> Result<&'a str, ValueError> {
        std::str::from_utf8(self.variable(octet)?).map_err(|_| ValueError::NotUtf8)
    }

    /// Reads the text of a symbol.
    #[inline]
    pub(crate) fn ascii(&mut self, octet: u8) -> Result<&'a str, ValueError> {
        let bytes = self.variable(octet)?;
        std::str::from_utf8(bytes).ok().filter(|text| text.is_ascii()).ok_or(ValueError::NotAscii)
    }

    /// Reads the count of a list, map or array; returns it with the bytes of the values.
    #[inline]
    pub(crate) fn compound(&mut self, octet: u8) -> Result<(u32, &'a [u8]), ValueError> {
        let mut inner = Input(self.variable(octet)?);
        let count = if is_small(octet) { inner.octet()?.into() } else { u32::from_be_bytes(inner.array()?) };
        Ok((count, inner.0))
    }
}

/// Whether lengths have 8 bits rather than 32 with this constructor.
#[inline]
pub(crate) fn is_small(octet: u8) -> bool {
    // AMQP 1.0, 1.2: categories 0xa, 0xc and 0xe have narrow lengths; 0xb, 0xd and 0xf wide ones.
    octet & 0x10 == 0
}
