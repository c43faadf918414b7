//! ZeroMQ without a broker: ZMTP 3 with mechanism NULL, as a REQ socket against REP or a DEALER against ROUTER.
//!
//! A request has two parts, correlation and body, and the other side returns the first. REQ puts an
//! empty part before them, as REP expects it, and has one call in flight. This tool contains no
//! responder, and refuses everything that needs a broker.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use imori_bench::driver::{
    CORRELATION_BYTES, CallTerms, ConfirmMode, Correlation, Credit, Delivery, Destination, Driver,
    FRAME_BYTES_MAX, Heard, Manner, MessageTemplate, Reader, Replies, RequestTemplate, Terms,
    check_no_broker, text,
};
use imori_bench::{AckMode, Depth, ReplyKind, Url};

/// ZMTP 3.0, Greeting: signature, version, mechanism, whether it is a server, filler.
const GREETING_BYTES: usize = 64;
const SIGNATURE_BYTES: usize = 10;
const MECHANISM: std::ops::Range<usize> = 12..32;

/// Flags of a frame; all others are reserved.
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// Parts of one message. More: the run ends, for a reply has two or three.
const PARTS_MAX: usize = 8;

/// The socket that a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zmtp {
    /// One call at a time, against a REP socket.
    Req,
    /// Many calls, against a ROUTER socket.
    Dealer,
}

impl Driver for Zmtp {
    fn name(&self) -> &'static str {
        match self {
            Zmtp::Req => "zmq-rep",
            Zmtp::Dealer => "zmq-router",
        }
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(ZmtpReader {
            socket: *self,
            state: State::Greeting,
            server: String::new(),
            credit: None,
            answer: Vec::new(),
        })
    }

    fn log_in(&self, _url: &Url, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\xff\0\0\0\0\0\0\0\0\x7f\x03\x01");
        out.extend_from_slice(b"NULL");
        out.resize(out.len() + GREETING_BYTES - SIGNATURE_BYTES - 2 - 4, 0);
        let (own, _) = self.sockets();
        let mut ready = b"\x05READY\x0bSocket-Type".to_vec();
        ready.extend_from_slice(&(own.len() as u32).to_be_bytes());
        ready.extend_from_slice(own.as_bytes());
        ready.extend_from_slice(b"\x08Identity\0\0\0\0");
        push_frame_head(out, COMMAND, ready.len());
        out.extend_from_slice(&ready);
    }

    fn subscribe(
        &self,
        _destination: &Destination,
        _terms: Terms,
        _confirm: ConfirmMode,
        _out: &mut Vec<u8>,
    ) {
    }

    fn replies(&self, _kind: ReplyKind, _name: &str, _requester: Correlation) -> Result<Replies> {
        Ok(Replies { address: String::new(), source: None })
    }

    fn request(
        &self,
        _service: &Destination,
        _replies: &Replies,
        size: usize,
        first: Correlation,
    ) -> RequestTemplate {
        let mut head = Vec::new();
        if *self == Zmtp::Req {
            push_frame_head(&mut head, MORE, 0);
        }
        push_frame_head(&mut head, MORE, CORRELATION_BYTES);
        head.extend_from_slice(first.to_string().as_bytes());
        let mut before_body = Vec::new();
        push_frame_head(&mut before_body, 0, size);
        RequestTemplate::new(&head, &before_body, size, b"")
    }

    fn message(&self, _destination: &Destination, filler: &[u8], _manner: Manner) -> MessageTemplate {
        MessageTemplate::new(|_| String::new(), filler, b"")
    }

    fn reply(&self, _request: &Delivery<'_>, out: &mut Vec<u8>) -> usize {
        out.len()
    }

    fn acknowledge(&self, _token: &[u8], _mode: AckMode, _out: &mut Vec<u8>) {}

    fn check(&self, _terms: Terms) -> Result<()> {
        bail!("ZeroMQ is spoken from peer to peer here, with no subjects between; use `rpc`")
    }

    fn check_confirms(&self) -> Result<()> {
        bail!("ZeroMQ publishes nothing here that could be confirmed; use `rpc`")
    }

    fn check_queues(&self) -> Result<()> {
        bail!("ZeroMQ is spoken from peer to peer here, and nobody keeps messages; use `rpc`")
    }

    fn answers_itself(&self) -> bool {
        true
    }

    fn check_url(&self, url: &Url) -> Result<()> {
        let place = url.vhost.as_str();
        ensure!(place == "/", "a socket has no place `{place}`; write it as `{}://host:port`", self.name());
        Ok(())
    }

    fn check_calls(&self, calls: CallTerms<'_>) -> Result<()> {
        check_no_broker(calls, "ZeroMQ")?;
        ensure!(
            *self == Zmtp::Dealer || calls.depth.is_none_or(|depth| depth == Depth::InFlight(1)),
            "a REQ socket has one call in flight; use `zmq-router://` for more"
        );
        Ok(())
    }
}

