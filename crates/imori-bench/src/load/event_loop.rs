//! An event loop with one thread and one epoll that reads and writes in large chunks.
//!
//! The loop moves bytes; the [`Role`] of a connection decides which. The loop must be cheap: client
//! and broker share a machine, so CPU time used here is missing from the broker.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow, bail};
use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::clock::Clock;
use crate::limits::{BACKLOG_BYTES_MAX, READ_BYTES, REOPEN_TIMEOUT, REOPENING_NANOS_MAX};
use crate::protocol::driver::{Driver, Heard, Reader};
use crate::protocol::session::{Parts, Session};
use crate::url::Url;
use crate::wire::Wire;

/// Token of the waker; connections are numbered from 0.
const WAKER: Token = Token(usize::MAX);

/// Token of the timer.
const TIMER: Token = Token(usize::MAX - 1);

/// The protocol-independent behaviour of one connection: what it sends, and how it reacts to frames.
pub(crate) trait Role {
    /// The counters shared by all connections of a loop.
    type Board;

    /// Reacts to a frame from the broker; replies are appended to `out`.
    fn hear(&mut self, heard: &Heard<'_>, now: u64, board: &mut Self::Board, out: &mut Vec<u8>);

    /// Appends unsolicited data that is due; returns true if it only stopped because `out` is full.
    fn fill(&mut self, now: u64, board: &mut Self::Board, out: &mut Vec<u8>) -> bool;

    /// Whether the connection should be read now, given the number of unwritten bytes.
    fn reads(&self, unwritten: usize) -> bool;

    /// Whether `fill` must be tried in every turn, because events other than frames can allow it to send.
    fn is_producer(&self) -> bool;

    /// When a producer wants to send next, in nanoseconds; `None` if that does not depend on the time.
    fn next_due(&self) -> Option<u64>;

    /// Called when the connection broke and will be re-opened: no reply to anything in flight can come.
    fn cut_off(&mut self, now: u64, board: &mut Self::Board);

    /// Called when the connection has been re-opened.
    fn reopened(&mut self, now: u64, board: &mut Self::Board);

    /// Called at every tick.
    fn tick(&mut self, now: u64, board: &mut Self::Board);
}

/// All connections of one thread.
pub(crate) struct EventLoop<R: Role> {
    poll: Poll,
    events: Events,
    waker: Arc<Waker>,
    timer: Timer,
    links: Vec<Link<R>>,
    producers: Vec<usize>,
    /// Connections that need service; each is listed once.
    active: Vec<usize>,
    /// Connections being served in this turn; a field only to reuse its allocation.
    serving: Vec<usize>,
    /// Read buffer of all connections; an incomplete frame is copied to its connection.
    buffer: Vec<u8>,
    clock: Clock,
    /// The state of re-opening broken connections; `None` if a break ends the run.
    reopening: Option<Reopening>,
    /// The counters of all roles.
    pub(crate) board: R::Board,
    /// Frames read so far.
    pub(crate) frames_read: u64,
    /// Bytes written so far.
    pub(crate) bytes_written: u64,
}

/// Driver and URL with which broken connections are re-opened.
struct Reopening {
    driver: &'static dyn Driver,
    url: Url,
}

struct Link<R> {
    socket: Wire<TcpStream>,
    role: R,
    /// Subscriptions and declarations, which are repeated on a re-opened connection.
    set_up: Vec<Vec<u8>>,
    /// Time and reason of the break; `None` while the connection is open.
    broken: Option<(u64, Error)>,
    reader: Box<dyn Reader>,
    /// The beginning of an incomplete frame.
    partial: Vec<u8>,
    out: Vec<u8>,
    /// Number of bytes of `out` that are written.
    written: usize,
    is_readable: bool,
    is_writable: bool,
    /// Whether the peer has shut down its writing side. Epoll reports that once, so the socket is
    /// read until its end.
    is_ending: bool,
    is_active: bool,
}

impl<R: Role> EventLoop<R> {
    /// Creates a loop without connections.
    pub(crate) fn new(board: R::Board, clock: Clock) -> Result<EventLoop<R>> {
        let poll = Poll::new().context("the kernel gives no epoll")?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let timer = Timer::new()?;
        poll.registry().register(&mut SourceFd(&timer.0.as_raw_fd()), TIMER, Interest::READABLE)?;
        Ok(EventLoop {
            poll,
            events: Events::with_capacity(1024),
            waker,
            timer,
            links: Vec::new(),
            producers: Vec::new(),
            active: Vec::new(),
            serving: Vec::new(),
            buffer: vec![0; READ_BYTES],
            clock,
            reopening: None,
            board,
            frames_read: 0,
            bytes_written: 0,
        })
    }

    /// Makes the loop re-open broken connections, instead of ending the run.
    pub(crate) fn reopen(&mut self, driver: &'static dyn Driver, url: &Url) {
        self.reopening = Some(Reopening { driver, url: url.clone() });
    }

