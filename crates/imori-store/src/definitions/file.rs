//! The storage backend of redb: a [`DiskFile`] that is written in whole sectors, or one that is
//! only inspected.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;

use super::error::SyncFailed;
use crate::disk::{self, DiskFile};
use crate::limits::SECTOR_BYTES;

const SECTOR: u64 = SECTOR_BYTES as u64;

/// A file that redb may write.
pub(crate) struct ChangedFile<F>(pub(crate) F);

impl<F> fmt::Debug for ChangedFile<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the definitions")
    }
}

impl<F: DiskFile> StorageBackend for ChangedFile<F> {
    fn len(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        read_exact(&self.0, out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    /// Reports a failed sync as final: unsynced content may be gone, even if space comes back.
    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data().map_err(SyncFailed::told)
    }

    /// Writes data, and extends a write of the 320-byte file header to a whole sector, which a
    /// device writes atomically. Redb writes everything else in pages.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let (first, end) = (offset / SECTOR * SECTOR, (offset + data.len() as u64).next_multiple_of(SECTOR));
        if (first, end) == (offset, offset + data.len() as u64) {
            return disk::write_all(&self.0, data, offset);
        }
        let mut sectors = vec![0; usize::try_from(end - first).map_err(io::Error::other)?];
        disk::read_up_to(&self.0, &mut sectors, first)?;
        let at = usize::try_from(offset - first).map_err(io::Error::other)?;
        if let Some(place) = sectors.get_mut(at..at + data.len()) {
            place.copy_from_slice(data);
        }
        disk::write_all(&self.0, &sectors, first)
    }
}

/// A file that is not changed: redb's writes stay in memory, visible to redb only.
pub(crate) struct SeenFile<F> {
    file: F,
    /// The number of reads left, so that a cycle of pages comes to an end.
    reads_left: AtomicU64,
    changed: Mutex<Changed>,
}

#[derive(Default)]
struct Changed {
    len: Option<u64>,
    sectors: BTreeMap<u64, [u8; SECTOR_BYTES]>,
}

impl<F> fmt::Debug for SeenFile<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a look at the definitions")
    }
}

impl<F: DiskFile> SeenFile<F> {
    /// An unchanged view of `file` that allows `reads_max` reads.
    pub(crate) fn new(file: F, reads_max: u64) -> SeenFile<F> {
        SeenFile { file, reads_left: AtomicU64::new(reads_max), changed: Mutex::default() }
    }

    fn changed(&self) -> MutexGuard<'_, Changed> {
        // A panic of redb leaves no half-done change here.
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A sector as redb sees it.
    fn sector(&self, changed: &Changed, number: u64) -> io::Result<[u8; SECTOR_BYTES]> {
        if let Some(sector) = changed.sectors.get(&number) {
            return Ok(*sector);
        }
        let mut sector = [0; SECTOR_BYTES];
        disk::read_up_to(&self.file, &mut sector, number * SECTOR)?;
        Ok(sector)
    }
}

