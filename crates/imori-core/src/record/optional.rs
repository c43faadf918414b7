//! Fields of which most are absent: `version u8`, a number (`ranges.rs`) whose bits name the fields that are there, then
//! these fields in order.
//!
//! Writer and reader visit the fields in one order, which never changes; a later version adds fields at the end. A
//! reader refuses a field that it does not know, because it could not tell where the next one begins.

use std::time::Duration;

use super::fields::{Fields, RecordError, push_short};
use super::ranges::{number, push_number};

/// Writes fields.
pub(super) struct OptionalWriter {
    version: u8,
    next: u32,
    flags: u64,
    fields: Vec<u8>,
}

impl OptionalWriter {
    pub(super) fn new(version: u8) -> OptionalWriter {
        OptionalWriter { version, next: 0, flags: 0, fields: Vec::new() }
    }

    /// A field without a value.
    pub(super) fn flag(&mut self, is_set: bool) {
        self.flags |= u64::from(is_set) << self.next;
        self.next += 1;
    }

    pub(super) fn number(&mut self, value: Option<u64>) {
        self.flag(value.is_some());
        value.into_iter().for_each(|value| push_number(&mut self.fields, value));
    }

    /// A duration, in nanoseconds.
    pub(super) fn duration(&mut self, value: Option<Duration>) {
        self.number(value.map(|value| u64::try_from(value.as_nanos()).unwrap_or(u64::MAX)));
    }

    /// Bytes with their length in 32 bits.
    pub(super) fn bytes(&mut self, value: Option<&[u8]>) {
        self.flag(value.is_some());
        value.into_iter().for_each(|value| push_long(&mut self.fields, value));
    }

    /// Names with their number, if there are any.
    pub(super) fn names<'a>(&mut self, names: impl Iterator<Item = &'a [u8]> + Clone) {
        let count = names.clone().count() as u64;
        self.number(Some(count).filter(|count| *count > 0));
        names.for_each(|name| push_short(&mut self.fields, name));
    }

    /// Appends the fields to a record.
    pub(super) fn finish(self, out: &mut Vec<u8>) {
        out.push(self.version);
        push_number(out, self.flags);
        out.extend_from_slice(&self.fields);
    }
}

/// Reads the fields in the order in which they were written.
pub(super) struct OptionalReader<'f, 'a> {
    record: &'static str,
    version: u8,
    flags: u64,
    next: u32,
    fields: &'f mut Fields<'a>,
}

impl<'f, 'a> OptionalReader<'f, 'a> {
    /// Reads the version, which has to be `known`, and which fields are there. `record` names them in errors.
    pub(super) fn new(
        record: &'static str,
        fields: &'f mut Fields<'a>,
        known: u8,
    ) -> Result<OptionalReader<'f, 'a>, RecordError> {
        let version = fields.u8()?;
        if version != known {
            return Err(RecordError::Version(version));
        }
        let flags = number(fields)?;
        Ok(OptionalReader { record, version, flags, next: 0, fields })
    }

    pub(super) fn flag(&mut self) -> bool {
        let is_set = self.flags >> self.next & 1 == 1;
        self.next += 1;
        is_set
    }

    pub(super) fn number(&mut self) -> Result<Option<u64>, RecordError> {
        if self.flag() { number(self.fields).map(Some) } else { Ok(None) }
    }

    pub(super) fn duration(&mut self) -> Result<Option<Duration>, RecordError> {
        Ok(self.number()?.map(Duration::from_nanos))
    }

    pub(super) fn bytes(&mut self) -> Result<Option<&'a [u8]>, RecordError> {
        if self.flag() { self.fields.long().map(Some) } else { Ok(None) }
    }

    pub(super) fn names(&mut self) -> Result<Vec<&'a [u8]>, RecordError> {
        let mut names = Vec::new();
        for _ in 0..self.number()?.unwrap_or(0) {
            names.push(self.fields.short()?);
        }
        Ok(names)
    }

    /// Checks that no other field follows.
    pub(super) fn finish(self) -> Result<(), RecordError> {
        match self.flags >> self.next {
            0 => Ok(()),
            _ => Err(RecordError::Flags {
                record: self.record,
                version: self.version,
                flags: self.flags >> self.next << self.next,
            }),
        }
    }
}

/// Writes the length in 32 bits, then the bytes.
pub(super) fn push_long(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u32::try_from(bytes.len()).expect("a field ends at 4 GiB");
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> Vec<u8> {
        let mut fields = OptionalWriter::new(3);
        fields.flag(false);
        fields.flag(true);
        fields.number(Some(300));
        fields.number(None);
        fields.duration(Some(Duration::from_nanos(7)));
        fields.bytes(Some(b"note"));
        fields.names([&b"a"[..], b""].into_iter());
        let mut out = vec![1];
        fields.finish(&mut out);
        out
    }

    fn read(bytes: &[u8], known: u8) -> Result<(), RecordError> {
        let mut fields = Fields::of(bytes, 1)?;
        let mut read = OptionalReader::new("sample", &mut fields, known)?;
        assert_eq!((read.flag(), read.flag()), (false, true));
        let numbers = (read.number()?, read.number()?, read.duration()?);
        assert_eq!(numbers, (Some(300), None, Some(Duration::from_nanos(7))));
        assert_eq!((read.bytes()?, read.names()?), (Some(&b"note"[..]), vec![&b"a"[..], b""]));
        read.finish()
    }

    #[test]
    fn fields_are_read_as_written() {
        let bytes = written();
        assert_eq!(read(&bytes, 3), Ok(()));
        assert_eq!(read(&bytes, 4), Err(RecordError::Version(3)));
        assert!((1..bytes.len()).all(|len| read(&bytes[..len], 3) == Err(RecordError::Truncated)));
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let mut bytes = written();
        // The second byte of the flags begins with bit 7.
        bytes[2] |= 0x80;
        bytes.insert(3, 1);
        let expected = RecordError::Flags { record: "sample", version: 3, flags: 1 << 7 };
        assert_eq!(read(&bytes, 3), Err(expected));
    }
}
