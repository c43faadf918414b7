//! Opens the store: checks the folder, reads definitions, recovers the journal and finds the pages.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use imori_core::confirm::Lsn;
use imori_core::id::VhostId;
use imori_core::limits::PAGE_BYTES_GOAL;
use imori_core::memory::Gauge;
use imori_core::name::Name;
use imori_core::policy::Policies;
use imori_core::record::{Checkpoint, RecordError};
use imori_core::restore::{Leaving, Restore};
use imori_core::time::Time;
use imori_store::definitions::{Row, Table};
use imori_store::disk::ReadFrom;
use imori_store::folder::StoreFolder;
use imori_store::folder::run_mark::LastEnd;
use imori_store::journal::{Opened, open_apart};
use imori_store::records::{Record, RecordType};
use imori_store::recovery::Report;
use imori_store::segment::{SegmentSettings, Tables};
use imori_store::settings::{OnDamage, Settings};
use tracing::{info, warn};

use super::damages::Damages;
use super::declared::Declared;
use super::definitions::{DefinitionRows, DefinitionsThread};
use super::failure::Failure;
use super::found_pages::FoundPages;
use super::store_error::StoreError;
use super::{Checkpointer, Journal, Pager, Waiters};
use crate::clock::millis;
use crate::limits::RESTORED_BYTES_MAX;

/// Parameters of opening a store.
pub(crate) struct Opening<'a> {
    /// The data folder.
    pub(crate) folder: &'a Path,
    /// Size of a journal file in bytes.
    pub(crate) file_bytes: u64,
    /// Journal files that may be live.
    pub(crate) files_max: usize,
    /// Bytes of the disk to leave free.
    pub(crate) reserve_bytes: u64,
    /// The treatment of damaged files.
    pub(crate) on_damage: OnDamage,
    /// Number of cells that will wait for the journal.
    pub(crate) cells: usize,
    /// The vhosts of the configuration.
    pub(crate) vhosts: Vec<Name>,
    /// Reads the stored objects of operators and returns their policies.
    pub(crate) objects: &'a mut ReadObjects<'a>,
    /// The gauge that restored messages are charged to.
    pub(crate) gauge: Gauge,
    /// The time of the start.
    pub(crate) now: Time,
}

/// Takes the rows of operators' objects and all vhosts; returns the policies in effect for each vhost.
pub(crate) type ReadObjects<'a> = dyn FnMut(&[Row], &[(Name, VhostId)]) -> Vec<(VhostId, Policies)> + 'a;

/// An open store and its content.
pub(crate) struct OpenedStore {
    pub(crate) journal: Journal,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) pager: Pager,
    pub(crate) damages: Arc<Damages>,
    pub(crate) opened: Opened<File>,
    pub(crate) restore: Restore,
    pub(crate) vhosts: Vec<(Name, VhostId)>,
    /// Changes the rows of vhosts and of operators' objects.
    pub(crate) rows: DefinitionRows,
    /// Users, permissions or policies were lost, and no operator has recovered them.
    pub(crate) lacks_objects: bool,
}

