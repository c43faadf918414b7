//! Inspects a store without changing it, as `imori verify` and `imori recover` do.

use std::fs;
use std::io;
use std::path::Path;

use bytes::Bytes;
use imori_store::disk::{ReadOnlyDisk, RealDisk};
use imori_store::limits::FILE_BYTES_MAX;
use imori_store::lsn::{Lsn, LsnRange};
use imori_store::manifest::Manifest;
use imori_store::recovery::walk;
use imori_store::seal::{Seal, StoreId};
use imori_store::segment::{
    self, Durability, NewPage, PageEntry, PageFacts, PageRef, PageTimes, Row, RowPlacement, SegmentPiece,
    SegmentSettings, Segments, SubjectDigest, Tables,
};
use imori_store::settings::OnDamage;

use super::{folder, message, start};

const STORE: StoreId = StoreId(*b"of this test ...");

#[test]
fn the_files_of_a_journal_are_those_that_recovery_reads_or_set_aside() {
    let folder = folder("looked-at");
    let (committer, told) = start(&folder);
    let lsn = committer.append([message(7)]).unwrap().last;
    while told.recv().unwrap() < lsn.0 {}
    drop(committer);
    let disk = ReadOnlyDisk::new(folder.clone());
    let before = walk::files(&disk).unwrap();
    assert!(before.contains(&"journal-0000000001".to_string()), "{before:?}");
    for name in ["journal-0000000077.damaged", "journal-0000000078.new", "journal-8", "notes"] {
        fs::write(folder.join(name), b"what is in it").unwrap();
    }
    let mut expected = before;
    expected.push("journal-0000000077.damaged".to_string());
    assert_eq!(walk::files(&disk).unwrap(), expected);
    for name in &expected {
        assert!(walk::read(&disk, name).unwrap() == fs::read(folder.join(name)).unwrap(), "{name}");
    }
}

#[test]
fn a_file_that_is_longer_than_any_of_a_journal_is_not_read() {
    let folder = folder("too-long");
    let name = "journal-0000000001";
    let file = fs::File::create(folder.join(name)).unwrap();
    file.set_len(FILE_BYTES_MAX + 1).unwrap();
    let error = walk::read(&ReadOnlyDisk::new(folder), name).unwrap_err().to_string();
    assert!(error.contains("`journal-0000000001` has 268435457 bytes"), "{error}");
}

