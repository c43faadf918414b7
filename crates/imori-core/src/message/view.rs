//! A message as its readers see it, whether it is stored or still in its sender's buffer.

use std::borrow::Cow;

use super::head::{Head, Property};
use super::value::Value;

/// A borrowed message.
#[derive(Debug, Clone, Copy)]
pub struct MessageView<'a> {
    /// Properties that all protocols share.
    pub head: &'a Head,
    /// The origin's header block, in the origin's own form.
    pub text: &'a [u8],
    /// The body.
    pub body: &'a [u8],
}

impl<'a> MessageView<'a> {
    /// The value of a text property.
    pub fn property(&self, property: Property) -> Option<&'a [u8]> {
        self.head.property(property, self.text)
    }
}

/// Reads the header block of one origin: the way by which a protocol sees another's headers.
pub trait HeaderReader {
    /// Calls `visit` with the name and value of each user header, in order.
    fn visit_headers<'t>(&self, text: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>));
}
