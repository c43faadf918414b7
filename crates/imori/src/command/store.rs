//! `imori store`: look into what a broker stored.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use imori_store::folder::{FolderLook, JOURNAL};
use imori_store::lsn::{Lsn, LsnRange};
use imori_store::read_only_disk::ReadOnlyDisk;
use imori_store::record::RecordType;
use imori_store::walk::{self, Place};

use super::argument::DataFolder;
use crate::output::print;

/// Look into what a broker stored, while it is stopped.
#[derive(Debug, Args)]
pub(crate) struct Store {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the journal, a line for each record, and one for each place that is damaged.
    ///
    /// A line of a record is its number, the file, the offset there, the type, `group` or `-`, the length of
    /// the payload, `ok` or `alone` where the batch around it does not verify, and the first bytes of the
    /// payload. A line of damage begins with `-`. Files come by name; `sort -n` brings records into their order.
    Dump {
        #[command(flatten)]
        folder: DataFolder,
        /// The first number to print.
        #[arg(long, value_name = "LSN", default_value_t = 1)]
        from: u64,
        /// The last number to print.
        #[arg(long, value_name = "LSN", default_value_t = u64::MAX, hide_default_value = true)]
        to: u64,
    },
}

/// Bytes of a payload that are printed: enough to know it again.
const SHOWN_BYTES: usize = 32;

/// Bytes of lines that are printed at once.
const PRINTED_BYTES: usize = 64 << 10;

impl Store {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let Action::Dump { folder, from, to } = self.action;
        dump(&folder.path()?, LsnRange { first: Lsn(from), last: Lsn(to) })
    }
}

fn dump(path: &Path, range: LsnRange) -> anyhow::Result<()> {
    let folder = FolderLook::open(path)?;
    let disk = ReadOnlyDisk::new(path.join(JOURNAL));
    let mut lines = String::new();
    for name in walk::files(&disk).context("the journal cannot be read")? {
        let bytes = walk::read(&disk, &name).with_context(|| format!("`{name}` cannot be read"))?;
        walk::walk(&bytes, folder.store, &mut |offset, place| {
            if is_within(&place, range) {
                line(&mut lines, &name, offset, &place);
            }
            match lines.len() < PRINTED_BYTES {
                true => Ok(()),
                false => print(std::mem::take(&mut lines).as_bytes()),
            }
        })?;
    }
    print(lines.as_bytes())
}

/// Tells whether a place has to do with these numbers; of damage without numbers nobody knows.
fn is_within(place: &Place<'_>, range: LsnRange) -> bool {
    match place {
        Place::Record { record, .. } => (range.first..=range.last).contains(&record.lsn),
        Place::Broken { lsns, .. } => lsns.first <= range.last && lsns.last >= range.first,
        Place::Header(_) | Place::Foreign | Place::Unverified { .. } => true,
    }
}

fn line(lines: &mut String, name: &str, offset: u64, place: &Place<'_>) {
    // Writing to a string succeeds.
    let _ = match place {
        Place::Record { record, is_alone } => {
            let shown = record.payload.get(..SHOWN_BYTES).unwrap_or(record.payload);
            let group = if record.flags == 0 { "-" } else { "group" };
            let verified = if *is_alone { "alone" } else { "ok" };
            writeln!(
                lines,
                "{} {name} {offset} {} {group} {} {verified} {}",
                record.lsn,
                type_name(record.kind),
                record.payload.len(),
                shown.escape_ascii()
            )
        }
        Place::Header(error) => writeln!(lines, "- {name} {offset} damage: {error}"),
        Place::Foreign => writeln!(lines, "- {name} {offset} damage: the file belongs to another store"),
        Place::Broken { lsns, bytes } => {
            writeln!(
                lines,
                "- {name} {offset} damage: the batch of {bytes} bytes with numbers {lsns} does not verify"
            )
        }
        Place::Unverified { bytes } => {
            writeln!(lines, "- {name} {offset} damage: no record verifies in {bytes} bytes")
        }
    };
}

/// `GroupBegin` is `group-begin`.
fn type_name(kind: RecordType) -> String {
    let mut name = String::new();
    for char in format!("{kind:?}").chars() {
        if char.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(char.to_ascii_lowercase());
    }
    name
}
