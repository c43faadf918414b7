//! Reads the headers of a SEND in one pass: routing, instructions to the broker, and the header
//! text that travels with the message.
//!
//! The text borrows the input if it is one contiguous run of lines; else its runs are copied once,
//! into a reused buffer.

use std::borrow::Cow;
use std::num::NonZeroU32;

use imori_core::limits::DELAY_MS_MAX;
use imori_core::message::{OriginId, Properties, Property, Span};
use imori_core::world::World;
use memchr::memchr;

use crate::address::Destination;
use crate::client::{Client, REPLY_LINE_START};
use crate::codec::escape::{trim_spaces, unescape};
use crate::codec::frame::Headers;
use crate::codec::number::{parse_bool, parse_u64, parse_whole};
use crate::commands::arguments::{bad_bool, bad_number, bad_number_as, is_argument};
use crate::commands::foreign::{is_foreign_on_send, refuse_foreign_on_send};
use crate::header_block::{BlockForm, PROPERTIES};
use crate::protocol_error::{PRECONDITION_FAILED, ProtocolError};

/// Maximum length of a header text, since positions in it have 16 bits.
const TEXT_BYTES_MAX: usize = u16::MAX as usize;

/// The headers of a SEND, with their escapes.
#[derive(Debug)]
pub(crate) struct SendHeaders<'a> {
    pub(crate) destination: Option<&'a [u8]>,
    pub(crate) receipt: Option<&'a [u8]>,
    pub(crate) transaction: Option<&'a [u8]>,
    /// The id of the delayed message to cancel; such a SEND publishes nothing.
    pub(crate) cancels: Option<&'a [u8]>,
    /// Artemis' type of the destination: `ANYCAST` or `MULTICAST`.
    pub(crate) kind: Option<&'a [u8]>,
    pub(crate) properties: Properties,
    /// Some header is an argument of a queue.
    pub(crate) has_arguments: bool,
    /// The header text if it is one run of the block; `None` if it is in the scratch buffer.
    run: Option<&'a [u8]>,
}

/// The role of a header in a SEND.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Destination,
    Receipt,
    Transaction,
    MessageId,
    ReplyTo,
    UserId,
    Persistent,
    Priority,
    Expiration,
    Timestamp,
    Delay,
    Cancel,
    Text(Property),
    /// The header is for this broker only and is not forwarded.
    Dropped,
    Argument,
    /// The type of the destination, in Artemis.
    Kind,
    /// The message's number in its group, which receivers get as a user header.
    GroupSequence,
    /// A header that has a meaning only in other brokers.
    Foreign,
    User,
}

/// Returns the role of the header `name`. Known names contain nothing that needs escapes, so `name`
/// is compared as received.
#[inline]
fn field(name: &[u8]) -> Field {
    // By length first, so that most names need at most one comparison.
    match name.len() {
        3 if name == b"ack" => Field::Dropped,
        4 if name == b"type" => Field::Text(Property::Type),
        6 if name == b"app-id" => Field::Text(Property::AppId),
        7 if name == b"receipt" => Field::Receipt,
        7 if name == b"user-id" => Field::UserId,
        7 if name == b"durable" => Field::Argument,
        7 if name == b"x-delay" => Field::Delay,
        8 if name == b"x-cancel" => Field::Cancel,
        8 if name == b"reply-to" => Field::ReplyTo,
        8 if name == b"priority" => Field::Priority,
        9 if name == b"timestamp" => Field::Timestamp,
        10 if name == b"persistent" => Field::Persistent,
        10 if name == b"expiration" => Field::Expiration,
        10 if name == b"message-id" => Field::MessageId,
        11 if name == b"destination" => Field::Destination,
        11 if name == b"transaction" => Field::Transaction,
        11 if name == b"redelivered" => Field::Dropped,
        // The group of JMS; receivers get it as a user header.
        11 if name == b"JMSXGroupID" => Field::Text(Property::GroupId),
        12 if name == b"content-type" => Field::Text(Property::ContentType),
        12 if name == b"JMSXGroupSeq" => Field::GroupSequence,
        12 if name == b"subscription" => Field::Dropped,
        14 if name == b"content-length" => Field::Dropped,
        14 if name == b"correlation-id" => Field::Text(Property::CorrelationId),
        15 if name == b"amqp-message-id" => Field::Text(Property::MessageId),
        16 if name == b"destination-type" => Field::Kind,
        16 if name == b"content-encoding" => Field::Text(Property::ContentEncoding),
        // The names in ActiveMQ and in AMQP 1.0.
        19 if name == b"AMQ_SCHEDULED_DELAY" => Field::Delay,
        20 if name == b"x-opt-delivery-delay" => Field::Delay,
        _ => match name.first() {
            Some(b'x') => x_field(name),
            Some(b'a' | b'e') if is_argument(name) => Field::Argument,
            Some(b'A' | b'J' | b'_') if is_foreign_on_send(name) => Field::Foreign,
            _ => Field::User,
        },
    }
}

