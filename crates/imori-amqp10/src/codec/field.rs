//! The types of fields in described lists, and how to read and write them.

use crate::codec::constructor::*;
use crate::codec::error::{DecodeError, ValueError};
use crate::codec::input::Input;
use crate::codec::push::{
    push_fixed, push_map_of, push_symbol, push_uint, push_ulong, push_value, push_variable,
};
use crate::codec::value::{Map, Symbol, Timestamp, Value};

/// A type that a field can have.
pub trait Field<'a>: Sized {
    /// Reads the field after its constructor, which must not be the one of null.
    ///
    /// # Errors
    /// [`DecodeError`].
    fn read(octet: u8, input: &mut Input<'a>) -> Result<Self, DecodeError>;

    /// Appends the field with its constructor.
    fn push(&self, out: &mut Vec<u8>);
}

/// The fields of a list that are still to be read.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    left: u32,
    input: Input<'a>,
}

impl<'a> Fields<'a> {
    /// Reads constructor, length and count of a list.
    #[inline]
    pub(crate) fn of_list(input: &mut Input<'a>) -> Result<Fields<'a>, ValueError> {
        let (left, bytes) = match input.octet()? {
            LIST_0 => (0, &[][..]),
            octet @ (LIST_8 | LIST_32) => input.compound(octet)?,
            octet => return Err(ValueError::OtherType { needed: "list", octet }),
        };
        Ok(Fields { left, input: Input::new(bytes) })
    }

    /// Reads the next field; `None` if it is null or absent.
    #[inline]
    pub(crate) fn optional<F: Field<'a>>(&mut self) -> Result<Option<F>, DecodeError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        match self.input.octet()? {
            NULL => Ok(None),
            octet => F::read(octet, &mut self.input).map(Some),
        }
    }

    /// Reads the next field; an error if it is null or absent.
    #[inline]
    pub(crate) fn mandatory<F: Field<'a>>(&mut self) -> Result<F, DecodeError> {
        self.optional()?.ok_or(DecodeError::Value(ValueError::Missing))
    }

    /// Checks that no fields are left.
    #[inline]
    pub(crate) fn end(&self) -> Result<(), ValueError> {
        match (self.left, self.input.is_empty()) {
            (0, true) => Ok(()),
            (0, false) => Err(ValueError::TooLong),
            _ => Err(ValueError::TooManyFields),
        }
    }
}

/// Returns the error for a field with constructor `octet` where the type `needed` is expected.
#[cold]
pub(crate) fn other_type(needed: &'static str, octet: u8) -> DecodeError {
    if type_name(octet) == "none" {
        return ValueError::UnknownConstructor { octet }.into();
    }
    ValueError::OtherType { needed, octet }.into()
}

impl<'a> Field<'a> for bool {
    #[inline]
    fn read(octet: u8, input: &mut Input<'a>) -> Result<bool, DecodeError> {
        match octet {
            TRUE => Ok(true),
            FALSE => Ok(false),
            BOOLEAN => Ok(input.boolean()?),
            _ => Err(other_type("boolean", octet)),
        }
    }

    #[inline]
    fn push(&self, out: &mut Vec<u8>) {
        out.push(if *self { TRUE } else { FALSE });
    }
}

impl<'a> Field<'a> for u8 {
    #[inline]
    fn read(octet: u8, input: &mut Input<'a>) -> Result<u8, DecodeError> {
        match octet {
            UBYTE => Ok(input.octet()?),
            _ => Err(other_type("ubyte", octet)),
        }
    }

    #[inline]
    fn push(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[UBYTE, *self]);
    }
}

impl<'a> Field<'a> for u16 {
    #[inline]
    fn read(octet: u8, input: &mut Input<'a>) -> Result<u16, DecodeError> {
        match octet {
            USHORT => Ok(u16::from_be_bytes(input.array()?)),
            _ => Err(other_type("ushort", octet)),
        }
    }

