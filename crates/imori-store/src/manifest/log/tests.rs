use super::*;
use crate::disk::crash_runs::{CRASHES, STORE, assert_all_caught, plan_fault, run_all, seal, seeds, tell};
use crate::disk::sim_disk::{Call, DiskFault, EIO, ENOSPC, Random, SimDisk, State};
use crate::limits::SEGMENT_PAGES_MAX;

fn settings(fault: Option<Fault>) -> ManifestSettings {
    ManifestSettings { seal: seal(fault), ..ManifestSettings::new(STORE).small() }
}

fn opened(
    disk: &SimDisk,
    settings: &ManifestSettings,
    mark: ManifestMark,
) -> (ManifestLog<SimDisk>, Manifest) {
    ManifestLog::open(disk.clone(), settings, mark).expect("the disk is well")
}

fn read_at(state: &State, settings: &ManifestSettings, mark: ManifestMark) -> Manifest {
    read(&SimDisk::new(state.clone()), settings, mark).expect("the disk is well").0
}

/// Changes a manifest: segments come and go, and pages of them go.
fn change(manifest: &mut Manifest, random: &mut Random) {
    for _ in 0..random.below(6) {
        match random.below(4) {
            0 | 1 => {
                manifest.next_segment += 1 + random.below(3) as u32;
                let most = [3, 300, SEGMENT_PAGES_MAX][random.below(3)];
                let page_count = 1 + random.below(most) as u32;
                let segment = manifest.next_segment - 1;
                manifest.segments.push(ManifestEntry { segment, page_count, gone: Vec::new() });
            }
            2 if !manifest.segments.is_empty() => {
                let at = random.below(manifest.segments.len());
                manifest.segments.remove(at);
            }
            _ if !manifest.segments.is_empty() => {
                let at = random.below(manifest.segments.len());
                let entry = &mut manifest.segments[at];
                let first = random.below(entry.page_count as usize) as u32;
                let last = entry.page_count.min(first + 1 + random.below(40) as u32);
                entry.gone.extend(first..last);
                entry.gone.sort_unstable();
                entry.gone.dedup();
            }
            _ => {}
        }
    }
}

#[test]
fn every_place_that_a_checkpoint_names_reads_as_it_was_written() {
    let (settings, disk, mut random) = (settings(None), SimDisk::default(), Random(3));
    let (mut log, mut manifest) = opened(&disk, &settings, ManifestMark::default());
    assert_eq!(log.write(&manifest).expect("the disk is well"), ManifestMark::default(), "nothing is there");
    assert!(disk.state().names().is_empty());
    let mut generations = 0;
    for round in 0..300 {
        change(&mut manifest, &mut random);
        let mark = log.write(&manifest).expect("the disk is well");
        assert_eq!(read_at(&disk.state(), &settings, mark), manifest, "round {round}");
        assert_eq!(log.write(&manifest).ok(), Some(mark), "what did not change is not written");
        if generations < mark.generation {
            generations = mark.generation;
            let files = disk.state().names().len();
            log.forget_old().expect("the disk is well");
            assert!(
                round == 0 || files == 2 && disk.state().names().len() == 1,
                "round {round}: {files} files"
            );
        }
        if random.below(5) == 0 {
            let (again, found) = opened(&disk, &settings, mark);
            assert_eq!(found, manifest);
            log = again;
        }
    }
    assert!(generations > 20, "{generations} generations");
}

#[test]
fn the_format_is_this() {
    let (settings, disk) = (settings(None), SimDisk::default());
    let (mut log, _) = opened(&disk, &settings, ManifestMark::default());
    let entry = |segment, gone: &[u32]| ManifestEntry { segment, page_count: 300, gone: gone.to_vec() };
    let segments = vec![entry(3, &[]), entry(200, &[1, 2, 3, 9])];
    let mut manifest = Manifest { next_segment: 201, segments, damage: None };
    let first = log.write(&manifest).expect("the disk is well");
    assert_eq!((first.next_segment, first.generation, first.end), (201, 1, 1024));
    manifest.segments.remove(0);
    let second = log.write(&manifest).expect("the disk is well");
    assert_eq!((second.generation, second.end), (1, 1536));
    let state = disk.state();
    let bytes = state.bytes("manifest-0000000001");
    assert_eq!(bytes[..12], *b"imorimfs\x01\0\0\0");
    assert_eq!((&bytes[12..28], &bytes[28..32]), (&settings.store.0[..], &[1, 0, 0, 0][..]));
    let header = u32::from_le_bytes(*bytes[32..].first_chunk().expect("it is there"));
    let expected = [&[13, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0][..], &header.to_le_bytes()].concat();
    assert_eq!(bytes[516..532], expected);
    assert_eq!(bytes[532..545], [3, 0xac, 2, 0, 0xc5, 1, 0xac, 2, 2, 1, 2, 6, 0]);
    assert_eq!(bytes[1024 + 20..1024 + 22], [3, 0], "a segment without pages is gone");
}

