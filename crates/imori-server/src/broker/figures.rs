//! Figures of the cells, of memory, of logins and of late work.

use std::time::Duration;

use imori_core::id::VhostId;
use imori_core::world::{Counter, Latency, StreamRequests};

use super::broker::Broker;
use crate::cell_state::histogram::Times;
use crate::config::Spoken;
use crate::login::OUTCOMES;
use crate::peers::sums::SumsByKind;
use crate::shared::CellHandle;
use crate::stall::{Cause, Stall};

/// The load of a cell.
#[derive(Debug, Clone, Copy)]
pub struct CellFigures {
    /// The lag of its present turn.
    pub lag: Duration,
    /// The longest lag of the last second.
    pub longest_lag: Duration,
    /// The part of the time in which it works.
    pub busy_percent: u8,
}

/// The memory of messages.
#[derive(Debug, Clone, Copy)]
pub struct MemoryFigures {
    /// Bytes of waiting messages.
    pub waiting_bytes: usize,
    /// The number of these bytes from which on publishers wait.
    pub mark_bytes: usize,
    /// Bytes of large messages that are not whole yet.
    pub unfinished_bytes: usize,
    /// Bytes of HTTP requests whose bodies are being read or answered.
    pub bodies_bytes: usize,
    /// Connections that are not read until there is memory for their large message.
    pub waiting_connections: usize,
    /// Queues that throttle their publishers.
    pub throttling_queues: usize,
    /// Publishers wait for memory.
    pub is_alarmed: bool,
    /// Publishers that need the disk wait for it.
    pub is_disk_alarmed: bool,
}

impl Broker {
    fn cells(&self) -> impl Iterator<Item = &CellHandle> {
        self.shared().cells.get().into_iter().flatten()
    }

    /// The load of each cell.
    pub fn cell_figures(&self) -> Vec<CellFigures> {
        let now = self.now();
        let figures = |cell: &CellHandle| {
            let lag = cell.pulse.lag(now, cell.load.is_parked());
            let longest_lag = cell.pulse.latest().max(lag);
            CellFigures { lag, longest_lag, busy_percent: cell.load.busy_percent() }
        };
        self.cells().map(figures).collect()
    }

    /// A counter, summed over the cells.
    pub fn counted(&self, counter: Counter) -> u64 {
        self.cells().map(|cell| cell.counters.get(counter)).sum()
    }

    /// The histogram of a latency, summed over the cells.
    pub fn times(&self, latency: Latency) -> Times {
        let mut times = Times::default();
        self.cells().for_each(|cell| cell.latencies.add_to(latency, &mut times));
        times
    }

    /// The traffic of closed connections.
    pub fn closed_traffic(&self) -> SumsByKind {
        let mut closed = SumsByKind::default();
        for cell in self.cells() {
            closed.iter_mut().zip(cell.gone.sums()).for_each(|(sum, more)| sum.add(&more));
        }
        closed
    }

    /// The memory of messages.
    pub fn memory_figures(&self) -> MemoryFigures {
        let memory = &self.shared().memory;
        let bodies_bytes = self.shared().bodies.bytes();
        MemoryFigures {
            // Bodies are charged to the same gauge.
            waiting_bytes: memory.gauge().bytes().saturating_sub(bodies_bytes),
            mark_bytes: memory.mark_bytes(),
            unfinished_bytes: memory.long_frames().bytes(),
            bodies_bytes,
            waiting_connections: memory.long_frames().waiting(),
            throttling_queues: memory.gauge().throttling(),
            is_alarmed: memory.is_alarmed(),
            is_disk_alarmed: memory.is_disk_alarmed(),
        }
    }

    /// Open connections with sockets.
    pub fn socket_connections(&self) -> usize {
        self.cells().map(CellHandle::socket_connections).sum()
    }

    /// Connections with sockets that were admitted so far.
    pub fn admitted_connections(&self) -> u64 {
        self.shared().admission.admitted()
    }

    /// Logins by protocol, with `None` for HTTP, in the order of [`OUTCOMES`].
    pub fn login_counts(&self) -> Vec<(Option<Spoken>, [u64; OUTCOMES.len()])> {
        self.shared().logins.each().collect()
    }

    /// Requests to the API of streams: of a vhost, or of all with `None`.
    pub fn stream_requests(&self, vhost: Option<VhostId>) -> StreamRequests {
        let counts = &self.shared().stream_requests;
        vhost.map_or_else(|| counts.all(), |vhost| counts.of(vhost))
    }

    /// Spans that were not sent, because the collector was slower than the publishers.
    pub fn lost_spans(&self) -> u64 {
        self.shared().observation.spans.lost()
    }

    /// The latest stalls, oldest first.
    pub fn stalls(&self) -> Vec<Stall> {
        self.shared().stalls.last()
    }

    /// The number of finished stalls with this cause.
    pub fn stall_count(&self, cause: Cause) -> u64 {
        self.shared().stalls.count(cause)
    }

    /// The cause of the flush that is late now, if one is.
    pub fn flush_cause(&self) -> Option<Cause> {
        self.shared().stalls.flush_cause()
    }
}
