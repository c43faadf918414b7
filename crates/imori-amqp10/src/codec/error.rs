//! Why bytes are no AMQP 1.0, in sentences for the person who wrote the client.

use std::fmt;

use crate::codec::constructor::type_name;
use crate::limits::{EMPTY_ELEMENTS_MAX, NESTING_MAX};

/// Why bytes are no value, or not one of the type that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueError {
    /// A value has more bytes than are left.
    TooShort,
    /// Bytes are left behind the last value of a list, map or array, or behind the only value.
    TooLong,
    /// No value begins with such an octet.
    UnknownConstructor {
        /// The octet.
        octet: u8,
    },
    /// A value is of another type.
    OtherType {
        /// The type that is needed.
        needed: &'static str,
        /// The octet in front of the value.
        octet: u8,
    },
    /// A value is of the right type, but none of those that have a meaning.
    NoChoice {
        /// The type, of which few values have a meaning.
        needed: &'static str,
    },
    /// A string is not UTF-8.
    NotUtf8,
    /// A symbol is not ASCII.
    NotAscii,
    /// A char is not one of Unicode.
    NotChar,
    /// A boolean is neither 0 nor 1.
    NotBoolean,
    /// A map has a key without a value.
    OddMap,
    /// A descriptor is neither a symbol nor a ulong.
    Descriptor,
    /// Lists, maps, arrays and described values are in each other more often than allowed.
    TooDeep,
    /// Arrays have more elements without bytes than allowed.
    TooManyEmpty,
    /// A list has more fields than its type.
    TooManyFields,
    /// A field without which its list means nothing is null or left out.
    Missing,
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueError::TooShort => f.write_str("a value has more bytes than are left"),
            ValueError::TooLong => f.write_str("bytes are left behind the last value"),
            ValueError::UnknownConstructor { octet } => {
                write!(f, "a value begins with `{octet:#04x}`, which no type does")
            }
            ValueError::OtherType { needed, octet } => {
                write!(f, "it is of type `{}`; send `{needed}`", type_name(*octet))
            }
            ValueError::NoChoice { needed } => {
                write!(f, "no `{needed}` has this value; see the specification")
            }
            ValueError::NotUtf8 => f.write_str("a string is not UTF-8"),
            ValueError::NotAscii => f.write_str("a symbol is not ASCII"),
            ValueError::NotChar => f.write_str("a char is none of Unicode"),
            ValueError::NotBoolean => f.write_str("a boolean is neither 0 nor 1"),
            ValueError::OddMap => f.write_str("a map has a key without a value"),
            ValueError::Descriptor => f.write_str("a descriptor is neither `symbol` nor `ulong`"),
            ValueError::TooDeep => {
                write!(f, "values are nested more than `{NESTING_MAX}` deep; send flatter ones")
            }
            ValueError::TooManyEmpty => {
                write!(f, "arrays have more than `{EMPTY_ELEMENTS_MAX}` elements without bytes; send fewer")
            }
            ValueError::TooManyFields => f.write_str("it has more fields than there are"),
            ValueError::Missing => f.write_str("it is mandatory and not there"),
        }
    }
}

impl std::error::Error for ValueError {}

/// Why bytes are no frame, or a frame has no meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes begin like a protocol header and are none that there is.
    ProtocolHeader,
    /// A frame has more bytes than agreed.
    FrameTooLong {
        /// Bytes of the whole frame.
        bytes: usize,
        /// How many there may be.
        max: usize,
    },
    /// A frame says that it is shorter than its own header.
    FrameTooShort {
        /// Bytes of the whole frame.
        bytes: usize,
    },
    /// The body of a frame begins within its header, or behind its end.
    DataOffset {
        /// Words of four bytes in front of the body.
        words: u8,
    },
    /// A frame is of a type that there is not.
    FrameType {
        /// The type.
        octet: u8,
    },
    /// A described list was needed, and another value is there.
    NotDescribed,
    /// The descriptor is none of those that may stand there.
    OtherDescriptor {
        /// The kind of list that is needed.
        needed: &'static str,
    },
    /// A list as a whole is wrong.
    Composite {
        /// The name of its type, as in Rust.
        composite: &'static str,
        /// The fault.
        error: ValueError,
    },
    /// A field of a list is wrong.
    Field {
        /// The name of the list's type, as in Rust.
        composite: &'static str,
        /// The name of the field, as in Rust.
        field: &'static str,
        /// The fault.
        error: ValueError,
    },
    /// A section of a message has a value of another type than its own.
    SectionValue {
        /// The type that is needed.
        needed: &'static str,
    },
    /// A section of a message stands behind one that it has to precede, or comes twice.
    SectionOrder,
    /// A value that is in no list with a descriptor is wrong.
    Value(ValueError),
}

impl DecodeError {
    /// Names the list and its field, unless the fault is in a list within.
    #[cold]
    pub(crate) fn of_field(self, composite: &'static str, field: &'static str) -> DecodeError {
        match self {
            DecodeError::Value(error) => DecodeError::Field { composite, field, error },
            other => other,
        }
    }
}

impl From<ValueError> for DecodeError {
    #[inline]
    fn from(error: ValueError) -> DecodeError {
        DecodeError::Value(error)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::ProtocolHeader => f.write_str(
                "the protocol header is not one of AMQP 1.0; send `AMQP`, 0, 1, 0, 0 or, for SASL, `AMQP`, 3, 1, 0, 0",
            ),
            DecodeError::FrameTooLong { bytes, max } => write!(
                f,
                "a frame has `{bytes}` bytes and may have `{max}`; keep to the `max-frame-size` of `open`"
            ),
            DecodeError::FrameTooShort { bytes } => {
                write!(f, "a frame says that it has `{bytes}` bytes; its header alone has 8")
            }
            DecodeError::DataOffset { words } => {
                write!(f, "the data offset of a frame is `{words}`; it is at least 2 and ends within the frame")
            }
            DecodeError::FrameType { octet } => {
                write!(f, "there is no frame of type `{octet}`; send 0, or 1 for SASL")
            }
            DecodeError::NotDescribed => f.write_str("a value without a descriptor stands where a described list should"),
            DecodeError::OtherDescriptor { needed } => {
                write!(f, "the descriptor is not one of a {needed}; see the specification")
            }
            DecodeError::Composite { composite, error } => {
                write!(f, "`{}` is wrong: {error}", wire(composite))
            }
            DecodeError::Field { composite, field, error } => {
                write!(f, "field `{}` of `{}` is wrong: {error}", wire(field), wire(composite))
            }
            DecodeError::SectionValue { needed } => {
                write!(f, "the value of a section of a message is of another type; send `{needed}`")
            }
            DecodeError::SectionOrder => f.write_str(
                "the sections of a message are not in their order; send header, annotations, properties and body",
            ),
            DecodeError::Value(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DecodeError {}

/// A name as the specification writes it.
fn wire(name: &str) -> String {
    let mut out = String::new();
    for (index, char) in name.char_indices() {
        if char == '_' || (char.is_ascii_uppercase() && index > 0) {
            out.push('-');
        }
        if char != '_' {
            out.push(char.to_ascii_lowercase());
        }
    }
    out
}
