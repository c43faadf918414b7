//! The common shape of methods: an id, and fields behind it.

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
