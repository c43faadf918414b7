//! The output of `verify` and `store dump` for sound and damaged stores.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};

use bytes::Bytes;
use imori_core::id::VhostId;
use imori_core::name::Name;
use imori_core::queue::QueueSettings;
use imori_core::record::{Checkpoint, Definition, ManifestPlace, Row};
use imori_store::definitions::{Change, Definitions, PriorContent, Table};
use imori_store::folder::StoreFolder;
use imori_store::journal;
use imori_store::journal::{Committer, Listener, NewRecord};
use imori_store::lsn::Lsn;
use imori_store::manifest::{Manifest, ManifestEntry, ManifestLog, ManifestMark, ManifestSettings};
use imori_store::records::RecordType;
use imori_store::segment::{
    Durability, NewPage, PageEntry, PageTimes, SegmentSettings, Segments, SubjectDigest,
};
use imori_store::settings::{OnDamage, Settings};

use crate::binary::{Run, run};
use crate::fixture;

const RECORDS: u64 = 40;
/// The journal file with the records: one block each, after the header block.
const FILE: &str = "journal/journal-0000000001";
const SEGMENT: &str = "segments/segment-0000000000";
const BLOCK: usize = 4096;

struct Teller(Sender<Lsn>);

impl Listener for Teller {
    fn written(&self, _through: Lsn) {}

    fn released(&self, through: Lsn) {
        let _ = self.0.send(through);
    }

    fn poisoned(&self, _cause: &io::Error) {}
}

/// A closed store with definitions and records, each record in a batch of its own.
fn store(name: &str) -> PathBuf {
    store_with(name, None)
}

/// Makes the store of [`store`] with a checkpoint at its end, which names this manifest.
fn store_with(name: &str, manifest: Option<&Manifest>) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("store-{name}"));
    let _ = fs::remove_dir_all(&path);
    let folder = StoreFolder::open(&path, OnDamage::Quarantine).unwrap();
    let settings = Settings::new(folder.store(), 0, 1 << 20, OnDamage::Refuse).unwrap();
    let opened = journal::open(&folder.journal(), &settings).unwrap();
    let (sender, told) = channel();
    let committer = Committer::start(folder.journal(), opened, Box::new(Teller(sender))).unwrap();
    for number in 1..=RECORDS {
        let payload = Bytes::from(format!("message {number}\n"));
        let lsn = committer.append([NewRecord { kind: RecordType::Message, payload }]).unwrap().last;
        while told.recv().unwrap() < lsn {}
    }
    if let Some(manifest) = manifest {
        let settings = ManifestSettings::new(folder.store());
        let (mut log, _) = ManifestLog::open(folder.segments(), &settings, ManifestMark::default()).unwrap();
        let ManifestMark { next_segment, generation, end, sum } = log.write(manifest).unwrap();
        let manifest = ManifestPlace { generation, end, sum };
        let checkpoint = Checkpoint { next_segment, manifest, ..Checkpoint::default() };
        let lsn = committer.append_checkpoint(Lsn(1), &checkpoint.encode()).unwrap();
        while told.recv().unwrap() < lsn {}
    }
    drop(committer);
    let settings = SegmentSettings::new(folder.store(), OnDamage::Refuse);
    let (segments, ..) = Segments::open(folder.segments(), &settings, &Manifest::default()).unwrap();
    let entry = |number: u64| PageEntry {
        lsn: Lsn(number),
        sequence: number,
        payload: Bytes::from(vec![number as u8; 100]),
    };
    let page = |owner| NewPage {
        owner,
        level: 4,
        times: PageTimes::default(),
        subjects: SubjectDigest::NONE,
        entries: (1..=5).map(entry).collect(),
    };
    segments.write(&[page(3), page(8)], Durability::Durable).unwrap();
    drop(segments);
    let mut definitions =
        Definitions::open(&folder.root(), folder.store(), PriorContent::Nothing, OnDamage::Refuse).unwrap();
    let row = |table, key: &str| Change {
        table,
        key: Bytes::copy_from_slice(key.as_bytes()),
        value: Some(Bytes::from_static(b"the value of a row")),
    };
    let queues = (0..200).map(|number| row(Table::Queues, &format!("orders-{number:03}")));
    let changes = queues.chain([row(Table::Vhosts, "/")]);
    let changes: Vec<Change> = changes.chain(named_queue(8, "invoices")).collect();
    definitions.apply(Lsn(RECORDS), &changes).unwrap();
    drop(definitions);
    folder.end_clean().unwrap();
    path
}