fn x_field(name: &[u8]) -> Field {
    // SECURITY AUTH-08: only the broker may write headers about deaths.
    let forged = [&b"x-death"[..], b"x-first-death-", b"x-last-death-"];
    match name {
        _ if forged.iter().any(|prefix| name.starts_with(prefix)) => Field::Dropped,
        _ if is_argument(name) => Field::Argument,
        _ if is_foreign_on_send(name) => Field::Foreign,
        _ => Field::User,
    }
}

/// The header text under construction.
struct Text<'a, 's> {
    block: &'a [u8],
    scratch: &'s mut Vec<u8>,
    /// The first run, as long as it is the only one.
    first: Option<&'a [u8]>,
    /// Start of the open run.
    open: Option<usize>,
    /// Length of the text before the open run.
    len: usize,
}

impl<'a> Text<'a, '_> {
    /// Keeps the line that starts at `start`.
    #[inline]
    fn keep(&mut self, start: usize) {
        self.open.get_or_insert(start);
    }

    /// Returns the position in the text of byte `at` of the open run.
    #[inline]
    fn place(&self, at: usize) -> usize {
        self.len + (at - self.open.unwrap_or(at))
    }

    /// Drops the line that starts at `start`.
    #[inline]
    fn cut(&mut self, start: usize) {
        let Some(open) = self.open.take() else { return };
        let run = self.block.get(open..start).unwrap_or_default();
        if self.len == 0 {
            self.first = Some(run);
        } else {
            self.copy_first();
            self.scratch.extend_from_slice(run);
        }
        self.len += run.len();
    }

    /// Replaces the line that starts at `start` by `line`; returns the position of `line` in the
    /// text.
    #[inline]
    fn replace(&mut self, start: usize, line: &[u8]) -> usize {
        self.cut(start);
        self.copy_first();
        self.scratch.extend_from_slice(line);
        let at = self.len;
        self.len += line.len();
        at
    }

    #[inline]
    fn copy_first(&mut self) {
        if let Some(first) = self.first.take() {
            self.scratch.extend_from_slice(first);
        }
    }
}

impl<'a> SendHeaders<'a> {
    /// Creates an empty value.
    #[inline]
    pub(crate) fn new() -> Self {
        SendHeaders {
            destination: None,
            receipt: None,
            transaction: None,
            cancels: None,
            kind: None,
            properties: Properties::new(OriginId::BROKER),
            has_arguments: false,
            run: None,
        }
    }

