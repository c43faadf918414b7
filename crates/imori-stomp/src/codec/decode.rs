//! Decodes bytes into frames, without copying and without scanning a byte repeatedly.
//!
//! The caller passes the bytes not yet consumed, from the start of a frame. The decoder returns a
//! frame, the noise between frames, or a request for more bytes; in that case it remembers how far
//! it scanned. It does not know which command is allowed when.

use memchr::{memchr, memchr2_iter};

use crate::codec::command::Command;
use crate::codec::error::{DecodeError, Excerpt};
use crate::codec::escape::Escaping;
use crate::codec::frame::{Frame, HeaderTable, Headers, Span};
use crate::codec::scan::{HeadLimits, scan};
use crate::codec::version::Version;
use crate::limits::Limits;

/// Heads up to this length are decoded again whenever bytes arrive. Searching for their end first
/// would cost more, and decoding refuses an unknown command as early as possible.
const SHORT_HEAD_BYTES: usize = 64;

/// The result of decoding the start of the input.
#[derive(Debug)]
pub enum Step<'a> {
    /// A whole frame.
    Frame {
        /// The frame.
        frame: Frame<'a>,
        /// Bytes to consume.
        consumed: usize,
    },
    /// Line ends and NULs between frames: heart-beats, or extra bytes after a frame.
    Noise {
        /// Bytes to consume, at least one.
        consumed: usize,
    },
    /// An incomplete frame.
    Incomplete {
        /// Length of the whole frame in bytes, if known.
        needed: Option<usize>,
    },
}

/// Splits the bytes of one connection into frames.
#[derive(Debug)]
pub struct Decoder {
    version: Version,
    limits: Limits,
    is_connected: bool,
    progress: Progress,
}

/// The progress of scanning the current frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Nothing has been scanned.
    Start,
    /// The end of the headers does not start before this byte.
    HeaderBlock { scanned: usize },
    /// The length of the whole frame in bytes.
    Body { needed: usize },
    /// There is no NUL in the body before this byte. A body that passes `max` is too long.
    BodyUntilNul { scanned: usize, max: usize },
}

impl Progress {
    fn needed(self) -> Option<usize> {
        match self {
            Self::Body { needed } => Some(needed),
            Self::Start | Self::HeaderBlock { .. } | Self::BodyUntilNul { .. } => None,
        }
    }
}

impl Decoder {
    /// Creates a decoder before login, with the limits of that phase.
    pub fn new(limits: Limits) -> Self {
        Self { version: Version::V10, limits, is_connected: false, progress: Progress::Start }
    }

    /// Lifts the limit before login and decodes later frames in `version`.
    ///
    /// A client calls this at once with 1.2, since CONNECTED may arrive any time, and again with
    /// the version in CONNECTED.
    pub fn connected(&mut self, version: Version) {
        self.version = version;
        self.is_connected = true;
    }

    /// Returns the version in which frames are decoded.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Resets the progress after the caller has consumed a frame itself.
    #[inline]
    pub(crate) fn pass_over(&mut self) {
        self.progress = Progress::Start;
    }

