//! The bytes of a manifest: its header, its frames, and reading them.

use std::io;

use crate::disk::{self, Disk, DiskFile};
use crate::limits::{SECTOR_BYTES, SEGMENT_PAGES_MAX};
use crate::planted::Fault;
use crate::seal::{Seal, StoreId};

use super::manifest::{Manifest, ManifestDamage, ManifestEntry};
use super::settings::ManifestSettings;

/// The version of the manifest's format.
const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"imorimfs";
/// Bytes of the header that are not zero.
const HEADER_BYTES: usize = 36;
/// Bytes of a frame before its segments.
const FRAME_BYTES: usize = 20;

/// The place in a manifest up to which a checkpoint knows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ManifestMark {
    /// Segments of this number and above are newer.
    pub next_segment: u32,
    /// The generation of the file; 0 where there was no segment yet and no file.
    pub generation: u32,
    /// Offset of the end of the last frame.
    pub end: u64,
    /// The checksum of the last frame, which covers all frames before it.
    pub sum: u32,
}

/// The entry of a frame about a segment.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change<'a> {
    /// The segment exists, with these pages.
    Set(&'a ManifestEntry),
    /// The segment is gone.
    Gone(u32),
}

/// Encodes a frame for this offset, in whole sectors, and gives its checksum.
pub(super) fn frame(seal: Seal, at: u64, before: u32, changes: &[Change<'_>]) -> (Vec<u8>, u32) {
    let mut payload = Vec::new();
    let mut last = 0;
    for change in changes {
        let segment = match change {
            Change::Set(entry) => entry.segment,
            Change::Gone(segment) => *segment,
        };
        push_number(&mut payload, segment - last);
        last = segment;
        match change {
            Change::Set(entry) => push_entry(&mut payload, entry),
            Change::Gone(_) => push_number(&mut payload, 0),
        }
    }
    let len = u32::try_from(payload.len()).expect("the numbers of segments have 32 bits");
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(&at.to_le_bytes());
    bytes.extend_from_slice(&before.to_le_bytes());
    bytes.extend_from_slice(&payload);
    let sum = seal.sum(&[bytes.get(4..).unwrap_or_default()]);
    bytes.splice(..4, sum.to_le_bytes());
    bytes.resize(bytes.len().next_multiple_of(SECTOR_BYTES), 0);
    (bytes, sum)
}

/// Encodes how many pages a segment has, and which of them are gone.
pub(super) fn push_entry(out: &mut Vec<u8>, entry: &ManifestEntry) {
    push_number(out, entry.page_count);
    let ranges = || entry.gone.chunk_by(|one, next| one.checked_add(1) == Some(*next));
    push_number(out, u32::try_from(ranges().count()).expect("a segment has a limit of pages"));
    let mut end = 0;
    for range in ranges() {
        let (Some(first), Some(last)) = (range.first(), range.last()) else { continue };
        push_number(out, first - end);
        push_number(out, last - first);
        end = *last;
    }
}

/// Encodes the header of a file, a sector, and gives its checksum.
pub(super) fn header(StoreId(store): StoreId, generation: u32) -> ([u8; SECTOR_BYTES], u32) {
    let mut sector = [0; SECTOR_BYTES];
    let fields: [&[u8]; 4] = [&MAGIC, &VERSION.to_le_bytes(), &store, &generation.to_le_bytes()];
    let mut at = 0;
    for field in fields {
        sector[at..at + field.len()].copy_from_slice(field);
        at += field.len();
    }
    let sum = crc32c::crc32c(&sector[..HEADER_BYTES - 4]);
    sector[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
    (sector, sum)
}

/// Reads the manifest up to the place that a checkpoint names, and the end of its first frame. Nothing is
/// changed.
///
/// If a frame does not verify, the manifest has the frames before it, and names the damage.
pub fn read<D: Disk>(
    disk: &D,
    settings: &ManifestSettings,
    mark: ManifestMark,
) -> io::Result<(Manifest, u64)> {
    let mut manifest = Manifest { next_segment: mark.next_segment, ..Manifest::default() };
    if mark.generation == 0 {
        return Ok((manifest, 0));
    }
    let name = name(mark.generation);
    let damage = |at| Some(ManifestDamage { name: name.clone(), at });
    let file = match disk.open(&name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            manifest.damage = damage(None);
            return Ok((manifest, 0));
        }
        file => file?,
    };
    let len = usize::try_from(mark.end.min(file.size()?)).map_err(io::Error::other)?;
    let mut bytes = vec![0; len];
    let read = disk::read_up_to(&file, &mut bytes, 0)?;
    bytes.truncate(read);
    let (expected, mut sum) = header(settings.store, mark.generation);
    let does_begin =
        bytes.starts_with(&expected) || settings.seal.planted.has(Fault::ManifestWithoutChecksum);
    let (mut at, mut first_end) = (SECTOR_BYTES, 0);
    if !does_begin {
        manifest.damage = damage(Some(0));
        return Ok((manifest, 0));
    }
    while (at as u64) < mark.end {
        let applied =
            apply(bytes.get(at..).unwrap_or_default(), settings.seal, (at as u64, sum), &mut manifest);
        let Some((frame_bytes, frame_sum)) = applied else {
            manifest.damage = damage(Some(at as u64));
            return Ok((manifest, 0));
        };
        (at, sum) = (at + frame_bytes, frame_sum);
        first_end = if first_end == 0 { at as u64 } else { first_end };
    }
    if at as u64 != mark.end || sum != mark.sum && !settings.seal.planted.has(Fault::ManifestWithoutChecksum)
    {
        manifest.damage = damage(Some(at as u64));
    }
    Ok((manifest, first_end))
}

/// Applies a frame that verifies at this offset, behind a frame of this checksum; gives its length and checksum.
fn apply(
    bytes: &[u8],
    seal: Seal,
    (at, before): (u64, u32),
    manifest: &mut Manifest,
) -> Option<(usize, u32)> {
    let (sum, rest) = take::<4>(bytes)?;
    let (len, rest) = take::<4>(rest)?;
    let (place, rest) = take::<8>(rest)?;
    let (follows, rest) = take::<4>(rest)?;
    let payload = rest.get(..usize::try_from(u32::from_le_bytes(len)).ok()?)?;
    let covered = bytes.get(4..FRAME_BYTES + payload.len())?;
    let sum = u32::from_le_bytes(sum);
    let is_here = u64::from_le_bytes(place) == at && u32::from_le_bytes(follows) == before;
    let is_whole = is_here && sum == seal.sum(&[covered]);
    if !is_whole && !seal.planted.has(Fault::ManifestWithoutChecksum) {
        return None;
    }
    let changes = entries(payload)?;
    for (segment, entry) in changes {
        let place = manifest.segments.binary_search_by_key(&segment, |listed| listed.segment);
        match (place, entry) {
            (Ok(place), Some(entry)) => *manifest.segments.get_mut(place)? = entry,
            (Ok(place), None) => drop(manifest.segments.remove(place)),
            (Err(place), Some(entry)) => manifest.segments.insert(place, entry),
            (Err(_), None) => {}
        }
    }
    Some(((FRAME_BYTES + payload.len()).next_multiple_of(SECTOR_BYTES), sum))
}

/// Decodes the segments of a frame; one without an entry is gone.
fn entries(mut payload: &[u8]) -> Option<Vec<(u32, Option<ManifestEntry>)>> {
    let (mut entries, mut segment) = (Vec::new(), 0u32);
    while !payload.is_empty() {
        segment = segment.checked_add(number(&mut payload)?)?;
        let page_count = number(&mut payload)?;
        if page_count as usize > SEGMENT_PAGES_MAX {
            return None;
        }
        if page_count == 0 {
            entries.push((segment, None));
            continue;
        }
        let (mut gone, mut end) = (Vec::new(), 0u32);
        for _ in 0..number(&mut payload)? {
            let first = end.checked_add(number(&mut payload)?)?;
            end = first.checked_add(number(&mut payload)?).filter(|last| *last < page_count)?;
            gone.extend(first..=end);
        }
        entries.push((segment, Some(ManifestEntry { segment, page_count, gone })));
    }
    Some(entries)
}

/// Writes a number: seven bits in a byte, the lowest first; each byte but the last has the highest bit set.
fn push_number(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(0x80 | (number & 0x7f) as u8);
        number >>= 7;
    }
    out.push(number as u8);
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0u64;
    for shift in (0..u32::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return u32::try_from(number).ok();
        }
    }
    None
}

fn take<const N: usize>(bytes: &[u8]) -> Option<([u8; N], &[u8])> {
    bytes.split_first_chunk().map(|(field, rest)| (*field, rest))
}

/// The name of a file.
pub(super) fn name(generation: u32) -> String {
    format!("manifest-{generation:010}")
}

/// Parses the name of a whole file.
pub(super) fn parse_name(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("manifest-").filter(|digits| digits.len() == 10)?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}
