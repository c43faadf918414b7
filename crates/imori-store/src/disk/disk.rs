//! What the store needs of a disk, and the real one.
//!
//! Everything is positioned, nothing is buffered, and a name is durable only after `sync_folder`.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
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

    /// Makes an empty file; there is none of this name.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file to read and write it.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file to read it from the device, or through the cache; without a cache there is one place to read
    /// from.
    fn open_to_read(&self, name: &str, _from: ReadFrom) -> io::Result<Self::File> {
        self.open(name)
    }

    /// Reads a file, or the first `bytes_max` of it; without a cache there is one place to read from.
    fn read(&self, name: &str, _from: ReadFrom, bytes_max: usize) -> io::Result<Bytes> {
        let mut bytes = read_all(&self.open(name)?)?;
        bytes.truncate(bytes_max);
        Ok(Bytes::from(bytes))
    }

    /// The bytes that files may still take, if there is an end to them.
    fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    /// Gives a file another name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Takes a file away.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// The names of all files, sorted.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes names durable: those of new files, changed ones, and that there are none.
    fn sync_folder(&self) -> io::Result<()>;
}

/// An open file; its calls may come from several threads.
pub trait DiskFile: Send + Sync + 'static {
    /// Reads at `offset`, perhaps less than `bytes` holds; 0 is the end.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at `offset`, perhaps less than all, and says how much.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Returns when all that was written is on the device (`fdatasync`).
    fn sync_data(&self) -> io::Result<()>;

    /// The length in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Cuts it off, or adds zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Gives the space of a part of it back, which reads as zeros then; false where the disk has no such thing.
    fn give_back(&self, _part: Range<u64>) -> io::Result<bool> {
        Ok(false)
    }
}

/// A folder of the operating system.
#[derive(Debug, Clone)]
pub struct RealDisk {
    folder: PathBuf,
    /// The folder itself, opened once: it is synced when a process that has no descriptor left may have to.
    handle: Arc<OnceLock<File>>,
}

impl RealDisk {
    /// The files in `folder`, which exists.
    #[must_use]
    pub fn new(folder: PathBuf) -> RealDisk {
        RealDisk { folder, handle: Arc::default() }
    }
}

impl Disk for RealDisk {
    type File = File;

    fn create(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(self.folder.join(name))
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
            // The store's own names are plain; what is not UTF-8 is none of them.
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

    fn give_back(&self, part: Range<u64>) -> io::Result<bool> {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(self, hole, part.start, part.end.saturating_sub(part.start)) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Tells whether something is lacking that can come back: space, or descriptors of the process.
#[must_use]
pub fn is_scarce(error: &io::Error) -> bool {
    let descriptors = [Errno::MFILE, Errno::NFILE].map(|errno| Some(errno.raw_os_error()));
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        || descriptors.contains(&error.raw_os_error())
}

/// Writes all of `bytes`; a write that goes no further is an error, one that was interrupted is not.
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

/// Reads a file whole.
pub(crate) fn read_all(file: &impl DiskFile) -> io::Result<Vec<u8>> {
    let size = usize::try_from(file.size()?).map_err(io::Error::other)?;
    let mut bytes = vec![0; size];
    let read = read_up_to(file, &mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Reads until `bytes` is full or the file ends, and says how many there were.
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
        let is_given_back = file.give_back(8 << 10..40 << 10).expect("the disk is well");
        let mut bytes = vec![1; 64 << 10];
        read_up_to(&file, &mut bytes, 0).expect("the disk is well");
        std::fs::remove_dir_all(&folder).expect("it is there");
        let byte = if is_given_back { 0 } else { 7 };
        assert!(bytes[8 << 10..40 << 10].iter().all(|found| *found == byte));
        assert!(bytes[..8 << 10].iter().chain(&bytes[40 << 10..]).all(|found| *found == 7));
        assert_eq!(file.size().ok(), Some(64 << 10));
        assert!(!is_given_back || blocks(&file) < before, "{} blocks of {before}", blocks(&file));
    }
}
