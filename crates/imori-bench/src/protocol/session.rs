//! Opens a connection and sets it up synchronously, before load begins.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::limits::HANDSHAKE_TIMEOUT;
use crate::options::{BrokerOptions, Style};
use crate::protocol::amqp::Amqp;
use crate::protocol::amqp10::Amqp10;
use crate::protocol::driver::{ConfirmMode, Destination, Driver, Heard, Manner, Reader, Replies, Terms};
use crate::protocol::nats::Nats;
use crate::protocol::stomp::Stomp;
use crate::protocol::template::{Correlation, MessageTemplate, RequestTemplate};
use crate::url::{self, PeerScheme, Scheme, Url};
use crate::wire::Wire;

/// A brokerless protocol and its driver.
#[derive(Debug, Clone, Copy)]
pub struct PeerProtocol {
    /// The names by which URLs and peers refer to it.
    pub scheme: PeerScheme,
    /// Encodes the protocol.
    pub driver: &'static dyn Driver,
}

/// The brokerless protocols that the program added.
static BROUGHT: OnceLock<&'static [PeerProtocol]> = OnceLock::new();

/// Adds protocols to those of this crate, for the whole process; only the first call counts.
///
/// A program must call it before it parses its command line, because URLs may name the protocols.
pub fn bring(protocols: &'static [PeerProtocol]) {
    url::bring(BROUGHT.get_or_init(|| protocols).iter().map(|protocol| protocol.scheme).collect());
}

/// The driver of the URL's protocol; fails if the URL has parts that the protocol cannot use.
pub(crate) fn driver(broker: &BrokerOptions) -> Result<&'static dyn Driver> {
    let driver = driver_of(broker.url.scheme, broker.destination_style)?;
    driver.check_url(&broker.url)?;
    Ok(driver)
}

/// The driver of a protocol, in a broker's dialect.
pub fn driver_of(scheme: Scheme, style: Style) -> Result<&'static dyn Driver> {
    Ok(match (scheme, style) {
        (Scheme::Nats, _) => &Nats,
        (Scheme::Amqp, _) => &Amqp,
        (Scheme::Amqp10, _) => &Amqp10,
        (Scheme::Stomp, Style::Rabbitmq) => &Stomp(Style::Rabbitmq),
        (Scheme::Stomp, Style::Artemis) => &Stomp(Style::Artemis),
        (Scheme::Peer(scheme), _) => {
            let mut brought = BROUGHT.get().into_iter().copied().flatten();
            let protocol = brought.find(|protocol| protocol.scheme == scheme);
            protocol.with_context(|| format!("`{}://` is not spoken here", scheme.name))?.driver
        }
    })
}

/// A blocking connection on which the broker has accepted the login.
#[derive(Debug)]
pub struct Session {
    driver: &'static dyn Driver,
    reader: Box<dyn Reader>,
    socket: Wire<TcpStream>,
    /// Bytes received but not decoded yet.
    unread: Vec<u8>,
    set_up: Vec<Vec<u8>>,
}

/// The parts of a session, for a caller that reads and writes without blocking.
#[derive(Debug)]
pub(crate) struct Parts {
    /// The socket, now non-blocking.
    pub(crate) socket: Wire<TcpStream>,
    /// The decoder of its bytes.
    pub(crate) reader: Box<dyn Reader>,
    /// Bytes already received.
    pub(crate) unread: Vec<u8>,
    /// Subscriptions and declarations, to be repeated on a re-opened connection.
    pub(crate) set_up: Vec<Vec<u8>>,
}

impl Session {
    /// Connects and logs in.
    pub fn open(driver: &'static dyn Driver, url: &Url) -> Result<Session> {
        Session::open_within(driver, url, HANDSHAKE_TIMEOUT)
    }

    /// Connects and logs in with a time limit for each step.
    pub fn open_within(driver: &'static dyn Driver, url: &Url, timeout: Duration) -> Result<Session> {
        let (socket, unread) = connect(url, timeout)?;
        let mut session = Session { driver, reader: driver.reader(), socket, unread, set_up: Vec::new() };
        let mut login = Vec::new();
        driver.log_in(url, &mut login);
        session.reader.log_in(url, &mut login)?;
        session.write(&login)?;
        session.confirmed()?;
        Ok(session)
    }

    /// Name and version that the broker reports.
    pub fn server(&self) -> &str {
        self.reader.server()
    }

    /// Refuses bodies larger than the limit that the broker announced.
    pub fn check_body(&self, size: usize) -> Result<()> {
        match self.reader.body_bytes_max().filter(|max| size > *max) {
            Some(max) => bail!("the broker takes no body of `{size}` bytes; use `--size {max}` or less"),
            None => Ok(()),
        }
    }

