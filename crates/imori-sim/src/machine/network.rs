//! Connections without a network: bytes in two directions, windows that fill up, ends at any moment.

use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;

use imori_core::time::Time;
use imori_server::config::ProtocolName;

use super::board::Board;
use crate::random::Random;

/// The language of both ends of a transport.
#[derive(Debug, Clone)]
pub(crate) enum Spoken {
    /// A protocol of the server's listeners.
    Product(ProtocolName),
    /// AMQP 1.0, on the listener of AMQP.
    Amqp10,
    /// The protocol of the test kit, which has channels.
    Toy,
    /// Calls of the core's client without a socket; what goes beside the frames is on its board.
    Internal(Arc<Board>),
}

impl From<ProtocolName> for Spoken {
    fn from(name: ProtocolName) -> Spoken {
        Spoken::Product(name)
    }
}

/// One connection's transport.
#[derive(Debug)]
pub(crate) struct Pipe {
    /// The language that both ends speak.
    pub(crate) spoken: Spoken,
    pub(crate) to_server: VecDeque<u8>,
    pub(crate) to_client: VecDeque<u8>,
    /// Bytes that may be on their way to the client.
    window: usize,
    /// The client sends nothing more; the server reads the rest and then the end.
    pub(crate) client_closed: bool,
    /// The client is gone: the server meets an error.
    pub(crate) is_reset: bool,
    /// The server sends nothing more.
    pub(crate) server_closed: bool,
    /// The server is letting go of it: what was unsettled is released from here on.
    pub(crate) is_ending: bool,
    /// The server has let go of it.
    pub(crate) is_over: bool,
    /// The server's last bytes wait to be looked at.
    pub(crate) has_last_bytes: bool,
    /// Bytes that the server had for the client and never wrote, once the connection is over.
    pub(crate) unsent: Vec<u8>,
    /// Bytes that the server takes for written and that are not on their way, by a bug.
    pub(crate) kept_back: Vec<u8>,
    /// Some of what it had was with another cell, or cannot be known.
    pub(crate) is_unsent_incomplete: bool,
    /// When the turn began that its connection has: what it reads still came then, by the broker's clock.
    pub(crate) turn_began: Option<Time>,
}

/// The result of a write by the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Bytes(usize),
    WouldBlock,
    Broken,
}

/// All pipes.
#[derive(Debug, Default)]
pub(crate) struct Network(RefCell<Vec<Pipe>>);

impl Network {
    pub(crate) fn open(&self, window: usize, spoken: impl Into<Spoken>) -> usize {
        let mut pipes = self.0.borrow_mut();
        pipes.push(Pipe::new(window, spoken.into()));
        pipes.len() - 1
    }

    pub(crate) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    pub(crate) fn pipe(&self, index: usize) -> RefMut<'_, Pipe> {
        RefMut::map(self.0.borrow_mut(), |pipes| pipes.get_mut(index).expect("pipes are never taken away"))
    }

    /// The server reads what there is room for, cut anywhere; 0 bytes at the end.
    pub(crate) fn read(&self, index: usize, room: &mut [u8], random: &Random) -> Poll<usize> {
        let mut pipe = self.pipe(index);
        if pipe.is_reset {
            return Poll::Ready(0);
        }
        let available = pipe.to_server.len().min(room.len());
        if available == 0 {
            return if pipe.client_closed { Poll::Ready(0) } else { Poll::Pending };
        }
        let len = if random.chance(1, 2) { available } else { random.between(1, available) };
        room.iter_mut().zip(pipe.to_server.drain(..len)).for_each(|(place, byte)| *place = byte);
        Poll::Ready(len)
    }

    /// The server writes as much as the window has room for, or less.
    pub(crate) fn write(&self, index: usize, bytes: &[u8], random: &Random) -> Write {
        let mut pipe = self.pipe(index);
        if pipe.is_reset || pipe.server_closed {
            return Write::Broken;
        }
        let room = pipe.window.saturating_sub(pipe.to_client.len()).min(bytes.len());
        if room == 0 {
            return Write::WouldBlock;
        }
        let len = if random.chance(3, 4) { room } else { random.between(1, room) };
        pipe.to_client.extend(bytes.iter().take(len));
        Write::Bytes(len)
    }
}

impl Pipe {
    fn new(window: usize, spoken: Spoken) -> Pipe {
        Pipe {
            spoken,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            window,
            client_closed: false,
            is_reset: false,
            server_closed: false,
            is_ending: false,
            is_over: false,
            has_last_bytes: false,
            unsent: Vec::new(),
            kept_back: Vec::new(),
            is_unsent_incomplete: false,
            turn_began: None,
        }
    }

    /// A write would take something, or meet an error.
    pub(crate) fn is_writable(&self) -> bool {
        self.is_reset || self.to_client.len() < self.window
    }

    /// A read would bring something, or meet the end.
    pub(crate) fn is_readable(&self) -> bool {
        self.is_reset || self.client_closed || !self.to_server.is_empty()
    }
}
