//! Writes the unsent bytes of touched connections, all together.

use std::io::{self, ErrorKind};

use imori_core::broker::{resume_publishers, wake_consumers};
use imori_core::id::ConnectionId;
use imori_core::time::Time;

use super::host::Host;
use super::link::{Link, Wire};
use super::signal::Signal;

/// Bytes to write, and how many of them are already written.
type Chunk = (Vec<u8>, usize);

/// The writer of the connections that a host reaches.
type Writer<H> = <<H as Host>::Wire as Wire>::Writer;

/// Writes every touched connection. Feeding a queue's consumers can touch more; those are written too.
pub fn flush_touched<H: Host>(host: &H) {
    loop {
        let touched = host.cell_scratch().take_touched();
        let is_empty = touched.is_empty();
        for id in &touched {
            flush(host, *id);
        }
        host.cell_scratch().recycle_touched(touched);
        if is_empty {
            return;
        }
    }
}

/// Flushes before connection `id` continues its unfinished work, if other turns touched connections. All others have
/// had their turns, so without this work the cell would be idle now and would flush.
pub(super) fn flush_of_others<H: Host>(host: &H, id: ConnectionId) {
    if host.cell_scratch().is_touched_by_others_than(id) {
        flush_touched(host);
    }
}

/// Writes a connection's unsent bytes until its socket takes no more.
pub fn flush<H: Host>(host: &H, id: ConnectionId) {
    let is_own_cell = id.cell == host.id();
    let Some((mut chunk, writer)) =
        host.with_link(id, |link| first_chunk(link, is_own_cell, host.now())).flatten()
    else {
        return;
    };
    loop {
        let outcome = write::<H>(host, &writer, &mut chunk);
        let (bytes, written) = chunk;
        let next = host.with_link(id, |link| {
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
            host.cell_scratch().recycle(spare);
        }
        match next {
            Some(next) => chunk = next,
            None => {
                wake_consumers(host, id, &wakes);
                resume_publishers(host, &publishers);
                return;
            }
        }
    }
}

fn first_chunk<W: Wire>(link: &mut Link<W>, is_own_cell: bool, now: Time) -> Option<(Chunk, W::Writer)> {
    link.outbound.untouch();
    match link.wire.writer(is_own_cell) {
        Some(writer) => {
            let chunk = link.outbound.take_unsent()?;
            link.wire.wrote(now);
            Some((chunk, writer))
        }
        None => {
            link.signal(Signal::Write);
            None
        }
    }
}

/// Writes a chunk; `false` if the socket takes no more before all of it is written.
fn write<H: Host>(host: &H, writer: &Writer<H>, (bytes, written): &mut Chunk) -> io::Result<bool> {
    while let Some(rest) = bytes.get(*written..).filter(|rest| !rest.is_empty()) {
        match host.write(writer, rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(sent) => *written += sent,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
