//! The properties that all protocols share, as places in a message's header text.

use std::num::NonZeroU32;

/// Which protocol, and which form of its headers, a message's header block is in.
///
/// Records keep these numbers: the server gives them out in one table, and none is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OriginId(pub u8);

impl OriginId {
    /// Made by the broker itself; there is no header block.
    pub const BROKER: OriginId = OriginId(0);
}

/// The origins of one protocol: consecutive numbers, one for each form of its header blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origins {
    first: u8,
    forms: u8,
}

impl Origins {
    /// The origins of a protocol with this many forms, of which form 0 has the number `first`.
    pub const fn new(first: u8, forms: u8) -> Origins {
        assert!(first > OriginId::BROKER.0 && forms > 0 && first.checked_add(forms).is_some());
        Origins { first, forms }
    }

    /// The origin of a header block in this form; a form that the protocol does not have has no block.
    #[inline]
    pub const fn origin(self, form: u8) -> OriginId {
        if form < self.forms { OriginId(self.first + form) } else { OriginId::BROKER }
    }

    /// The form of a header block of this origin; `None` where it is not one of the protocol's.
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
    /// Type of the body, as MIME names it.
    ContentType,
    /// Encoding of the body.
    ContentEncoding,
    /// An identifier that a reply repeats, so that its requester finds the request.
    CorrelationId,
    /// Where replies go.
    ReplyTo,
    /// The publisher's name for the message.
    MessageId,
    /// The application's name for the kind of message.
    Type,
    /// The user who sent it.
    UserId,
    /// The application that sent it.
    AppId,
    /// The group of messages that it belongs to, which one consumer of a queue gets at a time.
    GroupId,
    /// The group of which it is the last message: its group, or nothing.
    GroupEnd,
}

const PROPERTIES: usize = 10;

/// A stretch of a message's header text; empty means that the property is not there.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    start: u16,
    len: u16,
}

impl Span {
    /// The stretch of `len` bytes from `start`, or `None` past 65,535.
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
    /// Whose header block it is.
    pub origin: OriginId,
    /// The publisher wants it to survive the broker.
    pub is_persistent: bool,
    /// The reply address is an inbox that this broker made.
    pub replies_to_inbox: bool,
    /// 0 is the least urgent; `None` where the publisher said nothing.
    pub priority: Option<u8>,
    /// How long it may wait in a queue, in milliseconds.
    pub expiration_ms: Option<u32>,
    /// How long it waits in a queue before anybody is given it, in milliseconds, never 0.
    pub delay_ms: Option<NonZeroU32>,
    /// Seconds since the UNIX epoch, as the publisher says.
    pub timestamp: Option<u64>,
    spans: [Span; PROPERTIES],
}

impl Properties {
    /// Properties of which none is set.
    pub fn new(origin: OriginId) -> Properties {
        Properties {
            origin,
            is_persistent: false,
            replies_to_inbox: false,
            priority: None,
            expiration_ms: None,
            delay_ms: None,
            timestamp: None,
            spans: [Span::default(); PROPERTIES],
        }
    }

    /// Says where in the header text the value of `property` stands.
    pub fn set(&mut self, property: Property, span: Span) {
        if let Some(place) = self.spans.get_mut(property as usize) {
            *place = span;
        }
    }

    /// Notes that the message is the last of its group, which its consumer gives up with it.
    pub fn end_group(&mut self) {
        if let Some(group) = self.spans.get(Property::GroupId as usize) {
            self.set(Property::GroupEnd, *group);
        }
    }

    /// Tells whether `property` is there.
    #[inline]
    pub fn has(&self, property: Property) -> bool {
        self.spans.get(property as usize).is_some_and(|span| span.len > 0)
    }

    /// Where the properties stand that are there: each with its number, its start and its length.
    pub(crate) fn spans(&self) -> impl Iterator<Item = (u8, u16, u16)> {
        let there = (0..).zip(&self.spans).filter(|(_, span)| span.len > 0);
        there.map(|(number, Span { start, len })| (number, *start, *len))
    }

    /// Says where the property of this number stands; false where there is none of it.
    pub(crate) fn set_span(&mut self, number: u8, start: u16, len: u16) -> bool {
        let place = self.spans.get_mut(usize::from(number));
        place.map(|place| *place = Span { start, len }).is_some()
    }

    /// The value of `property` in the header text that these properties belong to.
    pub fn property<'t>(&self, property: Property, text: &'t [u8]) -> Option<&'t [u8]> {
        self.spans.get(property as usize)?.of(text)
    }
}
