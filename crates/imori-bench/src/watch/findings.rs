//! Measurements of an interval, on which the verdicts are based, and their wording.

use std::fmt::Write;

use crate::probe::canary::CanaryKind;
use crate::watch::evidence::{Evidence, TICK_NANOS, Waited};
use crate::watch::sample::Sample;

/// Facts about client and broker that hold for the whole run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The client's load threads.
    pub(crate) load_threads: u32,
    /// CPUs that the client may use.
    pub(crate) own_cpus: u32,
    /// CPUs that the broker may use.
    pub(crate) broker_cpus: u32,
    /// Whether the broker runs on this machine.
    pub(crate) is_here: bool,
    /// Whether client and broker share their CPUs.
    pub(crate) is_shared: bool,
}

/// A broker that works with disks has written at most this many nanoseconds before a stall.
const WRITES_WITHIN: u64 = 3_000_000_000;

/// Measurements of an interval; shares are fractions of its length.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) nanos: f64,
    pub(crate) client: Waited,
    pub(crate) cpus: Waited,
    pub(crate) disk: Waited,
    pub(crate) network: Waited,
    pub(crate) steal: f64,
    pub(crate) psi_cpu: f64,
    pub(crate) psi_io: f64,
    pub(crate) psi_memory: f64,
    /// Time in which some task waited for a disk, in excess of the usual, as a share of the interval.
    pub(crate) io_beyond: f64,
    /// CPU time of this process, in CPUs.
    pub(crate) client_cpus: f64,
    pub(crate) is_client_held_back: bool,
    /// Time in which a thread of this process waited for a CPU, in excess of the usual.
    pub(crate) client_without_cpu: f64,
    pub(crate) broker: Option<BrokerFindings>,
    /// TCP retransmissions, and the number expected in this time by the rest of the run.
    pub(crate) retransmitted: (u64, f64),
}

/// Measurements of the broker's processes.
#[derive(Debug, Default)]
pub(crate) struct BrokerFindings {
    /// CPU time used, in CPUs.
    pub(crate) cpus: f64,
    /// CPU time in excess of the usual, and the ratio to the usual.
    pub(crate) cpus_beyond: f64,
    pub(crate) times_usual: f64,
    /// Time in which a thread waited for a CPU, in excess of the usual.
    pub(crate) without_cpu: f64,
    pub(crate) is_stopped: bool,
    pub(crate) is_held_back: bool,
    pub(crate) disk_waits: u32,
    /// Whether they wrote to a disk in the interval or shortly before.
    pub(crate) is_writing: bool,
}

impl Findings {
    /// Measures the interval from `begin` to `end`.
    pub(crate) fn of(evidence: &Evidence, setting: &Setting, begin: u64, end: u64) -> Findings {
        let waited = |kind: fn(CanaryKind) -> bool| evidence.waited(kind, begin, end);
        let mut found = Findings {
            nanos: end.saturating_sub(begin).max(1) as f64,
            client: waited(|kind| kind == CanaryKind::Client),
            cpus: waited(|kind| matches!(kind, CanaryKind::Cpu(_))),
            disk: waited(|kind| kind == CanaryKind::Disk),
            network: waited(|kind| kind == CanaryKind::Network),
            ..Findings::default()
        };
        let Some((first, last)) = evidence.around(begin, end) else {
            return found;
        };
        let window = Window { evidence, first, last, nanos: (last.at - first.at) as f64 };
        let share = |counter: fn(&Sample) -> Option<u64>| window.grown(counter) as f64 * 1e3 / window.nanos;
        found.psi_cpu = share(|sample| sample.host.psi_cpu);
        found.psi_io = share(|sample| sample.host.psi_io);
        found.psi_memory = share(|sample| sample.host.psi_memory);
        found.io_beyond = window.beyond(|sample| sample.host.psi_io) * 1e3 / found.nanos;
        found.steal = window.grown(|sample| Some(sample.host.steal_ticks)) as f64 * TICK_NANOS / found.nanos;
        found.client_cpus = window.grown(|sample| Some(sample.client.cpu_nanos)) as f64 / window.nanos;
        found.client_without_cpu =
            window.beyond(|sample| Some(sample.client.without_cpu_nanos)) / found.nanos;
        found.is_client_held_back = window.grown(|sample| Some(sample.client.held_back)) > 0;
        let retransmitted = |sample: &Sample| sample.host.retransmitted;
        found.retransmitted = (window.grown(retransmitted), window.usual(retransmitted) * window.nanos);
        if setting.is_here && first.broker.is_some() && last.broker.is_some() {
            found.broker = Some(window.broker(begin, end, found.nanos));
        }
        found
    }

