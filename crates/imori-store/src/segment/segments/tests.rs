use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::disk::sim_disk::{Call, DiskFault, EIO, ENOSPC, Random, SimDisk, SimFile, State};
use crate::limits::{
    PAGE_CACHE_BYTES_MAX, PAGE_CACHE_PAGE_BYTES_MAX, SEGMENT_FILES_OPEN_MAX, SEGMENT_PAGES_MAX,
};
use crate::segment::crash::{entry, settings};
use crate::segment::page::PageEntry;
use crate::segment::{AbsentSegment, PageError, PageTimes, ROW_BYTES, SubjectDigest, verify};
use crate::settings::OnDamage;

fn opened(disk: &SimDisk) -> Segments<SimDisk> {
    Segments::open(disk.clone(), &settings(None), &Manifest::default()).expect("the disk is well").0
}

fn page(first: u64, count: u64) -> NewPage {
    let entries = (first..first + count).map(|lsn| entry(lsn, 100)).collect();
    NewPage { owner: first, level: 4, times: PageTimes::default(), subjects: SubjectDigest::NONE, entries }
}

fn lsns(entries: &[PageEntry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.lsn.0).collect()
}

#[test]
fn a_disk_that_fails_leaves_no_segment_and_takes_it_later() {
    for (call, fault) in [
        (Call::Write, DiskFault::Error(ENOSPC)),
        (Call::Write, DiskFault::Error(EIO)),
        (Call::Sync, DiskFault::Error(EIO)),
        (Call::SyncFolder, DiskFault::Error(EIO)),
    ] {
        for nth in 0..3 {
            let disk = SimDisk::default();
            let segments = opened(&disk);
            let kept = segments.write(&[page(1, 3)], Durability::Durable).expect("the disk is well");
            disk.inject(call, nth, fault);
            let pages = [page(10, 100), page(200, 2)];
            let written = segments.write(&pages, Durability::Durable);
            let DiskFault::Error(code) = fault else { continue };
            if nth > 0 && call != Call::Write {
                assert!(written.is_ok(), "there is one {call:?} a segment");
                continue;
            }
            let error = written.expect_err("the disk failed");
            assert_eq!(error.raw_os_error(), Some(code), "{call:?} {nth}");
            assert_eq!(disk.state().names(), ["segment-0000000000"], "{call:?} {nth}");
            let again = segments.write(&pages, Durability::Durable).expect("the disk is well again");
            let manifest = segments.manifest();
            let state = disk.state().crash(&mut Random(nth as u64));
            let (_, facts, _) =
                Segments::open(SimDisk::new(state), &settings(None), &manifest).expect("it opens");
            assert_eq!(facts, [kept, again].concat(), "{call:?} {nth}");
        }
    }
}

#[test]
fn a_transient_segment_is_read_and_not_synced_and_goes() {
    let disk = SimDisk::default();
    let segments = opened(&disk);
    let facts = segments.write(&[page(1, 3)], Durability::Transient).expect("the disk is well");
    assert!(disk.trace().iter().all(|(call, ..)| *call == Call::Write));
    assert_eq!(lsns(&segments.read(facts[0].page).expect("it is there").entries), [1, 2, 3]);
    assert!(segments.manifest().segments.is_empty(), "a checkpoint does not know it");
    let (again, left, report) =
        Segments::open(disk.clone(), &settings(None), &segments.manifest()).expect("it opens");
    assert_eq!((left, report.transient, disk.state().names().len()), (vec![], 1, 0));
    assert!(matches!(again.read(facts[0].page), Err(PageError::Gone(_))));
}

