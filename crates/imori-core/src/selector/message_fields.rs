//! The fields of a message, looked up in its encoded headers.

use std::borrow::Cow;

use super::field_name::{FieldName, Header};
use super::number::Number;
use super::operand::{Fields, Operand};
use crate::message::{HeaderReader, MessageView, Property};

/// The default priority in JMS and AMQP 1.0.
const PRIORITY: u8 = 4;

/// A message as a selector sees it.
#[derive(Clone, Copy)]
pub struct MessageFields<'m> {
    /// The message whose properties and headers are the fields.
    pub message: MessageView<'m>,
    /// The reader of its header block.
    pub headers: &'m dyn HeaderReader,
    /// The subject it was published to.
    pub subject: &'m [u8],
    /// The number of failed deliveries.
    pub failures: u32,
    /// Whether it was delivered before.
    pub is_redelivered: bool,
}

impl Fields for MessageFields<'_> {
    #[inline]
    fn field(&self, name: &FieldName) -> Operand<'_> {
        match name {
            FieldName::Property(name) => match self.headers.header(self.message.text, name) {
                Some(value) => Operand::of(value, self.headers.is_typed()),
                None => Operand::Null,
            },
            FieldName::Header(header) => self.header(*header),
        }
    }
}

impl MessageFields<'_> {
    fn header(&self, header: Header) -> Operand<'_> {
        let properties = self.message.properties;
        match header {
            Header::DeliveryMode => {
                let mode: &[u8] = if properties.is_persistent { b"PERSISTENT" } else { b"NON_PERSISTENT" };
                Operand::Text(Cow::Borrowed(mode))
            }
            Header::IsDurable => Operand::Bool(properties.is_persistent),
            Header::Priority => int(properties.priority.unwrap_or(PRIORITY)),
            Header::Timestamp => self.headers.timestamp_ms(&self.message).map_or(Operand::Null, int),
            Header::IsRedelivered => Operand::Bool(self.is_redelivered),
            Header::DeliveryCount => int(i64::from(self.failures) + 1),
            Header::Failures => int(self.failures),
            Header::Destination => Operand::Text(Cow::Borrowed(self.subject)),
            Header::MessageId => self.text(Property::MessageId),
            Header::CorrelationId => self.text(Property::CorrelationId),
            Header::Type => self.text(Property::Type),
            Header::ReplyTo => self.text(Property::ReplyTo),
            Header::UserId => self.text(Property::UserId),
            Header::AppId => self.text(Property::AppId),
            Header::ContentType => self.text(Property::ContentType),
            Header::ContentEncoding => self.text(Property::ContentEncoding),
        }
    }

    fn text(&self, property: Property) -> Operand<'_> {
        self.message.property(property).map_or(Operand::Null, |text| Operand::Text(Cow::Borrowed(text)))
    }
}

fn int(number: impl Into<i64>) -> Operand<'static> {
    Operand::Number(Number::Int(number.into()))
}
