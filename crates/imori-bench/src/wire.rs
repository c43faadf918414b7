//! A client's socket, with or without TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use crate::trust::Trust;
use crate::url::{Scheme, Url};

/// Bytes of the longest line that is read before TLS begins.
const GREETING_BYTES_MAX: usize = 64 * 1024;

/// A socket and its TLS session, if it has one. Ciphertext that the socket has not accepted is
/// written before any new data.
#[derive(Debug)]
pub struct Wire<S> {
    socket: S,
    tls: Option<Box<ClientConnection>>,
}

impl Wire<TcpStream> {
    /// Starts TLS on a connected socket if the URL asks for it. Also returns the greeting that the
    /// broker sent before TLS.
    ///
    /// # Errors
    /// Fails if the broker ends the handshake, or its certificate is not for the host in the URL.
    pub fn begin(mut socket: TcpStream, url: &Url) -> io::Result<(Wire<TcpStream>, Vec<u8>)> {
        let mut greeting = Vec::new();
        if !url.is_tls {
            return Ok((Wire { socket, tls: None }, greeting));
        }
        let trust = Trust::in_force();
        if url.scheme == Scheme::Nats && !trust.begins_first() {
            greeting = line(&mut socket)?;
        }
        let invalid = |text: String| io::Error::new(ErrorKind::InvalidInput, text);
        let config = trust.config().map_err(|error| invalid(format!("{error:#}")))?;
        let name = ServerName::try_from(url.host.clone());
        let name = name.map_err(|_| invalid(format!("`{}` can be in no certificate", url.host)))?;
        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket).map_err(explained)?;
        }
        Ok((Wire { socket, tls: Some(Box::new(tls)) }, greeting))
    }
}

impl<S> Wire<S> {
    /// Wraps a socket without TLS.
    pub fn plain(socket: S) -> Wire<S> {
        Wire { socket, tls: None }
    }

    /// The underlying socket.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The underlying socket, mutably.
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Whether the connection uses TLS.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether the session holds ciphertext that the socket has not accepted.
    pub fn has_unwritten(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Moves the session to another kind of socket.
    pub fn map<T>(self, f: impl FnOnce(S) -> T) -> Wire<T> {
        Wire { socket: f(self.socket), tls: self.tls }
    }
}

impl<S: Read + Write> Read for Wire<S> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.socket.read(room);
        };
        loop {
            match tls.reader().read(room) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The broker closed the socket without `close_notify`.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            tls.read_tls(&mut self.socket)?;
            tls.process_new_packets()
                .map_err(|error| explained(io::Error::new(ErrorKind::InvalidData, error)))?;
        }
    }
}

impl<S: Read + Write> Write for Wire<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.socket.write(bytes);
        };
        while tls.wants_write() {
            tls.write_tls(&mut self.socket)?;
        }
        let taken = tls.writer().write(bytes)?;
        // Whatever the socket does not accept now is written by the next write or a flush.
        while tls.wants_write() {
            match tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut self.socket)?;
            }
        }
        self.socket.flush()
    }
}

/// Reads exactly one line, byte by byte, because the bytes after it belong to TLS.
fn line(socket: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        let mut byte = [0];
        if line.len() == GREETING_BYTES_MAX || socket.read(&mut byte)? == 0 {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "the broker does not begin as one of NATS does",
            ));
        }
        line.extend_from_slice(&byte);
    }
    Ok(line)
}

/// Adds advice to the TLS errors that users commonly meet.
fn explained(error: io::Error) -> io::Error {
    let advice = match error.get_ref().and_then(|error| error.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(_)) => {
            "the broker's certificate is not trusted, or is for another name; give its CA with `--ca`"
        }
        Some(rustls::Error::InvalidMessage(_)) => "the broker does not speak TLS there; look at the port",
        Some(rustls::Error::AlertReceived(_)) => {
            "the broker refuses; it may want a certificate, which `--cert` and `--key` give"
        }
        _ => return error,
    };
    io::Error::new(error.kind(), format!("{error}: {advice}"))
}
