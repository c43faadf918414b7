//! Derives the cause of a stall from the samples taken during it.

use std::time::Duration;

use super::host::{DeviceSample, Pressure, ThreadSample};

/// The cause of a stall, as far as it can be seen from inside the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The device has operations in flight but completes none.
    Device,
    /// The device is idle: a layer above it blocks writers, as `fsfreeze` does.
    Frozen,
    /// The device completes operations, but too slowly.
    BusyDevice,
    /// The thread is runnable but gets no CPU.
    Cpu,
    /// The thread is running all the time: it has too much work.
    Work,
    /// The thread waits for another thread.
    Thread,
    /// The samples do not explain it.
    Unknown,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Cause; 7] = [
        Cause::Device,
        Cause::Frozen,
        Cause::BusyDevice,
        Cause::Cpu,
        Cause::Work,
        Cause::Thread,
        Cause::Unknown,
    ];

    /// The label in metrics.
    pub fn label(self) -> &'static str {
        match self {
            Cause::Device => "device",
            Cause::Frozen => "frozen",
            Cause::BusyDevice => "busy_device",
            Cause::Cpu => "cpu",
            Cause::Work => "work",
            Cause::Thread => "thread",
            Cause::Unknown => "unknown",
        }
    }

    /// The cause in words.
    pub fn text(self) -> &'static str {
        match self {
            Cause::Device => "the device does not answer",
            Cause::Frozen => "the file system is frozen",
            Cause::BusyDevice => "the device is busy",
            Cause::Cpu => "the host's processors are busy",
            Cause::Work => "it has too much to do at once",
            Cause::Thread => "it waits for another thread",
            Cause::Unknown => "nothing that can be seen explains it",
        }
    }
}

/// A thread and the device at one moment, as far as the system reports them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) thread: Option<ThreadSample>,
    pub(crate) device: Option<DeviceSample>,
}

/// A device without completions for this long counts as silent even if it completed some before, as a file system is
/// written out before it freezes.
const SILENT: Duration = Duration::from_millis(200);

/// Samples taken during a stall, summarized.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Time between the first and last sample.
    pub watched: Duration,
    /// Number of samples of the late thread.
    pub samples: u32,
    /// Samples in which it was in uninterruptible sleep.
    pub disk_waits: u32,
    /// CPU time of the thread since the first sample.
    pub ran: Duration,
    /// Time the thread was runnable without a CPU.
    pub starved: Duration,
    /// The most operations in flight in any sample since the device last completed one.
    pub in_flight_max: Option<u64>,
    /// Time since the device last completed an operation.
    pub silent: Duration,
    /// Operations completed since the first sample.
    pub completed: Option<u64>,
    /// Time the device had operations in flight.
    pub device_busy: Option<Duration>,
    /// Other threads of this process in uninterruptible sleep at the last sample.
    pub others_waiting: usize,
    /// Pressure on the machine's disks.
    pub io_pressure: Option<Pressure>,
    /// Pressure on its CPUs.
    pub cpu_pressure: Option<Pressure>,
}

impl Evidence {
    /// Adds a sample taken `after` the previous one; `first` is the first sample.
    pub(crate) fn add(&mut self, first: &Sample, now: &Sample, after: Duration) {
        self.watched += after;
        if let (Some(first), Some(now)) = (first.thread, now.thread) {
            self.samples += 1;
            self.disk_waits += u32::from(now.waits_for_disk);
            self.ran = now.ran.saturating_sub(first.ran);
            self.starved = now.starved.saturating_sub(first.starved);
        }
        if let (Some(first), Some(now)) = (first.device, now.device) {
            let completed = Some(now.completed.saturating_sub(first.completed));
            let is_silent = completed == self.completed.or(Some(0));
            self.silent = if is_silent { self.silent + after } else { Duration::ZERO };
            let before = self.in_flight_max.filter(|_| is_silent);
            self.in_flight_max = before.max(Some(now.in_flight));
            self.completed = completed;
            self.device_busy = Some(now.busy.saturating_sub(first.busy));
        }
    }

    /// Whether the device has completed nothing for long, or for most of the time.
    fn is_device_silent(&self) -> bool {
        self.silent >= SILENT || self.silent * 2 > self.watched
    }

    fn is_starved(&self) -> bool {
        self.starved * 2 > self.watched && !self.watched.is_zero()
    }

    fn waits_for_disk(&self) -> bool {
        self.disk_waits * 2 > self.samples
    }
}

