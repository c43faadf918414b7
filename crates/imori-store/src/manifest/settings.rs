//! Settings of manifests.

use crate::limits::{MANIFEST_FILL_BYTES, MANIFEST_LOG_BYTES, SECTOR_BYTES};
use crate::seal::{Seal, StoreId};

/// The settings of the manifests of a store.
#[derive(Debug, Clone, Copy)]
pub struct ManifestSettings {
    pub(crate) store: StoreId,
    pub(crate) fill_bytes: usize,
    pub(crate) log_bytes: u64,
    pub(crate) seal: Seal,
}

impl ManifestSettings {
    /// The settings of the manifests of this store.
    #[must_use]
    pub fn new(store: StoreId) -> ManifestSettings {
        let (fill_bytes, log_bytes) = (MANIFEST_FILL_BYTES, MANIFEST_LOG_BYTES);
        ManifestSettings { store, fill_bytes, log_bytes, seal: Seal::new(store) }
    }

    /// Makes manifests small, so that they are written anew after a few checkpoints: for tests, where little is
    /// written.
    #[must_use]
    pub fn small(self) -> ManifestSettings {
        ManifestSettings { fill_bytes: 2 * SECTOR_BYTES, log_bytes: 4 * SECTOR_BYTES as u64, ..self }
    }
}
