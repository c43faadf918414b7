//! Finds the segments of a folder by their tables and the manifest of a checkpoint.
//!
//! A segment with damage in its header or table is set aside by renaming, and served from there. Its pages keep their
//! locations, so the manifest stays valid and no interrupted copy is possible.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::disk::Disk;
use crate::planted::Fault;
use crate::settings::OnDamage;

use super::file::{self, FileKind};
use super::open_error::SegmentOpenError;
use super::report::{AbsentSegment, SegmentReport};
use super::segment::Segment;
use super::settings::SegmentSettings;
use super::tables::{SegmentFile, Tables};
use crate::manifest::Manifest;

/// The segments of a folder.
#[derive(Debug)]
pub(crate) struct FoundSegments {
    pub(crate) segments: BTreeMap<u32, Segment>,
    pub(crate) next: u32,
    pub(crate) report: SegmentReport,
}

/// Finds the segments of a folder. Removes files that a crash left behind, and segments that are gone.
pub(crate) fn find<D: Disk>(
    disk: &D,
    settings: &SegmentSettings,
    tables: Tables,
    manifest: &Manifest,
) -> Result<FoundSegments, SegmentOpenError> {
    let begin = Instant::now();
    let planted = settings.seal.planted;
    let (segments, mut report) = (BTreeMap::new(), SegmentReport::default());
    let floor = if planted.has(Fault::SegmentNumberUsedTwice) { 0 } else { manifest.next_segment };
    let mut found = FoundSegments { segments, next: floor, report: SegmentReport::default() };
    let (mut removed, mut damaged) = (Vec::new(), Vec::new());
    for SegmentFile { name, number, kind, inspection } in tables.files {
        found.next = found.next.max(number.saturating_add(1));
        let Some(mut inspection) = inspection else {
            report.unfinished += usize::from(kind == FileKind::New);
            report.transient += usize::from(kind == FileKind::Transient);
            removed.push(name);
            continue;
        };
        if manifest.is_gone(number) && !planted.has(Fault::SegmentComesBack) {
            // A file that was set aside stays until an operator who has inspected it removes it.
            if kind != FileKind::Damaged {
                report.gone += 1;
                removed.push(name);
            }
            continue;
        }
        if let Some(listed) = manifest.segment(number) {
            inspection.know(listed);
            listed.gone.iter().for_each(|index| inspection.discard(*index));
        }
        let kind = if inspection.is_whole { kind } else { FileKind::Damaged };
        if !inspection.is_whole {
            damaged.push((number, name.clone()));
            report.damaged.push(inspection.report(&name));
            report.pages.append(&mut inspection.damaged_pages(&name));
        }
        let gone = manifest.segment(number).map_or(&[][..], |listed| &listed.gone);
        let segment = Segment::new(kind, inspection.into_rows(), gone);
        if segment.is_gone() && kind != FileKind::Damaged {
            report.gone += 1;
            removed.push(name);
            continue;
        }
        found.segments.entry(number).or_insert(segment);
    }
    report.segment_count = found.segments.len();
    report.page_count = found.segments.values().map(Segment::live).sum();
    report.manifest.clone_from(&manifest.damage);
    report.absent = absent(manifest, |number| found.segments.contains_key(&number));
    report.took = tables.took + begin.elapsed();
    if report.is_damaged() && settings.on_damage == OnDamage::Refuse {
        return Err(SegmentOpenError::Damaged(Box::new(report)));
    }
    removed.iter().try_for_each(|name| disk.remove(name))?;
    for (number, name) in damaged {
        let aside = file::name(number, FileKind::Damaged);
        if name != aside {
            disk.rename(&name, &aside)?;
        }
    }
    found.report = report;
    Ok(found)
}

/// Missing segments that the manifest needs.
pub(super) fn absent(manifest: &Manifest, is_there: impl Fn(u32) -> bool) -> Vec<AbsentSegment> {
    let absent = manifest.needed().filter(|listed| !is_there(listed.segment)).map(|listed| AbsentSegment {
        segment: listed.segment,
        name: file::name(listed.segment, FileKind::Durable),
        page_count: listed.needed_count(),
    });
    absent.collect()
}