#[test]
fn a_full_disk_takes_what_changed_in_the_room_that_the_log_has() {
    let (settings, disk, mut random) = (settings(None), SimDisk::default(), Random(5));
    let (mut log, mut manifest) = opened(&disk, &settings, ManifestMark::default());
    while manifest.segments.is_empty() {
        change(&mut manifest, &mut random);
    }
    let mut mark = log.write(&manifest).expect("the disk is well");
    // Writes where the log has to grow, or to begin anew, and there is no room for that.
    for step in 0..3 {
        let entry = &mut manifest.segments[0];
        entry.page_count = 300;
        entry.gone = vec![step];
        disk.inject(Call::Write, 0, DiskFault::Error(ENOSPC));
        if let Err(error) = log.write(&manifest) {
            assert_eq!(error.raw_os_error(), Some(ENOSPC));
        }
        disk.clear_faults();
        assert!(read_at(&disk.state(), &settings, mark).damage.is_none());
        mark = log.write(&manifest).expect("there is room again");
        assert_eq!(read_at(&disk.state(), &settings, mark), manifest);
    }
}

#[test]
fn a_log_that_failed_to_sync_is_written_anew() {
    let (settings, disk) = (settings(None), SimDisk::default());
    let (mut log, _) = opened(&disk, &settings, ManifestMark::default());
    let entry = |gone: &[u32]| ManifestEntry { segment: 0, page_count: 3, gone: gone.to_vec() };
    let manifest = |gone: &[u32]| Manifest { next_segment: 1, segments: vec![entry(gone)], damage: None };
    let first = log.write(&manifest(&[])).expect("the disk is well");
    disk.inject(Call::Sync, 0, DiskFault::Error(EIO));
    log.write(&manifest(&[0])).expect_err("the disk failed");
    let second = log.write(&manifest(&[0])).expect("the disk is well again");
    assert_eq!((first.generation, second.generation), (1, 2));
    for seed in 0..40 {
        let left = disk.state().crash(&mut Random(seed));
        assert_eq!(read_at(&left, &settings, second), manifest(&[0]));
    }
}

/// Writes manifests, with a crash after every call that changes the disk; a checkpoint names some of them.
fn run(seed: u64, fault: Option<Fault>) -> Result<u64, String> {
    let (settings, mut random, mut points) = (settings(fault), Random(seed), 0);
    // The place that a durable checkpoint names.
    let (mut named, mut expected) = (ManifestMark::default(), Manifest::default());
    let mut state = State::default();
    for _ in 0..3 {
        let disk = SimDisk::new(state);
        disk.watch();
        let (mut log, mut manifest) = opened(&disk, &settings, named);
        if manifest != expected {
            return Err(format!("opened: {:?}", manifest.damage));
        }
        if random.below(2) == 0 {
            plan_fault(&disk, &mut random);
        }
        for _ in 0..12 {
            change(&mut manifest, &mut random);
            let written = log.write(&manifest);
            for state in disk.take_snapshots() {
                for _ in 0..CRASHES {
                    points += 1;
                    check(&state.crash(&mut random), &settings, named, &expected)?;
                }
            }
            // A checkpoint may be refused, or the journal may end before it is durable.
            let Ok(mark) = written else { continue };
            if random.below(3) > 0 {
                (named, expected) = (mark, manifest.clone());
                check(&disk.state().crash(&mut random), &settings, named, &expected)?;
                let _ = log.forget_old();
            }
        }
        state = disk.state().crash(&mut random);
        check(&state, &settings, named, &expected)?;
    }
    Ok(points)
}

fn check(
    left: &State,
    settings: &ManifestSettings,
    named: ManifestMark,
    expected: &Manifest,
) -> Result<(), String> {
    let found = read_at(left, settings, named);
    match &found.damage {
        Some(damage) if damage.at.is_none() => Err(format!("missing: {damage}")),
        Some(damage) => Err(format!("damage: {damage}")),
        None if found != *expected => Err(format!("altered: {found:?}, not {expected:?}")),
        None => Ok(()),
    }
}

#[test]
fn no_crash_loses_the_manifest_that_a_checkpoint_names() {
    let points: u64 = run_all(run).into_iter().sum();
    assert!(points > seeds() * 100, "{points} crashes");
    tell(&format!("{points} crashes of manifests"));
}

