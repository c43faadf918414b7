//! Reads statistics of devices, threads and pressure from `/proc`, where some may be missing.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// A block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Device {
    major: u64,
    minor: u64,
}

/// Counters of a device.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceSample {
    /// Operations completed since boot.
    pub(crate) completed: u64,
    /// Operations in flight.
    pub(crate) in_flight: u64,
    /// Time with operations in flight.
    pub(crate) busy: Duration,
}

/// State of a thread.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadSample {
    /// The thread is in uninterruptible sleep, as for disk I/O.
    pub(crate) waits_for_disk: bool,
    /// CPU time used.
    pub(crate) ran: Duration,
    /// Time spent runnable without a CPU.
    pub(crate) starved: Duration,
}

/// Pressure stall information, averaged over ten seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pressure {
    /// Percentage of time in which at least one task was stalled.
    pub some_percent: f64,
    /// Percentage of time in which all tasks were stalled; 0 if not reported.
    pub full_percent: f64,
}

impl Device {
    /// The device that holds a folder; `None` if it is on no device or that is unknown.
    pub(crate) fn of(folder: &Path) -> Option<Device> {
        let folder = fs::canonicalize(folder).ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        match parse_mount(&mounts, folder.to_str()?)? {
            Mount { device, .. } if device.major != 0 => Some(device),
            // A file system with an anonymous device number: its source may be a block device.
            Mount { source, .. } => Some(split(fs::metadata(source).ok()?.rdev())).filter(|it| it.major != 0),
        }
    }

    /// Reads the device's current counters.
    pub(crate) fn sample(self) -> Option<DeviceSample> {
        parse_device(&fs::read_to_string("/proc/diskstats").ok()?, self)
    }
}

/// Samples this process's thread named `name`.
pub(crate) fn sample_thread(name: &str) -> Option<ThreadSample> {
    fs::read_dir("/proc/self/task").ok()?.flatten().find_map(|task| {
        let path = task.path();
        let is_it = fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim_end() == name);
        if !is_it {
            return None;
        }
        let (ran, starved) = fs::read_to_string(path.join("schedstat"))
            .ok()
            .and_then(|text| parse_times(&text))
            .unwrap_or_default();
        Some(ThreadSample { waits_for_disk: state(&path) == Some('D'), ran, starved })
    })
}

/// Number of this process's other threads in uninterruptible sleep.
pub(crate) fn others_that_wait(name: &str) -> usize {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return 0 };
    let waits = |path: &Path| {
        state(path) == Some('D')
            && fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim_end() != name)
    };
    tasks.flatten().filter(|task| waits(&task.path())).count()
}

/// Pressure on `io` or `cpu`; `None` if the system does not report it.
pub(crate) fn pressure(what: &str) -> Option<Pressure> {
    parse_pressure(&fs::read_to_string(Path::new("/proc/pressure").join(what)).ok()?)
}

struct Mount<'a> {
    device: Device,
    source: &'a str,
}

/// The mount that contains a path, from lines such as `36 35 98:0 /root /mnt opts tag - ext4 /dev/sda1 opts`.
fn parse_mount<'a>(mounts: &'a str, path: &str) -> Option<Mount<'a>> {
    let mut found: Option<(usize, Mount<'a>)> = None;
    for line in mounts.lines() {
        let Some((front, back)) = line.split_once(" - ") else { continue };
        let mut front = front.split(' ').skip(2);
        let (Some(device), Some(point)) = (front.next(), front.nth(1)) else { continue };
        let point = point.replace("\\040", " ");
        let rest = path.strip_prefix(point.trim_end_matches('/'));
        let is_in = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        // A later mount on the same point covers the earlier one.
        if !is_in || found.as_ref().is_some_and(|(len, _)| *len > point.len()) {
            continue;
        }
        let Some(device) = parse_number(device) else { continue };
        let source = back.split(' ').nth(1).unwrap_or_default();
        found = Some((point.len(), Mount { device, source }));
    }
    found.map(|(_, mount)| mount)
}

