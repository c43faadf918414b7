use super::*;
use crate::probe::canary::{Canary, CanaryKind, Late, Record};
use crate::watch::sample::{BrokerSample, Sample};

const MS: u64 = 1_000_000;

/// The stall of every row lasts 300 ms.
const BEGIN: u64 = 1_000 * MS;
const END: u64 = 1_300 * MS;

const HERE: Setting =
    Setting { load_threads: 1, own_cpus: 2, broker_cpus: 2, is_here: true, is_shared: true };

/// A canary that waited this long during the stall, part of it for a CPU.
fn canary(kind: CanaryKind, waited_ms: u64, without_cpu_ms: u64) -> (CanaryKind, Record) {
    let canary = Canary::new(kind);
    canary.waited(Late::new(0, MS), true);
    let wait = Late { without_cpu: Some(without_cpu_ms * MS), ..Late::new(BEGIN, BEGIN + waited_ms * MS) };
    canary.waited(wait, waited_ms > 0);
    canary.waited(Late::new(5_000 * MS, 5_001 * MS), false);
    let record = canary.record().clone();
    (kind, record)
}

/// Canaries with these waits: client, both CPUs of the broker, disk, network.
fn canaries(waited_ms: [u64; 5], is_for_cpu: bool) -> Vec<(CanaryKind, Record)> {
    let kinds =
        [CanaryKind::Client, CanaryKind::Cpu(0), CanaryKind::Cpu(1), CanaryKind::Disk, CanaryKind::Network];
    let for_cpu = |waited| if is_for_cpu { waited } else { 0 };
    kinds.into_iter().zip(waited_ms).map(|(kind, waited)| canary(kind, waited, for_cpu(waited))).collect()
}

/// Samples every 100 ms; `change` is applied to each one within the stall.
fn samples(change: impl Fn(&mut Sample)) -> Vec<Sample> {
    let mut sample = Sample { broker: Some(BrokerSample::default()), ..Sample::default() };
    let mut samples = Vec::new();
    for number in 0..50u64 {
        sample.at = number * 100 * MS;
        sample.host.ticks += 20;
        sample.host.psi_cpu = Some(0);
        sample.host.psi_io = Some(sample.host.psi_io.unwrap_or(0));
        sample.host.retransmitted = Some(sample.host.retransmitted.unwrap_or(0));
        let quiet = sample;
        if sample.at > BEGIN && sample.at <= END {
            change(&mut sample);
        }
        samples.push(sample);
        if let (Some(broker), Some(quiet)) = (&mut sample.broker, quiet.broker) {
            broker.is_stopped = quiet.is_stopped;
            broker.disk_waits = quiet.disk_waits;
        }
    }
    samples
}

fn broker(sample: &mut Sample) -> &mut BrokerSample {
    sample.broker.get_or_insert_default()
}

fn writes(sample: &mut Sample) {
    broker(sample).write_bytes += 4096;
}

fn nothing(_: &mut Sample) {}

struct Row {
    what: &'static str,
    waited_ms: [u64; 5],
    is_for_cpu: bool,
    change: fn(&mut Sample),
    expected: Verdict,
}

