//! Why bytes are no NATS protocol, in sentences for the person who wrote the client.

use std::fmt;

use imori_core::name::Printable;

/// Bytes of a client's text that an error repeats. More would make the log grow at its will.
const EXCERPT_BYTES_MAX: usize = 64;

/// Why bytes are no operation. The connection cannot go on after any of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes begin no operation of this direction.
    UnknownOperation {
        /// The bytes, or as many of them as have come.
        bytes: Excerpt,
    },
    /// A control line is longer than allowed.
    ControlLineTooLong {
        /// How many bytes are allowed.
        max: usize,
    },
    /// The arguments of an operation are too few, too many, or no numbers where there should be some.
    BadArguments {
        /// How the operation is written.
        usage: &'static str,
        /// The control line without its operation.
        line: Excerpt,
    },
    /// A message declares more bytes than allowed.
    PayloadTooLong {
        /// How many bytes it declares.
        bytes: usize,
        /// How many are allowed.
        max: usize,
    },
    /// The payload is not followed by CR LF.
    PayloadNotTerminated {
        /// The bytes that it declares.
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

/// A few bytes from outside, shown on one line.
#[derive(Clone, PartialEq, Eq)]
pub struct Excerpt(Box<[u8]>);

impl Excerpt {
    /// Keeps the beginning of these bytes.
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
