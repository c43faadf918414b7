//! Judges the cause of a stall by the evidence around it.
//!
//! The canaries are threads of the client, so all of them are late when the client is stopped. The
//! kernel's run-queue time tells that apart from a lack of CPU.

use crate::record::series::Verdict;
use crate::watch::evidence::{Evidence, THROUGH, Waited};
use crate::watch::findings::{BrokerFindings, Findings, Setting};

/// Share of a CPU from which a thread counts as always busy.
const BUSY: f64 = 0.9;

/// Share of all allowed CPUs from which a process itself causes the lack of CPU.
const ALL_CPUS: f64 = 0.8;

/// CPU time in excess of the usual, in CPUs, from which the broker counts as computing, if the
/// ratio to its usual time is also exceeded.
const COMPUTING: f64 = 0.7;
const COMPUTING_TIMES: f64 = 2.0;

/// Share of an interval from which pressure or waiting is high.
const HIGH: f64 = 0.5;

/// Share of an interval with disk pressure from which a broker that waits for a disk is delayed by it.
const IO_HIGH: f64 = 0.3;

/// Share of an interval with excess waits for disks that is sufficient evidence alone.
const IO_ALL: f64 = 0.8;

/// Multiple of the usual retransmissions that is evidence.
const RETRANSMISSIONS_TIMES: f64 = 5.0;

/// Multiple of the client's beat lateness that a disk or network canary must exceed to be evidence.
const BEATS_TIMES: f64 = 1.5;

/// A verdict and its reason, if a rule applies.
type Said = Option<(Verdict, &'static str)>;

/// Judges an interval; returns the cause, and the reason in words.
pub(crate) fn verdict(evidence: &Evidence, setting: &Setting, begin: u64, end: u64) -> (Verdict, String) {
    let findings = Findings::of(evidence, setting, begin, end);
    let (verdict, why) = Rules(&findings, setting).judge();
    (verdict, format!("{why}{}", findings.in_words(evidence)))
}

/// The rules, applied to findings and setting.
struct Rules<'a>(&'a Findings, &'a Setting);

impl Rules<'_> {
    /// The verdict of the first rule that applies.
    fn judge(&self) -> (Verdict, &'static str) {
        let said = self
            .judge_stopped()
            .or_else(|| self.judge_beats())
            .or_else(|| self.judge_devices())
            .or_else(|| self.judge_load())
            .or_else(|| self.judge_unseen());
        said.unwrap_or((Verdict::Broker, "everything around the broker was well"))
    }

    /// Broker or client were not running at all.
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

    /// Beats were late, so there was no CPU available.
    fn judge_beats(&self) -> Said {
        let is_client_late = self.share(&self.0.client) >= THROUGH;
        // If only some of the broker's CPUs are busy, its threads move to the others.
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

    /// The broker computed, or a disk or the network did not respond.
    fn judge_devices(&self) -> Said {
        let (disk, network) = (self.share(&self.0.disk), self.share(&self.0.network));
        // These canaries are also late for lack of CPU, because they run where the client's beat runs.
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
        // A shorter wait can fall between two writes of the canary.
        let is_io = self.0.io_beyond >= IO_ALL && self.is_broker_writing();
        is_io.then_some((Verdict::Disk, "somebody waited for a disk as long as this, and the broker writes"))
    }

    /// Threads waited for CPUs more than usual; weak evidence on a machine that is busy anyway.
    fn judge_load(&self) -> Said {
        // An operation passes through both processes, so their waits add up.
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

    /// Evidence is missing or contradictory.
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

    /// Share of the interval in which a canary was late.
    fn share(&self, canary: &Waited) -> f64 {
        canary.nanos as f64 / self.0.nanos
    }

    fn is_broker_on_all_cpus(&self) -> bool {
        let all = f64::from(self.1.broker_cpus.max(1));
        self.0.broker.as_ref().is_some_and(|broker| broker.cpus >= ALL_CPUS * all)
    }

    /// Whether the broker may depend on disks; true if it cannot be observed.
    fn is_broker_writing(&self) -> bool {
        self.0.broker.as_ref().is_none_or(|broker| broker.is_writing || broker.disk_waits > 0)
    }
}

/// The share of a canary, if it clearly exceeds the share of the client's beat; otherwise 0.
fn beyond(share: f64, beats: f64) -> f64 {
    if share >= BEATS_TIMES * beats { share } else { 0.0 }
}

#[cfg(test)]
mod tests;
