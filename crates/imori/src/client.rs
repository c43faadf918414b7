//! A small blocking STOMP client, for trying things from the command line.
//!
//! It offers no heart-beats and never reconnects.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use imori_core::name::Printable;
use imori_stomp::command::Command;
use imori_stomp::decode::{Decoder, Step};
use imori_stomp::encode::FrameWriter;
use imori_stomp::error::DecodeError;
use imori_stomp::frame::{Frame, HeaderTable};
use imori_stomp::limits::Limits;
use imori_stomp::version::Version;

use crate::url::Url;

/// Bytes that are gathered before they are written.
const UNSENT_BYTES_MAX: usize = 64 * 1024;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;

/// How long the broker may take for what it does at once: accept, log in, confirm the end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection that is logged in.
pub(crate) struct Client {
    stream: TcpStream,
    version: Version,
    decoder: Decoder,
    headers: HeaderTable,
    input: Vec<u8>,
    /// Bytes of `input` that are already frames.
    consumed: usize,
    output: Vec<u8>,
}

impl Client {
    /// Connects and logs in.
    pub(crate) fn connect(url: &Url) -> Result<Client, ClientError> {
        let stream = open(url).map_err(|error| ClientError::Unreachable(url.clone(), error))?;
        stream.set_nodelay(true)?;
        let mut decoder = Decoder::new(Limits::default());
        decoder.connected(Version::V12);
        let mut client = Client {
            stream,
            version: Version::V12,
            decoder,
            headers: HeaderTable::default(),
            input: Vec::new(),
            consumed: 0,
            output: Vec::new(),
        };
        client.log_in(url)?;
        Ok(client)
    }

    fn log_in(&mut self, url: &Url) -> Result<(), ClientError> {
        self.send(Command::Connect, b"", |frame| {
            frame.header("accept-version", Version::SUPPORTED.as_bytes());
            frame.header("host", url.vhost.as_bytes());
            if let Some((login, passcode)) = &url.login {
                frame.header("login", login.as_bytes());
                frame.header("passcode", passcode.as_bytes());
            }
        })?;
        let connected = self.receive(Some(Instant::now() + PATIENCE))?;
        if connected.command != Command::Connected {
            return Err(ClientError::Unexpected(connected.command));
        }
        self.version = match connected.header("version") {
            None => Version::V10,
            Some(version) => Version::negotiate(Some(version)).map_err(|_| ClientError::Version)?,
        };
        self.decoder.connected(self.version);
        Ok(())
    }

