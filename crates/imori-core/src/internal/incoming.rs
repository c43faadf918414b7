//! Frames of an internal client, read back into values.

use bytes::{Buf, Bytes, BytesMut};

use super::encoder::kind;
use crate::message::{Address, HeaderReader, OriginId, Property, Value};
use crate::record::MessageRecord;
use crate::world::World;

/// A message for an internal client.
#[derive(Debug, Clone, PartialEq)]
pub struct IncomingMessage {
    /// The subscription, as [`Client::subscribe`](super::Client::subscribe) and its like number them.
    pub subscription: u64,
    /// The delivery's number, by which it is settled.
    pub number: u64,
    /// The client has to settle the delivery.
    pub settles: bool,
    /// Somebody was given the message before.
    pub is_redelivered: bool,
    /// Deliveries of the message that failed.
    pub failures: u32,
    /// The address that the message was published to.
    pub address: Address,
    /// The address that an answer goes to.
    pub reply_to: Option<Address>,
    /// The text by which the requester knows an answer.
    pub correlation_id: Option<Vec<u8>>,
    /// The body's type, as MIME names it.
    pub content_type: Option<Vec<u8>>,
    /// User headers with text values, in order.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// The body.
    pub body: Bytes,
}

/// Something that an internal client is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// A message came.
    Message(IncomingMessage),
    /// The queue of this subscription is gone.
    Cancelled(u64),
    /// A publish with this number is as safe as was asked for.
    Confirmed(u64),
    /// The broker has ended the client, for this reason.
    Cut(String),
}

/// Frames as they leave the outbound half, in pieces of any size.
#[derive(Debug, Default)]
pub struct Frames(BytesMut);

impl Frames {
    /// Takes a piece of what the encoder wrote.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Bytes of frames that were not read yet.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Reads the next frame, if it is whole. `world` knows the header blocks of every protocol.
    ///
    /// # Errors
    /// The frame is none of [`InternalEncoder`](super::InternalEncoder), which is a fault in the broker's code.
    pub fn next<W: World>(&mut self, world: &W) -> Result<Option<Incoming>, &'static str> {
        self.next_by(|origin| world.header_reader(origin))
    }

    /// Reads the next frame as [`Frames::next`] does, where no world is at hand: `reader_of` knows the header blocks.
    ///
    /// # Errors
    /// As [`Frames::next`].
    pub fn next_by<'r>(
        &mut self,
        reader_of: impl Fn(OriginId) -> &'r dyn HeaderReader,
    ) -> Result<Option<Incoming>, &'static str> {
        let Some((len, rest)) = self.0.split_first_chunk() else { return Ok(None) };
        let len = u32::from_le_bytes(*len) as usize;
        if rest.len() < len {
            return Ok(None);
        }
        self.0.advance(4);
        let frame = self.0.split_to(len).freeze();
        read(&reader_of, &frame).map(Some).ok_or("a frame of an internal client cannot be read")
    }
}

fn read<'r>(reader_of: &impl Fn(OriginId) -> &'r dyn HeaderReader, frame: &Bytes) -> Option<Incoming> {
    let (kind, rest) = frame.split_first()?;
    Some(match *kind {
        kind::DELIVERY => Incoming::Message(message(reader_of, frame, rest)?),
        kind::CANCELLED => Incoming::Cancelled(number(rest)?.0),
        kind::CONFIRMED => Incoming::Confirmed(number(rest)?.0),
        kind::CUT => Incoming::Cut(String::from_utf8_lossy(rest).into_owned()),
        _ => return None,
    })
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), rest))
}

fn message<'r>(
    reader_of: &impl Fn(OriginId) -> &'r dyn HeaderReader,
    frame: &Bytes,
    fields: &[u8],
) -> Option<IncomingMessage> {
    let (subscription, rest) = number(fields)?;
    let (number, rest) = number(rest)?;
    let ([settles, redelivered], rest) = rest.split_first_chunk()?;
    let (failures, payload) = rest.split_first_chunk()?;
    let record = MessageRecord::decode(payload).ok()?;
    let view = record.view();
    let reader = reader_of(record.properties.origin);
    let reply_to = reader.reply_address(&view).map(|(exchange, subject)| Address::new(&exchange, &subject));
    let property = |property| view.property(property).map(<[u8]>::to_vec);
    Some(IncomingMessage {
        subscription,
        number,
        settles: *settles != 0,
        is_redelivered: *redelivered != 0,
        failures: u32::from_le_bytes(*failures),
        reply_to,
        correlation_id: property(Property::CorrelationId),
        content_type: property(Property::ContentType),
        headers: headers(reader, view.text),
        body: frame.slice_ref(record.body),
        address: record.address,
    })
}

fn headers(reader: &dyn HeaderReader, text: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut headers = Vec::new();
    reader.visit_headers(text, &mut |name, value| {
        if let Value::Text(text) = value {
            headers.push((name.into_owned(), text.into_owned()));
        }
    });
    headers
}
