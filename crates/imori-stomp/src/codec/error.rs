//! Why bytes are not a STOMP frame, in sentences for the person who wrote the client.

use std::fmt;

/// Bytes of a client's text that an error repeats. More would make the log grow at its will.
const EXCERPT_BYTES_MAX: usize = 64;

/// Why bytes are not a frame. The connection cannot go on after any of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// A frame begins with a carriage return that ends no line.
    CarriageReturnBeforeFrame,
    /// The first line of a frame is no command.
    UnknownCommand {
        /// The line, or as much of it as has come.
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
    /// A header line holds a NUL, or the empty line after the headers is missing.
    NulInHeader {
        /// The number of the header line, from 1.
        line: usize,
    },
    /// A carriage return stands elsewhere than before a line feed.
    CarriageReturnInHeader {
        /// The number of the header line, from 1.
        line: usize,
    },
    /// A header line is not UTF-8.
    HeaderNotUtf8 {
        /// The number of the header line, from 1.
        line: usize,
    },
    /// A backslash is followed by something that the version does not define.
    UndefinedEscape {
        /// The number of the header line, from 1.
        line: usize,
        /// The escape.
        escape: Excerpt,
    },
    /// A frame has more header lines than allowed.
    TooManyHeaders {
        /// How many are allowed.
        max: usize,
    },
    /// The header lines of a frame are longer than allowed.
    HeadersTooLong {
        /// How many bytes are allowed.
        max: usize,
    },
    /// The content-length is not a number.
    InvalidContentLength {
        /// The value.
        value: Excerpt,
    },
    /// A frame has two content-lengths that differ.
    ContradictingContentLength {
        /// The first one.
        first: u64,
        /// The one that differs.
        second: u64,
    },
    /// A body is longer than allowed, or is declared to be.
    BodyTooLong {
        /// How many bytes are allowed.
        max: usize,
    },
    /// The byte after a body of declared length is not NUL.
    BodyNotTerminated {
        /// The declared length.
        content_length: usize,
    },
    /// A frame before login is longer than allowed, or is declared to be.
    LoginFrameTooLong {
        /// How many bytes are allowed.
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

/// The beginning of a text from outside, safe to print: control characters are written as escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt(String);

impl Excerpt {
    /// Copies the beginning of a text.
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