/// The definition rows of a queue with this number.
fn named_queue(number: u64, name: &str) -> Vec<Change> {
    let (vhost, name, settings) = (VhostId(0), Name::from(name), QueueSettings::default());
    let rows = Definition::Queue { vhost, name, settings }.rows(imori_core::confirm::Lsn(number));
    let change = |row| match row {
        Row::Put { key, value, .. } => {
            Change { table: Table::Queues, key: key.into(), value: Some(value.into()) }
        }
        Row::Gone(_) => panic!("a queue is declared"),
    };
    rows.into_iter().map(change).collect()
}

fn verify(path: &Path) -> Run {
    run(&["verify", "--data-dir", path.to_str().unwrap()])
}

fn dump(path: &Path, more: &[&str]) -> Run {
    run(&[&["store", "dump", "--data-dir", path.to_str().unwrap()], more].concat())
}

fn change(path: &Path, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path.join(name)).unwrap();
    change(&mut bytes);
    fs::write(path.join(name), bytes).unwrap();
}

/// All files below a folder, with their contents.
fn files(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false => files.push((path.clone(), fs::read(path).unwrap())),
        }
    }
    files.sort();
    files
}

#[test]
fn a_sound_store_is_said_to_be_sound_and_stays_as_it_is() {
    let path = store("sound");
    let before = files(&path);
    let verified = verify(&path);
    assert_eq!((verified.code, verified.stderr.as_str()), (Some(0), ""), "{verified:?}");
    for told in [
        ": ended cleanly\n",
        "journal: 40 records in ",
        " files, numbers 1-40, read in ",
        "segments: 10 entries in 2 pages in 1 segments\n",
        "definitions: as of number 40, vhosts 1, exchanges 0, queues 201, bindings 0, meta 0, objects 0\nsound\n",
    ] {
        assert!(verified.stdout.contains(told), "{told} is missing in {}", verified.stdout);
    }
    assert!(dump(&path, &[]).code == Some(0) && files(&path) == before);
    let _ = fs::remove_dir_all(path);
}

