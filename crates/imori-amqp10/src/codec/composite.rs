//! Described lists, and the macros that generate their types from a table.

use crate::codec::constructor::{DESCRIBED, LIST_0, LIST_8, NULL, SMALL_ULONG};
use crate::codec::error::{DecodeError, ValueError};
use crate::codec::field::{Field, Fields};
use crate::codec::input::Input;
use crate::codec::push::{Compound, push_ulong};
use crate::codec::value::Descriptor;

/// A described list with fields.
pub trait Composite<'a>: Sized {
    /// Its descriptor as a number.
    const CODE: u64;
    /// Its descriptor as a symbol.
    const SYMBOL: &'static str;

    /// Reads the list after its descriptor.
    ///
    /// # Errors
    /// [`DecodeError::Composite`], or [`DecodeError::Field`] if one field is invalid.
    fn read_list(input: &mut Input<'a>) -> Result<Self, DecodeError>;

    /// Appends the descriptor and the list.
    fn encode(&self, out: &mut Vec<u8>);
}

/// Reads a descriptor; `octet` is the constructor before it.
#[inline]
pub(crate) fn descriptor<'a>(octet: u8, input: &mut Input<'a>) -> Result<Descriptor<'a>, DecodeError> {
    if octet != DESCRIBED {
        return Err(DecodeError::NotDescribed);
    }
    if let Some((&[SMALL_ULONG, code], _)) = input.rest().split_first_chunk::<2>() {
        input.bytes(2)?;
        return Ok(Descriptor::Code(code.into()));
    }
    Ok(Descriptor::read(input)?)
}

/// Whether the descriptor belongs to `C`.
#[inline]
pub(crate) fn is_of<'a, C: Composite<'a>>(descriptor: &Descriptor<'_>) -> bool {
    match descriptor {
        Descriptor::Code(code) => *code == C::CODE,
        Descriptor::Name(name) => name.0 == C::SYMBOL,
    }
}

/// A writer for a list of fields that omits trailing nulls.
#[derive(Debug)]
pub(crate) struct FieldsWriter {
    list: Compound,
    /// Number of fields written, including trailing nulls.
    written: u32,
    /// Number of fields up to the last that is not null, and the length of the output after it.
    kept: (u32, usize),
}

impl FieldsWriter {
    #[inline]
    pub(crate) fn begin(out: &mut Vec<u8>, code: u64) -> FieldsWriter {
        out.push(DESCRIBED);
        push_ulong(out, code);
        let list = Compound::begin(out, LIST_8);
        FieldsWriter { list, written: 0, kept: (0, out.len()) }
    }

    #[inline]
    pub(crate) fn field<'a>(&mut self, out: &mut Vec<u8>, field: Option<&impl Field<'a>>) {
        self.written += 1;
        match field {
            Some(field) => {
                field.push(out);
                self.kept = (self.written, out.len());
            }
            None => out.push(NULL),
        }
    }

    #[inline]
    pub(crate) fn end(self, out: &mut Vec<u8>) {
        let (count, len) = self.kept;
        out.truncate(len);
        if count == 0 {
            // The constructor, length and count are already there; keep only the constructor.
            out.truncate(len - 2);
            if let Some(constructor) = out.last_mut() {
                *constructor = LIST_0;
            }
            return;
        }
        self.list.end(out, count);
    }
}

/// Reads the fields of a composite. Errors name the composite, or the field if one is invalid.
#[inline]
pub(crate) fn read_fields<'a, T>(
    name: &'static str,
    input: &mut Input<'a>,
    read: impl FnOnce(&mut Fields<'a>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let of_composite = |error: ValueError| DecodeError::Composite { composite: name, error };
    let mut fields = Fields::of_list(input).map_err(of_composite)?;
    let composite = read(&mut fields)?;
    fields.end().map_err(of_composite)?;
    Ok(composite)
}

