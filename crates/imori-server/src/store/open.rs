//! The store is opened: whose it is, what is declared, what the journal holds, and what follows from that.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::{fmt, io};

use imori_core::confirm::Lsn;
use imori_core::id::{DurableQueueId, VhostId};
use imori_core::limits::PAGE_BYTES_GOAL;
use imori_core::memory::Gauge;
use imori_core::name::Name;
use imori_core::record::{Checkpoint, Definition, RecordError, Row, Table};
use imori_core::restore::{Leaving, Restore};
use imori_core::time::Time;
use imori_store::definitions::{Before, Change, Definitions, DefinitionsError};
use imori_store::disk::Disk as _;
use imori_store::folder::{FolderError, StoreFolder};
use imori_store::messages::ReadError;
use imori_store::open::{OpenError, Opened};
use imori_store::record::{Record, RecordType};
use imori_store::recover::RecoverError;
use imori_store::run_mark::LastEnd;
use imori_store::segment::{self, DamagedPage, SegmentOpenError, SegmentSettings, Segments};
use imori_store::settings::{FileBytesError, OnDamage, Settings};
use imori_store::whole_file::ReadFrom;
use tracing::{info, warn};

use super::damages::Damages;
use super::definitions::{DefinitionsThread, of_store};
use super::failure::Failure;
use super::page_facts::{census_of, page_facts, page_ref};
use super::{Journal, Keeper, Pager, Waiters};
use crate::limits::RESTORED_BYTES_MAX;

/// What is asked of a store.
pub(crate) struct Opening<'a> {
    /// The folder.
    pub(crate) folder: &'a Path,
    /// Bytes of a journal file.
    pub(crate) file_bytes: u64,
    /// Journal files that may be live.
    pub(crate) files_max: usize,
    /// Bytes of the disk that are left to others.
    pub(crate) reserve_bytes: u64,
    /// What becomes of damaged files.
    pub(crate) on_damage: OnDamage,
    /// Cells that will wait for it.
    pub(crate) cells: usize,
    /// The vhosts of the configuration.
    pub(crate) vhosts: Vec<Name>,
    /// What restored messages are charged to.
    pub(crate) gauge: Gauge,
    /// When it is.
    pub(crate) now: Time,
}

/// A store that is open, and what was in it.
pub(crate) struct OpenedStore {
    pub(crate) journal: Journal,
    pub(crate) keeper: Keeper,
    pub(crate) pager: Pager,
    pub(crate) damages: Arc<Damages>,
    pub(crate) opened: Opened<File>,
    pub(crate) restore: Restore,
    pub(crate) vhosts: Vec<(Name, VhostId)>,
}

