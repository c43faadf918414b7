//! Why bytes are no AMQP 0-9-1, in sentences for the person who wrote the client.

use std::fmt;

use crate::codec::fields::FieldError;
use crate::codec::method::MethodId;

/// Why bytes are no frame, or a frame has no meaning. The connection cannot go on after any of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// The connection begins with other bytes than the protocol header `AMQP 0 0 9 1`.
    ProtocolHeader,
    /// A frame is of a type that there is not.
    FrameType {
        /// The type.
        octet: u8,
    },
    /// A frame has more bytes than agreed.
    FrameTooLong {
        /// Bytes of its payload.
        bytes: usize,
        /// The most bytes allowed.
        max: usize,
    },
    /// A frame does not end with the octet 206.
    FrameEnd {
        /// The octet that stands there.
        octet: u8,
    },
    /// There is no such method.
    UnknownMethod(MethodId),
    /// The fields of a method cannot be decoded.
    Method {
        /// The method.
        id: MethodId,
        /// The fault.
        error: FieldError,
    },
    /// A method frame has no room for the id of a method.
    NoMethod,
    /// The content header is not one of class `basic`.
    ContentClass {
        /// Its class.
        class: u16,
    },
    /// The content header or its properties are not as they should be.
    Content(FieldError),
    /// The content header has flags of properties that there are not.
    PropertyFlags {
        /// All of its flags.
        flags: u16,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::ProtocolHeader => {
                f.write_str("the connection does not begin with the protocol header of AMQP 0-9-1; send `AMQP`, 0, 0, 9, 1")
            }
            DecodeError::FrameType { octet } => {
                write!(f, "there is no frame of type `{octet}`; send 1, 2, 3 or 8")
            }
            DecodeError::FrameTooLong { bytes, max } => write!(
                f,
                "the payload of a frame has `{bytes}` bytes and may have `{max}`; send long bodies in several frames"
            ),
            DecodeError::FrameEnd { octet } => {
                write!(f, "a frame ends with `{octet}` and not with `206`; its length is wrong")
            }
            DecodeError::UnknownMethod(id) => {
                write!(f, "class `{}` has no method `{}`; see the specification", id.class, id.method)
            }
            DecodeError::Method { id, error } => write!(f, "the fields of `{}` are wrong: {error}", id.name()),
            DecodeError::NoMethod => f.write_str("a method frame has less than the four bytes of a method's id"),
            DecodeError::ContentClass { class } => {
                write!(f, "a content header is of class `{class}`; send those of class 60 alone")
            }
            DecodeError::Content(error) => write!(f, "a content header is wrong: {error}"),
            DecodeError::PropertyFlags { flags } => {
                write!(f, "a content header has the property flags `{flags:#06x}`; leave the two lowest out")
            }
        }
    }
}

impl std::error::Error for DecodeError {}
