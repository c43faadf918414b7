//! The disk alone: overwrites parts of an already written file, each followed by `fdatasync`.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use imori_store::disk::{Disk, ReadFrom, RealDisk};
use imori_store::limits::BLOCK_BYTES;
use rustix::fs::OFlags;

use crate::figures::Figures;

const FILE_BYTES: usize = 64 << 20;

/// The size of each write while the file is filled, before measuring.
const FILL_BYTES: usize = 1 << 20;

/// The latencies of the disk.
pub(crate) struct Device {
    pub(crate) latency: Figures,
}

/// Writes pieces of `bytes` for `time`, through the page cache or directly.
pub(crate) fn run(folder: &Path, bytes: usize, time: Duration, is_direct: bool) -> io::Result<Device> {
    let path = folder.join("probe");
    let flags = if is_direct { OFlags::DIRECT } else { OFlags::empty() };
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).custom_flags(flags.bits().cast_signed());
    let file = options.open(&path)?;
    // Direct writes must come from block-aligned memory.
    let room = vec![0x5a; bytes.max(FILL_BYTES) + BLOCK_BYTES];
    let start = room.as_ptr().align_offset(BLOCK_BYTES);
    let times = write(&file, &room[start..], bytes, time)?;
    fs::remove_file(&path)?;
    Ok(Device { latency: Figures::new(&times) })
}

/// Reads all files of a folder, bypassing the page cache; returns the time taken.
pub(crate) fn read(folder: &Path) -> io::Result<Duration> {
    let disk = RealDisk::new(folder.to_owned());
    let begin = Instant::now();
    for name in disk.list()? {
        disk.read(&name, ReadFrom::Device, usize::MAX)?;
    }
    Ok(begin.elapsed())
}

fn write(file: &File, room: &[u8], bytes: usize, time: Duration) -> io::Result<Vec<Duration>> {
    for at in (0..FILE_BYTES).step_by(FILL_BYTES) {
        file.write_all_at(&room[..FILL_BYTES], at as u64)?;
    }
    file.sync_all()?;
    let piece = &room[..bytes];
    let (begin, mut times, mut at) = (Instant::now(), Vec::new(), 0);
    while begin.elapsed() < time {
        if at + piece.len() > FILE_BYTES {
            at = 0;
        }
        let each = Instant::now();
        file.write_all_at(piece, at as u64)?;
        file.sync_data()?;
        times.push(each.elapsed());
        at += piece.len();
    }
    Ok(times)
}
