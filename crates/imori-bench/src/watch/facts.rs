//! Reads hardware, kernel and file system from `/proc` and `/sys`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::record::machine::Machine;

/// The facts of this machine, and the file system of `folder`.
pub fn machine_facts(folder: &Path) -> Machine {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(0, |cpus| cpus.get() as u32);
    let (cpu, online) = parse_cpus(&read("/proc/cpuinfo"));
    let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    Machine {
        cpu,
        cpus: if online > 0 { online } else { cpus },
        governor: Some(governor.trim().to_owned()).filter(|name| !name.is_empty()),
        memory_bytes: parse_memory(&read("/proc/meminfo")).unwrap_or(0),
        kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
        system: parse_system(&read("/etc/os-release")).unwrap_or_default(),
        file_system: mount_of(&read("/proc/self/mountinfo"), &fs::canonicalize(folder).unwrap_or_default()),
    }
}

/// Model and number of the CPUs; the model is empty on architectures without one.
fn parse_cpus(text: &str) -> (String, u32) {
    let field = |line: &str, name: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    };
    let model = text.lines().find_map(|line| field(line, "model name")).unwrap_or_default();
    let online = text.lines().filter(|line| field(line, "processor").is_some()).count();
    (model, online as u32)
}

fn parse_memory(text: &str) -> Option<u64> {
    let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    kib.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn parse_system(text: &str) -> Option<String> {
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

/// The file system of a folder, such as `ext4 on /dev/vda (rw,relatime)`. Fields of a `mountinfo`
/// line: id, parent, device, root, mount point, options; after ` - `: type, source, more options.
fn mount_of(text: &str, folder: &Path) -> Option<String> {
    let mut found: Option<(PathBuf, String)> = None;
    for line in text.lines() {
        let Some((fields, after)) = line.split_once(" - ") else {
            continue;
        };
        let (mut fields, mut after) = (fields.split(' ').skip(4), after.split(' '));
        let (Some(point), Some(options)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (Some(kind), Some(source)) = (after.next(), after.next()) else {
            continue;
        };
        let point = PathBuf::from(point);
        // Of two mounts on one directory, the later one hides the earlier.
        if folder.starts_with(&point) && found.as_ref().is_none_or(|(longest, _)| point.starts_with(longest))
        {
            found = Some((point, format!("{kind} on {source} ({options})")));
        }
    }
    found.map(|(_, words)| words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_is_named() {
        let mounts = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
            30 22 0:25 / /tmp rw,nosuid - tmpfs tmpfs rw,size=1g\n\
            31 30 7:0 / /tmp/loop rw,noatime shared:3 master:1 - xfs /dev/loop0 rw\n\
            nonsense\n";
        for (folder, expected) in [
            ("/home/x", Some("ext4 on /dev/vda (rw,relatime)")),
            ("/tmp/x", Some("tmpfs on tmpfs (rw,nosuid)")),
            ("/tmp/loop/data", Some("xfs on /dev/loop0 (rw,noatime)")),
            ("/tmp/looper", Some("tmpfs on tmpfs (rw,nosuid)")),
            ("", None),
        ] {
            assert_eq!(mount_of(mounts, Path::new(folder)).as_deref(), expected, "{folder}");
        }
    }

    #[test]
    fn facts_are_read_as_the_kernel_writes_them() {
        let cpus = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n\nprocessor\t: 1\nmodel name\t: other\n";
        assert_eq!(parse_cpus(cpus), ("Some CPU @ 2 GHz".to_owned(), 2));
        assert_eq!(parse_memory("MemTotal:        2048 kB\nMemFree: 1 kB\n"), Some(2_097_152));
        assert_eq!(parse_system("ID=x\nPRETTY_NAME=\"Some Linux 12\"\n").as_deref(), Some("Some Linux 12"));
    }

    #[test]
    fn this_machine_has_a_kernel_and_cpus() {
        let machine = machine_facts(&std::env::temp_dir());
        assert!(machine.cpus > 0 && machine.kernel.len() > "Linux ".len() && machine.memory_bytes > 0);
    }
}
