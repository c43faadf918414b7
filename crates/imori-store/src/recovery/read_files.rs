//! Reads and scans the files of a journal, several at a time and the latest first.
//!
//! The latest file holds the last checkpoint. Records below its floor are dropped right after their
//! file's scan. A file that batch headers prove to be below the floor is not read at all.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::chain;
use super::scan::{self, FileScan, Scanned};
use super::window::Window;
use crate::disk::{Disk, DiskFile, ReadFrom};
use crate::limits::{BLOCK_BYTES, READER_BYTES, READERS_MAX};
use crate::lsn::{Lsn, LsnRange};
use crate::planted::Fault;
use crate::records::{FileHeader, HeaderError, batch};
use crate::seal::Seal;
use crate::settings::Settings;

/// The size of the headers of a file and of its first batch.
const FIRST_BYTES: usize = 2 * BLOCK_BYTES;

/// A file and the result of its scan.
pub(crate) struct ScannedFile<F> {
    pub(crate) file: Arc<F>,
    /// The file, opened for reading from the source in the settings.
    pub(crate) reading: Arc<F>,
    pub(crate) name: String,
    pub(crate) number: u32,
    /// The length in bytes.
    pub(crate) bytes: u64,
    pub(crate) scan: FileScan,
}

struct Unread<F> {
    file: Arc<F>,
    reading: Arc<F>,
    name: String,
    number: u32,
    bytes: u64,
    header: Result<FileHeader, HeaderError>,
    /// The first number of the file written after this one.
    next: Option<Lsn>,
    /// Whether no record of the file was ever acknowledged.
    is_untouched: bool,
}

impl<F> Unread<F> {
    /// The generation in the header, or 0 if it is unreadable; only the order depends on it.
    fn generation(&self) -> u32 {
        self.header.map_or(0, |header| header.generation)
    }
}

/// Reads the files with these names and numbers.
pub(crate) fn read_files<D: Disk>(
    folder: &D,
    settings: &Settings,
    names: Vec<(String, u32)>,
) -> io::Result<Vec<ScannedFile<D::File>>> {
    let (mut unread, mut bytes) = (Vec::new(), 0);
    for (name, number) in names {
        let file = Arc::new(folder.open(&name)?);
        let reading = Arc::new(folder.open_to_read(&name, settings.read_from)?);
        let mut start = Window::new(&*reading, FIRST_BYTES)?;
        let start = start.get(0, FIRST_BYTES)?;
        let header = FileHeader::decode(start);
        let is_untouched = is_untouched(&header, start, settings.seal);
        let size = file.size()?;
        bytes += if is_untouched { 0 } else { size };
        unread.push(Unread { file, reading, name, number, bytes: size, header, next: None, is_untouched });
    }
    unread.sort_by_key(|unread| std::cmp::Reverse(unread.generation()));
    let mut next = None;
    for unread in &mut unread {
        unread.next = next;
        next = unread.header.ok().and_then(|header| header.first).or(next);
    }
    let (next, floor) = (AtomicUsize::new(0), AtomicU64::new(0));
    let read_some = || {
        let mut scans = Vec::new();
        while let Some(unread) = unread.get(next.fetch_add(1, Ordering::Relaxed)) {
            let scan = match passed_over(unread, settings, &floor)? {
                Some(scan) => scan,
                None => scan(unread, settings, &floor)?,
            };
            scans.push((unread.name.clone(), scan));
        }
        io::Result::Ok(scans)
    };
    let readers = usize::try_from(bytes / READER_BYTES).unwrap_or(READERS_MAX).min(READERS_MAX);
    let mut scans = Vec::new();
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..readers).map(|_| scope.spawn(read_some)).collect();
        scans.extend(read_some()?);
        for other in others {
            scans.extend(other.join().map_err(|_| io::Error::other("a thread that reads files panicked"))??);
        }
        io::Result::Ok(())
    })?;
    scans.sort_by(|(one, _), (other, _)| one.cmp(other));
    unread.sort_by(|one, other| one.name.cmp(&other.name));
    let pairs = unread.into_iter().zip(scans);
    let found = pairs.map(|(Unread { file, reading, name, number, bytes, .. }, (_, scan))| ScannedFile {
        file,
        reading,
        name,
        number,
        bytes,
        scan,
    });
    Ok(found.collect())
}

/// Whether no batch of a file was ever synced. The header names the first record once the first
/// batch is written. Until then no batch was acknowledged, and the file is reused with another
/// generation.
fn is_untouched(header: &Result<FileHeader, HeaderError>, start: &[u8], seal: Seal) -> bool {
    let is_ready = header.as_ref().is_ok_and(|header| header.first.is_none());
    let first = start.get(BLOCK_BYTES..).and_then(|block| batch::decode_header(block, seal));
    is_ready && header.as_ref().ok().map(|header| header.generation) != first.map(|batch| batch.generation)
}

/// Skips a file with batches that are all below the floor and end where the next file begins. After
/// an interrupted opening, the next file may begin earlier, with records of this one; then both are
/// read.
fn passed_over<F: DiskFile>(
    unread: &Unread<F>,
    settings: &Settings,
    floor: &AtomicU64,
) -> io::Result<Option<FileScan>> {
    let Unread { file, bytes, header: Ok(header), next: Some(next), .. } = unread else { return Ok(None) };
    let is_needed = next.0 > floor.load(Ordering::Relaxed) || *bytes < header.file_bytes;
    // The headers are read through the page cache.
    if is_needed || unread.is_untouched || settings.read_from == ReadFrom::Device {
        return Ok(None);
    }
    let numbers = chain::numbers(&**file, *bytes, settings.seal, header.generation)?;
    let is_all = |numbers: &LsnRange| {
        header.first == Some(numbers.first)
            && (numbers.last.next() == *next || settings.seal.planted.has(Fault::NextNotCompared))
    };
    Ok(numbers.filter(is_all).map(|numbers| FileScan::passed_over(*header, numbers)))
}

fn scan<F: DiskFile>(unread: &Unread<F>, settings: &Settings, floor: &AtomicU64) -> io::Result<FileScan> {
    let bytes_max = if unread.is_untouched { FIRST_BYTES } else { usize::MAX };
    let mut scan = scan::scan(&mut Window::new(&*unread.reading, bytes_max)?, settings.seal)?;
    let highest = scan.records.iter().filter_map(Scanned::floor).max().map_or(0, |lsn| lsn.0);
    let mut floor = floor.fetch_max(highest, Ordering::Relaxed).max(highest);
    if settings.seal.planted.has(Fault::FloorOffByOne) {
        floor += 1;
    }
    scan.records.retain(|record| record.lsn.0 >= floor);
    Ok(scan)
}

#[cfg(test)]
mod tests;
