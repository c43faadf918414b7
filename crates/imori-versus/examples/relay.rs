//! A minimal broker that relays frames between connections, to find the limits of a machine and of
//! the load tool.
//!
//! It has one thread and one epoll, understands login, subscribe and send, stores, checks and
//! limits nothing, and copies a message once. Run `cargo run --example relay 127.0.0.1:61999`, then
//! `imori bench rpc --url stomp://127.0.0.1:61999 --reply named`. With a second argument `nats`, it
//! speaks NATS: `imori bench rpc --url nats://127.0.0.1:61999`.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;

use anyhow::{Context, Result};
use memchr::{memchr, memmem, memrchr};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

const LISTENER: Token = Token(usize::MAX);
const READ_BYTES: usize = 256 * 1024;

const NATS_INFO: &[u8] =
    b"INFO {\"server_id\":\"0\",\"server_name\":\"relay\",\"version\":\"1\",\"headers\":true} \r\n";

/// The protocol of the relay.
#[derive(Clone, Copy, PartialEq)]
enum Protocol {
    Stomp,
    Nats,
}

/// A client's connection.
struct Link {
    socket: TcpStream,
    partial: Vec<u8>,
    out: Vec<u8>,
    written: usize,
    is_readable: bool,
}

/// The connections and subscriptions.
struct Relay {
    protocol: Protocol,
    links: Vec<Option<Link>>,
    /// Subscribers by destination or subject: index of the connection, and subscription id.
    subscribers: HashMap<Vec<u8>, Vec<(usize, Vec<u8>)>>,
    touched: Vec<usize>,
}

fn main() -> Result<()> {
    let address: SocketAddr = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:61999".to_owned())
        .parse()
        .context("name an address")?;
    let protocol = match std::env::args().nth(2).as_deref() {
        Some("nats") => Protocol::Nats,
        _ => Protocol::Stomp,
    };
    let mut listener = TcpListener::bind(address)?;
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut events = Events::with_capacity(1024);
    let mut relay = Relay { protocol, links: Vec::new(), subscribers: HashMap::new(), touched: Vec::new() };
    let mut buffer = vec![0; READ_BYTES];
    let mut pending: Vec<usize> = Vec::new();
    loop {
        let timeout = (!pending.is_empty()).then_some(std::time::Duration::ZERO);
        match poll.poll(&mut events, timeout) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error.into()),
            _ => {}
        }
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut socket, _)) = listener.accept() {
                    socket.set_nodelay(true)?;
                    let token = Token(relay.links.len());
                    poll.registry().register(&mut socket, token, Interest::READABLE | Interest::WRITABLE)?;
                    let link =
                        Link { socket, partial: Vec::new(), out: Vec::new(), written: 0, is_readable: true };
                    relay.links.push(Some(link));
                    if protocol == Protocol::Nats {
                        relay.answer(token.0, NATS_INFO);
                    }
                    pending.push(token.0);
                }
                continue;
            }
            if let Some(Some(link)) = relay.links.get_mut(event.token().0) {
                link.is_readable |= event.is_readable() || event.is_read_closed();
                pending.push(event.token().0);
            }
        }
        for index in std::mem::take(&mut pending) {
            if relay.read(index, &mut buffer) {
                pending.push(index);
            }
            relay.touched.push(index);
        }
        for index in std::mem::take(&mut relay.touched) {
            relay.flush(index);
        }
    }
}

impl Relay {
    /// Reads once; returns whether more data may be available.
    fn read(&mut self, index: usize, buffer: &mut Vec<u8>) -> bool {
        let Some(Some(link)) = self.links.get_mut(index) else {
            return false;
        };
        if !link.is_readable {
            return false;
        }
        let kept = link.partial.len();
        buffer.resize(kept + READ_BYTES, 0);
        buffer[..kept].copy_from_slice(&link.partial);
        let length = match link.socket.read(&mut buffer[kept..]) {
            Ok(0) => {
                self.links[index] = None;
                return false;
            }
            Ok(length) => length,
            Err(_) => {
                link.is_readable = false;
                return false;
            }
        };
        link.is_readable = length == READ_BYTES;
        let mut rest = &buffer[..kept + length];
        while let Some(used) = self.take(index, rest) {
            rest = &rest[used..];
        }
        let is_readable = length == READ_BYTES;
        if let Some(Some(link)) = self.links.get_mut(index) {
            link.partial.clear();
            link.partial.extend_from_slice(rest);
        }
        is_readable
    }

