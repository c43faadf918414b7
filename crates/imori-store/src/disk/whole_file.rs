//! Reads files directly from the device or through the page cache.
//!
//! The page cache may show content that never reached the device: after a failed sync the kernel
//! drops the dirty state of pages but still shows them. Unless that is excluded, read the device.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use bytes::Bytes;
use rustix::fs::{Advice, OFlags, fadvise};
use rustix::io::Errno;

use crate::limits::{BLOCK_BYTES, READ_BYTES};

/// The source of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadFrom {
    /// The device, whatever the page cache has.
    #[default]
    Device,
    /// The page cache, if the caller knows that no write or sync has failed since the system
    /// started.
    Cache,
}

/// Opens a file for reads of whole blocks into block-aligned memory.
pub(crate) fn open(path: &Path, from: ReadFrom) -> io::Result<File> {
    if from == ReadFrom::Cache {
        return File::open(path);
    }
    let direct = OpenOptions::new().read(true).custom_flags(OFlags::DIRECT.bits().cast_signed()).open(path);
    match direct.and_then(|file| read_aligned(&file, BLOCK_BYTES).map(|_| file)) {
        Err(error) if is_refusal(&error) => open_uncached(path),
        opened => opened,
    }
}

/// Reads a file, or its first `bytes_max` bytes.
pub(crate) fn read(path: &Path, from: ReadFrom, bytes_max: usize) -> io::Result<Bytes> {
    read_aligned(&open(path, from)?, bytes_max)
}

/// Whether the error means that the file system does not support direct reads.
fn is_refusal(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [Errno::INVAL, Errno::NOTSUP].iter().any(|errno| code == Some(errno.raw_os_error()))
}

/// Opens a file for buffered reads after flushing and dropping its pages from the page cache.
fn open_uncached(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    file.sync_data()?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    Ok(file)
}

fn read_aligned(file: &File, bytes_max: usize) -> io::Result<Bytes> {
    let len = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?.min(bytes_max);
    read_with(len, |bytes, at| file.read_at(bytes, at))
}

/// Reads up to `len` bytes into block-aligned memory, as direct reads require.
pub(crate) fn read_with(
    len: usize,
    read_at: impl Fn(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<Bytes> {
    let room = len.next_multiple_of(BLOCK_BYTES);
    let mut bytes = vec![0; room + BLOCK_BYTES];
    let start = bytes.as_ptr().align_offset(BLOCK_BYTES);
    let aligned = bytes.get_mut(start..).and_then(|bytes| bytes.get_mut(..room));
    let aligned = aligned.ok_or(io::ErrorKind::OutOfMemory)?;
    let mut at = 0;
    // A read that is not a multiple of a block must be the last.
    while at < len && at.is_multiple_of(BLOCK_BYTES) {
        let end = room.min(at + READ_BYTES);
        match read_at(aligned.get_mut(at..end).unwrap_or_default(), at as u64) {
            Ok(0) => break,
            Ok(read) => at += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Bytes::from(bytes).slice(start..start + at.min(len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_direct_reads_is_read_in_another_way_and_no_other_error_is() {
        for (errno, expected) in [
            (Errno::INVAL, true),
            (Errno::NOTSUP, true),
            (Errno::IO, false),
            (Errno::ACCESS, false),
            (Errno::NOENT, false),
        ] {
            let error = io::Error::from_raw_os_error(errno.raw_os_error());
            assert_eq!(is_refusal(&error), expected, "{error}");
        }
        assert!(!is_refusal(&io::Error::other("it has no number")));
    }

    #[test]
    fn all_ways_read_the_same() {
        let name = format!("../../target/store-whole-file-{}", std::process::id());
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        let lens = [0, 1, 4096, 5000, READ_BYTES, 2 * READ_BYTES + 4097];
        for (len, max) in lens.map(|len| (len, usize::MAX)).into_iter().chain([(9000, 8192), (5000, 8192)]) {
            let mut expected: Vec<u8> = (0..len).map(|at| (at / 7) as u8).collect();
            std::fs::write(&path, &expected).expect("it can be written");
            expected.truncate(max);
            for (way, read) in [
                ("device", read(&path, ReadFrom::Device, max)),
                ("cache", read(&path, ReadFrom::Cache, max)),
                ("without direct reads", open_uncached(&path).and_then(|file| read_aligned(&file, max))),
            ] {
                assert!(read.expect("it can be read") == expected, "{len} bytes, {way}");
            }
        }
        std::fs::remove_file(&path).expect("it is there");
    }
}