#[test]
fn damage_is_told_with_what_is_lost() {
    for (name, hurt, expected) in [
        (
            "flipped-bit",
            (|path| change(path, FILE, |bytes| bytes[20 * BLOCK + 70] ^= 4)) as fn(&Path),
            &["damage in `journal-0000000001`: numbers 20 are lost", "damaged: 1 finding\n"][..],
        ),
        (
            "zeroed-header",
            |path| change(path, FILE, |bytes| bytes[..BLOCK].fill(0)),
            &["damage in `journal-0000000001`: the file header does not verify, no record is lost"],
        ),
        (
            "cut-off",
            |path| change(path, FILE, |bytes| bytes.truncate(30 * BLOCK + 100)),
            &[
                "it is shortened by 925596 bytes, numbers 31-40 are lost, and from 41 on may be",
                "damaged: 1 finding\n",
            ],
        ),
        (
            "cut-off-at-a-block",
            |path| change(path, FILE, |bytes| bytes.truncate(30 * BLOCK)),
            &[
                "damage in `journal-0000000001`: it is shortened by 925696 bytes, numbers 30-40 are lost, and from 41 on may be",
            ],
        ),
        ("gone-file", |path| fs::remove_file(path.join(FILE)).unwrap(), &["is of another time"]),
        (
            "entry-of-a-page",
            |path| {
                change(path, SEGMENT, |bytes| {
                    let at = bytes.windows(50).position(|bytes| bytes == [2; 50]).unwrap();
                    bytes[at] ^= 1;
                });
            },
            &[
                "damage in page 0 of `segment-0000000000`, of the queue with id 3: 1 entry is lost, among numbers 2",
                "damaged: 1 finding\n",
            ],
        ),
        (
            "front-of-a-segment",
            |path| change(path, SEGMENT, |bytes| bytes[30] ^= 1),
            &[
                "damage in front of `segment-0000000000`: 2 pages are found, none is lost as a whole",
                "damaged: 1 finding\n",
            ],
        ),
        (
            "cut-segment",
            |path| {
                change(path, SEGMENT, |bytes| {
                    let at = bytes.windows(50).rposition(|bytes| bytes == [5; 50]).unwrap();
                    bytes.truncate(at);
                });
            },
            &[
                "segments: 9 entries in 2 pages in 1 segments\n",
                "of the queue `invoices`: 1 entry is lost, among numbers 5\n",
                "damaged: 2 findings\n",
            ],
        ),
        (
            "no-segments",
            |path| fs::remove_dir_all(path.join("segments")).unwrap(),
            &["the folder `segments` is missing, with all segments; restore it"],
        ),
        (
            "mixed-journal",
            |path| {
                let other = store("other-journal");
                fs::copy(other.join(FILE), path.join("journal/journal-0000000009")).unwrap();
                let _ = fs::remove_dir_all(other);
            },
            &["`journal-0000000009` belongs to another store; take it out of the folder"],
        ),
        (
            "mixed-definitions",
            |path| {
                let other = store("other-definitions");
                fs::copy(other.join("definitions.redb"), path.join("definitions.redb")).unwrap();
                let _ = fs::remove_dir_all(other);
            },
            &["definitions: `definitions.redb` belongs to another store"],
        ),
        (
            "older-journal",
            |path| {
                fs::remove_dir_all(path.join("journal")).unwrap();
                fs::create_dir(path.join("journal")).unwrap();
            },
            &[
                "the definitions are as of number 40 and the journal ends before 1: one of them is of another time",
            ],
        ),
        (
            "no-journal",
            |path| fs::remove_dir_all(path.join("journal")).unwrap(),
            &["the folder `journal` is missing"],
        ),
        (
            "damaged-row",
            |path| {
                // In every page of the database, free pages included.
                change(path, "definitions.redb", |bytes| {
                    for at in 0..bytes.len() {
                        if bytes[at..].starts_with(b"orders-077") {
                            bytes[at] = b'x';
                        }
                    }
                });
            },
            &["damage in the definitions: ", "in `queues` the row `xrders-077` does not verify and is lost"],
        ),
        (
            "no-definitions",
            |path| fs::write(path.join("definitions.redb"), b"").unwrap(),
            &[
                "definitions: `definitions.redb` is damaged so that nothing can be read from it: it is empty; restore",
            ],
        ),
        (
            "definitions-gone",
            |path| fs::remove_file(path.join("definitions.redb")).unwrap(),
            &["definitions: `definitions.redb` is missing; restore it"],
        ),
        (
            "damaged-identity",
            |path| change(path, "store", |bytes| bytes[13] ^= 1),
            &["`store`, which says which store this is, does not verify; restore this file"],
        ),
        (
            "no-identity",
            |path| fs::remove_file(path.join("store")).unwrap(),
            &["and no file `store`; restore that file"],
        ),
    ] {
        let path = store(name);
        hurt(&path);
        let before = files(&path);
        let verified = verify(&path);
        assert_eq!((verified.code, verified.stderr.as_str()), (Some(1), ""), "{name}: {verified:?}");
        for told in expected {
            assert!(verified.stdout.contains(told), "{name}: {told} is missing in {}", verified.stdout);
        }
        assert!(files(&path) == before, "{name}: it is changed");
        let _ = fs::remove_dir_all(path);
    }
}

