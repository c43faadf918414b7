//! The disk operations that the store needs, and their implementation on the real disk.
//!
//! Every access names its offset, nothing is buffered, and a name is durable only after
//! `sync_folder`.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::whole_file::{self, ReadFrom};

/// A folder of files.
pub trait Disk: Send + Sync + 'static {
    /// An open file.
    type File: DiskFile;

    /// Creates an empty file; the name must not exist.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file for reading from the device or through the cache. A disk without a cache
    /// ignores the choice.
    fn open_to_read(&self, name: &str, _from: ReadFrom) -> io::Result<Self::File> {
        self.open(name)
    }

    /// Reads a file, or its first `bytes_max` bytes. A disk without a cache ignores `_from`.
    fn read(&self, name: &str, _from: ReadFrom, bytes_max: usize) -> io::Result<Bytes> {
        let mut bytes = read_all(&self.open(name)?)?;
        bytes.truncate(bytes_max);
        Ok(Bytes::from(bytes))
    }

    /// The number of free bytes on the disk.
    fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    /// Renames a file.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// The names of all files, sorted.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes all creations, renames and removals of files durable.
    fn sync_folder(&self) -> io::Result<()>;
}

/// An open file, which may be used from several threads.
pub trait DiskFile: Send + Sync + 'static {
    /// Reads at `offset`, possibly fewer bytes than `bytes` holds; returns 0 at the end.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at `offset`, possibly only part of `bytes`; returns the number of bytes written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Makes all written bytes durable on the device (`fdatasync`).
    fn sync_data(&self) -> io::Result<()>;

    /// The length in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Sets the length: truncates the file, or appends zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Punches a hole, which reads as zeros; false if the disk does not support holes.
    fn punch_holes(&self, _part: Range<u64>) -> io::Result<bool> {
        Ok(false)
    }
}

/// A folder of the operating system.
#[derive(Debug, Clone)]
pub struct RealDisk {
    folder: PathBuf,
    /// The opened folder itself, kept so that it can be synced when the process has no descriptors
    /// left.
    handle: Arc<OnceLock<File>>,
}

impl RealDisk {
    /// The disk for the files in `folder`, which must exist.
    #[must_use]
    pub fn new(folder: PathBuf) -> RealDisk {
        RealDisk { folder, handle: Arc::default() }
    }
}

impl Disk for RealDisk {
    type File = File;

    fn create(&self, name: &str) -> io::Result<File> {
        // The folder may come from an earlier build or an operator, and be open to others.
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(self.folder.join(name))
    }

    fn open(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(self.folder.join(name))
    }

    fn open_to_read(&self, name: &str, from: ReadFrom) -> io::Result<File> {
        whole_file::open(&self.folder.join(name), from)
    }

    fn read(&self, name: &str, from: ReadFrom, bytes_max: usize) -> io::Result<Bytes> {
        whole_file::read(&self.folder.join(name), from, bytes_max)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let found = rustix::fs::statvfs(&self.folder)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.folder.join(from), self.folder.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.folder.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            // The store's own names are ASCII, so any other name is not one of them.
            names.extend(entry?.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn sync_folder(&self) -> io::Result<()> {
        if let Some(folder) = self.handle.get() {
            return folder.sync_all();
        }
        let folder = File::open(&self.folder)?;
        folder.sync_all()?;
        let _ = self.handle.set(folder);
        Ok(())
    }
}

impl DiskFile for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn punch_holes(&self, part: Range<u64>) -> io::Result<bool> {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(self, hole, part.start, part.end.saturating_sub(part.start)) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Whether the error is a lack of a resource that can come back: disk space or file descriptors.
#[must_use]
pub fn is_out_of_resources(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        || is_out_of_descriptors(error)
}

/// Tells whether the process, or the system, can open no further file now.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    let descriptors = [Errno::MFILE, Errno::NFILE].map(|errno| Some(errno.raw_os_error()));
    descriptors.contains(&error.raw_os_error())
}

/// Writes all of `bytes`. Interrupted writes are repeated; a write of zero bytes is an error.
pub(crate) fn write_all(file: &impl DiskFile, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::WriteZero, "the disk takes no more bytes")),
            Ok(written) => {
                bytes = bytes.get(written..).unwrap_or_default();
                offset += written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads a whole file.
pub(crate) fn read_all(file: &impl DiskFile) -> io::Result<Vec<u8>> {
    let size = usize::try_from(file.size()?).map_err(io::Error::other)?;
    let mut bytes = vec![0; size];
    let read = read_up_to(file, &mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Reads until `bytes` is full or the file ends; returns the number of bytes read.
pub(crate) fn read_up_to(file: &impl DiskFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut at = 0;
    while let Some(rest) = bytes.get_mut(at..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + at as u64) {
            Ok(0) => break,
            Ok(read) => at += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_space_of_a_part_is_given_back_where_the_disk_has_holes() {
        let folder = std::env::temp_dir().join(format!("imori-holes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("there is a folder for temporary files");
        let file = RealDisk::new(folder.clone()).create("a").expect("it takes a file");
        write_all(&file, &[7; 64 << 10], 0).expect("the disk is well");
        file.sync_data().expect("the disk is well");
        let blocks = |file: &File| file.metadata().expect("it is there").blocks();
        let before = blocks(&file);
        let is_hole = file.punch_holes(8 << 10..40 << 10).expect("the disk is well");
        let mut bytes = vec![1; 64 << 10];
        read_up_to(&file, &mut bytes, 0).expect("the disk is well");
        std::fs::remove_dir_all(&folder).expect("it is there");
        let byte = if is_hole { 0 } else { 7 };
        assert!(bytes[8 << 10..40 << 10].iter().all(|found| *found == byte));
        assert!(bytes[..8 << 10].iter().chain(&bytes[40 << 10..]).all(|found| *found == 7));
        assert_eq!(file.size().ok(), Some(64 << 10));
        assert!(!is_hole || blocks(&file) < before, "{} blocks of {before}", blocks(&file));
    }
}
