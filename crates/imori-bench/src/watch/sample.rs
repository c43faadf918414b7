//! One sample of the machine, the broker's processes and this one; its counters only grow.

use crate::probe::host::Host;

/// Counters at one moment.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// Time of the sample, in nanoseconds of the run's clock.
    pub(crate) at: u64,
    /// Counters of the machine.
    pub(crate) host: Host,
    /// Counters of this process.
    pub(crate) client: ClientSample,
    /// Counters of the broker's processes, if they are known and run on this machine.
    pub(crate) broker: Option<BrokerSample>,
}

/// Counters of this process.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientSample {
    /// Nanoseconds of CPU time of all threads.
    pub(crate) cpu_nanos: u64,
    /// Wait for a CPU of the thread that waited longest between two samples, summed over the
    /// samples; nanoseconds.
    pub(crate) without_cpu_nanos: u64,
    /// Number of times its control group was throttled.
    pub(crate) held_back: u64,
}

/// Counters of the broker's processes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BrokerSample {
    /// CPU time in ticks.
    pub(crate) cpu_ticks: u64,
    /// Resident bytes.
    pub(crate) rss_bytes: u64,
    /// Context switches of its threads.
    pub(crate) context_switches: u64,
    /// Bytes read from disks.
    pub(crate) read_bytes: u64,
    /// Bytes written to disks.
    pub(crate) write_bytes: u64,
    /// Wait for a CPU of the thread that waited longest between two samples, summed over the
    /// samples; nanoseconds.
    pub(crate) without_cpu_nanos: u64,
    /// Threads waiting for a disk at this moment.
    pub(crate) disk_waits: u32,
    /// Whether a process was stopped at this moment.
    pub(crate) is_stopped: bool,
    /// Number of times its control group was throttled.
    pub(crate) held_back: u64,
}
