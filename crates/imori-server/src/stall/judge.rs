//! From what was seen while something was late to why it was.

use std::time::Duration;

use super::host::{DeviceSample, Pressure, ThreadSample};

/// Why something is late, as far as it can be known from inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The device has something to answer and answers nothing.
    Device,
    /// The device has nothing to answer: what stands above it holds writers up, as `fsfreeze` does.
    Frozen,
    /// The device answers, and not soon enough.
    BusyDevice,
    /// The thread could run and gets no processor.
    Cpu,
    /// The thread works all the time: it has that much to do at once.
    Work,
    /// The thread waits for another one.
    Thread,
    /// Nothing that was seen explains it.
    Unknown,
}

impl Cause {
    /// Every cause.
    pub(crate) const ALL: [Cause; 7] = [
        Cause::Device,
        Cause::Frozen,
        Cause::BusyDevice,
        Cause::Cpu,
        Cause::Work,
        Cause::Thread,
        Cause::Unknown,
    ];

    /// As metrics have it.
    pub(crate) fn label(self) -> &'static str {
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

    /// In words.
    pub(crate) fn text(self) -> &'static str {
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

/// A thread and the device at one moment, as far as the system tells of them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) thread: Option<ThreadSample>,
    pub(crate) device: Option<DeviceSample>,
}

/// A device that does nothing for so long is silent, whatever it did before: a file system is written out before it
/// is frozen.
const SILENT: Duration = Duration::from_millis(200);

/// The samples taken while something was late, from the first to the last.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Evidence {
    /// From the first look to the last.
    pub(crate) watched: Duration,
    /// Looks at the thread that is late.
    pub(crate) samples: u32,
    /// Those of them in which it waited for a disk.
    pub(crate) disk_waits: u32,
    /// The time that it had a processor meanwhile.
    pub(crate) ran: Duration,
    /// The time that it could run and had none.
    pub(crate) starved: Duration,
    /// The most operations that the device had to answer at one look, since it last did one.
    pub(crate) in_flight_max: Option<u64>,
    /// For how long the device has done nothing.
    pub(crate) silent: Duration,
    /// Operations that the device did meanwhile.
    pub(crate) completed: Option<u64>,
    /// For how long of it the device had something to answer.
    pub(crate) device_busy: Option<Duration>,
    /// Other threads of this process that waited for a disk at the last look.
    pub(crate) others_waiting: usize,
    /// The pressure on all disks of the machine.
    pub(crate) io_pressure: Option<Pressure>,
    /// The pressure on its processors.
    pub(crate) cpu_pressure: Option<Pressure>,
}

impl Evidence {
    /// Takes one more look at the thread and the device in, so long after the last one; `first` is what the first
    /// one saw.
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

    /// The device has done nothing for long, or for most of the time.
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

/// Why a write or a sync is late.
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

/// Why a cell comes late to its work.
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

    /// Evidence of 100 ms, in ten looks; of the device what is in flight, what was done, and since when nothing was.
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
