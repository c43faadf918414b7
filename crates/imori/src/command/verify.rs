//! `imori verify`: say whether a store is sound, while no broker has it, and change nothing.

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;
use imori_store::definitions::{self, DefinitionsError, DefinitionsLook};
use imori_store::disk::{Disk as _, DiskFile as _};
use imori_store::folder::{FolderError, FolderLook, JOURNAL};
use imori_store::identity::IdentityError;
use imori_store::limits::{BLOCK_BYTES, FILE_BYTES_DEFAULT};
use imori_store::lsn::Lsn;
use imori_store::read_only_disk::ReadOnlyDisk;
use imori_store::recover::{self, RecoverError};
use imori_store::seal::StoreId;
use imori_store::settings::{OnDamage, Settings};
use imori_store::walk;

use super::argument::DataFolder;
use crate::output::{complain, print};

/// Say whether what a broker stored is sound. The broker is stopped for it; nothing is changed.
///
/// Reads the journal and the definitions whole and prints what is there, what is damaged, where, and what
/// is lost by it.
///
/// Exit codes: 0 sound, 1 damage, 2 it cannot be looked at.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    folder: DataFolder,
}

/// There is damage.
const DAMAGED: u8 = 1;
/// It cannot be looked at.
const UNSEEN: u8 = 2;

/// What was found, in words.
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
            complain(&why);
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

/// Looks at all parts; the error says why one cannot be seen.
fn look(path: &Path, findings: &mut Findings) -> Result<(), String> {
    let folder = match FolderLook::open(path) {
        Ok(folder) => folder,
        // Without its number no checksum of the store can be looked at.
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
    let end = look_at_journal(path, folder.store, findings)?;
    let definitions = look_at_definitions(path, folder.store, findings)?;
    // A definition is applied once its record is durable, so that they cannot be ahead of it.
    match (end, definitions) {
        (Some(end), Some(found)) if found.applied >= end => findings.damage(&format!(
            "the definitions are as of number {} and the journal ends before {end}: one of them is of another \
             time; restore both from one copy",
            found.applied
        )),
        _ => {}
    }
    Ok(())
}

/// Recovers the journal in memory; gives the number that would be given next.
fn look_at_journal(path: &Path, store: StoreId, findings: &mut Findings) -> Result<Option<Lsn>, String> {
    let folder = path.join(JOURNAL);
    if !folder.is_dir() {
        findings.damage(&format!("the folder `{JOURNAL}` is missing; restore it"));
        return Ok(None);
    }
    let disk = ReadOnlyDisk::new(folder);
    look_at_sizes(&disk, findings)?;
    let settings = Settings::new(store, 0, FILE_BYTES_DEFAULT, OnDamage::Quarantine);
    let settings = settings.map_err(|error| error.to_string())?;
    match recover::recover(&disk, &settings) {
        Ok(recovered) => {
            let report = &recovered.report;
            findings.damage_count += report.damaged.len();
            findings.note(&format!("journal: {report}"));
            Ok(Some(recovered.next))
        }
        Err(error @ RecoverError::Foreign { .. }) => {
            findings.damage(&format!("journal: {error}"));
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Journal files are of one size and end with a block. What is cut off at the end of the journal leaves
/// no other trace.
fn look_at_sizes(disk: &ReadOnlyDisk, findings: &mut Findings) -> Result<(), String> {
    let told = |error: std::io::Error| RecoverError::Disk(error).to_string();
    let mut sizes = Vec::new();
    for name in walk::files(disk).map_err(told)? {
        let size = disk.open(&name).and_then(|file| file.size()).map_err(told)?;
        sizes.push((name, size));
    }
    let largest = sizes.iter().map(|(_, size)| *size).max().unwrap_or(0);
    for (name, size) in sizes {
        if !size.is_multiple_of(BLOCK_BYTES as u64) {
            findings
                .damage(&format!("journal: `{name}` ends within a block, at {size} bytes: it was cut off"));
        } else if size < largest {
            findings.note(&format!(
                "journal: `{name}` has {size} bytes and another file {largest}: it was cut off, unless the size of \
                 journal files was changed"
            ));
        }
    }
    Ok(())
}

fn look_at_definitions(
    path: &Path,
    store: StoreId,
    findings: &mut Findings,
) -> Result<Option<DefinitionsLook>, String> {
    let disk = ReadOnlyDisk::new(path.to_owned());
    match definitions::look(&disk, store) {
        Ok(None) => {
            findings.note("definitions: none");
            Ok(None)
        }
        Ok(Some(found)) => {
            let rows: Vec<String> =
                found.rows.iter().map(|(table, count)| format!("{} {count}", table.name())).collect();
            findings.note(&format!("definitions: as of number {}, {}", found.applied, rows.join(", ")));
            if !found.damage.is_none() {
                findings.damage(&found.damage.to_string());
            }
            Ok(Some(found))
        }
        Err(error @ (DefinitionsError::Disk(_) | DefinitionsError::Version(_))) => Err(error.to_string()),
        Err(error) => {
            findings.damage(&format!("definitions: {error}"));
            Ok(None)
        }
    }
}

fn hexadecimal(StoreId(bytes): StoreId) -> String {
    format!("{:032x}", u128::from_be_bytes(bytes))
}
