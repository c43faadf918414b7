//! The header of a content, and the properties of class `basic` in it.
//!
//! The bytes of the properties are a message's header block: they go from one AMQP client to another as they are.

use crate::codec::error::DecodeError;
use crate::codec::fields::{FieldError, Fields};
use crate::codec::push::{push_short_bytes, push_table};
use crate::codec::table::Table;

/// The class of all content.
pub const CLASS: u16 = 60;

/// Flags that belong to no property: the lowest says that more flags follow, which no content of this class needs.
const NO_PROPERTIES: u16 = 0b11;

/// The header of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentHeader<'a> {
    /// Bytes of the body.
    pub body_len: u64,
    /// Flags and values of the properties.
    pub properties: &'a [u8],
}

impl<'a> ContentHeader<'a> {
    /// Reads the payload of a header frame. The properties are only cut off; [`BasicProperties::read`] reads them.
    ///
    /// # Errors
    /// [`DecodeError::Content`] or [`DecodeError::ContentClass`].
    #[inline]
    pub fn decode(payload: &'a [u8]) -> Result<ContentHeader<'a>, DecodeError> {
        let mut fields = Fields::new(payload);
        let class = fields.short().map_err(DecodeError::Content)?;
        let _weight = fields.short().map_err(DecodeError::Content)?;
        let body_len = fields.longlong().map_err(DecodeError::Content)?;
        if class != CLASS {
            return Err(DecodeError::ContentClass { class });
        }
        Ok(ContentHeader { body_len, properties: fields.rest() })
    }
}

/// A text property, and where it stands in the bytes of the properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextProperty<'a> {
    /// Bytes in front of it.
    pub start: usize,
    /// The value. AMQP calls it text; its encoding is not checked.
    pub bytes: &'a [u8],
}

impl<'a> TextProperty<'a> {
    /// A property that is to be written.
    pub fn new(bytes: &'a [u8]) -> TextProperty<'a> {
        TextProperty { start: 0, bytes }
    }
}

/// The properties of class `basic`, borrowed from their bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct BasicProperties<'a> {
    /// `content-type`.
    pub content_type: Option<TextProperty<'a>>,
    /// `content-encoding`.
    pub content_encoding: Option<TextProperty<'a>>,
    /// `headers`.
    pub headers: Option<Table<'a>>,
    /// `delivery-mode`: 2 is persistent.
    pub delivery_mode: Option<u8>,
    /// `priority`.
    pub priority: Option<u8>,
    /// `correlation-id`.
    pub correlation_id: Option<TextProperty<'a>>,
    /// `reply-to`.
    pub reply_to: Option<TextProperty<'a>>,
    /// `expiration`, in milliseconds as text.
    pub expiration: Option<TextProperty<'a>>,
    /// `message-id`.
    pub message_id: Option<TextProperty<'a>>,
    /// `timestamp`, in seconds.
    pub timestamp: Option<u64>,
    /// `type`.
    pub kind: Option<TextProperty<'a>>,
    /// `user-id`.
    pub user_id: Option<TextProperty<'a>>,
    /// `app-id`.
    pub app_id: Option<TextProperty<'a>>,
    /// `cluster-id`, which is reserved and passed on.
    pub cluster_id: Option<TextProperty<'a>>,
}

impl<'a> BasicProperties<'a> {
    /// Reads flags and values; checks the table of headers, so that receivers of the bytes can read them.
    ///
    /// # Errors
    /// [`DecodeError::PropertyFlags`] or [`DecodeError::Content`].
    pub fn read(bytes: &'a [u8]) -> Result<BasicProperties<'a>, DecodeError> {
        let mut fields = Fields::new(bytes);
        let flags = fields.short().map_err(DecodeError::Content)?;
        if flags & NO_PROPERTIES != 0 {
            return Err(DecodeError::PropertyFlags { flags });
        }
        let mut reading = Reading { all: bytes.len(), flags, fields };
        let properties = BasicProperties {
            content_type: reading.text()?,
            content_encoding: reading.text()?,
            headers: reading.value(Table::read)?,
            delivery_mode: reading.value(Fields::octet)?,
            priority: reading.value(Fields::octet)?,
            correlation_id: reading.text()?,
            reply_to: reading.text()?,
            expiration: reading.text()?,
            message_id: reading.text()?,
            timestamp: reading.value(Fields::longlong)?,
            kind: reading.text()?,
            user_id: reading.text()?,
            app_id: reading.text()?,
            cluster_id: reading.text()?,
        };
        reading.fields.end().map_err(DecodeError::Content)?;
        Ok(properties)
    }

    /// The table of headers in bytes that were read before and are not checked again; `None` where they have none.
    pub fn read_headers(bytes: &'a [u8]) -> Option<Table<'a>> {
        let mut fields = Fields::new(bytes);
        let flags = fields.short().ok()?;
        let mut reading = Reading { all: bytes.len(), flags, fields };
        reading.text().ok()?;
        reading.text().ok()?;
        reading.value(Table::read_checked).ok()?
    }

    /// Appends flags and values.
    pub fn push(&self, out: &mut Vec<u8>) {
        let is_there = [
            self.content_type.is_some(),
            self.content_encoding.is_some(),
            self.headers.is_some(),
            self.delivery_mode.is_some(),
            self.priority.is_some(),
            self.correlation_id.is_some(),
            self.reply_to.is_some(),
            self.expiration.is_some(),
            self.message_id.is_some(),
            self.timestamp.is_some(),
            self.kind.is_some(),
            self.user_id.is_some(),
            self.app_id.is_some(),
            self.cluster_id.is_some(),
        ];
        let flags = is_there.iter().fold(0, |flags: u16, is_there| flags << 1 | u16::from(*is_there)) << 2;
        out.extend_from_slice(&flags.to_be_bytes());
        push_text(out, self.content_type);
        push_text(out, self.content_encoding);
        self.headers.into_iter().for_each(|headers| push_table(out, headers));
        out.extend(self.delivery_mode);
        out.extend(self.priority);
        push_text(out, self.correlation_id);
        push_text(out, self.reply_to);
        push_text(out, self.expiration);
        push_text(out, self.message_id);
        out.extend(self.timestamp.into_iter().flat_map(u64::to_be_bytes));
        push_text(out, self.kind);
        push_text(out, self.user_id);
        push_text(out, self.app_id);
        push_text(out, self.cluster_id);
    }
}

fn push_text(out: &mut Vec<u8>, text: Option<TextProperty<'_>>) {
    text.into_iter().for_each(|text| push_short_bytes(out, text.bytes));
}

/// Values that are not read yet, with the flag of the next at the top.
struct Reading<'a> {
    /// Bytes of flags and values.
    all: usize,
    flags: u16,
    fields: Fields<'a>,
}

impl<'a> Reading<'a> {
    /// Reads the next property if it is there.
    #[inline]
    fn value<T>(
        &mut self,
        read: impl FnOnce(&mut Fields<'a>) -> Result<T, FieldError>,
    ) -> Result<Option<T>, DecodeError> {
        let is_there = self.flags & 0x8000 != 0;
        self.flags <<= 1;
        if is_there { read(&mut self.fields).map(Some).map_err(DecodeError::Content) } else { Ok(None) }
    }

    #[inline]
    fn text(&mut self) -> Result<Option<TextProperty<'a>>, DecodeError> {
        let all = self.all;
        self.value(|fields| {
            let bytes = fields.short_bytes()?;
            Ok(TextProperty { start: all - fields.rest().len() - bytes.len(), bytes })
        })
    }
}
