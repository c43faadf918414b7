//! Warns if the disk is too small for the journal that the configuration allows. That is no error, but publishers
//! would wait for space.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use imori_store::disk::RealDisk;
use imori_store::folder::JOURNAL;
use imori_store::journal::DiskRoom;

use crate::config::{Bytes, Config};
use crate::limits::JOURNAL_MESSAGE_SLACK_BYTES;

/// The fewest journal files that may be live.
const FILES_MIN: u16 = 2;

/// A disk that is too small, with advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallDisk {
    /// The data folder.
    pub folder: PathBuf,
    /// Bytes that the journal may take, plus the reserve.
    pub needed_bytes: u64,
    /// Bytes available to the journal.
    pub available_bytes: u64,
    /// Advice to the operator.
    pub advice: String,
}

impl fmt::Display for SmallDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SmallDisk { folder, needed_bytes, available_bytes, advice } = self;
        write!(
            f,
            "the disk of `{}` has `{available_bytes}` bytes for the journal, which may take `{needed_bytes}`; {advice}",
            folder.display()
        )
    }
}

/// Checks the disk of the data folder, which need not exist yet; `None` if it is large enough.
///
/// # Errors
/// The free space cannot be determined.
pub fn small_disk(config: &Config) -> io::Result<Option<SmallDisk>> {
    let folder = &config.broker.data_dir;
    let journal = &config.journal;
    let (files, reserve_bytes) = (u64::from(journal.files), journal.reserve_bytes.0);
    let disk = RealDisk::new(nearest(&folder.join(JOURNAL)).to_owned());
    let room = DiskRoom::measure(&disk, files, journal.file_bytes.0, reserve_bytes)?;
    if room.is_enough() {
        return Ok(None);
    }
    let DiskRoom { needed_bytes, available_bytes } = room;
    let advice = advice(&room, config);
    Ok(Some(SmallDisk { folder: folder.clone(), needed_bytes, available_bytes, advice }))
}

/// Suggests settings that fit the disk and still take the longest message, if there are any.
fn advice(room: &DiskRoom, config: &Config) -> String {
    let fitting = |files| file_bytes_fitting(room, config, files).map(Bytes::with_unit);
    match (fitting(config.journal.files), fitting(FILES_MIN)) {
        (Some(size), _) => format!("make space or set `journal.file_bytes` to `{size}` at most"),
        (None, Some(size)) => {
            format!(
                "make space or set `journal.files` to `{FILES_MIN}` and `journal.file_bytes` to `{size}` at most"
            )
        }
        (None, None) => String::from(
            "make space, or lower `journal.file_bytes`, for which `limits.message_bytes` has to be lower too",
        ),
    }
}

/// The largest size of each of `files` files; `None` if it is too small for the longest message.
fn file_bytes_fitting(room: &DiskRoom, config: &Config, files: u16) -> Option<Bytes> {
    let Config { journal, limits, .. } = config;
    let message_bytes = limits.message_bytes.as_usize() + limits.header_bytes.as_usize();
    let smallest = Bytes((message_bytes + JOURNAL_MESSAGE_SLACK_BYTES) as u64).max(Bytes::mib(1));
    let bytes = room.file_bytes_max(u64::from(files), journal.reserve_bytes.0);
    Some(Bytes(bytes >> 20 << 20)).filter(|bytes| *bytes >= smallest)
}

/// The folder itself, or its nearest existing ancestor.
fn nearest(folder: &Path) -> &Path {
    let here = Path::new(".");
    let named = folder.ancestors().filter(|folder| !folder.as_os_str().is_empty());
    named.chain([here]).find(|folder| folder.is_dir()).unwrap_or(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(files: u16, file_mib: u64, message_mib: u64) -> Config {
        let mut config = Config::default();
        (config.journal.files, config.journal.file_bytes) = (files, Bytes::mib(file_mib));
        config.journal.reserve_bytes = Bytes::mib(10);
        config.limits.message_bytes = Bytes::mib(message_mib);
        config
    }

    #[test]
    fn the_advice_is_as_much_as_there_is_room_for() {
        let file_bytes = |size| format!("make space or set `journal.file_bytes` to `{size}MiB` at most");
        let both = |size| {
            format!(
                "make space or set `journal.files` to `2` and `journal.file_bytes` to `{size}MiB` at most"
            )
        };
        let message = String::from(
            "make space, or lower `journal.file_bytes`, for which `limits.message_bytes` has to be lower too",
        );
        for (mib, config, expected) in [
            (400, config(4, 64, 16), file_bytes(39)),
            (180, config(4, 64, 16), file_bytes(17)),
            (179, config(4, 64, 16), both(21)),
            (146, config(4, 64, 16), both(17)),
            (145, config(4, 64, 16), message.clone()),
            (145, config(4, 64, 1), file_bytes(13)),
            (0, config(4, 64, 1), message),
        ] {
            let room = DiskRoom { needed_bytes: u64::MAX, available_bytes: mib << 20 };
            assert_eq!(advice(&room, &config), expected, "{mib} MiB, {:?}", config.journal);
        }
    }

    #[test]
    fn what_is_advised_is_enough_and_takes_the_longest_message() {
        let config = config(4, 64, 3);
        let (mut advised, mut last) = (0, None);
        for mib in 0..700 {
            let room = DiskRoom { needed_bytes: 0, available_bytes: mib << 20 };
            let size = file_bytes_fitting(&room, &config, config.journal.files);
            assert!(size >= last, "{mib} MiB: more room makes no file smaller");
            last = size;
            let Some(Bytes(size)) = size else { continue };
            // Four live files, and six besides.
            assert!(10 * size + config.journal.reserve_bytes.0 <= room.available_bytes, "{mib} MiB: {size}");
            assert!(size > config.limits.message_bytes.0 + config.limits.header_bytes.0, "{mib} MiB: {size}");
            advised += 1;
        }
        assert_eq!(advised, 700 - 50);
    }

    #[test]
    fn a_folder_that_is_not_there_is_on_the_disk_of_what_is_above_it() {
        let data = tempfile::tempdir().expect("there is a folder for temporary files");
        let mut config = config(2, 1, 1);
        config.limits.message_bytes = Bytes::kib(1);
        for folder in [data.path().to_owned(), data.path().join("a/b"), PathBuf::from("not-there/at-all")] {
            assert!(nearest(&folder).is_dir(), "{folder:?}");
            config.broker.data_dir = folder;
            assert_eq!(small_disk(&config).expect("it can be asked for"), None);
        }
        // `/proc` has no free space.
        config.broker.data_dir = PathBuf::from("/proc/imori");
        let small = small_disk(&config).expect("it can be asked for").expect("it has no space");
        assert_eq!((small.available_bytes, small.needed_bytes), (0, (8 << 20) + (10 << 20)));
        let text = small.to_string();
        assert!(text.starts_with("the disk of `/proc/imori` has `0` bytes"), "{text}");
    }
}