/// Why a store cannot be opened.
#[derive(Debug)]
pub enum StoreError {
    /// The folder cannot be used.
    Folder(FolderError),
    /// The size of journal files is not possible.
    FileBytes(FileBytesError),
    /// The journal cannot be opened.
    Journal(OpenError),
    /// The segments cannot be opened.
    Segments(SegmentOpenError),
    /// The definitions cannot be opened.
    Definitions(DefinitionsError),
    /// A record verifies and cannot be read: a later release wrote it.
    Record {
        /// Its number; 0 for a definition that is not in the journal any more.
        lsn: u64,
        /// Why.
        error: RecordError,
    },
    /// A thread cannot be started.
    Thread(io::Error),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Folder(error) => error.fmt(f),
            StoreError::FileBytes(error) => error.fmt(f),
            StoreError::Journal(error) => write!(f, "{error}; `imori verify` shows what is there"),
            StoreError::Segments(error) => write!(f, "{error}; `imori verify` shows what is there"),
            StoreError::Definitions(error) => write!(f, "{error}; `imori verify` shows what is there"),
            StoreError::Record { lsn, error } => {
                write!(f, "record `{lsn}` cannot be read: {error}; `imori store dump` shows it")
            }
            StoreError::Thread(error) => write!(f, "a thread of the store cannot be started: {error}"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<FolderError> for StoreError {
    fn from(error: FolderError) -> StoreError {
        StoreError::Folder(error)
    }
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> StoreError {
        StoreError::Journal(error)
    }
}

impl From<ReadError<StoreError>> for StoreError {
    fn from(error: ReadError<StoreError>) -> StoreError {
        match error {
            ReadError::Disk(error) => StoreError::Journal(RecoverError::Disk(error).into()),
            ReadError::Taker(error) => error,
        }
    }
}

impl From<SegmentOpenError> for StoreError {
    fn from(error: SegmentOpenError) -> StoreError {
        StoreError::Segments(error)
    }
}

impl From<DefinitionsError> for StoreError {
    fn from(error: DefinitionsError) -> StoreError {
        StoreError::Definitions(error)
    }
}

/// Opens a store, or makes one in an empty folder, and says in the log what was in it.
pub(crate) fn open(opening: Opening<'_>) -> Result<OpenedStore, StoreError> {
    let begin = std::time::Instant::now();
    let gauge = opening.gauge;
    let folder = StoreFolder::open(opening.folder, opening.on_damage)?;
    if folder.is_open_to_others() {
        let folder = folder.path().display();
        warn!(%folder, "others can look into the data folder; take their rights to it away");
    }
    let damages = Arc::new(Damages::of(folder.path()));
    for name in folder.missing() {
        warn!(folder = name, "a folder of the store is missing, with all that stood there; it is made anew");
    }
    damages.note(folder.missing().iter().map(|name| format!("the folder `{name}/` was missing")));
    let last_end = folder.last_end();
    let store = folder.store();
    let settings = Settings::new(store, 0, opening.file_bytes, opening.on_damage);
    let settings = settings.map_err(StoreError::FileBytes)?.keeping_free(opening.reserve_bytes).reading_from(
        match last_end {
            LastEnd::First | LastEnd::Clean | LastEnd::Killed => ReadFrom::Cache,
            LastEnd::PowerLost | LastEnd::DiskFailed => ReadFrom::Device,
        },
    );
    // They are there before the first file of anything else is.
    let has_more = [folder.journal(), folder.segments()]
        .iter()
        .any(|disk| disk.list().is_ok_and(|names| !names.is_empty()));
    let before = if has_more { Before::Definitions } else { Before::Nothing };
    let mut definitions = Definitions::open(&folder.root(), folder.store(), before, opening.on_damage)?;
    if !definitions.damage().is_none() {
        warn!(damage = %definitions.damage(), "definitions are damaged; the file is set aside");
        damages.note([definitions.damage().to_string()]);
    }
    let lacks_rows = definitions.lacks_rows()?;
    let vhosts = vhosts(&mut definitions, &opening.vhosts, lacks_rows)?;
    let was_clean = matches!(last_end, LastEnd::First | LastEnd::Clean);
    let leaving = Leaving { after_bytes: RESTORED_BYTES_MAX, page_bytes: PAGE_BYTES_GOAL };
    let mut restore = Restore::new(gauge.clone(), opening.now, was_clean).leaving(leaving);
    if let Some((_, vhost)) = vhosts.first().filter(|_| lacks_rows) {
        restore = restore.lacking_queues(*vhost);
    }
    let mut keys = BTreeSet::new();
    for table in [Table::Queues, Table::Exchanges, Table::Bindings] {
        for (key, value) in definitions.all(of_store(table))? {
            keys.insert((table, key.clone()));
            restore.row(table, key, value);
        }
    }
    // Definitions are applied, and pages written, once their records are durable.
    let segment_settings = SegmentSettings::new(store, opening.on_damage);
    let last_in_pages = segment::last_record(&folder.segments(), &segment_settings)?;
    let settings = settings.durable_through(last_in_pages.max(Some(definitions.applied())));
    let (opened, mut messages) = imori_store::open::open_apart(&folder.journal(), &settings)?;
    let report = &opened.recovered.report;
    if !report.is_damaged() {
        info!(%last_end, %report, took_ms = begin.elapsed().as_millis(), "the journal is read");
    } else {
        warn!(
            %last_end, %report,
            "the journal is damaged; the files are set aside as `….damaged`, `imori store dump` shows what is in them"
        );
        damages.note(report.findings());
    }
    // Those that were applied too: a damaged row comes back as long as its record is there, and what was deleted
    // since has a later record.
    let pending: Vec<_> = records(&opened, RecordType::Definition).collect();
    read(&pending, |record| restore.definition(Lsn(record.lsn.0), &record.payload))?;
    // Where these change nothing, those that were applied need not be again.
    let is_whole = definitions.damage().is_none() && !restore.amends();
    let applied = if is_whole { definitions.applied().0 } else { 0 };
    restore.define().map_err(|error| StoreError::Record { lsn: 0, error })?;
    let last = records(&opened, RecordType::Checkpoint).last();
    // The first eight bytes are the floor, which the journal has read.
    let checkpoint = last.map_or(&[][..], |record| record.payload.get(8..).unwrap_or_default());
    let checkpoint = Checkpoint::decode(checkpoint)
        .map_err(|error| StoreError::Record { lsn: last.map_or(0, |record| record.lsn.0), error })?;
    let (segments, pages, mut report) =
        Segments::open(folder.segments(), &segment_settings, &census_of(&checkpoint)).map_err(|error| {
            let name = |owner| restore.queue_name(DurableQueueId(owner)).map(Name::to_string);
            StoreError::Segments(error.naming_owners(name))
        })?;
    report.name_owners(|owner| restore.queue_name(DurableQueueId(owner)).map(Name::to_string));
    if report.is_damaged() {
        warn!(
            %report,
            "segments are damaged or missing; what is damaged is set aside as `….damaged` and served as far as it \
             verifies, `imori verify` and `imori store dump` show more"
        );
        damages.note(report.findings());
    } else {
        info!(%report, "the segments are read");
    }
    let doubtful = match was_clean {
        true => (checkpoint.doubtful_below, checkpoint.doubtful_records_below),
        false => (segments.census().next_segment, Lsn(opened.recovered.next.0)),
    };
    restore.checkpoint(checkpoint);
    let owners: BTreeMap<_, _> = pages.iter().map(|facts| (facts.page, facts.owner)).collect();
    pages.into_iter().for_each(|facts| restore.page(page_facts(&facts)));
    let settles: Vec<_> = records(&opened, RecordType::Settle).collect();
    read(&settles, |record| restore.settle(&record.payload))?;
    let counts: Vec<_> = records(&opened, RecordType::Count).collect();
    read(&counts, |record| restore.count(&record.payload))?;
    let seen: Vec<_> = records(&opened, RecordType::Seen).collect();
    read(&seen, |record| restore.seen(Lsn(record.lsn.0), &record.payload))?;
    for place in restore.delayed_pages() {
        let page = segments.read(page_ref(place));
        // What cannot be read stays where it is for the next start.
        let page = page.inspect_err(|error| warn!(%error, "delayed messages of a page are withheld"));
        let Ok(page) = page else { continue };
        if let Some(damage) = page.damage {
            let owner = owners.get(&page_ref(place)).copied().unwrap_or_default();
            let owner_name = restore.queue_name(DurableQueueId(owner)).map(Name::to_string);
            let name = segments.file_name(page_ref(place));
            let damage = DamagedPage { name, owner, owner_name, is_gone: false, damage };
            warn!(%damage, "delayed messages are lost; `imori store dump` shows what there is");
            damages.note([damage.to_string()]);
        }
        let entries = page.entries.iter().map(|entry| (Lsn(entry.lsn.0), &*entry.payload));
        let first = page.entries.first().map_or(0, |entry| entry.lsn.0);
        restore.delayed_page(place, entries).map_err(|error| StoreError::Record { lsn: first, error })?;
    }
    let floor = Lsn(opened.recovered.report.floor.map_or(0, |floor| floor.0));
    for place in restore.pages_to_list(floor) {
        let page = page_ref(place);
        // What cannot be listed is taken for what it was; reading it later tells.
        let listed = segments.read_lsns(page).inspect_err(|error| warn!(%error, "a page cannot be listed"));
        if let Ok(listed) = listed {
            let lsns: Vec<Lsn> = listed.entries.iter().map(|lsn| Lsn(lsn.0)).collect();
            restore.page_list(place, &lsns);
        }
    }
    messages.sift(|record, file| {
        let taken = restore.message(Lsn(record.lsn.0), record.payload, file);
        taken.map_err(|error| StoreError::Record { lsn: record.lsn.0, error })
    })?;
    if lacks_rows {
        mend(&mut definitions, &mut keys, restore.made_anew())?;
    }

    let synced = Lsn(opened.recovered.next.0.saturating_sub(1));
    let pending = pending.iter().filter(|record| record.lsn.0 > applied);
    let pending: Vec<_> = pending.map(|record| (Lsn(record.lsn.0), record.payload.to_vec())).collect();
    let failure = Arc::new(Failure::new(folder));
    let thread =
        DefinitionsThread::start(definitions, keys, Arc::clone(&failure)).map_err(StoreError::Thread)?;
    pending.into_iter().for_each(|(lsn, payload)| thread.note(lsn, payload));
    thread.release(synced);
    let keeper = Keeper::new(opening.files_max, doubtful, restore.gone_pages());
    let waiters = Arc::new(Waiters::new(opening.cells, synced));
    let pager = Pager::start(
        (segments, messages),
        Arc::clone(&failure),
        Arc::clone(&waiters),
        gauge,
        Arc::clone(&damages),
        opening.cells,
    );
    let pager = pager.map_err(StoreError::Thread)?;
    let file_bytes = usize::try_from(opening.file_bytes).unwrap_or(usize::MAX);
    let journal = Journal::new(failure, thread, waiters, file_bytes);
    Ok(OpenedStore { journal, keeper, pager, damages, opened, restore, vhosts })
}

fn records(opened: &Opened<File>, kind: RecordType) -> impl Iterator<Item = &Record> {
    opened.recovered.records.iter().filter(move |record| record.kind == kind)
}

fn read(
    records: &[&Record],
    mut read: impl FnMut(&Record) -> Result<(), RecordError>,
) -> Result<(), StoreError> {
    for record in records {
        read(record).map_err(|error| StoreError::Record { lsn: record.lsn.0, error })?;
    }
    Ok(())
}

/// Notes the queues that were made anew, as they may not be made so again.
fn mend(
    definitions: &mut Definitions,
    keys: &mut BTreeSet<(Table, Vec<u8>)>,
    made_anew: &[(Lsn, Definition)],
) -> Result<(), StoreError> {
    let mut changes = Vec::new();
    for (lsn, definition) in made_anew {
        if let Definition::Queue { name, .. } = definition {
            warn!(queue = %name, "a queue whose definition is lost is back under this name, with its messages");
        }
        for row in definition.rows(*lsn) {
            let Row::Put { table, key, value } = row else { continue };
            keys.insert((table, key.clone()));
            changes.push(Change { table: of_store(table), key: key.into(), value: Some(value.into()) });
        }
    }
    Ok(definitions.mend(changes)?)
}

/// The numbers of vhosts by which records know them: each is given once. Where the row of one was lost that has none
/// now, it has the one that is missing.
fn vhosts(
    definitions: &mut Definitions,
    names: &[Name],
    lacks_rows: bool,
) -> Result<Vec<(Name, VhostId)>, StoreError> {
    let table = imori_store::definitions::Table::Vhosts;
    let known = definitions.all(table)?;
    let number = |value: &[u8]| value.first_chunk().map(|number| u32::from_le_bytes(*number));
    let numbers: BTreeSet<u32> = known.iter().filter_map(|(_, value)| number(value)).collect();
    let is_new = |name: &&Name| !known.iter().any(|(key, _)| key == name.as_bytes());
    let mut next = match lacks_rows && names.iter().filter(is_new).count() == 1 {
        true => (0..).find(|number| !numbers.contains(number)).unwrap_or(0),
        false => numbers.last().map_or(0, |last| last.saturating_add(1)),
    };
    let (mut vhosts, mut changes) = (Vec::new(), Vec::new());
    for name in names {
        let row = known.iter().find(|(key, _)| key == name.as_bytes());
        let id = row.and_then(|(_, value)| number(value)).unwrap_or_else(|| {
            let (key, value) = (name.as_bytes().to_vec().into(), Some(next.to_le_bytes().to_vec().into()));
            changes.push(Change { table, key, value });
            next += 1;
            next - 1
        });
        vhosts.push((name.clone(), VhostId(id)));
    }
    if !changes.is_empty() {
        definitions.apply(definitions.applied(), &changes)?;
    }
    Ok(vhosts)
}
