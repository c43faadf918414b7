//! Decodes the frames of an internal client.

use bytes::{Buf, Bytes, BytesMut};

use super::encoder::kind;
use crate::message::{Address, HeaderReader, OriginId, Property, Value};
use crate::record::MessageRecord;
use crate::world::World;

/// A message delivered to an internal client.
#[derive(Debug, Clone, PartialEq)]
pub struct IncomingMessage {
    /// The number of its subscription, as returned by
    /// [`Client::subscribe`](super::Client::subscribe) and similar methods.
    pub subscription: u64,
    /// The number of the delivery, by which it is settled.
    pub number: u64,
    /// Whether the client must settle the delivery.
    pub settles: bool,
    /// Whether the message was delivered before.
    pub is_redelivered: bool,
    /// The number of failed deliveries.
    pub failures: u32,
    /// The address it was published to.
    pub address: Address,
    /// The address for an answer.
    pub reply_to: Option<Address>,
    /// The id by which the requester recognises the answer.
    pub correlation_id: Option<Vec<u8>>,
    /// The MIME type of the body.
    pub content_type: Option<Vec<u8>>,
    /// User headers with text values, in order.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// The body.
    pub body: Bytes,
}

/// A notification to an internal client.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// A message was delivered.
    Message(IncomingMessage),
    /// The queue of the subscription with this number is gone.
    Cancelled(u64),
    /// The publish with this number is as safe as promised.
    Confirmed(u64),
    /// The broker has ended the client, for this reason.
    Cut(String),
}

/// A buffer of frames from the outbound half, which arrive in pieces of any size.
#[derive(Debug, Default)]
pub struct Frames(BytesMut);

impl Frames {
    /// Appends a piece of the encoder's output.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The number of bytes not yet decoded.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Decodes the next frame, if it is complete. `world` supplies the header readers of all
    /// protocols.
    ///
    /// # Errors
    /// The frame was not written by [`InternalEncoder`](super::InternalEncoder), which is a bug in
    /// the broker.
    pub fn next<W: World>(&mut self, world: &W) -> Result<Option<Incoming>, &'static str> {
        self.next_by(|origin| world.header_reader(origin))
    }

    /// Decodes the next frame as [`Frames::next`] does, without a world: `reader_of` supplies the
    /// header readers.
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
