//! Batches of publishes: atomic ones, which headers describe, and fast ones, which the reply
//! subject describes.

use imori_streams::error::ApiError;
use imori_streams::json::to_json;
use serde::Serialize;

use crate::codec::number::parse_u64;
use crate::limits::BATCH_ID_BYTES_MAX;

/// A message of a batch that is stored as a whole or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtomicBatch<'a> {
    /// The id of the batch.
    pub id: &'a [u8],
    /// The number of the message, from 1.
    pub sequence: u64,
    /// Whether the batch ends here.
    pub commit: Option<Commit>,
}

/// The end of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// This message is the last of the batch.
    WithMessage,
    /// The message before this one is the last; this one is not stored.
    WithoutMessage,
    /// A value that is not known, which ends the batch without storing it.
    Unknown,
}

impl<'a> AtomicBatch<'a> {
    /// Reads the values of `Nats-Batch-Id`, `Nats-Batch-Sequence` and `Nats-Batch-Commit`.
    ///
    /// # Errors
    ///
    /// Returns nats-server's error for an id that is too long, and for a sequence that is missing or no
    /// number.
    pub fn parse(id: &'a [u8], sequence: Option<&[u8]>, commit: Option<&[u8]>) -> Result<Self, ApiError> {
        if id.len() > BATCH_ID_BYTES_MAX {
            return Err(ApiError::ATOMIC_PUBLISH_INVALID_BATCH_ID);
        }
        let sequence = sequence.and_then(parse_u64).ok_or(ApiError::ATOMIC_PUBLISH_MISSING_SEQUENCE)?;
        let commit = match commit {
            None => None,
            Some(b"1") => Some(Commit::WithMessage),
            Some(b"eob") => Some(Commit::WithoutMessage),
            Some(_) => Some(Commit::Unknown),
        };
        Ok(Self { id, sequence, commit })
    }
}

/// A message of a batch that is stored message by message with few acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastBatch<'a> {
    /// The id of the batch.
    pub id: &'a [u8],
    /// The number of the message, from 1.
    pub sequence: u64,
    /// Messages per acknowledgement that the client asks for.
    pub flow: u16,
    /// Messages may be missing.
    pub may_have_gaps: bool,
    /// The purpose of the message.
    pub operation: FastOperation,
}

/// The purpose of a message of a fast batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FastOperation {
    /// Starts the batch.
    Start,
    /// Continues the batch.
    Append,
    /// Ends the batch.
    Commit(Commit),
    /// Asks for an acknowledgement, and is not stored.
    Ping,
}

/// The end of the reply subject of every message of a fast batch.
const FAST_SUFFIX: &[u8] = b".$FI";

/// Messages to acknowledge at once, if the client does not say.
const FLOW_DEFAULT: u16 = 10;

impl<'a> FastBatch<'a> {
    /// Reads a reply subject, `<prefix>.<id>.<flow>.<ok or fail>.<sequence>.<operation>.$FI`.
    ///
    /// `None` if it does not end like one, so that the message belongs to no batch.
    ///
    /// # Errors
    ///
    /// Returns nats-server's error for another form and for an id that is too long.
    pub fn parse(reply: &'a [u8]) -> Option<Result<Self, ApiError>> {
        let tokens = reply.strip_suffix(FAST_SUFFIX).filter(|tokens| !tokens.is_empty())?;
        Some(match Self::parse_tokens(tokens) {
            None => Err(ApiError::BATCH_PUBLISH_INVALID_PATTERN),
            Some(batch) if batch.id.len() > BATCH_ID_BYTES_MAX => {
                Err(ApiError::BATCH_PUBLISH_INVALID_BATCH_ID)
            }
            Some(batch) => Ok(batch),
        })
    }

    fn parse_tokens(tokens: &'a [u8]) -> Option<Self> {
        let mut tokens = tokens.rsplit(|byte| *byte == b'.');
        let operation = tokens.next()?;
        // The last number would leave no room for another message.
        let sequence = parse_u64(tokens.next()?).filter(|number| (1..u64::MAX).contains(number))?;
        let operation = match (operation, sequence) {
            (b"0", 1) => FastOperation::Start,
            (b"1", 2..) => FastOperation::Append,
            (b"2", _) => FastOperation::Commit(Commit::WithMessage),
            (b"3", 2..) => FastOperation::Commit(Commit::WithoutMessage),
            (b"4", _) => FastOperation::Ping,
            _ => return None,
        };
        let may_have_gaps = match tokens.next()? {
            b"ok" => true,
            b"fail" => false,
            _ => return None,
        };
        let flow = match parse_u64(tokens.next()?) {
            None | Some(0) => FLOW_DEFAULT,
            Some(flow) => u16::try_from(flow).unwrap_or(u16::MAX),
        };
        let id = tokens.next()?;
        // A token before the id is the inbox of the client.
        tokens.next()?;
        Some(Self { id, sequence, flow, may_have_gaps, operation })
    }
}

