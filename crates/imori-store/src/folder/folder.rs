//! The data folder of a store.
//!
//! It holds `lock`, `store` (the store's id), `run` (how the last process ended), `damage`
//! (unacknowledged findings), `definitions.redb`, and the folders `journal/` and `segments/`.

use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::folder_lock::{FolderLock, LockError};
use super::identity::{self, IdentityError};
use super::run_mark::{self, BootId, LastEnd, RunMark};
use crate::definitions;
use crate::disk::{Disk as _, ReadOnlyDisk, RealDisk};
use crate::seal::StoreId;
use crate::settings::OnDamage;

/// The folder of journal files.
pub const JOURNAL: &str = "journal";

/// The folder of segments.
pub const SEGMENTS: &str = "segments";

/// The file in which the kernel identifies this boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The mode bits that give others access to a folder.
const OTHERS: u32 = 0o077;

/// The reason why a folder cannot be used as a store.
#[derive(Debug)]
pub enum FolderError {
    /// The operating system returned an error.
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// Another process uses the folder.
    Held {
        /// The folder.
        path: PathBuf,
        /// The id of that process, if known.
        process: Option<u32>,
    },
    /// The id of the store cannot be read.
    Identity {
        /// The folder.
        path: PathBuf,
        /// The cause.
        error: IdentityError,
    },
    /// The folder has files of a store, but its id is missing.
    NoIdentity {
        /// The folder.
        path: PathBuf,
        /// One of those files.
        found: String,
    },
    /// Folders of the store are missing, and the settings refuse to open it then. Nothing was
    /// changed.
    Missing {
        /// The folder.
        path: PathBuf,
        /// The missing folders.
        names: Vec<&'static str>,
    },
    /// The folder contains no store.
    Absent {
        /// The folder.
        path: PathBuf,
    },
    /// The disk has failed in this run, so that the run cannot be marked as ended cleanly.
    DiskFailed,
}

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FolderError::Disk { path, error } => {
                write!(f, "`{}` cannot be used: {error}; check the folder and its disk", path.display())
            }
            FolderError::Held { path, process: Some(process) } => write!(
                f,
                "process `{process}` has the data folder `{}`; stop it, or use another folder",
                path.display()
            ),
            FolderError::Held { path, process: None } => write!(
                f,
                "another process has the data folder `{}`; stop it, or use another folder",
                path.display()
            ),
            FolderError::Identity { path, error } => write!(f, "data folder `{}`: {error}", path.display()),
            FolderError::NoIdentity { path, found } => write!(
                f,
                "data folder `{}` has `{found}` and no file `{}`; restore that file, or use an empty folder",
                path.display(),
                identity::NAME
            ),
            FolderError::Missing { path, names } => {
                write!(f, "data folder `{}` ", path.display())?;
                for name in names {
                    write!(f, "has lost its folder `{name}/`, ")?;
                }
                write!(
                    f,
                    "with all that stood there; restore the whole folder from a copy, or {}",
                    OnDamage::TO_GO_ON
                )
            }
            FolderError::Absent { path } => {
                write!(f, "there is no store in `{}`; give the folder of a broker", path.display())
            }
            FolderError::DiskFailed => {
                f.write_str("the disk failed, so that nobody may believe the end to be clean; check the disk")
            }
        }
    }
}

impl std::error::Error for FolderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FolderError::Disk { error, .. } => Some(error),
            // The sentence has the error itself in it.
            FolderError::Identity { error, .. } => error.source(),
            _ => None,
        }
    }
}

/// The folder of a store, locked by this process.
#[derive(Debug)]
pub struct StoreFolder {
    path: PathBuf,
    journal: RealDisk,
    segments: RealDisk,
    store: StoreId,
    last_end: LastEnd,
    missing: Vec<&'static str>,
    is_open_to_others: bool,
    mark: RunMark<File>,
    has_failed: AtomicBool,
    _lock: FolderLock,
}

