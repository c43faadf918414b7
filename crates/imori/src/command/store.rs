//! `imori store`: shows what a broker stored, and acknowledges its damage.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use imori_store::disk::ReadOnlyDisk;
use imori_store::folder::{FolderInspection, JOURNAL, SEGMENTS, damage_note, identity};
use imori_store::lsn::{Lsn, LsnRange};
use imori_store::records::RecordType;
use imori_store::recovery::walk::{self, JournalPiece};
use imori_store::seal::StoreId;
use imori_store::segment::{self, SegmentPiece};

use super::argument::DataFolder;
use crate::output::print;

/// Inspect a broker's stored data.
#[derive(Debug, Args)]
pub(crate) struct Store {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the journal and the segments, one line for each record and each damaged place. Stop the broker first;
    /// nothing is changed.
    ///
    /// A line of a record is its number, the file, the offset there, the type, `group` or `-`, the length of the
    /// payload, `ok`, or `alone` if the batch around it does not verify, and the first bytes of the payload. A line of
    /// damage begins with `-`. Files are printed by name; `sort -n` puts records in order.
    ///
    /// Segments follow the journal. A page's line begins with `-` and names its queue by the number of its definition.
    /// Each entry of a page, the record of a message, has a line of type `entry` with its position in the queue.
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
    /// Acknowledge the damage that was found: prints it and removes it from the monitor, without a restart.
    ///
    /// Damage is listed in `/storez` and counted by `/healthz?damage=1` and `imori_store_damages` until it is
    /// acknowledged. Files that were set aside stay.
    Acknowledge {
        #[command(flatten)]
        folder: DataFolder,
    },
}

/// Bytes of a payload to print: enough to recognise it.
const SHOWN_BYTES: usize = 32;

/// Bytes of lines gathered per write.
const PRINTED_BYTES: usize = 64 << 10;

impl Store {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.action {
            Action::Dump { folder, from, to } => {
                dump(&folder.path()?, LsnRange { first: Lsn(from), last: Lsn(to) })
            }
            Action::Acknowledge { folder } => acknowledge(&folder.path()?),
        }
    }
}

fn acknowledge(path: &Path) -> anyhow::Result<()> {
    if identity::read(&ReadOnlyDisk::new(path.to_owned()))?.is_none() {
        bail!("there is no store in `{}`; give the folder of a broker", path.display());
    }
    let known = damage_note::acknowledge(path)
        .with_context(|| format!("`{}` cannot be taken away", path.join(damage_note::NAME).display()))?;
    let mut lines = known.join("\n");
    lines.push_str(if known.is_empty() { "no damage is noted\n" } else { "\nacknowledged\n" });
    print(lines.as_bytes())
}

fn dump(path: &Path, range: LsnRange) -> anyhow::Result<()> {
    let folder = FolderInspection::open(path)?;
    let mut lines = String::new();
    for name in &folder.missing {
        // Writing to a string succeeds.
        let _ = writeln!(lines, "- {name}/ 0 damage: the folder is missing");
    }
    if !folder.missing.contains(&JOURNAL) {
        dump_journal(path, folder.store, range, &mut lines)?;
    }
    if !folder.missing.contains(&SEGMENTS) {
        dump_segments(path, folder.store, range, &mut lines)?;
    }
    print(lines.as_bytes())
}

fn dump_segments(path: &Path, store: StoreId, range: LsnRange, lines: &mut String) -> anyhow::Result<()> {
    let disk = ReadOnlyDisk::new(path.join(SEGMENTS));
    for name in segment::files(&disk).context("the segments cannot be read")? {
        segment::walk(&disk, store, &name, &mut |offset, place| {
            if is_in_segment_within(&place, range) {
                segment_line(lines, &name, offset, &place);
            }
            print_some(lines)
        })
        .with_context(|| format!("`{name}` cannot be read"))?;
    }
    Ok(())
}

