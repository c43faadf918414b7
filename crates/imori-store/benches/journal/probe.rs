//! The disk alone: writes into a file that was filled with zeros, each followed by `fdatasync`.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use imori_store::disk::{Disk, RealDisk};
use imori_store::whole_file::ReadFrom;

use crate::figures::Figures;

const FILE_BYTES: usize = 64 << 20;

/// What the disk took.
pub(crate) struct Device {
    pub(crate) latency: Figures,
}

/// Writes pieces of this size for so long.
pub(crate) fn run(folder: &Path, bytes: usize, time: Duration) -> io::Result<Device> {
    let path = folder.join("probe");
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
    let times = write(&file, &vec![0x5a; bytes], time)?;
    fs::remove_file(&path)?;
    Ok(Device { latency: Figures::new(&times) })
}

/// Reads all files of a folder past the page cache, and says how long it took.
pub(crate) fn read(folder: &Path) -> io::Result<Duration> {
    let disk = RealDisk::new(folder.to_owned());
    let begin = Instant::now();
    for name in disk.list()? {
        disk.read(&name, ReadFrom::Device, usize::MAX)?;
    }
    Ok(begin.elapsed())
}

fn write(file: &File, piece: &[u8], time: Duration) -> io::Result<Vec<Duration>> {
    let zeros = vec![0; 1 << 20];
    for at in (0..FILE_BYTES).step_by(zeros.len()) {
        file.write_all_at(&zeros, at as u64)?;
    }
    file.sync_all()?;
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
