//! The file `store`: the id of the store in a folder, and the version of its format.
//!
//! One sector: `magic 8, version u32, store 16, 0 u32, crc32c u32`, then zeros. The file is written once,
//! before all others, and every other file carries the same id. Its version is the version of the whole
//! folder, so an opening of another version is refused before any other file is read.

use std::fmt;
use std::io;

use super::replace;
use crate::disk::Disk;
use crate::limits::SECTOR_BYTES;
use crate::seal::StoreId;

/// Name of the file.
pub const NAME: &str = "store";

/// The version of the folder's format: its files, their names, and everything in them.
///
/// It rises by one with any change that the previous release cannot read. Every file also has a version of
/// its own, which identifies a damaged or misplaced file.
pub const VERSION: u32 = 3;

const MAGIC: [u8; 8] = *b"imoristo";
const USED_BYTES: usize = 36;

/// The reason why the id of a folder cannot be read.
#[derive(Debug)]
pub enum IdentityError {
    /// The disk returned an error.
    Disk(io::Error),
    /// The file does not verify.
    Damaged,
    /// The file verifies and has this version, which is not [`VERSION`].
    Version(u32),
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdentityError::Disk(error) => {
                write!(f, "`{NAME}` cannot be read or made: {error}; check the disk")
            }
            IdentityError::Damaged => write!(
                f,
                "`{NAME}`, which says which store this is, does not verify; restore this file from a copy of the folder"
            ),
            IdentityError::Version(version) => {
                let release = if *version < VERSION { "an older" } else { "a newer" };
                write!(
                    f,
                    "its files have format version `{version}`, and this release reads version `{VERSION}` alone; \
                     move the folder away to begin with an empty one, or use {release} release, which reads it"
                )
            }
        }
    }
}

impl std::error::Error for IdentityError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            IdentityError::Disk(error) => Some(error),
            IdentityError::Damaged | IdentityError::Version(_) => None,
        }
    }
}

impl From<io::Error> for IdentityError {
    fn from(error: io::Error) -> IdentityError {
        IdentityError::Disk(error)
    }
}

/// Reads the id of the store; `None` if the file does not exist.
pub fn read<D: Disk>(disk: &D) -> Result<Option<StoreId>, IdentityError> {
    replace::content(disk, NAME)?.map(|bytes| decode(&bytes)).transpose()
}

/// Writes the id of a new store.
pub fn write<D: Disk>(disk: &D, store: StoreId) -> io::Result<()> {
    replace::replace(disk, NAME, &encode(store)).map(drop)
}

fn encode(StoreId(store): StoreId) -> [u8; SECTOR_BYTES] {
    let mut sector = [0; SECTOR_BYTES];
    sector[..8].copy_from_slice(&MAGIC);
    sector[8..12].copy_from_slice(&VERSION.to_le_bytes());
    sector[12..28].copy_from_slice(&store);
    let sum = crc32c::crc32c(&sector[..USED_BYTES - 4]);
    sector[USED_BYTES - 4..USED_BYTES].copy_from_slice(&sum.to_le_bytes());
    sector
}

fn decode(bytes: &[u8]) -> Result<StoreId, IdentityError> {
    let (covered, rest) = bytes.split_at_checked(USED_BYTES - 4).ok_or(IdentityError::Damaged)?;
    let (expected, zeros) = rest.split_first_chunk::<4>().ok_or(IdentityError::Damaged)?;
    let is_whole = bytes.len() == SECTOR_BYTES && zeros.iter().all(|byte| *byte == 0);
    if !is_whole || !covered.starts_with(&MAGIC) || u32::from_le_bytes(*expected) != crc32c::crc32c(covered) {
        return Err(IdentityError::Damaged);
    }
    let (version, rest) =
        covered.get(8..).and_then(<[u8]>::split_first_chunk).ok_or(IdentityError::Damaged)?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return Err(IdentityError::Version(version));
    }
    rest.first_chunk().map(|store| StoreId(*store)).ok_or(IdentityError::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::sim_disk::{Random, SimDisk};

    const STORE: StoreId = StoreId([7; 16]);

    #[test]
    fn decode_after_encode_is_identity() {
        assert_eq!(decode(&encode(STORE)).expect("it is whole"), STORE);
    }

    #[test]
    fn no_prefix_and_no_flipped_bit_is_an_identity() {
        let sector = encode(STORE);
        for len in 0..sector.len() {
            assert!(matches!(decode(&sector[..len]), Err(IdentityError::Damaged)), "{len} bytes");
        }
        for bit in 0..sector.len() * 8 {
            let mut flipped = sector;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(decode(&flipped), Err(IdentityError::Damaged)), "bit {bit}");
        }
    }

    #[test]
    fn another_version_is_refused_with_both_numbers_and_what_to_do() {
        for (version, release) in [(0, "an older"), (VERSION - 1, "an older"), (VERSION + 1, "a newer")] {
            let mut sector = encode(STORE);
            sector[8..12].copy_from_slice(&version.to_le_bytes());
            let sum = crc32c::crc32c(&sector[..USED_BYTES - 4]);
            sector[USED_BYTES - 4..USED_BYTES].copy_from_slice(&sum.to_le_bytes());
            let error = decode(&sector).expect_err("it is of another release").to_string();
            let expected = format!(
                "its files have format version `{version}`, and this release reads version `{VERSION}` alone; \
                 move the folder away to begin with an empty one, or use {release} release, which reads it"
            );
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn a_crash_leaves_no_identity_or_a_whole_one() {
        let mut random = Random(1);
        let disk = SimDisk::default();
        disk.watch();
        write(&disk, STORE).expect("the disk is well");
        let snapshots = disk.take_snapshots();
        let (mut absent, mut whole) = (0, 0);
        for state in snapshots.iter().flat_map(|state| [state; 50]) {
            let left = SimDisk::new(state.crash(&mut random));
            match read(&left).expect("what is there is whole") {
                Some(store) => whole += usize::from(store == STORE),
                None => absent += 1,
            }
            write(&left, STORE).expect("what is left of the first try is in nobody's way");
        }
        assert!(absent > 0 && whole > 0 && absent + whole == snapshots.len() * 50, "{absent}, {whole}");
        assert_eq!(read(&disk).expect("the disk is well"), Some(STORE));
    }
}
