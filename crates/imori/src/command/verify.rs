//! `imori verify`: checks a store that no broker is using, without changing it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use clap::Args;
use imori_core::name::Name;
use imori_core::policy::QueueKind;
use imori_core::record::{Checkpoint, Definition, MessageRecord, Row, StreamRecord, Table};
use imori_store::definitions::{self, DefinitionsError, DefinitionsInspection, NAME};
use imori_store::disk::ReadOnlyDisk;
use imori_store::folder::identity::IdentityError;
use imori_store::folder::{FolderError, FolderInspection, JOURNAL, SEGMENTS};
use imori_store::limits::FILE_BYTES_DEFAULT;
use imori_store::lsn::Lsn;
use imori_store::manifest::{self, ManifestMark, ManifestSettings};
use imori_store::records::{Record, RecordType};
use imori_store::recovery::{self, RecoverError};
use imori_store::seal::StoreId;
use imori_store::segment::{
    self, DamagedPage, PageRef, SegmentOpenError, SegmentPiece, SegmentSettings, Tables,
};
use imori_store::settings::{OnDamage, Settings};

use super::argument::DataFolder;
use crate::output::{print, print_error};

/// Check whether a broker's stored data is sound. Stop the broker first; nothing is changed.
///
/// Reads the journal, the segments and the definitions whole and prints the contents, each damaged place and the
/// resulting loss.
///
/// Exit codes: 0 sound, 1 damage, 2 it cannot be looked at.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    folder: DataFolder,
}

/// The exit code for a damaged store.
const DAMAGED: u8 = 1;
/// The exit code for a store that cannot be read.
const UNSEEN: u8 = 2;

/// The report so far, and how much damage it lists.
#[derive(Default)]
struct Findings {
    text: String,
    damage_count: usize,
}

impl Verify {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let path = self.folder.path()?;
        let mut findings = Findings::default();
        let seen = look(&path, &mut findings);
        print(findings.text.as_bytes())?;
        if let Err(why) = seen {
            print_error(&why);
            return Ok(UNSEEN);
        }
        let (verdict, code) = match findings.damage_count {
            0 => ("sound\n".to_string(), 0),
            1 => ("damaged: 1 finding\n".to_string(), DAMAGED),
            count => (format!("damaged: {count} findings\n"), DAMAGED),
        };
        print(verdict.as_bytes())?;
        Ok(code)
    }
}

impl Findings {
    fn note(&mut self, what: &str) {
        // Writing to a string succeeds.
        let _ = writeln!(self.text, "{what}");
    }

    fn damage(&mut self, what: &str) {
        self.damage_count += 1;
        self.note(what);
    }
}

/// Inspects all parts; the error tells why one of them cannot be read.
fn look(path: &Path, findings: &mut Findings) -> Result<(), String> {
    let folder = match FolderInspection::open(path) {
        Ok(folder) => folder,
        // Every checksum includes the store's id; without the id none can be checked.
        Err(
            error @ (FolderError::NoIdentity { .. }
            | FolderError::Identity { error: IdentityError::Damaged, .. }),
        ) => {
            findings.damage(&error.to_string());
            return Ok(());
        }
        Err(error) => return Err(error.to_string()),
    };
    findings.note(&format!("store {}: {}", hexadecimal(folder.store), folder.last_end));
    if folder.is_open_to_others {
        findings.note("the folder is open to other users of this host; `chmod 700` closes it");
    }
    let mut names = BTreeMap::new();
    let definitions = definitions::inspect(&ReadOnlyDisk::new(path.to_owned()), folder.store);
    // A definition is applied, and a page written, once its record is durable.
    let applied = definitions.iter().flatten().map(|found| found.applied).next();
    let durable = last_in_pages(path, folder.store)?.max(applied);
    if let Ok(Some(found)) = &definitions {
        found.queues.iter().for_each(|(key, value)| note_name(&mut names, key, value));
    }
    let Journal { ends_before, has_files, manifest, streams } =
        look_at_journal((path, folder.store), durable, findings, &mut names)?;
    look_at_segments(path, folder.store, findings, manifest, (&names, &streams))?;
    tell_definitions(definitions, has_files, findings)?;
    match (ends_before, applied) {
        (Some(end), Some(applied)) if applied >= end => findings.damage(&format!(
            "the definitions are as of number {applied} and the journal ends before {end}: one of them is of \
             another time; restore both from one copy"
        )),
        _ => {}
    }
    Ok(())
}