impl Zmtp {
    /// The names of this socket and of its counterpart.
    fn sockets(self) -> (&'static str, &'static str) {
        match self {
            Zmtp::Req => ("REQ", "REP"),
            Zmtp::Dealer => ("DEALER", "ROUTER"),
        }
    }
}

/// Takes a peer's frames apart.
#[derive(Debug)]
struct ZmtpReader {
    socket: Zmtp,
    state: State,
    server: String,
    /// The one call of a REQ socket.
    credit: Option<Arc<Credit>>,
    /// Bytes to send to the peer next.
    answer: Vec<u8>,
}

/// The progress of the handshake.
///
/// ```text
/// Greeting --greeting--> Ready { minor } --READY--> Traffic
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Greeting,
    Ready { minor: u8 },
    Traffic,
}

impl Reader for ZmtpReader {
    fn take<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Option<(Heard<'a>, usize)>> {
        match self.state {
            State::Greeting => {
                let Some(minor) = greeting(bytes)? else {
                    return Ok(None);
                };
                self.state = State::Ready { minor };
                Ok(Some((Heard::Nothing, GREETING_BYTES)))
            }
            State::Ready { minor } => {
                let Some(frame) = frame(bytes)? else {
                    return Ok(None);
                };
                ensure!(frame.flags & COMMAND != 0, "the peer sends a message before it is ready");
                self.ready(frame.body, minor)?;
                self.state = State::Traffic;
                Ok(Some((Heard::Confirmed(None), frame.used)))
            }
            State::Traffic => self.traffic(bytes),
        }
    }

    fn server(&self) -> &str {
        &self.server
    }

    fn serve(&mut self, _requester: Correlation, request: &mut RequestTemplate) {
        if self.socket == Zmtp::Req {
            let credit = Arc::new(Credit::of_calls(1));
            request.set_credit(Arc::clone(&credit));
            self.credit = Some(credit);
        }
    }
}

impl ZmtpReader {
    fn ready(&mut self, command: &[u8], minor: u8) -> Result<()> {
        if let Some(reason) = command.strip_prefix(b"\x05ERROR") {
            bail!("the peer refuses: {}", text(reason.get(1..).unwrap_or_default()));
        }
        let Some(properties) = command.strip_prefix(b"\x05READY") else {
            bail!("the peer sends `{}` where READY is due", text(command));
        };
        let theirs = socket_type(properties).unwrap_or_default();
        let (own, wanted) = self.socket.sockets();
        ensure!(
            theirs == wanted.as_bytes(),
            "the peer is a `{}` socket and {own} is for {wanted}; use the URL of the other kind",
            text(theirs)
        );
        self.server = format!("ZMTP 3.{minor} {wanted}");
        Ok(())
    }

    fn traffic<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Option<(Heard<'a>, usize)>> {
        let Some(first) = frame(bytes)? else {
            return Ok(None);
        };
        if first.flags & COMMAND != 0 {
            return Ok(Some((self.command(first.body)?, first.used)));
        }
        let Some((parts, count, used)) = message(bytes)? else {
            return Ok(None);
        };
        if let Some(credit) = &self.credit {
            credit.add_calls(1);
        }
        // A reply of any other shape belongs to no call.
        let (correlation, body) = match (self.socket, parts.get(..count).unwrap_or_default()) {
            (Zmtp::Req, [[], correlation, body]) | (Zmtp::Dealer, [correlation, body]) => {
                (*correlation, *body)
            }
            _ => (&[][..], &[][..]),
        };
        Ok(Some((Heard::Delivery(Delivery { correlation, body, ..Delivery::default() }), used)))
    }

