//! The tables of all segments in a folder, read once: first the journal is told which records they have, as these were
//! durable whatever it shows of them, then the segments are opened by what its last checkpoint says.

use std::time::{Duration, Instant};

use crate::disk::Disk;
use crate::lsn::Lsn;
use crate::planted::Fault;

use super::file::{self, FileKind};
use super::inspect::{TableInspection, inspect};
use super::open_error::SegmentOpenError;
use super::settings::SegmentSettings;

/// What the files of segments say of their pages.
#[derive(Debug)]
pub struct Tables {
    pub(super) files: Vec<SegmentFile>,
    /// How long it took to read them.
    pub(super) took: Duration,
}

/// One file.
#[derive(Debug)]
pub(super) struct SegmentFile {
    pub(super) name: String,
    pub(super) number: u32,
    pub(super) kind: FileKind,
    /// None where it ends with the run that wrote it, or was never whole.
    pub(super) inspection: Option<TableInspection>,
}

impl Tables {
    /// Reads them, also those of segments that are gone; changes nothing.
    ///
    /// # Errors
    /// [`SegmentOpenError`], but for damage: what verifies is enough.
    pub fn read<D: Disk>(disk: &D, settings: &SegmentSettings) -> Result<Tables, SegmentOpenError> {
        let begin = Instant::now();
        let transient_stays = settings.seal.planted.has(Fault::TransientStays);
        let mut files = Vec::new();
        for name in disk.list()? {
            let Some((number, kind)) = file::parse_name(&name) else { continue };
            let ends = kind == FileKind::New || kind == FileKind::Transient && !transient_stays;
            let inspection = if ends { None } else { Some(inspect(disk, settings, number, &name)?) };
            files.push(SegmentFile { name, number, kind, inspection });
        }
        Ok(Tables { files, took: begin.elapsed() })
    }

    /// The highest record of which a page is durable.
    #[must_use]
    pub fn last_record(&self) -> Option<Lsn> {
        let durable = self.files.iter().filter(|file| file.kind != FileKind::Transient);
        let rows = durable
            .filter_map(|file| file.inspection.as_ref())
            .flat_map(|inspection| inspection.rows.iter().flatten());
        rows.map(|row| row.facts.last).max()
    }
}