/// Facts from the journal that the other parts are checked against.
#[derive(Default)]
struct Journal {
    /// The number after its last record, if records are missing after it and no file is known to
    /// have held them.
    ends_before: Option<Lsn>,
    /// Whether the journal has files; a broker writes definitions before its first one.
    has_files: bool,
    /// The place in the manifest of segments that the last checkpoint names.
    manifest: ManifestMark,
    /// Its records of streams, by the key that segments use for their queues.
    streams: BTreeMap<u64, StreamRecords>,
}

/// The records of a stream in the journal.
#[derive(Default)]
struct StreamRecords {
    message_count: usize,
    /// The lowest and the highest sequence number of these messages.
    span: Option<(u64, u64)>,
    /// Number of messages whose removal is recorded.
    removed: u64,
    consumers: BTreeSet<Name>,
}

impl StreamRecords {
    fn note_message(&mut self, sequence: u64) {
        self.message_count += 1;
        let (first, last) = self.span.unwrap_or((sequence, sequence));
        self.span = Some((first.min(sequence), last.max(sequence)));
    }

    fn note_removed(&mut self, ranges: Vec<(u64, u64)>) {
        let count = |(first, last): (u64, u64)| last.saturating_sub(first).saturating_add(1);
        self.removed = ranges.into_iter().map(count).fold(self.removed, u64::saturating_add);
    }

    fn note(&mut self, record: StreamRecord) {
        match record {
            StreamRecord::Removed(_, ranges) => self.note_removed(ranges),
            StreamRecord::Consumer(_, state) => {
                self.consumers.insert(state.name);
            }
            StreamRecord::ConsumerGone(_, name) => {
                self.consumers.remove(&name);
            }
            StreamRecord::Mark(..) | StreamRecord::Acked(..) | StreamRecord::Scheduled(..) => {}
        }
    }
}

/// Queues by the key that segments use for them.
type Names = BTreeMap<u64, NamedQueue>;

struct NamedQueue {
    name: String,
    is_stream: bool,
}

/// The highest record number in any page; that record was durable, whatever the journal shows.
fn last_in_pages(path: &Path, store: StoreId) -> Result<Option<Lsn>, String> {
    let folder = path.join(SEGMENTS);
    let settings = SegmentSettings::new(store, OnDamage::Quarantine);
    match folder.is_dir().then(|| Tables::read(&ReadOnlyDisk::new(folder), &settings)) {
        Some(Ok(tables)) => Ok(tables.last_record()),
        // `look_at_segments` reports this error.
        None | Some(Err(SegmentOpenError::Foreign { .. })) => Ok(None),
        Some(Err(error)) => Err(error.to_string()),
    }
}