    /// Adds a connection to the loop.
    pub(crate) fn add(&mut self, session: Session, role: R) -> Result<()> {
        let Parts { socket, reader, unread, set_up } = session.into_parts()?;
        let mut socket = socket.map(TcpStream::from_std);
        let index = self.links.len();
        self.poll.registry().register(
            socket.socket_mut(),
            Token(index),
            Interest::READABLE | Interest::WRITABLE,
        )?;
        if role.is_producer() {
            self.producers.push(index);
        }
        // The handshake may have left frames in the buffer, so the connection starts as readable.
        self.links.push(Link {
            socket,
            role,
            set_up,
            broken: None,
            reader,
            partial: unread,
            out: Vec::new(),
            written: 0,
            is_readable: true,
            is_writable: true,
            is_ending: false,
            is_active: false,
        });
        self.activate(index);
        Ok(())
    }

    /// Returns a waker that ends a wait of this loop from another thread.
    pub(crate) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// The roles of all connections.
    pub(crate) fn roles(&mut self) -> impl Iterator<Item = &mut R> {
        self.links.iter_mut().map(|link| &mut link.role)
    }

    /// Bytes that the sockets have not accepted yet.
    pub(crate) fn unwritten(&self) -> usize {
        self.links.iter().map(Link::unwritten).sum()
    }

    /// Serves every connection in the next turn, because the condition that they wait for has changed.
    pub(crate) fn kick(&mut self) {
        for index in 0..self.links.len() {
            self.activate(index);
        }
    }

    /// Passes a tick to every role, and tries to re-open broken connections.
    pub(crate) fn tick(&mut self) -> Result<()> {
        let now = self.clock.now();
        for index in 0..self.links.len() {
            self.mend(index, now)?;
            if let Some(link) = self.links.get_mut(index) {
                link.role.tick(now, &mut self.board);
            }
        }
        self.kick();
        Ok(())
    }

    /// Tries to re-open a broken connection; fails once that has been tried for too long.
    fn mend(&mut self, index: usize, now: u64) -> Result<()> {
        let (Some(link), Some(reopening)) = (self.links.get_mut(index), &self.reopening) else {
            return Ok(());
        };
        let Some((since, _)) = link.broken else {
            return Ok(());
        };
        match reopening.session(&link.set_up) {
            Ok(Parts { socket, reader, unread, .. }) => {
                let mut socket = socket.map(TcpStream::from_std);
                let interest = Interest::READABLE | Interest::WRITABLE;
                self.poll.registry().register(socket.socket_mut(), Token(index), interest)?;
                link.socket = socket;
                link.reader = reader;
                link.partial = unread;
                link.broken = None;
                (link.is_readable, link.is_writable, link.is_ending) = (true, true, false);
                link.role.reopened(now, &mut self.board);
                Ok(())
            }
            Err(_) if now.saturating_sub(since) < REOPENING_NANOS_MAX => Ok(()),
            Err(error) => Err(error.context("a broken connection cannot be opened again")),
        }
    }

    /// Waits for sockets at most this long, and serves each ready connection once.
    pub(crate) fn turn(&mut self, timeout: Duration) -> Result<()> {
        let timeout = match self.next_due() {
            _ if !self.active.is_empty() => Duration::ZERO,
            Some(due) => match due.checked_sub(self.clock.now()) {
                None | Some(0) => Duration::ZERO,
                Some(wait) => {
                    // The timeout of a poll has a resolution of milliseconds, which is too coarse
                    // for a schedule.
                    self.timer.set(Duration::from_nanos(wait))?;
                    timeout
                }
            },
            None => timeout,
        };
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error.into()),
            _ => {}
        }
        for event in &self.events {
            let Some(link) = self.links.get_mut(event.token().0) else {
                continue;
            };
            link.is_ending |= event.is_read_closed() || event.is_error();
            link.is_readable |= event.is_readable() || link.is_ending;
            link.is_writable |= event.is_writable();
            if !link.is_active {
                link.is_active = true;
                self.active.push(event.token().0);
            }
        }
        let now = self.clock.now();
        for at in 0..self.producers.len() {
            if let Some(index) = self.producers.get(at).copied()
                && let Some(link) = self.links.get(index)
                && link.broken.is_none()
                && link.role.next_due().is_none_or(|due| due <= now)
            {
                self.activate(index);
            }
        }
        std::mem::swap(&mut self.active, &mut self.serving);
        for at in 0..self.serving.len() {
            if let Some(index) = self.serving.get(at).copied() {
                self.serve(index)?;
            }
        }
        self.serving.clear();
        Ok(())
    }

    /// The earliest due time among the producers that can write.
    fn next_due(&self) -> Option<u64> {
        let links = self.producers.iter().filter_map(|index| self.links.get(*index));
        links
            .filter(|link| link.broken.is_none() && link.unwritten() < BACKLOG_BYTES_MAX)
            .filter_map(|link| link.role.next_due())
            .min()
    }

    fn activate(&mut self, index: usize) {
        if let Some(link) = self.links.get_mut(index)
            && !link.is_active
        {
            link.is_active = true;
            self.active.push(index);
        }
    }

    /// Reads once and writes once; the connection stays active if work is left.
    fn serve(&mut self, index: usize) -> Result<()> {
        let Some(link) = self.links.get_mut(index) else {
            return Ok(());
        };
        link.is_active = false;
        if link.broken.is_some() {
            return Ok(());
        }
        let mut has_more = false;
        match link.exchange(&mut self.buffer, self.clock, &mut self.board, &mut has_more) {
            Ok((frames, bytes)) => {
                self.frames_read += frames;
                self.bytes_written += bytes;
            }
            Err(error) if self.reopening.is_some() => {
                let now = self.clock.now();
                link.broken = Some((now, error));
                link.out.clear();
                link.written = 0;
                link.role.cut_off(now, &mut self.board);
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        if link.may_read() || (has_more && link.is_writable) {
            self.activate(index);
        }
        Ok(())
    }
}

/// A timer with a resolution of nanoseconds, which wakes the loop through epoll.
struct Timer(OwnedFd);

impl Timer {
    fn new() -> Result<Timer> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Timer(timerfd_create(TimerfdClockId::Monotonic, flags).context("the kernel gives no timer")?))
    }

    fn set(&self, wait: Duration) -> Result<()> {
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec {
                tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(wait.subsec_nanos()),
            },
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once).context("the timer cannot be set")?;
        Ok(())
    }
}