#[test]
fn the_first_rule_that_fits_decides() {
    let rows = [
        Row {
            what: "nothing is late",
            waited_ms: [0; 5],
            is_for_cpu: false,
            change: nothing,
            expected: Verdict::Broker,
        },
        Row {
            what: "all threads of the client stop",
            waited_ms: [295, 295, 295, 300, 300],
            is_for_cpu: false,
            change: nothing,
            expected: Verdict::Client,
        },
        Row {
            what: "all threads wait for a CPU",
            waited_ms: [295, 295, 295, 300, 300],
            is_for_cpu: true,
            change: nothing,
            expected: Verdict::HostCpu,
        },
        Row {
            what: "one CPU of the broker is taken, and its threads run on the other",
            waited_ms: [0, 290, 0, 0, 0],
            is_for_cpu: true,
            change: nothing,
            expected: Verdict::Broker,
        },
        Row {
            what: "one CPU of the broker is taken, and a thread of it waits there",
            waited_ms: [0, 290, 0, 0, 0],
            is_for_cpu: true,
            change: |sample| broker(sample).without_cpu_nanos += 90 * MS,
            expected: Verdict::HostCpu,
        },
        Row {
            what: "the broker itself takes all CPUs",
            waited_ms: [200, 200, 200, 0, 0],
            is_for_cpu: true,
            change: |sample| broker(sample).cpu_ticks += 19,
            expected: Verdict::Broker,
        },
        Row {
            what: "the client's group is held back",
            waited_ms: [295, 295, 295, 300, 300],
            is_for_cpu: true,
            change: |sample| sample.client.held_back += 1,
            expected: Verdict::Client,
        },
        Row {
            what: "the client's group is held back, and its beat got through",
            waited_ms: [40, 290, 0, 0, 0],
            is_for_cpu: true,
            change: |sample| sample.client.held_back += 1,
            expected: Verdict::Client,
        },
        Row {
            what: "the group of both is held back",
            waited_ms: [295, 295, 295, 300, 300],
            is_for_cpu: true,
            change: |sample| {
                sample.client.held_back += 1;
                broker(sample).held_back += 1;
            },
            expected: Verdict::HostCpu,
        },
        Row {
            what: "only the broker's group is held back",
            waited_ms: [0; 5],
            is_for_cpu: false,
            change: |sample| broker(sample).held_back += 1,
            expected: Verdict::HostCpu,
        },
        Row {
            what: "the broker's threads wait for a CPU",
            waited_ms: [0; 5],
            is_for_cpu: false,
            change: |sample| broker(sample).without_cpu_nanos += 90 * MS,
            expected: Verdict::HostCpu,
        },
        Row {
            what: "the client's load thread waits for a CPU",
            waited_ms: [0; 5],
            is_for_cpu: false,
            change: |sample| sample.client.without_cpu_nanos += 90 * MS,
            expected: Verdict::HostCpu,
        },
        Row {
            what: "the hypervisor takes the CPUs",
            waited_ms: [295, 295, 295, 0, 0],
            is_for_cpu: false,
            change: |sample| sample.host.steal_ticks += 10,
            expected: Verdict::HostCpu,
        },
        Row {
            what: "the broker is stopped and a beat is late besides",
            waited_ms: [130, 0, 0, 0, 0],
            is_for_cpu: true,
            change: |sample| broker(sample).is_stopped = true,
            expected: Verdict::Broker,
        },
        Row {
            what: "a sync is late and the broker writes",
            waited_ms: [0, 0, 0, 280, 0],
            is_for_cpu: false,
            change: writes,
            expected: Verdict::Disk,
        },
        Row {
            what: "a sync is late and the broker computes",
            waited_ms: [0, 0, 0, 280, 0],
            is_for_cpu: false,
            change: |sample| {
                writes(sample);
                broker(sample).cpu_ticks += 10;
            },
            expected: Verdict::Broker,
        },
        Row {
            what: "this program takes all CPUs",
            waited_ms: [200, 200, 200, 0, 0],
            is_for_cpu: true,
            change: |sample| sample.client.cpu_nanos += 190 * MS,
            expected: Verdict::Client,
        },
        Row {
            what: "a sync is late and the broker writes nothing",
            waited_ms: [0, 0, 0, 280, 0],
            is_for_cpu: false,
            change: nothing,
            expected: Verdict::Broker,
        },
        Row {
            what: "a sync is late for a moment only",
            waited_ms: [0, 0, 0, 60, 0],
            is_for_cpu: false,
            change: writes,
            expected: Verdict::Broker,
        },
        Row {
            what: "the broker waits for a disk under pressure",
            waited_ms: [0; 5],
            is_for_cpu: false,
            change: |sample| {
                broker(sample).disk_waits = 2;
                sample.host.psi_io = sample.host.psi_io.map(|micros| micros + 90_000);
            },
            expected: Verdict::Disk,
        },
        Row {
            what: "somebody waits for a disk all the time, and the broker writes",
            waited_ms: [0; 5],
            is_for_cpu: false,
            change: |sample| {
                writes(sample);
                sample.host.psi_io = sample.host.psi_io.map(|micros| micros + 95_000);
            },
            expected: Verdict::Disk,
        },
        Row {
            what: "an echo does not come",
            waited_ms: [0, 0, 0, 0, 250],
            is_for_cpu: false,
            change: nothing,
            expected: Verdict::Network,
        },
        Row {
            what: "an echo does not come, for it waits for a CPU as beats do",
            waited_ms: [110, 118, 0, 0, 130],
            is_for_cpu: true,
            change: |sample| sample.client.without_cpu_nanos += 90 * MS,
            expected: Verdict::HostCpu,
        },
        Row {
            what: "an echo is late for a moment and segments are sent again",
            waited_ms: [0, 0, 0, 0, 60],
            is_for_cpu: false,
            change: |sample| sample.host.retransmitted = sample.host.retransmitted.map(|sent| sent + 1),
            expected: Verdict::Network,
        },
        Row {
            what: "the client is busy all the time",
            waited_ms: [0; 5],
            is_for_cpu: false,
            change: |sample| sample.client.cpu_nanos += 99 * MS,
            expected: Verdict::Client,
        },
    ];
    for row in rows {
        let evidence =
            Evidence { canaries: canaries(row.waited_ms, row.is_for_cpu), samples: samples(row.change) };
        let (verdict, words) = verdict(&evidence, &HERE, BEGIN, END);
        assert_eq!(verdict, row.expected, "{}: {words}", row.what);
    }
}

