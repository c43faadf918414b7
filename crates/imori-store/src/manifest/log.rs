//! The manifest on disk: a log of the segments that are there, in a file of its own.
//!
//! ```text
//! manifest-0000000007:  header │ all segments │ changes │ changes │ zeros
//!                       a sector                           └ the end that a checkpoint names
//! ```
//!
//! A frame begins a sector: `sum u32, len u32, at u64, sum of the frame before u32`, and `len` bytes of
//! segments. It is written and synced before the checkpoint that names its end, so that nothing before that
//! end is ever written again. A long log is written anew, under the next generation.

use std::io;

use crate::disk::{self, Disk, DiskFile, is_out_of_resources};
use crate::limits::SECTOR_BYTES;
use crate::planted::Fault;
use crate::seal::Seal;

use super::frame::{Change, ManifestMark, frame, header, name, parse_name, push_entry, read};
use super::manifest::{Manifest, ManifestEntry};
use super::settings::ManifestSettings;

/// The log of the manifest, which one thread writes.
#[derive(Debug)]
pub struct ManifestLog<D: Disk> {
    disk: D,
    settings: ManifestSettings,
    file: Option<LogFile<D::File>>,
    /// The highest generation that any file had.
    generation: u32,
    /// The segments in the log, each with a checksum of its entry.
    logged: Vec<(u32, u32)>,
    /// Generations that are needed until a checkpoint names a later one, and whether each is damaged.
    old: Vec<(u32, bool)>,
}

#[derive(Debug)]
struct LogFile<F> {
    file: F,
    /// Where the next frame begins, in the words of a checkpoint.
    mark: ManifestMark,
    /// Offset of the end of the first frame, which lists all segments.
    first_end: u64,
    /// Length of the file. The bytes behind the end of the log already have their space on the disk.
    len: u64,
    /// A sync failed, so the contents of the file are unknown.
    has_failed: bool,
}

impl<D: Disk> ManifestLog<D> {
    /// Opens the log that the last checkpoint names. The manifest says in it how far it verifies.
    ///
    /// Files of other generations are removed with the next checkpoint.
    pub fn open(
        disk: D,
        settings: &ManifestSettings,
        mark: ManifestMark,
    ) -> io::Result<(ManifestLog<D>, Manifest)> {
        let (manifest, first_end) = read(&disk, settings, mark)?;
        let mut log = ManifestLog {
            disk,
            settings: *settings,
            file: None,
            generation: mark.generation,
            logged: sums(&manifest, settings.seal),
            old: Vec::new(),
        };
        for name in log.disk.list()? {
            let Some(generation) = parse_name(&name) else { continue };
            log.generation = log.generation.max(generation);
            let is_damaged = generation == mark.generation && manifest.damage.is_some();
            if generation != mark.generation || is_damaged {
                log.old.push((generation, is_damaged));
            }
        }
        if mark.generation > 0 && manifest.damage.is_none() {
            let file = log.disk.open(&name(mark.generation))?;
            let len = file.size()?;
            log.file = Some(LogFile { file, mark, first_end, len, has_failed: false });
        }
        Ok((log, manifest))
    }

    /// Writes what changed since the last call, durably, and returns the place that a checkpoint has to name.
    ///
    /// After an error the log is as it was, and may be written again.
    pub fn write(&mut self, manifest: &Manifest) -> io::Result<ManifestMark> {
        let next_segment = manifest.next_segment;
        if self.file.is_none() && manifest.segments.is_empty() {
            return Ok(ManifestMark { next_segment, ..ManifestMark::default() });
        }
        let logged = sums(manifest, self.settings.seal);
        if let Some(file) = self.file.as_ref().filter(|file| !file.has_failed && self.logged == logged) {
            return Ok(ManifestMark { next_segment, ..file.mark });
        }
        let limit = self.settings.log_bytes;
        let is_long = |file: &LogFile<D::File>| file.mark.end - file.first_end > limit.max(file.first_end);
        if self.file.as_ref().is_none_or(|file| file.has_failed || is_long(file)) {
            let begun = self.begin(manifest, logged.clone());
            let may_go_on = self.file.as_ref().is_some_and(|file| !file.has_failed);
            match begun {
                Ok(()) => {}
                // On a full disk the log goes on in the space that it has.
                Err(error) if may_go_on && is_out_of_resources(&error) => self.append(manifest, logged)?,
                Err(error) => return Err(error),
            }
        } else {
            self.append(manifest, logged)?;
        }
        let mark = self.file.as_ref().map(|file| file.mark).unwrap_or_default();
        Ok(ManifestMark { next_segment, ..mark })
    }

