//! Tests of the pool on a full disk: which errors it waits for, and which are failures.

use std::io;

use bytes::Bytes;

use super::crash::settings;
use super::pool::{FileRequest, JobOutcome, Pool};
use crate::disk::sim_disk::{Call, DiskFault, EIO, ENOSPC, SimDisk, SimFile};
use crate::disk::{Disk, ReadFrom};
use crate::limits::READY_FILES;

const EMFILE: i32 = 24;
const ENOENT: i32 = 2;

/// A disk that fails to create or remove files with these error codes.
#[derive(Clone)]
struct FullDisk {
    disk: SimDisk,
    create: Option<i32>,
    remove: Option<i32>,
}

impl Disk for FullDisk {
    type File = SimFile;

    fn create(&self, name: &str) -> io::Result<SimFile> {
        self.create.map_or_else(|| self.disk.create(name), |code| Err(io::Error::from_raw_os_error(code)))
    }

    fn open(&self, name: &str) -> io::Result<SimFile> {
        self.disk.open(name)
    }

    fn read(&self, name: &str, from: ReadFrom, bytes_max: usize) -> io::Result<Bytes> {
        self.disk.read(name, from, bytes_max)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.remove.map_or_else(|| self.disk.remove(name), |code| Err(io::Error::from_raw_os_error(code)))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.disk.sync_folder()
    }
}

/// Creates the first file of a pool: false for lack of space, or the code of another error.
fn first(disk: &FullDisk) -> Result<bool, Option<i32>> {
    let job = Pool::new(settings(None), 1, 1).next_job().expect("there is none yet");
    let made = job.run(disk, &|| true).map_err(|error| error.raw_os_error())?;
    Ok(matches!(made, JobOutcome::Ready(_)))
}

#[test]
fn a_file_that_cannot_be_made_for_want_of_something_is_waited_for_and_else_is_a_failure() {
    for (create, write, remove, expected) in [
        (None, None, None, Ok(true)),
        (None, Some(ENOSPC), None, Ok(false)),
        (None, Some(EIO), None, Err(Some(EIO))),
        (Some(EMFILE), None, None, Ok(false)),
        (Some(EIO), None, None, Err(Some(EIO))),
        // A missing file need not be removed, but one that cannot be removed is a failure.
        (Some(EMFILE), None, Some(ENOENT), Ok(false)),
        (None, Some(ENOSPC), Some(ENOENT), Ok(false)),
        (None, Some(ENOSPC), Some(EIO), Err(Some(EIO))),
    ] {
        let disk = FullDisk { disk: SimDisk::default(), create, remove };
        if let Some(code) = write {
            disk.disk.inject(Call::Write, 0, DiskFault::Error(code));
        }
        assert_eq!(first(&disk), expected, "create {create:?}, write {write:?}, remove {remove:?}");
    }
}

#[test]
fn no_file_is_made_of_what_is_reserved_for_others() {
    for (free_bytes, is_made) in [(1 << 20, true), (100, false)] {
        let disk = SimDisk::default();
        disk.set_free_bytes(free_bytes);
        let settings = settings(None).keeping_free(1000);
        let job = Pool::<SimFile>::new(settings, 1, 1).next_job().expect("there is none yet");
        let made = job.run(&disk, &|| true).expect("that is no failure");
        assert_eq!(matches!(made, JobOutcome::Ready(_)), is_made, "{free_bytes} are free");
        assert_eq!((disk.state().names().len(), disk.trace().is_empty()), (usize::from(is_made), !is_made));
    }
}

#[test]
fn what_is_freed_is_made_ready_while_there_is_no_space_and_publishers_wait_for_that() {
    let disk = SimDisk::default();
    let mut pool = Pool::new(settings(None), 1, 1);
    let mut used = Vec::new();
    for _ in 0..READY_FILES {
        let job = pool.next_job().expect("too few are ready");
        pool.done(job.run(&disk, &|| true).expect("the disk is well"));
    }
    while let Some(file) = pool.take(|| FileRequest { unit_bytes: 1, freeing_bytes: None }) {
        used.push(file);
    }
    assert!(!pool.has_ready());
    pool.next_job().expect("none is ready");
    pool.done(JobOutcome::NoSpace);
    // Used files become free one by one, and are made ready without new space.
    for ready in 1..=READY_FILES {
        assert!(pool.is_stalled(), "{} are ready", ready - 1);
        pool.free(used.pop().expect("it was in use"));
        let job = pool.next_job().expect("one is free");
        pool.done(job.run(&disk, &|| true).expect("the disk is well"));
        assert!(pool.has_ready());
    }
    assert!(pool.is_stalled(), "what was freed is for settles");
    pool.retry();
    assert!(!pool.is_stalled());
}
