//! The simulated disk of the journal, with the bugs planted between the two.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use imori_store::disk::sim_disk::{ENOSPC, SimDisk, SimFile};
use imori_store::disk::{Disk, DiskFile};

use crate::planted::Bug;

/// The disk of a run.
#[derive(Debug, Clone)]
pub(crate) struct Device {
    pub(crate) disk: SimDisk,
    /// The most bytes of all files together; other users of the disk take some and give them back.
    room_bytes: Arc<AtomicU64>,
    bug: Option<Bug>,
}

/// An open file on the disk.
#[derive(Debug, Clone)]
pub(crate) struct DeviceFile {
    file: SimFile,
    device: Device,
    is_segment: bool,
    is_manifest: bool,
}

impl Device {
    pub(crate) fn new(disk: SimDisk, bug: Option<Bug>) -> Device {
        Device { disk, room_bytes: Arc::new(AtomicU64::new(u64::MAX)), bug }
    }

    /// The most bytes of all files together.
    pub(crate) fn room_bytes(&self) -> u64 {
        self.room_bytes.load(Ordering::Relaxed)
    }

    /// Sets the most bytes of all files together; `u64::MAX` means no limit.
    pub(crate) fn set_room_bytes(&self, bytes: u64) {
        self.room_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The bytes of all files together.
    pub(crate) fn used_bytes(&self) -> io::Result<u64> {
        self.disk.list()?.iter().map(|name| self.disk.open(name)?.size()).sum()
    }

    fn file(&self, name: &str, file: SimFile) -> DeviceFile {
        let [is_segment, is_manifest] = ["segment-", "manifest-"].map(|kind| name.starts_with(kind));
        DeviceFile { file, device: self.clone(), is_segment, is_manifest }
    }
}

impl Disk for Device {
    type File = DeviceFile;

    fn create(&self, name: &str) -> io::Result<DeviceFile> {
        self.disk.create(name).map(|file| self.file(name, file))
    }

    fn open(&self, name: &str) -> io::Result<DeviceFile> {
        self.disk.open(name).map(|file| self.file(name, file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        match self.room_bytes() {
            u64::MAX => Ok(u64::MAX),
            bytes => Ok(bytes.saturating_sub(self.used_bytes()?)),
        }
    }

    fn sync_folder(&self) -> io::Result<()> {
        if self.bug == Some(Bug::FolderNotSynced) { Ok(()) } else { self.disk.sync_folder() }
    }
}

impl DiskFile for DeviceFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let grows_by = (offset + bytes.len() as u64).saturating_sub(self.size()?);
        if grows_by > 0 && grows_by > self.device.free_bytes()? {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        let written = self.file.write_at(bytes, offset);
        if self.device.bug == Some(Bug::ShortWriteIgnored) { written.map(|_| bytes.len()) } else { written }
    }

    fn sync_data(&self) -> io::Result<()> {
        match self.device.bug {
            Some(Bug::LyingFlush) => Ok(()),
            Some(Bug::SegmentNotSynced) if self.is_segment => Ok(()),
            Some(Bug::ManifestNotSynced) if self.is_manifest => Ok(()),
            Some(Bug::SyncTriedAgain) => self.file.sync_data().or_else(|_| self.file.sync_data()),
            _ => self.file.sync_data(),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }
}