/// Opens a store, or creates one in an empty folder, and logs what it found.
pub(crate) fn open(opening: Opening<'_>) -> Result<OpenedStore, StoreError> {
    let begin = Instant::now();
    let folder = StoreFolder::open(opening.folder, opening.on_damage)?;
    let damages = Arc::new(Damages::of(folder.path()));
    tell_of_folder(&folder, &damages);
    let last_end = folder.last_end();
    let was_clean = matches!(last_end, LastEnd::First | LastEnd::Clean);
    let mut declared = Declared::open(&folder, &opening.vhosts, opening.on_damage, &damages)?;
    let leaving = Leaving { after_bytes: RESTORED_BYTES_MAX, page_bytes: PAGE_BYTES_GOAL };
    let restore = Restore::new(opening.gauge.clone(), opening.now, was_clean).leaving(leaving);
    // Policies come before queues, because restored messages are checked against the settings in effect.
    let objects = declared.definitions.all(Table::Objects)?;
    let policies = (opening.objects)(&objects, &declared.vhosts);
    let mut restore = declared.tell(restore.under(policies))?;

    let segment_settings = SegmentSettings::new(folder.store(), opening.on_damage);
    let tables = Tables::read(&folder.segments(), &segment_settings)?;
    // Definitions and durable pages are only written after their records, so these records are durable.
    let durable = tables.last_record().max(Some(declared.definitions.applied()));
    let settings = journal_settings(&folder, &opening)?.durable_through(durable);
    let (opened, mut messages) = open_apart(&folder.journal(), &settings)?;
    tell_of_journal(last_end, &opened.recovered.report, begin.elapsed(), &damages);

    // Applied definitions are read again, so that a damaged row is repaired while its record exists. A row deleted
    // since then has a later record that says so.
    each(&opened, RecordType::Definition, |lsn, payload| restore.definition(lsn, payload))?;
    let applied = declared.applied(&restore);
    restore.define().map_err(|error| StoreError::Record { lsn: 0, error })?;
    let (checkpoint, lsn) = last_checkpoint(&opened);
    let checkpoint = Checkpoint::decode(checkpoint).map_err(|error| StoreError::Record { lsn, error })?;
    let found = FoundPages::open(&folder, &segment_settings, tables, &checkpoint, &restore, &damages)?;
    let doubtful = match was_clean {
        true => (checkpoint.doubtful_below, checkpoint.doubtful_records_below),
        false => (found.segments.manifest().next_segment, Lsn(opened.recovered.next.0)),
    };
    restore.checkpoint(checkpoint);
    found.tell(&mut restore)?;
    each(&opened, RecordType::Settle, |_, payload| restore.settle(payload))?;
    each(&opened, RecordType::Purge, |_, payload| restore.purge(payload))?;
    each(&opened, RecordType::Stream, |lsn, payload| restore.stream(lsn, payload))?;
    each(&opened, RecordType::Count, |_, payload| restore.count(payload))?;
    each(&opened, RecordType::Annotations, |_, payload| restore.annotations(payload))?;
    each(&opened, RecordType::Seen, |lsn, payload| restore.seen(lsn, payload))?;
    found.tell_delayed(&mut restore, &damages)?;
    let floor = opened.recovered.report.floor.map_or(Lsn(0), |floor| Lsn(floor.0));
    found.tell_lists(&mut restore, floor, &damages);
    messages.retain(|record, file| {
        let taken = restore.message(Lsn(record.lsn.0), record.payload, file);
        taken.map_err(|error| StoreError::Record { lsn: record.lsn.0, error })
    })?;
    declared.repair(restore.made_anew())?;

    let synced = Lsn(opened.recovered.next.0.saturating_sub(1));
    let failure = Arc::new(Failure::new(folder));
    let Declared { definitions, keys, vhosts, lacks_objects, .. } = declared;
    let thread =
        DefinitionsThread::start(definitions, keys, Arc::clone(&failure)).map_err(StoreError::Thread)?;
    each(&opened, RecordType::Definition, |lsn, payload| {
        if lsn > applied {
            thread.note(lsn, payload.to_vec());
        }
        Ok(())
    })?;
    thread.release(synced);
    let rows = thread.rows();
    let checkpointer = Checkpointer::new(opening.files_max, doubtful, restore.gone_pages());
    let waiters = Arc::new(Waiters::new(opening.cells, synced));
    let pager = Pager::start(
        (found.segments, found.manifest_log, messages),
        Arc::clone(&failure),
        Arc::clone(&waiters),
        opening.gauge,
        Arc::clone(&damages),
        opening.cells,
    );
    let pager = pager.map_err(StoreError::Thread)?;
    let file_bytes = usize::try_from(opening.file_bytes).unwrap_or(usize::MAX);
    let journal = Journal::new(failure, thread, waiters, file_bytes);
    Ok(OpenedStore { journal, checkpointer, pager, damages, opened, restore, vhosts, rows, lacks_objects })
}

fn journal_settings(folder: &StoreFolder, opening: &Opening<'_>) -> Result<Settings, StoreError> {
    let settings = Settings::new(folder.store(), 0, opening.file_bytes, opening.on_damage);
    let read_from = match folder.last_end() {
        LastEnd::First | LastEnd::Clean | LastEnd::Killed => ReadFrom::Cache,
        LastEnd::PowerLost | LastEnd::DiskFailed => ReadFrom::Device,
    };
    let settings = settings.map_err(StoreError::FileBytes)?;
    Ok(settings.keeping_free(opening.reserve_bytes).reading_from(read_from))
}

fn tell_of_folder(folder: &StoreFolder, damages: &Damages) {
    if folder.is_open_to_others() {
        let folder = folder.path().display();
        warn!(%folder, "others can look into the data folder; take their rights to it away");
    }
    for name in folder.missing() {
        warn!(folder = name, "a folder of the store is missing, with all that stood there; it is made anew");
    }
    damages.note(folder.missing().iter().map(|name| format!("the folder `{name}/` was missing")));
}

fn tell_of_journal(last_end: LastEnd, report: &Report, took: Duration, damages: &Damages) {
    if report.is_damaged() {
        warn!(
            %last_end, %report,
            "the journal is damaged; the files are set aside as `….damaged`, `imori store dump` shows what is in them"
        );
        damages.note(report.findings());
    } else {
        info!(%last_end, %report, took_ms = millis(took), "the journal is read");
    }
}

/// Passes all records of one kind to `read`, in order.
fn each(
    opened: &Opened<File>,
    kind: RecordType,
    mut read: impl FnMut(Lsn, &[u8]) -> Result<(), RecordError>,
) -> Result<(), StoreError> {
    for record in opened.recovered.records.iter().filter(|record| record.kind == kind) {
        let read = read(Lsn(record.lsn.0), &record.payload);
        read.map_err(|error| StoreError::Record { lsn: record.lsn.0, error })?;
    }
    Ok(())
}

/// Payload of the last checkpoint without its floor, and its LSN; empty and 0 if there is none.
fn last_checkpoint(opened: &Opened<File>) -> (&[u8], u64) {
    let is_checkpoint = |record: &&Record| record.kind == RecordType::Checkpoint;
    let Some(last) = opened.recovered.records.iter().rfind(is_checkpoint) else { return (&[], 0) };
    // The first eight bytes are the floor, which the journal has already read.
    (last.payload.get(8..).unwrap_or_default(), last.lsn.0)
}
