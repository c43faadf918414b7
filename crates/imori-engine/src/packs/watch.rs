//! Changes of packs: compares their folders with how they were before, when the engine asks.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::read::{pack_files, pack_folders};
use crate::limits::PACKS_MAX;

/// Compares folders of packs with how they were.
#[derive(Debug, Clone)]
pub struct PackWatch {
    folders: Vec<PathBuf>,
    configurations: PathBuf,
    seen: PackStates,
}

/// The states of all packs at one time, by folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PackStates(BTreeMap<PathBuf, Fingerprint>);

/// What differs between two states of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackChange {
    /// It was not there before.
    Added,
    /// What it describes or its configuration changed: it is to be read anew.
    Changed,
    /// Only its code changed: sensors are to be started anew, and its workflows read anew.
    CodeChanged,
    /// It is gone.
    Removed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fingerprint {
    metadata: u64,
    code: u64,
}

impl PackWatch {
    /// A watch over folders of packs and one of their configurations, that has seen nothing yet.
    pub fn new(folders: Vec<PathBuf>, configurations: impl Into<PathBuf>) -> PackWatch {
        PackWatch { folders, configurations: configurations.into(), seen: PackStates::default() }
    }

    /// The states of the packs now. It reads no file, only times and sizes.
    pub fn look(&self) -> PackStates {
        let packs_of = |folder: &PathBuf| {
            let names = pack_folders(folder).into_iter().take(PACKS_MAX);
            names.map(|name| (folder.join(&name), self.fingerprint(folder, &name))).collect::<Vec<_>>()
        };
        PackStates(self.folders.iter().flat_map(packs_of).collect())
    }

    /// The packs that differ from those of the last call, by name.
    pub fn changes(&mut self, now: PackStates) -> Vec<(String, PackChange)> {
        let mut changes = Vec::new();
        for (folder, state) in &now.0 {
            let change = match self.seen.0.get(folder) {
                None => PackChange::Added,
                Some(seen) if seen.metadata != state.metadata => PackChange::Changed,
                Some(seen) if seen.code != state.code => PackChange::CodeChanged,
                Some(_) => continue,
            };
            changes.push((name_of(folder), change));
        }
        let gone = self.seen.0.keys().filter(|folder| !now.0.contains_key(*folder));
        changes.extend(gone.map(|folder| (name_of(folder), PackChange::Removed)));
        self.seen = now;
        changes
    }

    /// Whether the packs differ from those of the last call of [`PackWatch::changes`].
    pub fn differ(&self, now: &PackStates) -> bool {
        self.seen != *now
    }

    fn fingerprint(&self, folder: &Path, name: &str) -> Fingerprint {
        let folder = folder.join(name);
        let (mut metadata, mut code) = (DefaultHasher::new(), DefaultHasher::new());
        // A pack that is too large is read anew when its folder changes, which tells why it is refused.
        for file in pack_files(&folder).unwrap_or_default() {
            let is_metadata =
                file.ends_with(".yaml") || file.ends_with(".yml") || file.ends_with("requirements.txt");
            let is_workflow = file.starts_with("actions/") && file.matches('/').count() > 1;
            let hasher = if is_metadata && !is_workflow { &mut metadata } else { &mut code };
            file.hash(hasher);
            state(&folder.join(&file)).hash(hasher);
        }
        state(&self.configurations.join(format!("{name}.yaml"))).hash(&mut metadata);
        Fingerprint { metadata: metadata.finish(), code: code.finish() }
    }
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What changes when a file is written: its time, size and inode.
fn state(path: &Path) -> Option<(i64, i64, u64, u64)> {
    let metadata = path.metadata().ok()?;
    Some((metadata.mtime(), metadata.mtime_nsec(), metadata.size(), metadata.ino()))
}
