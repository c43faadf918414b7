//! Whose fault a stall is, by what was seen beside it.
//!
//! The canaries are threads of the client, so that all of them are late when it is stopped. What
//! tells that from a lack of CPU is the kernel's count of how long they could run and did not.

use std::fmt::Write;

use crate::record::series::Verdict;
use crate::watch::canary::CanaryKind;
use crate::watch::evidence::{Evidence, THROUGH, TICK_NANOS, Waited};

/// What is known of the client and the broker for the whole run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Threads of the client that make load.
    pub(crate) load_threads: u32,
    /// CPUs that the broker may use.
    pub(crate) broker_cpus: u32,
    /// Whether the broker runs on this machine.
    pub(crate) is_here: bool,
    /// Whether client and broker share their CPUs.
    pub(crate) is_shared: bool,
}

/// Share of a CPU from which a thread is said to be busy all the time.
const BUSY: f64 = 0.9;

/// Share of the broker's CPUs from which a lack of CPU is its own doing.
const ALL_CPUS: f64 = 0.8;

/// Share of a stretch from which a pressure or waiting is high.
const HIGH: f64 = 0.5;

/// Share of a stretch with pressure on disks from which a broker that waits for one is delayed by it.
const IO_HIGH: f64 = 0.3;

/// How many times as many retransmissions as usual are evidence.
const RETRANSMISSIONS_TIMES: f64 = 5.0;

/// Nanoseconds before a stall in which a broker that has anything to do with disks has written.
const WRITES_WITHIN: u64 = 3_000_000_000;

/// Judges a stretch: whose fault it is, and why in words.
pub(crate) fn verdict(evidence: &Evidence, setting: &Setting, begin: u64, end: u64) -> (Verdict, String) {
    let facts = Facts::of(evidence, setting, begin, end);
    let (verdict, mut words) = facts.judge(setting);
    facts.describe(evidence, &mut words);
    (verdict, words)
}

/// What was seen of a stretch; shares are 0 to 1 of its length.
#[derive(Debug, Default)]
struct Facts {
    nanos: f64,
    client: Waited,
    cpus: Waited,
    disk: Waited,
    network: Waited,
    steal: f64,
    psi_io: f64,
    psi_cpu: f64,
    psi_memory: f64,
    /// CPUs' worth of time that this process used.
    client_cpus: f64,
    is_client_held_back: bool,
    broker: Option<BrokerFacts>,
    /// Segments sent again, and how many there would be in so long a time of this run.
    retransmitted: (u64, f64),
}

#[derive(Debug, Default)]
struct BrokerFacts {
    cpus: f64,
    without_cpu: f64,
    is_stopped: bool,
    is_held_back: bool,
    disk_waits: u32,
    is_writing: bool,
}

impl Facts {
    fn of(evidence: &Evidence, setting: &Setting, begin: u64, end: u64) -> Facts {
        let waited = |kind: fn(CanaryKind) -> bool| evidence.waited(kind, begin, end);
        let mut facts = Facts {
            nanos: end.saturating_sub(begin).max(1) as f64,
            client: waited(|kind| kind == CanaryKind::Client),
            cpus: waited(|kind| matches!(kind, CanaryKind::Cpu(_))),
            disk: waited(|kind| kind == CanaryKind::Disk),
            network: waited(|kind| kind == CanaryKind::Network),
            ..Facts::default()
        };
        let Some((first, last)) = evidence.around(begin, end) else {
            return facts;
        };
        let nanos = (last.at - first.at) as f64;
        let share = |before: Option<u64>, after: Option<u64>| {
            let grown = after.unwrap_or(0).saturating_sub(before.unwrap_or(0));
            grown as f64 * 1e3 / nanos
        };
        facts.psi_cpu = share(first.host.psi_cpu, last.host.psi_cpu);
        facts.psi_io = share(first.host.psi_io, last.host.psi_io);
        facts.psi_memory = share(first.host.psi_memory, last.host.psi_memory);
        let stolen = last.host.steal_ticks.saturating_sub(first.host.steal_ticks) as f64 * TICK_NANOS;
        facts.steal = stolen / facts.nanos;
        facts.client_cpus = last.client.cpu_nanos.saturating_sub(first.client.cpu_nanos) as f64 / nanos;
        facts.is_client_held_back = last.client.held_back > first.client.held_back;
        facts.retransmitted =
            retransmitted(evidence, first.host.retransmitted, last.host.retransmitted, nanos);
        if let (true, Some(before), Some(after)) = (setting.is_here, first.broker, last.broker) {
            let within = evidence.within(begin, end);
            let wrote_since = evidence
                .around(begin.saturating_sub(WRITES_WITHIN), end)
                .and_then(|(earlier, _)| earlier.broker)
                .unwrap_or(before);
            let ticks = after.cpu_ticks.saturating_sub(before.cpu_ticks) as f64;
            let waited = after.without_cpu_nanos.saturating_sub(before.without_cpu_nanos) as f64;
            facts.broker = Some(BrokerFacts {
                cpus: ticks * TICK_NANOS / nanos,
                without_cpu: waited / facts.nanos,
                is_stopped: within.iter().any(|sample| sample.broker.is_some_and(|broker| broker.is_stopped)),
                is_held_back: after.held_back > before.held_back,
                disk_waits: within
                    .iter()
                    .filter_map(|sample| Some(sample.broker?.disk_waits))
                    .max()
                    .unwrap_or(0),
                is_writing: after.write_bytes > wrote_since.write_bytes,
            });
        }
        facts
    }

