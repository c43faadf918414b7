//! The common shape of methods, an id with fields behind it, and the macro that turns a table of them into types.

use crate::codec::fields::{FieldError, Fields};

/// The class of a method and its number in the class.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MethodId {
    /// The class.
    pub class: u16,
    /// The method.
    pub method: u16,
}

impl MethodId {
    /// Reads the id in front of a method's fields.
    ///
    /// # Errors
    /// [`FieldError::TooShort`].
    #[inline]
    pub fn read(fields: &mut Fields<'_>) -> Result<MethodId, FieldError> {
        Ok(MethodId { class: fields.short()?, method: fields.short()? })
    }
}

/// A method with its fields.
pub trait MethodFields<'a>: Sized {
    /// Its id.
    const ID: MethodId;

    /// Reads its fields.
    ///
    /// # Errors
    /// [`FieldError`] of the first field that is wrong.
    fn read(fields: &mut Fields<'a>) -> Result<Self, FieldError>;

    /// Appends its fields.
    fn push(&self, out: &mut Vec<u8>);
}

/// Declares every method of a table: its struct in the module of its class, how its fields are read and written, and
/// its variant of `Method`.
macro_rules! methods {
    ($(
        $class:ident = $class_id:literal {$(
            $variant:ident($name:ident$(<$life:lifetime>)?) = $id:literal $method:literal from $sender:ident {
                $($type:ident($($field:ident),* $(-)?)),*
            }
        )+}
    )+) => {
        /// A method of either end, whose strings and tables are still in the input.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Method<'a> {
            $($(
                #[doc = concat!("`", stringify!($class), ".", $method, "`.")]
                $variant($class::$name$(<$life>)?),
            )+)+
        }

        impl<'a> Method<'a> {
            /// Reads the payload of a method frame.
            ///
            /// # Errors
            /// [`DecodeError::UnknownMethod`], or [`DecodeError::Method`] where its fields do not fill the payload.
            pub fn decode(payload: &'a [u8]) -> Result<Method<'a>, DecodeError> {
                let mut fields = Fields::new(payload);
                let id = MethodId::read(&mut fields).map_err(|_| DecodeError::NoMethod)?;
                let read = match (id.class, id.method) {
                    $($(($class_id, $id) => $class::$name::read(&mut fields).map(Method::$variant),)+)+
                    _ => return Err(DecodeError::UnknownMethod(id)),
                };
                let method = read.map_err(|error| DecodeError::Method { id, error })?;
                fields.end().map_err(|error| DecodeError::Method { id, error })?;
                Ok(method)
            }

            /// Its class and its number in the class.
            pub fn id(&self) -> MethodId {
                match self {
                    $($(Method::$variant(_) => $class::$name::ID,)+)+
                }
            }

            /// Appends its fields, without the id in front of them.
            pub fn push_fields(&self, out: &mut Vec<u8>) {
                match self {
                    $($(Method::$variant(fields) => fields.push(out),)+)+
                }
            }
        }

        impl MethodId {
            /// The name of the method, such as `queue.declare`; `none` where there is no such method.
            pub fn name(self) -> &'static str {
                match (self.class, self.method) {
                    $($(($class_id, $id) => concat!(stringify!($class), ".", $method),)+)+
                    _ => "none",
                }
            }
        }

        $(
            #[doc = concat!("Methods of class `", stringify!($class), "`.")]
            pub mod $class {
                use super::*;

                $(
                    methods! {
                        @struct
                        #[doc = concat!(
                            "`", stringify!($class), ".", $method, "`, which ", methods!(@sender $sender), " may send."
                        )]
                        $name [$(<$life>)?] $($($field: $type,)*)*
                    }

                    impl<'a> MethodFields<'a> for $name$(<$life>)? {
                        const ID: MethodId = MethodId { class: $class_id, method: $id };

                        fn read(_fields: &mut Fields<'a>) -> Result<Self, FieldError> {
                            $(methods!(@read _fields $type $($field)*);)*
                            Ok($name { $($($field,)*)* })
                        }

                        fn push(&self, _out: &mut Vec<u8>) {
                            $(methods!(@push _out $type self $($field)*);)*
                        }
                    }
                )+
            }
        )+
    };

    (@struct #[$doc:meta] $name:ident []) => {
        #[$doc]
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        pub struct $name;
    };
    (@struct #[$doc:meta] $name:ident [$($life:tt)*] $($field:ident: $type:ident,)+) => {
        #[$doc]
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        pub struct $name $($life)* {
            $(
                #[doc = concat!("`", stringify!($field), "`.")]
                pub $field: methods!(@type $type),
            )+
        }
    };

    (@sender client) => { "a client" };
    (@sender broker) => { "the broker" };
    (@sender both) => { "both ends" };

    (@type octet) => { u8 };
    (@type short) => { u16 };
    (@type long) => { u32 };
    (@type longlong) => { u64 };
    (@type bits) => { bool };
    (@type shortstr) => { &'a str };
    (@type longstr) => { &'a [u8] };
    (@type table) => { Table<'a> };

    (@read $fields:ident bits $($bit:ident)*) => { let [$($bit),*] = $fields.bits()?; };
    (@read $fields:ident $type:ident) => { methods!(@value $fields $type); };
    (@read $fields:ident $type:ident $($field:ident)+) => { $(let $field = methods!(@value $fields $type);)+ };

    (@value $fields:ident shortstr) => { $fields.short_str()? };
    (@value $fields:ident longstr) => { $fields.long_str()? };
    (@value $fields:ident table) => { Table::read($fields)? };
    (@value $fields:ident $number:ident) => { $fields.$number()? };

    (@push $out:ident bits $self:ident $($bit:ident)*) => { push_bits($out, [$($self.$bit),*]); };
    (@push $out:ident $type:ident $self:ident) => {
        methods!(@append $out $type <methods!(@type $type)>::default());
    };
    (@push $out:ident $type:ident $self:ident $($field:ident)+) => {
        $(methods!(@append $out $type $self.$field);)+
    };

    (@append $out:ident shortstr $value:expr) => { push_short_str($out, $value) };
    (@append $out:ident longstr $value:expr) => { push_long_str($out, $value) };
    (@append $out:ident table $value:expr) => { push_table($out, $value) };
    (@append $out:ident $number:ident $value:expr) => { $out.extend_from_slice(&$value.to_be_bytes()) };
}

pub(crate) use methods;