    /// Decodes the start of the input.
    ///
    /// After `Incomplete`, the next input must begin with the same bytes. After an error the
    /// decoder cannot continue: the start of the next frame is unknown.
    pub fn decode<'a>(
        &mut self,
        input: &'a [u8],
        table: &'a mut HeaderTable,
    ) -> Result<Step<'a>, DecodeError> {
        match input.first() {
            None => return Ok(Step::Incomplete { needed: None }),
            Some(b'\n' | b'\r' | b'\0') => return noise(input),
            Some(_) => {}
        }
        if !self.is_worth_decoding(input) {
            return Ok(Step::Incomplete { needed: self.progress.needed() });
        }
        self.progress = Progress::Start;
        self.frame(input, table)
    }

    /// Whether the new bytes can complete a step; scans only those.
    #[inline]
    fn is_worth_decoding(&mut self, input: &[u8]) -> bool {
        match self.progress {
            Progress::Start => true,
            Progress::Body { needed } => input.len() >= needed,
            Progress::BodyUntilNul { scanned, max } => {
                let new = input.get(scanned..).unwrap_or_default();
                let is_over = input.len() > max || memchr(b'\0', new).is_some();
                self.progress = Progress::BodyUntilNul { scanned: input.len(), max };
                is_over
            }
            Progress::HeaderBlock { scanned } => {
                // A NUL or too many bytes are errors, which decoding reports.
                let max = self.head_bytes_max() + Command::BYTES_MAX + 2;
                let is_over =
                    input.len() <= SHORT_HEAD_BYTES || input.len() > max || ends_head(input, scanned);
                // The empty line is at most three bytes long, and two of them may have been scanned
                // already.
                self.progress = Progress::HeaderBlock { scanned: input.len().saturating_sub(2) };
                is_over
            }
        }
    }

    #[inline]
    fn frame<'a>(&mut self, input: &'a [u8], table: &'a mut HeaderTable) -> Result<Step<'a>, DecodeError> {
        let Some((command, command_len)) = command(input)? else { return Ok(self.incomplete_head(input)) };
        let lines = input.get(command_len..).unwrap_or_default();
        let escaping = Escaping::of(command, self.version);
        let is_trimmed = self.version == Version::V10;
        let limits = HeadLimits { bytes_max: self.head_bytes_max(), is_trimmed };
        let spans = table.spans(self.limits.header_count_max);
        let head = match scan(lines, spans, limits) {
            Ok(head) => head,
            Err(error) => return Err(self.before_login(error)),
        };
        let Some(head) = head else { return Ok(self.incomplete_head(input)) };
        let body_start = command_len + head.len;
        let body_len = match self.body_len(input, body_start, head.content_length)? {
            Body::Whole(len) => len,
            Body::Incomplete(progress) => {
                self.progress = progress;
                return Ok(Step::Incomplete { needed: progress.needed() });
            }
        };
        let block = lines.get(..head.block_len).unwrap_or_default();
        let spans = spans.get(..head.count).unwrap_or_default();
        let is_utf8 = block.is_ascii() || std::str::from_utf8(block).is_ok();
        // STOMP 1.1 and 1.2, Header Encoding: UTF-8. Invalid UTF-8 would make many receiving
        // clients fail.
        if !is_utf8 && self.version != Version::V10 {
            return Err(not_utf8(block, spans));
        }
        let is_escaped = head.has_backslash && escaping != Escaping::None;
        if is_escaped {
            check_escapes(block, spans, escaping)?;
        }
        let headers = Headers {
            block,
            spans,
            is_escaped,
            // CONNECT precedes negotiation, so its sender may use any version.
            is_trimmed: is_trimmed && self.is_connected,
            // 1.0 drops spaces before a value; other versions would take them for part of it.
            is_plain: head.is_plain && is_utf8 && !(is_trimmed && has_space_before_value(block, spans)),
        };
        let body = input.get(body_start..body_start + body_len).unwrap_or_default();
        Ok(Step::Frame { frame: Frame { command, headers, body }, consumed: body_start + body_len + 1 })
    }

    /// Finds the end of the body. Refuses a body that is too long without waiting for it.
    #[inline]
    fn body_len(&self, input: &[u8], start: usize, content_length: Option<u64>) -> Result<Body, DecodeError> {
        let Some(max) = self.body_bytes_max(start) else { return Err(self.body_too_long()) };
        let Some(declared) = content_length else {
            let body = input.get(start..).unwrap_or_default();
            return match memchr(b'\0', body) {
                Some(len) if len <= max => Ok(Body::Whole(len)),
                None if body.len() <= max => {
                    Ok(Body::Incomplete(Progress::BodyUntilNul { scanned: input.len(), max: start + max }))
                }
                _ => Err(self.body_too_long()),
            };
        };
        let content_length = match usize::try_from(declared) {
            Ok(len) if len <= max => len,
            _ => return Err(self.body_too_long()),
        };
        match input.get(start + content_length) {
            Some(b'\0') => Ok(Body::Whole(content_length)),
            Some(_) => Err(DecodeError::BodyNotTerminated { content_length }),
            None => Ok(Body::Incomplete(Progress::Body { needed: start + content_length + 1 })),
        }
    }

    fn incomplete_head(&mut self, input: &[u8]) -> Step<'static> {
        self.progress = Progress::HeaderBlock { scanned: input.len().saturating_sub(2) };
        Step::Incomplete { needed: None }
    }

    fn head_bytes_max(&self) -> usize {
        let max = self.limits.header_bytes_max;
        if self.is_connected { max } else { max.min(self.limits.login_frame_bytes_max) }
    }

    /// Returns the maximum length of a body that starts at byte `start` of its frame. `None` if the
    /// frame exceeds the limit before login even without a body.
    fn body_bytes_max(&self, start: usize) -> Option<usize> {
        let max = self.limits.body_bytes_max;
        if self.is_connected {
            return Some(max);
        }
        // The NUL at the end of the frame counts too.
        self.limits.login_frame_bytes_max.checked_sub(start + 1).map(|room| room.min(max))
    }

    #[cold]
    fn body_too_long(&self) -> DecodeError {
        self.before_login(DecodeError::BodyTooLong { max: self.limits.body_bytes_max })
    }

    /// Replaces the error by the limit before login if the client has not logged in.
    #[cold]
    fn before_login(&self, error: DecodeError) -> DecodeError {
        match error {
            DecodeError::HeadersTooLong { .. } | DecodeError::BodyTooLong { .. } if !self.is_connected => {
                DecodeError::LoginFrameTooLong { max: self.limits.login_frame_bytes_max }
            }
            error => error,
        }
    }
}

