//! A frame as a view of the input.

use std::borrow::Cow;

use crate::codec::command::Command;
use crate::codec::escape::{trim_spaces, unescape};

/// One frame; it borrows the input and the header table.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// The first line.
    pub command: Command,
    /// The header lines.
    pub headers: Headers<'a>,
    /// The body; empty if there is none.
    pub body: &'a [u8],
}

/// Positions of the current frame's header lines. Reused between frames so that decoding does not
/// allocate; one table serves all connections of a thread.
#[derive(Debug, Default)]
pub struct HeaderTable {
    spans: Vec<Span>,
}

impl HeaderTable {
    /// Returns `count_max` spans to fill.
    #[inline]
    pub(crate) fn spans(&mut self, count_max: usize) -> &mut [Span] {
        if self.spans.len() < count_max {
            self.spans.resize(count_max, Span::default());
        }
        self.spans.get_mut(..count_max).unwrap_or_default()
    }
}

/// Position of one header line, as offsets into the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) colon: usize,
    pub(crate) end: usize,
}

/// The header lines of a frame.
#[derive(Debug, Clone, Copy)]
pub struct Headers<'a> {
    pub(crate) block: &'a [u8],
    pub(crate) spans: &'a [Span],
    pub(crate) is_escaped: bool,
    pub(crate) is_trimmed: bool,
    pub(crate) is_plain: bool,
}

impl<'a> Headers<'a> {
    /// Returns the lines as received, with line ends but without the empty line.
    pub fn block(&self) -> &'a [u8] {
        self.block
    }

    /// Whether the block means the same in every version, so that it can be forwarded unchanged.
    ///
    /// A plain block has no backslash, no carriage return and no second colon in a line; in 1.0 it
    /// also has no space after a colon.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Number of lines, including repeated headers.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are no header lines.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Iterates over the lines in order, including repeated headers; the first of a name counts.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Header<'a>> + use<'a> {
        let Self { block, spans, is_escaped, is_trimmed, .. } = *self;
        spans.iter().filter_map(move |span| {
            let name = block.get(span.start..span.colon)?;
            let value = block.get(span.colon + 1..span.end)?;
            let value = if is_trimmed { trim_spaces(value) } else { value };
            Some(Header { name, value, is_escaped })
        })
    }

    /// Returns the value of a header as received, with its escapes.
    ///
    /// `name` must not contain characters that need escapes; no name of STOMP does.
    pub fn raw(&self, name: &str) -> Option<&'a [u8]> {
        // STOMP 1.2, Repeated Header Entries: only the first counts.
        self.iter().find(|header| header.name == name.as_bytes()).map(|header| header.value)
    }

    /// Returns the unescaped value of a header.
    ///
    /// `name` must not contain characters that need escapes; no name of STOMP does.
    pub fn value(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        self.iter().find(|header| header.name == name.as_bytes()).map(|header| header.value())
    }

    /// Reads the same lines as STOMP 1.0, which drops spaces before a value.
    ///
    /// The decoder does this itself after 1.0 is negotiated; CONNECT arrives before that.
    #[must_use]
    pub fn trimmed(self) -> Self {
        Self { is_trimmed: true, ..self }
    }
}

/// One header line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// The name as received, with its escapes.
    pub name: &'a [u8],
    /// The value as received, with its escapes.
    pub value: &'a [u8],
    /// Some line of the frame contains an escape.
    pub is_escaped: bool,
}

impl<'a> Header<'a> {
    /// Returns the unescaped name.
    pub fn name(&self) -> Cow<'a, [u8]> {
        if self.is_escaped { unescape(self.name) } else { Cow::Borrowed(self.name) }
    }

    /// Returns the unescaped value.
    pub fn value(&self) -> Cow<'a, [u8]> {
        if self.is_escaped { unescape(self.value) } else { Cow::Borrowed(self.value) }
    }
}