    /// Reads the headers of a SEND. `scratch` must be empty.
    #[inline]
    pub(crate) fn read<W: World>(
        &mut self,
        client: &mut Client,
        world: &W,
        headers: &Headers<'a>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), ProtocolError> {
        let block = headers.block;
        let form = BlockForm::sent_in(client.version, headers.is_plain);
        self.properties.origin = client.settings.origins.origin(form as u8);
        let mut text = Text { block, scratch, first: None, open: None, len: 0 };
        let (mut seen, mut ends_group) = (Seen::default(), false);
        for span in headers.spans {
            let name = block.get(span.start..span.colon).unwrap_or_default();
            let value = block.get(span.colon + 1..span.end).unwrap_or_default();
            let value = if headers.is_trimmed { trim_spaces(value) } else { value };
            let field = field(name);
            if field == Field::User {
                text.keep(span.start);
                continue;
            }
            // STOMP 1.2, Repeated Header Entries: only the first counts. A repeated property is not
            // forwarded, as receivers might read it instead.
            if seen.again(field) {
                text.cut(span.start);
                continue;
            }
            match field {
                Field::Destination => self.destination = Some(value),
                Field::Receipt => self.receipt = Some(value),
                Field::Transaction => self.transaction = Some(value),
                Field::Cancel => self.cancels = Some(value),
                // Not forwarded: a client that sends the message on would delay it again.
                Field::Delay => self.properties.delay_ms = delay(name, value)?,
                Field::Dropped => {}
                // Not forwarded: the destination already says where the message goes.
                Field::Kind => self.kind = Some(value),
                Field::GroupSequence => {
                    ends_group = value == b"-1";
                    text.keep(span.start);
                    continue;
                }
                Field::Foreign => {
                    refuse_foreign_on_send(name, value)?;
                    text.keep(span.start);
                    continue;
                }
                Field::MessageId => return Err(message_id_refused()),
                Field::ReplyTo if value.starts_with(b"/temp-queue/") => {
                    let line = inbox_line(client, world, headers, value)?;
                    let at = text.replace(span.start, line);
                    let key_len = line.len() - REPLY_LINE_START.len() - 1;
                    self.set(Property::ReplyTo, at + REPLY_LINE_START.len(), key_len)?;
                    self.properties.replies_to_inbox = true;
                    continue;
                }
                _ => {
                    text.keep(span.start);
                    let at = text.place(span.end - value.len());
                    self.property(client, headers, field, value, at)?;
                    continue;
                }
            }
            text.cut(span.start);
        }
        text.cut(block.len());
        let (run, len) = (text.first, text.len);
        if len > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        self.run = run;
        if headers.is_escaped {
            self.unescape_properties(scratch)?;
        }
        if ends_group {
            self.properties.end_group();
        }
        Ok(())
    }

    /// Returns the header text; `scratch` is the buffer that was passed to `read`.
    #[inline]
    pub(crate) fn text<'t>(&self, scratch: &'t [u8]) -> &'t [u8]
    where
        'a: 't,
    {
        self.run.unwrap_or(scratch)
    }

    /// Reads a property whose line is also forwarded.
    #[inline]
    fn property(
        &mut self,
        client: &Client,
        headers: &Headers<'a>,
        field: Field,
        value: &'a [u8],
        at: usize,
    ) -> Result<(), ProtocolError> {
        let number = |name, max: u64| {
            let number = parse_u64(value).filter(|number| *number <= max);
            number.ok_or_else(|| bad_number(name, value, 0, max))
        };
        let properties = &mut self.properties;
        match field {
            Field::Text(property) => return self.set(property, at, value.len()),
            Field::ReplyTo => return self.set(Property::ReplyTo, at, value.len()),
            Field::UserId => {
                check_user(client, headers, value)?;
                return self.set(Property::UserId, at, value.len());
            }
            // An unreadable value is refused: ignoring it would silently publish with less safety
            // than requested.
            Field::Persistent => {
                properties.is_persistent = parse_bool(value).ok_or_else(|| bad_bool("persistent", value))?;
            }
            Field::Priority => {
                properties.priority = u8::try_from(number("priority", u64::from(u8::MAX))?).ok();
            }
            Field::Expiration => properties.expiration_ms = Some(expiration(value)?),
            Field::Timestamp => {
                let seconds = parse_whole(value).ok_or_else(|| bad_number("timestamp", value, 0, u64::MAX));
                properties.timestamp = Some(seconds?);
            }
            Field::Argument => self.has_arguments = true,
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn set(&mut self, property: Property, at: usize, len: usize) -> Result<(), ProtocolError> {
        self.properties.set(property, Span::new(at, len).ok_or_else(too_long)?);
        Ok(())
    }

    /// Appends the unescaped values of properties with escapes after the lines.
    #[cold]
    fn unescape_properties(&mut self, scratch: &mut Vec<u8>) -> Result<(), ProtocolError> {
        if let Some(run) = self.run.take() {
            scratch.extend_from_slice(run);
        }
        let mut has_separator = false;
        for property in PROPERTIES.map(|(property, _)| property).into_iter().chain([Property::GroupId]) {
            let value = match self.properties.property(property, scratch) {
                Some(value) if memchr(b'\\', value).is_some() => unescape(value).into_owned(),
                _ => continue,
            };
            if !has_separator {
                scratch.push(b'\0');
                has_separator = true;
            }
            self.set(property, scratch.len(), value.len())?;
            scratch.extend_from_slice(&value);
        }
        if scratch.len() > TEXT_BYTES_MAX { Err(too_long()) } else { Ok(()) }
    }
}

/// Bit set of the headers read so far.
#[derive(Debug, Default)]
struct Seen(u32);

impl Seen {
    /// Adds `field`; returns whether it was present already.
    #[inline]
    fn again(&mut self, field: Field) -> bool {
        let bit = match field {
            Field::Destination => 0,
            Field::Receipt => 1,
            Field::Transaction => 2,
            Field::ReplyTo => 3,
            Field::UserId => 4,
            Field::Persistent => 5,
            Field::Priority => 6,
            Field::Expiration => 7,
            Field::Timestamp => 8,
            Field::Delay => 30,
            Field::Cancel => 9,
            Field::GroupSequence => 29,
            Field::Text(property) => 10 + property as u32,
            Field::Kind => 31,
            Field::MessageId | Field::Dropped | Field::Argument | Field::Foreign | Field::User => {
                return false;
            }
        };
        let again = self.0 >> bit & 1 == 1;
        self.0 |= 1 << bit;
        again
    }
}

/// Returns the `reply-to` line by which other clients answer to an inbox of this connection.
#[inline]
fn inbox_line<'s, W: World>(
    client: &'s mut Client,
    world: &W,
    headers: &Headers<'_>,
    written: &[u8],
) -> Result<&'s [u8], ProtocolError> {
    if client.inboxes.known(written).is_none() {
        let value = if headers.is_escaped { unescape(written) } else { Cow::Borrowed(written) };
        match Destination::parse(&value) {
            Ok(Destination::TempQueue(name)) => client.open_inbox(world, written, &name)?,
            Ok(_) => {}
            Err(error) => return Err(ProtocolError::new("Invalid destination", error)),
        }
    }
    Ok(client.inboxes.known(written).unwrap_or_default())
}