/// Recovers the journal in memory and collects the names of the queues declared in it.
fn look_at_journal(
    (path, store): (&Path, StoreId),
    durable_through: Option<Lsn>,
    findings: &mut Findings,
    names: &mut Names,
) -> Result<Journal, String> {
    let folder = path.join(JOURNAL);
    if !folder.is_dir() {
        findings.damage(&format!("the folder `{JOURNAL}` is missing; restore it"));
        return Ok(Journal::default());
    }
    let disk = ReadOnlyDisk::new(folder);
    let settings = Settings::new(store, 0, FILE_BYTES_DEFAULT, OnDamage::Quarantine);
    let settings = settings.map_err(|error| error.to_string())?.durable_through(durable_through);
    match recovery::recover(&disk, &settings) {
        Ok(recovered) => {
            let report = &recovered.report;
            findings.damage_count += report.damaged.len() + report.absent.len();
            findings.note(&format!("journal: {report}"));
            for record in recovered.records.iter().filter(|record| record.kind == RecordType::Definition) {
                let Ok(definition) = Definition::decode(&record.payload) else { continue };
                if let Definition::QueueGone { queue } = &definition
                    && let Some(gone) = names.get_mut(&queue.0)
                {
                    gone.is_stream = false;
                }
                for row in definition.rows(number(record)) {
                    if let Row::Put { table: Table::Queues, key, value } = row {
                        note_name(names, &key, &value);
                    }
                }
            }
            let checkpoint = recovered.records.iter().rfind(|record| record.kind == RecordType::Checkpoint);
            let manifest = checkpoint.map(manifest_mark).unwrap_or_default();
            let last = report.records.map_or(Lsn::FIRST, |range| range.last.next());
            let is_cut = report.damaged.iter().any(|file| file.shortened_by > 0 || file.has_lost_header);
            let ends_before = (report.is_damaged() && !is_cut).then_some(last);
            let streams = streams_in(&recovered.records);
            Ok(Journal { ends_before, has_files: report.file_count > 0, manifest, streams })
        }
        Err(error @ RecoverError::Foreign { .. }) => {
            findings.damage(&format!("journal: {error}"));
            Ok(Journal::default())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn number(record: &Record) -> imori_core::confirm::Lsn {
    imori_core::confirm::Lsn(record.lsn.0)
}

/// The journal's records of streams. Those that cannot be read are left out; recovery reports them.
fn streams_in(records: &[Record]) -> BTreeMap<u64, StreamRecords> {
    let mut streams = BTreeMap::<u64, StreamRecords>::new();
    for record in records {
        match record.kind {
            RecordType::Message => {
                let Ok(message) = MessageRecord::decode(&record.payload) else { continue };
                for (queue, sequence) in message.sequences {
                    streams.entry(queue.0).or_default().note_message(sequence);
                }
                for (queue, ranges) in message.dropped {
                    streams.entry(queue.0).or_default().note_removed(ranges);
                }
            }
            RecordType::Stream => {
                if let Ok(record) = StreamRecord::decode(&record.payload) {
                    streams.entry(record.queue().0).or_default().note(record);
                }
            }
            _ => {}
        }
    }
    streams
}

/// The pages of a queue that are needed.
struct OwnedPages {
    page_count: usize,
    entry_count: u64,
    first_sequence: u64,
    last_sequence: u64,
}

/// The needed pages of streams, by the key of their queues; `is_gone` tells which pages are not needed.
fn pages_of_streams(
    disk: &ReadOnlyDisk,
    store: StoreId,
    names: &Names,
    is_gone: impl Fn(PageRef) -> bool,
) -> io::Result<BTreeMap<u64, OwnedPages>> {
    let mut owners = BTreeMap::new();
    if !names.values().any(|queue| queue.is_stream) {
        return Ok(owners);
    }
    for name in segment::files(disk)? {
        segment::walk(disk, store, &name, &mut |_, piece| {
            if let SegmentPiece::Page(facts) = piece
                && names.get(&facts.owner).is_some_and(|queue| queue.is_stream)
                && !is_gone(facts.page)
            {
                let (first, last) = (facts.first_sequence, facts.last_sequence);
                let owned = owners.entry(facts.owner).or_insert(OwnedPages {
                    page_count: 0,
                    entry_count: 0,
                    first_sequence: first,
                    last_sequence: last,
                });
                owned.page_count += 1;
                owned.entry_count += u64::from(facts.count);
                owned.first_sequence = owned.first_sequence.min(first);
                owned.last_sequence = owned.last_sequence.max(last);
            }
            Ok::<_, io::Error>(())
        })?;
    }
    Ok(owners)
}

/// What a store has of a stream, on one line.
fn stream_text(
    name: &str,
    pages: Option<&OwnedPages>,
    journal: Option<&StreamRecords>,
    damaged: &[&DamagedPage],
) -> String {
    let mut parts = Vec::new();
    if let Some(OwnedPages { page_count, entry_count, first_sequence, last_sequence }) = pages {
        parts.push(format!(
            "{entry_count} messages in {page_count} pages, {first_sequence} to {last_sequence}"
        ));
    }
    if let Some(StreamRecords { message_count, span, removed, consumers }) = journal {
        parts.extend(span.map(|(first, last)| format!("{message_count} in the journal, {first} to {last}")));
        parts.extend((*removed > 0).then(|| format!("{removed} removed since")));
        parts.extend((!consumers.is_empty()).then(|| format!("{} consumers", consumers.len())));
    }
    if parts.is_empty() {
        parts.push(String::from("no messages"));
    }
    if !damaged.is_empty() {
        let lost: u64 = damaged.iter().map(|page| u64::from(page.damage.lost)).sum();
        parts.push(format!("{lost} messages lost in {} damaged pages", damaged.len()));
    }
    format!("stream {name}: {}", parts.join("; "))
}

/// Reads which manifest a checkpoint names; none where a later release wrote it.
fn manifest_mark(record: &Record) -> ManifestMark {
    // Its floor stands before.
    let payload = record.payload.get(8..).unwrap_or_default();
    imori_server::manifest_mark(&Checkpoint::decode(payload).unwrap_or_default())
}

/// Notes the name and the kind of a queue from its row in the definitions.
fn note_name(names: &mut Names, key: &[u8], value: &[u8]) {
    if let Ok((Definition::Queue { name, settings, .. }, lsn)) = Definition::of_row(Table::Queues, key, value)
    {
        let is_stream = settings.kind == QueueKind::Stream;
        names.insert(lsn.0, NamedQueue { name: name.to_string(), is_stream });
    }
}

/// Reads all pages. Damage to pages that the checkpoint lists as gone is reported but not counted.
fn look_at_segments(
    path: &Path,
    store: StoreId,
    findings: &mut Findings,
    mark: ManifestMark,
    (names, streams): (&Names, &BTreeMap<u64, StreamRecords>),
) -> Result<(), String> {
    let folder = path.join(SEGMENTS);
    if !folder.is_dir() {
        findings.damage(&format!("the folder `{SEGMENTS}` is missing, with all segments; restore it"));
        return Ok(());
    }
    let disk = ReadOnlyDisk::new(folder);
    let read = manifest::read(&disk, &ManifestSettings::new(store), mark);
    let (manifest, _) = read.map_err(|error| error.to_string())?;
    match segment::verify(&disk, store, &manifest) {
        Ok(mut seen) => {
            for page in &mut seen.pages {
                page.owner_name = names.get(&page.owner).map(|queue| queue.name.clone());
            }
            findings.damage_count += seen.damage_count();
            findings.note(&format!("segments: {seen}"));
            let is_gone = |page: PageRef| {
                manifest.is_gone(page.segment()) || manifest.has_gone(page.segment(), page.index())
            };
            let owners = pages_of_streams(&disk, store, names, is_gone).map_err(|error| error.to_string())?;
            for (key, queue) in names.iter().filter(|(_, queue)| queue.is_stream) {
                let is_damaged = |page: &&DamagedPage| page.owner == *key && !page.is_gone;
                let damaged: Vec<&DamagedPage> = seen.pages.iter().filter(is_damaged).collect();
                let (pages, journal) = (owners.get(key), streams.get(key));
                findings.note(&stream_text(&queue.name, pages, journal, &damaged));
            }
            Ok(())
        }
        Err(error @ SegmentOpenError::Foreign { .. }) => {
            findings.damage(&format!("segments: {error}"));
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn tell_definitions(
    looked: Result<Option<DefinitionsInspection>, DefinitionsError>,
    is_expected: bool,
    findings: &mut Findings,
) -> Result<(), String> {
    match looked {
        Ok(None) if is_expected => findings.damage(&format!("definitions: `{NAME}` is missing; restore it")),
        Ok(None) => findings.note("definitions: none"),
        Ok(Some(found)) => {
            let rows: Vec<String> =
                found.rows.iter().map(|(table, count)| format!("{} {count}", table.name())).collect();
            findings.note(&format!("definitions: as of number {}, {}", found.applied, rows.join(", ")));
            if !found.damage.is_none() {
                findings.damage(&found.damage.to_string());
            }
        }
        Err(error @ (DefinitionsError::Disk(_) | DefinitionsError::Version(_))) => {
            return Err(error.to_string());
        }
        Err(error) => findings.damage(&format!("definitions: {error}")),
    }
    Ok(())
}

fn hexadecimal(StoreId(bytes): StoreId) -> String {
    format!("{:032x}", u128::from_be_bytes(bytes))
}
