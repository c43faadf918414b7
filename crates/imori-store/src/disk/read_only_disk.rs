//! A view of a folder that can only be read.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use bytes::Bytes;

use super::disk::{Disk, RealDisk};
use super::whole_file::ReadFrom;

/// The files of a folder, opened read-only.
#[derive(Debug, Clone)]
pub struct ReadOnlyDisk {
    folder: PathBuf,
}

impl ReadOnlyDisk {
    /// The disk for the files in `folder`, which must exist.
    #[must_use]
    pub fn new(folder: PathBuf) -> ReadOnlyDisk {
        ReadOnlyDisk { folder }
    }
}

impl Disk for ReadOnlyDisk {
    type File = File;

    fn create(&self, _name: &str) -> io::Result<File> {
        Err(refused())
    }

    fn open(&self, name: &str) -> io::Result<File> {
        File::open(self.folder.join(name))
    }

    fn open_to_read(&self, name: &str, from: ReadFrom) -> io::Result<File> {
        RealDisk::new(self.folder.clone()).open_to_read(name, from)
    }

    fn read(&self, name: &str, from: ReadFrom, bytes_max: usize) -> io::Result<Bytes> {
        RealDisk::new(self.folder.clone()).read(name, from, bytes_max)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        RealDisk::new(self.folder.clone()).free_bytes()
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(refused())
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Err(refused())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        RealDisk::new(self.folder.clone()).list()
    }

    fn sync_folder(&self) -> io::Result<()> {
        Err(refused())
    }
}

fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "the store is only looked at")
}