    /// Writes a frame; it may wait for others, until [`Client::flush`] or [`Client::receive`].
    pub(crate) fn send(
        &mut self,
        command: Command,
        body: &[u8],
        headers: impl FnOnce(&mut FrameWriter<'_>),
    ) -> Result<(), ClientError> {
        let mut frame = FrameWriter::new(&mut self.output, command, self.version);
        headers(&mut frame);
        match command {
            Command::Send => frame.body(body),
            _ => frame.end(),
        }
        match self.output.len() {
            ..UNSENT_BYTES_MAX => Ok(()),
            _ => self.flush(),
        }
    }

    /// Writes what waits to be written.
    pub(crate) fn flush(&mut self) -> Result<(), ClientError> {
        self.stream.write_all(&self.output)?;
        self.output.clear();
        Ok(())
    }

    /// Waits for the next frame. An ERROR is an error.
    pub(crate) fn receive(&mut self, deadline: Option<Instant>) -> Result<Received, ClientError> {
        self.flush()?;
        loop {
            if let Some(received) = self.take()? {
                return match received.command {
                    Command::Error => Err(ClientError::Refused(received.complaint())),
                    _ => Ok(received),
                };
            }
            self.read(deadline)?;
        }
    }

    /// Says good-bye and waits until the broker has seen everything.
    pub(crate) fn disconnect(mut self) -> Result<(), ClientError> {
        self.send(Command::Disconnect, b"", |frame| {
            frame.header("receipt", b"bye");
        })?;
        self.receipt(b"bye")
    }

    /// Waits until the broker has taken responsibility for the frame that asked for this receipt.
    pub(crate) fn receipt(&mut self, id: &[u8]) -> Result<(), ClientError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let received = self.receive(Some(deadline))?;
            if received.command == Command::Receipt && received.header("receipt-id") == Some(id) {
                return Ok(());
            }
        }
    }

    /// The next frame of the input, if it is whole.
    fn take(&mut self) -> Result<Option<Received>, ClientError> {
        loop {
            let input = self.input.get(self.consumed..).unwrap_or_default();
            match self.decoder.decode(input, &mut self.headers)? {
                Step::Incomplete { .. } => return Ok(None),
                Step::LineEnds { consumed } => self.consumed += consumed,
                Step::Frame { frame, consumed } => {
                    let received = Received::new(&frame);
                    self.consumed += consumed;
                    return Ok(Some(received));
                }
            }
        }
    }

    /// Waits for more input.
    fn read(&mut self, deadline: Option<Instant>) -> Result<(), ClientError> {
        self.input.drain(..self.consumed);
        self.consumed = 0;
        let wait = match deadline {
            None => None,
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                Some(left)
                    .filter(|left| !left.is_zero())
                    .ok_or(ClientError::TimedOut("no answer in time"))?
                    .into()
            }
        };
        self.stream.set_read_timeout(wait)?;
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

/// A frame that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) command: Command,
    /// Names and values in the order in which they came.
    pub(crate) headers: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    fn new(frame: &Frame<'_>) -> Received {
        let headers =
            frame.headers.iter().map(|header| (header.name().into_owned(), header.value().into_owned()));
        Received { command: frame.command, headers: headers.collect(), body: frame.body.to_vec() }
    }

    /// The value of a header; of several the first, which is the one that counts.
    pub(crate) fn header(&self, name: &str) -> Option<&[u8]> {
        let header = self.headers.iter().find(|(other, _)| other == name.as_bytes());
        header.map(|(_, value)| value.as_slice())
    }

    /// What an ERROR says, on one line.
    fn complaint(&self) -> String {
        let message = Printable(self.header("message").unwrap_or(b"ERROR")).to_string();
        match self.body.trim_ascii() {
            b"" => message,
            body => format!("{message}: {}", Printable(body)),
        }
    }
}

/// Why a conversation with the broker ended.
#[derive(Debug)]
pub(crate) enum ClientError {
    /// There is no connection to this broker.
    Unreachable(Url, io::Error),
    /// The broker answered with ERROR, which says this.
    Refused(String),
    /// The broker closed the connection.
    Closed,
    /// What was waited for did not come.
    TimedOut(&'static str),
    /// The broker agreed on a version that there is not.
    Version,
    /// The broker answered with something else than was due.
    Unexpected(Command),
    /// What the broker sends is not STOMP.
    Decode(DecodeError),
    /// The connection broke.
    Broken(io::Error),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Unreachable(url, error) => write!(f, "cannot connect to `{url:?}`: {error}"),
            ClientError::Refused(complaint) => write!(f, "refused by the broker: {complaint}"),
            ClientError::Closed => f.write_str("the broker closed the connection"),
            ClientError::TimedOut(what) => f.write_str(what),
            ClientError::Version => write!(f, "the broker speaks none of STOMP {}", Version::SUPPORTED),
            ClientError::Unexpected(command) => write!(f, "the broker answered with {}", command.as_str()),
            ClientError::Decode(error) => write!(f, "the broker does not speak STOMP: {error}"),
            ClientError::Broken(error) => write!(f, "the connection broke: {error}"),
        }
    }
}

impl Error for ClientError {}

impl From<DecodeError> for ClientError {
    fn from(error: DecodeError) -> ClientError {
        ClientError::Decode(error)
    }
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> ClientError {
        ClientError::Broken(error)
    }
}