impl<F: DiskFile> StorageBackend for SeenFile<F> {
    fn len(&self) -> io::Result<u64> {
        let changed = self.changed().len;
        changed.map_or_else(|| self.file.size(), Ok)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let spent =
            self.reads_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if spent.is_err() {
            return Err(io::Error::other("its pages lead in a circle"));
        }
        let changed = self.changed();
        let end = offset.checked_add(out.len() as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
        if end > changed.len.map_or_else(|| self.file.size(), Ok)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        disk::read_up_to(&self.file, out, offset)?;
        for (number, sector) in changed.sectors.range(offset / SECTOR..end.div_ceil(SECTOR)) {
            let start = number * SECTOR;
            for (at, byte) in (start..).zip(sector) {
                let place = at.checked_sub(offset).and_then(|at| usize::try_from(at).ok());
                if let Some(place) = place.and_then(|at| out.get_mut(at)) {
                    *place = *byte;
                }
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.changed().len = Some(len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut changed = self.changed();
        let mut at = offset;
        let mut rest = data;
        while !rest.is_empty() {
            let (number, within) = (at / SECTOR, usize::try_from(at % SECTOR).map_err(io::Error::other)?);
            let (piece, behind) = rest.split_at(rest.len().min(SECTOR_BYTES - within));
            let mut sector = self.sector(&changed, number)?;
            if let Some(place) = sector.get_mut(within..within + piece.len()) {
                place.copy_from_slice(piece);
            }
            changed.sectors.insert(number, sector);
            (at, rest) = (at + piece.len() as u64, behind);
        }
        Ok(())
    }
}

fn read_exact(file: &impl DiskFile, out: &mut [u8], offset: u64) -> io::Result<()> {
    match disk::read_up_to(file, out, offset)? {
        read if read == out.len() => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk as _;
    use crate::disk::sim_disk::{SimDisk, SimFile};

    const LEN: usize = 3 * SECTOR_BYTES;

    /// A disk with a file of three sectors in which neighbouring bytes differ, and its content.
    fn disk() -> (SimDisk, Vec<u8>) {
        let bytes: Vec<u8> = (0..LEN).map(|at| (at % 251) as u8).collect();
        let disk = SimDisk::default();
        let file = disk.create("a").expect("the disk is well");
        disk::write_all(&file, &bytes, 0).expect("the disk is well");
        (disk, bytes)
    }

    fn file(disk: &SimDisk) -> SimFile {
        disk.open("a").expect("it is there")
    }

    fn content(file: &impl StorageBackend) -> Vec<u8> {
        let len = file.len().expect("the disk is well");
        let mut all = vec![0; usize::try_from(len).expect("it is short")];
        file.read(0, &mut all).expect("the disk is well");
        all
    }

    /// Offsets and lengths of writes that redb might do.
    const WRITES: [(usize, usize); 9] = [
        (0, SECTOR_BYTES),
        (0, 320),
        (0, 1),
        (SECTOR_BYTES, SECTOR_BYTES),
        (SECTOR_BYTES - 1, 2),
        (SECTOR_BYTES + 7, 20),
        (2 * SECTOR_BYTES + 7, SECTOR_BYTES - 7),
        (5, 2 * SECTOR_BYTES),
        (0, LEN),
    ];

    #[test]
    fn what_is_written_to_a_look_is_seen_there_and_stays_out_of_the_file() {
        for (at, len) in WRITES {
            let (disk, mut expected) = disk();
            let look = SeenFile::new(file(&disk), u64::MAX);
            look.write(at as u64, &vec![0xee; len]).expect("it is memory");
            expected[at..at + len].fill(0xee);
            assert!(content(&look) == expected, "{len} bytes at {at}");
            for (from, count) in WRITES {
                let mut part = vec![0; count];
                look.read(from as u64, &mut part).expect("it is there");
                assert!(part == expected[from..from + count], "{count} at {from} of {len} at {at}");
            }
            // A second write to the same sector keeps the effect of the first.
            look.write(at as u64, &[0xdd]).expect("it is memory");
            expected[at] = 0xdd;
            assert!(content(&look) == expected, "{len} bytes at {at}, and one more");
            look.set_len(LEN as u64 + 9).expect("it is memory");
            assert_eq!(look.len().expect("the disk is well"), LEN as u64 + 9);
            assert!(content(&ChangedFile(file(&disk))) == self::disk().1, "the file is as it was");
        }
    }

    #[test]
    fn nothing_is_read_behind_the_end() {
        let (disk, expected) = disk();
        let look = SeenFile::new(file(&disk), u64::MAX);
        let changed = ChangedFile(file(&disk));
        for (at, len, is_there) in [(0, LEN, true), (LEN - 1, 1, true), (LEN - 1, 2, false), (LEN, 1, false)]
        {
            for read in [look.read(at as u64, &mut vec![0; len]), changed.read(at as u64, &mut vec![0; len])]
            {
                assert_eq!(read.is_ok(), is_there, "{len} bytes at {at} of {}", expected.len());
            }
        }
    }

    #[test]
    fn a_file_is_changed_by_whole_sectors_and_only_where_redb_writes() {
        for (at, len) in WRITES {
            let (disk, mut expected) = disk();
            let changed = ChangedFile(file(&disk));
            changed.write(at as u64, &vec![0xee; len]).expect("the disk is well");
            expected[at..at + len].fill(0xee);
            assert!(content(&changed) == expected, "{len} bytes at {at}");
        }
    }
}
