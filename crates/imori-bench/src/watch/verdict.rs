//! Whose fault a stall is, by what was seen beside it.
//!
//! The canaries are threads of the client, so that all of them are late when it is stopped. What
//! tells that from a lack of CPU is the kernel's count of how long they could run and did not.

use crate::record::series::Verdict;
use crate::watch::evidence::{Evidence, THROUGH, Waited};
use crate::watch::findings::{BrokerFindings, Findings, Setting};

/// Share of a CPU from which a thread is said to be busy all the time.
const BUSY: f64 = 0.9;

/// Share of all CPUs from which a lack of CPU is one's own doing.
const ALL_CPUS: f64 = 0.8;

/// CPUs' worth of time beyond the usual from which the broker is said to compute, if that is so many
/// times its usual.
const COMPUTING: f64 = 0.7;
const COMPUTING_TIMES: f64 = 2.0;

/// Share of a stretch from which a pressure or waiting is high.
const HIGH: f64 = 0.5;

/// Share of a stretch with pressure on disks from which a broker that waits for one is delayed by it.
const IO_HIGH: f64 = 0.3;

/// Share of a stretch in which somebody waited for a disk beyond the usual, from which that alone is evidence.
const IO_ALL: f64 = 0.8;

/// How many times as many retransmissions as usual are evidence.
const RETRANSMISSIONS_TIMES: f64 = 5.0;

/// How many times as long as the client's beat a canary of disk or network must have waited to be evidence.
const BEATS_TIMES: f64 = 1.5;

