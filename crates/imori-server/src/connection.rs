//! A connection's task: reads, lets the protocol work, waits where it has to, and ends.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use imori_core::id::ConnectionId;
use imori_core::outbound::{CutReason, Outbound};
use imori_core::time::Time;
use imori_core::turn::Peer;
use imori_core::turn::{Budget, Next};
use imori_core::world::{Event, World};
use imori_stomp::connection::Connection;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::Sleep;
use tracing::{debug, error, warn};

use crate::admission::Ticket;
use crate::cell::Cell;
use crate::config::WritePolicy;
use crate::limits::{LINGER_MAX, PRESS_MAX, READ_BYTES};
use crate::shared::{Arrival, Link, Writer};
use crate::signal::{Signal, Signals};

/// Takes a connection over and serves it on this cell.
pub(crate) fn serve(arrival: Arrival) {
    let Arrival { stream, protocol, ticket } = arrival;
    Cell::current(|cell| match Task::new(cell, stream) {
        Ok(Some(mut task)) => {
            cell.shared.admission.seat(&ticket, task.id);
            debug!(%protocol, connection = ?task.id, "connection accepted");
            task.ticket = Some(ticket);
            tokio::spawn(async move { poll_fn(|cx| task.poll(cx)).await });
        }
        Ok(None) => {
            warn!("connection refused: every slot of this cell is taken");
            cell.shared.admission.leave(&ticket);
        }
        Err(error) => {
            debug!(%error, "connection ended before it began");
            cell.shared.admission.leave(&ticket);
        }
    });
}

/// What the task is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Reading and working.
    Open,
    /// Frames that were read wait for another turn.
    Working,
    /// Waiting until a reader that is behind has room, or for so long at most.
    Pressed(Time),
    /// Not read until the memory alarm ends.
    Parked,
    /// Ending: what is left is written, until this time at most.
    Draining(Time),
    /// All is written and our side is closed: waits for the peer to close its own.
    Lingering(Time),
}

/// A connection, from its cell's point of view.
struct Task {
    id: ConnectionId,
    ticket: Option<Ticket>,
    reader: OwnedReadHalf,
    writer: Arc<OwnedWriteHalf>,
    signals: Arc<Signals>,
    protocol: Connection,
    state: State,
    /// What was read and is not yet a whole frame.
    carry: BytesMut,
    /// Bytes of the frame that is incomplete, where it says so.
    frame_bytes: Option<usize>,
    timer: Option<Pin<Box<Sleep>>>,
    timer_at: Option<Time>,
    has_waker: bool,
    was_logged_in: bool,
    /// It is on the list of those who are told that the memory alarm is over.
    waits_for_memory: bool,
    source: SocketAddr,
    /// It is in a turn, which has not ended or ended in a panic.
    is_in_turn: bool,
}

impl Task {
    fn new(cell: &Cell, stream: std::net::TcpStream) -> io::Result<Option<Task>> {
        let stream = TcpStream::from_std(stream)?;
        let source = stream.peer_addr()?;
        let (reader, writer) = stream.into_split();
        let writer = Arc::new(writer);
        let signals = Arc::new(Signals::default());
        let settings = &cell.settings;
        let Some(handle) = cell.shared.cell(cell.id) else {
            return Ok(None);
        };
        let key = handle.connections.insert(|key| {
            let id = ConnectionId { cell: cell.id, slot: key.slot, generation: key.generation };
            let encoder = Connection::encoder(&settings.stomp);
            Link {
                outbound: Outbound::new(id, encoder, settings.outbound, cell.gauge().clone()),
                writer: match settings.write {
                    WritePolicy::Any => Writer::Any(Arc::clone(&writer)),
                    WritePolicy::Own => Writer::Own(Arc::clone(&writer)),
                },
                signals: Arc::clone(&signals),
                is_ending: false,
                waker: None,
            }
        });
        let Some(key) = key else {
            return Ok(None);
        };
        let id = ConnectionId { cell: cell.id, slot: key.slot, generation: key.generation };
        let peer = Peer {
            is_loopback: settings.trusts_network || is_loopback(source.ip()),
            address: source.to_string(),
        };
        cell.begin_turn();
        Ok(Some(Task {
            id,
            ticket: None,
            reader,
            writer,
            signals,
            protocol: Connection::new(Arc::clone(&settings.stomp), id, peer, cell.now()),
            state: State::Open,
            carry: BytesMut::new(),
            frame_bytes: None,
            timer: None,
            timer_at: None,
            has_waker: false,
            was_logged_in: false,
            waits_for_memory: false,
            source,
            is_in_turn: false,
        }))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Cell::current(|cell| {
            self.is_in_turn = true;
            let poll = self.poll_on(cell, cx);
            self.is_in_turn = false;
            cell.end_turn();
            poll
        })
        .unwrap_or(Poll::Ready(()))
    }