#[test]
fn a_segment_goes_with_its_last_page() {
    let disk = SimDisk::default();
    let segments = opened(&disk);
    let facts = segments.write(&[page(1, 1), page(2, 1), page(3, 1)], Durability::Durable).expect("well");
    for (index, gone) in [(2, vec![2]), (2, vec![2]), (0, vec![0, 2])] {
        segments.discard(facts[index].page).expect("the disk is well");
        let manifest = segments.manifest();
        assert_eq!((manifest.next_segment, manifest.segments[0].gone.clone()), (1, gone));
        let (_, left, _) = Segments::open(disk.clone(), &settings(None), &manifest).expect("it opens");
        assert_eq!(left.len(), 3 - manifest.segments[0].gone.len(), "applied again");
    }
    segments.discard(facts[1].page).expect("the disk is well");
    assert_eq!((segments.manifest().segments, disk.state().names()), (vec![], vec![]));
    segments.discard(PageRef::new(77, 0)).expect("what was never there is gone");
}

#[test]
fn the_space_of_pages_that_went_is_given_back_while_others_stay() {
    let disk = SimDisk::default();
    let segments = opened(&disk);
    let pages: Vec<NewPage> = (0..12).map(|number| page(1 + number * 100, 60 + number)).collect();
    let facts = segments.write(&pages, Durability::Durable).expect("the disk is well");
    let name = "segment-0000000000";
    assert_eq!(segments.punch_holes().ok(), Some(0), "all are needed");
    let zeros = |disk: &SimDisk| {
        let state = disk.state();
        state.bytes(name).chunks(4096).filter(|block| block.iter().all(|byte| *byte == 0)).count()
    };
    assert_eq!(zeros(&disk), 0);
    for (gone, stays) in [(0..3, 3..12), (5..6, 6..12), (7..12, 6..7)] {
        gone.for_each(|index| segments.discard(facts[index].page).expect("the disk is well"));
        let hole_bytes = segments.punch_holes().expect("the disk is well");
        // Earlier holes are counted again.
        assert!(hole_bytes > 0 && hole_bytes.div_ceil(4096) == zeros(&disk) as u64, "{hole_bytes}");
        assert_eq!(segments.punch_holes().ok(), Some(0), "it was given back already");
        let manifest = segments.manifest();
        let seen = verify(&disk, settings(None).store, &manifest).expect("it can be inspection at");
        let count = manifest.segments[0].gone.len();
        assert_eq!((seen.hole_count, seen.page_count), (count, pages.len() - count));
        assert!(
            seen.to_string().ends_with(&format!(", the space of {count} pages more is given back")),
            "{seen}"
        );
        // A crash may restore any of the blocks under the holes.
        for seed in 0..40 {
            let left = SimDisk::new(disk.state().crash(&mut Random(seed)));
            let seen = verify(&left, settings(None).store, &manifest).expect("it can be inspection at");
            assert_eq!(seen.damage_count(), 0, "{seen}");
            let (again, ..) = Segments::open(left, &settings(None), &manifest).expect("it opens");
            for index in stays.clone().filter(|index| !manifest.has_gone(0, *index as u32)) {
                let read = again.read(facts[index].page).expect("it is needed");
                assert!(read.damage.is_none() && read.entries == pages[index].entries);
            }
        }
        // Without the checkpoint's manifest the holes are damage.
        let seen =
            verify(&disk, settings(None).store, &Manifest::default()).expect("it can be inspection at");
        assert!(seen.damage_count() > 0);
    }
    for index in [3, 4, 6] {
        segments.discard(facts[index].page).expect("the disk is well");
    }
    assert!(disk.state().names().is_empty(), "it goes with its last page");
}

#[test]
fn a_segment_whose_file_went_meanwhile_gives_nothing_back() {
    let disk = SimDisk::default();
    let segments = opened(&disk);
    let pages: Vec<NewPage> = (0..3).map(|number| page(1 + number * 100, 90)).collect();
    for goes in [true, false] {
        let facts = segments.write(&pages, Durability::Durable).expect("the disk is well");
        segments.discard(facts[1].page).expect("the disk is well");
        if goes {
            disk.remove("segment-0000000000").expect("it is there");
        }
    }
    assert!(segments.punch_holes().expect("the disk is well") > 0, "the other does");
}

