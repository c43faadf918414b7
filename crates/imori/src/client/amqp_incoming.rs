//! Decodes what an AMQP 0-9-1 broker sends.

use imori_amqp091::codec::error::DecodeError;
use imori_amqp091::codec::frame::{Frame, FrameType, Step, decode};
use imori_amqp091::codec::method::MethodId;
use imori_amqp091::codec::methods::{Method, basic};
use imori_amqp091::codec::properties::{BasicProperties, ContentHeader};
use imori_amqp091::limits::FRAME_BYTES_MAX;

use super::amqp_message::received;
use super::conversation::Received;
use super::error::ClientError;

/// One frame or message from the broker.
pub(super) enum Incoming {
    Delivery(Received),
    /// The broker confirmed all messages up to this number.
    Taken(u64),
    /// The broker closed a channel, with this code and text.
    ChannelClosed(u16, String),
    /// Another method.
    Answer(MethodId),
    Nothing,
}

/// Decodes the first item of the input and returns its length too; `None` until all of it has
/// arrived.
pub(super) fn take(input: &[u8]) -> Result<Option<(Incoming, usize)>, ClientError> {
    let Some(first) = frame(input, 0)? else { return Ok(None) };
    if first.kind != FrameType::Method {
        return Ok(Some((Incoming::Nothing, first.len())));
    }
    let incoming = match Method::decode(first.payload).map_err(wrong)? {
        Method::BasicDeliver(deliver) => return take_delivery(&deliver, input, first.len()),
        Method::BasicReturn(returned) => {
            return Err(ClientError::Refused(format!(
                "no queue gets the message ({} {})",
                returned.reply_code, returned.reply_text
            )));
        }
        Method::BasicAck(ack) => Incoming::Taken(ack.delivery_tag),
        Method::BasicNack(_) => {
            return Err(ClientError::Refused(String::from("the queue takes no message now")));
        }
        Method::BasicCancel(_) => {
            return Err(ClientError::Refused(String::from("the queue is gone, and its consumers with it")));
        }
        Method::ConnectionClose(close) => {
            return Err(ClientError::Refused(String::from(close.reply_text)));
        }
        Method::ChannelClose(close) => {
            Incoming::ChannelClosed(close.reply_code, String::from(close.reply_text))
        }
        method => Incoming::Answer(method.id()),
    };
    Ok(Some((incoming, first.len())))
}

/// Decodes the delivery at the start of the input; `None` until header and body have arrived.
fn take_delivery(
    deliver: &basic::Deliver<'_>,
    input: &[u8],
    mut used: usize,
) -> Result<Option<(Incoming, usize)>, ClientError> {
    let Some(header) = frame(input, used)? else { return Ok(None) };
    used += header.len();
    let content = ContentHeader::decode(header.payload).map_err(wrong)?;
    let properties = BasicProperties::read(content.properties).map_err(wrong)?;
    let mut parts: Vec<&[u8]> = Vec::new();
    let mut len = 0;
    while len < content.body_len {
        let Some(part) = frame(input, used)? else { return Ok(None) };
        used += part.len();
        len += part.payload.len() as u64;
        parts.push(part.payload);
    }
    Ok(Some((Incoming::Delivery(received(deliver, &properties, parts.concat())), used)))
}

/// The frame at offset `at` of the input; `None` until all of it has arrived.
fn frame(input: &[u8], at: usize) -> Result<Option<Frame<'_>>, ClientError> {
    match decode(input.get(at..).unwrap_or_default(), FRAME_BYTES_MAX as usize).map_err(wrong)? {
        Step::Frame(frame) => Ok(Some(frame)),
        Step::Incomplete { .. } => Ok(None),
    }
}

fn wrong(error: DecodeError) -> ClientError {
    ClientError::Decode("AMQP 0-9-1", error.to_string().into())
}