    fn poll_on(&mut self, cell: &Cell, cx: &mut Context<'_>) -> Poll<()> {
        cell.begin_turn();
        if !self.has_waker {
            self.has_waker = true;
            cell.shared.with_link(self.id, |link| link.waker = Some(cx.waker().clone()));
        }
        loop {
            if self.signals.has(Signal::Broken) || self.signals.take(Signal::Evict) && !self.was_logged_in {
                return Poll::Ready(());
            }
            if self.signals.take(Signal::Ending)
                && !matches!(self.state, State::Draining(_) | State::Lingering(_))
            {
                self.state = State::Draining(cell.now().after(LINGER_MAX));
                self.tell_of_cut(cell);
            }
            self.poll_write(cell, cx);
            if self.signals.take(Signal::End) {
                self.linger(cell);
            }
            if self.poll_timer(cell, cx) {
                return Poll::Ready(());
            }
            while matches!(self.state, State::Open | State::Working | State::Parked)
                && self.signals.take(Signal::AlarmEnded)
            {
                self.waits_for_memory = false;
                let next = self.protocol.alarm_ended(cell);
                self.follow(cell, next);
            }
            match self.state {
                State::Open => match self.poll_read(cell, cx) {
                    Poll::Ready(true) => {}
                    Poll::Ready(false) => {
                        // The peer may have closed its side only, and still read.
                        cell.flush(self.id);
                        return Poll::Ready(());
                    }
                    Poll::Pending => return Poll::Pending,
                },
                State::Working => self.work_on_carry(cell),
                State::Pressed(_) if self.signals.take(Signal::Resume) => self.state = State::Working,
                State::Lingering(_) => return self.poll_peer_closed(cell, cx),
                State::Pressed(_) | State::Parked | State::Draining(_) => return Poll::Pending,
            }
            if self.state == State::Working {
                // Others have their turn first.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }

    /// Writes what could not be written before, or what is this cell's own to write.
    fn poll_write(&mut self, cell: &Cell, cx: &mut Context<'_>) {
        while self.signals.has(Signal::Write) {
            match self.writer.as_ref().as_ref().poll_write_ready(cx) {
                Poll::Ready(Ok(())) => {
                    self.signals.take(Signal::Write);
                    cell.flush(self.id);
                }
                Poll::Ready(Err(_)) => {
                    self.signals.set(Signal::Broken);
                    return;
                }
                Poll::Pending => return,
            }
        }
    }

    /// Reads once and works on what came; false where the peer has closed or failed.
    fn poll_read(&mut self, cell: &Cell, cx: &mut Context<'_>) -> Poll<bool> {
        let carried = self.carry.len();
        if carried > READ_BYTES || self.frame_bytes.is_some_and(|bytes| bytes > 2 * READ_BYTES) {
            return self.poll_read_large(cell, cx);
        }
        let mut scratch = cell.scratch.borrow_mut();
        let Some(room) = scratch.get_mut(carried..carried + READ_BYTES) else {
            return Poll::Ready(false);
        };
        let mut buffer = ReadBuf::new(room);
        let read = match ready!(Pin::new(&mut self.reader).poll_read(cx, &mut buffer)) {
            Ok(()) => buffer.filled().len(),
            Err(_) => return Poll::Ready(false),
        };
        if read == 0 {
            return Poll::Ready(false);
        }
        if let Some(front) = scratch.get_mut(..carried) {
            front.copy_from_slice(&self.carry);
        }
        let input = scratch.get(..carried + read).unwrap_or_default();
        let (consumed, next) = self.receive(cell, input);
        let rest = input.get(consumed..).unwrap_or_default();
        self.carry.clear();
        if rest.is_empty() {
            // An idle connection keeps no buffer.
            self.carry = BytesMut::new();
        } else {
            self.carry.extend_from_slice(rest);
        }
        let has_more = read == READ_BYTES && self.state == State::Open;
        self.follow(cell, next);
        if has_more && self.state == State::Open {
            self.state = State::Working;
        }
        Poll::Ready(true)
    }

    /// Reads a long frame straight into the memory it can stay in.
    fn poll_read_large(&mut self, cell: &Cell, cx: &mut Context<'_>) -> Poll<bool> {
        let missing = self.frame_bytes.map_or(READ_BYTES, |bytes| bytes.saturating_sub(self.carry.len()));
        self.carry.reserve(missing.max(1));
        let read = {
            let read = std::pin::pin!(self.reader.read_buf(&mut self.carry));
            ready!(read.poll(cx))
        };
        if !matches!(read, Ok(1..)) {
            return Poll::Ready(false);
        }
        if self.frame_bytes.is_none_or(|bytes| self.carry.len() >= bytes) {
            self.work_on_carry(cell);
            // A frame of this size is a turn's work: others go on, and memory is looked at (SECURITY LIM-14).
            if self.state == State::Open {
                self.state = State::Working;
            }
        }
        Poll::Ready(true)
    }

    /// Works on frames that were read before.
    fn work_on_carry(&mut self, cell: &Cell) {
        self.state = State::Open;
        if self.carry.is_empty() && !self.protocol.waits_for_memory() {
            return;
        }
        let whole = self.frame_bytes.filter(|bytes| (READ_BYTES..=self.carry.len()).contains(bytes));
        let next = match whole {
            Some(bytes) => {
                let frame = self.carry.split_to(bytes).freeze();
                let mut budget = Budget::default();
                let received = self.protocol.receive(
                    cell,
                    &mut cell.headers.borrow_mut(),
                    &frame,
                    Some(&frame),
                    &mut budget,
                );
                let rest = frame.slice(received.consumed..);
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
            None => {
                let carry = std::mem::take(&mut self.carry);
                let (consumed, next) = self.receive(cell, &carry);
                self.carry = carry;
                let _ = self.carry.split_to(consumed.min(self.carry.len()));
                next
            }
        };
        self.follow(cell, next);
    }

    fn receive(&mut self, cell: &Cell, input: &[u8]) -> (usize, Next) {
        let mut budget = Budget::default();
        let received = self.protocol.receive(cell, &mut cell.headers.borrow_mut(), input, None, &mut budget);
        (received.consumed, received.next)
    }

    /// Does what the protocol says comes next.
    fn follow(&mut self, cell: &Cell, next: Next) {
        if !self.was_logged_in && self.protocol.is_logged_in() {
            self.was_logged_in = true;
            self.ticket.iter().for_each(|ticket| cell.shared.admission.logged_in(ticket));
        }
        if let Some(refusal) = self.protocol.take_refusal() {
            self.complain(cell, refusal.message, &refusal.text);
        }
        self.frame_bytes = None;
        let linger_until = || cell.now().after(LINGER_MAX);
        self.state = match (self.state, next) {
            (state @ (State::Draining(_) | State::Lingering(_)), _) => state,
            (_, Next::More { frame_bytes }) => {
                self.frame_bytes = frame_bytes;
                State::Open
            }
            (_, Next::Again) => State::Working,
            (_, Next::Press(reader)) => {
                let waits = cell.with_outbound(reader, |outbound| outbound.press(self.id)).unwrap_or(false);
                if waits { State::Pressed(cell.now().after(PRESS_MAX)) } else { State::Working }
            }
            (_, Next::Parked) => State::Parked,
            (_, Next::Close) => {
                cell.with_outbound(self.id, Outbound::finish);
                if cell.shared.with_link(self.id, |link| link.outbound.is_over()).unwrap_or(true) {
                    self.signals.set(Signal::End);
                }
                State::Draining(linger_until())
            }
        };
        let waits = self.state == State::Parked || self.protocol.waits_for_memory();
        if waits && !self.waits_for_memory {
            self.waits_for_memory = true;
            if !cell.shared.memory.park(self.id) {
                self.signals.set(Signal::AlarmEnded);
            }
        }
    }

    /// Tells the operator why the broker ends the connection, if it is not because it stops itself.
    fn tell_of_cut(&self, cell: &Cell) {
        let reason = cell.shared.with_link(self.id, |link| link.outbound.ended().cloned()).flatten();
        match reason {
            None | Some(CutReason::ShuttingDown) => {}
            Some(reason) => self.complain(cell, "connection cut", &reason.to_string()),
        }
    }

    fn complain(&self, cell: &Cell, message: &str, text: &str) {
        if let Some(folded) = cell.shared.complaints.admit(self.source.ip().to_canonical(), cell.now()) {
            warn!(source = %self.source, message, text, folded, "client was refused");
        }
    }

    /// All is written: closes our side and waits for the peer's, so that what it still sends does
    /// not make its system throw away what we sent last.
    fn linger(&mut self, cell: &Cell) {
        let stream: &TcpStream = self.writer.as_ref().as_ref();
        // A peer that is gone already needs no goodbye.
        let _ = socket2::SockRef::from(stream).shutdown(std::net::Shutdown::Write);
        self.state = State::Lingering(cell.now().after(LINGER_MAX));
    }

    fn poll_peer_closed(&mut self, cell: &Cell, cx: &mut Context<'_>) -> Poll<()> {
        let mut scratch = cell.scratch.borrow_mut();
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut self.reader).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                _ => return Poll::Ready(()),
            }
        }
    }

    /// Sees to the deadlines that have passed and arms the timer for the next; true where the connection ends.
    fn poll_timer(&mut self, cell: &Cell, cx: &mut Context<'_>) -> bool {
        loop {
            let deadline = match self.state {
                State::Draining(at) | State::Lingering(at) => Some(at),
                State::Pressed(at) => Some(at),
                // The protocol knows that read time-outs do not run while nothing is read.
                State::Open | State::Working | State::Parked => self.protocol.next_deadline(),
            };
            let Some(at) = deadline else {
                self.timer = None;
                self.timer_at = None;
                return false;
            };
            if at > cell.now() {
                if self.timer_at != Some(at) {
                    self.arm(cell, at);
                }
                let Some(timer) = &mut self.timer else {
                    return false;
                };
                if timer.as_mut().poll(cx).is_pending() {
                    return false;
                }
                cell.begin_turn();
                self.timer_at = None;
                if at > cell.now() {
                    continue;
                }
            }
            match self.state {
                State::Draining(_) | State::Lingering(_) => return true,
                State::Pressed(_) => self.state = State::Working,
                _ => {
                    let next = self.protocol.tick(cell);
                    if next == Next::Close {
                        self.follow(cell, next);
                    }
                }
            }
        }
    }

    fn arm(&mut self, cell: &Cell, at: Time) {
        let instant = cell.shared.clock.instant(at).into();
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(instant),
            None => self.timer = Some(Box::pin(tokio::time::sleep_until(instant))),
        }
        self.timer_at = Some(at);
    }
}

impl Drop for Task {
    /// However it ended: what it had goes back.
    fn drop(&mut self) {
        Cell::current(|cell| {
            if self.is_in_turn {
                cell.count(Event::Fault);
                error!(source = %self.source, "a fault ended a connection; see the panic before");
            }
            self.protocol.disconnect(cell);
            cell.remove_connection(self.id);
            self.ticket.iter().for_each(|ticket| cell.shared.admission.leave(ticket));
        });
    }
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
