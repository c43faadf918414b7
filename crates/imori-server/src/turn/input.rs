//! Reads a client's bytes from the transport for the protocol, and carries over an incomplete frame.
//!
//! The first turn's bytes of a frame are not charged. A long frame is charged with its full size before more of it is
//! read, so a declared size alone reserves nothing. The rest is read straight into the memory in which the body stays.

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
    /// Size of the incomplete frame in bytes, if known.
    frame_bytes: Option<usize>,
    /// Bytes charged for the carry, because it holds a long frame.
    charged: usize,
    /// Bytes charged for messages that the protocol has received in part.
    gathered: usize,
    /// The connection waits in line for memory for a long frame.
    waits_for_room: bool,
    /// When the progress of a long frame was last checked, and bytes received since.
    looked_at: Time,
    came: usize,
}

/// The result of reading once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// The peer has closed its side or is gone.
    Closed,
    /// A long frame is not complete yet.
    Partial,
    /// There is no memory for a long frame; nothing was read.
    NoRoom,
    /// The protocol worked on the bytes that were read; there may be more to read.
    Worked(Next, HasMore),
}

/// Whether there may be more to read.
pub(super) type HasMore = bool;

impl Input {
    /// The input of a connection from which the bytes `first` were already read.
    pub(super) fn new(first: &[u8]) -> Input {
        Input { carry: BytesMut::from(first), ..Input::default() }
    }

    /// Reads once, and passes the bytes to the protocol.
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

    /// Reads a long frame straight into the memory in which it can stay.
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
            // The size of the frame is not known.
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
        // A frame of this size is a turn's work: other connections go on, and memory is checked (SECURITY LIM-14).
        let has_more = true;
        Poll::Ready(Read::Worked(self.work(host, id, protocol), has_more))
    }

    /// Charges the full size of messages that the protocol has received in part; `false` if the connection has to wait.
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

    /// Gives back the memory charged for messages that are complete now.
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

    /// Raises the charge for the carry to `bytes`; `false` if the connection has to wait.
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

    /// Charges `more` bytes for a frame or message of `bytes` in all; `false` if the connection has to wait.
    fn charge_more<H: Host>(
        &mut self,
        host: &H,
        id: ConnectionId,
        protocol: &mut impl Inbound<Scratch: Lent>,
        more: usize,
        bytes: usize,
    ) -> bool {
        let memory = host.memory();
        // The frames behind this one may free memory, if an alarm would park this one and let them be read.
        let has_place = || protocol.intake().has_place_for(bytes) && protocol.does_more_than_publish(host);
        let is_charged =
            memory.charge_long_frame(id, more) || memory.charge_long_frame_or_wait(id, more, has_place());
        self.waits_for_room = !is_charged;
        if is_charged {
            self.look_again(host.now());
        }
        is_charged
    }

    /// Bytes of memory that the carry takes.
    pub(super) fn bytes(&self) -> usize {
        self.carry.capacity()
    }

    /// Tells whether reading pauses until there is memory for a long frame.
    pub(super) fn waits_for_room(&self) -> bool {
        self.waits_for_room
    }

    /// When to check the progress of a long frame; `None` if none is charged.
    pub(super) fn next_look(&self) -> Option<Time> {
        (self.charged + self.gathered > 0).then(|| self.looked_at.after(LONG_FRAME_STALL_MAX))
    }

    /// Tells whether less than a turn's bytes arrived since the last check, and starts the next interval.
    pub(super) fn has_stalled<H: Host>(&mut self, host: &H) -> bool {
        let has_stalled = self.came < host.cell_scratch().read_bytes();
        self.look_again(host.now());
        has_stalled
    }

    /// Drops the carried bytes, gives their memory back, and leaves the line for memory.
    pub(super) fn clear<H: Host>(&mut self, host: &H, id: ConnectionId) {
        self.carry = BytesMut::new();
        self.frame_bytes = None;
        self.charged += std::mem::take(&mut self.gathered);
        self.discharge(host, id);
        if std::mem::take(&mut self.waits_for_room) {
            host.memory().long_frames().leave(id);
        }
    }

    /// Lets the protocol work on carried bytes, or continue with parked frames.
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

    /// Lets the protocol work on the complete frame at the start of the carry; the protocol may keep its memory.
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

    /// Lets the protocol work on `input` within the turn's budget.
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

    /// Gives back the memory of a long frame that was consumed; the bytes behind it are copied out of it.
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
