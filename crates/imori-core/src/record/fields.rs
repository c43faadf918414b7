//! The fields of a payload: fixed-width numbers, and bytes behind their length.

use std::fmt;

/// The reason why a payload cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordError {
    /// The payload ends too early.
    Truncated,
    /// The payload has an unknown version.
    Version(u8),
    /// The payload has an invalid value.
    Unknown(&'static str),
    /// The payload has unknown flags, so unknown fields may follow that cannot be skipped.
    Flags {
        /// The kind of record.
        record: &'static str,
        /// The version of that kind which the record names.
        version: u8,
        /// The unknown flags.
        flags: u64,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Truncated => f.write_str("the record ends too early"),
            RecordError::Version(version) => {
                write!(f, "the record has version `{version}`; open it with the release that wrote it")
            }
            RecordError::Unknown(what) => write!(f, "the record's {what} means nothing here"),
            RecordError::Flags { record, version, flags } => write!(
                f,
                "the {record} record of version `{version}` has the flags `{flags:#x}`, which this release does not \
                 know; open it with the release that wrote it"
            ),
        }
    }
}

impl std::error::Error for RecordError {}

/// Writes the length in 16 bits, then the bytes; there must be fewer than 64 KiB.
pub(super) fn push_short(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u16::try_from(bytes.len()).expect("names and subjects end at 1,024 bytes");
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// The part of a payload that was not read yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The fields behind the version, which has to be `known`.
    pub(super) fn of(payload: &'a [u8], known: u8) -> Result<Fields<'a>, RecordError> {
        let mut fields = Fields(payload);
        match fields.u8()? {
            version if version == known => Ok(fields),
            version => Err(RecordError::Version(version)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn u8(&mut self) -> Result<u8, RecordError> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, RecordError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, RecordError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, RecordError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Bytes with their number in 16 bits.
    pub(super) fn short(&mut self) -> Result<&'a [u8], RecordError> {
        let len = self.u16()?;
        self.take(usize::from(len))
    }

    /// Reads bytes behind a length of 32 bits.
    pub(super) fn long(&mut self) -> Result<&'a [u8], RecordError> {
        let len = self.u32()?;
        self.take(usize::try_from(len).map_err(|_| RecordError::Truncated)?)
    }

    /// Everything that was not read yet.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(RecordError::Truncated)?;
        self.0 = rest;
        Ok(*array)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], RecordError> {
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(RecordError::Truncated)?;
        self.0 = rest;
        Ok(bytes)
    }
}
