//! The properties that all protocols share, as positions in a message's header text.

use std::num::NonZeroU32;

/// The protocol and the form of a message's header block.
///
/// Records keep these numbers: the server assigns them in one table, and never reuses one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OriginId(pub u8);

impl OriginId {
    /// The broker itself; such a message has no header block.
    pub const BROKER: OriginId = OriginId(0);
}

/// The origins of one protocol: consecutive numbers, one for each form of its header blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origins {
    first: u8,
    forms: u8,
}

impl Origins {
    /// The origins of a protocol with this many forms; form 0 has the number `first`.
    pub const fn new(first: u8, forms: u8) -> Origins {
        assert!(first > OriginId::BROKER.0 && forms > 0 && first.checked_add(forms).is_some());
        Origins { first, forms }
    }

    /// The origin of a header block in this form; [`OriginId::BROKER`], without a header block, if the protocol has no
    /// such form.
    #[inline]
    pub const fn origin(self, form: u8) -> OriginId {
        if form < self.forms { OriginId(self.first + form) } else { OriginId::BROKER }
    }

    /// The form of a header block of this origin; `None` if the origin belongs to another protocol.
    #[inline]
    pub const fn form(self, origin: OriginId) -> Option<u8> {
        let form = origin.0.wrapping_sub(self.first);
        if form < self.forms { Some(form) } else { None }
    }
}

/// The properties with text values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Property {
    /// The MIME type of the body.
    ContentType,
    /// The encoding of the body.
    ContentEncoding,
    /// An identifier that the reply repeats, so that the requester can match it to the request.
    CorrelationId,
    /// The address for replies.
    ReplyTo,
    /// The publisher's id for the message.
    MessageId,
    /// The application's name for the type of message.
    Type,
    /// The user who sent the message.
    UserId,
    /// The application that sent the message.
    AppId,
    /// The message's group; only one consumer of a queue at a time receives a group.
    GroupId,
    /// The group that ends with this message: its own group, or none.
    GroupEnd,
}

const PROPERTIES: usize = 10;

/// A range of a message's header text; an empty one means that the property is absent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    start: u16,
    len: u16,
}

impl Span {
    /// The `len` bytes from `start`; `None` beyond 65,535.
    pub fn new(start: usize, len: usize) -> Option<Span> {
        Some(Span { start: u16::try_from(start).ok()?, len: u16::try_from(len).ok()? })
    }

    fn of(self, text: &[u8]) -> Option<&[u8]> {
        let start = usize::from(self.start);
        if self.len == 0 { None } else { text.get(start..start + usize::from(self.len)) }
    }
}

/// The properties of a message that the broker itself reads, in a fixed size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Properties {
    /// The protocol and form of the header block.
    pub origin: OriginId,
    /// The publisher wants the message to survive a restart.
    pub is_persistent: bool,
    /// The reply address is an inbox of this broker.
    pub replies_to_inbox: bool,
    /// In a stream, the message outlives the limit of age.
    pub never_expires: bool,
    /// The message tells the readers of a stream that its subject was deleted.
    pub is_marker: bool,
    /// The body is the value of a counter of a stream, in decimal.
    pub is_count: bool,
    /// The priority, 0 being the lowest; `None` if the publisher set none.
    pub priority: Option<u8>,
    /// Maximum time in a queue, in milliseconds.
    pub expiration_ms: Option<u32>,
    /// Time that a queue holds the message back, in milliseconds; never 0.
    pub delay_ms: Option<NonZeroU32>,
    /// Seconds since the UNIX epoch, as claimed by the publisher.
    pub timestamp: Option<u64>,
    spans: [Span; PROPERTIES],
}

impl Properties {
    /// Creates properties with none set.
    pub fn new(origin: OriginId) -> Properties {
        Properties {
            origin,
            is_persistent: false,
            replies_to_inbox: false,
            never_expires: false,
            is_marker: false,
            is_count: false,
            priority: None,
            expiration_ms: None,
            delay_ms: None,
            timestamp: None,
            spans: [Span::default(); PROPERTIES],
        }
    }

    /// Sets the position of `property` in the header text.
    pub fn set(&mut self, property: Property, span: Span) {
        if let Some(place) = self.spans.get_mut(property as usize) {
            *place = span;
        }
    }

    /// These properties of a message whose body is the value of a counter.
    pub(crate) fn of_count(self) -> Properties {
        Properties { is_count: true, ..self }
    }

    /// Marks the message as the last of its group, which its consumer then gives up.
    pub fn end_group(&mut self) {
        if let Some(group) = self.spans.get(Property::GroupId as usize) {
            self.set(Property::GroupEnd, *group);
        }
    }

    /// Whether `property` is present.
    #[inline]
    pub fn has(&self, property: Property) -> bool {
        self.spans.get(property as usize).is_some_and(|span| span.len > 0)
    }

    /// The positions of the present properties: number, start and length.
    pub(crate) fn spans(&self) -> impl Iterator<Item = (u8, u16, u16)> {
        let there = (0..).zip(&self.spans).filter(|(_, span)| span.len > 0);
        there.map(|(number, Span { start, len })| (number, *start, *len))
    }

    /// Sets the position of the property with this number; `false` if there is no such property.
    pub(crate) fn set_span(&mut self, number: u8, start: u16, len: u16) -> bool {
        let place = self.spans.get_mut(usize::from(number));
        place.map(|place| *place = Span { start, len }).is_some()
    }

    /// The value of `property` in `text`, the header text that these properties describe.
    pub fn property<'t>(&self, property: Property, text: &'t [u8]) -> Option<&'t [u8]> {
        self.spans.get(property as usize)?.of(text)
    }
}
