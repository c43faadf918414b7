//! A virtual cell as `Host` of the server's turns, with the bugs planted between the two.

use std::io::{self, ErrorKind};

use imori_core::confirm::{Lsn, Progress};
use imori_core::id::ConnectionId;
use imori_server::turn::{
    CellScratch, Host, Link, Memory, Signal, Wire, await_journal, check_memory, flush_touched, give_signal,
    release_confirms,
};

use super::world::CellWorld;
use crate::machine::Lock;
use crate::machine::PipeWire;
use crate::machine::{Write, written_instead};
use crate::planted::Bug;

impl Wire for PipeWire {
    type Writer = (ConnectionId, usize);

    fn writer(&self, is_own_cell: bool) -> Option<(ConnectionId, usize)> {
        if self.is_own && !is_own_cell { None } else { Some((self.id, self.pipe)) }
    }

    fn wake(&self) {
        self.woken.set(true);
    }
}

impl Host for CellWorld<'_> {
    type Wire = PipeWire;

    fn id(&self) -> u16 {
        u16::try_from(self.id).expect("there are few cells")
    }

    fn cell_scratch(&self) -> &CellScratch {
        &self.state().cell_scratch
    }

    fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    /// Lends a connection under its lock, if it exists.
    fn with_link<R>(&self, id: ConnectionId, f: impl FnOnce(&mut Link<PipeWire>) -> R) -> Option<R> {
        let shared = self.shared;
        let cell = shared.cells.get(usize::from(id.cell))?;
        let is_after_write = self.has_written.take();
        self.is_waking.set(is_after_write);
        let is_blocked = self.is_blocked.take();
        let _held = self.lock(Lock::Outbound(id.cell, id.slot));
        let slot = cell.links.slot(id.slot)?;
        let mut slot = slot.borrow_mut();
        let generation = if shared.has(Bug::StaleConnection) { slot.generation } else { id.generation };
        let link = slot.of(generation)?;
        let is_gone = self.turn_of.get() == Some(id) && shared.network.pipe(link.wire.pipe).is_reset;
        if self.ending.get() == Some(id) || is_gone {
            // Repeated until the connection is closed, as other cells may add output until then.
            self.keep_unsent(link);
        }
        if shared.has(Bug::QueueAfterOutbound) && is_blocked {
            self.lock(Lock::Queue(0));
        }
        let was_ended = link.outbound.is_ended();
        let result = f(link);
        self.check(link, was_ended);
        if shared.has(Bug::TwoWriters) {
            // Under this bug taken output no longer keeps other cells from writing.
            link.outbound.put_back(Vec::new(), 0);
        }
        Some(result)
    }

    fn write(&self, (id, pipe): &(ConnectionId, usize), bytes: &[u8]) -> io::Result<usize> {
        self.pause();
        let shared = self.shared;
        if self.keeps_back(*id, *pipe, bytes) {
            self.has_written.set(true);
            return Ok(bytes.len());
        }
        let instead = written_instead(shared.bug, bytes);
        self.write_as_is(&(*id, *pipe), instead.as_deref().unwrap_or(bytes))
    }
}

impl CellWorld<'_> {
    fn write_as_is(&self, (id, pipe): &(ConnectionId, usize), bytes: &[u8]) -> io::Result<usize> {
        let shared = self.shared;
        let written = shared.network.write(*pipe, bytes, &shared.random);
        let result: io::Result<usize> = match written {
            Write::Bytes(len) => {
                shared.trace.note_bytes(bytes.get(..len).unwrap_or_default());
                shared.trace.note(&[*pipe as u64], || {
                    format!("cell {} writes {len} bytes to connection {pipe}", self.id)
                });
                let rest = bytes.get(len..).unwrap_or_default();
                if shared.has(Bug::WrittenTwice) && !rest.is_empty() {
                    Err(ErrorKind::WouldBlock.into())
                } else if shared.has(Bug::PutBackAtTheEnd) && !rest.is_empty() {
                    self.with_link(*id, |link| link.outbound.beat(rest));
                    Ok(bytes.len())
                } else {
                    Ok(len)
                }
            }
            Write::WouldBlock => Err(ErrorKind::WouldBlock.into()),
            Write::Broken => Err(ErrorKind::BrokenPipe.into()),
        };
        self.has_written.set(true);
        self.is_blocked.set(matches!(&result, Err(error) if error.kind() == ErrorKind::WouldBlock));
        result
    }

    /// Writes every touched connection.
    pub(crate) fn flush_touched(&self) {
        flush_touched(self);
        self.is_waking.set(false);
    }

    /// Ends a turn like the server does.
    pub(crate) fn end_turn(&self) {
        self.state().turns.pass();
        self.check_memory();
        let told = Progress::default();
        let progress = || if self.shared.has(Bug::JournalUnlooked) { told } else { self.progress() };
        let wait = |write_too| {
            self.state().awaits_sync.set(true);
            self.state().awaits_write.set(write_too || self.state().awaits_write.get());
        };
        await_journal(self, wait, progress);
    }

    /// Releases confirms after the journal advanced.
    pub(crate) fn release_confirms(&self) {
        self.begin_turn();
        let progress = match self.shared.bug {
            Some(Bug::ConfirmAll) => Progress { written: Lsn::NEVER, synced: Lsn::NEVER },
            _ => self.progress(),
        };
        release_confirms(self, progress);
    }

    /// Ends alarms that are over, and tells the connections that waited for that.
    pub(crate) fn check_memory(&self) {
        let memory = &self.shared.memory;
        if memory.is_disk_alarmed() && self.shared.has_caught_up() {
            for id in memory.end_disk_alarm() {
                give_signal(self, id, Signal::AlarmEnded);
            }
        }
        match self.shared.bug {
            Some(Bug::LostAlarmEnd) => drop(memory.check()),
            Some(Bug::LostRoom) => {
                memory.check().into_iter().for_each(|id| give_signal(self, id, Signal::AlarmEnded));
            }
            _ => check_memory(self),
        }
    }
}
