//! The canary that writes 4 KiB and syncs them.
//!
//! It has a folder of its own on the broker's file system, and removes it at its end.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::clock::Clock;
use crate::probe::canary::{Canary, Late};
use crate::probe::usual::Usual;

/// Pause between two writes.
const EVERY: Duration = Duration::from_millis(100);

/// Nanoseconds below which a sync is no evidence. It is less than the shortest stall, because a
/// write near the end of a stall waits only briefly.
const LONG_NANOS: u64 = 10_000_000;

/// Bytes per write.
const BLOCK_BYTES: u64 = 4096;

/// Blocks after which the file is overwritten from its start, so that it stays at 1 MiB.
const BLOCKS: u64 = 256;

/// Starts the canary in a new folder within `within`. A failure to write is evidence, not an error.
pub(crate) fn start(
    canary: Arc<Canary>,
    within: &Path,
    clock: Clock,
    is_over: Arc<AtomicBool>,
) -> Result<JoinHandle<()>> {
    let folder = within.join(format!("imori-bench-canary-{}", std::process::id()));
    std::thread::Builder::new()
        .name("disk-canary".to_owned())
        .spawn(move || {
            let nest = match Nest::new(folder) {
                Ok(nest) => nest,
                Err(error) => return canary.fails(format!("{error:#}")),
            };
            let mut usual = Usual::new(LONG_NANOS);
            let mut answered = clock.now();
            for number in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let asked = clock.now();
                canary.asks(asked);
                if let Err(error) = nest.write(number) {
                    return canary.fails(format!("`{}` cannot be written: {error}", nest.folder.display()));
                }
                let done = clock.now();
                let wait = Late { blind_since: answered, ..Late::new(asked, done) };
                canary.waited(wait, usual.is_long(done - asked));
                answered = done;
                sleep(EVERY);
            }
        })
        .context("no thread can be started; raise the limit of processes")
}

/// The canary's folder and file, which are deleted with it.
struct Nest {
    folder: PathBuf,
    file: File,
}

impl Nest {
    fn new(folder: PathBuf) -> Result<Nest> {
        let shown = folder.display().to_string();
        let how = || format!("`{shown}` cannot be written; name a folder with `--disk-canary`");
        fs::create_dir_all(&folder).with_context(how)?;
        let file = File::create(folder.join("canary")).with_context(how)?;
        let nest = Nest { folder, file };
        // A sync of a growing file also waits for the file system's journal, which a broker avoids
        // by writing into preallocated files.
        let whole = vec![0; (BLOCKS * BLOCK_BYTES) as usize];
        nest.file.write_all_at(&whole, 0).and_then(|()| nest.file.sync_all()).with_context(how)?;
        Ok(nest)
    }

    fn write(&self, number: u64) -> std::io::Result<()> {
        let block = [number as u8; BLOCK_BYTES as usize];
        self.file.write_all_at(&block, number % BLOCKS * BLOCK_BYTES)?;
        self.file.sync_data()
    }
}

impl Drop for Nest {
    fn drop(&mut self) {
        // A leftover folder is recognizable by its name and does no harm.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::canary::CanaryKind;

    #[test]
    fn it_writes_and_leaves_nothing_behind() {
        let within = std::env::temp_dir().join(format!("imori-bench-disk-{}", std::process::id()));
        fs::create_dir_all(&within).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let canary = Arc::new(Canary::new(CanaryKind::Disk));
        let thread = start(Arc::clone(&canary), &within, Clock::start(), Arc::clone(&is_over)).unwrap();
        while canary.record().worst_us(0, u64::MAX / 2).is_none() {
            std::thread::yield_now();
        }
        assert_eq!(fs::read_dir(&within).unwrap().count(), 1);
        is_over.store(true, Ordering::Relaxed);
        thread.join().unwrap();
        assert_eq!((fs::read_dir(&within).unwrap().count(), canary.record().failure.clone()), (0, None));
        fs::remove_dir(within).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_evidence() {
        let canary = Arc::new(Canary::new(CanaryKind::Disk));
        let thread = start(Arc::clone(&canary), Path::new("/proc"), Clock::start(), Arc::default()).unwrap();
        thread.join().unwrap();
        let failure = canary.record().failure.clone().unwrap();
        assert!(failure.contains("--disk-canary"), "{failure}");
    }
}
