//! Bytes leave: the connections that were touched are written, together.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use imori_core::broker::{resume_publishers, wake_consumers};
use imori_core::id::ConnectionId;
use tokio::net::tcp::OwnedWriteHalf;

use crate::cell::Cell;
use crate::shared::{Link, Writer};
use crate::signal::Signal;

/// Bytes to write, and how many of them are written.
type Chunk = (Vec<u8>, usize);

impl Cell {
    /// Writes every connection that was touched. Feeding a queue's consumers can touch more; those are written too.
    pub(crate) fn flush_touched(&self) {
        loop {
            let touched = self.take_touched();
            if touched.is_empty() {
                self.recycle_touched(touched);
                return;
            }
            for id in &touched {
                self.flush(*id);
            }
            self.recycle_touched(touched);
        }
    }

    /// Writes one connection, as far as its socket takes it.
    pub(crate) fn flush(&self, id: ConnectionId) {
        let Some((mut chunk, writer)) =
            self.shared.with_link(id, |link| self.first_chunk(link, id)).flatten()
        else {
            return;
        };
        loop {
            let outcome = write(&writer, &mut chunk);
            let (bytes, written) = chunk;
            let next = self.shared.with_link(id, |link| {
                let spare = link.outbound.put_back(bytes, written);
                let next = match outcome {
                    Ok(true) => link.outbound.take_unsent(),
                    Ok(false) => {
                        link.signal(Signal::Write);
                        None
                    }
                    Err(_) => {
                        link.signal(Signal::Broken);
                        None
                    }
                };
                if next.is_some() {
                    return (spare, next, Default::default());
                }
                if link.outbound.is_over() {
                    link.signal(Signal::End);
                }
                (spare, None, link.outbound.written())
            });
            let Some((spare, next, (wakes, publishers))) = next else {
                return;
            };
            if let Some(spare) = spare {
                self.recycle(spare);
            }
            match next {
                Some(next) => chunk = next,
                None => {
                    wake_consumers(self, id, &wakes);
                    resume_publishers(self, &publishers);
                    return;
                }
            }
        }
    }

    fn first_chunk(&self, link: &mut Link, id: ConnectionId) -> Option<(Chunk, Arc<OwnedWriteHalf>)> {
        link.outbound.untouch();
        match &link.writer {
            Writer::Own(_) if id.cell != self.id => {
                link.signal(Signal::Write);
                None
            }
            Writer::Any(writer) | Writer::Own(writer) => {
                let writer = Arc::clone(writer);
                Some((link.outbound.take_unsent()?, writer))
            }
        }
    }
}

/// Writes a chunk; tells whether all of it is written, or the socket takes no more.
fn write(writer: &OwnedWriteHalf, (bytes, written): &mut Chunk) -> io::Result<bool> {
    while let Some(rest) = bytes.get(*written..).filter(|rest| !rest.is_empty()) {
        match writer.try_write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(sent) => *written += sent,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