/// Parses the time to live of a message in milliseconds.
fn expiration(value: &[u8]) -> Result<u32, ProtocolError> {
    parse_u64(value)
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(|| bad_number_as(PRECONDITION_FAILED, "expiration", value, 0, u64::from(u32::MAX)))
}

/// Parses the delay of a message in milliseconds; 0 means none.
fn delay(name: &[u8], value: &[u8]) -> Result<Option<NonZeroU32>, ProtocolError> {
    let milliseconds = parse_u64(value).filter(|number| *number <= DELAY_MS_MAX);
    let Some(milliseconds) = milliseconds.and_then(|number| u32::try_from(number).ok()) else {
        return Err(bad_number(&String::from_utf8_lossy(name), value, 0, DELAY_MS_MAX));
    };
    Ok(NonZeroU32::new(milliseconds))
}

/// SECURITY AUTH-08: a client may name only its own user.
fn check_user(client: &Client, headers: &Headers<'_>, value: &[u8]) -> Result<(), ProtocolError> {
    let value = if headers.is_escaped { unescape(value) } else { Cow::Borrowed(value) };
    if *value == *client.identity.user.as_bytes() {
        return Ok(());
    }
    let user = &client.identity.user;
    let text = format_args!(
        "header `user-id` is `{}` but this connection is logged in as `{user}`; send that or leave it out",
        crate::codec::error::Excerpt::new(&value)
    );
    Err(ProtocolError::last(PRECONDITION_FAILED, text))
}

#[cold]
fn message_id_refused() -> ProtocolError {
    let text = "header `message-id` is not allowed in SEND, as the broker makes it; use `amqp-message-id` for one of \
                your own";
    ProtocolError::new("Invalid header", text)
}

#[cold]
fn too_long() -> ProtocolError {
    let text = format_args!("headers that travel with a message are over {TEXT_BYTES_MAX} bytes; send fewer");
    ProtocolError::new("Invalid header", text)
}
