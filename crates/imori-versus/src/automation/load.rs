//! Requests over many connections on one thread: as fast as answers come, or at due times.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use imori_bench::interrupt;
use imori_bench::limits::{BLOCKED_AFTER, READ_BYTES, TICK};
use imori_bench::load::schedule::Schedule;
use imori_bench::options::Arrival;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::automation::api::connect;
use crate::automation::http::response;

/// The seed of the due times, which are the same in each round.
const SEED: u64 = 1;

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// Each connection sends the next request once it has the answer to the last one.
    Closed,
    /// At random times, so many a second on average, whatever the broker does.
    Open(u32),
}

/// The requests to send.
pub(crate) struct Load<'a> {
    /// The address of the API.
    pub(crate) address: SocketAddr,
    /// Connections.
    pub(crate) connections: u32,
    /// When they are sent.
    pub(crate) pace: Pace,
    /// Number of requests.
    pub(crate) count: u64,
    /// The status of each answer.
    pub(crate) status: u16,
    /// The bytes of a request, by its number.
    pub(crate) request: &'a dyn Fn(u64) -> Vec<u8>,
}

/// The times of a load.
#[derive(Debug)]
pub(crate) struct Sent {
    /// When each request was due: in a closed loop, when it was sent.
    pub(crate) due: Vec<Instant>,
    /// When the first was due.
    pub(crate) began: Instant,
    /// When the last answer had come.
    pub(crate) ended: Instant,
}

/// One connection.
struct Link {
    socket: TcpStream,
    unwritten: Vec<u8>,
    unread: Vec<u8>,
    /// Whether an answer is awaited.
    is_waiting: bool,
}

impl Load<'_> {
    /// Sends all requests and waits for all answers.
    pub(crate) fn run(&self) -> Result<Sent> {
        let mut poll = Poll::new()?;
        let mut events = Events::with_capacity(1024);
        let (mut links, mut idle) = (Vec::new(), Vec::new());
        for index in 0..self.connections as usize {
            links.push(Link::open(self.address, &poll, index)?);
            idle.push(index);
        }
        let mut buffer = vec![0; READ_BYTES];
        let began = Instant::now();
        let mut due_times = self.due_times();
        let (mut due, mut answered, mut moved) = (Vec::new(), 0, began);
        while answered < self.count {
            let wait = self.send((&poll, began), &mut due_times, &mut due, (&mut links, &mut idle))?;
            if let Err(error) = poll.poll(&mut events, Some(wait))
                && error.kind() != ErrorKind::Interrupted
            {
                return Err(error).context("the connections cannot be watched");
            }
            for event in &events {
                let index = event.token().0;
                let Some(link) = links.get_mut(index).filter(|link| link.is_waiting) else { continue };
                link.write()?;
                if event.is_readable() && link.read(&mut buffer, self.status)? {
                    idle.push(index);
                    answered += 1;
                    moved = Instant::now();
                }
            }
            if interrupt::is_asked_for() {
                bail!("stopped by hand");
            }
            let is_waiting = idle.len() < links.len();
            ensure!(
                !is_waiting || moved.elapsed() < BLOCKED_AFTER,
                "no answer came for {} s; `{answered}` of `{}` requests are answered",
                BLOCKED_AFTER.as_secs(),
                self.count
            );
            if !is_waiting {
                moved = Instant::now();
            }
        }
        Ok(Sent { due, began, ended: Instant::now() })
    }

    /// Nanoseconds after the start at which requests are due; empty in a closed loop.
    fn due_times(&self) -> VecDeque<u64> {
        let Pace::Open(rate) = self.pace else { return VecDeque::new() };
        let mut schedule = Schedule::new(Arrival::Poisson, f64::from(rate), SEED, (0, 1), (0, u64::MAX));
        let mut times = VecDeque::new();
        while let Some(time) = schedule.peek().filter(|_| (times.len() as u64) < self.count) {
            times.push_back(time);
            schedule.advance();
        }
        times
    }

    /// Sends what is due on idle connections, and returns the time to wait for events.
    fn send(
        &self,
        (poll, began): (&Poll, Instant),
        due_times: &mut VecDeque<u64>,
        due: &mut Vec<Instant>,
        (links, idle): (&mut [Link], &mut Vec<usize>),
    ) -> Result<Duration> {
        while (due.len() as u64) < self.count {
            let now = Instant::now();
            let at = match (self.pace, due_times.front()) {
                (Pace::Open(_), Some(nanos)) => began + Duration::from_nanos(*nanos),
                _ => now,
            };
            if at > now {
                return Ok(at.duration_since(now).min(TICK));
            }
            let Some(index) = idle.pop() else { break };
            let Some(link) = links.get_mut(index) else { break };
            if link.is_closed() {
                // The API closes connections of some age.
                *link = Link::open(self.address, poll, index)?;
            }
            due_times.pop_front();
            link.unwritten = (self.request)(due.len() as u64);
            link.is_waiting = true;
            due.push(at);
            link.write()?;
        }
        Ok(TICK)
    }
}

