//! `imori verify`: checks a store that no broker is using, without changing it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use clap::Args;
use imori_core::record::{Checkpoint, Definition, Row, Table};
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
use imori_store::segment::{self, SegmentOpenError, SegmentSettings, Tables};
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
    let Journal { ends_before, has_files, manifest } =
        look_at_journal((path, folder.store), durable, findings, &mut names)?;
    if let Ok(Some(found)) = &definitions {
        found.queues.iter().for_each(|(key, value)| note_name(&mut names, key, value));
    }
    look_at_segments(path, folder.store, findings, manifest, &names)?;
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
}

/// Queue names by the key that segments use for them.
type Names = BTreeMap<u64, String>;

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
                let rows =
                    Definition::decode(&record.payload).map(|definition| definition.rows(number(record)));
                for row in rows.into_iter().flatten() {
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
            Ok(Journal { ends_before, has_files: report.file_count > 0, manifest })
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

/// Reads which manifest a checkpoint names; none where a later release wrote it.
fn manifest_mark(record: &Record) -> ManifestMark {
    // Its floor stands before.
    let payload = record.payload.get(8..).unwrap_or_default();
    imori_server::manifest_mark(&Checkpoint::decode(payload).unwrap_or_default())
}

/// Notes the name of a queue from its row in the definitions.
fn note_name(names: &mut Names, key: &[u8], value: &[u8]) {
    if let Ok((Definition::Queue { name, .. }, lsn)) = Definition::of_row(Table::Queues, key, value) {
        names.insert(lsn.0, name.to_string());
    }
}

/// Reads all pages. Damage to pages that the checkpoint lists as gone is reported but not counted.
fn look_at_segments(
    path: &Path,
    store: StoreId,
    findings: &mut Findings,
    mark: ManifestMark,
    names: &Names,
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
            seen.pages.iter_mut().for_each(|page| page.owner_name = names.get(&page.owner).cloned());
            findings.damage_count += seen.damage_count();
            findings.note(&format!("segments: {seen}"));
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
