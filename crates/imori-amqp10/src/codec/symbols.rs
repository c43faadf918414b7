//! A field with one symbol or an array of symbols.

use crate::codec::constructor::{ARRAY_8, ARRAY_32, SYMBOL_8, SYMBOL_32};
use crate::codec::error::DecodeError;
use crate::codec::field::{Field, other_type};
use crate::codec::input::Input;
use crate::codec::push::{push_array_of, push_symbol, push_symbols};
use crate::codec::value::{Array, Symbol, Value};

/// Symbols in order. A field with multiple values may be a single one (AMQP 1.0, 1.4).
#[derive(Debug, Clone, Copy)]
pub enum Symbols<'a> {
    /// A single symbol.
    One(Symbol<'a>),
    /// An array of symbols only.
    Array(Array<'a>),
    /// Symbols to write.
    Slice(&'a [Symbol<'a>]),
}

impl<'a> Symbols<'a> {
    /// Iterates over the symbols.
    pub fn iter(&self) -> impl Iterator<Item = Symbol<'a>> + use<'a> {
        let (one, array, slice) = match *self {
            Symbols::One(symbol) => (Some(symbol), None, &[][..]),
            Symbols::Array(array) => (None, Some(array), &[][..]),
            Symbols::Slice(slice) => (None, None, slice),
        };
        let of_array = array.into_iter().flat_map(|array| array.iter()).filter_map(|value| match value {
            Value::Symbol(symbol) => Some(symbol),
            _ => None,
        });
        one.into_iter().chain(of_array).chain(slice.iter().copied())
    }

    /// Whether the symbol `text` is present.
    pub fn contains(&self, text: &str) -> bool {
        self.iter().any(|symbol| symbol.0 == text)
    }
}

impl Default for Symbols<'_> {
    fn default() -> Self {
        Symbols::Slice(&[])
    }
}

impl PartialEq for Symbols<'_> {
    fn eq(&self, other: &Symbols<'_>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a> Field<'a> for Symbols<'a> {
    fn read(octet: u8, input: &mut Input<'a>) -> Result<Symbols<'a>, DecodeError> {
        match octet {
            SYMBOL_8 | SYMBOL_32 => Symbol::read(octet, input).map(Symbols::One),
            ARRAY_8 | ARRAY_32 => match Value::read(octet, input)? {
                Value::Array(array) if array.iter().all(|value| matches!(value, Value::Symbol(_))) => {
                    Ok(Symbols::Array(array))
                }
                _ => Err(other_type("symbol", octet)),
            },
            _ => Err(other_type("symbol", octet)),
        }
    }

    fn push(&self, out: &mut Vec<u8>) {
        match *self {
            Symbols::One(symbol) => push_symbol(out, symbol),
            Symbols::Array(array) => push_array_of(out, array),
            Symbols::Slice(symbols) => push_symbols(out, symbols),
        }
    }
}