/// Generates structs for described lists. Fields are `mandatory`, `optional` or have a `default`,
/// in the order of the list.
macro_rules! composites {
    ($(
        $(#[$doc:meta])*
        $name:ident$(<$life:lifetime>)? = $code:literal $symbol:literal {
            $($(#[$field_doc:meta])* $kind:ident $field:ident: $type:ty $(= $default:expr)?,)*
        }
    )+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $name$(<$life>)? {
            $($(#[$field_doc])* pub $field: composites!(@type $kind $type),)*
        }

        impl$(<$life>)? Default for $name$(<$life>)? {
            fn default() -> Self {
                $name { $($field: composites!(@default $kind $($default)?),)* }
            }
        }

        impl<'a> Composite<'a> for $name$(<$life>)? {
            const CODE: u64 = $code;
            const SYMBOL: &'static str = $symbol;

            #[inline]
            fn read_list(input: &mut Input<'a>) -> Result<Self, DecodeError> {
                read_fields(stringify!($name), input, |_fields| {
                    Ok($name { $($field: composites!(@read $kind _fields $($default)?)
                        .map_err(|error| error.of_field(stringify!($name), stringify!($field)))?,)* })
                })
            }

            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                let mut _list = FieldsWriter::begin(out, $code);
                $(_list.field(out, composites!(@write $kind self.$field $(, $default)?));)*
                _list.end(out);
            }
        }

        impl<'a> Field<'a> for $name$(<$life>)? {
            fn read(octet: u8, input: &mut Input<'a>) -> Result<Self, DecodeError> {
                let found = descriptor(octet, input)?;
                if !is_of::<$name>(&found) {
                    return Err(DecodeError::OtherDescriptor { needed: $symbol });
                }
                $name::read_list(input)
            }

            fn push(&self, out: &mut Vec<u8>) {
                self.encode(out);
            }
        }
    )+};

    (@type mandatory $type:ty) => { $type };
    (@type optional $type:ty) => { Option<$type> };
    (@type default $type:ty) => { $type };

    (@default mandatory) => { Default::default() };
    (@default optional) => { None };
    (@default default $default:expr) => { $default };

    (@read mandatory $fields:ident) => { $fields.mandatory() };
    (@read optional $fields:ident) => { $fields.optional() };
    (@read default $fields:ident $default:expr) => { $fields.optional().map(|field| field.unwrap_or($default)) };

    (@write mandatory $self:ident.$field:ident) => { Some(&$self.$field) };
    (@write optional $self:ident.$field:ident) => { $self.$field.as_ref() };
    (@write default $self:ident.$field:ident, $default:expr) => {
        if $self.$field == $default { None } else { Some(&$self.$field) }
    };
}

/// Generates an enum of the composites that are valid in one place.
macro_rules! choices {
    ($(
        $(#[$doc:meta])*
        $name:ident<$life:lifetime>, $needed:literal { $($(#[$variant_doc:meta])* $variant:ident($type:ty),)+ }
    )+) => {$(
        $(#[$doc])*
        #[allow(clippy::large_enum_variant, reason = "it lives on the stack, and a box would be allocated for each frame")]
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum $name<$life> {
            $($(#[$variant_doc])* $variant($type),)+
        }

        impl<$life> Field<$life> for $name<$life> {
            #[inline]
            fn read(octet: u8, input: &mut Input<$life>) -> Result<Self, DecodeError> {
                let found = descriptor(octet, input)?;
                $(if is_of::<$type>(&found) {
                    return <$type>::read_list(input).map($name::$variant);
                })+
                Err(DecodeError::OtherDescriptor { needed: $needed })
            }

            #[inline]
            fn push(&self, out: &mut Vec<u8>) {
                match self {
                    $($name::$variant(list) => list.encode(out),)+
                }
            }
        }

        $(impl<$life> From<$type> for $name<$life> {
            fn from(list: $type) -> Self {
                $name::$variant(list)
            }
        })+
    )+};
}

pub(crate) use {choices, composites};
