//! Decodes bytes into operations without copying; one decoder type serves both directions.
//!
//! The caller passes the bytes not yet consumed, from the start of an operation. The decoder
//! returns an operation or asks for more bytes; once it has the control line of a message, it says
//! how many. It does not know which operation is allowed when.

use memchr::memchr;

use crate::codec::error::{DecodeError, Excerpt};
use crate::codec::number::parse_size;
use crate::codec::operation::{ClientOp, Message, Publish, ServerOp, Subscribe, Unsubscribe};
use crate::codec::words::blank_at;
use crate::limits::Limits;

const CR_LF_LEN: usize = 2;

/// The result of decoding the start of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<T> {
    /// A whole operation.
    Op {
        /// The operation.
        op: T,
        /// Bytes to consume.
        consumed: usize,
    },
    /// An incomplete operation.
    Incomplete {
        /// Length of the whole operation in bytes, if known.
        needed: Option<usize>,
    },
}

/// Splits the bytes of one connection into operations.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    /// Length in bytes of the operation at the start of the input; 0 if not known yet.
    needed: usize,
}

/// Operation names, matched case-insensitively.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Connect,
    Pub,
    Hpub,
    Sub,
    Unsub,
    Ping,
    Pong,
    Info,
    Msg,
    Hmsg,
    Ok,
    Err,
}

const CLIENT_NAMES: [(&[u8], Name); 9] = [
    (b"PUB", Name::Pub),
    (b"HPUB", Name::Hpub),
    (b"SUB", Name::Sub),
    (b"UNSUB", Name::Unsub),
    (b"PING", Name::Ping),
    (b"PONG", Name::Pong),
    (b"CONNECT", Name::Connect),
    (b"+OK", Name::Ok),
    (b"INFO", Name::Info),
];

const SERVER_NAMES: [(&[u8], Name); 7] = [
    (b"MSG", Name::Msg),
    (b"HMSG", Name::Hmsg),
    (b"PING", Name::Ping),
    (b"PONG", Name::Pong),
    (b"+OK", Name::Ok),
    (b"-ERR", Name::Err),
    (b"INFO", Name::Info),
];

/// A control line: its operation, its arguments and its length in bytes.
struct Line<'a> {
    name: Name,
    arguments: &'a [u8],
    len: usize,
}

impl Decoder {
    /// Creates a decoder with these limits.
    pub fn new(limits: Limits) -> Self {
        Self { limits, needed: 0 }
    }

    /// Resets the progress after the caller has consumed an operation itself.
    #[inline]
    pub(crate) fn pass_over(&mut self) {
        self.needed = 0;
    }