/// Makes a manifest that lists a segment of two pages, of which these are gone, or none.
fn manifest(next_segment: u32, gone: Option<&[u32]>) -> Manifest {
    let entry = |gone: &[u32]| ManifestEntry { segment: 0, page_count: 2, gone: gone.to_vec() };
    Manifest { next_segment, segments: gone.map(entry).into_iter().collect(), damage: None }
}

#[test]
fn damage_of_a_manifest_is_told_and_so_is_one_that_is_missing() {
    let says = "which says what segments are needed: messages that were consumed may come back\n";
    for (name, damage, expected) in [
        ("manifest-header", Some(9), format!("damage in `manifest-0000000001` at 0, {says}")),
        ("manifest-frame", Some(520), format!("damage in `manifest-0000000001` at 512, {says}")),
        ("manifest-missing", None, format!("damage: `manifest-0000000001` is missing, {says}")),
        // Behind what the checkpoint names.
        ("manifest-zeros", Some(2_000), String::new()),
    ] {
        let path = store_with(name, Some(&manifest(1, Some(&[1]))));
        let file = "segments/manifest-0000000001";
        match damage {
            Some(at) => change(&path, file, |bytes| bytes[at] ^= 1),
            None => fs::remove_file(path.join(file)).unwrap(),
        }
        let verified = verify(&path);
        assert!(verified.stdout.contains(&expected), "{name}: {}", verified.stdout);
        let verdict = if expected.is_empty() { "sound\n" } else { "damaged: 1 finding\n" };
        assert!(verified.stdout.ends_with(verdict), "{name}: {}", verified.stdout);
        let _ = fs::remove_dir_all(path);
    }
}

#[test]
fn damage_of_what_a_checkpoint_has_as_gone_is_told_and_does_not_count() {
    for (name, manifest, expected) in [
        ("newer", manifest(0, None), "damaged: 2 findings\n"),
        ("needed", manifest(1, Some(&[])), "damaged: 2 findings\n"),
        ("page-gone", manifest(1, Some(&[1])), "damaged: 1 finding\n"),
        ("segment-gone", manifest(1, None), "sound\n"),
    ] {
        let path = store_with(name, Some(&manifest));
        change(&path, SEGMENT, |bytes| {
            for at in
                [[2; 50], [5; 50]].map(|part| bytes.windows(50).rposition(|bytes| bytes == part).unwrap())
            {
                bytes[at] ^= 1;
            }
            bytes[30] ^= 1;
        });
        let verified = verify(&path);
        assert!(verified.stdout.ends_with(expected), "{name}: {}", verified.stdout);
        let is_told = verified.stdout.contains("in page 1 of `segment-0000000000`, of the queue `invoices`");
        assert!(is_told, "{name}: {}", verified.stdout);
        let _ = fs::remove_dir_all(path);
    }
}

#[test]
fn a_segment_that_a_checkpoint_needs_and_that_is_missing_is_damage() {
    let missing = "damage: `segment-0000000000` is missing, with";
    for (name, gone, what, expected) in [
        ("absent", &[][..], SEGMENT, format!("{missing} 2 pages that somebody needed\n")),
        ("absent-in-part", &[1], SEGMENT, format!("{missing} 1 page that somebody needed\n")),
        ("absent-and-gone", &[0, 1], SEGMENT, String::from("sound\n")),
        ("no-folder", &[], "segments", String::from("is missing, with all segments; restore it")),
        ("nothing-absent", &[], "segments/segment-0000000009", String::from("sound\n")),
    ] {
        let path = store_with(name, Some(&manifest(1, Some(gone))));
        let gone = path.join(what);
        let _ = fs::remove_file(&gone).or_else(|_| fs::remove_dir_all(&gone));
        let verified = verify(&path);
        let verdict = if expected.contains("missing") { "damaged: 1 finding\n" } else { "sound\n" };
        assert!(verified.stdout.contains(&expected), "{name}: {}", verified.stdout);
        assert!(verified.stdout.ends_with(verdict), "{name}: {}", verified.stdout);
        let _ = fs::remove_dir_all(path);
    }
}

