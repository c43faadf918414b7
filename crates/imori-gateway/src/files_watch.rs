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

/// A file, when it was last changed, and its length; nothing for one that is not there.
type Stamp = (PathBuf, Option<(SystemTime, u64)>);

/// Reads files again once they have changed and are no longer being written, until what depends on them is gone.
pub(crate) async fn follow(followed: Weak<impl Followed>) {
    let Some(mut read) = followed.upgrade().map(|followed| stamps(followed.files(), &[])) else { return };
    let mut seen = read.clone();
    loop {
        sleep(FILES_LOOK).await;
        let Some(followed) = followed.upgrade() else { return };
        let now = stamps(followed.files(), &[]);
        if now != read && now == seen {
            followed.read_again();
            // A file that changes while it is read keeps its earlier stamp, and is read again.
            read = stamps(followed.files(), &now);
            seen = read.clone();
        } else {
            seen = now;
        }
    }
}

/// The stamps of files, those that are known as they are known.
fn stamps(files: Vec<PathBuf>, known: &[Stamp]) -> Vec<Stamp> {
    let stamp = |path: PathBuf| match known.iter().find(|(known, _)| *known == path) {
        Some(known) => known.clone(),
        None => {
            let metadata = fs::metadata(&path).ok();
            let facts = metadata.and_then(|metadata| Some((metadata.modified().ok()?, metadata.len())));
            (path, facts)
        }
    };
    files.into_iter().map(stamp).collect()
}
