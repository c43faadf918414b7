//! Reacts to a failing disk: nothing more is confirmed, the failure is marked, and the broker ends.

use std::fmt;
use std::io;
use std::sync::{Mutex, OnceLock};

use imori_store::folder::StoreFolder;
use tracing::{error, warn};

use crate::slots::unpoisoned;

/// Ends the broker for the given reason.
pub(crate) type EndOfBroker = Box<dyn Fn(&str) + Send + Sync>;

/// Whether the disk failed, and the function that ends the broker then.
pub(super) struct Failure {
    folder: StoreFolder,
    end: OnceLock<EndOfBroker>,
    cause: Mutex<Option<String>>,
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure").field("folder", &self.folder).field("cause", &self.cause).finish()
    }
}

impl Failure {
    /// Starts without a failure, for the store in `folder`.
    pub(super) fn new(folder: StoreFolder) -> Failure {
        Failure { folder, end: OnceLock::new(), cause: Mutex::new(None) }
    }

    /// The folder of the store.
    pub(super) fn folder(&self) -> &StoreFolder {
        &self.folder
    }

    /// Sets the function that ends the broker if the disk fails.
    pub(super) fn ends(&self, end: EndOfBroker) {
        let _ = self.end.set(end);
    }

    /// Whether a write or sync has failed.
    pub(super) fn has_failed(&self) -> bool {
        unpoisoned(self.cause.lock()).is_some()
    }

    /// Reports a failed write or sync of `what`: logs it, ends the broker and marks the folder.
    pub(super) fn tell(&self, what: &'static str, cause: &io::Error) {
        let errno = cause.raw_os_error();
        let folder = self.folder.path().display();
        error!(
            error = %cause, errno, what, %folder,
            "the disk failed: nothing is confirmed any more and the broker ends; check the disk, then start again"
        );
        unpoisoned(self.cause.lock()).get_or_insert_with(|| cause.to_string());
        if let Some(end) = self.end.get() {
            end(&format!("the disk of `{folder}` failed: {cause}"));
        }
        if let Err(error) = self.folder.disk_failed() {
            warn!(%error, "the failure cannot be marked; what the last process wrote is written anew in any case");
        }
    }

    /// Marks a clean end, unless something failed.
    pub(super) fn end_clean(&self) {
        if unpoisoned(self.cause.lock()).is_some() {
            return;
        }
        if let Err(error) = self.folder.end_clean() {
            warn!(%error, "the end cannot be marked as a clean one; the next start takes all messages for redelivered");
        }
    }
}
