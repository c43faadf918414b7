//! Errors of decoding AMQP 1.0, worded for the author of the client.

use std::fmt;

use crate::codec::constructor::type_name;
use crate::limits::{EMPTY_ELEMENTS_MAX, NESTING_MAX};

/// The reason why bytes are not a value, or not one of the expected type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueError {
    /// A value is longer than the bytes that are left.
    TooShort,
    /// Bytes are left after the last value of a list, map or array, or after a lone value.
    TooLong,
    /// No type has this constructor.
    UnknownConstructor {
        /// The constructor.
        octet: u8,
    },
    /// A value has another type than expected.
    OtherType {
        /// The expected type.
        needed: &'static str,
        /// The constructor of the value.
        octet: u8,
    },
    /// A value has the right type but is not one of the defined choices.
    NoChoice {
        /// The restricted type.
        needed: &'static str,
    },
    /// A string is not UTF-8.
    NotUtf8,
    /// A symbol is not ASCII.
    NotAscii,
    /// A char is not a Unicode scalar value.
    NotChar,
    /// A boolean is neither 0 nor 1.
    NotBoolean,
    /// A map has a key without a value.
    OddMap,
    /// A descriptor is neither a symbol nor a ulong.
    Descriptor,
    /// Lists, maps, arrays and described values are nested too deeply.
    TooDeep,
    /// Arrays have too many elements without bytes.
    TooManyEmpty,
    /// A list has more fields than its type defines.
    TooManyFields,
    /// A mandatory field is null or absent.
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

/// The reason why bytes are not a frame, or not a valid one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes start like a protocol header but are not a known one.
    ProtocolHeader,
    /// A frame is larger than agreed.
    FrameTooLong {
        /// Length of the frame in bytes.
        bytes: usize,
        /// The agreed maximum.
        max: usize,
    },
    /// The declared length of a frame is less than its header.
    FrameTooShort {
        /// The declared length in bytes.
        bytes: usize,
    },
    /// The body of a frame starts inside its header or after its end.
    DataOffset {
        /// Data offset, in words of four bytes.
        words: u8,
    },
    /// A frame has an unknown type.
    FrameType {
        /// The type.
        octet: u8,
    },
    /// A value has no descriptor where a described list is expected.
    NotDescribed,
    /// The descriptor is not valid in this place.
    OtherDescriptor {
        /// The expected kind of list.
        needed: &'static str,
    },
    /// A list as a whole is invalid.
    Composite {
        /// The name of its Rust type.
        composite: &'static str,
        /// The error.
        error: ValueError,
    },
    /// A field of a list is invalid.
    Field {
        /// The name of the list's Rust type.
        composite: &'static str,
        /// The name of the Rust field.
        field: &'static str,
        /// The error.
        error: ValueError,
    },
    /// The value of a message section has another type than expected.
    SectionValue {
        /// The expected type.
        needed: &'static str,
    },
    /// A message section is out of order or occurs twice.
    SectionOrder,
    /// A value outside any described list is invalid.
    Value(ValueError),
}

impl DecodeError {
    /// Adds the list and the field to an error, unless a nested list has already done so.
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

/// Converts a Rust name to the spelling of the specification.
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
