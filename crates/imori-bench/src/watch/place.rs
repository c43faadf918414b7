//! Where the broker runs: its address, its CPUs, and a folder on its file system.

use std::env::{current_dir, temp_dir};
use std::fs;
use std::net::{IpAddr, TcpListener, ToSocketAddrs};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

use crate::probe::process::cpus_allowed;

/// The most CPUs with a canary; of more CPUs, an evenly spread selection is used.
const CPUS_MAX: usize = 32;

/// Resolves the name of a host.
pub(crate) fn resolve(host: &str, port: u16) -> Result<IpAddr> {
    let mut addresses = (host, port)
        .to_socket_addrs()
        .with_context(|| format!("host `{host}` is not known; check the URL"))?;
    let first = addresses.next().ok_or_else(|| anyhow!("host `{host}` has no address; check the URL"))?;
    Ok(first.ip())
}

/// Whether an address belongs to this machine, which is the case if a socket can be bound to it.
pub(crate) fn is_here(address: IpAddr) -> bool {
    TcpListener::bind((address, 0)).is_ok()
}

/// The CPUs that a process may use, at most `CPUS_MAX`.
pub(crate) fn cpus_of(pid: u32) -> Vec<usize> {
    let all = cpus_allowed(pid).map(|list| parse_list(&list)).unwrap_or_default();
    let step = all.len().div_ceil(CPUS_MAX).max(1);
    all.into_iter().step_by(step).collect()
}

/// Reads a list such as `0-2,5`; anything else is skipped.
fn parse_list(list: &str) -> Vec<usize> {
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
            cpus.extend(first..=last.min(first.saturating_add(8191)));
        }
    }
    cpus
}

/// A writable folder on the file system that holds the broker's files.
///
/// It is a folder for temporary files, or the mount point: a new folder within the broker's data
/// directory might be taken for data.
pub(crate) fn folder_beside(pids: &[u32]) -> PathBuf {
    let Some(data) = pids.iter().find_map(|pid| file_written_by(*pid)) else {
        return temp_dir();
    };
    let Ok(device) = fs::metadata(&data).map(|data| data.dev()) else {
        return temp_dir();
    };
    let is_beside = |folder: &PathBuf| fs::metadata(folder).is_ok_and(|folder| folder.dev() == device);
    let usual = [Some(temp_dir()), Some(PathBuf::from("/var/tmp")), current_dir().ok()];
    let outermost = data.ancestors().skip(1).map(Path::to_path_buf).filter(is_beside).last();
    usual.into_iter().flatten().find(is_beside).or(outermost).unwrap_or_else(temp_dir)
}

/// A regular file that a process has open for writing, or else its working directory.
fn file_written_by(pid: u32) -> Option<PathBuf> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    for file in files.flatten() {
        let number = file.file_name().to_string_lossy().into_owned();
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).unwrap_or_default();
        let Ok(target) = fs::read_link(file.path()) else {
            continue;
        };
        let is_regular = fs::metadata(&target).is_ok_and(|target| target.is_file());
        if is_regular && is_for_writing(&info) && !target.starts_with("/proc") && !target.starts_with("/dev")
        {
            return Some(target);
        }
    }
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Whether an `fdinfo` has a mode for writing. Flags are octal; the lowest two bits are 0 for read-only.
fn is_for_writing(info: &str) -> bool {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.and_then(|flags| u64::from_str_radix(flags.trim(), 8).ok()).is_some_and(|flags| flags & 3 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        for (list, expected) in
            [("0", vec![0]), ("0-2,5", vec![0, 1, 2, 5]), ("", vec![]), ("x,3-", vec![]), ("4-2", vec![])]
        {
            assert_eq!(parse_list(list), expected, "{list}");
        }
    }

    #[test]
    fn files_for_writing_are_told_by_their_flags() {
        for (info, expected) in [
            ("pos:\t0\nflags:\t0100000\n", false),
            ("flags:\t0100001\n", true),
            ("flags:\t02100002\n", true),
            ("pos:\t0\n", false),
        ] {
            assert_eq!(is_for_writing(info), expected, "{info}");
        }
    }

    #[test]
    fn this_process_has_cpus_a_folder_and_an_address() {
        let own = std::process::id();
        assert!(!cpus_of(own).is_empty());
        assert!(folder_beside(&[own]).is_dir() && folder_beside(&[]).is_dir());
        assert!(is_here(resolve("127.0.0.1", 1).unwrap()));
        // TEST-NET-1 is not assigned to any host.
        assert!(!is_here(resolve("192.0.2.1", 1).unwrap()));
    }
}