    /// Subscribes and waits until the subscription is active.
    pub fn subscribe(&mut self, destination: &Destination, terms: Terms) -> Result<()> {
        let mut subscribe = Vec::new();
        self.driver.subscribe(destination, terms, ConfirmMode::Each, &mut subscribe);
        self.set_up(subscribe)
    }

    /// Declares the destination, and requests confirms if the protocol does that once per connection.
    pub fn prepare(&mut self, destination: &Destination, confirm: ConfirmMode) -> Result<()> {
        let mut preparation = Vec::new();
        self.driver.prepare(destination, confirm, &mut preparation);
        match preparation.is_empty() {
            true => Ok(()),
            false => self.set_up(preparation),
        }
    }

    /// Writes a set-up step and waits until the broker confirms it.
    pub fn set_up(&mut self, bytes: Vec<u8>) -> Result<()> {
        self.write(&bytes)?;
        self.confirmed()?;
        self.set_up.push(bytes);
        Ok(())
    }

    /// The request template of the requester on this connection.
    pub fn request(
        &mut self,
        service: &Destination,
        replies: &Replies,
        size: usize,
        first: Correlation,
    ) -> RequestTemplate {
        let named = self.reader.reply_address().map(str::to_owned);
        let named = named.map(|address| Replies { address, source: None });
        let mut request = self.driver.request(service, named.as_ref().unwrap_or(replies), size, first);
        self.reader.serve(first, &mut request);
        request
    }

    /// The message template of the publisher on this connection.
    pub fn message(&mut self, destination: &Destination, filler: &[u8], manner: Manner) -> MessageTemplate {
        let mut message = self.driver.message(destination, filler, manner);
        self.reader.feed(&mut message);
        message
    }

    /// Makes the socket non-blocking and gives up the connection.
    pub(crate) fn into_parts(self) -> Result<Parts> {
        self.socket.socket().set_nonblocking(true)?;
        let Session { socket, reader, unread, set_up, .. } = self;
        Ok(Parts { socket, reader, unread, set_up })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.socket
            .write_all(bytes)
            .and_then(|()| self.socket.flush())
            .context("the broker does not take the bytes of the handshake")
    }

    /// Waits for the next confirm; deliveries before it stay in `unread`.
    fn confirmed(&mut self) -> Result<()> {
        let mut from = 0_usize;
        loop {
            while let Some((heard, used)) = self.reader.take(self.unread.get(from..).unwrap_or_default())? {
                let end = from.saturating_add(used);
                let is_confirmed = match heard {
                    Heard::Delivery(_) => {
                        from = end;
                        continue;
                    }
                    Heard::Error(complaint) => bail!("the broker refuses: {complaint}"),
                    Heard::Ping(answer) => {
                        self.socket.write_all(answer)?;
                        false
                    }
                    Heard::Nothing => false,
                    Heard::Confirmed(_) => true,
                };
                self.unread.drain(from..end);
                if self.reader.wants_tls() && !self.socket.is_tls() {
                    bail!("the broker wants TLS; name it by `tls://`, or name a listener without TLS");
                }
                if is_confirmed {
                    return Ok(());
                }
            }
            self.read()?;
        }
    }

    fn read(&mut self) -> Result<()> {
        let mut bytes = [0; 16 * 1024];
        let length = self.socket.read(&mut bytes).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                anyhow!("the broker does not answer the handshake in time; look into its log")
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

/// Connects, and starts TLS if the URL asks for it; also returns the greeting read before TLS.
fn connect(url: &Url, timeout: Duration) -> Result<(Wire<TcpStream>, Vec<u8>)> {
    let addresses = (url.host.as_str(), url.port)
        .to_socket_addrs()
        .with_context(|| format!("`{}` is not a known host; name it by address", url.host))?;
    let mut last = anyhow!("`{}` has no address", url.host);
    for address in addresses {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(socket) => {
                // On Linux, connecting to a local port without a listener can connect a socket to itself.
                if socket.local_addr()? == socket.peer_addr()? {
                    bail!("no broker answers at `{url}`; start it or correct `--url`");
                }
                socket.set_nodelay(true)?;
                socket.set_read_timeout(Some(timeout))?;
                socket.set_write_timeout(Some(timeout))?;
                return Wire::begin(socket, url).with_context(|| format!("there is no TLS with `{url}`"));
            }
            Err(error) => {
                last = anyhow!(error)
                    .context(format!("no broker answers at `{url}`; start it or correct `--url`"));
            }
        }
    }
    Err(last)
}