    /// Removes files of older generations, once a checkpoint that names the present file is durable.
    pub fn forget_old(&mut self) -> io::Result<()> {
        for (generation, is_damaged) in std::mem::take(&mut self.old) {
            let name = name(generation);
            let done = match is_damaged {
                true => self.disk.rename(&name, &format!("{name}.damaged")),
                false => self.disk.remove(&name),
            };
            match done {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Begins a file with all segments.
    fn begin(&mut self, manifest: &Manifest, logged: Vec<(u32, u32)>) -> io::Result<()> {
        let planted = self.settings.seal.planted;
        let generation = self.generation.checked_add(1);
        let generation =
            generation.ok_or_else(|| io::Error::other("the generations of manifests are used up"))?;
        let (name, new) = (name(generation), format!("{}.new", name(generation)));
        // An incomplete file may be left from an earlier end.
        if self.disk.list()?.contains(&new) {
            self.disk.remove(&new)?;
        }
        let (header, sum) = header(self.settings.store, generation);
        let entries: Vec<Change<'_>> = manifest.segments.iter().map(Change::Set).collect();
        let (frame, sum) = frame(self.settings.seal, SECTOR_BYTES as u64, sum, &entries);
        let end = (SECTOR_BYTES + frame.len()) as u64;
        let bytes = [&header[..], &frame].concat();
        // Zeros ahead of the log, or none where the disk has no space for them.
        let filled = bytes.len().next_multiple_of(self.settings.fill_bytes);
        let file = self.make(&new, &bytes, filled).or_else(|error| match is_out_of_resources(&error) {
            true => self.make(&new, &bytes, bytes.len()),
            false => Err(error),
        })?;
        // The name is never reused, even if the rename fails.
        self.generation = generation;
        self.disk.rename(&new, &name)?;
        if !planted.has(Fault::ManifestWithoutFolderSync) {
            self.disk.sync_folder()?;
        }
        if let Some(before) = &self.file {
            self.old.push((before.mark.generation, false));
        }
        let mark = ManifestMark { next_segment: 0, generation, end, sum };
        let len = file.size()?;
        self.file = Some(LogFile { file, mark, first_end: end, len, has_failed: false });
        self.logged = logged;
        if planted.has(Fault::ManifestGoesEarly) {
            self.forget_old()?;
        }
        Ok(())
    }

    /// Creates a file of these bytes, filled with zeros up to `len`. Its contents are durable, its name is not yet.
    fn make(&self, name: &str, bytes: &[u8], len: usize) -> io::Result<D::File> {
        let mut bytes = bytes.to_vec();
        bytes.resize(len, 0);
        let made = self.disk.create(name).and_then(|file| {
            disk::write_all(&file, &bytes, 0)?;
            if !self.settings.seal.planted.has(Fault::ManifestWithoutSync) {
                file.sync_data()?;
            }
            Ok(file)
        });
        made.inspect_err(|_| drop(self.disk.remove(name)))
    }

    /// Appends a frame with the changes.
    fn append(&mut self, manifest: &Manifest, logged: Vec<(u32, u32)>) -> io::Result<()> {
        let planted = self.settings.seal.planted;
        let changes = changes(&self.logged, &logged, manifest);
        let Some(file) = &mut self.file else { return Ok(()) };
        let (frame, sum) = frame(self.settings.seal, file.mark.end, file.mark.sum, &changes);
        let end = file.mark.end + frame.len() as u64;
        let fill = self.settings.fill_bytes as u64;
        // Zeros ahead of the log reserve space while the disk has some, for a time when it is full.
        if file.len < end + fill / 2 {
            let len = (end + fill / 2).next_multiple_of(fill);
            let zeros = vec![0; usize::try_from(len - file.len).map_err(io::Error::other)?];
            match disk::write_all(&file.file, &zeros, file.len) {
                Ok(()) => file.len = len,
                Err(error) if is_out_of_resources(&error) && file.len >= end => {}
                Err(error) => return Err(error),
            }
        }
        disk::write_all(&file.file, &frame, file.mark.end)?;
        if !planted.has(Fault::ManifestWithoutSync) {
            file.file.sync_data().inspect_err(|_| file.has_failed = true)?;
        }
        (file.mark.end, file.mark.sum) = (end, sum);
        self.logged = logged;
        Ok(())
    }
}

/// The changes between two states of a log.
fn changes<'a>(before: &[(u32, u32)], now: &[(u32, u32)], manifest: &'a Manifest) -> Vec<Change<'a>> {
    let (mut changes, mut before) = (Vec::new(), before.iter().copied().peekable());
    for (entry, (segment, sum)) in manifest.segments.iter().zip(now.iter().copied()) {
        while let Some((gone, _)) = before.next_if(|(number, _)| *number < segment) {
            changes.push(Change::Gone(gone));
        }
        if before.next_if(|(number, _)| *number == segment) != Some((segment, sum)) {
            changes.push(Change::Set(entry));
        }
    }
    changes.extend(before.map(|(gone, _)| Change::Gone(gone)));
    changes
}

/// Each segment with a checksum of its entry.
fn sums(manifest: &Manifest, seal: Seal) -> Vec<(u32, u32)> {
    let mut bytes = Vec::new();
    let sum = |entry: &ManifestEntry| {
        bytes.clear();
        push_entry(&mut bytes, entry);
        (entry.segment, seal.sum(&[&bytes]))
    };
    manifest.segments.iter().map(sum).collect()
}

#[cfg(test)]
mod tests;
