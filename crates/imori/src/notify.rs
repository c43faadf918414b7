//! Reports that the broker is ready: to a service manager over the datagram socket in
//! `NOTIFY_SOCKET`, to a script or test through an inherited file descriptor.

use std::env;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::RawFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A state reported to the service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Clients can connect.
    Ready,
    /// The broker works; its watchdog may wait for another period.
    Alive,
    /// The broker is shutting down.
    Stopping,
}

/// Reports a state to the service manager, if there is one.
pub(crate) fn tell_service_manager(state: State) -> io::Result<()> {
    match env::var_os("NOTIFY_SOCKET") {
        Some(socket) => send(&socket, state),
        None => Ok(()),
    }
}

/// Sends to a socket; a name that begins with `@` is in Linux's abstract namespace.
pub fn send(socket: &OsStr, state: State) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let text: &[u8] = match state {
        State::Ready => b"READY=1",
        State::Alive => b"WATCHDOG=1",
        State::Stopping => b"STOPPING=1",
    };
    UnixDatagram::unbound()?.send_to_addr(text, &address)?;
    Ok(())
}

/// An inherited pipe or file.
pub(crate) struct ReadyFile(File);

impl ReadyFile {
    /// Takes over a file descriptor. Going through `/dev/fd` needs no `unsafe`, but cannot open a
    /// socket.
    pub(crate) fn open(descriptor: u32) -> io::Result<ReadyFile> {
        let file = OpenOptions::new().write(true).open(format!("/dev/fd/{descriptor}"));
        let file = file.map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let text = format!(
                    "`{descriptor}` is no open file descriptor; hand one over, as by `{descriptor}>FILE`"
                );
                io::Error::new(ErrorKind::NotFound, text)
            }
            _ => error,
        })?;
        // With the original left open, the reader would see no end of file while the broker runs.
        nix::unistd::close(RawFd::try_from(descriptor).map_err(io::Error::other)?)?;
        Ok(ReadyFile(file))
    }

    /// Writes the line `ready` and closes the pipe or file.
    pub(crate) fn tell(mut self) -> io::Result<()> {
        self.0.write_all(b"ready\n")
    }
}
