//! The statuses that JetStream sends in a header block: ends of pull requests, heartbeats, refusals
//! of direct gets.

use std::borrow::Cow;

use imori_streams::duration::Nanos;

use crate::codec::headers::{BLOCK_END, push_header, push_number_header};
use crate::codec::number::push_u64;

/// A status without a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status<'a> {
    /// The consumer is idle.
    IdleHeartbeat {
        /// The last sequence of the consumer.
        consumer_sequence: u64,
        /// The last sequence of the stream that was delivered.
        stream_sequence: u64,
        /// The reply subject of a flow control request that was not answered so far.
        stalled: Option<&'a str>,
    },
    /// The client answers to the reply subject when it has read everything before.
    FlowControlRequest,
    /// A direct get of several messages is complete.
    EndOfBatch {
        /// Messages that match and were not sent.
        pending: u64,
        /// The sequence of the last message that was sent.
        last_sequence: u64,
        /// The sequence up to which messages were looked for, if last messages of subjects were.
        up_to_sequence: Option<u64>,
    },
    /// A request cannot be read, or contradicts itself or its consumer.
    BadRequest(Cow<'a, str>),
    /// A pull request that does not wait found nothing.
    NoMessages,
    /// A direct get found nothing.
    MessageNotFound,
    /// A direct get of several messages found nothing.
    NoResults,
    /// A pull request expired.
    RequestTimeout(Remainder),
    /// The subscriber of a pull request is gone.
    InterestExpired(Remainder),
    /// Requests before this one will take all messages there are.
    RequestsPending,
    /// A direct get has no body.
    EmptyRequest,
    /// The body of a direct get is not JSON.
    MalformedRequest,
    /// A direct get contradicts itself.
    DirectBadRequest,
    /// A pull request was made to a push consumer.
    PushBased,
    /// The consumer already has its maximum of waiting pull requests.
    ExceededMaxWaiting,
    /// A pull request is for more messages than the consumer allows.
    ExceededMaxRequestBatch(i64),
    /// A pull request waits longer than the consumer allows.
    ExceededMaxRequestExpires(Nanos),
    /// A pull request is for more bytes than the consumer allows.
    ExceededMaxRequestMaxBytes(i64),
    /// The next message has more bytes than the pull request has left.
    MessageSizeExceedsMaxBytes(Remainder),
    /// The pull request got all its messages, and has bytes left.
    BatchCompleted(Remainder),
    /// The consumer was deleted.
    ConsumerDeleted,
    /// Another server answers for the consumer.
    LeadershipChange,
    /// The server stops.
    ServerShutdown(Remainder),
    /// A request needs a newer server.
    RequiredApiLevel,
    /// A direct get would read more subjects than allowed.
    TooManyResults,
    /// Another client has the pin now.
    WrongPinId(Remainder),
    /// The pin of the request is not the one of the group.
    PinIdMismatch,
    /// The stream has too many publishes in flight.
    TooManyRequests,
}

/// The part of a pull request that was not delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Remainder {
    /// Messages.
    pub messages: u64,
    /// Bytes; 0 for a request without a limit of bytes.
    pub bytes: u64,
}