/// The cause of a slow write or sync.
pub(crate) fn judge_flush(seen: &Evidence) -> Cause {
    match (seen.in_flight_max, seen.completed) {
        _ if seen.is_starved() => Cause::Cpu,
        _ if !seen.waits_for_disk() => Cause::Unknown,
        (Some(0), Some(_)) if seen.is_device_silent() => Cause::Frozen,
        (Some(_), Some(_)) if seen.is_device_silent() => Cause::Device,
        (Some(_), Some(_)) => Cause::BusyDevice,
        _ => Cause::Unknown,
    }
}

/// The cause of a cell's lag.
pub(crate) fn judge_cell(seen: &Evidence) -> Cause {
    match seen {
        _ if seen.is_starved() => Cause::Cpu,
        _ if seen.samples == 0 => Cause::Unknown,
        _ if seen.waits_for_disk() => judge_flush(seen),
        _ if seen.ran * 2 > seen.watched => Cause::Work,
        _ => Cause::Thread,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Evidence of ten samples in 100 ms; `device` is operations in flight, completed, and milliseconds of silence.
    fn seen(disk_waits: u32, ran: u32, starved: u32, device: Option<(u64, u64, u32)>) -> Evidence {
        Evidence {
            watched: 100 * MS,
            samples: 10,
            disk_waits,
            ran: ran * MS,
            starved: starved * MS,
            in_flight_max: device.map(|(in_flight, ..)| in_flight),
            completed: device.map(|(_, completed, _)| completed),
            silent: device.map_or(Duration::ZERO, |(.., silent)| silent * MS),
            ..Evidence::default()
        }
    }

    #[test]
    fn a_late_flush_is_explained() {
        for (evidence, expected) in [
            (seen(10, 0, 0, Some((0, 0, 100))), Cause::Frozen),
            (seen(10, 0, 0, Some((0, 90, 60))), Cause::Frozen),
            (seen(10, 0, 0, Some((3, 0, 100))), Cause::Device),
            (seen(10, 0, 0, Some((3, 40, 10))), Cause::BusyDevice),
            (seen(10, 0, 0, Some((0, 4, 0))), Cause::BusyDevice),
            (Evidence { watched: 900 * MS, ..seen(10, 0, 0, Some((0, 4, 200))) }, Cause::Frozen),
            (Evidence { watched: 900 * MS, ..seen(10, 0, 0, Some((0, 4, 150))) }, Cause::BusyDevice),
            (seen(6, 0, 0, Some((1, 0, 100))), Cause::Device),
            (seen(4, 0, 0, Some((1, 0, 100))), Cause::Unknown),
            (seen(10, 0, 0, None), Cause::Unknown),
            (seen(4, 10, 60, Some((1, 9, 0))), Cause::Cpu),
            (Evidence::default(), Cause::Unknown),
        ] {
            assert_eq!(judge_flush(&evidence), expected, "{evidence:?}");
        }
    }

    #[test]
    fn a_late_cell_is_explained() {
        for (evidence, expected) in [
            (seen(0, 90, 0, None), Cause::Work),
            (seen(0, 10, 80, None), Cause::Cpu),
            (seen(0, 5, 5, None), Cause::Thread),
            (seen(9, 0, 0, Some((0, 0, 90))), Cause::Frozen),
            (seen(9, 0, 0, Some((2, 0, 90))), Cause::Device),
            (Evidence::default(), Cause::Unknown),
        ] {
            assert_eq!(judge_cell(&evidence), expected, "{evidence:?}");
        }
    }

    #[test]
    fn looks_are_held_against_the_first() {
        let sample = |ran: u32, waits_for_disk, completed, in_flight| Sample {
            thread: Some(ThreadSample { waits_for_disk, ran: ran * MS, starved: 2 * ran * MS }),
            device: Some(DeviceSample { completed, in_flight, busy: Duration::from_millis(completed) }),
        };
        let first = sample(5, false, 100, 1);
        let mut evidence = Evidence::default();
        for (now, silent, in_flight_max) in [
            (sample(6, true, 100, 4), 10, 4),
            (sample(6, true, 100, 1), 20, 4),
            (sample(8, false, 107, 0), 0, 0),
            (sample(8, false, 107, 0), 10, 0),
        ] {
            evidence.add(&first, &now, 10 * MS);
            assert_eq!((evidence.silent, evidence.in_flight_max), (silent * MS, Some(in_flight_max)));
        }
        assert_eq!((evidence.samples, evidence.disk_waits, evidence.watched), (4, 2, 40 * MS));
        assert_eq!((evidence.ran, evidence.starved), (3 * MS, 6 * MS));
        evidence.add(&first, &Sample::default(), 10 * MS);
        assert_eq!((evidence.samples, evidence.completed), (4, Some(7)), "what is not told changes nothing");
    }
}
