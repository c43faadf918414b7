//! The interfaces between a turn and its surroundings: the cell, and the connection's transport.

use std::io;
use std::task::Poll;

use bytes::BytesMut;
use imori_core::id::ConnectionId;
use imori_core::time::Time;
use imori_core::turn::Notice;
use imori_core::world::World;

use super::cell_scratch::CellScratch;
use super::link::{Link, Wire};
use super::memory::Memory;

/// The cell that a turn runs on: the broker's world, and how to reach connections of every cell.
pub trait Host: World {
    /// The type that writes sockets and wakes tasks.
    type Wire: Wire;

    /// The cell's number.
    fn id(&self) -> u16;

    /// The cell's shared memory and lists.
    fn cell_scratch(&self) -> &CellScratch;

    /// The memory of all cells.
    fn memory(&self) -> &Memory;

    /// Calls `f` with a connection under its lock; `None` if the connection does not exist.
    fn with_link<R>(&self, id: ConnectionId, f: impl FnOnce(&mut Link<Self::Wire>) -> R) -> Option<R>;

    /// Writes as much as the socket takes now; [`WouldBlock`](io::ErrorKind::WouldBlock) if it takes nothing.
    fn write(&self, writer: &<Self::Wire as Wire>::Writer, bytes: &[u8]) -> io::Result<usize>;
}

/// A connection's transport and timer, for one turn of its task. A pending operation gives the task another turn as
/// soon as it is ready.
pub trait Transport {
    /// Reads received bytes into `room`; 0 if the peer has closed its side or is gone.
    fn poll_read(&mut self, room: &mut [u8]) -> Poll<usize>;

    /// Appends received bytes to a buffer, as far as it has room; 0 as for [`Transport::poll_read`].
    fn poll_read_buf(&mut self, buffer: &mut BytesMut) -> Poll<usize>;

    /// Waits until the transport takes bytes; `false` if writing met an error.
    fn poll_writable(&mut self) -> Poll<bool>;

    /// Waits until the peer is gone, without reading what it sent before.
    fn poll_gone(&mut self) -> Poll<()>;

    /// Waits until the time `at`; `None` stops the timer.
    fn poll_timer(&mut self, at: Option<Time>) -> Poll<()>;

    /// Gives the task another turn, after the other tasks.
    fn come_back(&mut self);

    /// Closes our side, after everything was written.
    fn close(&mut self);

    /// Notes that the client has logged in.
    fn logged_in(&mut self);

    /// Logs a notice about the client.
    fn noticed(&mut self, notice: &Notice);
}
