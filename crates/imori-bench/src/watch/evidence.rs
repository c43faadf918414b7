//! Evidence from canaries and samples about an interval of a run.

use crate::probe::canary::{CanaryKind, Record};
use crate::record::latency::Recorder;
use crate::record::series::{BrokerSecond, HostSecond};
use crate::watch::sample::Sample;

/// Nanoseconds per clock tick of the kernel's counters.
pub(crate) const TICK_NANOS: f64 = 1e7;

/// All observations of a run.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) canaries: Vec<(CanaryKind, Record)>,
    pub(crate) samples: Vec<Sample>,
}

/// Waits of the canaries of one kind within an interval; of several canaries, the one that waited longest.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Waited {
    /// Nanoseconds of the interval during which it was late.
    pub(crate) nanos: u64,
    /// The longest wait in microseconds, late or not; `None` if no canary was active.
    pub(crate) worst_us: Option<f64>,
    /// Share of that time in which it was runnable without a CPU, 0 to 1, if the kernel reports it.
    pub(crate) without_cpu: Option<f64>,
    /// Number of canaries that waited throughout the interval, and number of canaries.
    pub(crate) waiting: (usize, usize),
}

/// Share of an interval from which a canary counts as waiting throughout.
pub(crate) const THROUGH: f64 = 0.4;

/// The most nanoseconds between the ends of a wait and of an interval that are taken to end together.
const JOINT_NANOS: u64 = 30_000_000;

impl Evidence {
    /// Waits of the canaries of these kinds between `begin` and `end`.
    pub(crate) fn waited(&self, is_kind: impl Fn(CanaryKind) -> bool, begin: u64, end: u64) -> Waited {
        let mut all = Waited::default();
        for (_, record) in self.canaries.iter().filter(|(kind, _)| is_kind(*kind)) {
            let one = waited(record, begin, end);
            all.waiting.0 += usize::from(one.nanos as f64 >= THROUGH * (end - begin) as f64 && one.nanos > 0);
            all.waiting.1 += 1;
            all.worst_us = all.worst_us.into_iter().chain(one.worst_us).reduce(f64::max);
            if one.nanos > all.nanos {
                all.nanos = one.nanos;
                all.without_cpu = one.without_cpu;
            }
        }
        all
    }

    /// Times that the disk canary's syncs took between `begin` and `end`.
    pub(crate) fn disk_syncs(&self, begin: u64, end: u64) -> Recorder {
        let mut recorder = Recorder::new();
        for (_, record) in self.canaries.iter().filter(|(kind, _)| *kind == CanaryKind::Disk) {
            record.waits_us(begin, end).for_each(|micros| recorder.record(u64::from(micros) * 1_000));
        }
        recorder
    }

    /// Canaries that could not observe anything, with the reason.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (CanaryKind, &str)> {
        self.canaries.iter().filter_map(|(kind, record)| Some((*kind, record.failure.as_deref()?)))
    }

    /// The samples that most closely enclose the interval.
    pub(crate) fn around(&self, begin: u64, end: u64) -> Option<(&Sample, &Sample)> {
        around(&self.samples, begin, end)
    }

    /// The samples taken within the interval, and the first one after it.
    pub(crate) fn within(&self, begin: u64, end: u64) -> &[Sample] {
        let from = self.samples.partition_point(|sample| sample.at < begin);
        let to = (self.samples.partition_point(|sample| sample.at <= end) + 1).min(self.samples.len());
        self.samples.get(from..to).unwrap_or_default()
    }
}

fn waited(record: &Record, begin: u64, end: u64) -> Waited {
    let from = record.late.partition_point(|late| late.end <= begin);
    let (mut nanos, mut whole, mut without_cpu) = (0, 0, Some(0));
    for late in record.late.iter().skip(from).take_while(|late| late.begin < end) {
        // A wait that ends with the interval probably has the same cause, and no one probed just before it.
        let is_joint = late.end.abs_diff(end) <= JOINT_NANOS;
        let since = if is_joint { late.blind_since } else { late.begin };
        nanos += late.end.min(end) - since.max(begin);
        whole += late.end - late.begin;
        without_cpu = without_cpu.zip(late.without_cpu).map(|(sum, more)| sum + more);
    }
    let without_cpu = without_cpu.filter(|_| whole > 0).map(|sum| (sum as f64 / whole as f64).min(1.0));
    Waited { nanos, worst_us: record.worst_us(begin, end), without_cpu, waiting: (0, 0) }
}

/// The last sample before `begin` and the first one after `end`, or the closest available.
pub(crate) fn around(samples: &[Sample], begin: u64, end: u64) -> Option<(&Sample, &Sample)> {
    let first = samples.partition_point(|sample| sample.at <= begin).saturating_sub(1);
    let last = samples.partition_point(|sample| sample.at < end).min(samples.len().checked_sub(1)?);
    Some((samples.get(first)?, samples.get(last)?)).filter(|(first, last)| first.at < last.at)
}

