//! Opens a connection and subscribes on it, waiting for the broker; only then does load begin.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};

use anyhow::{Context, Result, anyhow, bail};
use imori_stomp::command::Command;
use imori_stomp::frame::HeaderTable;

use crate::destination::Destination;
use crate::frame::{Frame, Reader, text};
use crate::limits::HANDSHAKE_TIMEOUT;
use crate::options::AckMode;
use crate::url::Url;

/// A connection that the broker has accepted.
#[derive(Debug)]
pub(crate) struct Session {
    socket: TcpStream,
    /// Bytes that came and are not used yet.
    unread: Vec<u8>,
    /// Name and version of the broker, as it gives them.
    pub(crate) server: String,
}

impl Session {
    /// Connects and logs in.
    pub(crate) fn open(url: &Url) -> Result<Session> {
        let socket = connect(url)?;
        let mut session = Session { socket, unread: Vec::new(), server: String::new() };
        let connect = format!(
            "CONNECT\naccept-version:1.2\nhost:{}\nlogin:{}\npasscode:{}\nheart-beat:0,0\n\n\0",
            url.vhost, url.user, url.password
        );
        session.write(connect.as_bytes())?;
        let (server, version) =
            session.wait(Command::Connected, |frame| (text(frame.server), text(frame.version)))?;
        if version != "1.2" {
            bail!("`{url}` speaks STOMP `{version}`; this tool needs 1.2");
        }
        session.server = server;
        Ok(session)
    }

    /// Subscribes with id 0 and waits until the broker says that it stands.
    pub(crate) fn subscribe(
        &mut self,
        destination: &Destination,
        ack: AckMode,
        prefetch: Option<u32>,
    ) -> Result<()> {
        let mut subscribe = subscribe_frame(destination, ack, prefetch);
        let end = subscribe.len().saturating_sub(2);
        subscribe.splice(end..end, *b"receipt:subscribed\n");
        self.write(&subscribe)?;
        self.wait(Command::Receipt, |_| ())
    }

    /// The socket, no longer blocking, and the bytes that came already.
    pub(crate) fn into_parts(self) -> Result<(TcpStream, Vec<u8>)> {
        self.socket.set_nonblocking(true)?;
        Ok((self.socket, self.unread))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.socket.write_all(bytes).context("the broker does not take the bytes of the handshake")
    }

    /// Waits for a frame and leaves the others for later.
    fn wait<T>(&mut self, command: Command, read: impl Fn(&Frame<'_>) -> T) -> Result<T> {
        let (mut reader, mut table) = (Reader::new(), HeaderTable::default());
        let mut from = 0;
        loop {
            while let Some((frame, used)) =
                reader.take(self.unread.get(from..).unwrap_or_default(), &mut table)?
            {
                if frame.command == Command::Error {
                    bail!("the broker refuses: {}", frame.error_text());
                }
                if frame.command == command {
                    let found = read(&frame);
                    self.unread.drain(from..from.saturating_add(used));
                    return Ok(found);
                }
                from = from.saturating_add(used);
            }
            self.read()?;
        }
    }

    fn read(&mut self) -> Result<()> {
        let mut bytes = [0; 16 * 1024];
        let length = self.socket.read(&mut bytes).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                anyhow!(
                    "the broker does not answer the handshake within {HANDSHAKE_TIMEOUT:?}; look into its log"
                )
            }
            _ => anyhow!(error)
                .context("the broker breaks the connection during the handshake; look into its log"),
        })?;
        if length == 0 {
            bail!("the broker closes the connection during the handshake; look into its log");
        }
        self.unread.extend_from_slice(bytes.get(..length).unwrap_or_default());
        Ok(())
    }
}

/// SUBSCRIBE with id 0.
pub(crate) fn subscribe_frame(destination: &Destination, ack: AckMode, prefetch: Option<u32>) -> Vec<u8> {
    let prefetch = prefetch.map(|count| format!("prefetch-count:{count}\n")).unwrap_or_default();
    format!(
        "SUBSCRIBE\nid:0\ndestination:{}\nack:{}\n{}{prefetch}\n\0",
        destination.name,
        ack.header(),
        destination.subscribe_headers
    )
    .into_bytes()
}

fn connect(url: &Url) -> Result<TcpStream> {
    let addresses = (url.host.as_str(), url.port)
        .to_socket_addrs()
        .with_context(|| format!("`{}` is not a known host; name it by address", url.host))?;
    let mut last = anyhow!("`{}` has no address", url.host);
    for address in addresses {
        match TcpStream::connect_timeout(&address, HANDSHAKE_TIMEOUT) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                socket.set_read_timeout(Some(HANDSHAKE_TIMEOUT))?;
                socket.set_write_timeout(Some(HANDSHAKE_TIMEOUT))?;
                return Ok(socket);
            }
            Err(error) => {
                last = anyhow!(error)
                    .context(format!("no broker answers at `{url}`; start it or correct `--url`"));
            }
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::Style;

    #[test]
    fn a_subscription_says_all_that_was_asked_for() {
        let queue = Destination::queue(Style::Rabbitmq, "q");
        let frame = subscribe_frame(&queue, AckMode::ClientIndividual, Some(7));
        assert_eq!(
            frame,
            b"SUBSCRIBE\nid:0\ndestination:/queue/q\nack:client-individual\nprefetch-count:7\n\n\0"
        );
    }
}
