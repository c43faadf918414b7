//! The disk fails: nothing is promised any more, the end is marked, the broker ends.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use imori_store::folder::StoreFolder;
use tracing::{error, warn};

use crate::shared::Shared;
use crate::slots::unpoisoned;

/// Whether the disk failed, and who is told.
#[derive(Debug)]
pub(super) struct Failure {
    folder: StoreFolder,
    shared: OnceLock<Weak<Shared>>,
    cause: Mutex<Option<String>>,
}

impl Failure {
    /// Nothing has failed in this folder yet.
    pub(super) fn new(folder: StoreFolder) -> Failure {
        Failure { folder, shared: OnceLock::new(), cause: Mutex::new(None) }
    }

    /// The folder of the store.
    pub(super) fn folder(&self) -> &StoreFolder {
        &self.folder
    }

    /// Says which broker ends if the disk fails.
    pub(super) fn ends(&self, shared: &Arc<Shared>) {
        let _ = self.shared.set(Arc::downgrade(shared));
    }

    /// A write or a sync failed, in what is called so.
    pub(super) fn tell(&self, what: &'static str, cause: &io::Error) {
        let errno = cause.raw_os_error();
        let folder = self.folder.path().display();
        error!(
            error = %cause, errno, what, %folder,
            "the disk failed: nothing is confirmed any more and the broker ends; check the disk, then start again"
        );
        unpoisoned(self.cause.lock()).get_or_insert_with(|| cause.to_string());
        if let Some(shared) = self.shared.get().and_then(Weak::upgrade) {
            shared.fail_of_disk(&format!("the disk of `{folder}` failed: {cause}"));
        }
        if let Err(error) = self.folder.disk_failed() {
            warn!(%error, "the failure cannot be marked; what the last process wrote is written anew in any case");
        }
    }

    /// Marks that all is written, unless something failed.
    pub(super) fn end_clean(&self) {
        if unpoisoned(self.cause.lock()).is_some() {
            return;
        }
        if let Err(error) = self.folder.end_clean() {
            warn!(%error, "the end cannot be marked as a clean one; the next start takes all messages for redelivered");
        }
    }
}