impl Reopening {
    fn session(&self, set_up: &[Vec<u8>]) -> Result<Parts> {
        let mut session = Session::open_within(self.driver, &self.url, REOPEN_TIMEOUT)?;
        for step in set_up {
            session.set_up(step.clone())?;
        }
        session.into_parts()
    }
}

impl<R: Role> Link<R> {
    /// Reads once, fills and writes; returns the numbers of frames read and bytes written.
    fn exchange(
        &mut self,
        buffer: &mut Vec<u8>,
        clock: Clock,
        board: &mut R::Board,
        has_more: &mut bool,
    ) -> Result<(u64, u64)> {
        let frames = if self.may_read() { self.read(buffer, clock, board)? } else { 0 };
        *has_more = self.unwritten() < BACKLOG_BYTES_MAX && self.role.fill(clock.now(), board, &mut self.out);
        Ok((frames, self.flush()?))
    }

    fn unwritten(&self) -> usize {
        self.out.len().saturating_sub(self.written)
    }

    fn may_read(&self) -> bool {
        let unwritten = self.unwritten();
        self.is_readable && unwritten < BACKLOG_BYTES_MAX && self.role.reads(unwritten)
    }

    /// Reads once and passes all complete frames to the role; returns their number.
    fn read(&mut self, buffer: &mut Vec<u8>, clock: Clock, board: &mut R::Board) -> Result<u64> {
        let kept = self.partial.len();
        if buffer.len() < kept.saturating_add(READ_BYTES) {
            buffer.resize(kept.saturating_add(READ_BYTES), 0);
        }
        let (head, tail) = buffer.split_at_mut(kept);
        head.copy_from_slice(&self.partial);
        let length = match self.socket.read(tail) {
            Ok(0) => bail!("the broker closed a connection during the run; look into its log"),
            Ok(length) => {
                // A short read has emptied the socket, and epoll reports new data. With TLS it only
                // means the end of a record.
                self.is_readable = length == tail.len() || self.is_ending || self.socket.is_tls();
                length
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.is_readable = false;
                0
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(error) => return Err(anyhow!(error).context("the broker broke a connection during the run")),
        };
        let now = clock.now();
        let mut rest = buffer.get(..kept.saturating_add(length)).unwrap_or_default();
        let mut frames = 0;
        while let Some((heard, used)) = self.reader.take(rest)? {
            match heard {
                Heard::Error(complaint) => bail!("the broker ends the run: {complaint}"),
                Heard::Ping(answer) => self.out.extend_from_slice(answer),
                heard => self.role.hear(&heard, now, board, &mut self.out),
            }
            rest = rest.get(used..).unwrap_or_default();
            frames += 1;
        }
        self.partial.clear();
        self.partial.extend_from_slice(rest);
        Ok(frames)
    }

    /// Writes as much as the socket accepts; returns the number of bytes.
    fn flush(&mut self) -> Result<u64> {
        let mut bytes = 0;
        if self.is_writable && self.socket.has_unwritten() {
            self.is_writable = self.socket.flush().is_ok();
        }
        while self.is_writable && self.written < self.out.len() {
            match self.socket.write(self.out.get(self.written..).unwrap_or_default()) {
                Ok(length) => {
                    self.written += length;
                    bytes += length as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(anyhow!(error).context("the broker broke a connection during the run"));
                }
            }
        }
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        } else if self.written >= BACKLOG_BYTES_MAX {
            self.out.drain(..self.written);
            self.written = 0;
        }
        Ok(bytes)
    }
}
