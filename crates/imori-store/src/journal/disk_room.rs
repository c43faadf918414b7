//! Measures whether a disk has room for a journal of given settings, besides its segments.

use std::io;

use crate::disk::{Disk, DiskFile};
use crate::limits::{READY_FILES, SPACE_HIGH_FILES};
use crate::records::journal_file;

/// Journal files needed besides the live ones: one while the oldest is being freed, the ready ones,
/// and the free space below which publishers are stopped.
const FILES_BESIDE: u64 = 1 + READY_FILES as u64 + SPACE_HIGH_FILES;

/// Bytes that a journal needs, and bytes available to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRoom {
    /// The bytes of all journal files, plus the reserve left to others.
    pub needed_bytes: u64,
    /// The bytes that are free or already belong to the journal.
    pub available_bytes: u64,
}

impl DiskRoom {
    /// Measures the disk for a journal of at most `files_max` live files with `file_bytes` each,
    /// leaving `reserve_bytes` to others.
    ///
    /// # Errors
    ///
    /// Any error of the operating system.
    pub fn measure<D: Disk>(
        journal: &D,
        files_max: u64,
        file_bytes: u64,
        reserve_bytes: u64,
    ) -> io::Result<DiskRoom> {
        let mut available_bytes = journal.free_bytes()?;
        for name in journal.list()? {
            if journal_file::parse_name(&name).is_some_and(|(_, is_whole)| is_whole) {
                available_bytes = available_bytes.saturating_add(journal.open(&name)?.size()?);
            }
        }
        let files = files_max.saturating_add(FILES_BESIDE);
        let needed_bytes = file_bytes.saturating_mul(files).saturating_add(reserve_bytes);
        Ok(DiskRoom { needed_bytes, available_bytes })
    }

    /// Whether the disk has room for the journal.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.available_bytes >= self.needed_bytes
    }

    /// The largest journal file size, in bytes, for which the disk would have room.
    #[must_use]
    pub fn file_bytes_max(&self, files_max: u64, reserve_bytes: u64) -> u64 {
        self.available_bytes.saturating_sub(reserve_bytes) / files_max.saturating_add(FILES_BESIDE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    const TIB: u64 = 1 << 40;

    #[test]
    fn what_the_journal_has_already_counts_as_free() {
        let folder = std::env::temp_dir().join(format!("imori-room-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("there is a folder for temporary files");
        let disk = RealDisk::new(folder.clone());
        // Sparse files, because the disk is shared.
        for (name, len) in [
            ("journal-0000000001", TIB),
            ("journal-0000000002", 2 * TIB),
            ("journal-0000000003.damaged", 3 * TIB),
            ("journal-0000000004.new", 4 * TIB),
            ("other", 5 * TIB),
        ] {
            let file = disk.create(name).expect("it takes a file");
            file.set_len(len).expect("it takes a hole");
        }
        let free_bytes = disk.free_bytes().expect("it has an end");
        let room = DiskRoom::measure(&disk, 4, 10, 7).expect("it is there");
        std::fs::remove_dir_all(&folder).expect("it is there");
        assert_eq!((room.needed_bytes, room.is_enough()), (107, true));
        let own_bytes = room.available_bytes - free_bytes.min(room.available_bytes);
        assert!(own_bytes.abs_diff(3 * TIB) < TIB / 2, "{own_bytes} bytes are its own");
    }

    #[test]
    fn files_are_as_large_as_there_is_room_for() {
        for (available_bytes, files_max, file_bytes_max) in
            [(100, 4, 9), (110, 4, 10), (119, 4, 10), (86, 2, 9), (10, 4, 0), (3, 4, 0)]
        {
            let room = DiskRoom { needed_bytes: 110, available_bytes };
            let case = format!("{available_bytes} bytes, {files_max} files");
            assert_eq!(room.file_bytes_max(files_max, 10), file_bytes_max, "{case}");
            assert_eq!(room.is_enough(), available_bytes >= 110, "{case}");
        }
    }
}
