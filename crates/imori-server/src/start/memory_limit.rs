//! Determines how much memory the process may use.

use std::fs;
use std::path::{Path, PathBuf};

/// Assumed if the system reports nothing.
const UNKNOWN_BYTES: usize = 1 << 30;

/// The smallest of the control groups' limits and the machine's memory, in bytes.
pub(crate) fn memory_limit() -> usize {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups = limit_files(&own).filter_map(|path| parse_group(&fs::read_to_string(path).ok()?)).min();
    let of_machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| parse_meminfo(&text));
    [of_groups, of_machine].into_iter().flatten().min().unwrap_or(UNKNOWN_BYTES)
}

/// The limit files of the process's control groups and all their ancestors, up to the root that its container sees.
fn limit_files(own: &str) -> impl Iterator<Item = PathBuf> {
    let of_hierarchy = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (mount, file) = match fields.next()? {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return None,
        };
        let path = Path::new(fields.next()?.trim_start_matches('/')).to_path_buf();
        Some(path.ancestors().map(|group| Path::new(mount).join(group).join(file)).collect::<Vec<_>>())
    };
    own.lines().filter_map(of_hierarchy).flatten().collect::<Vec<_>>().into_iter()
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

    #[test]
    fn limits_of_all_groups_above_hold() {
        for (own, expected) in [
            ("0::/\n", &["/sys/fs/cgroup/memory.max"][..]),
            (
                "0::/system.slice/imori.service\n",
                &[
                    "/sys/fs/cgroup/system.slice/imori.service/memory.max",
                    "/sys/fs/cgroup/system.slice/memory.max",
                    "/sys/fs/cgroup/memory.max",
                ],
            ),
            (
                "3:cpu,cpuacct:/a\n2:memory:/b\n",
                &[
                    "/sys/fs/cgroup/memory/b/memory.limit_in_bytes",
                    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                ],
            ),
            ("", &[]),
        ] {
            let found: Vec<PathBuf> = limit_files(own).collect();
            assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{own:?}");
        }
    }
}