#[test]
fn a_store_that_cannot_be_looked_at_is_another_exit_code() {
    let path = store("held");
    let folder = StoreFolder::open(&path, OnDamage::Quarantine).unwrap();
    let told =
        format!("imori: process `{}` has the data folder `{}`; stop it", std::process::id(), path.display());
    let verified = verify(&path);
    assert_eq!((verified.code, verified.stdout.as_str()), (Some(2), ""), "{verified:?}");
    assert!(verified.stderr.starts_with(&told), "{}", verified.stderr);
    let dumped = dump(&path, &[]);
    assert_eq!((dumped.code, dumped.stdout.as_str()), (Some(1), ""), "{dumped:?}");
    assert!(dumped.stderr.starts_with(&told), "{}", dumped.stderr);
    drop(folder);
    assert_eq!(verify(&path).code, Some(0));

    change(&path, "store", |bytes| {
        bytes[8] = 9;
        let sum = crc32c::crc32c(&bytes[..32]).to_le_bytes();
        bytes[32..36].copy_from_slice(&sum);
    });
    for (path, told) in [
        (
            &path,
            "its files have format version `9`, and this release reads version `3` alone; move the folder away to begin \
             with an empty one, or use a newer release, which reads it",
        ),
        (&path.join("journal"), "there is no store in"),
        (&path.join("absent"), "there is no store in"),
    ] {
        let verified = verify(path);
        assert_eq!(verified.code, Some(2), "{verified:?}");
        assert!(verified.stderr.contains(told), "{}", verified.stderr);
    }
    let _ = fs::remove_dir_all(path);
}

#[test]
fn a_folder_of_an_older_format_is_refused_by_every_command_and_stays_as_it_is() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("store-older");
    fixture::unpack(fixture::FOLDER_1, &path);
    let before = files(&path);
    let told = format!(
        "imori: data folder `{}`: its files have format version `1`, and this release reads version `3` alone; move \
         the folder away to begin with an empty one, or use an older release, which reads it\n",
        path.display()
    );
    let dir = path.to_str().unwrap();
    let serve = ["serve", "--listen", "stomp=127.0.0.1:0", "--data-dir", dir];
    for (ran, code) in [(verify(&path), 2), (dump(&path, &[]), 1), (run(&serve), 1)] {
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{ran:?}");
        assert!(ran.stderr.ends_with(&told), "{}", ran.stderr);
    }
    let left: Vec<_> = files(&path).into_iter().filter(|(path, _)| !path.ends_with("lock")).collect();
    assert_eq!(left, before);
    let _ = fs::remove_dir_all(path);
}

#[test]
fn each_record_and_each_damaged_place_is_a_line() {
    let path = store("dumped");
    let lines = |more: &[&str]| -> Vec<String> {
        let dumped = dump(&path, more);
        assert_eq!((dumped.code, dumped.stderr.as_str()), (Some(0), ""), "{dumped:?}");
        dumped.stdout.lines().map(str::to_owned).collect()
    };
    let all = lines(&[]);
    // The journal is followed by a segment of two pages with five entries each.
    assert_eq!(all.len(), RECORDS as usize + 12);
    assert_eq!(all[6], format!("7 journal-0000000001 {} message - 10 ok message 7\\n", 7 * BLOCK + 40));
    assert_eq!(lines(&["--from", "7", "--to", "9"]), all[6..9]);
    change(&path, FILE, |bytes| bytes[8 * BLOCK + 70] ^= 4);
    let damaged = format!("- journal-0000000001 {} damage: ", 8 * BLOCK);
    let within = format!("- journal-0000000001 {} damage: ", 8 * BLOCK + 40);
    let batch = format!("{damaged}the batch of 4096 bytes with numbers 8 does not verify");
    let bytes = format!("{within}no record verifies in 32 bytes");
    assert_eq!(lines(&["--from", "7", "--to", "9"]), [all[6].clone(), batch, bytes, all[8].clone()]);
    let _ = fs::remove_dir_all(path);
}

