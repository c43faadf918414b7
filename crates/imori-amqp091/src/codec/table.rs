//! Field tables and arrays: checked once, then walked where they lie.

use std::fmt;

use crate::codec::fields::{FieldError, Fields};
use crate::limits::NESTING_MAX;

/// Named values in order; a name may come twice. All of it was checked.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub struct Table<'a>(&'a [u8]);

/// Values in order. All of it was checked.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub struct Array<'a>(&'a [u8]);

/// The value of a field, of every type that RabbitMQ reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FieldValue<'a> {
    /// `t`.
    Bool(bool),
    /// `b`.
    I8(i8),
    /// `B`.
    U8(u8),
    /// `s`.
    I16(i16),
    /// `u`.
    U16(u16),
    /// `I`.
    I32(i32),
    /// `i`.
    U32(u32),
    /// `l`; `L` is read in the same way, as in RabbitMQ.
    I64(i64),
    /// `f`.
    F32(f32),
    /// `d`.
    F64(f64),
    /// `D`: a number and how many of its decimal digits are behind the point.
    Decimal {
        /// Digits behind the point.
        scale: u8,
        /// The number without its point.
        number: u32,
    },
    /// `T`: seconds since the UNIX epoch.
    Timestamp(u64),
    /// `S`: text in an unknown encoding.
    Text(&'a [u8]),
    /// `x`.
    Bytes(&'a [u8]),
    /// `A`.
    Array(Array<'a>),
    /// `F`.
    Table(Table<'a>),
    /// `V`.
    Void,
}

impl<'a> FieldValue<'a> {
    /// Parses a value written by a person: whole numbers and `true` or `false` are recognized, everything else is text.
    pub fn written(text: &'a str) -> FieldValue<'a> {
        match (text, text.parse()) {
            (_, Ok(number)) => FieldValue::I64(number),
            ("true", _) => FieldValue::Bool(true),
            ("false", _) => FieldValue::Bool(false),
            _ => FieldValue::Text(text.as_bytes()),
        }
    }

    /// The octet that stands for its type.
    pub fn octet(&self) -> u8 {
        match self {
            FieldValue::Bool(_) => b't',
            FieldValue::I8(_) => b'b',
            FieldValue::U8(_) => b'B',
            FieldValue::I16(_) => b's',
            FieldValue::U16(_) => b'u',
            FieldValue::I32(_) => b'I',
            FieldValue::U32(_) => b'i',
            FieldValue::I64(_) => b'l',
            FieldValue::F32(_) => b'f',
            FieldValue::F64(_) => b'd',
            FieldValue::Decimal { .. } => b'D',
            FieldValue::Timestamp(_) => b'T',
            FieldValue::Text(_) => b'S',
            FieldValue::Bytes(_) => b'x',
            FieldValue::Array(_) => b'A',
            FieldValue::Table(_) => b'F',
            FieldValue::Void => b'V',
        }
    }
}

impl<'a> Table<'a> {
    /// A table without fields.
    pub const EMPTY: Table<'static> = Table(&[]);

    /// Checks the bytes of a table, without the length in front.
    ///
    /// # Errors
    /// [`FieldError`].
    pub fn new(bytes: &'a [u8]) -> Result<Table<'a>, FieldError> {
        check(bytes)?;
        Ok(Table(bytes))
    }

    /// Reads a table, its length first, and checks all of it.
    ///
    /// # Errors
    /// As [`Table::new`].
    #[inline]
    pub fn read(fields: &mut Fields<'a>) -> Result<Table<'a>, FieldError> {
        Table::new(fields.long_str()?)
    }

    /// Reads a table that was checked when it came, its length first. One that was not is read as far as it can be.
    ///
    /// # Errors
    /// [`FieldError`] where its length is over what follows.
    #[inline]
    pub fn read_checked(fields: &mut Fields<'a>) -> Result<Table<'a>, FieldError> {
        fields.long_str().map(Table)
    }

    /// Its bytes, without the length in front.
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Tells whether it has no field.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its fields in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], FieldValue<'a>)> + use<'a> {
        let mut fields = Fields::new(self.0);
        // All was checked: the first that cannot be read is behind the last.
        std::iter::from_fn(move || Some((fields.short_bytes().ok()?, value(&mut fields).ok()?)))
    }

    /// The value of the first field of this name.
    pub fn find(&self, name: &str) -> Option<FieldValue<'a>> {
        self.iter().find(|(known, _)| *known == name.as_bytes()).map(|(_, value)| value)
    }
}

impl<'a> Array<'a> {
    /// Its bytes, without the length in front.
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Its values in order.
    pub fn iter(&self) -> impl Iterator<Item = FieldValue<'a>> + use<'a> {
        let mut fields = Fields::new(self.0);
        std::iter::from_fn(move || value(&mut fields).ok())
    }
}

impl fmt::Debug for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.iter().map(|(name, value)| (name.escape_ascii().to_string(), value)))
            .finish()
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Checks a table and all that is in it. The depth is counted and the stack stays flat (SECURITY LIM-09).
fn check(bytes: &[u8]) -> Result<(), FieldError> {
    // The unread rest of each open table or array, the innermost last.
    let mut begun = [(Fields::new(bytes), true); NESTING_MAX];
    let mut depth = 1_usize;
    while let Some((fields, has_names)) = depth.checked_sub(1).and_then(|top| begun.get_mut(top)) {
        if fields.is_empty() {
            depth -= 1;
            continue;
        }
        if *has_names {
            fields.short_bytes()?;
        }
        let inner = match value(fields)? {
            FieldValue::Table(table) => (Fields::new(table.0), true),
            FieldValue::Array(array) => (Fields::new(array.0), false),
            _ => continue,
        };
        *begun.get_mut(depth).ok_or(FieldError::TooDeep)? = inner;
        depth += 1;
    }
    Ok(())
}

/// Reads a value, but not the contents of a table or an array.
fn value<'a>(fields: &mut Fields<'a>) -> Result<FieldValue<'a>, FieldError> {
    Ok(match fields.octet()? {
        b'S' => FieldValue::Text(fields.long_str()?),
        b't' => FieldValue::Bool(fields.octet()? != 0),
        b'b' => FieldValue::I8(i8::from_be_bytes(fields.array()?)),
        b'B' => FieldValue::U8(fields.octet()?),
        b's' => FieldValue::I16(i16::from_be_bytes(fields.array()?)),
        b'u' => FieldValue::U16(fields.short()?),
        b'I' => FieldValue::I32(i32::from_be_bytes(fields.array()?)),
        b'i' => FieldValue::U32(fields.long()?),
        b'l' | b'L' => FieldValue::I64(i64::from_be_bytes(fields.array()?)),
        b'f' => FieldValue::F32(f32::from_be_bytes(fields.array()?)),
        b'd' => FieldValue::F64(f64::from_be_bytes(fields.array()?)),
        b'D' => FieldValue::Decimal { scale: fields.octet()?, number: fields.long()? },
        b'T' => FieldValue::Timestamp(fields.longlong()?),
        b'x' => FieldValue::Bytes(fields.long_str()?),
        b'A' => FieldValue::Array(Array(fields.long_str()?)),
        b'F' => FieldValue::Table(Table(fields.long_str()?)),
        b'V' => FieldValue::Void,
        octet => return Err(FieldError::UnknownType { octet }),
    })
}
