//! Errors of decoding STOMP frames, worded for the author of the client.

use std::fmt;

/// Bytes of a client's text that an error quotes. Bounds what a client can add to the log.
const EXCERPT_BYTES_MAX: usize = 64;

/// The reason why bytes are not a frame. The connection cannot continue after any of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// A frame begins with a carriage return that is not followed by a line feed.
    CarriageReturnBeforeFrame,
    /// The first line of a frame is not a command.
    UnknownCommand {
        /// The line, or the part received so far.
        line: Excerpt,
    },
    /// A header line has no colon.
    HeaderWithoutColon {
        /// The number of the header line, from 1.
        line: usize,
        /// The line.
        text: Excerpt,
    },
    /// A header line begins with its colon.
    HeaderWithoutName {
        /// The number of the header line, from 1.
        line: usize,
    },
    /// A header line contains a NUL, or the empty line after the headers is missing.
    NulInHeader {
        /// The number of the header line, from 1.
        line: usize,
    },
    /// A carriage return is not followed by a line feed.
    CarriageReturnInHeader {
        /// The number of the header line, from 1.
        line: usize,
    },
    /// A header line is not UTF-8.
    HeaderNotUtf8 {
        /// The number of the header line, from 1.
        line: usize,
    },
    /// A backslash starts an escape that the version does not define.
    UndefinedEscape {
        /// The number of the header line, from 1.
        line: usize,
        /// The escape.
        escape: Excerpt,
    },
    /// A frame has more header lines than allowed.
    TooManyHeaders {
        /// The limit.
        max: usize,
    },
    /// The header lines of a frame are longer than allowed.
    HeadersTooLong {
        /// The limit in bytes.
        max: usize,
    },
    /// The content-length is not a number.
    InvalidContentLength {
        /// The value.
        value: Excerpt,
    },
    /// A frame has two different content-lengths.
    ContradictingContentLength {
        /// The first value.
        first: u64,
        /// The conflicting value.
        second: u64,
    },
    /// A body is, or claims to be, longer than allowed.
    BodyTooLong {
        /// The limit in bytes.
        max: usize,
    },
    /// The byte after the declared length of the body is not NUL.
    BodyNotTerminated {
        /// The declared length.
        content_length: usize,
    },
    /// A frame before login is, or claims to be, longer than allowed.
    LoginFrameTooLong {
        /// The limit in bytes.
        max: usize,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CarriageReturnBeforeFrame => {
                f.write_str("carriage return without line feed between frames; end lines with LF or CR LF")
            }
            Self::UnknownCommand { line } => write!(
                f,
                "unknown command `{line}`; send a STOMP command such as `CONNECT` or `SEND` in capitals \
                 and alone on its line"
            ),
            Self::HeaderWithoutColon { line, text } => {
                write!(f, "header line {line}, `{text}`, has no colon; write it as `name:value`")
            }
            Self::HeaderWithoutName { line } => {
                write!(f, "header line {line} has no name before its colon; write it as `name:value`")
            }
            Self::NulInHeader { line } => write!(
                f,
                "header line {line} holds a NUL; put an empty line after the headers, and no NUL into them"
            ),
            Self::CarriageReturnInHeader { line } => write!(
                f,
                "header line {line} holds a carriage return; end lines with LF or CR LF, and in STOMP 1.2 \
                 write it as `\\r`"
            ),
            Self::HeaderNotUtf8 { line } => {
                write!(f, "header line {line} is not UTF-8; encode it so, or put it into the body")
            }
            Self::UndefinedEscape { line, escape } => write!(
                f,
                "header line {line} holds the undefined escape `{escape}`; use `\\n`, `\\c`, `\\\\` and, in \
                 STOMP 1.2, `\\r`"
            ),
            Self::TooManyHeaders { max } => {
                write!(f, "frame has over {max} headers; send fewer, or put them into the body")
            }
            Self::HeadersTooLong { max } => {
                write!(f, "headers of the frame are over {max} bytes; send less, or put it into the body")
            }
            Self::InvalidContentLength { value } => write!(
                f,
                "content-length `{value}` is not a number of bytes; write it in digits, or leave it out for a \
                 body without NUL"
            ),
            Self::ContradictingContentLength { first, second } => {
                write!(f, "content-length is both `{first}` and `{second}`; send it once")
            }
            Self::BodyTooLong { max } => {
                write!(f, "body of the frame is over {max} bytes; send it in several messages")
            }
            Self::BodyNotTerminated { content_length } => write!(
                f,
                "body of content-length `{content_length}` is not followed by NUL; count the bytes of the body, \
                 not its characters"
            ),
            Self::LoginFrameTooLong { max } => {
                write!(f, "frame before login is over {max} bytes; send CONNECT first, with fewer headers")
            }
        }
    }
}

impl std::error::Error for DecodeError {}

/// The start of a text from outside, with control characters escaped so that it is safe to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt(String);

impl Excerpt {
    /// Copies the start of a text.
    pub fn new(text: &[u8]) -> Self {
        let head = text.get(..EXCERPT_BYTES_MAX).unwrap_or(text);
        let mut excerpt = String::with_capacity(head.len());
        for character in String::from_utf8_lossy(head).chars() {
            match character.is_control() {
                true => excerpt.extend(character.escape_default()),
                false => excerpt.push(character),
            }
        }
        if head.len() < text.len() {
            excerpt.push('…');
        }
        Self(excerpt)
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
