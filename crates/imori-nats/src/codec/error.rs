//! Errors of decoding NATS operations, worded for the author of the client.

use std::fmt;

use imori_core::name::Printable;

/// Bytes of a client's text that an error quotes. Bounds what a client can add to the log.
const EXCERPT_BYTES_MAX: usize = 64;

/// The reason why bytes are not an operation. The connection cannot continue after any of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes do not start an operation of this direction.
    UnknownOperation {
        /// The bytes, or those received so far.
        bytes: Excerpt,
    },
    /// A control line is longer than allowed.
    ControlLineTooLong {
        /// The limit in bytes.
        max: usize,
    },
    /// An operation has too few or too many arguments, or one that should be a number is not.
    BadArguments {
        /// The syntax of the operation.
        usage: &'static str,
        /// The arguments of the control line.
        line: Excerpt,
    },
    /// The declared size of a message exceeds the limit.
    PayloadTooLong {
        /// The declared size in bytes.
        bytes: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The payload is not followed by CR LF.
    PayloadNotTerminated {
        /// The declared size in bytes.
        bytes: usize,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOperation { bytes } => {
                write!(f, "`{bytes}` begins no operation; send one such as `PUB subject 2`")
            }
            Self::ControlLineTooLong { max } => {
                write!(f, "control line is longer than `{max}` bytes; use shorter subjects and options")
            }
            Self::BadArguments { usage, line } => write!(f, "arguments `{line}` are wrong; write `{usage}`"),
            Self::PayloadTooLong { bytes, max } => {
                write!(f, "message has `{bytes}` bytes; send at most {max}, as `max_payload` of INFO says")
            }
            Self::PayloadNotTerminated { bytes } => {
                write!(f, "no CR LF follows the `{bytes}` bytes of the message; declare as many as it has")
            }
        }
    }
}

impl std::error::Error for DecodeError {}

/// A few bytes from outside, displayed on one line.
#[derive(Clone, PartialEq, Eq)]
pub struct Excerpt(Box<[u8]>);

impl Excerpt {
    /// Copies the start of `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes.get(..EXCERPT_BYTES_MAX).unwrap_or(bytes).into())
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Printable(&self.0))
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}
