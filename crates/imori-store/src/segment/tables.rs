//! The tables of all segments in a folder, read once. Rows of segments that are whole stay on disk.
//!
//! They show which records of the journal were durable, whatever the journal itself shows. Later the segments are
//! opened with the manifest in the journal's last checkpoint.

use std::time::{Duration, Instant};

use crate::disk::Disk;
use crate::lsn::Lsn;
use crate::planted::Fault;

use super::file::{self, FileKind};
use super::inspect::{TableInspection, inspect};
use super::open_error::SegmentOpenError;
use super::settings::SegmentSettings;

/// The tables of all segment files.
#[derive(Debug)]
pub struct Tables {
    pub(super) files: Vec<SegmentFile>,
    /// Duration of the reading.
    pub(super) took: Duration,
}

/// One file.
#[derive(Debug)]
pub(super) struct SegmentFile {
    pub(super) name: String,
    pub(super) number: u32,
    pub(super) kind: FileKind,
    /// The findings; `None` for a transient or an incomplete file.
    pub(super) inspection: Option<TableInspection>,
}

impl Tables {
    /// Reads all tables, including those of gone segments, and changes nothing.
    ///
    /// # Errors
    ///
    /// [`SegmentOpenError`], except for damage: the rows that verify are enough.
    pub fn read<D: Disk>(disk: &D, settings: &SegmentSettings) -> Result<Tables, SegmentOpenError> {
        let begin = Instant::now();
        let transient_stays = settings.seal.planted.has(Fault::TransientStays);
        let mut files = Vec::new();
        for name in disk.list()? {
            let Some((number, kind)) = file::parse_name(&name) else { continue };
            let ends = kind == FileKind::New || kind == FileKind::Transient && !transient_stays;
            let inspection =
                if ends { None } else { Some(inspect(disk, settings, number, &name)?.leave_rows()) };
            files.push(SegmentFile { name, number, kind, inspection });
        }
        Ok(Tables { files, took: begin.elapsed() })
    }

    /// The highest LSN in a durable page.
    #[must_use]
    pub fn last_record(&self) -> Option<Lsn> {
        let durable = self.files.iter().filter(|file| file.kind != FileKind::Transient);
        durable.filter_map(|file| file.inspection.as_ref()?.last).max()
    }
}
