//! The lock that gives a store to one process at a time, and ends with the process, however it
//! ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// The name of the lock file, which stays when the lock is released.
pub(crate) const NAME: &str = "lock";

/// The lock of a folder, held until this value is dropped.
#[derive(Debug)]
pub(crate) struct FolderLock {
    file: File,
}

/// The reason why the lock cannot be taken.
#[derive(Debug)]
pub(crate) enum LockError {
    Disk(io::Error),
    /// Another process holds the lock; its id, if known.
    Held(Option<u32>),
}

impl FolderLock {
    /// Locks an existing folder and writes the id of this process into the lock file.
    pub(crate) fn take(folder: &Path) -> Result<FolderLock, LockError> {
        let path = folder.join(NAME);
        let options =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).clone();
        let mut file = open(options, &path).map_err(LockError::Disk)?;
        lock(&file, &path)?;
        let id = format!("{}\n", std::process::id());
        let written = file.set_len(0).and_then(|()| file.write_all(id.as_bytes()));
        written.map_err(LockError::Disk)?;
        Ok(FolderLock { file })
    }

    /// Locks the folder without changing anything; `None` if there is no lock file, so that no
    /// process can hold it.
    pub(crate) fn take_to_inspect(folder: &Path) -> Result<Option<FolderLock>, LockError> {
        let path = folder.join(NAME);
        match open(OpenOptions::new().read(true).clone(), &path) {
            Ok(file) => lock(&file, &path).map(|()| Some(FolderLock { file })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LockError::Disk(error)),
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // A child process being started may have inherited the file, and would otherwise keep the
        // lock.
        let _ = self.file.unlock();
    }
}

/// Opens the lock file without following a symbolic link, which could lead to a foreign file.
fn open(mut options: OpenOptions, path: &Path) -> io::Result<File> {
    let opened = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path);
    opened.map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::LOOP.raw_os_error() => io::Error::other(format!(
            "`{}` is a symbolic link, which the broker does not follow; remove it",
            path.display()
        )),
        _ => error,
    })
}

fn lock(file: &File, path: &Path) -> Result<(), LockError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let written = fs::read_to_string(path).ok();
            Err(LockError::Held(written.and_then(|text| text.trim().parse().ok())))
        }
        Err(TryLockError::Error(error)) => Err(LockError::Disk(error)),
    }
}