enum Body {
    Whole(usize),
    Incomplete(Progress),
}

/// Reads the first line; returns the command and the length of the line.
#[inline]
fn command(input: &[u8]) -> Result<Option<(Command, usize)>, DecodeError> {
    // Fast path: most frames are SENDs.
    if input.starts_with(b"SEND\n") {
        return Ok(Some((Command::Send, 5)));
    }
    // Length of the longest command plus CR LF.
    let start = input.get(..Command::BYTES_MAX + 2).unwrap_or(input);
    let Some(len) = start.iter().position(|byte| *byte == b'\n') else {
        if start.len() < Command::BYTES_MAX + 2 && !start.contains(&b'\0') {
            return Ok(None);
        }
        return Err(DecodeError::UnknownCommand { line: Excerpt::new(start) });
    };
    let line = start.get(..len).unwrap_or_default();
    match Command::from_bytes(line.strip_suffix(b"\r").unwrap_or(line)) {
        Some(command) => Ok(Some((command, len + 1))),
        None => Err(DecodeError::UnknownCommand { line: Excerpt::new(line) }),
    }
}

/// Consumes the line ends and NULs at the start of the input.
///
/// STOMP 1.2, Augmented BNF: a frame may be followed by line ends. Some clients end a frame with
/// two NULs because they write a C string; RabbitMQ and ActiveMQ accept that.
fn noise(input: &[u8]) -> Result<Step<'static>, DecodeError> {
    let mut consumed = 0;
    loop {
        match input.get(consumed..).unwrap_or_default() {
            [b'\n' | b'\0', ..] => consumed += 1,
            [b'\r', b'\n', ..] => consumed += 2,
            [b'\r', _, ..] if consumed == 0 => return Err(DecodeError::CarriageReturnBeforeFrame),
            _ if consumed == 0 => return Ok(Step::Incomplete { needed: None }),
            _ => return Ok(Step::Noise { consumed }),
        }
    }
}

/// Whether the input has an empty line or a NUL at or after `from`.
fn ends_head(input: &[u8], from: usize) -> bool {
    let new = input.get(from..).unwrap_or_default();
    memchr2_iter(b'\n', b'\0', new)
        .any(|at| matches!(new.get(at..), Some([b'\0', ..] | [b'\n', b'\n', ..] | [b'\n', b'\r', b'\n', ..])))
}

fn has_space_before_value(block: &[u8], spans: &[Span]) -> bool {
    spans.iter().any(|span| block.get(span.colon.wrapping_add(1)) == Some(&b' '))
}

/// Returns the error for the first line that is not UTF-8.
#[cold]
fn not_utf8(block: &[u8], spans: &[Span]) -> DecodeError {
    let is_utf8 =
        |span: &&Span| std::str::from_utf8(block.get(span.start..span.end).unwrap_or_default()).is_ok();
    DecodeError::HeaderNotUtf8 { line: spans.iter().take_while(is_utf8).count() + 1 }
}

#[cold]
fn check_escapes(block: &[u8], spans: &[Span], escaping: Escaping) -> Result<(), DecodeError> {
    for (index, span) in spans.iter().enumerate() {
        let line = block.get(span.start..span.end).unwrap_or_default();
        // The colon ends the name, so an escape cannot span it.
        let (name, value) = line.split_at_checked(span.colon - span.start).unwrap_or_default();
        if let Some(escape) = escaping.undefined(name).or_else(|| escaping.undefined(value)) {
            return Err(DecodeError::UndefinedEscape { line: index + 1, escape: Excerpt::new(escape) });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