    #[inline]
    fn push(&self, out: &mut Vec<u8>) {
        push_fixed(out, USHORT, self.to_be_bytes());
    }
}

impl<'a> Field<'a> for u32 {
    #[inline]
    fn read(octet: u8, input: &mut Input<'a>) -> Result<u32, DecodeError> {
        match octet {
            UINT_0 => Ok(0),
            SMALL_UINT => Ok(input.octet()?.into()),
            UINT => Ok(u32::from_be_bytes(input.array()?)),
            _ => Err(other_type("uint", octet)),
        }
    }

    #[inline]
    fn push(&self, out: &mut Vec<u8>) {
        push_uint(out, *self);
    }
}

impl<'a> Field<'a> for u64 {
    #[inline]
    fn read(octet: u8, input: &mut Input<'a>) -> Result<u64, DecodeError> {
        match octet {
            ULONG_0 => Ok(0),
            SMALL_ULONG => Ok(input.octet()?.into()),
            ULONG => Ok(u64::from_be_bytes(input.array()?)),
            _ => Err(other_type("ulong", octet)),
        }
    }

    #[inline]
    fn push(&self, out: &mut Vec<u8>) {
        push_ulong(out, *self);
    }
}

impl<'a> Field<'a> for Timestamp {
    #[inline]
    fn read(octet: u8, input: &mut Input<'a>) -> Result<Timestamp, DecodeError> {
        match octet {
            TIMESTAMP => Ok(Timestamp(i64::from_be_bytes(input.array()?))),
            _ => Err(other_type("timestamp", octet)),
        }
    }

    #[inline]
    fn push(&self, out: &mut Vec<u8>) {
        push_fixed(out, TIMESTAMP, self.0.to_be_bytes());
    }
}

impl<'a> Field<'a> for &'a [u8] {
    #[inline]
    fn read(octet: u8, input: &mut Input<'a>) -> Result<&'a [u8], DecodeError> {
        match octet {
            BINARY_8 | BINARY_32 => Ok(input.variable(octet)?),
            _ => Err(other_type("binary", octet)),
        }
    }

    #[inline]
    fn push(&self, out: &mut Vec<u8>) {
        push_variable(out, BINARY_8, self);
    }
}

impl<'a> Field<'a> for &'a str {
    #[inline]
    fn read(octet: u8, input: &mut Input<'a>) -> Result<&'a str, DecodeError> {
        match octet {
            STRING_8 | STRING_32 => Ok(input.text(octet)?),
            _ => Err(other_type("string", octet)),
        }
    }

    #[inline]
    fn push(&self, out: &mut Vec<u8>) {
        push_variable(out, STRING_8, self.as_bytes());
    }
}

impl<'a> Field<'a> for Symbol<'a> {
    #[inline]
    fn read(octet: u8, input: &mut Input<'a>) -> Result<Symbol<'a>, DecodeError> {
        match octet {
            SYMBOL_8 | SYMBOL_32 => Ok(Symbol(input.ascii(octet)?)),
            _ => Err(other_type("symbol", octet)),
        }
    }

    #[inline]
    fn push(&self, out: &mut Vec<u8>) {
        push_symbol(out, *self);
    }
}

impl<'a> Field<'a> for Map<'a> {
    fn read(octet: u8, input: &mut Input<'a>) -> Result<Map<'a>, DecodeError> {
        match Value::read(octet, input)? {
            Value::Map(map) => Ok(map),
            _ => Err(other_type("map", octet)),
        }
    }

    fn push(&self, out: &mut Vec<u8>) {
        push_map_of(out, *self);
    }
}

impl<'a> Field<'a> for Value<'a> {
    fn read(octet: u8, input: &mut Input<'a>) -> Result<Value<'a>, DecodeError> {
        Ok(Value::read(octet, input)?)
    }

    fn push(&self, out: &mut Vec<u8>) {
        push_value(out, *self);
    }
}
