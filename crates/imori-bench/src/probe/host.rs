//! Counters of the whole machine: pressure, stolen time, runnable threads, retransmissions.

use std::fs;

/// The machine's counters at one moment; those that the kernel lacks are absent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Host {
    /// Microseconds in which some task waited for a CPU.
    pub(crate) psi_cpu: Option<u64>,
    /// The same for block I/O.
    pub(crate) psi_io: Option<u64>,
    /// The same for memory.
    pub(crate) psi_memory: Option<u64>,
    /// Clock ticks of all CPUs.
    pub(crate) ticks: u64,
    /// Clock ticks stolen by the hypervisor.
    pub(crate) steal_ticks: u64,
    /// Number of runnable threads.
    pub(crate) running: Option<u32>,
    /// Retransmitted TCP segments.
    pub(crate) retransmitted: Option<u64>,
}

impl Host {
    /// Reads all counters.
    pub(crate) fn read() -> Host {
        let pressure = |name| parse_pressure(&fs::read_to_string(format!("/proc/pressure/{name}")).ok()?);
        let mut host =
            fs::read_to_string("/proc/stat").ok().map(|stat| parse_stat(&stat)).unwrap_or_default();
        host.psi_cpu = pressure("cpu");
        host.psi_io = pressure("io");
        host.psi_memory = pressure("memory");
        host.retransmitted =
            fs::read_to_string("/proc/self/net/snmp").ok().and_then(|snmp| parse_retransmitted(&snmp));
        host
    }
}

/// The `total` of the `some` line.
fn parse_pressure(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split(' ').find_map(|field| field.strip_prefix("total="))?.trim().parse().ok()
}

/// Fields of the `cpu` line: user, nice, system, idle, iowait, irq, softirq, steal; guest time is
/// included in user.
fn parse_stat(text: &str) -> Host {
    let mut host = Host::default();
    for line in text.lines() {
        if let Some(ticks) = line.strip_prefix("cpu ") {
            let ticks: Vec<u64> =
                ticks.split_ascii_whitespace().take(8).filter_map(|tick| tick.parse().ok()).collect();
            host.ticks = ticks.iter().fold(0, |sum, tick| sum.saturating_add(*tick));
            host.steal_ticks = ticks.get(7).copied().unwrap_or(0);
        } else if let Some(running) = line.strip_prefix("procs_running ") {
            host.running = running.trim().parse().ok();
        }
    }
    host
}

/// The kernel writes names on one line and values on the next, both prefixed with the protocol.
fn parse_retransmitted(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let at = lines.next()?.split(' ').position(|name| name == "RetransSegs")?;
    lines.next()?.split(' ').nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_is_the_total_of_some() {
        for (text, expected) in [
            ("some avg10=7.24 avg60=8.80 avg300=5.09 total=10455\nfull avg10=0.00 total=3\n", Some(10455)),
            ("full avg10=0.00 total=3\n", None),
            ("some avg10=0.00\n", None),
            ("", None),
        ] {
            assert_eq!(parse_pressure(text), expected, "{text}");
        }
    }

    #[test]
    fn the_machines_ticks_are_added_and_steal_is_told() {
        let host = parse_stat("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 0 0\nprocs_running 3\n");
        assert_eq!((host.ticks, host.steal_ticks, host.running), (36, 8, Some(3)));
        assert_eq!(parse_stat("cpu x"), Host::default());
    }

    #[test]
    fn retransmissions_are_found_by_name() {
        let text = "Ip: Forwarding\nIp: 1\nTcp: RtoMin InSegs RetransSegs\nTcp: 200 5 17\n";
        for (text, expected) in [(text, Some(17)), ("Tcp: RetransSegs\n", None), ("", None)] {
            assert_eq!(parse_retransmitted(text), expected, "{text}");
        }
    }
}
