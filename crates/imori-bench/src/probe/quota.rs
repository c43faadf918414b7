//! Throttling of control groups that have used up their CPU quota.

use std::fs;
use std::path::PathBuf;

/// The control groups of a process that may have a quota.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Quota {
    /// `cpu.stat` of the group and its ancestors.
    files: Vec<PathBuf>,
}

/// The most ancestors examined, more than are used in practice.
const GROUPS_MAX: usize = 8;

impl Quota {
    /// The groups of a process; empty if they cannot be found.
    pub(crate) fn of(pid: u32) -> Quota {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        Quota { files: candidates(&groups).into_iter().filter(|file| file.exists()).collect() }
    }

    /// Number of times one of the groups has been throttled.
    pub(crate) fn held_back(&self) -> u64 {
        let of_file = |file| parse_throttled(&fs::read_to_string(file).ok()?);
        self.files.iter().filter_map(of_file).fold(0, u64::saturating_add)
    }
}

/// Possible paths of `cpu.stat`, for cgroup v2 and v1.
fn candidates(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let mounts: &[&str] = match controllers {
            "" => &["", "unified"],
            _ if controllers.split(',').any(|name| name == "cpu") => &[controllers, "cpu"],
            _ => continue,
        };
        for mount in mounts {
            let root = PathBuf::from("/sys/fs/cgroup").join(mount);
            let group = root.join(path.trim_start_matches('/'));
            let inner = group.ancestors().take_while(|folder| folder.starts_with(&root)).take(GROUPS_MAX);
            files.extend(inner.map(|folder| folder.join("cpu.stat")));
        }
    }
    files.dedup();
    files
}

fn parse_throttled(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("nr_throttled "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_control_groups_are_known() {
        for (groups, expected) in [
            ("0::/\n", vec!["/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/unified/cpu.stat"]),
            (
                "0::/a/b\n",
                vec![
                    "/sys/fs/cgroup/a/b/cpu.stat",
                    "/sys/fs/cgroup/a/cpu.stat",
                    "/sys/fs/cgroup/cpu.stat",
                    "/sys/fs/cgroup/unified/a/b/cpu.stat",
                    "/sys/fs/cgroup/unified/a/cpu.stat",
                    "/sys/fs/cgroup/unified/cpu.stat",
                ],
            ),
            (
                "4:cpu,cpuacct:/x\n2:memory:/y\n",
                vec![
                    "/sys/fs/cgroup/cpu,cpuacct/x/cpu.stat",
                    "/sys/fs/cgroup/cpu,cpuacct/cpu.stat",
                    "/sys/fs/cgroup/cpu/x/cpu.stat",
                    "/sys/fs/cgroup/cpu/cpu.stat",
                ],
            ),
            ("nonsense\n", vec![]),
        ] {
            let found = candidates(groups);
            assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{groups}");
        }
    }

    #[test]
    fn throttled_is_found_by_name() {
        for (text, expected) in
            [("nr_periods 3\nnr_throttled 2\nthrottled_time 9\n", Some(2)), ("usage_usec 3\n", None)]
        {
            assert_eq!(parse_throttled(text), expected);
        }
    }
}