    /// The first rule that fits.
    fn judge(&self, setting: &Setting) -> (Verdict, String) {
        let waited = |canary: &Waited| canary.nanos as f64 / self.nanos;
        let is_client_late = waited(&self.client) >= THROUGH;
        let is_cpu_late = waited(&self.cpus) >= THROUGH;
        let is_own_load =
            |broker: &BrokerFacts| broker.cpus >= ALL_CPUS * f64::from(setting.broker_cpus.max(1));
        if self.steal >= HIGH {
            return (Verdict::HostCpu, "the hypervisor gave the CPUs to others".to_owned());
        }
        if is_client_late && self.client.without_cpu.is_some_and(|share| share < 0.5) {
            let why = "this program was not run although it waited for no CPU, as when it is stopped";
            return (Verdict::Client, why.to_owned());
        }
        if self.broker.as_ref().is_some_and(|broker| broker.is_stopped) {
            return (Verdict::Broker, "a process of the broker was stopped".to_owned());
        }
        if is_client_late {
            let is_held_with = self.broker.as_ref().is_some_and(|broker| broker.is_held_back);
            if self.is_client_held_back && !is_held_with {
                let why = "the control group of this program ran out of CPU time";
                return (Verdict::Client, why.to_owned());
            }
            if !is_cpu_late && !setting.is_shared {
                return (
                    Verdict::Client,
                    "this program waited for a CPU, and the broker's were free".to_owned(),
                );
            }
        }
        if is_client_late || is_cpu_late {
            if self.broker.as_ref().is_some_and(is_own_load) {
                return (Verdict::Broker, "the broker itself used all of its CPUs".to_owned());
            }
            return (Verdict::HostCpu, "threads that had to run waited for a CPU".to_owned());
        }
        if let Some(broker) = &self.broker {
            if broker.is_held_back {
                return (Verdict::HostCpu, "the control group of the broker ran out of CPU time".to_owned());
            }
            if broker.without_cpu >= HIGH && !is_own_load(broker) {
                return (Verdict::HostCpu, "threads of the broker waited for a CPU".to_owned());
            }
        }
        self.judge_devices(setting, waited(&self.disk), waited(&self.network))
    }

    /// The rules behind those of CPUs.
    fn judge_devices(&self, setting: &Setting, disk: f64, network: f64) -> (Verdict, String) {
        let waits = self.broker.as_ref().map_or(0, |broker| broker.disk_waits);
        let is_writing = self.broker.as_ref().is_none_or(|broker| broker.is_writing || waits > 0);
        if disk >= THROUGH && disk >= network && is_writing {
            return (Verdict::Disk, "a small write waited for its sync".to_owned());
        }
        if self.psi_io >= IO_HIGH && waits > 0 {
            let why = format!("{waits} threads of the broker waited for a disk under pressure");
            return (Verdict::Disk, why);
        }
        let (sent_again, usual) = self.retransmitted;
        let is_resent = sent_again > 0 && sent_again as f64 > RETRANSMISSIONS_TIMES * usual;
        if network >= THROUGH || (network > 0.0 && is_resent) {
            return (Verdict::Network, "an echo from the broker's host did not come".to_owned());
        }
        if is_resent && !setting.is_here {
            return (Verdict::Network, "segments had to be sent again".to_owned());
        }
        if setting.load_threads > 0 && self.client_cpus >= BUSY * f64::from(setting.load_threads) {
            return (Verdict::Client, "the load threads of this program were busy all the time".to_owned());
        }
        if self.psi_memory >= HIGH {
            return (Verdict::Unknown, "the machine was short of memory".to_owned());
        }
        if !setting.is_here {
            let why = "client and network were well, and the broker's machine is not seen from here";
            return (Verdict::Unknown, why.to_owned());
        }
        if self.client.worst_us.is_none() || self.cpus.worst_us.is_none() {
            return (Verdict::Unknown, "no canary looked at the CPUs".to_owned());
        }
        if self.disk.worst_us.is_none() && is_writing {
            return (Verdict::Unknown, "the broker writes, and no canary looked at its disk".to_owned());
        }
        (Verdict::Broker, "everything around the broker was well".to_owned())
    }

    /// Adds what was measured.
    fn describe(&self, evidence: &Evidence, words: &mut String) {
        // Writing to a string cannot fail.
        let canaries =
            [("client", &self.client), ("CPU", &self.cpus), ("disk", &self.disk), ("echo", &self.network)];
        for (at, (name, waited)) in canaries.into_iter().enumerate() {
            let _ = write!(words, "{} {name} ", if at == 0 { "; canaries late at most:" } else { "," });
            match waited.worst_us {
                Some(worst) => _ = write!(words, "{:.0} ms", worst / 1e3),
                None => words.push_str("not seen"),
            }
        }
        if let (1.., all) = self.cpus.waiting {
            let _ = write!(words, "; {} of {all} CPU canaries waited", self.cpus.waiting.0);
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
    }
}

fn retransmitted(evidence: &Evidence, before: Option<u64>, after: Option<u64>, nanos: f64) -> (u64, f64) {
    let (Some(before), Some(after)) = (before, after) else {
        return (0, 0.0);
    };
    let here = after.saturating_sub(before);
    let (Some(first), Some(last)) = (evidence.samples.first(), evidence.samples.last()) else {
        return (here, 0.0);
    };
    let all = last.host.retransmitted.unwrap_or(0).saturating_sub(first.host.retransmitted.unwrap_or(0));
    let elsewhere = all.saturating_sub(here) as f64;
    (here, elsewhere * nanos / (last.at.saturating_sub(first.at) as f64).max(1.0))
}

#[cfg(test)]
mod tests;
