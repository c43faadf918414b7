//! The way of a client's bytes from the transport to the protocol; an incomplete frame is carried over.

use std::task::{Poll, ready};

use bytes::BytesMut;
use imori_core::turn::Next;

use super::conversation::Conversation;
use super::host::{Host, Transport};

/// The bytes of an incomplete frame. An idle connection keeps no buffer.
#[derive(Debug, Default)]
pub(super) struct Input {
    carry: BytesMut,
    /// Bytes of the frame that is incomplete, where it says so.
    frame_bytes: Option<usize>,
}

/// The result of reading once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// The peer has closed its side or is gone.
    Closed,
    /// A long frame is not whole yet.
    Partial,
    /// The protocol worked on what came, which may not be all that there is.
    Worked(Next, HasMore),
}

/// Tells whether there may be more to read.
pub(super) type HasMore = bool;

impl Input {
    /// Reads once, and lets the protocol work on what came.
    pub(super) fn poll_read<H: Host>(
        &mut self,
        host: &H,
        transport: &mut impl Transport,
        protocol: &mut impl Conversation,
    ) -> Poll<Read> {
        let cell_scratch = host.cell_scratch();
        let (carried, read_bytes) = (self.carry.len(), cell_scratch.read_bytes());
        if carried > read_bytes || self.frame_bytes.is_some_and(|bytes| bytes > 2 * read_bytes) {
            return self.poll_read_long(host, transport, protocol);
        }
        let mut buffer = cell_scratch.buffer.borrow_mut();
        let Some(room) = buffer.get_mut(carried..carried + read_bytes) else {
            return Poll::Ready(Read::Closed);
        };
        let read = ready!(transport.poll_read(room));
        if read == 0 {
            return Poll::Ready(Read::Closed);
        }
        if let Some(front) = buffer.get_mut(..carried) {
            front.copy_from_slice(&self.carry);
        }
        let input = buffer.get(..carried + read).unwrap_or_default();
        let (consumed, next) = self.receive(host, protocol, input);
        let rest = input.get(consumed..).unwrap_or_default();
        self.carry.clear();
        if rest.is_empty() {
            self.carry = BytesMut::new();
        } else {
            self.carry.extend_from_slice(rest);
        }
        Poll::Ready(Read::Worked(next, read == read_bytes))
    }

    /// Reads a long frame straight into the memory it can stay in.
    fn poll_read_long<H: Host>(
        &mut self,
        host: &H,
        transport: &mut impl Transport,
        protocol: &mut impl Conversation,
    ) -> Poll<Read> {
        let read_bytes = host.cell_scratch().read_bytes();
        let missing = self.frame_bytes.map_or(read_bytes, |bytes| bytes.saturating_sub(self.carry.len()));
        self.carry.reserve(missing.max(1));
        if ready!(transport.poll_read_buf(&mut self.carry)) == 0 {
            return Poll::Ready(Read::Closed);
        }
        if self.frame_bytes.is_some_and(|bytes| self.carry.len() < bytes) {
            return Poll::Ready(Read::Partial);
        }
        // A frame of this size is a turn's work: others go on, and memory is looked at (SECURITY LIM-14).
        let has_more = true;
        Poll::Ready(Read::Worked(self.work(host, protocol), has_more))
    }

    /// Bytes of memory that it keeps.
    pub(super) fn bytes(&self) -> usize {
        self.carry.capacity()
    }

    /// Lets the protocol work on what was read before, or goes on with what it let wait.
    pub(super) fn work<H: Host>(&mut self, host: &H, protocol: &mut impl Conversation) -> Next {
        if self.carry.is_empty() && !protocol.has_parked() {
            return Next::More { frame_bytes: None };
        }
        let read_bytes = host.cell_scratch().read_bytes();
        let whole = self.frame_bytes.filter(|bytes| (read_bytes..=self.carry.len()).contains(bytes));
        let Some(bytes) = whole else {
            let mut carry = std::mem::take(&mut self.carry);
            let (consumed, next) = self.receive(host, protocol, &carry);
            let _ = carry.split_to(consumed.min(carry.len()));
            self.carry = carry;
            return next;
        };
        let frame = self.carry.split_to(bytes).freeze();
        let received = protocol.receive(host, &frame, Some(&frame));
        self.note(received.next);
        let rest = frame.slice(received.consumed.min(frame.len())..);
        drop(frame);
        if !rest.is_empty() {
            let mut carry = BytesMut::from(rest);
            carry.unsplit(std::mem::take(&mut self.carry));
            self.carry = carry;
        }
        match received.next {
            Next::More { .. } if !self.carry.is_empty() => Next::Again,
            next => next,
        }
    }

    fn receive<H: Host>(
        &mut self,
        host: &H,
        protocol: &mut impl Conversation,
        input: &[u8],
    ) -> (usize, Next) {
        let received = protocol.receive(host, input, None);
        self.note(received.next);
        (received.consumed, received.next)
    }

    fn note(&mut self, next: Next) {
        self.frame_bytes = match next {
            Next::More { frame_bytes } => frame_bytes,
            _ => None,
        };
    }
}