    /// All measurements in words, to follow a verdict.
    pub(crate) fn in_words(&self, evidence: &Evidence) -> String {
        let worst = |waited: &Waited| {
            waited.worst_us.map_or("not seen".to_owned(), |worst| format!("{:.0} ms", worst / 1e3))
        };
        let mut words = format!(
            "; canaries late at most: client {}, CPU {}, disk {}, echo {}",
            worst(&self.client),
            worst(&self.cpus),
            worst(&self.disk),
            worst(&self.network)
        );
        // Writing to a string cannot fail.
        if let (waiting @ 1.., all) = self.cpus.waiting {
            let _ = write!(words, "; {waiting} of {all} CPU canaries waited");
        }
        let shares = [
            ("steal", self.steal),
            ("pressure on CPUs", self.psi_cpu),
            ("pressure on disks", self.psi_io),
            ("pressure on memory", self.psi_memory),
        ];
        for (name, share) in shares.into_iter().filter(|(_, share)| *share >= 0.1) {
            let _ = write!(words, "; {name} {:.0} %", share.min(1.0) * 100.0);
        }
        let broker_waits = self.broker.as_ref().map(|broker| ("the broker", broker.without_cpu));
        let waits = [("this program", self.client_without_cpu)].into_iter().chain(broker_waits);
        for (who, share) in waits.filter(|(_, share)| *share >= 0.1) {
            let ms = share * self.nanos / 1e6;
            let _ = write!(words, "; a thread of {who} waited {ms:.0} ms longer for a CPU than usual");
        }
        if let Some(broker) = &self.broker {
            let _ = write!(words, "; the broker used {:.2} CPUs", broker.cpus);
            if broker.disk_waits > 0 {
                let _ = write!(words, ", {} of its threads waited for a disk", broker.disk_waits);
            }
        }
        if self.retransmitted.0 > 0 {
            let _ = write!(words, "; {} TCP segments sent again", self.retransmitted.0);
        }
        for (_, failure) in evidence.failures() {
            let _ = write!(words, "; {failure}");
        }
        words
    }
}

/// The samples around an interval, to be compared with the rest of the run.
struct Window<'a> {
    evidence: &'a Evidence,
    first: &'a Sample,
    last: &'a Sample,
    nanos: f64,
}

impl Window<'_> {
    /// Growth of a counter within the window.
    fn grown(&self, counter: impl Fn(&Sample) -> Option<u64>) -> u64 {
        counter(self.last).unwrap_or(0).saturating_sub(counter(self.first).unwrap_or(0))
    }

    /// Growth of a counter per nanosecond in the rest of the run.
    fn usual(&self, counter: impl Fn(&Sample) -> Option<u64>) -> f64 {
        let (Some(first), Some(last)) = (self.evidence.samples.first(), self.evidence.samples.last()) else {
            return 0.0;
        };
        let all = counter(last).unwrap_or(0).saturating_sub(counter(first).unwrap_or(0));
        let nanos = (last.at - first.at) as f64 - self.nanos;
        all.saturating_sub(self.grown(counter)) as f64 / nanos.max(1.0)
    }

    /// Growth in excess of the usual.
    fn beyond(&self, counter: impl Fn(&Sample) -> Option<u64> + Copy) -> f64 {
        (self.grown(counter) as f64 - self.usual(counter) * self.nanos).max(0.0)
    }

    fn broker(&self, begin: u64, end: u64, nanos: f64) -> BrokerFindings {
        let ticks = |sample: &Sample| Some(sample.broker?.cpu_ticks);
        let within = || self.evidence.within(begin, end).iter().filter_map(|sample| sample.broker);
        let earlier = self.evidence.around(begin.saturating_sub(WRITES_WITHIN), end);
        let written_before = earlier.and_then(|(earlier, _)| earlier.broker).map(|broker| broker.write_bytes);
        BrokerFindings {
            cpus: self.grown(ticks) as f64 * TICK_NANOS / self.nanos,
            cpus_beyond: self.beyond(ticks) * TICK_NANOS / nanos,
            times_usual: self.grown(ticks) as f64 / (self.usual(ticks) * self.nanos).max(0.1),
            without_cpu: self.beyond(|sample| Some(sample.broker?.without_cpu_nanos)) / nanos,
            is_stopped: within().any(|broker| broker.is_stopped),
            is_held_back: self.grown(|sample| Some(sample.broker?.held_back)) > 0,
            disk_waits: within().map(|broker| broker.disk_waits).max().unwrap_or(0),
            is_writing: self.last.broker.map(|broker| broker.write_bytes) > written_before,
        }
    }
}