/// A verdict and what it rests on, if a rule fits.
type Said = Option<(Verdict, &'static str)>;

/// Judges a stretch: whose fault it is, and why in words.
pub(crate) fn verdict(evidence: &Evidence, setting: &Setting, begin: u64, end: u64) -> (Verdict, String) {
    let findings = Findings::of(evidence, setting, begin, end);
    let (verdict, why) = Rules(&findings, setting).judge();
    (verdict, format!("{why}{}", findings.in_words(evidence)))
}

/// The rules, for what was found in a setting.
struct Rules<'a>(&'a Findings, &'a Setting);

impl Rules<'_> {
    /// The first rule that fits.
    fn judge(&self) -> (Verdict, &'static str) {
        let said = self
            .judge_stopped()
            .or_else(|| self.judge_beats())
            .or_else(|| self.judge_devices())
            .or_else(|| self.judge_load())
            .or_else(|| self.judge_unseen());
        said.unwrap_or((Verdict::Broker, "everything around the broker was well"))
    }

    /// Somebody was kept from running altogether.
    fn judge_stopped(&self) -> Said {
        if self.0.steal >= HIGH {
            return Some((Verdict::HostCpu, "the hypervisor gave the CPUs to others"));
        }
        if self.share(&self.0.client) >= THROUGH && self.0.client.without_cpu.is_some_and(|share| share < 0.5)
        {
            let why = "this program was not run although it waited for no CPU, as when it is stopped";
            return Some((Verdict::Client, why));
        }
        let is_stopped = self.0.broker.as_ref().is_some_and(|broker| broker.is_stopped);
        is_stopped.then_some((Verdict::Broker, "a process of the broker was stopped"))
    }

    /// Beats were late, so that there was no CPU to be had.
    fn judge_beats(&self) -> Said {
        let is_client_late = self.share(&self.0.client) >= THROUGH;
        // With some of the broker's CPUs free its threads move there.
        let (waiting, all) = self.0.cpus.waiting;
        let is_cpu_late = waiting > 0 && waiting == all;
        let is_broker_held = self.0.broker.as_ref().is_some_and(|broker| broker.is_held_back);
        let is_delayed = is_client_late || waiting > 0 || self.0.client_without_cpu >= HIGH;
        if self.0.is_client_held_back && !is_broker_held && is_delayed {
            return Some((Verdict::Client, "the control group of this program ran out of CPU time"));
        }
        if is_client_late {
            if self.0.client_cpus >= ALL_CPUS * f64::from(self.1.own_cpus.max(1)) {
                return Some((Verdict::Client, "this program itself used all of its CPUs"));
            }
            if !is_cpu_late && !self.1.is_shared {
                return Some((Verdict::Client, "this program waited for a CPU, and the broker's were free"));
            }
        }
        if is_client_late || is_cpu_late {
            if self.is_broker_on_all_cpus() {
                return Some((Verdict::Broker, "the broker itself used all of its CPUs"));
            }
            return Some((Verdict::HostCpu, "threads that had to run waited for a CPU"));
        }
        is_broker_held.then_some((Verdict::HostCpu, "the control group of the broker ran out of CPU time"))
    }

    /// The broker computed, or a disk or the network did not answer.
    fn judge_devices(&self) -> Said {
        let (disk, network) = (self.share(&self.0.disk), self.share(&self.0.network));
        // These canaries are late too when they have no CPU, and may run where the client's beat may.
        let beats = self.share(&self.0.client);
        let (disk, network) = (beyond(disk, beats), beyond(network, beats));
        let is_computing = |broker: &BrokerFindings| {
            broker.cpus_beyond >= COMPUTING && broker.times_usual >= COMPUTING_TIMES
        };
        if self.0.broker.as_ref().is_some_and(is_computing) {
            return Some((Verdict::Broker, "the broker computed through it, more than it usually does"));
        }
        if disk >= THROUGH && disk >= network && self.is_broker_writing() {
            return Some((Verdict::Disk, "a small write waited for its sync"));
        }
        if self.0.psi_io >= IO_HIGH && self.0.broker.as_ref().is_some_and(|broker| broker.disk_waits > 0) {
            return Some((Verdict::Disk, "threads of the broker waited for a disk under pressure"));
        }
        let (sent_again, usual) = self.0.retransmitted;
        let is_resent = sent_again > 0 && sent_again as f64 > RETRANSMISSIONS_TIMES * usual;
        if network >= THROUGH || (network > 0.0 && is_resent) {
            return Some((Verdict::Network, "an echo from the broker's host did not come"));
        }
        if is_resent && !self.1.is_here {
            return Some((Verdict::Network, "segments had to be sent again"));
        }
        // What is shorter than the time between two of the canary's writes can pass between them.
        let is_io = self.0.io_beyond >= IO_ALL && self.is_broker_writing();
        is_io.then_some((Verdict::Disk, "somebody waited for a disk as long as this, and the broker writes"))
    }

    /// Threads had to share their CPUs more than usual; weak evidence on a machine that is busy anyway.
    fn judge_load(&self) -> Said {
        // An operation passes through both, so that both together can delay it.
        let of_broker = self.0.broker.as_ref().map_or(0.0, |broker| broker.without_cpu);
        if of_broker + self.0.client_without_cpu >= HIGH && !self.is_broker_on_all_cpus() {
            if !self.1.is_shared && of_broker < self.0.client_without_cpu {
                return Some((Verdict::Client, "threads of this program waited for a CPU"));
            }
            return Some((Verdict::HostCpu, "threads of the broker or of this program waited for a CPU"));
        }
        let is_busy = self.1.load_threads > 0 && self.0.client_cpus >= BUSY * f64::from(self.1.load_threads);
        is_busy.then_some((Verdict::Client, "the load threads of this program were busy all the time"))
    }

    /// The evidence is missing or contradicts itself.
    fn judge_unseen(&self) -> Said {
        let why = if self.0.psi_memory >= HIGH {
            "the machine was short of memory"
        } else if !self.1.is_here {
            "client and network were well, and the broker's machine is not seen from here"
        } else if self.0.client.worst_us.is_none() || self.0.cpus.worst_us.is_none() {
            "no canary looked at the CPUs"
        } else if self.0.disk.worst_us.is_none() && self.is_broker_writing() {
            "the broker writes, and no canary looked at its disk"
        } else {
            return None;
        };
        Some((Verdict::Unknown, why))
    }

    /// Share of the stretch in which a canary waited for too long.
    fn share(&self, canary: &Waited) -> f64 {
        canary.nanos as f64 / self.0.nanos
    }

    fn is_broker_on_all_cpus(&self) -> bool {
        let all = f64::from(self.1.broker_cpus.max(1));
        self.0.broker.as_ref().is_some_and(|broker| broker.cpus >= ALL_CPUS * all)
    }

    /// Whether the broker has anything to do with disks; one of which nothing is known may.
    fn is_broker_writing(&self) -> bool {
        self.0.broker.as_ref().is_none_or(|broker| broker.is_writing || broker.disk_waits > 0)
    }
}

/// The wait of a canary, if it is well longer than that of the client's beat.
fn beyond(share: f64, beats: f64) -> f64 {
    if share >= BEATS_TIMES * beats { share } else { 0.0 }
}

#[cfg(test)]
mod tests;
