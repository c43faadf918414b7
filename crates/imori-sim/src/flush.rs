//! Bytes leave: the connections that were touched are written, as in the server.

use imori_core::broker::{resume_publishers, wake_consumers};
use imori_core::id::ConnectionId;

use crate::network::Write;
use crate::planted::Bug;
use crate::resting::Signal;
use crate::shared::Link;
use crate::world::CellWorld;

/// Bytes to write, and how many of them are written.
type Chunk = (Vec<u8>, usize);

/// How a chunk's writing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    All,
    Blocked,
    Broken,
}

impl CellWorld<'_> {
    /// Writes every connection that was touched, and those that are touched by that.
    pub(crate) fn flush_touched(&self) {
        loop {
            let touched = self.state().touched.take();
            if touched.is_empty() {
                return;
            }
            for id in touched {
                self.flush(id);
            }
        }
    }

    /// Writes one connection, as far as its socket takes it.
    pub(crate) fn flush(&self, id: ConnectionId) {
        let Some((mut chunk, pipe)) = self.with_link(id, |link| self.first_chunk(link)).flatten() else {
            return;
        };
        loop {
            self.pause();
            let outcome = self.write(pipe, &mut chunk);
            let (bytes, written) = chunk;
            let next = self.with_link(id, |link| {
                if self.shared.has(Bug::QueueAfterOutbound) && outcome == Outcome::Blocked {
                    self.lock(crate::lock::Lock::Queue(0));
                }
                self.put_back(link, bytes, written);
                let next = match outcome {
                    Outcome::All => link.outbound.take_unsent(),
                    Outcome::Blocked => {
                        if !self.shared.has(Bug::LostWriteSignal) {
                            link.signals.set(Signal::Write);
                        }
                        None
                    }
                    Outcome::Broken => {
                        link.signals.set(Signal::Broken);
                        None
                    }
                };
                if next.is_some() {
                    return (next, Default::default());
                }
                if link.outbound.is_over() {
                    link.signals.set(Signal::End);
                }
                (None, link.outbound.written())
            });
            let Some((next, (wakes, publishers))) = next else {
                return;
            };
            match next {
                Some(next) => chunk = next,
                None => {
                    if !self.shared.has(Bug::LostWake) {
                        wake_consumers(self, id, &wakes);
                    }
                    resume_publishers(self, &publishers);
                    return;
                }
            }
        }
    }

    fn first_chunk(&self, link: &mut Link) -> Option<(Chunk, usize)> {
        link.outbound.untouch();
        let chunk = link.outbound.take_unsent()?;
        if self.shared.has(Bug::TwoWriters) {
            let len = chunk.0.len();
            link.outbound.put_back(chunk.0.clone(), len);
        }
        Some((chunk, link.pipe))
    }

    fn put_back(&self, link: &mut Link, mut bytes: Vec<u8>, written: usize) {
        let shared = self.shared;
        if shared.has(Bug::PutBackAtTheEnd) && 0 < written && written < bytes.len() {
            let rest = bytes.split_off(written);
            link.outbound.put_back(bytes, written);
            link.outbound.beat(&rest);
        } else if shared.has(Bug::WrittenTwice) && written < bytes.len() {
            link.outbound.put_back(bytes, 0);
        } else {
            link.outbound.put_back(bytes, written);
        }
    }

    fn write(&self, pipe: usize, (bytes, written): &mut Chunk) -> Outcome {
        while let Some(rest) = bytes.get(*written..).filter(|rest| !rest.is_empty()) {
            match self.shared.network.write(pipe, rest, &self.shared.random) {
                Write::Bytes(len) => {
                    let trace = &self.shared.trace;
                    trace.note_bytes(rest.get(..len).unwrap_or_default());
                    trace.note(&[pipe as u64], || {
                        format!("cell {} writes {len} bytes to session {pipe}", self.id)
                    });
                    *written += len;
                }
                Write::WouldBlock => return Outcome::Blocked,
                Write::Broken => return Outcome::Broken,
            }
        }
        Outcome::All
    }

    /// Ends turns as the server does: checks the memory, and tells who waited for it.
    pub(crate) fn check_memory(&self) {
        for connection in self.shared.memory.check() {
            if !self.shared.has(Bug::LostAlarmEnd) {
                self.with_link(connection, |link| link.signals.set(Signal::AlarmEnded));
            }
        }
    }
}