impl Link {
    fn open(address: SocketAddr, poll: &Poll, index: usize) -> Result<Link> {
        let socket = connect(address)?;
        socket.set_nonblocking(true)?;
        let mut socket = TcpStream::from_std(socket);
        poll.registry().register(&mut socket, Token(index), Interest::READABLE | Interest::WRITABLE)?;
        Ok(Link { socket, unwritten: Vec::new(), unread: Vec::new(), is_waiting: false })
    }

    /// Whether the other side has closed the connection.
    fn is_closed(&self) -> bool {
        match self.socket.peek(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }

    fn write(&mut self) -> Result<()> {
        while !self.unwritten.is_empty() {
            match self.socket.write(&self.unwritten) {
                Ok(count) => drop(self.unwritten.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("the API closed a connection"),
            }
        }
        Ok(())
    }

    /// Reads, and returns whether the answer is complete.
    fn read(&mut self, buffer: &mut [u8], status: u16) -> Result<bool> {
        loop {
            match self.socket.read(buffer) {
                Ok(0) => bail!("the API closed a connection"),
                Ok(count) => self.unread.extend_from_slice(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("the API closed a connection"),
            }
        }
        let Some((response, end)) = response(&self.unread)? else { return Ok(false) };
        ensure!(
            response.status == status,
            "a request is answered with status `{}` instead of `{status}`: {}",
            response.status,
            String::from_utf8_lossy(&response.body)
        );
        self.unread.drain(..end);
        self.is_waiting = false;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A server that answers each request of 4 bytes, on any number of connections.
    fn server(answer: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let mut socket = socket.unwrap();
                thread::spawn(move || {
                    let mut request = [0; 4];
                    while socket.read_exact(&mut request).is_ok() && socket.write_all(answer).is_ok() {}
                });
            }
        });
        address
    }

    fn load(address: SocketAddr, pace: Pace) -> Result<Sent> {
        let request = &|_| b"ping".to_vec();
        Load { address, connections: 3, pace, count: 20, status: 202, request }.run()
    }

    #[test]
    fn every_request_is_answered_and_none_is_sent_early() {
        let address = server(b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}");
        for pace in [Pace::Closed, Pace::Open(1_000)] {
            let sent = load(address, pace).unwrap();
            assert_eq!(sent.due.len(), 20, "{pace:?}");
            assert!(
                sent.due.is_sorted() && sent.began <= sent.due[0] && sent.due[19] <= sent.ended,
                "{pace:?}"
            );
        }
    }

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_api() {
        let address = server(b"HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\n\r\nno hook");
        let error = load(address, Pace::Closed).unwrap_err().to_string();
        assert!(error.contains("`404`") && error.contains("no hook"), "{error}");
    }
}