impl Status<'_> {
    /// The number of the status.
    pub fn code(&self) -> u16 {
        match self {
            Self::IdleHeartbeat { .. } | Self::FlowControlRequest => 100,
            Self::EndOfBatch { .. } => 204,
            Self::BadRequest(_) => 400,
            Self::NoMessages | Self::MessageNotFound | Self::NoResults => 404,
            Self::RequestTimeout(_)
            | Self::InterestExpired(_)
            | Self::RequestsPending
            | Self::EmptyRequest
            | Self::MalformedRequest
            | Self::DirectBadRequest => 408,
            Self::PushBased
            | Self::ExceededMaxWaiting
            | Self::ExceededMaxRequestBatch(_)
            | Self::ExceededMaxRequestExpires(_)
            | Self::ExceededMaxRequestMaxBytes(_)
            | Self::MessageSizeExceedsMaxBytes(_)
            | Self::BatchCompleted(_)
            | Self::ConsumerDeleted
            | Self::LeadershipChange
            | Self::ServerShutdown(_) => 409,
            Self::RequiredApiLevel => 412,
            Self::TooManyResults => 413,
            Self::WrongPinId(_) | Self::PinIdMismatch => 423,
            Self::TooManyRequests => 429,
        }
    }

    /// The words of the status, as clients compare them.
    pub fn description(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Self::IdleHeartbeat { .. } => "Idle Heartbeat",
            Self::FlowControlRequest => "FlowControl Request",
            Self::EndOfBatch { .. } => "EOB",
            Self::BadRequest(reason) => return format!("Bad Request - {reason}").into(),
            Self::NoMessages => "No Messages",
            Self::MessageNotFound => "Message Not Found",
            Self::NoResults => "No Results",
            Self::RequestTimeout(_) => "Request Timeout",
            Self::InterestExpired(_) => "Interest Expired",
            Self::RequestsPending => "Requests Pending",
            Self::EmptyRequest => "Empty Request",
            Self::MalformedRequest => "Malformed Request",
            Self::DirectBadRequest => "Bad Request",
            Self::PushBased => "Consumer is push based",
            Self::ExceededMaxWaiting => "Exceeded MaxWaiting",
            Self::ExceededMaxRequestBatch(max) => return format!("Exceeded MaxRequestBatch of {max}").into(),
            Self::ExceededMaxRequestExpires(max) => {
                return format!("Exceeded MaxRequestExpires of {max}").into();
            }
            Self::ExceededMaxRequestMaxBytes(max) => {
                return format!("Exceeded MaxRequestMaxBytes of {max}").into();
            }
            Self::MessageSizeExceedsMaxBytes(_) => "Message Size Exceeds MaxBytes",
            Self::BatchCompleted(_) => "Batch Completed",
            Self::ConsumerDeleted => "Consumer Deleted",
            Self::LeadershipChange => "Leadership Change",
            Self::ServerShutdown(_) => "Server Shutdown",
            Self::RequiredApiLevel => "Required Api Level",
            Self::TooManyResults => "Too Many Results",
            Self::WrongPinId(_) => "Nats-Wrong-Pin-Id",
            Self::PinIdMismatch => "Nats-Pin-Id mismatch",
            Self::TooManyRequests => "Too Many Requests",
        })
    }

    /// Appends the header block.
    pub fn push(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"NATS/1.0 ");
        push_u64(out, u64::from(self.code()));
        out.push(b' ');
        // SECURITY XPI-01: a reason quotes what the client sent, and may not end the line.
        let description = self.description();
        out.extend(description.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
        out.extend_from_slice(BLOCK_END);
        match self {
            Self::IdleHeartbeat { consumer_sequence, stream_sequence, stalled } => {
                push_number_header(out, "Nats-Last-Consumer", *consumer_sequence);
                push_number_header(out, "Nats-Last-Stream", *stream_sequence);
                if let Some(stalled) = stalled {
                    push_header(out, b"Nats-Consumer-Stalled", stalled.as_bytes());
                }
            }
            Self::EndOfBatch { pending, last_sequence, up_to_sequence } => {
                push_number_header(out, "Nats-Num-Pending", *pending);
                push_number_header(out, "Nats-Last-Sequence", *last_sequence);
                if let Some(sequence) = up_to_sequence {
                    push_number_header(out, "Nats-UpTo-Sequence", *sequence);
                }
            }
            Self::RequestTimeout(remainder)
            | Self::InterestExpired(remainder)
            | Self::MessageSizeExceedsMaxBytes(remainder)
            | Self::BatchCompleted(remainder)
            | Self::ServerShutdown(remainder)
            | Self::WrongPinId(remainder) => {
                push_number_header(out, "Nats-Pending-Messages", remainder.messages);
                push_number_header(out, "Nats-Pending-Bytes", remainder.bytes);
            }
            _ => {}
        }
        out.extend_from_slice(BLOCK_END);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_the_words_of_nats_server() {
        let rest = Remainder { messages: 3, bytes: 40 };
        for (status, expected) in [
            (
                Status::IdleHeartbeat { consumer_sequence: 1, stream_sequence: 2, stalled: None },
                "100 Idle Heartbeat\r\nNats-Last-Consumer: 1\r\nNats-Last-Stream: 2\r\n\r\n",
            ),
            (
                Status::IdleHeartbeat { consumer_sequence: 0, stream_sequence: 0, stalled: Some("$JS.FC.x") },
                concat!(
                    "100 Idle Heartbeat\r\nNats-Last-Consumer: 0\r\nNats-Last-Stream: 0\r\n",
                    "Nats-Consumer-Stalled: $JS.FC.x\r\n\r\n",
                ),
            ),
            (Status::FlowControlRequest, "100 FlowControl Request\r\n\r\n"),
            (
                Status::EndOfBatch { pending: 1, last_sequence: 2, up_to_sequence: None },
                "204 EOB\r\nNats-Num-Pending: 1\r\nNats-Last-Sequence: 2\r\n\r\n",
            ),
            (
                Status::EndOfBatch { pending: 1, last_sequence: 2, up_to_sequence: Some(3) },
                "204 EOB\r\nNats-Num-Pending: 1\r\nNats-Last-Sequence: 2\r\nNats-UpTo-Sequence: 3\r\n\r\n",
            ),
            (Status::BadRequest("a\r\nb".into()), "400 Bad Request - a  b\r\n\r\n"),
            (Status::NoMessages, "404 No Messages\r\n\r\n"),
            (Status::MessageNotFound, "404 Message Not Found\r\n\r\n"),
            (Status::NoResults, "404 No Results\r\n\r\n"),
            (
                Status::RequestTimeout(rest),
                "408 Request Timeout\r\nNats-Pending-Messages: 3\r\nNats-Pending-Bytes: 40\r\n\r\n",
            ),
            (
                Status::InterestExpired(rest),
                "408 Interest Expired\r\nNats-Pending-Messages: 3\r\nNats-Pending-Bytes: 40\r\n\r\n",
            ),
            (Status::RequestsPending, "408 Requests Pending\r\n\r\n"),
            (Status::EmptyRequest, "408 Empty Request\r\n\r\n"),
            (Status::MalformedRequest, "408 Malformed Request\r\n\r\n"),
            (Status::DirectBadRequest, "408 Bad Request\r\n\r\n"),
            (Status::PushBased, "409 Consumer is push based\r\n\r\n"),
            (Status::ExceededMaxWaiting, "409 Exceeded MaxWaiting\r\n\r\n"),
            (Status::ExceededMaxRequestBatch(7), "409 Exceeded MaxRequestBatch of 7\r\n\r\n"),
            (
                Status::ExceededMaxRequestExpires(Nanos::from_secs(90)),
                "409 Exceeded MaxRequestExpires of 1m30s\r\n\r\n",
            ),
            (Status::ExceededMaxRequestMaxBytes(7), "409 Exceeded MaxRequestMaxBytes of 7\r\n\r\n"),
            (
                Status::MessageSizeExceedsMaxBytes(rest),
                "409 Message Size Exceeds MaxBytes\r\nNats-Pending-Messages: 3\r\nNats-Pending-Bytes: 40\r\n\r\n",
            ),
            (
                Status::BatchCompleted(rest),
                "409 Batch Completed\r\nNats-Pending-Messages: 3\r\nNats-Pending-Bytes: 40\r\n\r\n",
            ),
            (Status::ConsumerDeleted, "409 Consumer Deleted\r\n\r\n"),
            (Status::LeadershipChange, "409 Leadership Change\r\n\r\n"),
            (
                Status::ServerShutdown(rest),
                "409 Server Shutdown\r\nNats-Pending-Messages: 3\r\nNats-Pending-Bytes: 40\r\n\r\n",
            ),
            (Status::RequiredApiLevel, "412 Required Api Level\r\n\r\n"),
            (Status::TooManyResults, "413 Too Many Results\r\n\r\n"),
            (
                Status::WrongPinId(rest),
                "423 Nats-Wrong-Pin-Id\r\nNats-Pending-Messages: 3\r\nNats-Pending-Bytes: 40\r\n\r\n",
            ),
            (Status::PinIdMismatch, "423 Nats-Pin-Id mismatch\r\n\r\n"),
            (Status::TooManyRequests, "429 Too Many Requests\r\n\r\n"),
        ] {
            let mut out = Vec::new();
            status.push(&mut out);
            assert_eq!(str::from_utf8(&out).unwrap(), format!("NATS/1.0 {expected}"));
        }
    }
}
