//! Notices when a routes file or one of its scripts changes.

use std::fs;
use std::path::PathBuf;
use std::sync::Weak;
use std::time::SystemTime;

use tokio::time::sleep;

use crate::limits::FILES_LOOK;

/// What depends on files.
pub(crate) trait Followed: Send + Sync {
    /// The files.
    fn files(&self) -> Vec<PathBuf>;

    /// Reads them again.
    fn read_again(&self);
}

type Stamp = Vec<Option<(SystemTime, u64)>>;

/// Reads files again once they have changed and are no longer being written, until what depends on them is gone.
pub(crate) async fn follow(followed: Weak<impl Followed>) {
    let Some(mut read) = followed.upgrade().map(|followed| stamp(&followed.files())) else { return };
    let mut seen = read.clone();
    loop {
        sleep(FILES_LOOK).await;
        let Some(followed) = followed.upgrade() else { return };
        let now = stamp(&followed.files());
        if now != read && now == seen {
            followed.read_again();
            read = stamp(&followed.files());
            seen = read.clone();
        } else {
            seen = now;
        }
    }
}

fn stamp(files: &[PathBuf]) -> Stamp {
    let facts = |path: &PathBuf| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    files.iter().map(facts).collect()
}
