//! A frame as a view of the bytes it came in.

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
    /// The body; empty when there is none.
    pub body: &'a [u8],
}

/// Where the header lines of the current frame are. It is kept between frames so that decoding
/// allocates nothing; one table serves all connections of a thread.
#[derive(Debug, Default)]
pub struct HeaderTable {
    spans: Vec<Span>,
}

impl HeaderTable {
    /// Returns this many spans to fill.
    #[inline]
    pub(crate) fn spans(&mut self, count_max: usize) -> &mut [Span] {
        if self.spans.len() < count_max {
            self.spans.resize(count_max, Span::default());
        }
        self.spans.get_mut(..count_max).unwrap_or_default()
    }
}

/// The places of one header line, as offsets into the block.
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
    /// Returns the lines as they came, each with its line end, without the empty line.
    pub fn block(&self) -> &'a [u8] {
        self.block
    }

    /// Tells whether the block means the same in every version, so that it can be passed on as it is.
    ///
    /// Then no line has a backslash, a carriage return or a second colon, nor, in 1.0, a space
    /// after its colon.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Counts the lines, repeated ones too.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Tells whether there are no header lines.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Goes through the lines in order, repeated ones too: the first of a name is the one that counts.
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

    /// Returns the value of a header as it came, escapes included.
    ///
    /// The name must have no character that is escaped, which is so for all names of STOMP.
    pub fn raw(&self, name: &str) -> Option<&'a [u8]> {
        // STOMP 1.2, Repeated Header Entries: only the first counts.
        self.iter().find(|header| header.name == name.as_bytes()).map(|header| header.value)
    }

    /// Returns the value of a header.
    ///
    /// The name must have no character that is escaped, which is so for all names of STOMP.
    pub fn value(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        self.iter().find(|header| header.name == name.as_bytes()).map(|header| header.value())
    }

    /// Reads the same lines as STOMP 1.0 does: spaces before a value are no part of it.
    ///
    /// The decoder does this itself once 1.0 is agreed on; a CONNECT is older than the agreement.
    #[must_use]
    pub fn trimmed(self) -> Self {
        Self { is_trimmed: true, ..self }
    }
}

/// One header line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// The name as it came, escapes included.
    pub name: &'a [u8],
    /// The value as it came, escapes included.
    pub value: &'a [u8],
    /// Tells whether some line of the frame has an escape.
    pub is_escaped: bool,
}

impl<'a> Header<'a> {
    /// Returns the name that is meant.
    pub fn name(&self) -> Cow<'a, [u8]> {
        if self.is_escaped { unescape(self.name) } else { Cow::Borrowed(self.name) }
    }

    /// Returns the value that is meant.
    pub fn value(&self) -> Cow<'a, [u8]> {
        if self.is_escaped { unescape(self.value) } else { Cow::Borrowed(self.value) }
    }
}
