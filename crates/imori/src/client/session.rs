//! The blocking half of every client: it sends, waits, and keeps the messages that come meanwhile.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::conversation::Received;
use super::error::ClientError;
use super::transport::{PATIENCE, Transport};
use imori_bench::Url;

/// A protocol's view of what the broker sends.
pub(super) trait Protocol {
    /// Takes the first item of the input: the message in it, if it is one, and its length; `None`
    /// until all of it has arrived. Appends to `out` what must be answered at once. A refusal is an
    /// error.
    fn take(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<(Option<Received>, usize)>, ClientError>;

    /// The longest silence that the broker accepts.
    fn silence_max(&self) -> Option<Duration> {
        None
    }

    /// Appends what breaks the silence.
    fn push_heartbeat(_out: &mut Vec<u8>) {}
}

/// A connection and its protocol.
pub(super) struct Session<P> {
    pub(super) protocol: P,
    transport: Transport,
    /// Messages that arrived while the client waited for an answer.
    waiting: VecDeque<Received>,
}

impl<P: Protocol> Session<P> {
    pub(super) fn connect(url: &Url, protocol: P) -> Result<Session<P>, ClientError> {
        Ok(Session { protocol, transport: Transport::connect(url)?, waiting: VecDeque::new() })
    }

    /// Appends to the output.
    pub(super) fn write(&mut self, append: impl FnOnce(&mut Vec<u8>)) -> Result<(), ClientError> {
        self.transport.write(append)
    }

    /// Waits for an answer, which the protocol has noted.
    pub(super) fn wait<T>(&mut self, mut answer: impl FnMut(&mut P) -> Option<T>) -> Result<T, ClientError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(answer) = answer(&mut self.protocol) {
                return Ok(answer);
            }
            self.hear(Some(deadline))?;
        }
    }

    /// Waits for the next message.
    pub(super) fn receive(&mut self, deadline: Option<Instant>) -> Result<Received, ClientError> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Ok(message);
            }
            self.hear(deadline)?;
        }
    }

    /// Waits for the broker's next item, and keeps it if it is a message.
    fn hear(&mut self, deadline: Option<Instant>) -> Result<(), ClientError> {
        self.transport.flush()?;
        loop {
            let mut answer = Vec::new();
            let taken = self.protocol.take(self.transport.input(), &mut answer)?;
            if !answer.is_empty() {
                self.transport.write(|out| out.append(&mut answer))?;
                self.transport.flush()?;
            }
            if let Some((message, used)) = taken {
                self.waiting.extend(message);
                self.transport.consume(used);
                return Ok(());
            }
            self.read(deadline)?;
        }
    }

    /// Waits for input, and breaks the silence after half of what the broker accepts.
    fn read(&mut self, deadline: Option<Instant>) -> Result<(), ClientError> {
        let Some(silence) = self.protocol.silence_max() else { return self.transport.read(deadline) };
        let beat_at = Instant::now() + silence / 2;
        self.transport.read(Some(deadline.map_or(beat_at, |deadline| deadline.min(beat_at))))?;
        if beat_at <= Instant::now() {
            self.transport.write(P::push_heartbeat)?;
            self.transport.flush()?;
        }
        Ok(())
    }
}