    /// Decodes the start of a client's input.
    ///
    /// After `Incomplete`, the next input must begin with the same bytes. After an error the
    /// decoder cannot continue: the start of the next operation is unknown.
    #[inline]
    pub fn client_op<'a>(&mut self, input: &'a [u8]) -> Result<Step<ClientOp<'a>>, DecodeError> {
        // One byte short is enough to decode: if that byte is not the expected CR, the message is
        // refused early.
        if input.len() + 1 < self.needed {
            return Ok(Step::Incomplete { needed: Some(self.needed) });
        }
        self.needed = 0;
        let line = if input.starts_with(b"PUB ") {
            // Fast path: most operations are PUBs.
            self.arguments(input, Name::Pub, 4)?
        } else {
            self.line(input, &CLIENT_NAMES)?
        };
        let Some(Line { name, arguments, len }) = line else {
            return Ok(Step::Incomplete { needed: None });
        };
        let op = match name {
            Name::Pub | Name::Hpub => return self.publish(input, name, arguments, len),
            Name::Sub => subscribe(arguments)?,
            Name::Unsub => unsubscribe(arguments)?,
            Name::Ping => ClientOp::Ping,
            Name::Pong => ClientOp::Pong,
            Name::Connect => ClientOp::Connect(arguments.trim_ascii()),
            _ => ClientOp::Nothing,
        };
        Ok(Step::Op { op, consumed: len })
    }

    /// Decodes the start of a server's output; otherwise like [`Decoder::client_op`].
    #[inline]
    pub fn server_op<'a>(&mut self, input: &'a [u8]) -> Result<Step<ServerOp<'a>>, DecodeError> {
        // As in `client_op`.
        if input.len() + 1 < self.needed {
            return Ok(Step::Incomplete { needed: Some(self.needed) });
        }
        self.needed = 0;
        let line = if input.starts_with(b"MSG ") {
            self.arguments(input, Name::Msg, 4)?
        } else {
            self.line(input, &SERVER_NAMES)?
        };
        let Some(Line { name, arguments, len }) = line else {
            return Ok(Step::Incomplete { needed: None });
        };
        let op = match name {
            Name::Msg | Name::Hmsg => return self.message(input, name, arguments, len),
            Name::Info => ServerOp::Info(arguments.trim_ascii()),
            Name::Ok => ServerOp::Ok,
            Name::Ping => ServerOp::Ping,
            Name::Pong => ServerOp::Pong,
            _ => ServerOp::Err(unquoted(arguments.trim_ascii())),
        };
        Ok(Step::Op { op, consumed: len })
    }

    /// Finds the operation at the start of the input and the end of its line. Refuses an unknown
    /// operation as early as possible.
    fn line<'a>(
        &self,
        input: &'a [u8],
        names: &[(&'static [u8], Name)],
    ) -> Result<Option<Line<'a>>, DecodeError> {
        for (text, name) in names {
            let start = input.get(..text.len()).unwrap_or(input);
            if !text.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start)) {
                continue;
            }
            if start.len() < text.len() {
                return Ok(None);
            }
            return match (name, input.get(text.len())) {
                (_, None) => Ok(None),
                // Other names must be followed by a blank; these may be followed by anything up to
                // the line end.
                (Name::Connect | Name::Info | Name::Ping | Name::Pong | Name::Ok, _)
                | (_, Some(b' ' | b'\t')) => self.arguments(input, *name, text.len()),
                _ => Err(unknown(input)),
            };
        }
        Err(unknown(input))
    }

    /// Returns the control line of an operation whose arguments start at `start`.
    #[inline]
    fn arguments<'a>(
        &self,
        input: &'a [u8],
        name: Name,
        start: usize,
    ) -> Result<Option<Line<'a>>, DecodeError> {
        let max = self.limits.control_line_bytes_max;
        let rest = input.get(start..).unwrap_or_default();
        // The arguments plus the blank after the name and the line end.
        let window = rest.get(..max.saturating_add(1 + CR_LF_LEN)).unwrap_or(rest);
        let Some(end) = memchr(b'\n', window) else {
            return if window.len() > max.saturating_add(CR_LF_LEN) {
                Err(DecodeError::ControlLineTooLong { max })
            } else {
                Ok(None)
            };
        };
        let arguments = window.get(..end).unwrap_or_default();
        let arguments = arguments.strip_suffix(b"\r").unwrap_or(arguments);
        if arguments.len() > max && arguments.trim_ascii().len() > max {
            return Err(DecodeError::ControlLineTooLong { max });
        }
        Ok(Some(Line { name, arguments, len: start + end + 1 }))
    }

    #[inline]
    fn publish<'a>(
        &mut self,
        input: &'a [u8],
        name: Name,
        arguments: &'a [u8],
        line_len: usize,
    ) -> Result<Step<ClientOp<'a>>, DecodeError> {
        let usage = if name == Name::Pub { "PUB subject [reply] bytes" } else { HPUB_USAGE };
        let bad = || bad_arguments(usage, arguments);
        let mut fields = Fields { rest: arguments };
        let subject = fields.next().ok_or_else(bad)?;
        let numbers = if name == Name::Pub { 1 } else { 2 };
        let Tail { reply, headers_len, size } = fields.tail(numbers).ok_or_else(bad)?;
        let Some(body) = self.body(input, line_len, size)? else {
            return Ok(Step::Incomplete { needed: Some(self.needed) });
        };
        let (headers, payload) = split(body, headers_len);
        let op = ClientOp::Publish(Publish { subject, reply, headers, payload });
        Ok(Step::Op { op, consumed: line_len + size + CR_LF_LEN })
    }

    #[inline]
    fn message<'a>(
        &mut self,
        input: &'a [u8],
        name: Name,
        arguments: &'a [u8],
        line_len: usize,
    ) -> Result<Step<ServerOp<'a>>, DecodeError> {
        let usage = if name == Name::Msg { "MSG subject sid [reply] bytes" } else { HMSG_USAGE };
        let bad = || bad_arguments(usage, arguments);
        let mut fields = Fields { rest: arguments };
        let subject = fields.next().ok_or_else(bad)?;
        let sid = fields.next().ok_or_else(bad)?;
        let numbers = if name == Name::Msg { 1 } else { 2 };
        let Tail { reply, headers_len, size } = fields.tail(numbers).ok_or_else(bad)?;
        let Some(body) = self.body(input, line_len, size)? else {
            return Ok(Step::Incomplete { needed: Some(self.needed) });
        };
        let (headers, payload) = split(body, headers_len);
        let op = ServerOp::Message(Message { subject, sid, reply, headers, payload });
        Ok(Step::Op { op, consumed: line_len + size + CR_LF_LEN })
    }

    /// Returns the body after a control line. Refuses one that is too long without waiting for it.
    #[inline]
    fn body<'a>(
        &mut self,
        input: &'a [u8],
        start: usize,
        size: usize,
    ) -> Result<Option<&'a [u8]>, DecodeError> {
        let max = self.limits.payload_bytes_max;
        if size > max {
            return Err(DecodeError::PayloadTooLong { bytes: size, max });
        }
        let end = start + size;
        match input.get(end..) {
            Some([b'\r', b'\n', ..]) => Ok(input.get(start..end)),
            None | Some([] | [b'\r']) => {
                self.needed = end + CR_LF_LEN;
                Ok(None)
            }
            Some(_) => Err(DecodeError::PayloadNotTerminated { bytes: size }),
        }
    }
}

