//! The sections of a message (AMQP 1.0, 3.2), and a reader that checks their order.

use crate::codec::check::extent;
use crate::codec::composite::{Composite, descriptor};
use crate::codec::composites::{Header, Properties};
use crate::codec::constructor::{BINARY_8, BINARY_32, STRING_8, STRING_32};
use crate::codec::error::{DecodeError, ValueError};
use crate::codec::field::Field;
use crate::codec::input::Input;
use crate::codec::push::push_descriptor;
use crate::codec::value::{Descriptor, List, Map, Value};

/// A kind of section; its value is the descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum SectionKind {
    /// `header`.
    Header = 0x70,
    /// `delivery-annotations`.
    DeliveryAnnotations = 0x71,
    /// `message-annotations`.
    MessageAnnotations = 0x72,
    /// `properties`.
    Properties = 0x73,
    /// `application-properties`.
    ApplicationProperties = 0x74,
    /// `data`.
    Data = 0x75,
    /// `amqp-sequence`.
    AmqpSequence = 0x76,
    /// `amqp-value`.
    AmqpValue = 0x77,
    /// `footer`.
    Footer = 0x78,
}

const KINDS: [(SectionKind, &str); 9] = [
    (SectionKind::Header, "amqp:header:list"),
    (SectionKind::DeliveryAnnotations, "amqp:delivery-annotations:map"),
    (SectionKind::MessageAnnotations, "amqp:message-annotations:map"),
    (SectionKind::Properties, "amqp:properties:list"),
    (SectionKind::ApplicationProperties, "amqp:application-properties:map"),
    (SectionKind::Data, "amqp:data:binary"),
    (SectionKind::AmqpSequence, "amqp:amqp-sequence:list"),
    (SectionKind::AmqpValue, "amqp:amqp-value:*"),
    (SectionKind::Footer, "amqp:footer:map"),
];

impl SectionKind {
    fn of(descriptor: &Descriptor<'_>) -> Option<SectionKind> {
        let is_it = |(kind, symbol): &(SectionKind, &str)| match descriptor {
            Descriptor::Code(code) => *code == *kind as u64,
            Descriptor::Name(name) => name.0 == *symbol,
        };
        KINDS.into_iter().find(is_it).map(|(kind, _)| kind)
    }

    /// Appends the descriptor of the section; the caller appends the value.
    #[inline]
    pub fn push(self, out: &mut Vec<u8>) {
        push_descriptor(out, Descriptor::Code(self as u64));
    }

    /// Whether the section is part of the body.
    pub fn is_body(self) -> bool {
        matches!(self, SectionKind::Data | SectionKind::AmqpSequence | SectionKind::AmqpValue)
    }
}

/// A section; the value borrows the input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Section<'a> {
    /// `header`.
    Header(Header),
    /// `delivery-annotations`.
    DeliveryAnnotations(Map<'a>),
    /// `message-annotations`.
    MessageAnnotations(Map<'a>),
    /// `properties`.
    Properties(Properties<'a>),
    /// `application-properties`.
    ApplicationProperties(Map<'a>),
    /// `data`.
    Data(&'a [u8]),
    /// `amqp-sequence`.
    AmqpSequence(List<'a>),
    /// `amqp-value`.
    AmqpValue(Value<'a>),
    /// `footer`.
    Footer(Map<'a>),
}

/// A reader of the sections of a message.
#[derive(Debug, Clone, Copy)]
pub struct Sections<'a> {
    input: Input<'a>,
    last: Option<SectionKind>,
}

impl<'a> Sections<'a> {
    /// Reads the sections of a whole message, or of a run of whole sections.
    pub fn new(bytes: &'a [u8]) -> Sections<'a> {
        Sections { input: Input::new(bytes), last: None }
    }

    /// The bytes of the sections not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.input.rest()
    }

    /// The kind of the section read last.
    pub fn last_kind(&self) -> Option<SectionKind> {
        self.last
    }

    /// Reads the next section and checks everything in it; `None` at the end.
    ///
    /// # Errors
    /// [`DecodeError`], for instance if a section is out of order.
    pub fn next_section(&mut self) -> Result<Option<Section<'a>>, DecodeError> {
        let Some(kind) = self.begin()? else { return Ok(None) };
        let input = &mut self.input;
        let section = match kind {
            SectionKind::Header => Section::Header(Header::read_list(input)?),
            SectionKind::Properties => Section::Properties(Properties::read_list(input)?),
            SectionKind::DeliveryAnnotations => Section::DeliveryAnnotations(value(input)?),
            SectionKind::MessageAnnotations => Section::MessageAnnotations(value(input)?),
            SectionKind::ApplicationProperties => Section::ApplicationProperties(value(input)?),
            SectionKind::Footer => Section::Footer(value(input)?),
            SectionKind::Data => Section::Data(value(input)?),
            SectionKind::AmqpValue => Section::AmqpValue(value(input)?),
            SectionKind::AmqpSequence => match value(input)? {
                Value::List(list) => Section::AmqpSequence(list),
                _ => return Err(DecodeError::SectionValue { needed: "list" }),
            },
        };
        Ok(Some(section))
    }

    /// Returns the content of the body if it is the only section left and holds just bytes or text.
    pub fn sole_content(&self) -> Option<&'a [u8]> {
        let mut rest = *self;
        let kind = rest.begin().ok()??;
        let octet = rest.input.octet().ok()?;
        match (kind, octet) {
            (SectionKind::Data | SectionKind::AmqpValue, BINARY_8 | BINARY_32)
            | (SectionKind::AmqpValue, STRING_8 | STRING_32) => {}
            _ => return None,
        }
        let content = rest.input.variable(octet).ok()?;
        rest.input.is_empty().then_some(content)
    }

    /// Skips already checked sections up to the one of this kind; returns its value with the
    /// constructor.
    pub(crate) fn find_checked(mut self, kind: SectionKind) -> Option<&'a [u8]> {
        loop {
            let found = self.begin().ok()??;
            if found >= kind {
                return (found == kind).then_some(self.input.rest());
            }
            let octet = self.input.octet().ok()?;
            self.input.bytes(extent(octet, self.input.rest()).ok()?).ok()?;
        }
    }

    /// Reads a descriptor and checks the order of sections.
    fn begin(&mut self) -> Result<Option<SectionKind>, DecodeError> {
        if self.input.is_empty() {
            return Ok(None);
        }
        let octet = self.input.octet()?;
        let found = descriptor(octet, &mut self.input)?;
        let kind =
            SectionKind::of(&found).ok_or(DecodeError::OtherDescriptor { needed: "section of a message" })?;
        let follows = match self.last {
            None => true,
            // AMQP 1.0, 3.2: one or more data sections, one or more amqp-sequence sections, or a single amqp-value.
            Some(last) if last.is_body() && kind.is_body() => last == kind && kind != SectionKind::AmqpValue,
            Some(last) => last < kind,
        };
        if !follows {
            return Err(DecodeError::SectionOrder);
        }
        self.last = Some(kind);
        Ok(Some(kind))
    }
}

fn value<'a, F: Field<'a>>(input: &mut Input<'a>) -> Result<F, DecodeError> {
    let octet = input.octet()?;
    F::read(octet, input).map_err(|error| match error {
        DecodeError::Value(ValueError::OtherType { needed, .. }) => DecodeError::SectionValue { needed },
        other => other,
    })
}
