//! Segments on a real file system.

use bytes::Bytes;
use imori_store::disk::RealDisk;
use imori_store::limits::PAGE_BYTES_GOAL;
use imori_store::lsn::Lsn;
use imori_store::manifest::Manifest;
use imori_store::seal::StoreId;
use imori_store::segment::{
    Durability, NewPage, PageEntry, PageTimes, SegmentSettings, Segments, SubjectDigest, entry_bytes,
};
use imori_store::settings::OnDamage;

use super::folder;

const ENTRY_BYTES: usize = 1024;

fn page(owner: u64, first: u64) -> NewPage {
    let count = (PAGE_BYTES_GOAL / entry_bytes(ENTRY_BYTES)) as u64;
    let entry = |lsn: u64| {
        let payload = Bytes::from(lsn.to_le_bytes().repeat(ENTRY_BYTES / 8));
        PageEntry { lsn: Lsn(lsn), sequence: lsn - first, payload }
    };
    NewPage {
        owner,
        level: 4,
        times: PageTimes::default(),
        subjects: SubjectDigest::NONE,
        entries: (first..first + count).map(entry).collect(),
    }
}

#[test]
fn pages_are_there_when_segments_are_opened_again() {
    let folder = folder("segments");
    let settings = SegmentSettings::new(StoreId(*b"of this test ..."), OnDamage::Quarantine);
    let open = |manifest: &Manifest| {
        let disk = RealDisk::new(folder.clone());
        let (segments, facts, report) = Segments::open(disk, &settings, manifest).unwrap();
        assert!(report.damaged.is_empty(), "{report}");
        (segments, facts)
    };
    let (mut manifest, mut expected) = (Manifest::default(), Vec::new());
    for round in 0..3u64 {
        let (segments, facts) = open(&manifest);
        assert_eq!(facts.iter().map(|facts| facts.owner).collect::<Vec<_>>(), expected);
        for facts in &facts {
            let read = segments.read(facts.page).unwrap();
            assert_eq!(read.damage, None);
            assert_eq!(read.entries, page(facts.owner, facts.first.0).entries, "{facts:?}");
        }
        let pages: Vec<NewPage> =
            (0..8).map(|at| page(round * 8 + at, 1 + (round * 8 + at) * 1000)).collect();
        let written = segments.write(&pages, Durability::Durable).unwrap();
        segments.write(&pages[..2], Durability::Transient).unwrap();
        expected.extend(written.iter().map(|facts| facts.owner));
        // Half of the new segment's pages are discarded, and the rest of an older one's.
        let all: Vec<_> = facts.iter().chain(&written[..4]).collect();
        all.iter().for_each(|facts| segments.discard(facts.page).unwrap());
        expected.retain(|owner| all.iter().all(|facts| facts.owner != *owner));
        manifest = segments.manifest();
        assert_eq!(manifest.segments.len(), 1);
    }
    let left = std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(left, 2, "the last one, and its transient one until the next opening");
    open(&manifest);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}
