//! Settings of segments.

use crate::limits::SEGMENT_WRITE_BYTES;
use crate::seal::{Seal, StoreId};
use crate::settings::OnDamage;

/// The settings of a store's segments.
#[derive(Debug, Clone, Copy)]
pub struct SegmentSettings {
    pub(crate) store: StoreId,
    pub(crate) on_damage: OnDamage,
    pub(crate) write_bytes: usize,
    pub(crate) seal: Seal,
}

impl SegmentSettings {
    /// The settings of the segments of `store`.
    #[must_use]
    pub fn new(store: StoreId, on_damage: OnDamage) -> SegmentSettings {
        SegmentSettings { store, on_damage, write_bytes: SEGMENT_WRITE_BYTES, seal: Seal::new(store) }
    }
}