fn parse_number(text: &str) -> Option<Device> {
    let (major, minor) = text.split_once(':')?;
    Some(Device { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

/// Splits a device number like the C library.
fn split(number: u64) -> Device {
    let major = (number >> 8) & 0xfff | (number >> 32) & !0xfff;
    let minor = number & 0xff | (number >> 12) & 0xffff_ff00;
    Device { major, minor }
}

/// Finds a device's line: its numbers, its name, then counters.
fn parse_device(stats: &str, device: Device) -> Option<DeviceSample> {
    stats.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let field = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok());
        if (field(0)?, field(1)?) != (device.major, device.minor) {
            return None;
        }
        // Reads, writes, discards and flushes; older kernels lack the last two.
        let completed = [3, 7, 14, 18].into_iter().filter_map(field).fold(0, u64::wrapping_add);
        Some(DeviceSample { completed, in_flight: field(11)?, busy: Duration::from_millis(field(12)?) })
    })
}

fn state(task: &Path) -> Option<char> {
    let stat = fs::read_to_string(task.join("stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Nanoseconds of CPU time, and nanoseconds waiting for a CPU.
fn parse_times(text: &str) -> Option<(Duration, Duration)> {
    let mut fields = text.split_whitespace().map(str::parse::<u64>);
    let mut next = || fields.next()?.ok().map(Duration::from_nanos);
    Some((next()?, next()?))
}

fn parse_pressure(text: &str) -> Option<Pressure> {
    let percent = |kind: &str| {
        let line = text.lines().find(|line| line.starts_with(kind))?;
        line.split(' ').find_map(|field| field.strip_prefix("avg10="))?.parse().ok()
    };
    Some(Pressure { some_percent: percent("some")?, full_percent: percent("full").unwrap_or(0.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_on_the_mount_that_lies_over_it() {
        let mounts = "\
21 1 254:1 / / rw - ext4 /dev/vda1 rw
22 21 0:30 / /data rw,relatime shared:5 - btrfs /dev/vdb rw
23 21 7:0 / /data/my\\040disk rw - ext4 /dev/loop0 rw
24 21 0:40 / /tmp rw - tmpfs tmpfs rw
";
        for (path, major, source) in [
            ("/srv", 254, "/dev/vda1"),
            ("/database", 254, "/dev/vda1"),
            ("/data", 0, "/dev/vdb"),
            ("/data/imori", 0, "/dev/vdb"),
            ("/data/my disk/imori", 7, "/dev/loop0"),
            ("/tmp/x", 0, "tmpfs"),
        ] {
            let mount = parse_mount(mounts, path).unwrap();
            assert_eq!((mount.device.major, mount.source), (major, source), "{path}");
        }
        assert!(parse_mount("nonsense\n1 2 x - y", "/").is_none());
    }

    #[test]
    fn a_device_is_read_as_the_system_writes_it() {
        let stats = "   7       0 loop0 10 0 80 1 20 0 160 2 3 45 6 5 0 0 0 7 1\n   8 0 sda 1 2 3\n";
        let sample = parse_device(stats, Device { major: 7, minor: 0 });
        let expected = DeviceSample { completed: 42, in_flight: 3, busy: Duration::from_millis(45) };
        assert_eq!(sample, Some(expected));
        assert_eq!(parse_device(stats, Device { major: 8, minor: 0 }), None, "its line is cut");
        assert_eq!(parse_device(stats, Device { major: 9, minor: 9 }), None);
        assert_eq!(split(0x0700), Device { major: 7, minor: 0 });
        assert_eq!(split(0xfe01), Device { major: 254, minor: 1 });
    }

    #[test]
    fn pressure_and_times_are_read() {
        let text = "some avg10=12.50 avg60=1.00 avg300=0.00 total=9\nfull avg10=3.00 avg60=0.00 avg300=0.00 total=1\n";
        assert_eq!(parse_pressure(text), Some(Pressure { some_percent: 12.5, full_percent: 3.0 }));
        assert_eq!(parse_pressure("nonsense"), None);
        let times = parse_times("5 7 1\n");
        assert_eq!(times, Some((Duration::from_nanos(5), Duration::from_nanos(7))));
        assert_eq!(parse_times("5"), None);
    }

    #[test]
    fn this_thread_is_found_and_runs() {
        let thread = std::thread::Builder::new().name(String::from("seen"));
        let sample = thread.spawn(|| sample_thread("seen")).unwrap().join().unwrap();
        assert!(!sample.expect("it is there").waits_for_disk);
        assert_eq!(sample_thread("nobody"), None);
    }
}