/// The machine's state between two samples; `worst` returns the longest wait of canaries.
pub(crate) fn host_second(
    between: Option<(&Sample, &Sample)>,
    worst: impl Fn(fn(CanaryKind) -> bool) -> Option<f64>,
) -> HostSecond {
    let mut second = HostSecond {
        client_canary_max_us: worst(|kind| kind == CanaryKind::Client),
        cpu_canary_max_us: worst(|kind| matches!(kind, CanaryKind::Cpu(_))),
        disk_canary_max_us: worst(|kind| kind == CanaryKind::Disk),
        network_canary_max_us: worst(|kind| kind == CanaryKind::Network),
        ..HostSecond::default()
    };
    let Some((first, last)) = between else {
        return second;
    };
    let micros = (last.at - first.at) as f64 / 1e3;
    let share = |before: Option<u64>, after: Option<u64>| {
        let grown = after?.saturating_sub(before?);
        Some((grown as f64 / micros).min(1.0))
    };
    second.psi_cpu = share(first.host.psi_cpu, last.host.psi_cpu);
    second.psi_io = share(first.host.psi_io, last.host.psi_io);
    second.psi_memory = share(first.host.psi_memory, last.host.psi_memory);
    second.running = last.host.running;
    let ticks = last.host.ticks.saturating_sub(first.host.ticks);
    let stolen = last.host.steal_ticks.saturating_sub(first.host.steal_ticks);
    second.steal = (ticks > 0).then(|| stolen as f64 / ticks as f64);
    second
}

/// Resources used by the broker's processes between two samples.
pub(crate) fn broker_second((first, last): (&Sample, &Sample)) -> Option<BrokerSecond> {
    let (before, after) = (first.broker?, last.broker?);
    Some(BrokerSecond {
        cpu_s: after.cpu_ticks.saturating_sub(before.cpu_ticks) as f64 * TICK_NANOS / 1e9,
        rss_bytes: after.rss_bytes,
        context_switches: after.context_switches.saturating_sub(before.context_switches),
        read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
        write_bytes: after.write_bytes.saturating_sub(before.write_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::canary::{Canary, Late};
    use crate::probe::host::Host;

    const MS: u64 = 1_000_000;

    fn sample(at_ms: u64) -> Sample {
        Sample {
            at: at_ms * MS,
            host: Host {
                psi_cpu: Some(at_ms * 500),
                ticks: at_ms,
                steal_ticks: at_ms / 4,
                ..Host::default()
            },
            ..Sample::default()
        }
    }

    #[test]
    fn the_samples_around_a_stretch_are_found() {
        let samples: Vec<Sample> = [0, 100, 200, 300].map(sample).to_vec();
        for (begin, end, expected) in [
            (110, 190, Some((100, 200))),
            (100, 200, Some((100, 200))),
            (90, 210, Some((0, 300))),
            (250, 900, Some((200, 300))),
            (400, 900, None),
        ] {
            let found = around(&samples, begin * MS, end * MS).map(|(a, b)| (a.at / MS, b.at / MS));
            assert_eq!(found, expected, "{begin} to {end}");
        }
        assert_eq!(around(&[], 0, 1), None);
        let second = host_second(around(&samples, 0, 200 * MS), |_| None);
        assert_eq!((second.psi_cpu, second.steal, second.psi_io), (Some(0.5), Some(0.25), None));
    }

    #[test]
    fn what_nobody_saw_counts_only_before_a_wait_that_ends_with_the_stretch() {
        for (wait, expected_ms) in [((170, 199), 99), ((120, 140), 20), ((195, 250), 5), ((150, 171), 71)] {
            let canary = Canary::new(CanaryKind::Disk);
            let (begin, end) = (wait.0 * MS, wait.1 * MS);
            canary.waited(Late { blind_since: 70 * MS, ..Late::new(begin, end) }, true);
            let record = canary.record().clone();
            let evidence = Evidence { canaries: vec![(CanaryKind::Disk, record)], samples: Vec::new() };
            let waited = evidence.waited(|kind| kind == CanaryKind::Disk, 100 * MS, 200 * MS);
            assert_eq!(waited.nanos / MS, expected_ms, "{wait:?}");
        }
    }

    #[test]
    fn of_several_canaries_the_one_that_waited_longest_counts() {
        let canary = |cpu, waits: &[(u64, u64, u64)]| {
            let canary = Canary::new(CanaryKind::Cpu(cpu));
            for (begin, end, without_cpu) in waits {
                let wait = Late { without_cpu: Some(without_cpu * MS), ..Late::new(begin * MS, end * MS) };
                canary.waited(wait, true);
            }
            (canary.kind, canary.record().clone())
        };
        let evidence = Evidence {
            canaries: vec![
                canary(0, &[(0, 50, 50), (90, 150, 30), (180, 400, 0)]),
                canary(1, &[(100, 120, 20)]),
            ],
            samples: Vec::new(),
        };
        let waited = evidence.waited(|kind| matches!(kind, CanaryKind::Cpu(_)), 100 * MS, 200 * MS);
        assert_eq!((waited.nanos / MS, waited.waiting), (70, (1, 2)));
        assert_eq!(waited.without_cpu, Some(30.0 / 280.0));
        let none = evidence.waited(|kind| kind == CanaryKind::Disk, 100 * MS, 200 * MS);
        assert_eq!(none, Waited::default());
    }
}
