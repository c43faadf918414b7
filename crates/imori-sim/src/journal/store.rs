//! Opens a store in the order of the server: the journal, the checkpoint in it, the segments.

use imori_core::record::Checkpoint;
use imori_server::manifest_mark;
use imori_store::disk::sim_disk::SimDisk;
use imori_store::folder::run_mark::{self, BootId, LastEnd};
use imori_store::limits::BLOCK_BYTES;
use imori_store::lsn::Lsn;
use imori_store::manifest::{Manifest, ManifestLog, ManifestSettings};
use imori_store::records::{Record, RecordType};
use imori_store::recovery::{Messages, Recovered};
use imori_store::seal::StoreId;
use imori_store::segment::{PageFacts, SegmentSettings, Segments, Tables};
use imori_store::settings::{OnDamage, Settings};

use super::definitions::Definitions;
use super::device::{Device, DeviceFile};
use super::log::Log;
use crate::planted::Bug;

/// An open store.
pub(crate) struct Store {
    pub(crate) log: Log,
    pub(crate) segments: Segments<Device>,
    pub(crate) manifest_log: ManifestLog<Device>,
}

/// The content of a store at its opening.
pub(crate) struct OpenedStore {
    /// The journal's records, without messages.
    pub(crate) recovered: Recovered,
    pub(crate) messages: Messages<DeviceFile>,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) pages: Vec<PageFacts>,
    /// Whether the last process ended in order and wrote everything.
    pub(crate) was_clean: bool,
}

/// The id of every run's store.
const STORE: StoreId = StoreId([7; 16]);

impl Store {
    /// The settings of a journal with this many blocks per file.
    pub(crate) fn journal_settings(file_blocks: usize) -> Settings {
        Settings::with_few_blocks(STORE, file_blocks)
    }

    /// The settings of manifests, which are small here.
    pub(crate) fn manifest_settings() -> ManifestSettings {
        ManifestSettings::new(STORE).small()
    }

    /// The settings of segments.
    pub(crate) fn segment_settings() -> SegmentSettings {
        SegmentSettings::new(STORE, OnDamage::Quarantine)
    }

    /// Opens the store on the disk, or creates one; returns its content, too. `boot` changes with a
    /// power cut.
    pub(crate) fn open(
        device: Device,
        boot: u8,
        file_blocks: usize,
        definitions: Definitions,
        bug: Option<Bug>,
    ) -> Result<(Store, OpenedStore), String> {
        let settings = Store::journal_settings(file_blocks);
        let boot = Some(BootId([boot; 16]));
        let last_end = run_mark::read(&device, boot).map_err(|error| error.to_string())?;
        let mark = match (bug, last_end) {
            (Some(Bug::CleanMarkStays), LastEnd::Clean) => {
                run_mark::begin(&Device::new(SimDisk::default(), bug), boot)
            }
            _ => run_mark::begin(&device, boot),
        };
        let mark = mark.map_err(|error| error.to_string())?;
        let was_clean = last_end == LastEnd::Clean;
        let tables = Tables::read(&device, &Store::segment_settings()).map_err(|error| error.to_string())?;
        let settings = settings.durable_through(tables.last_record().max(Some(Lsn(definitions.applied.0))));
        let (log, recovered, messages) =
            Log::open((device.clone(), mark), &settings, file_blocks * BLOCK_BYTES, definitions, bug)?;
        if !recovered.report.damaged.is_empty() {
            return Err(recovered.report.to_string());
        }
        let checkpoint = last_checkpoint(&recovered.records)?;
        let opened =
            ManifestLog::open(device.clone(), &Store::manifest_settings(), manifest_mark(&checkpoint));
        let (manifest_log, manifest) = opened.map_err(|error| error.to_string())?;
        let known = if bug == Some(Bug::ManifestUnread) { Manifest::default() } else { manifest };
        let opened = Segments::with_tables(device, &Store::segment_settings(), tables, &known);
        let (segments, report) = opened.map_err(|error| error.to_string())?;
        let mut pages = Vec::new();
        segments.each_page(|facts| pages.push(*facts)).map_err(|error| error.to_string())?;
        if report.is_damaged() {
            return Err(report.to_string());
        }
        Ok((
            Store { log, segments, manifest_log },
            OpenedStore { recovered, messages, checkpoint, pages, was_clean },
        ))
    }
}

/// The last checkpoint among these records.
pub(crate) fn last_checkpoint(records: &[Record]) -> Result<Checkpoint, String> {
    let last = records.iter().rfind(|record| record.kind == RecordType::Checkpoint);
    // The first eight bytes are the floor, which the journal has read.
    let payload = last.and_then(|record| record.payload.get(8..)).unwrap_or_default();
    Checkpoint::decode(payload).map_err(|error| format!("a checkpoint cannot be read: {error}"))
}
