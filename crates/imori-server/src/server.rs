//! Binds the listeners and waits to be stopped.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::config::{Config, ListenAddress, Protocol};

/// A running broker.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<Listener>,
    sockets: Vec<TcpListener>,
    stop: StopHandle,
    stopped: Receiver<()>,
}

/// A bound listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// What it speaks.
    pub protocol: Protocol,
    /// Where it listens, with the port that was taken for port 0.
    pub address: SocketAddr,
}

/// Stops a server from anywhere.
#[derive(Debug, Clone)]
pub struct StopHandle(Sender<()>);

impl StopHandle {
    /// Asks the server to stop; asking a stopped one does nothing.
    pub fn stop(&self) {
        let _ = self.0.send(());
    }
}

impl Server {
    /// Binds all listeners.
    ///
    /// # Errors
    /// An address cannot be listened on.
    pub fn start(config: Config) -> Result<Server, StartError> {
        let Config { listeners: configured, .. } = config;
        let (sender, stopped) = channel();
        let mut server =
            Server { listeners: Vec::new(), sockets: Vec::new(), stop: StopHandle(sender), stopped };
        for address in configured.stomp {
            server.bind(Protocol::Stomp, address)?;
        }
        match server.sockets.is_empty() {
            true => Err(StartError::NoListener),
            false => Ok(server),
        }
    }

    fn bind(&mut self, protocol: Protocol, address: ListenAddress) -> Result<(), StartError> {
        match TcpListener::bind(address.0).and_then(|socket| Ok((socket.local_addr()?, socket))) {
            Ok((address, socket)) => {
                self.listeners.push(Listener { protocol, address });
                self.sockets.push(socket);
                Ok(())
            }
            Err(error) if address.is_left_out(&error) => Ok(()),
            Err(error) => Err(StartError::Bind { protocol, address, error }),
        }
    }

    /// The listeners that were bound.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// What stops the server.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Waits until the server is stopped.
    ///
    /// # Errors
    /// The server ended by itself.
    pub fn join(self) -> Result<(), ServeError> {
        self.stopped.recv().map_err(|_| ServeError)
    }
}

/// Why a server does not start.
#[derive(Debug)]
pub enum StartError {
    /// An address cannot be listened on.
    Bind {
        /// What would have been spoken there.
        protocol: Protocol,
        /// The address.
        address: ListenAddress,
        /// What the system says.
        error: io::Error,
    },
    /// No address is left to listen on.
    NoListener,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Bind { protocol, address, error } => {
                write!(
                    f,
                    "cannot listen on `{protocol}={address}`: {error}; stop what listens there or choose another port"
                )
            }
            StartError::NoListener => f.write_str("there is no address to listen on; set `listeners.stomp`"),
        }
    }
}

impl Error for StartError {}

/// Why a server ended by itself.
#[derive(Debug)]
pub struct ServeError;

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the broker ended by itself")
    }
}

impl Error for ServeError {}
