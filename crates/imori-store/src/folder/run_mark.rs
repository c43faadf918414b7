//! The file `run`: how the last process with this store ended.
//!
//! The mark tells whether the page cache may be trusted. After a kill it may: the kernel still
//! writes it back. After a power loss there is no cache. After a failed sync it may not: the kernel
//! dropped the pages' dirty state but still shows them. [`RunMark::disk_failed`] and `folder.rs`
//! explain why safety does not depend on this file.

use std::fmt;
use std::io;

use super::replace;
use crate::disk::{self, Disk, DiskFile};
use crate::limits::SECTOR_BYTES;

/// The name of the file.
pub const NAME: &str = "run";

const MAGIC: [u8; 8] = *b"imorirun";
const VERSION: u32 = 1;
const USED_BYTES: usize = 36;

/// The way in which the last process with the store ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastEnd {
    /// There was none: the store is new.
    First,
    /// Cleanly, after everything was written.
    Clean,
    /// Killed, while the operating system continued and the disk was fine.
    Killed,
    /// Together with the operating system, or in an unknown way.
    PowerLost,
    /// After a failed write or sync: files may show content that the device does not have.
    DiskFailed,
}

impl fmt::Display for LastEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LastEnd::First => "never used before",
            LastEnd::Clean => "ended cleanly",
            LastEnd::Killed => "was killed, the system went on",
            LastEnd::PowerLost => "ended with the system, or nobody knows how",
            LastEnd::DiskFailed => "ended after a write or sync that failed",
        })
    }
}

/// The random id of a boot, chosen by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootId(pub [u8; 16]);

/// The content of the mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Running = 1,
    Clean = 2,
    DiskFailed = 3,
}

/// The mark while a process uses the store.
#[derive(Debug)]
pub struct RunMark<F> {
    file: F,
    boot: Option<BootId>,
}

/// Reads how the last process ended, as seen from this boot.
pub fn read<D: Disk>(disk: &D, boot: Option<BootId>) -> io::Result<LastEnd> {
    let Some(bytes) = replace::content(disk, NAME)? else { return Ok(LastEnd::PowerLost) };
    Ok(match decode(&bytes) {
        Some((Word::Clean, _)) => LastEnd::Clean,
        Some((Word::DiskFailed, _)) => LastEnd::DiskFailed,
        Some((Word::Running, then)) if then.is_some() && then == boot => LastEnd::Killed,
        Some((Word::Running, _)) | None => LastEnd::PowerLost,
    })
}

/// Marks durably that a process uses the store.
///
/// A disk failure in this boot stays marked meanwhile: the page cache is still the same, and a kill
/// would otherwise leave a mark that trusts it.
pub fn begin<D: Disk>(disk: &D, boot: Option<BootId>) -> io::Result<RunMark<D::File>> {
    let before = replace::content(disk, NAME)?.as_deref().and_then(decode);
    let is_same_failure = before.is_some_and(|(word, then)| word == Word::DiskFailed && then == boot);
    let word = if is_same_failure { Word::DiskFailed } else { Word::Running };
    let content = encode(word, boot);
    let file = match disk.open(NAME) {
        Ok(file) => overwrite(&file, &content).map(|()| file)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => replace::replace(disk, NAME, &content)?,
        Err(error) => return Err(error),
    };
    Ok(RunMark { file, boot })
}

impl<F: DiskFile> RunMark<F> {
    /// Marks durably that everything is written and the store is no longer in use.
    pub fn end_clean(&self) -> io::Result<()> {
        overwrite(&self.file, &encode(Word::Clean, self.boot))
    }

    /// Marks that the disk failed.
    pub fn disk_failed(&self) -> io::Result<()> {
        overwrite(&self.file, &encode(Word::DiskFailed, self.boot))
    }
}

/// Overwrites the existing sector, which needs no new name and no space, so that a store on a full
/// disk can be opened. A crash leaves the old mark, the new one, or an unreadable one.
fn overwrite(file: &impl DiskFile, content: &[u8; SECTOR_BYTES]) -> io::Result<()> {
    disk::write_all(file, content, 0)?;
    file.sync_data()
}

fn encode(word: Word, boot: Option<BootId>) -> [u8; SECTOR_BYTES] {
    let mut sector = [0; SECTOR_BYTES];
    sector[..8].copy_from_slice(&MAGIC);
    sector[8..12].copy_from_slice(&VERSION.to_le_bytes());
    sector[12] = word as u8;
    sector[13] = u8::from(boot.is_some());
    sector[16..32].copy_from_slice(&boot.map_or([0; 16], |BootId(bytes)| bytes));
    let sum = crc32c::crc32c(&sector[..USED_BYTES - 4]);
    sector[USED_BYTES - 4..USED_BYTES].copy_from_slice(&sum.to_le_bytes());
    sector
}

