//! One look at the machine, the broker's processes and this one; all counters only grow.

use crate::probe::host::Host;

/// The counts until a moment.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// Nanoseconds of the run's clock at which it was taken.
    pub(crate) at: u64,
    /// The machine.
    pub(crate) host: Host,
    /// This process.
    pub(crate) client: ClientSample,
    /// The broker's processes, if they are known and run here.
    pub(crate) broker: Option<BrokerSample>,
}

/// The counts of this process until a moment.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientSample {
    /// Nanoseconds of CPU time of all threads.
    pub(crate) cpu_nanos: u64,
    /// Nanoseconds that the thread that waited longest for a CPU did so, summed over the looks.
    pub(crate) without_cpu_nanos: u64,
    /// How often its control group was held back.
    pub(crate) held_back: u64,
}

/// The counts of the broker until a moment.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BrokerSample {
    /// Ticks of CPU time.
    pub(crate) cpu_ticks: u64,
    /// Resident bytes.
    pub(crate) rss_bytes: u64,
    /// Times that a thread gave up or lost its CPU.
    pub(crate) context_switches: u64,
    /// Bytes read from disks.
    pub(crate) read_bytes: u64,
    /// Bytes written to disks.
    pub(crate) write_bytes: u64,
    /// Nanoseconds that the thread that waited longest for a CPU did so, summed over the looks.
    pub(crate) without_cpu_nanos: u64,
    /// Threads that waited for a disk at this moment.
    pub(crate) disk_waits: u32,
    /// Whether a process was stopped at this moment.
    pub(crate) is_stopped: bool,
    /// How often its control group was held back.
    pub(crate) held_back: u64,
}