#[test]
fn every_planted_fault_of_manifests_is_caught() {
    let faults = [
        (Fault::ManifestWithoutSync, "damage"),
        (Fault::ManifestWithoutFolderSync, "missing"),
        (Fault::ManifestGoesEarly, "missing"),
    ];
    assert_all_caught(&faults, run);
}

/// Three states of a manifest in one file, and the place of the last.
fn sample(settings: &ManifestSettings) -> (State, Vec<Manifest>, ManifestMark) {
    let disk = SimDisk::default();
    let (mut log, mut manifest) = opened(&disk, settings, ManifestMark::default());
    let (mut states, mut mark) = (Vec::new(), ManifestMark::default());
    for step in 0..3u32 {
        manifest.next_segment += 1;
        manifest.segments.push(ManifestEntry { segment: step, page_count: 40, gone: Vec::new() });
        manifest.segments[0].gone = (0..step * 3).collect();
        mark = log.write(&manifest).expect("the disk is well");
        states.push(manifest.clone());
    }
    assert_eq!(mark.generation, 1, "all are in one file");
    (disk.state(), states, mark)
}

/// Reads the last state after this change; tells whether the damage was noticed.
fn damaged(fault: Option<Fault>, change: impl FnOnce(&mut Vec<u8>)) -> Result<bool, String> {
    let settings = settings(fault);
    let (mut state, states, mark) = sample(&settings);
    state.damage("manifest-0000000001", change);
    let found = read_at(&state, &settings, mark);
    let is_told = found.damage.is_some();
    let is_empty = found.segments.is_empty();
    let is_before = states.iter().any(|state| state.segments == found.segments);
    match (is_told, states.last().is_some_and(|last| last.segments == found.segments)) {
        (false, true) => Ok(false),
        // A damaged manifest has the frames before the damage, and reports no segment as gone.
        (true, _) if is_empty || is_before => {
            let is_gone = (0..99).any(|segment| found.is_gone(segment));
            if is_gone { Err(String::from("gone")) } else { Ok(true) }
        }
        _ => Err(format!("altered: {found:?}")),
    }
}

#[test]
fn no_flipped_bit_of_a_manifest_changes_it_unnoticed() {
    let (_, _, mark) = sample(&settings(None));
    let mut told = 0;
    for bit in 0..usize::try_from(mark.end).expect("it is small") * 8 {
        let noticed = damaged(None, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        told += usize::from(noticed.unwrap_or_else(|what| panic!("bit {bit}: {what}")));
    }
    // All bytes except the zeros that fill the sectors of frames.
    assert!(told > (SECTOR_BYTES + 3 * 24) * 8, "{told} bits are covered");
    let flipped =
        |bit: usize| damaged(Some(Fault::ManifestWithoutChecksum), |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
    let is_caught =
        (SECTOR_BYTES * 8..).take(4096).any(|bit| flipped(bit).is_err_and(|what| what.contains("altered")));
    assert!(is_caught, "a manifest without checksums is not caught");
}

#[test]
fn what_is_lost_of_a_manifest_is_told() {
    let (_, _, mark) = sample(&settings(None));
    let end = usize::try_from(mark.end).expect("it is small");
    for len in (0..end).step_by(SECTOR_BYTES) {
        assert_eq!(damaged(None, |bytes| bytes.truncate(len)), Ok(true), "{len} bytes are left");
    }
    assert_eq!(damaged(None, |bytes| bytes.truncate(end)), Ok(false), "what stands behind is not needed");
    for (from, to) in [(1024, 512), (512, 1024), (1024, 1536), (1536, 1024), (0, 512)] {
        let moved = damaged(None, |bytes| bytes.copy_within(from..from + SECTOR_BYTES, to));
        assert_eq!(moved, Ok(true), "the sector at {from} stands at {to}");
    }
}

#[test]
fn a_damaged_manifest_is_set_aside_once_another_is_named() {
    let settings = settings(None);
    let (mut state, states, mark) = sample(&settings);
    state.damage("manifest-0000000001", |bytes| bytes[1030] ^= 1);
    let disk = SimDisk::new(state);
    let (mut log, found) = opened(&disk, &settings, mark);
    let damage = found.damage.clone().expect("it does not verify");
    let told = "damage in `manifest-0000000001` at 1024, which says what segments are needed: messages that were \
        consumed may come back";
    assert_eq!((damage.to_string().as_str(), &found.segments), (told, &states[0].segments));
    let manifest = Manifest { damage: None, ..found };
    let mark = log.write(&manifest).expect("the disk is well");
    assert_eq!(mark.generation, 2, "what is damaged is not written to");
    log.forget_old().expect("the disk is well");
    assert_eq!(disk.state().names(), ["manifest-0000000001.damaged", "manifest-0000000002"]);
    assert_eq!(opened(&disk, &settings, mark).1, manifest);
}