fn is_in_segment_within(place: &SegmentPiece<'_>, range: LsnRange) -> bool {
    let meets = |first: Lsn, last: Lsn| first <= range.last && last >= range.first;
    match place {
        SegmentPiece::Page(facts) => meets(facts.first, facts.last),
        SegmentPiece::Entry(entry) => meets(entry.lsn, entry.lsn),
        SegmentPiece::Damage(damage) => {
            damage.lsns.is_empty() || damage.lsns.iter().any(|lsns| meets(lsns.first, lsns.last))
        }
        SegmentPiece::Header(_) | SegmentPiece::Foreign | SegmentPiece::Lost(_) => true,
    }
}

fn segment_line(lines: &mut String, name: &str, offset: u64, place: &SegmentPiece<'_>) {
    let _ = match place {
        SegmentPiece::Header(error) => writeln!(lines, "- {name} {offset} damage: {error}"),
        SegmentPiece::Foreign => {
            writeln!(lines, "- {name} {offset} damage: the file belongs to another store")
        }
        SegmentPiece::Lost(index) => {
            writeln!(lines, "- {name} {offset} damage: nothing tells where page {index} is")
        }
        SegmentPiece::Damage(damage) => {
            writeln!(lines, "- {name} {offset} damage: in page {}, {damage}", damage.page.index())
        }
        SegmentPiece::Page(facts) => {
            let lsns = LsnRange { first: facts.first, last: facts.last };
            writeln!(
                lines,
                "- {name} {offset} page {} of queue {} at priority {}: {} entries, numbers {lsns}",
                facts.page.index(),
                facts.owner,
                facts.level,
                facts.count
            )
        }
        SegmentPiece::Entry(entry) => {
            let shown = entry.payload.get(..SHOWN_BYTES).unwrap_or(entry.payload);
            writeln!(
                lines,
                "{} {name} {offset} entry {} {} ok {}",
                entry.lsn,
                entry.sequence,
                entry.payload.len(),
                shown.escape_ascii()
            )
        }
    };
}

/// Prints the lines gathered so far if there are enough for a write.
fn print_some(lines: &mut String) -> anyhow::Result<()> {
    match lines.len() < PRINTED_BYTES {
        true => Ok(()),
        false => print(std::mem::take(lines).as_bytes()),
    }
}

fn dump_journal(path: &Path, store: StoreId, range: LsnRange, lines: &mut String) -> anyhow::Result<()> {
    let disk = ReadOnlyDisk::new(path.join(JOURNAL));
    for name in walk::files(&disk).context("the journal cannot be read")? {
        let bytes = walk::read(&disk, &name).with_context(|| format!("`{name}` cannot be read"))?;
        walk::walk(&bytes, store, &mut |offset, place| {
            if is_within(&place, range) {
                line(lines, &name, offset, &place);
            }
            print_some(lines)
        })?;
    }
    Ok(())
}

/// Whether a piece of the journal concerns these records; damage with unknown numbers always does.
fn is_within(place: &JournalPiece<'_>, range: LsnRange) -> bool {
    match place {
        JournalPiece::Record { record, .. } => (range.first..=range.last).contains(&record.lsn),
        JournalPiece::Broken { lsns, .. } => lsns.first <= range.last && lsns.last >= range.first,
        JournalPiece::Header(_) | JournalPiece::Foreign | JournalPiece::Unverified { .. } => true,
    }
}

fn line(lines: &mut String, name: &str, offset: u64, place: &JournalPiece<'_>) {
    // Writing to a string succeeds.
    let _ = match place {
        JournalPiece::Record { record, is_alone } => {
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
        JournalPiece::Header(error) => writeln!(lines, "- {name} {offset} damage: {error}"),
        JournalPiece::Foreign => {
            writeln!(lines, "- {name} {offset} damage: the file belongs to another store")
        }
        JournalPiece::Broken { lsns, bytes } => {
            writeln!(
                lines,
                "- {name} {offset} damage: the batch of {bytes} bytes with numbers {lsns} does not verify"
            )
        }
        JournalPiece::Unverified { bytes } => {
            writeln!(lines, "- {name} {offset} damage: no record verifies in {bytes} bytes")
        }
    };
}

/// Names a type in kebab case: `GroupBegin` is `group-begin`.
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
