//! Distinguishes damage from the torn end of a journal, and finds missing numbers.
//!
//! Numbers are consecutive from the floor, or from the store's first number; a missing one is lost.
//! Behind the last number, the length in a file's header shows whether the file was truncated.

use super::read_files::ScannedFile;
use super::report::DamagedFile;
use crate::lsn::{self, Lsn, LsnRange};
use crate::planted::Fault;
use crate::records::{journal_file, record};
use crate::settings::Settings;

/// The verdict on a journal.
pub(crate) struct Verdict {
    /// Numbers that were being written at the end and are missing.
    pub(crate) torn: Vec<LsnRange>,
    pub(crate) damaged: Vec<DamagedFile>,
    /// Lost numbers that were in no existing file.
    pub(crate) absent: Vec<LsnRange>,
    /// The first number that was never used for a record that is kept or may be lost.
    pub(crate) next: Lsn,
}

/// Judges files, given in ascending order of generation. `whole` holds the numbers of whole
/// batches; `accounted` adds those of single records.
pub(crate) fn judge<F>(
    found: &[ScannedFile<F>],
    whole: &[LsnRange],
    accounted: &[LsnRange],
    floor: Option<Lsn>,
    settings: &Settings,
) -> Verdict {
    let file_bytes = found.iter().filter_map(|found| found.scan.header.ok()).map(|header| header.file_bytes);
    let file_bytes = file_bytes.max().unwrap_or(0);
    let short: Vec<u64> = match settings.seal.planted.has(Fault::LengthNotCompared) {
        true => vec![0; found.len()],
        false => found.iter().map(|found| shortened_by(found, file_bytes)).collect(),
    };
    let last_durable = last_durable(whole, settings);
    let acknowledged = acknowledged(found, &short, last_durable);
    let lost = parted(found, lost(accounted, floor, acknowledged));
    let mut next = accounted.last().map(|range| range.last).max(acknowledged).map_or(Lsn::FIRST, Lsn::next);
    let mut torn = torn(found, accounted, last_durable);

    let is_open = |index: usize| short.get(index).is_some_and(|by| *by > 0) && is_last(found, index);
    let open: Vec<usize> = (0..found.len()).filter(|index| is_open(*index)).collect();
    let lost_from = (!open.is_empty()).then(|| first_unknown(acknowledged, accounted));
    if lost_from.is_some() {
        // Numbers of records that may have been in the missing bytes must not be reused.
        let announced = torn.last().map_or(next, |range| range.last.next());
        let gone: u64 = open.iter().filter_map(|index| short.get(*index)).sum();
        next = Lsn(next.max(announced).0 + gone / record::encoded_bytes(0) as u64 + 2);
        torn.clear();
    }

    let (mut owned, mut absent) = (vec![Vec::new(); found.len()], Vec::new());
    for range in lost {
        let owner = owner(found, &range, &short);
        match owner.and_then(|owner| owned.get_mut(owner)) {
            Some(owned) => owned.push(range),
            None => absent.push(range),
        }
    }
    // A batch announced behind everything durable is a torn end, even if its beginning was salvaged
    // and rewritten before power was lost. Numbers below the floor are not needed.
    let needed = |range: LsnRange| {
        let first = floor.map_or(range.first, |floor| range.first.max(floor));
        let last = range.last.min(last_durable?);
        (first <= last).then_some(LsnRange { first, last })
    };
    let absent = lsn::join(absent);
    let mut damaged = Vec::new();
    for (index, (ScannedFile { number, scan, .. }, missing)) in found.iter().zip(owned).enumerate() {
        let has_lost_header = scan.header.is_err();
        let salvaged = scan.salvaged.iter().map(|record| LsnRange::one(record.lsn));
        let mut unverified = salvaged.chain(scan.broken.iter().copied()).filter_map(needed);
        let is_hurt = unverified.any(|range| !lsn::holes(range, whole).is_empty());
        let is_open = open.contains(&index);
        if is_hurt || has_lost_header || is_open || !missing.is_empty() {
            let shortened_by = short.get(index).copied().unwrap_or(0);
            let lost_from = lost_from.filter(|_| is_open);
            let name = journal_file::name(*number);
            damaged.push(DamagedFile { name, missing, has_lost_header, shortened_by, lost_from });
        }
    }
    Verdict { torn, damaged, absent, next }
}

/// The highest number known to be durable, from whole batches or from segments. Later numbers were
/// still being written.
pub(crate) fn last_durable(whole: &[LsnRange], settings: &Settings) -> Option<Lsn> {
    whole.last().map(|range| range.last).max(settings.durable_through)
}