#[test]
fn a_client_with_cpus_of_its_own_can_lack_them_alone() {
    let setting = Setting { is_shared: false, ..HERE };
    for (waited_ms, expected) in
        [([295, 0, 0, 0, 0], Verdict::Client), ([295, 295, 295, 0, 0], Verdict::HostCpu)]
    {
        let evidence = Evidence { canaries: canaries(waited_ms, true), samples: samples(nothing) };
        assert_eq!(verdict(&evidence, &setting, BEGIN, END).0, expected, "{waited_ms:?}");
    }
}

#[test]
fn what_is_not_seen_is_not_judged() {
    let far = Setting { is_here: false, broker_cpus: 0, is_shared: false, load_threads: 1, own_cpus: 2 };
    let without = |left_out: fn(CanaryKind) -> bool| {
        let mut canaries = canaries([0; 5], false);
        canaries.retain(|(kind, _)| !left_out(*kind));
        canaries
    };
    let is_near = |kind| matches!(kind, CanaryKind::Cpu(_) | CanaryKind::Disk);
    let again: fn(&mut Sample) = |sample| {
        sample.host.retransmitted = sample.host.retransmitted.map(|sent| sent + 1);
    };
    for (what, setting, canaries, change, expected) in [
        ("far away", far, without(is_near), nothing as fn(&mut Sample), Verdict::Unknown),
        ("far away and segments are sent again", far, without(is_near), again, Verdict::Network),
        (
            "no disk canary, and the broker writes",
            HERE,
            without(|kind| kind == CanaryKind::Disk),
            writes,
            Verdict::Unknown,
        ),
        (
            "no disk canary, and it does not",
            HERE,
            without(|kind| kind == CanaryKind::Disk),
            nothing,
            Verdict::Broker,
        ),
        ("no beats", HERE, without(|kind| kind == CanaryKind::Client), nothing, Verdict::Unknown),
    ] {
        let evidence = Evidence { canaries, samples: samples(change) };
        let (verdict, words) = verdict(&evidence, &setting, BEGIN, END);
        assert_eq!(verdict, expected, "{what}: {words}");
    }
}

#[test]
fn evidence_is_told_in_words() {
    let mut canaries = canaries([0, 0, 0, 280, 0], false);
    canaries.pop();
    let lost = Canary::new(CanaryKind::Network);
    lost.fails("the echo broke off".to_owned());
    canaries.push((CanaryKind::Network, lost.record().clone()));
    let evidence = Evidence { canaries, samples: samples(writes) };
    let (_, words) = verdict(&evidence, &HERE, BEGIN, END);
    assert_eq!(
        words,
        "a small write waited for its sync; canaries late at most: client 0 ms, CPU 0 ms, disk 280 ms, \
         echo not seen; the broker used 0.00 CPUs; the echo broke off"
    );
}