impl StoreFolder {
    /// Locks the folder, creates it if necessary, and marks durably that it is in use.
    ///
    /// A process that ends without [`StoreFolder::end_clean`] counts as killed. Missing folders of
    /// an existing store are created only if the settings allow to continue after damage.
    pub fn open(path: &Path, on_damage: OnDamage) -> Result<StoreFolder, FolderError> {
        let disk = |error| FolderError::Disk { path: path.to_owned(), error };
        make(path).map_err(disk)?;
        let lock = FolderLock::take(path).map_err(|error| held(path, error))?;
        let is_open_to_others = is_open_to_others(path).map_err(disk)?;
        let root = RealDisk::new(path.to_owned());
        let known = identity_in(path)?;
        let mut missing = missing(path);
        if known.is_none() {
            missing.clear();
        } else if !missing.is_empty() && on_damage == OnDamage::Refuse {
            return Err(FolderError::Missing { path: path.to_owned(), names: missing });
        }
        // Create them before the identity, so that a store with an id has had its folders.
        for name in [JOURNAL, SEGMENTS] {
            make(&path.join(name)).map_err(disk)?;
        }
        root.sync_folder().map_err(disk)?;
        let (store, is_new) = match known {
            Some(store) => (store, false),
            None => {
                let store = random_store().map_err(disk)?;
                identity::write(&root, store).map_err(disk)?;
                (store, true)
            }
        };
        let boot = boot();
        let last_end = match is_new {
            true => LastEnd::First,
            false => run_mark::read(&root, boot).map_err(disk)?,
        };
        let mark = run_mark::begin(&root, boot).map_err(disk)?;
        let [journal, segments] = [JOURNAL, SEGMENTS].map(|name| RealDisk::new(path.join(name)));
        // This opens both folders, so that they can be synced without a new descriptor.
        journal.sync_folder().and_then(|()| segments.sync_folder()).map_err(disk)?;
        let (path, has_failed) = (path.to_owned(), AtomicBool::new(false));
        Ok(StoreFolder {
            path,
            journal,
            segments,
            store,
            last_end,
            missing,
            is_open_to_others,
            mark,
            has_failed,
            _lock: lock,
        })
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The disk for the files in the folder itself, such as the definitions.
    #[must_use]
    pub fn root(&self) -> RealDisk {
        RealDisk::new(self.path.clone())
    }

    /// The disk for the journal files.
    #[must_use]
    pub fn journal(&self) -> RealDisk {
        self.journal.clone()
    }

    /// The disk for the segments.
    #[must_use]
    pub fn segments(&self) -> RealDisk {
        self.segments.clone()
    }

    /// The id of the store.
    #[must_use]
    pub fn store(&self) -> StoreId {
        self.store
    }

    /// The way in which the previous process ended.
    #[must_use]
    pub fn last_end(&self) -> LastEnd {
        self.last_end
    }

    /// Folders that were missing at the opening and have been created empty.
    #[must_use]
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// Whether others than the owner may read the folder, which deserves a warning.
    #[must_use]
    pub fn is_open_to_others(&self) -> bool {
        self.is_open_to_others
    }

    /// Marks durably that everything is written. Must be the last step before the folder is
    /// released.
    pub fn end_clean(&self) -> Result<(), FolderError> {
        if self.has_failed.load(Ordering::Acquire) {
            return Err(FolderError::DiskFailed);
        }
        let marked = self.mark.end_clean();
        marked.map_err(|error| FolderError::Disk { path: self.path.clone(), error })
    }

    /// Marks, as far as possible, that a write or a sync failed. May take as long as the disk does.
    ///
    /// Safety must not depend on a mark that a failing disk has to store, and it does not:
    ///
    /// - The page cache lives as long as the boot. In another boot only a clean mark is believed,
    ///   and after this call no clean mark is written.
    /// - In this boot the next process reads the mark through the same page cache, so the write
    ///   suffices. The sync only matters if the cache drops the mark.
    /// - If the sector cannot be written, the mark is removed; a missing mark counts as a power
    ///   loss.
    /// - If that fails too, the file system refuses every change. The next process cannot lock the
    ///   folder before a new mount, which drops the cache. Only a file system that was merely
    ///   remounted writable keeps its cache, and only there [`LastEnd::Killed`] can follow a failed
    ///   sync.
    ///
    /// Therefore [`LastEnd::Killed`] permits reads through the page cache, but never trust in the
    /// last writes: opening writes and syncs the last journal file and the ready ones again. A
    /// segment gets its name only after its sync. The definitions change their root after a sync of
    /// the pages below.
    pub fn disk_failed(&self) -> io::Result<()> {
        self.has_failed.store(true, Ordering::Release);
        let marked = self.mark.disk_failed();
        if marked.is_err() {
            return fs::remove_file(self.path.join(run_mark::NAME)).or(marked);
        }
        marked
    }
}

/// A folder under inspection: not changed, and locked against other processes.
#[derive(Debug)]
pub struct FolderInspection {
    /// The id of the store.
    pub store: StoreId,
    /// The way in which the last process ended.
    pub last_end: LastEnd,
    /// The missing folders of the store.
    pub missing: Vec<&'static str>,
    /// Whether others than the owner may read the folder.
    pub is_open_to_others: bool,
    _lock: Option<FolderLock>,
}

impl FolderInspection {
    /// Locks the folder against other processes and reads its id.
    pub fn open(path: &Path) -> Result<FolderInspection, FolderError> {
        let disk = |error| FolderError::Disk { path: path.to_owned(), error };
        if !path.is_dir() {
            return Err(FolderError::Absent { path: path.to_owned() });
        }
        let lock = FolderLock::take_to_inspect(path).map_err(|error| held(path, error))?;
        let Some(store) = identity_in(path)? else {
            return Err(FolderError::Absent { path: path.to_owned() });
        };
        let last_end = run_mark::read(&ReadOnlyDisk::new(path.to_owned()), boot()).map_err(disk)?;
        let is_open_to_others = is_open_to_others(path).map_err(disk)?;
        Ok(FolderInspection { store, last_end, missing: missing(path), is_open_to_others, _lock: lock })
    }
}

/// The id of a folder, which must exist if the folder has files of a store.
fn identity_in(path: &Path) -> Result<Option<StoreId>, FolderError> {
    let identity = identity::read(&ReadOnlyDisk::new(path.to_owned()));
    let identity = identity.map_err(|error| FolderError::Identity { path: path.to_owned(), error })?;
    if identity.is_some() {
        return Ok(identity);
    }
    // With a new id, existing files would look like those of another store.
    match leftover(path).map_err(|error| FolderError::Disk { path: path.to_owned(), error })? {
        Some(found) => Err(FolderError::NoIdentity { path: path.to_owned(), found }),
        None => Ok(None),
    }
}

fn leftover(path: &Path) -> io::Result<Option<String>> {
    for name in [definitions::NAME, run_mark::NAME] {
        if path.join(name).exists() {
            return Ok(Some(name.to_owned()));
        }
    }
    for name in [JOURNAL, SEGMENTS] {
        let folder = path.join(name);
        if folder.is_dir() && fs::read_dir(folder)?.next().is_some() {
            return Ok(Some(format!("{name}/")));
        }
    }
    Ok(None)
}

/// The folders of a store that do not exist.
fn missing(path: &Path) -> Vec<&'static str> {
    [JOURNAL, SEGMENTS].into_iter().filter(|name| !path.join(name).is_dir()).collect()
}