    /// Handles the first frame or operation; returns its length, or `None` if it is incomplete.
    fn take(&mut self, from: usize, bytes: &[u8]) -> Option<usize> {
        match self.protocol {
            Protocol::Stomp => self.frame(from, bytes),
            Protocol::Nats => self.operation(from, bytes),
        }
    }

    fn frame(&mut self, from: usize, bytes: &[u8]) -> Option<usize> {
        let head = memmem::find(bytes, b"\n\n")?;
        let body_at = head + 2;
        let command_end = memchr(b'\n', bytes)?;
        let headers = &bytes[command_end..head + 1];
        let length = match header(headers, b"\ncontent-length:") {
            Some(digits) => std::str::from_utf8(digits).ok()?.parse().ok()?,
            None => memchr(0, &bytes[body_at..])?,
        };
        let end = body_at + length + 1;
        if bytes.len() < end {
            return None;
        }
        match &bytes[..command_end] {
            b"CONNECT" => self.answer(from, b"CONNECTED\nversion:1.2\nserver:relay/1\n\n\0"),
            b"SUBSCRIBE" => {
                let destination = header(headers, b"\ndestination:")?.to_vec();
                self.subscribers.entry(destination).or_default().push((from, Vec::new()));
                if let Some(receipt) = header(headers, b"\nreceipt:") {
                    let answer = [&b"RECEIPT\nreceipt-id:"[..], receipt, b"\n\n\0"].concat();
                    self.answer(from, &answer);
                }
            }
            b"SEND" => {
                let destination = header(headers, b"\ndestination:")?;
                for (to, _) in self.subscribers.get(destination).into_iter().flatten() {
                    if let Some(Some(link)) = self.links.get_mut(*to) {
                        link.out.extend_from_slice(b"MESSAGE");
                        link.out.extend_from_slice(&bytes[command_end..end]);
                        self.touched.push(*to);
                    }
                }
            }
            _ => {}
        }
        Some(end)
    }

    fn operation(&mut self, from: usize, bytes: &[u8]) -> Option<usize> {
        let line_end = memchr(b'\n', bytes)? + 1;
        let line = bytes[..line_end].trim_ascii_end();
        let last = &line[memrchr(b' ', line).map_or(0, |at| at + 1)..];
        match line.split(|byte| *byte == b' ').next()? {
            b"PING" => self.answer(from, b"PONG\r\n"),
            b"SUB" => {
                // A wildcard replaces the last token, so the subscription is stored under the
                // tokens before it.
                let subject = line[4..].split(|byte| *byte == b' ').next()?;
                let subject = subject.strip_suffix(b".*").unwrap_or(subject).to_vec();
                self.subscribers.entry(subject).or_default().push((from, last.to_vec()));
            }
            b"PUB" => {
                let end = line_end + std::str::from_utf8(last).ok()?.parse::<usize>().ok()? + 2;
                if bytes.len() < end {
                    return None;
                }
                let subject_end = 4 + memchr(b' ', &line[4..])?;
                let subject = &line[4..subject_end];
                let above = &subject[..memrchr(b'.', subject).unwrap_or(0)];
                let found = self.subscribers.get(subject).or_else(|| self.subscribers.get(above));
                for (to, sid) in found.into_iter().flatten() {
                    if let Some(Some(link)) = self.links.get_mut(*to) {
                        link.out.extend_from_slice(b"MSG ");
                        link.out.extend_from_slice(subject);
                        link.out.push(b' ');
                        link.out.extend_from_slice(sid);
                        link.out.extend_from_slice(&bytes[subject_end..end]);
                        self.touched.push(*to);
                    }
                }
                return Some(end);
            }
            _ => {}
        }
        Some(line_end)
    }

    fn answer(&mut self, to: usize, bytes: &[u8]) {
        if let Some(Some(link)) = self.links.get_mut(to) {
            link.out.extend_from_slice(bytes);
        }
        self.touched.push(to);
    }

    fn flush(&mut self, index: usize) {
        let Some(Some(link)) = self.links.get_mut(index) else {
            return;
        };
        while link.written < link.out.len() {
            match link.socket.write(&link.out[link.written..]) {
                Ok(length) => link.written += length,
                Err(_) => return,
            }
        }
        link.out.clear();
        link.written = 0;
    }
}

/// The value of the header whose line starts with `name`, including the preceding line end and the colon.
fn header<'a>(headers: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let after = &headers[memmem::find(headers, name)? + name.len()..];
    Some(&after[..memchr(b'\n', after)?])
}