#[test]
fn what_a_checkpoint_lists_and_is_not_there_is_told() {
    let disk = SimDisk::default();
    let segments = opened(&disk);
    let facts = segments.write(&[page(1, 1)], Durability::Durable).expect("the disk is well");
    let manifest = segments.manifest();
    segments.discard(facts[0].page).expect("the disk is well");
    let refuse = SegmentSettings { on_damage: OnDamage::Refuse, ..settings(None) };
    let refused = Segments::open(disk.clone(), &refuse, &manifest).map(drop).expect_err("it is missing");
    assert!(matches!(refused, SegmentOpenError::Damaged(_)), "{refused}");
    for words in ["`journal.on_damage`", "`segment-0000000000` is missing, with 1 page that"] {
        assert!(refused.to_string().contains(words), "{refused}");
    }
    let (_, _, report) = Segments::open(disk.clone(), &settings(None), &manifest).expect("it opens");
    let (segment, name) = (0, String::from("segment-0000000000"));
    let absent = AbsentSegment { segment, name, page_count: 1 };
    assert_eq!((report.is_damaged(), &report.absent), (true, &vec![absent]));
    let inspection = verify(&disk, settings(None).store, &manifest).expect("the disk is well");
    assert_eq!((inspection.damage_count(), inspection.absent), (1, report.absent));
}

#[test]
fn a_segment_that_goes_as_its_checkpoint_says_is_not_missed() {
    let disk = SimDisk::default();
    let segments = opened(&disk);
    let facts = segments.write(&[page(1, 1)], Durability::Durable).expect("the disk is well");
    let mut manifest = segments.manifest();
    manifest.segments[0].gone = vec![0];
    segments.discard(facts[0].page).expect("the disk is well");
    let (_, _, report) = Segments::open(disk.clone(), &settings(None), &manifest).expect("it opens");
    assert!(!report.is_damaged(), "{report}");
    let inspection = verify(&disk, settings(None).store, &manifest).expect("the disk is well");
    assert_eq!(inspection.damage_count(), 0, "{inspection}");
}

