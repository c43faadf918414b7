//! The way of a client's bytes from the transport to the protocol; an incomplete frame is carried over.
//!
//! A turn's own bytes of a frame are kept free of charge. A long frame is charged with all its bytes before more of it
//! is read, so that a declaration alone takes nothing. It then comes straight into the memory that its body stays in.

use std::task::{Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use imori_core::id::ConnectionId;
use imori_core::inbound::Inbound;
use imori_core::time::Time;
use imori_core::turn::{Next, Received};

use super::cell_scratch::Lent;
use super::host::{Host, Transport};
use crate::limits::LONG_FRAME_STALL_MAX;

/// The bytes of an incomplete frame. An idle connection keeps no buffer.
#[derive(Debug, Default)]
pub(super) struct Input {
    carry: BytesMut,
    /// Bytes of the frame that is incomplete, where it says so.
    frame_bytes: Option<usize>,
    /// Bytes of memory that the carry is charged with, as it is a long frame.
    charged: usize,
    /// Bytes of memory that the protocol is charged with for messages of which it has a part.
    gathered: usize,
    /// The connection is in the line of those that wait for memory for a long frame.
    waits_for_room: bool,
    /// When it was looked last how much of a long frame has come, and bytes since.
    looked_at: Time,
    came: usize,
}

/// The result of reading once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// The peer has closed its side or is gone.
    Closed,
    /// A long frame is not whole yet.
    Partial,
    /// There is no memory for a long frame, and nothing was read.
    NoRoom,
    /// The protocol worked on what came, which may not be all that there is.
    Worked(Next, HasMore),
}

/// Tells whether there may be more to read.
pub(super) type HasMore = bool;

impl Input {
    /// The input of a connection of which the bytes `first` were read.
    pub(super) fn new(first: &[u8]) -> Input {
        Input { carry: BytesMut::from(first), ..Input::default() }
    }

    /// Reads once, and lets the protocol work on what came.
    pub(super) fn poll_read<H: Host>(
        &mut self,
        host: &H,
        id: ConnectionId,
        transport: &mut impl Transport,
        protocol: &mut impl Inbound<Scratch: Lent>,
    ) -> Poll<Read> {
        if !self.charge_gathered(host, id, protocol) {
            return Poll::Ready(Read::NoRoom);
        }
        let cell_scratch = host.cell_scratch();
        let (carried, read_bytes) = (self.carry.len(), cell_scratch.read_bytes());
        let is_small = self.frame_bytes.is_some_and(|bytes| bytes <= 2 * read_bytes);
        if carried > read_bytes || carried == read_bytes && !is_small {
            return self.poll_read_long(host, id, is_small, transport, protocol);
        }
        let room_bytes = if is_small { read_bytes } else { read_bytes - carried };
        let mut buffer = cell_scratch.buffer.borrow_mut();
        let Some(room) = buffer.get_mut(carried..carried + room_bytes) else {
            return Poll::Ready(Read::Closed);
        };
        let read = ready!(transport.poll_read(room));
        if read == 0 {
            return Poll::Ready(Read::Closed);
        }
        if let Some(front) = buffer.get_mut(..carried) {
            front.copy_from_slice(&self.carry);
        }
        self.came += read;
        let input = buffer.get(..carried + read).unwrap_or_default();
        let Received { consumed, next } = self.receive(host, protocol, input, None);
        let rest = input.get(consumed..).unwrap_or_default();
        self.carry.clear();
        if rest.is_empty() {
            self.carry = BytesMut::new();
        } else {
            self.carry.extend_from_slice(rest);
        }
        self.discharge_gathered(host, id, protocol);
        self.discharge_unless_long(host, id);
        Poll::Ready(Read::Worked(next, read == room_bytes))
    }

