//! A blocking connection to a broker, with buffers for input and output.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use super::error::ClientError;
use crate::output::print_error;
use imori_bench::{Url, Wire};

/// Bytes of output that may be buffered; more are written at once.
const UNSENT_BYTES_MAX: usize = 64 * 1024;

/// Bytes per read.
const READ_BYTES: usize = 64 * 1024;

/// The timeout for what brokers answer at once: connecting, logging in, confirming.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// After this long without progress, `flush` tells the user why it hangs.
const SILENCE: Duration = Duration::from_secs(3);

/// A connection with its buffers.
pub(super) struct Transport {
    stream: Wire<TcpStream>,
    input: Vec<u8>,
    /// Bytes of `input` already consumed.
    consumed: usize,
    output: Vec<u8>,
}

impl Transport {
    /// Connects, with TLS if the URL asks for it.
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

    /// Appends to the output, and writes it once it is large.
    pub(super) fn write(&mut self, append: impl FnOnce(&mut Vec<u8>)) -> Result<(), ClientError> {
        append(&mut self.output);
        match self.output.len() {
            ..UNSENT_BYTES_MAX => Ok(()),
            _ => self.flush(),
        }
    }

    /// Writes all buffered output, however long that takes; tells the user if the broker does not
    /// read.
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

    /// The input that has not been consumed.
    pub(super) fn input(&self) -> &[u8] {
        self.input.get(self.consumed..).unwrap_or_default()
    }

    /// Drops the first `count` bytes of the input.
    pub(super) fn consume(&mut self, count: usize) {
        self.consumed = self.consumed.saturating_add(count);
    }

    /// Waits for input and appends it; may return without any before the deadline passes.
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
                // The caller checks its deadline again.
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(()),
                _ => Err(error.into()),
            },
        }
    }
}

/// Tries the addresses of the host in turn.
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
