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
    /// How sockets are written and tasks woken.
    type Wire: Wire;

    /// The cell's number.
    fn id(&self) -> u16;

    /// The cell's shared memory and lists.
    fn cell_scratch(&self) -> &CellScratch;

    /// The memory of all cells.
    fn memory(&self) -> &Memory;

    /// Lends a connection under its lock, if it is there.
    fn with_link<R>(&self, id: ConnectionId, f: impl FnOnce(&mut Link<Self::Wire>) -> R) -> Option<R>;

    /// Writes as much as the socket takes now; [`WouldBlock`](io::ErrorKind::WouldBlock) where that is nothing.
    fn write(&self, writer: &<Self::Wire as Wire>::Writer, bytes: &[u8]) -> io::Result<usize>;
}

/// A connection's transport and timer, for one turn of its task. What is pending lets the task have
/// another turn as soon as it is not.
pub trait Transport {
    /// Reads what has come; 0 bytes where the peer has closed its side or is gone.
    fn poll_read(&mut self, room: &mut [u8]) -> Poll<usize>;

    /// Reads behind what a buffer holds, as far as it has room; 0 bytes as above.
    fn poll_read_buf(&mut self, buffer: &mut BytesMut) -> Poll<usize>;

    /// Waits until something can be written; false where writing met an error.
    fn poll_writable(&mut self) -> Poll<bool>;

    /// Waits until the peer is gone, without reading what it sent before.
    fn poll_gone(&mut self) -> Poll<()>;

    /// Waits until it is `at`, or no longer for anything.
    fn poll_timer(&mut self, at: Option<Time>) -> Poll<()>;

    /// Lets the task have another turn after the others.
    fn come_back(&mut self);

    /// Closes our side: all is written.
    fn close(&mut self);

    /// The client has logged in.
    fn logged_in(&mut self);

    /// There is something to log of the client.
    fn noticed(&mut self, notice: &Notice);
}