/// Creates a folder for its owner only, and its parents, with durable names.
fn make(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make(above)?;
    DirBuilder::new().mode(0o700).create(path)?;
    File::open(above)?.sync_all()
}

fn is_open_to_others(path: &Path) -> io::Result<bool> {
    Ok(fs::metadata(path)?.permissions().mode() & OTHERS != 0)
}

fn random_store() -> io::Result<StoreId> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(StoreId(bytes))
}

fn boot() -> Option<BootId> {
    boot_id(&fs::read_to_string(BOOT_ID).ok()?)
}

/// Parses a UUID such as `6b0f1d0c-5f0e-4f3a-9d3b-0d7a5c2f1e11`.
fn boot_id(text: &str) -> Option<BootId> {
    let digits: String = text.trim().chars().filter(|char| *char != '-').collect();
    let number =
        u128::from_str_radix(&digits, 16).ok().filter(|number| *number != 0 && digits.len() == 32)?;
    Some(BootId(number.to_be_bytes()))
}

fn held(path: &Path, error: LockError) -> FolderError {
    match error {
        LockError::Disk(error) => {
            FolderError::Disk { path: path.join(crate::folder::folder_lock::NAME), error }
        }
        LockError::Held(process) => FolderError::Held { path: path.to_owned(), process },
    }
}

#[cfg(test)]
mod tests;