fn page(owner: u64, first: u64, count: u64) -> NewPage {
    let entry = |lsn: u64| PageEntry { lsn: Lsn(lsn), sequence: lsn, payload: Bytes::from(vec![7; 300]) };
    NewPage {
        owner,
        level: 4,
        times: PageTimes::default(),
        subjects: SubjectDigest::NONE,
        entries: (first..first + count).map(entry).collect(),
    }
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// Checks each position in the second of three segments, with a page of ten entries and one of
/// seven.
fn each_place_is_told(folder: &Path) {
    let disk = ReadOnlyDisk::new(folder.to_owned());
    let names = segment::files(&disk).unwrap();
    assert_eq!(names, (0..3).map(|number| format!("segment-{number:010}")).collect::<Vec<_>>());
    let bytes = fs::read(folder.join(&names[1])).unwrap();
    let mut told = Vec::new();
    segment::walk(&disk, STORE, &names[1], &mut |at, place| {
        let at = usize::try_from(at).unwrap();
        match place {
            SegmentPiece::Page(facts) => told.push(format!("page of {}", facts.owner)),
            SegmentPiece::Entry(entry) => {
                let head = &bytes[at..at + 32];
                let number = entry.lsn.0.to_le_bytes();
                assert!(head.windows(8).any(|bytes| bytes == number), "{} at {at}", entry.lsn.0);
                told.push(entry.lsn.0.to_string());
            }
            other => told.push(format!("{other:?}")),
        }
        Ok::<_, io::Error>(())
    })
    .unwrap();
    let numbers = |first: u64, count: u64| (first..first + count).map(|number| number.to_string());
    let expected = [String::from("page of 5")].into_iter().chain(numbers(101, 10));
    let expected = expected.chain([String::from("page of 6")]).chain(numbers(150, 7));
    assert_eq!(told, expected.collect::<Vec<_>>());
}

#[test]
fn segments_are_counted_and_each_place_that_is_damaged_is_told() {
    let folder = folder("segments-looked-at");
    let settings = SegmentSettings::new(STORE, OnDamage::Quarantine);
    let disk = RealDisk::new(folder.clone());
    let (segments, ..) = Segments::open(disk, &settings, &Manifest::default()).unwrap();
    for round in 0..3 {
        let pages = [page(5, 1 + round * 100, 10), page(6, 50 + round * 100, 7)];
        let written = segments.write(&pages, Durability::Durable).unwrap();
        assert_eq!(segments.file_name(written[1].page), format!("segment-{round:010}"));
    }
    // Transient and unfinished segments are not verified.
    segments.write(&[page(9, 900, 3)], Durability::Transient).unwrap();
    fs::write(folder.join("segment-0000000009.new"), b"half").unwrap();
    let tables = Tables::read(&RealDisk::new(folder.clone()), &settings).unwrap();
    assert_eq!(tables.last_record(), Some(Lsn(256)), "of what is durable");
    each_place_is_told(&folder);
    let look = || segment::verify(&ReadOnlyDisk::new(folder.clone()), STORE, &Manifest::default()).unwrap();
    let seen = look();
    assert_eq!((seen.segment_count, seen.page_count, seen.entry_count, seen.damage_count()), (3, 6, 51, 0));
    assert_eq!(seen.to_string(), "51 entries in 6 pages in 3 segments");

    // Damage the table of the first segment: its page is found by the copy of its row.
    flip(&folder.join("segment-0000000000"), 100);
    // Damage the header of an entry in the second segment's second page: its neighbours reveal its
    // number.
    let path = folder.join("segment-0000000001");
    let bytes = fs::read(&path).unwrap();
    let number = 153u64.to_le_bytes();
    let at = (4096..).find(|at| bytes[*at..].starts_with(&[number, number].concat())).unwrap();
    flip(&path, at + 2);
    let seen = look();
    assert_eq!((seen.segment_count, seen.page_count, seen.entry_count), (3, 6, 50));
    assert_eq!((seen.damaged.len(), seen.pages.len(), seen.damage_count()), (1, 1, 2));
    assert_eq!((seen.damaged[0].name.as_str(), seen.damaged[0].page_count), ("segment-0000000000", 2));
    let damaged = &seen.pages[0];
    assert_eq!((damaged.name.as_str(), damaged.owner), ("segment-0000000001", 6));
    assert_eq!((damaged.damage.lost, &damaged.damage.lsns[..]), (1, &[LsnRange::one(Lsn(153))][..]));
    let told = seen.to_string();
    for line in [
        "damage in front of `segment-0000000000`: 2 pages are found, none is lost as a whole",
        "damage in page 1 of `segment-0000000001`, of the queue with id 6: 1 entry is lost, among numbers 153",
    ] {
        assert!(told.contains(line), "{told}");
    }
}

#[test]
fn an_opening_says_what_it_took_away_and_what_is_not_there() {
    let folder = folder("segments-counted");
    let settings = SegmentSettings::new(STORE, OnDamage::Quarantine);
    let open = |manifest: &Manifest| {
        let disk = RealDisk::new(folder.clone());
        Segments::open(disk, &settings, manifest).unwrap()
    };
    let (segments, ..) = open(&Manifest::default());
    for round in 0..8 {
        let pages = [page(5, 1 + round * 100, 2), page(6, 50 + round * 100, 2)];
        segments.write(&pages, Durability::Durable).unwrap();
    }
    let mut manifest = segments.manifest();
    drop(segments);
    // Segments missing from the checkpoint are gone although their files exist; set-aside files
    // stay.
    manifest.segments.retain(|segment| segment.segment > 2);
    fs::rename(folder.join("segment-0000000002"), folder.join("segment-0000000002.damaged")).unwrap();
    // Every page of these segments is gone.
    for segment in &mut manifest.segments {
        if matches!(segment.segment, 3 | 4 | 6) {
            segment.gone = vec![0, 1];
        }
    }
    // Of the two missing files, one was still needed and one was not.
    fs::remove_file(folder.join("segment-0000000005")).unwrap();
    fs::remove_file(folder.join("segment-0000000006")).unwrap();
    for name in ["11.new", "12.new", "13.transient", "14.transient", "15.transient"] {
        fs::write(folder.join(format!("segment-00000000{name}")), b"half").unwrap();
    }
    let (_, facts, report) = open(&manifest);
    assert_eq!((report.unfinished, report.transient, report.gone), (2, 3, 4), "{report:?}");
    assert_eq!((report.segment_count, report.page_count), (1, 2), "{report:?}");
    assert_eq!(report.findings(), report.absent.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(report.absent.iter().map(|absent| absent.segment).collect::<Vec<_>>(), [5]);
    assert!(facts.iter().all(|facts| facts.page.segment() == 7));
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["segment-0000000002.damaged", "segment-0000000007"]);
}

#[test]
fn a_row_of_a_page_that_its_segment_does_not_have_is_none() {
    let seal = Seal::new(STORE);
    for (index, is_one) in [(0, true), (3, true), (4, false), (5, false)] {
        let facts = PageFacts {
            owner: 1,
            level: 4,
            page: PageRef::new(2, index),
            count: 1,
            bytes: 1,
            first_sequence: 1,
            last_sequence: 1,
            first: Lsn(1),
            last: Lsn(1),
            times: PageTimes::default(),
            subjects: SubjectDigest::NONE,
        };
        let row = Row { facts, page_count: 4, rises: true, offset: 4096, len: 100 };
        let read = Row::decode(&row.encode(seal, RowPlacement::Table), seal, RowPlacement::Table);
        assert_eq!(read, is_one.then_some(row), "page {index} of 4");
    }
}
