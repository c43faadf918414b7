//! Transports without a network: bytes in two directions, windows that fill up, ends at any moment.

use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;

use imori_core::internal::TICKET_BYTES;
use imori_core::time::Time;
use imori_server::config;

use super::command_pipe::CommandPipe;
use crate::random::Random;

/// The protocol of a transport.
#[derive(Debug, Clone)]
pub(crate) enum Spoken {
    /// A protocol of the server's listeners.
    Product(config::Spoken),
    /// The toy protocol of the test kit, which has channels.
    Toy,
    /// The core's internal client. Bytes stand for its commands, and tickets for what it is sent.
    Internal(Arc<CommandPipe>),
}

impl From<config::Spoken> for Spoken {
    fn from(spoken: config::Spoken) -> Spoken {
        Spoken::Product(spoken)
    }
}

/// One connection's transport.
#[derive(Debug)]
pub(crate) struct Pipe {
    /// The protocol that both ends speak.
    pub(crate) spoken: Spoken,
    pub(crate) to_server: VecDeque<u8>,
    pub(crate) to_client: VecDeque<u8>,
    /// The most bytes that may be on their way to the client.
    window: usize,
    /// The client has closed its side; the server reads the rest and then the end.
    pub(crate) client_closed: bool,
    /// The client has reset the connection; the server gets an error.
    pub(crate) is_reset: bool,
    /// The server has closed its side.
    pub(crate) server_closed: bool,
    /// The server is ending the connection, and releases unsettled deliveries from now on.
    pub(crate) is_ending: bool,
    /// The server has ended the connection.
    pub(crate) is_over: bool,
    /// The server's last bytes have not been examined yet.
    pub(crate) has_last_bytes: bool,
    /// Output that the server never wrote, once the connection is over.
    pub(crate) unsent: Vec<u8>,
    /// Bytes that the server considers written but a planted bug holds back.
    pub(crate) kept_back: Vec<u8>,
    /// Part of the unsent output was with another cell, or is unknown.
    pub(crate) is_unsent_incomplete: bool,
    /// When the connection's current turn began; by the broker's clock its input arrived then.
    pub(crate) turn_began: Option<Time>,
}

/// The result of a write by the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Bytes(usize),
    WouldBlock,
    Broken,
}

/// All transports.
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

    /// Reads into `room` for the server, cut at any byte; 0 bytes mean the end.
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

    /// Writes for the server as much as the window allows, or less.
    pub(crate) fn write(&self, index: usize, bytes: &[u8], random: &Random) -> Write {
        let mut pipe = self.pipe(index);
        if pipe.is_reset || pipe.server_closed {
            return Write::Broken;
        }
        let unit = pipe.unit();
        let room = pipe.window.saturating_sub(pipe.to_client.len()).min(bytes.len()) / unit;
        if room == 0 {
            return Write::WouldBlock;
        }
        let len = unit * if random.chance(3, 4) { room } else { random.between(1, room) };
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

    /// Whether a write would make progress or fail.
    pub(crate) fn is_writable(&self) -> bool {
        self.is_reset || self.to_client.len() + self.unit() <= self.window
    }

    /// The bytes that are written together: a ticket, or one.
    fn unit(&self) -> usize {
        if matches!(self.spoken, Spoken::Internal(_)) { TICKET_BYTES } else { 1 }
    }

    /// Whether a read would return bytes, the end or an error.
    pub(crate) fn is_readable(&self) -> bool {
        self.is_reset || self.client_closed || !self.to_server.is_empty()
    }
}
