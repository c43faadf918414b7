//! The settings of a journal, chosen by its owner.

use std::fmt;

use crate::disk::ReadFrom;
use crate::limits::{BLOCK_BYTES, FILE_BYTES_MAX, FILE_BYTES_MIN};
use crate::lsn::Lsn;
use crate::records::FileHeader;
use crate::seal::{Seal, StoreId};

/// The reaction to damage among acknowledged records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// Sets the file aside unchanged, serves the records that verify, and reports missing ones.
    #[default]
    Quarantine,
    /// Refuses to open the store, and changes nothing.
    Refuse,
}

impl OnDamage {
    /// The advice to an operator whose store was refused, on how to continue without the damaged
    /// part.
    pub const TO_GO_ON: &str =
        "set `journal.on_damage` to `quarantine`, which sets the files aside and serves what verifies";
}

/// The settings of a journal.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub(crate) store: StoreId,
    pub(crate) shard: u32,
    pub(crate) file_bytes: usize,
    pub(crate) on_damage: OnDamage,
    pub(crate) read_from: ReadFrom,
    /// The bytes on the disk that new files must leave free.
    pub(crate) reserve_bytes: u64,
    /// The last record that segments prove durable, whatever the journal contains.
    pub(crate) durable_through: Option<Lsn>,
    pub(crate) seal: Seal,
}

/// A journal file size, in bytes, that is out of range or not a multiple of a block.
#[derive(Debug, PartialEq, Eq)]
pub struct FileBytesError(u64);

impl fmt::Display for FileBytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileBytesError(bytes) = self;
        write!(
            f,
            "a journal file of `{bytes}` bytes is not possible; \
             use a multiple of {BLOCK_BYTES} between {FILE_BYTES_MIN} and {FILE_BYTES_MAX}"
        )
    }
}

impl std::error::Error for FileBytesError {}

impl Settings {
    /// The settings of one shard of a store, with files of `file_bytes`.
    pub fn new(
        store: StoreId,
        shard: u32,
        file_bytes: u64,
        on_damage: OnDamage,
    ) -> Result<Settings, FileBytesError> {
        let is_possible = (FILE_BYTES_MIN..=FILE_BYTES_MAX).contains(&file_bytes)
            && file_bytes.is_multiple_of(BLOCK_BYTES as u64);
        let bytes = usize::try_from(file_bytes).ok().filter(|_| is_possible);
        let file_bytes = bytes.ok_or(FileBytesError(file_bytes))?;
        let (read_from, seal) = (ReadFrom::Device, Seal::new(store));
        let (reserve_bytes, durable_through) = (0, None);
        Ok(Settings { store, shard, file_bytes, on_damage, read_from, reserve_bytes, durable_through, seal })
    }

    /// Makes recovery read files from `read_from`; the default is the device.
    #[must_use]
    pub fn reading_from(self, read_from: ReadFrom) -> Settings {
        Settings { read_from, ..self }
    }

    /// Settings with files of a few blocks, smaller than a broker allows, for simulations that roll
    /// often.
    #[must_use]
    pub fn with_few_blocks(store: StoreId, blocks: usize) -> Settings {
        let (file_bytes, on_damage) = (blocks * BLOCK_BYTES, OnDamage::Quarantine);
        let (read_from, seal) = (ReadFrom::Device, Seal::new(store));
        let (shard, reserve_bytes, durable_through) = (0, 0, None);
        Settings { store, shard, file_bytes, on_damage, read_from, reserve_bytes, durable_through, seal }
    }

    /// Leaves `reserve_bytes` of the disk free: new files do not use them.
    #[must_use]
    pub fn keeping_free(self, reserve_bytes: u64) -> Settings {
        Settings { reserve_bytes, ..self }
    }

    /// States that all records up to `last` were durable, because segments hold pages of them. If
    /// any are missing, that is damage, and their numbers are not reused.
    #[must_use]
    pub fn durable_through(self, last: Option<Lsn>) -> Settings {
        Settings { durable_through: last, ..self }
    }

    /// The header of a file of `file_bytes` with this `generation`.
    pub(crate) fn header(&self, file_bytes: usize, generation: u32, first: Option<Lsn>) -> FileHeader {
        let file_bytes = file_bytes as u64;
        FileHeader { store: self.store, shard: self.shard, generation, first, file_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_bounds() {
        for (bytes, is_possible) in [
            (1 << 20, true),
            (256 << 20, true),
            ((1 << 20) + 4096, true),
            ((1 << 20) + 512, false),
            (0, false),
        ] {
            let settings = Settings::new(StoreId([0; 16]), 0, bytes, OnDamage::Refuse);
            assert_eq!(settings.is_ok(), is_possible, "{bytes}");
        }
    }
}