    fn command<'a>(&'a mut self, command: &'a [u8]) -> Result<Heard<'a>> {
        if let Some(reason) = command.strip_prefix(b"\x05ERROR") {
            return Ok(Heard::Error(text(reason.get(1..).unwrap_or_default())));
        }
        let Some([_, _, context @ ..]) = command.strip_prefix(b"\x04PING") else {
            return Ok(Heard::Nothing);
        };
        ensure!(context.len() <= 16, "the context of a PING has `{}` bytes; 16 are the most", context.len());
        self.answer.clear();
        push_frame_head(&mut self.answer, COMMAND, 5 + context.len());
        self.answer.extend_from_slice(b"\x04PONG");
        self.answer.extend_from_slice(context);
        Ok(Heard::Ping(&self.answer))
    }
}

/// The minor version in a greeting, once it is complete; bytes that cannot begin a greeting are refused at once.
fn greeting(bytes: &[u8]) -> Result<Option<u8>> {
    let is_signature = |at: usize, is_right: fn(u8) -> bool| bytes.get(at).is_none_or(|byte| is_right(*byte));
    ensure!(
        is_signature(0, |byte| byte == 0xff) && is_signature(9, |byte| byte & 1 == 1),
        "what the peer sends is not ZMTP"
    );
    if let Some(major) = bytes.get(SIGNATURE_BYTES) {
        ensure!(*major >= 3, "the peer speaks ZMTP `{major}`; this tool needs 3");
    }
    let Some(greeting) = bytes.get(..GREETING_BYTES) else {
        return Ok(None);
    };
    let mechanism = greeting.get(MECHANISM).unwrap_or_default();
    let name = mechanism.split(|byte| *byte == 0).next().unwrap_or_default();
    ensure!(name == b"NULL", "the peer wants mechanism `{}`; this tool speaks NULL only", text(name));
    Ok(greeting.get(SIGNATURE_BYTES + 1).copied())
}

/// The value of `Socket-Type` among the properties of READY.
fn socket_type(mut properties: &[u8]) -> Option<&[u8]> {
    while let Some((length, rest)) = properties.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let (length, rest) = rest.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            return Some(value);
        }
        properties = rest;
    }
    None
}

/// The parts of a message, how many there are, and how many bytes they take; none if it is not complete.
type Parts<'a> = ([&'a [u8]; PARTS_MAX], usize, usize);

fn message(bytes: &[u8]) -> Result<Option<Parts<'_>>> {
    let mut parts = [&[][..]; PARTS_MAX];
    let mut used = 0_usize;
    for (count, part) in (1..).zip(&mut parts) {
        let Some(frame) = frame(bytes.get(used..).unwrap_or_default())? else {
            return Ok(None);
        };
        ensure!(frame.flags & COMMAND == 0, "the peer sends a command within a message");
        used = used.saturating_add(frame.used);
        *part = frame.body;
        if frame.flags & MORE == 0 {
            return Ok(Some((parts, count, used)));
        }
    }
    bail!("the peer sends a message of more than `{PARTS_MAX}` parts")
}

/// One frame in the buffer it was read into.
struct Frame<'a> {
    flags: u8,
    body: &'a [u8],
    used: usize,
}

fn frame(bytes: &[u8]) -> Result<Option<Frame<'_>>> {
    let Some((flags, rest)) = bytes.split_first() else {
        return Ok(None);
    };
    let is_command = flags & COMMAND != 0;
    ensure!(
        flags & !(MORE | LONG | COMMAND) == 0 && !(is_command && flags & MORE != 0),
        "the peer sends a frame with flags `{flags:#04x}`, which ZMTP 3 has not"
    );
    let size = match flags & LONG != 0 {
        false => rest.split_first().map(|(size, rest)| (u64::from(*size), rest)),
        true => rest.split_first_chunk().map(|(size, rest)| (u64::from_be_bytes(*size), rest)),
    };
    let Some((size, rest)) = size else {
        return Ok(None);
    };
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    ensure!(size <= FRAME_BYTES_MAX, "the peer announces a frame of `{size}` bytes; that is no reply");
    let body = rest.get(..size);
    Ok(body.map(|body| Frame { flags: *flags, body, used: bytes.len() - rest.len() + size }))
}

fn push_frame_head(out: &mut Vec<u8>, flags: u8, size: usize) {
    match u8::try_from(size) {
        Ok(size) => out.extend_from_slice(&[flags, size]),
        Err(_) => {
            out.push(flags | LONG);
            out.extend_from_slice(&(size as u64).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