/// A report to the publisher of a fast batch before its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
pub enum BatchFlow {
    /// Messages were stored.
    #[serde(rename = "ack")]
    Ack {
        /// The number of the last one.
        seq: u64,
        /// Messages per acknowledgement from now on.
        msgs: u16,
    },
    /// Messages are missing.
    #[serde(rename = "gap")]
    Gap {
        /// The number of the first that is missing.
        last_seq: u64,
        /// The number of the message after the gap.
        seq: u64,
    },
    /// A message was refused.
    #[serde(rename = "err")]
    Error {
        /// The number of the refused message.
        seq: u64,
        /// The reason.
        error: ApiError,
    },
}

impl BatchFlow {
    /// Encodes the answer.
    pub fn encode(&self) -> Vec<u8> {
        to_json(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_atomic_batch_is_read_from_its_headers() {
        let long = "b".repeat(BATCH_ID_BYTES_MAX + 1);
        let batch = |sequence, commit| Ok(AtomicBatch { id: b"b", sequence, commit });
        for (id, sequence, commit, expected) in [
            ("b", Some("1"), None, batch(1, None)),
            ("b", Some("2"), Some("1"), batch(2, Some(Commit::WithMessage))),
            ("b", Some("3"), Some("eob"), batch(3, Some(Commit::WithoutMessage))),
            ("b", Some("3"), Some("x"), batch(3, Some(Commit::Unknown))),
            ("b", Some("3"), Some(""), batch(3, Some(Commit::Unknown))),
            ("b", Some("x"), None, Err(ApiError::ATOMIC_PUBLISH_MISSING_SEQUENCE)),
            ("b", None, None, Err(ApiError::ATOMIC_PUBLISH_MISSING_SEQUENCE)),
            (&long, Some("1"), None, Err(ApiError::ATOMIC_PUBLISH_INVALID_BATCH_ID)),
        ] {
            let read =
                AtomicBatch::parse(id.as_bytes(), sequence.map(str::as_bytes), commit.map(str::as_bytes));
            assert_eq!(read, expected, "{id} {sequence:?} {commit:?}");
        }
    }

    #[test]
    fn a_fast_batch_is_read_from_its_reply_subject() {
        let long = format!("_INBOX.{}.10.ok.1.0.$FI", "b".repeat(BATCH_ID_BYTES_MAX + 1));
        let batch = |sequence, flow, may_have_gaps, operation| {
            Some(Ok(FastBatch { id: b"b", sequence, flow, may_have_gaps, operation }))
        };
        let wrong = Some(Err(ApiError::BATCH_PUBLISH_INVALID_PATTERN));
        for (reply, expected) in [
            ("_INBOX.b.10.ok.1.0.$FI", batch(1, 10, true, FastOperation::Start)),
            ("_INBOX.x.b.100.fail.2.1.$FI", batch(2, 100, false, FastOperation::Append)),
            ("_INBOX.b.0.ok.1.2.$FI", batch(1, 10, true, FastOperation::Commit(Commit::WithMessage))),
            ("_INBOX.b.x.ok.5.3.$FI", batch(5, 10, true, FastOperation::Commit(Commit::WithoutMessage))),
            ("_INBOX.b.99999.ok.5.4.$FI", batch(5, u16::MAX, true, FastOperation::Ping)),
            ("_INBOX.b", None),
            (".$FI", None),
            ("_INBOX.b.10.ok.2.0.$FI", wrong.clone()),
            ("_INBOX.b.10.ok.1.1.$FI", wrong.clone()),
            ("_INBOX.b.10.ok.1.3.$FI", wrong.clone()),
            ("_INBOX.b.10.ok.0.2.$FI", wrong.clone()),
            ("_INBOX.b.10.ok.18446744073709551615.2.$FI", wrong.clone()),
            ("_INBOX.b.10.ok.1.5.$FI", wrong.clone()),
            ("_INBOX.b.10.maybe.1.0.$FI", wrong.clone()),
            ("b.10.ok.1.0.$FI", wrong.clone()),
            ("1.0.$FI", wrong),
            (&long, Some(Err(ApiError::BATCH_PUBLISH_INVALID_BATCH_ID))),
        ] {
            assert_eq!(FastBatch::parse(reply.as_bytes()), expected, "{reply}");
        }
    }

    #[test]
    fn publishers_are_told_how_a_batch_goes() {
        for (flow, expected) in [
            (BatchFlow::Ack { seq: 5, msgs: 10 }, r#"{"type":"ack","seq":5,"msgs":10}"#),
            (BatchFlow::Gap { last_seq: 5, seq: 8 }, r#"{"type":"gap","last_seq":5,"seq":8}"#),
            (
                BatchFlow::Error { seq: 5, error: ApiError::STREAM_SEALED },
                concat!(
                    r#"{"type":"err","seq":5,"error":{"code":400,"err_code":10109,"#,
                    r#""description":"invalid operation on sealed stream"}}"#,
                ),
            ),
        ] {
            assert_eq!(str::from_utf8(&flow.encode()).unwrap(), expected);
        }
    }
}