    /// Reads a long frame straight into the memory it can stay in.
    fn poll_read_long<H: Host>(
        &mut self,
        host: &H,
        id: ConnectionId,
        is_small: bool,
        transport: &mut impl Transport,
        protocol: &mut impl Inbound<Scratch: Lent>,
    ) -> Poll<Read> {
        let free_bytes = host.memory().long_frames().free_bytes();
        let is_free = is_small || self.carry.len() < free_bytes;
        let wanted = match self.frame_bytes {
            _ if is_free && !is_small => free_bytes,
            Some(bytes) => bytes.max(self.carry.len() + 1),
            None if self.carry.len() < self.charged => self.charged,
            // How long it will be is not known.
            None => 2 * self.carry.len(),
        };
        if !is_free && wanted > self.charged && !self.charge(host, id, protocol, wanted) {
            return Poll::Ready(Read::NoRoom);
        }
        if self.carry.capacity() < wanted {
            let mut grown = BytesMut::with_capacity(wanted);
            grown.extend_from_slice(&self.carry);
            self.carry = grown;
        }
        let read = ready!(transport.poll_read_buf(&mut self.carry));
        if read == 0 {
            return Poll::Ready(Read::Closed);
        }
        self.came += read;
        if self.frame_bytes.is_some_and(|bytes| self.carry.len() < bytes) {
            protocol.intake_mut().reading.received(host.now());
            return Poll::Ready(Read::Partial);
        }
        // A frame of this size is a turn's work: others go on, and memory is looked at (SECURITY LIM-14).
        let has_more = true;
        Poll::Ready(Read::Worked(self.work(host, id, protocol), has_more))
    }

    /// Charges the protocol with all bytes of the messages of which it has a part; false where the connection has to
    /// wait.
    #[inline]
    fn charge_gathered<H: Host>(
        &mut self,
        host: &H,
        id: ConnectionId,
        protocol: &mut impl Inbound<Scratch: Lent>,
    ) -> bool {
        let bytes = protocol.gathered_bytes(host.memory().long_frames().free_bytes());
        if bytes <= self.gathered {
            return true;
        }
        let is_charged = self.charge_more(host, id, protocol, bytes - self.gathered, bytes);
        if is_charged {
            self.gathered = bytes;
        }
        is_charged
    }

    /// Gives back the memory of messages that the protocol has whole now.
    #[inline]
    fn discharge_gathered<H: Host>(&mut self, host: &H, id: ConnectionId, protocol: &impl Inbound) {
        if self.gathered == 0 {
            return;
        }
        let bytes = protocol.gathered_bytes(0);
        if bytes < self.gathered {
            host.memory().long_frames().give_back(id, self.gathered - bytes);
            self.gathered = bytes;
        }
    }

    /// Charges the carry with so many bytes; false where the connection has to wait.
    fn charge<H: Host>(
        &mut self,
        host: &H,
        id: ConnectionId,
        protocol: &mut impl Inbound<Scratch: Lent>,
        bytes: usize,
    ) -> bool {
        let is_charged = self.charge_more(host, id, protocol, bytes - self.charged, bytes);
        if is_charged {
            self.charged = bytes;
        }
        is_charged
    }

    /// Charges the connection with so many bytes more, for a frame or message of `bytes`; false where it has to wait.
    fn charge_more<H: Host>(
        &mut self,
        host: &H,
        id: ConnectionId,
        protocol: &mut impl Inbound<Scratch: Lent>,
        more: usize,
        bytes: usize,
    ) -> bool {
        let memory = host.memory();
        // The frames behind it may free memory, if an alarm would park it and let them be read.
        let has_place = || protocol.intake().has_place_for(bytes) && protocol.does_more_than_publish(host);
        let is_charged =
            memory.charge_long_frame(id, more) || memory.charge_long_frame_or_wait(id, more, has_place());
        self.waits_for_room = !is_charged;
        if is_charged {
            self.look_again(host.now());
        }
        is_charged
    }

    /// Bytes of memory that it keeps.
    pub(super) fn bytes(&self) -> usize {
        self.carry.capacity()
    }

    /// Tells whether nothing is read until there is memory for a long frame.
    pub(super) fn waits_for_room(&self) -> bool {
        self.waits_for_room
    }

    /// When it is to be looked how much of a long frame has come.
    pub(super) fn next_look(&self) -> Option<Time> {
        (self.charged + self.gathered > 0).then(|| self.looked_at.after(LONG_FRAME_STALL_MAX))
    }

