//! Bytes to and from a broker, which wait on either side until they are wanted.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use super::error::ClientError;
use crate::output::print_error;
use imori_bench::{Url, Wire};

/// Bytes that are gathered before they are written.
const UNSENT_BYTES_MAX: usize = 64 * 1024;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;

/// How long the broker may take for what it does at once: accept, log in, confirm.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// How long the broker may take nothing before that is told of.
const SILENCE: Duration = Duration::from_secs(3);

/// A connection.
pub(super) struct Transport {
    stream: Wire<TcpStream>,
    input: Vec<u8>,
    /// Bytes of `input` that are done with.
    consumed: usize,
    output: Vec<u8>,
}

impl Transport {
    /// Connects.
    pub(super) fn connect(url: &Url) -> Result<Transport, ClientError> {
        let stream = open(url).map_err(|error| ClientError::Unreachable(Box::new(url.clone()), error))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(SILENCE))?;
        let begun = Wire::begin(stream, url);
        let (stream, input) =
            begun.map_err(|error| ClientError::Unreachable(Box::new(url.clone()), error))?;
        Ok(Transport { stream, input, consumed: 0, output: Vec::new() })
    }

    /// Lets something be written, which may wait for more.
    pub(super) fn write(&mut self, append: impl FnOnce(&mut Vec<u8>)) -> Result<(), ClientError> {
        append(&mut self.output);
        match self.output.len() {
            ..UNSENT_BYTES_MAX => Ok(()),
            _ => self.flush(),
        }
    }

    /// Writes what waits to be written, however long the broker lets that wait; says so where it is long.
    pub(super) fn flush(&mut self) -> Result<(), ClientError> {
        let mut is_told = false;
        while !self.output.is_empty() || self.stream.has_unwritten() {
            let written = match self.output.is_empty() {
                true => self.stream.flush().map(|()| 0),
                false => self.stream.write(&self.output),
            };
            match written {
                Ok(0) if self.output.is_empty() => {}
                Ok(0) => return Err(ClientError::Closed),
                Ok(written) => drop(self.output.drain(..written)),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut if !is_told => {
                        is_told = true;
                        print_error(
                            "the broker takes nothing now, as it lets publishers wait while its disk or its memory \
                             is full; this goes on once it does",
                        );
                    }
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    _ => return Err(error.into()),
                },
            }
        }
        Ok(())
    }

    /// The bytes that came and are not done with.
    pub(super) fn input(&self) -> &[u8] {
        self.input.get(self.consumed..).unwrap_or_default()
    }

    /// Is done with so many of them.
    pub(super) fn consume(&mut self, count: usize) {
        self.consumed = self.consumed.saturating_add(count);
    }

    /// Waits for more input, which may be none before the deadline has passed.
    pub(super) fn read(&mut self, deadline: Option<Instant>) -> Result<(), ClientError> {
        self.input.drain(..self.consumed.min(self.input.len()));
        self.consumed = 0;
        let wait = match deadline {
            None => None,
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                Some(left)
                    .filter(|left| !left.is_zero())
                    .ok_or(ClientError::TimedOut(
                        "no answer in time; where the broker's disk or memory is full, publishers wait",
                    ))?
                    .into()
            }
        };
        self.stream.socket().set_read_timeout(wait)?;
        let len = self.input.len();
        self.input.resize(len + READ_BYTES, 0);
        let read = self.stream.read(self.input.get_mut(len..).unwrap_or_default());
        self.input.truncate(len + read.as_ref().copied().unwrap_or_default());
        match read {
            Ok(0) => Err(ClientError::Closed),
            Ok(_) => Ok(()),
            Err(error) => match error.kind() {
                // The caller looks at its deadline again.
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(()),
                _ => Err(error.into()),
            },
        }
    }
}

/// Tries the addresses of the host one after the other.
fn open(url: &Url) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in (url.host.as_str(), url.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
