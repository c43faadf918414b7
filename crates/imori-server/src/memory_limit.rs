//! How much memory the process may use.

use std::fs;

/// What is assumed where the system tells nothing.
const UNKNOWN_BYTES: usize = 1 << 30;

/// Bytes of memory that the process may use: what its control group allows, or what the machine has.
pub(crate) fn memory_limit() -> usize {
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let of_group = groups.iter().filter_map(|path| parse_group(&fs::read_to_string(path).ok()?)).min();
    let of_machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| parse_meminfo(&text));
    [of_group, of_machine].into_iter().flatten().min().unwrap_or(UNKNOWN_BYTES)
}

fn parse_group(text: &str) -> Option<usize> {
    text.trim().parse().ok()
}

fn parse_meminfo(text: &str) -> Option<usize> {
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: usize = total.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_the_system_writes_them() {
        assert_eq!(parse_group("536870912\n"), Some(536_870_912));
        assert_eq!(parse_group("max\n"), None, "no limit");
        assert_eq!(parse_meminfo("MemTotal:       24607948 kB\nMemFree: 1 kB\n"), Some(24_607_948 * 1024));
        assert_eq!(parse_meminfo("MemFree: 1 kB\n"), None);
        assert!(memory_limit() > 1 << 20);
    }
}