const HPUB_USAGE: &str = "HPUB subject [reply] header-bytes bytes";
const HMSG_USAGE: &str = "HMSG subject sid [reply] header-bytes bytes";

/// The last arguments of the control line of a message.
struct Tail<'a> {
    reply: Option<&'a [u8]>,
    headers_len: Option<usize>,
    size: usize,
}

/// Iterates over the fields of a control line, separated by blanks.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Returns the next field; `None` at the end or if the field ends at a carriage return.
    #[inline(always)]
    fn next(&mut self) -> Option<&'a [u8]> {
        let mut rest = self.rest;
        while let [b' ' | b'\t', after @ ..] = rest {
            rest = after;
        }
        let len = match blank_at(rest) {
            len if matches!(rest.get(len), None | Some(b' ' | b'\t')) => len,
            _ => len_with_controls(rest)?,
        };
        let (field, after) = rest.split_at_checked(len)?;
        self.rest = after;
        (!field.is_empty()).then_some(field)
    }

    fn is_over(&self) -> bool {
        self.rest.iter().all(|byte| matches!(byte, b' ' | b'\t'))
    }

    /// Reads an optional reply, the size of the headers if there are two numbers, and the total
    /// size.
    #[inline]
    fn tail(&mut self, numbers: usize) -> Option<Tail<'a>> {
        let mut fields = [self.next()?, &[], &[]];
        let mut count = 1;
        while count <= numbers && !self.is_over() {
            *fields.get_mut(count)? = self.next()?;
            count += 1;
        }
        if !self.is_over() {
            return None;
        }
        let (reply, rest) = match count.checked_sub(numbers)? {
            0 => (None, fields.as_slice()),
            _ => (fields.first().copied(), fields.get(1..)?),
        };
        let size = parse_size(rest.get(numbers - 1)?)?;
        if numbers == 1 {
            return Some(Tail { reply, headers_len: None, size });
        }
        let headers = parse_size(rest.first()?)?;
        (headers <= size).then_some(Tail { reply, headers_len: Some(headers), size })
    }
}

/// Returns the length of a field that contains control characters, unless it ends at a carriage
/// return.
#[cold]
fn len_with_controls(rest: &[u8]) -> Option<usize> {
    let len = rest.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'\r')).unwrap_or(rest.len());
    (rest.get(len) != Some(&b'\r')).then_some(len)
}

#[inline]
fn split(body: &[u8], headers_len: Option<usize>) -> (Option<&[u8]>, &[u8]) {
    match headers_len.and_then(|len| body.split_at_checked(len)) {
        Some((headers, payload)) => (Some(headers), payload),
        None => (None, body),
    }
}

fn subscribe(arguments: &[u8]) -> Result<ClientOp<'_>, DecodeError> {
    let mut fields = Fields { rest: arguments };
    let read = (fields.next(), fields.next(), fields.next());
    let (subject, group, sid) = match read {
        (Some(subject), Some(sid), None) => (subject, None, sid),
        (Some(subject), Some(group), Some(sid)) => (subject, Some(group), sid),
        _ => return Err(bad_arguments("SUB subject [group] sid", arguments)),
    };
    match fields.is_over() {
        true => Ok(ClientOp::Subscribe(Subscribe { subject, group, sid })),
        false => Err(bad_arguments("SUB subject [group] sid", arguments)),
    }
}

fn unsubscribe(arguments: &[u8]) -> Result<ClientOp<'_>, DecodeError> {
    let mut fields = Fields { rest: arguments };
    let (sid, max) = (fields.next(), fields.next());
    match sid {
        Some(sid) if fields.is_over() => {
            // A `max` that is not a number counts as absent, which ends the subscription at once,
            // as in nats-server.
            let max = max.and_then(parse_size);
            Ok(ClientOp::Unsubscribe(Unsubscribe { sid, max }))
        }
        _ => Err(bad_arguments("UNSUB sid [max]", arguments)),
    }
}

/// Strips the quotes from the text of a -ERR.
fn unquoted(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"'").and_then(|text| text.strip_suffix(b"'")).unwrap_or(text)
}

#[cold]
fn unknown(input: &[u8]) -> DecodeError {
    let line = memchr(b'\n', input).and_then(|end| input.get(..end)).unwrap_or(input);
    DecodeError::UnknownOperation { bytes: Excerpt::new(line) }
}

#[cold]
fn bad_arguments(usage: &'static str, arguments: &[u8]) -> DecodeError {
    DecodeError::BadArguments { usage, line: Excerpt::new(arguments.trim_ascii()) }
}

#[cfg(test)]
mod tests;