#[test]
fn what_cannot_be_a_segment_is_refused() {
    let (disk, empty) = (SimDisk::default(), NewPage { entries: Vec::new(), ..page(1, 1) });
    let segments = opened(&disk);
    let many = vec![page(1, 1); SEGMENT_PAGES_MAX + 1];
    // Shares one payload between entries, so that a segment can be too large without using as much memory.
    let payload = Bytes::from(vec![0; 64 << 20]);
    let large = PageEntry { payload, ..entry(1, 0) };
    let large = vec![NewPage { entries: vec![large], ..page(1, 1) }; 8];
    for (pages, expected) in [
        (vec![], "leave it out"),
        (vec![page(1, 1), empty], "leave it out"),
        (many, "4096 pages"),
        (large, "512 MiB"),
    ] {
        let error = segments.write(&pages, Durability::Durable).expect_err("it is refused");
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(disk.state().names().is_empty());
    let most = vec![page(1, 1); SEGMENT_PAGES_MAX];
    let facts = segments.write(&most, Durability::Durable).expect("that is the limit");
    let (_, found, report) = Segments::open(disk, &settings(None), &segments.manifest()).expect("it opens");
    assert!(found == facts && report.damaged.is_empty(), "{report}");
}

/// A simulated disk that calls a function whenever a folder is synced.
struct Watched {
    disk: SimDisk,
    then: Arc<dyn Fn() + Send + Sync>,
}

impl Disk for Watched {
    type File = SimFile;

    fn create(&self, name: &str) -> io::Result<SimFile> {
        self.disk.create(name)
    }

    fn open(&self, name: &str) -> io::Result<SimFile> {
        self.disk.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn sync_folder(&self) -> io::Result<()> {
        (self.then)();
        self.disk.sync_folder()
    }
}

#[test]
fn a_census_during_a_write_does_not_take_the_segment_away() {
    for (fault, is_kept) in [(None, true), (Some(Fault::ManifestSkipsUnderWay), false)] {
        let disk = SimDisk::default();
        let (taken, segments) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
        let then: Arc<dyn Fn() + Send + Sync> = Arc::new({
            let (taken, segments) = (taken.clone(), segments.clone());
            move || {
                let segments: Option<Arc<Segments<Watched>>> = segments.lock().expect("no panic").clone();
                *taken.lock().expect("no panic") = segments.map(|segments| segments.manifest());
            }
        });
        let watched = Watched { disk: disk.clone(), then };
        let (opened, ..) =
            Segments::open(watched, &settings(fault), &Manifest::default()).expect("it is empty");
        let opened = Arc::new(opened);
        *segments.lock().expect("no panic") = Some(opened.clone());
        let written = opened.write(&[page(1, 1)], Durability::Durable).expect("the disk is well");
        let manifest = taken.lock().expect("no panic").take().expect("the folder was synced");
        let (_, facts, _) = Segments::open(disk, &settings(fault), &manifest).expect("it opens");
        assert_eq!(facts == written, is_kept, "{fault:?}");
        segments.lock().expect("no panic").take();
    }
}

#[test]
fn readers_see_a_page_whole_or_gone_while_others_write_and_discard() {
    let segments = opened(&SimDisk::default());
    let (newest, read, gone) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    const SEGMENTS: u64 = 400;
    std::thread::scope(|scope| {
        for reader in 0..3u64 {
            let (segments, newest, read, gone) = (&segments, &newest, &read, &gone);
            scope.spawn(move || {
                let mut random = Random(reader);
                // Checks at least once, however late it starts.
                let mut is_over = false;
                while !is_over {
                    is_over = newest.load(Ordering::Acquire) >= SEGMENTS;
                    let back = random.below(6) as u64;
                    let segment = newest.load(Ordering::Acquire).saturating_sub(back);
                    let index = random.below(2) as u64;
                    match segments.read(PageRef::new(segment as u32, index as u32)) {
                        Ok(page) => {
                            let first = segment * 10 + index * 5;
                            let expected: Vec<u64> = (first..first + 5).collect();
                            assert!(page.damage.is_none() && lsns(&page.entries) == expected);
                            read.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(PageError::Gone(_)) => drop(gone.fetch_add(1, Ordering::Relaxed)),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        for segment in 0..SEGMENTS {
            let pages = [page(segment * 10, 5), page(segment * 10 + 5, 5)];
            let facts = segments.write(&pages, Durability::Durable).expect("the disk is well");
            assert_eq!(facts[0].page, PageRef::new(segment as u32, 0));
            newest.store(segment + 1, Ordering::Release);
            if let Some(old) = segment.checked_sub(3) {
                for index in 0..2 {
                    segments.discard(PageRef::new(old as u32, index)).expect("the disk is well");
                }
            }
        }
    });
    let (read, gone) = (read.into_inner(), gone.into_inner());
    assert!(read + gone > 0, "somebody inspection");
    assert_eq!(segments.manifest().segments.len(), 3);
}

#[test]
fn a_page_that_a_thread_reads_may_be_discarded_under_it() {
    // The location is looked up, then the file is removed, then it is opened.
    let disk = SimDisk::new(State::default());
    let segments = opened(&disk);
    let facts = segments.write(&[page(1, 1)], Durability::Durable).expect("the disk is well");
    Disk::remove(&disk, "segment-0000000000").expect("it is there");
    assert!(matches!(segments.read(facts[0].page), Err(PageError::Disk(_))), "it was not discarded");
    segments.discard(facts[0].page).expect("the disk is well");
    assert!(matches!(segments.read(facts[0].page), Err(PageError::Gone(_))));
}

#[test]
fn a_message_of_many_writes_is_a_page_by_itself() {
    let disk = SimDisk::default();
    let segments = opened(&disk);
    let large = NewPage { entries: vec![entry(9, 3 << 20)], ..page(1, 1) };
    assert!(large.encoded_bytes() > 3 << 20);
    let facts = segments.write(&[page(1, 2), large.clone(), page(3, 2)], Durability::Durable).expect("well");
    assert_eq!(segments.read(facts[1].page).expect("it is there").entries, large.entries);
    assert_eq!(lsns(&segments.read(facts[2].page).expect("it is there").entries), [3, 4]);
    let size = disk.open("segment-0000000000").expect("it is there").size().expect("it has one");
    assert!(size.is_multiple_of(4096), "{size}");
}

/// A simulated disk that counts what is opened and read, and refuses an opening when it is told to.
#[derive(Clone, Default)]
struct Counted {
    disk: SimDisk,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    opened: AtomicU64,
    open: AtomicU64,
    read: AtomicU64,
    /// Number of openings that fail for lack of descriptors.
    refused: AtomicU64,
}

struct CountedFile {
    file: SimFile,
    counts: Arc<Counts>,
}

impl Drop for CountedFile {
    fn drop(&mut self) {
        self.counts.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counted {
    fn file(&self, file: SimFile) -> CountedFile {
        self.counts.open.fetch_add(1, Ordering::Relaxed);
        CountedFile { file, counts: Arc::clone(&self.counts) }
    }

    /// Files opened so far, files that are open, and reads.
    fn counts(&self) -> (u64, u64, u64) {
        let Counts { opened, open, read, .. } = &*self.counts;
        (opened.load(Ordering::Relaxed), open.load(Ordering::Relaxed), read.load(Ordering::Relaxed))
    }

    fn segments(&self) -> Segments<Counted> {
        Segments::open(self.clone(), &settings(None), &Manifest::default()).expect("the disk is well").0
    }
}

impl Disk for Counted {
    type File = CountedFile;

    fn create(&self, name: &str) -> io::Result<CountedFile> {
        self.disk.create(name).map(|file| self.file(file))
    }

    fn open(&self, name: &str) -> io::Result<CountedFile> {
        let refused = &self.counts.refused;
        let is_refused =
            refused.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if is_refused.is_ok() {
            return Err(rustix::io::Errno::MFILE.into());
        }
        self.counts.opened.fetch_add(1, Ordering::Relaxed);
        self.disk.open(name).map(|file| self.file(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.disk.sync_folder()
    }
}

impl DiskFile for CountedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.counts.read.fetch_add(1, Ordering::Relaxed);
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }
}

#[test]
fn many_cursors_open_a_file_once_and_read_a_page_once() {
    let disk = Counted::default();
    let segments = disk.segments();
    let pages: Vec<NewPage> = (0..6).map(|number| page(1 + number * 100, 9)).collect();
    let facts = segments.write(&pages, Durability::Durable).expect("the disk is well");
    let read_all = || {
        for (facts, page) in facts.iter().zip(&pages) {
            assert_eq!(segments.read(facts.page).expect("it is there").entries, page.entries);
        }
    };
    read_all();
    let before = disk.counts();
    assert_eq!((before.0, before.1), (1, 1), "one file, which stays open");
    (0..100).for_each(|_| read_all());
    assert_eq!(disk.counts(), before, "the others read no byte from the disk");
}

#[test]
fn pages_and_files_that_stay_are_within_their_limits() {
    let disk = Counted::default();
    let segments = disk.segments();
    let len = PAGE_CACHE_PAGE_BYTES_MAX / 4;
    let numbers = 0..2 * SEGMENT_FILES_OPEN_MAX as u64;
    let written: Vec<(PageFacts, NewPage)> = numbers
        .map(|number| {
            let page = NewPage { entries: vec![entry(1 + number, len)], ..page(1, 1) };
            let facts = segments.write(std::slice::from_ref(&page), Durability::Durable).expect("it is well");
            (facts[0], page)
        })
        .collect();
    for _ in 0..2 {
        for (facts, page) in &written {
            assert_eq!(segments.read(facts.page).expect("it is there").entries, page.entries);
            let (open, weight) = (disk.counts().1, segments.lock().cache.weight());
            assert!(
                open <= SEGMENT_FILES_OPEN_MAX as u64 && weight <= PAGE_CACHE_BYTES_MAX,
                "{open}, {weight}"
            );
        }
    }
    assert_eq!(disk.counts().1, SEGMENT_FILES_OPEN_MAX as u64);
    assert!(segments.lock().cache.weight() > PAGE_CACHE_BYTES_MAX - 2 * len);
    // A message that is a large page by itself takes nothing from the others.
    let large = NewPage { entries: vec![entry(9, PAGE_CACHE_PAGE_BYTES_MAX)], ..page(1, 1) };
    let facts = segments.write(std::slice::from_ref(&large), Durability::Durable).expect("the disk is well");
    let before = segments.lock().cache.weight();
    assert_eq!(segments.read(facts[0].page).expect("it is there").entries, large.entries);
    assert_eq!(segments.lock().cache.weight(), before + ROW_BYTES, "its row alone");
}

#[test]
fn what_is_discarded_leaves_no_page_in_memory_and_no_file_open() {
    let disk = Counted::default();
    let segments = disk.segments();
    let facts = segments.write(&[page(1, 3), page(9, 3)], Durability::Durable).expect("the disk is well");
    let read = |at: usize| segments.read(facts[at].page);
    assert!(read(0).is_ok() && read(1).is_ok());
    segments.discard(facts[0].page).expect("the disk is well");
    assert!(matches!(read(0), Err(PageError::Gone(_))) && read(1).is_ok());
    segments.discard(facts[1].page).expect("the disk is well");
    assert!(matches!(read(1), Err(PageError::Gone(_))));
    assert_eq!((disk.counts().1, segments.lock().cache.weight()), (0, 0));
}

#[test]
fn files_that_stay_open_give_their_descriptors_back_where_there_are_none() {
    let disk = Counted::default();
    let segments = disk.segments();
    let written: Vec<PageFacts> = (0..9)
        .flat_map(|number| segments.write(&[page(1 + number, 3)], Durability::Durable).expect("it is well"))
        .collect();
    written[..8].iter().for_each(|facts| drop(segments.read(facts.page).expect("it is there")));
    assert_eq!(disk.counts().1, 8);
    disk.counts.refused.store(1, Ordering::Relaxed);
    assert!(segments.read(written[8].page).is_ok());
    assert_eq!(disk.counts().1, 1);
    segments.lock().cache.clear();
    disk.counts.refused.store(2, Ordering::Relaxed);
    let refused = segments.read(written[0].page);
    assert!(matches!(refused, Err(PageError::Disk(_))), "there is none left at all: {refused:?}");
}

#[test]
fn a_page_that_is_damaged_is_read_and_told_each_time() {
    let disk = SimDisk::default();
    let facts = opened(&disk).write(&[page(1, 3)], Durability::Durable).expect("the disk is well");
    let mut state = disk.state();
    state.damage("segment-0000000000", |bytes| bytes[4096 + 200] ^= 1);
    let segments = opened(&SimDisk::new(state));
    let reads = [0, 1].map(|_| segments.read(facts[0].page).expect("it is there").damage);
    assert!(reads[0].is_some() && reads[0] == reads[1], "{reads:?}");
}

#[test]
fn the_segments_of_a_terabyte_take_8_mib_beside_what_is_read() {
    // 64 pages of 256 KiB are 16 MiB; of every second segment some pages are gone.
    let segments = opened(&SimDisk::default());
    let count = (1u32 << 20) / 16;
    for number in 0..count {
        let gone = if number % 2 == 0 { &[3, 9, 10][..] } else { &[] };
        let segment = Segment::new(FileKind::Durable, Rows::InTable(64), gone);
        segments.lock().segments.insert(number, segment);
    }
    let (pages, bytes) = (segments.manifest().segments.len() * 64, segments.memory());
    assert_eq!(pages, 4 << 20);
    assert!(bytes <= 8 << 20, "{bytes} bytes");
}