    /// Tells whether less of a long frame has come since the last look than a turn reads, and looks again later.
    pub(super) fn has_stalled<H: Host>(&mut self, host: &H) -> bool {
        let has_stalled = self.came < host.cell_scratch().read_bytes();
        self.look_again(host.now());
        has_stalled
    }

    /// Drops what was read, and gives its memory back.
    pub(super) fn clear<H: Host>(&mut self, host: &H, id: ConnectionId) {
        self.carry = BytesMut::new();
        self.frame_bytes = None;
        self.charged += std::mem::take(&mut self.gathered);
        self.discharge(host, id);
        if std::mem::take(&mut self.waits_for_room) {
            host.memory().long_frames().leave(id);
        }
    }

    /// Lets the protocol work on what was read before, or goes on with what it let wait.
    pub(super) fn work<H: Host>(
        &mut self,
        host: &H,
        id: ConnectionId,
        protocol: &mut impl Inbound<Scratch: Lent>,
    ) -> Next {
        if self.carry.is_empty() && !protocol.has_parked() {
            return Next::More { frame_bytes: None };
        }
        let read_bytes = host.cell_scratch().read_bytes();
        let whole = self.frame_bytes.filter(|bytes| (read_bytes..=self.carry.len()).contains(bytes));
        let next = match whole {
            Some(bytes) => self.work_on_frame(host, protocol, bytes),
            None => {
                let mut carry = std::mem::take(&mut self.carry);
                let Received { consumed, next } = self.receive(host, protocol, &carry, None);
                carry.advance(consumed.min(carry.len()));
                self.carry = carry;
                next
            }
        };
        self.discharge_gathered(host, id, protocol);
        self.discharge_unless_long(host, id);
        next
    }

    /// Lets the protocol work on the whole frame that the carry begins with; it may keep the memory.
    fn work_on_frame<H: Host>(
        &mut self,
        host: &H,
        protocol: &mut impl Inbound<Scratch: Lent>,
        frame_bytes: usize,
    ) -> Next {
        let mut carry = std::mem::take(&mut self.carry);
        let behind = BytesMut::from(carry.get(frame_bytes..).unwrap_or_default());
        carry.truncate(frame_bytes);
        let frame = carry.freeze();
        let received = self.receive(host, protocol, &frame, Some(&frame));
        let rest = frame.slice(received.consumed.min(frame.len())..);
        drop(frame);
        self.carry = match rest.is_empty() {
            true => behind,
            false => {
                let mut carry = BytesMut::from(rest);
                carry.extend_from_slice(&behind);
                carry
            }
        };
        match received.next {
            Next::More { .. } if !self.carry.is_empty() => Next::Again,
            next => next,
        }
    }

    /// Lets the protocol work on `input` for as long as a turn takes.
    fn receive<H: Host, P: Inbound<Scratch: Lent>>(
        &mut self,
        host: &H,
        protocol: &mut P,
        input: &[u8],
        shared: Option<&Bytes>,
    ) -> Received {
        let cell_scratch = host.cell_scratch();
        let mut budget = cell_scratch.budget(host.now());
        let received = P::Scratch::lend(cell_scratch, |scratch| {
            protocol.receive(host, scratch, input, shared, &mut budget)
        });
        self.frame_bytes = match received.next {
            Next::More { frame_bytes } => frame_bytes,
            _ => None,
        };
        received
    }

    fn look_again(&mut self, now: Time) {
        (self.looked_at, self.came) = (now, 0);
    }

    /// Gives the memory of a long frame back once that is gone; what is left behind it is copied out of it.
    fn discharge_unless_long<H: Host>(&mut self, host: &H, id: ConnectionId) {
        if self.charged == 0 {
            return;
        }
        self.look_again(host.now());
        if self.carry.len() < host.cell_scratch().read_bytes() {
            self.carry = BytesMut::from(&*self.carry);
            self.discharge(host, id);
        }
    }

    fn discharge<H: Host>(&mut self, host: &H, id: ConnectionId) {
        let charged = std::mem::take(&mut self.charged);
        if charged > 0 {
            host.memory().long_frames().give_back(id, charged);
        }
    }
}