/// The highest number known to be acknowledged. A header names the first number of its file, and
/// the numbers before it were durable. The header counts only if its file was truncated behind it:
/// otherwise it may come from an interrupted opening, and its floor may be torn away.
fn acknowledged<F>(found: &[ScannedFile<F>], short: &[u64], last_durable: Option<Lsn>) -> Option<Lsn> {
    let cut = found.iter().zip(short).filter(|(_, by)| **by > 0);
    let firsts = cut.filter_map(|(found, _)| found.scan.header.ok()?.first);
    // Before the first number of all comes 0, which is the same as none.
    let before = firsts.max().map(|first| Lsn(first.0.saturating_sub(1)));
    last_durable.max(before)
}

/// Acknowledged LSNs that are missing.
fn lost(accounted: &[LsnRange], floor: Option<Lsn>, acknowledged: Option<Lsn>) -> Vec<LsnRange> {
    let first = floor.unwrap_or(Lsn::FIRST).max(Lsn::FIRST);
    acknowledged.map_or(Vec::new(), |last| lsn::holes(LsnRange { first, last }, accounted))
}

/// Splits lost ranges where a file begins, because the parts were in different files.
fn parted<F>(found: &[ScannedFile<F>], lost: Vec<LsnRange>) -> Vec<LsnRange> {
    let mut begins: Vec<Lsn> = found.iter().filter_map(|found| found.scan.lowest()).collect();
    begins.sort_unstable();
    let mut parts = Vec::new();
    for LsnRange { mut first, last } in lost {
        for begin in &begins {
            if (first.next()..=last).contains(begin) {
                parts.push(LsnRange { first, last: Lsn(begin.0.saturating_sub(1)) });
                first = *begin;
            }
        }
        parts.push(LsnRange { first, last });
    }
    parts
}

/// The numbers of the torn end that batch headers announce.
fn torn<F>(found: &[ScannedFile<F>], accounted: &[LsnRange], last_durable: Option<Lsn>) -> Vec<LsnRange> {
    let first = last_durable.map_or(Lsn::FIRST, Lsn::next);
    let announced = found.iter().flat_map(|found| &found.scan.broken).filter(|range| range.last >= first);
    let holes = announced
        .flat_map(|range| lsn::holes(LsnRange { first: range.first.max(first), ..*range }, accounted));
    lsn::join(holes.collect())
}

/// The number of missing bytes of a file that may have held acknowledged records. A header without
/// a first number belongs to a file that was never written to. A file without a header is assumed
/// to be as long as the others.
fn shortened_by<F>(found: &ScannedFile<F>, file_bytes: u64) -> u64 {
    match found.scan.header {
        Ok(header) if header.first.is_none() => 0,
        Ok(header) => header.file_bytes.saturating_sub(found.bytes),
        Err(_) => file_bytes.saturating_sub(found.bytes),
    }
}

/// Whether this is the last file, so that no other file shows where it ended.
fn is_last<F>(found: &[ScannedFile<F>], index: usize) -> bool {
    let lowest = found.get(index).and_then(|found| found.scan.lowest());
    lowest.is_none() || found.iter().all(|other| other.scan.lowest() <= lowest)
}

/// The lowest number after the acknowledged ones that no batch or record accounts for.
fn first_unknown(acknowledged: Option<Lsn>, accounted: &[LsnRange]) -> Lsn {
    let next = acknowledged.map_or(Lsn::FIRST, Lsn::next);
    let around = accounted.iter().find(|range| (range.first..=range.last).contains(&next));
    around.map_or(next, |range| range.last.next())
}

/// The file that held a lost range: the one that begins closest before it. `None` if that file is
/// missing.
fn owner<F>(found: &[ScannedFile<F>], range: &LsnRange, short: &[u64]) -> Option<usize> {
    let begins = found.iter().enumerate().filter_map(|(index, found)| Some((found.scan.lowest()?, index)));
    let before = begins.filter(|(lowest, _)| *lowest <= range.first).max().map(|(_, index)| index);
    let owner = before
        .filter(|index| short.get(*index).is_some_and(|by| *by > 0) || !is_between(found, *index, range));
    // Otherwise assume a file without header and batches, which may have held anything.
    owner.or_else(|| {
        found.iter().position(|found| found.scan.header.is_err() && found.scan.lowest().is_none())
    })
}

/// Whether a range lies between this file and the next, with a file missing in between.
fn is_between<F>(found: &[ScannedFile<F>], index: usize, range: &LsnRange) -> bool {
    let Some(before) = found.get(index) else { return false };
    let scan = &before.scan;
    let salvaged = scan.salvaged.iter().map(|record| record.lsn);
    let ends = scan.whole.iter().chain(&scan.broken).map(|range| range.last).chain(salvaged);
    let behind = found.iter().find(|found| found.scan.lowest() == Some(range.last.next()));
    let generations = scan.generation.zip(behind.and_then(|behind| behind.scan.generation));
    // Generations rise by one per file, except when a generation was not used.
    ends.max().is_some_and(|highest| highest < range.first)
        && generations.is_some_and(|(before, behind)| behind > before.saturating_add(1))
}

#[cfg(test)]
mod rows;
#[cfg(test)]
mod tests;
