//! The reasons for refusing a frame, and the ERROR frame that reports them.

use std::fmt::Display;

use imori_core::confirm::Level;
use imori_core::error::BrokerError;
use imori_core::route::RouteError;

use crate::codec::command::Command;
use crate::codec::encode::FrameWriter;
use crate::codec::number::push_u64;
use crate::codec::version::Version;
use crate::outcome::ReceiptKind;

// RabbitMQ's words for errors of the broker and for unreadable values.
pub(crate) const ACCESS_REFUSED: &str = "access_refused";
pub(crate) const NOT_FOUND: &str = "not_found";
pub(crate) const PRECONDITION_FAILED: &str = "precondition_failed";
pub(crate) const RESOURCE_ERROR: &str = "resource_error";
pub(crate) const PROCESSING_ERROR: &str = "Processing error";

/// The contents of an ERROR. Boxed, so that a `Result` without an error stays small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProtocolError(Box<Words>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Words {
    message: &'static str,
    text: String,
    is_final: bool,
}

impl ProtocolError {
    /// An error about one frame.
    #[cold]
    pub(crate) fn new(message: &'static str, text: impl Display) -> Self {
        Self(Box::new(Words { message, text: text.to_string(), is_final: false }))
    }

    /// An error that ends the connection.
    #[cold]
    pub(crate) fn last(message: &'static str, text: impl Display) -> Self {
        Self(Box::new(Words { message, text: text.to_string(), is_final: true }))
    }

    /// The header `message`: a few words that programs may match.
    pub(crate) fn message(&self) -> &'static str {
        self.0.message
    }

    /// The body: what is wrong, where, and how to fix it.
    pub(crate) fn text(&self) -> &str {
        &self.0.text
    }

    /// Whether the error ends the connection regardless of the settings.
    pub(crate) fn is_final(&self) -> bool {
        self.0.is_final
    }

    /// The error for a missing header that `command` requires.
    #[cold]
    pub(crate) fn missing_header(command: Command, header: &str) -> Self {
        let message = match (command, header) {
            (Command::Unsubscribe, "id") => "Missing destination or id",
            (_, "destination") => "Missing destination",
            (_, "transaction") => "Missing transaction",
            _ => "Missing header",
        };
        Self::new(message, format_args!("{command} has no header `{header}`; add it"))
    }
}

impl From<BrokerError> for ProtocolError {
    /// Makes most of the broker's errors end the connection, as RabbitMQ does.
    #[cold]
    fn from(error: BrokerError) -> Self {
        let message = match &error {
            BrokerError::NoDelivery(_) => return Self::new("Message not found", error),
            BrokerError::NotKept(_) | BrokerError::Nowhere(_) | BrokerError::ToItself(_) => {
                return Self::new("Invalid destination", error);
            }
            BrokerError::Refused(_) | BrokerError::ConsumedExclusively(_) | BrokerError::SingleActive(_) => {
                ACCESS_REFUSED
            }
            BrokerError::NoQueue(_) | BrokerError::NoInbox | BrokerError::NoSession(_) => NOT_FOUND,
            BrokerError::Locked(_) => "resource_locked",
            BrokerError::Inequivalent { .. }
            | BrokerError::IsStream(_)
            | BrokerError::StreamKeeps(_)
            | BrokerError::SessionOpen(_)
            | BrokerError::InUse(_)
            | BrokerError::NotEmpty(_) => PRECONDITION_FAILED,
            BrokerError::QueueFull(_)
            | BrokerError::HeadersTooLarge
            | BrokerError::TooManyQueues
            | BrokerError::TooManySessions { .. }
            | BrokerError::Quota(_)
            | BrokerError::Unavailable { .. }
            | BrokerError::RecordTooLarge { .. }
            | BrokerError::TransactionTooLarge { .. } => RESOURCE_ERROR,
            BrokerError::Route(error) => match error {
                RouteError::NoVhost(_) | RouteError::NoExchange(_) => NOT_FOUND,
                RouteError::Internal(_) | RouteError::DefaultExchange | RouteError::Reserved(_) => {
                    ACCESS_REFUSED
                }
                RouteError::Differs { .. } | RouteError::Pattern(_) | RouteError::HeaderMatch => {
                    PRECONDITION_FAILED
                }
                RouteError::Limit { .. } | RouteError::Arguments(_) => RESOURCE_ERROR,
            },
        };
        Self::last(message, error)
    }
}

/// Appends an ERROR. `receipt` and `lines` are copied as the client wrote them; `lines` includes
/// line ends.
pub(crate) fn push_error(
    out: &mut Vec<u8>,
    version: Version,
    error: &ProtocolError,
    receipt: Option<&[u8]>,
    lines: &[u8],
) {
    let mut frame = FrameWriter::new(out, Command::Error, version);
    frame.header("message", error.message().as_bytes());
    if let Some(receipt) = receipt {
        frame.lines(b"receipt-id:");
        frame.lines(receipt);
        frame.lines(b"\n");
    }
    frame.lines(lines);
    frame.header("version", Version::SUPPORTED.as_bytes());
    frame.header("content-type", b"text/plain");
    frame.body(error.text().as_bytes());
}

/// Appends a RECEIPT. `receipt` is copied as the client wrote it, since it is already escaped for
/// the same version. The receipt of a message states its level of safety; the receipt of a cancel
/// states the number of messages cancelled.
#[inline]
pub(crate) fn push_receipt(out: &mut Vec<u8>, receipt: &[u8], kind: ReceiptKind, level: Level) {
    out.extend_from_slice(b"RECEIPT\nreceipt-id:");
    out.extend_from_slice(receipt);
    if let ReceiptKind::Cancelled(count) = kind {
        out.extend_from_slice(b"\nimori-cancelled:");
        push_u64(out, count as u64);
    }
    if kind.promises() {
        out.extend_from_slice(b"\nimori-level:");
        out.extend_from_slice(level.as_str().as_bytes());
    }
    out.extend_from_slice(b"\n\n\0");
}