/// Decodes a mark; `None` if it does not verify or was written by a later release.
fn decode(bytes: &[u8]) -> Option<(Word, Option<BootId>)> {
    let (covered, rest) = bytes.split_at_checked(USED_BYTES - 4)?;
    if u32::from_le_bytes(*rest.first_chunk()?) != crc32c::crc32c(covered) {
        return None;
    }
    let (version, rest) = covered.strip_prefix(&MAGIC)?.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*version) != VERSION {
        return None;
    }
    let ([word, has_boot, _, _], boot) = rest.split_first_chunk::<4>()?;
    let word =
        [Word::Running, Word::Clean, Word::DiskFailed].into_iter().find(|known| *known as u8 == *word)?;
    Some((word, boot.first_chunk().map(|bytes| BootId(*bytes)).filter(|_| *has_boot == 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::sim_disk::{Call, DiskFault, EIO, Random, SimDisk};

    const HERE: Option<BootId> = Some(BootId([1; 16]));
    const ELSEWHERE: Option<BootId> = Some(BootId([2; 16]));

    /// Applies steps, one per word, and returns the disk.
    fn marked(steps: &str) -> SimDisk {
        let disk = SimDisk::default();
        let mut mark = None;
        for step in steps.split_whitespace() {
            let held = || mark.as_ref().expect("the store is open");
            match step {
                "begin" => mark = Some(begin(&disk, HERE).expect("the disk is well")),
                "begin-elsewhere" => mark = Some(begin(&disk, ELSEWHERE).expect("the disk is well")),
                "begin-nowhere" => mark = Some(begin(&disk, None).expect("the disk is well")),
                "clean" => held().end_clean().expect("the disk is well"),
                "failed" => held().disk_failed().expect("the disk takes the mark"),
                other => unreachable!("{other}"),
            }
        }
        disk
    }

    #[test]
    fn the_last_end_is_told() {
        for (steps, expected) in [
            ("", LastEnd::PowerLost),
            ("begin", LastEnd::Killed),
            ("begin-elsewhere", LastEnd::PowerLost),
            ("begin-nowhere", LastEnd::PowerLost),
            ("begin clean", LastEnd::Clean),
            ("begin-elsewhere clean", LastEnd::Clean),
            ("begin failed", LastEnd::DiskFailed),
            ("begin clean begin", LastEnd::Killed),
            // Killed in the run after the failure: the untrustworthy page cache is still the same.
            ("begin failed begin", LastEnd::DiskFailed),
            ("begin failed begin begin", LastEnd::DiskFailed),
            ("begin failed begin clean", LastEnd::Clean),
            ("begin-elsewhere failed begin", LastEnd::Killed),
            ("begin failed begin-elsewhere", LastEnd::PowerLost),
        ] {
            assert_eq!(read(&marked(steps), HERE).expect("the disk is well"), expected, "{steps}");
        }
    }

    #[test]
    fn without_a_boot_id_nothing_is_trusted() {
        for steps in ["begin", "begin-nowhere"] {
            assert_eq!(read(&marked(steps), None).expect("the disk is well"), LastEnd::PowerLost, "{steps}");
        }
    }

    #[test]
    fn a_damaged_mark_is_not_trusted() {
        let sector = encode(Word::Running, HERE);
        for bit in 0..USED_BYTES * 8 {
            let mut flipped = sector;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&flipped), None, "bit {bit}");
        }
        for len in 0..USED_BYTES {
            assert_eq!(decode(&sector[..len]), None, "{len} bytes");
        }
        assert_eq!(decode(&sector), Some((Word::Running, HERE)));
    }

    #[test]
    fn a_crash_leaves_the_old_mark_or_the_new_one() {
        let mut random = Random(3);
        for (steps, next, allowed) in [
            ("begin clean", "begin", [LastEnd::Clean, LastEnd::Killed]),
            ("begin", "clean", [LastEnd::Killed, LastEnd::Clean]),
            ("begin", "failed", [LastEnd::Killed, LastEnd::DiskFailed]),
        ] {
            let disk = marked(steps);
            disk.watch();
            let end = match next {
                "clean" => begin(&disk, HERE).and_then(|mark| mark.end_clean()),
                "failed" => begin(&disk, HERE).and_then(|mark| mark.disk_failed()),
                _ => begin(&disk, HERE).map(drop),
            };
            end.expect("the disk is well");
            let mut seen = Vec::new();
            for state in disk.take_snapshots().iter().flat_map(|state| [state; 50]) {
                let left = SimDisk::new(state.crash(&mut random));
                let found = read(&left, HERE).expect("the disk is well");
                assert!(allowed.contains(&found), "{steps}, {next}: {found:?}");
                seen.push(found);
            }
            assert!(allowed.iter().all(|end| seen.contains(end)), "{steps}, {next}: {seen:?}");
        }
    }

    #[test]
    fn a_mark_that_is_there_takes_no_space_and_no_name() {
        let disk = marked("begin clean");
        let _ = disk.take_trace();
        let mark = begin(&disk, HERE).expect("the disk is well");
        mark.end_clean().expect("the disk is well");
        let calls: Vec<_> = disk.take_trace().into_iter().map(|(call, _, at, len)| (call, at, len)).collect();
        let sector = [(Call::Write, 0, SECTOR_BYTES), (Call::Sync, 0, 0)];
        assert_eq!(calls, [sector, sector].concat());
    }

    #[test]
    fn a_mark_that_cannot_be_synced_is_an_error_and_is_seen_in_this_boot() {
        let disk = SimDisk::default();
        let mark = begin(&disk, HERE).expect("the disk is well");
        disk.inject(Call::Sync, 0, DiskFault::Error(EIO));
        assert_eq!(mark.disk_failed().map_err(|error| error.raw_os_error()), Err(Some(EIO)));
        assert_eq!(read(&disk, HERE).expect("it can be read"), LastEnd::DiskFailed);
    }
}