#[test]
fn each_page_and_each_entry_of_a_segment_is_a_line() {
    let path = store("dumped-segments");
    let name = "segment-0000000000";
    let lines = |more: &[&str]| -> Vec<String> {
        let dumped = dump(&path, more);
        assert_eq!((dumped.code, dumped.stderr.as_str()), (Some(0), ""), "{dumped:?}");
        dumped.stdout.lines().filter(|line| line.contains(name)).map(str::to_owned).collect()
    };
    let all = lines(&[]);
    let (page, entry) = (BLOCK, BLOCK + 128);
    assert_eq!(all[0], format!("- {name} {page} page 0 of queue 3 at priority 4: 5 entries, numbers 1-5"));
    let payload = "\\x01".repeat(32);
    assert_eq!(all[1], format!("1 {name} {entry} entry 1 100 ok {payload}"));
    assert!(all[6].contains(" page 1 of queue 8 at priority 4: 5 entries, numbers 1-5"), "{}", all[6]);
    let within = lines(&["--from", "2", "--to", "2"]);
    assert_eq!(within, [&all[0], &all[2], &all[6], &all[8]].map(String::clone));
    assert!(lines(&["--from", "6"]).is_empty());

    // Damages the second entry of the first page and the file header; a segment that is set aside
    // gets a new name.
    change(&path, SEGMENT, |bytes| {
        let at = bytes.windows(50).position(|bytes| bytes == [2; 50]).unwrap();
        bytes[at] ^= 1;
        bytes[30] ^= 1;
    });
    fs::rename(path.join(SEGMENT), path.join(format!("{SEGMENT}.damaged"))).unwrap();
    let damaged = lines(&[]);
    assert_eq!(damaged.len(), all.len() + 1);
    assert_eq!(damaged[0], format!("- {name}.damaged 0 damage: the segment header does not verify"));
    let told = format!("- {name}.damaged {page} damage: in page 0, 1 entry is lost, among numbers 2");
    assert_eq!(damaged[6], told, "{damaged:?}");

    fs::remove_dir_all(path.join("journal")).unwrap();
    let dumped = dump(&path, &[]);
    assert!(dumped.stdout.starts_with("- journal/ 0 damage: the folder is missing\n"), "{}", dumped.stdout);
    let _ = fs::remove_dir_all(path);
}

#[test]
fn damage_that_is_acknowledged_is_printed_and_noted_no_more() {
    let path = store("acknowledged");
    let acknowledge = || run(&["store", "acknowledge", "--data-dir", path.to_str().unwrap()]);
    assert_eq!(acknowledge().stdout, "no damage is noted\n");
    let findings = [String::from("one is lost"), String::from("two is lost")];
    imori_store::folder::damage_note::add(&path, &findings).unwrap();
    let acknowledged = acknowledge();
    assert_eq!((acknowledged.code, acknowledged.stderr.as_str()), (Some(0), ""), "{acknowledged:?}");
    assert_eq!(acknowledged.stdout, "one is lost\ntwo is lost\nacknowledged\n");
    assert_eq!(acknowledge().stdout, "no damage is noted\n");
    let _ = fs::remove_dir_all(&path);
    let refused = acknowledge();
    assert!(refused.code != Some(0) && refused.stderr.contains("there is no store in"), "{refused:?}");
}
