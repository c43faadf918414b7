//! A socket of a client, with TLS or without.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use crate::trust::Trust;
use crate::url::{Scheme, Url};

/// Bytes of the longest greeting that is read before TLS begins.
const GREETING_BYTES_MAX: usize = 64 * 1024;

/// A socket, and the session of TLS on it, if there is one. What a session has encrypted and the socket has not taken
/// goes before anything else.
#[derive(Debug)]
pub struct Wire<S> {
    socket: S,
    tls: Option<Box<ClientConnection>>,
}

impl Wire<TcpStream> {
    /// Begins on a socket what the URL asks for. Gives also what the broker said before TLS began.
    ///
    /// # Errors
    /// The broker ends the handshake, or is not the one that its URL names.
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
    /// A socket without TLS.
    pub fn plain(socket: S) -> Wire<S> {
        Wire { socket, tls: None }
    }

    /// The socket.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The socket, which may be changed.
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Whether a session of TLS is on the socket.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether something is encrypted that the socket has not taken.
    pub fn has_unwritten(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Puts the session onto another kind of socket.
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
                // The broker is gone without a goodbye.
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
        // The rest goes with the next write, or a flush.
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

/// Reads a line and not a byte more: what follows is TLS.
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

/// Says what to do about the faults of TLS that people meet.
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
